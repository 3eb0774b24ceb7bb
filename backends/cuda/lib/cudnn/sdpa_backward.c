/* Backward pass: five products; those for keys and values use transposed scores. */
#include "cudnn_bias.h"
#include "sdpa.h"
#include "tenon/module/op/attention_backward.h"

/* Intermediate results, in addition to the shared state. */
typedef struct back {
    dnn_sdpa s;
    dnn_desc q, k, v, dout; /* K and V transposed */
    dnn_desc sums;          /* dot product of each row: out . dout */
    dnn_desc weights;       /* f32 */
    dnn_desc slopes;        /* gradients of scores, f32 */
} back;

static dnn_desc whole_number(const back *b)
{
    return dnn_number(b->s.graph, DNN_FROM_FLOAT, DNN_F32, 1);
}

/* Adds the dot products of the rows of OUT and DOUT. */
static void add_sums(back *b)
{
    const tn_attention_op *at = TN_PARAMS(b->s.op, attention);
    const int64_t row = at->value_size, head = at->queries * row;
    const dnn_layout products = {.type = DNN_F32,
                                 .shape = {at->batch, at->heads, at->queries, row},
                                 .stride = {at->heads * head, head, row, 1}};
    dnn_graph *graph = b->s.graph;
    dnn_desc out = dnn_operand(&b->s, TN_ATTENTION_OUT, false);
    dnn_desc product = dnn_each_to(&b->s, DNN_MUL, dnn_between(graph, &products), b->dout, out);
    dnn_desc sum = dnn_between(graph, &b->s.rows);
    dnn_add_reduction(graph, DNN_REDUCE_ADD, product, sum);
    b->sums = dnn_tensor(graph, &b->s.rows, DNN_FROM_SUMS);
    (void)dnn_each_to(&b->s, DNN_MUL, b->sums, sum, whole_number(b));
}

/* Recomputes the scores, and from them and the forward pass's LSE the weights. */
static void add_weights(back *b)
{
    dnn_sdpa *s = &b->s;
    const int32_t lse = dnn_needs_least(s->op) ? DNN_FROM_LEAST : TN_ATTENTION_LSE;
    dnn_add_scores(s, b->q, b->k);
    s->score =
        dnn_each_score(s, DNN_SUB, DNN_F32, s->score, dnn_tensor(s->graph, &s->rows, lse), NULL);
    dnn_add_bounds(s);
    b->weights = dnn_each_score(s, DNN_EXP, DNN_F32, s->score, NULL, NULL);
}

/* Transposes a tensor of the scores' shape, in the op's dtype. */
static dnn_desc transpose_tensor(const back *b, dnn_desc x)
{
    const tn_attention_op *at = TN_PARAMS(b->s.op, attention);
    dnn_layout turned = b->s.scores;
    turned.type = dnn_type_of(b->s.op->operand[TN_ATTENTION_Q].dtype);
    turned.shape[DNN_LENGTH] = at->keys;
    turned.shape[DNN_SIZE] = at->queries;
    turned.stride[DNN_LENGTH] = 1;
    turned.stride[DNN_SIZE] = at->keys;
    dnn_desc y = dnn_between(b->s.graph, &turned);
    dnn_add_reshape(b->s.graph, x, y);
    return y;
}

/* A gradient of keys or values: summed over the heads that share them. */
static void add_shared(const back *b, dnn_desc turned, dnn_desc of, int32_t gradient)
{
    const tn_attention_op *at = TN_PARAMS(b->s.op, attention);
    const int64_t size = gradient == TN_ATTENTION_BACKWARD_DK ? at->size : at->value_size;
    const int64_t head = at->keys * size;
    const dnn_layout each_head = {.type = dnn_type_of(b->s.op->operand[TN_ATTENTION_Q].dtype),
                                  .shape = {at->batch, at->heads, at->keys, size},
                                  .stride = {at->heads * head, head, size, 1}};
    const bool shared = at->heads != at->groups;
    dnn_desc to = dnn_operand(&b->s, gradient, false);
    const dnn_matmul product = {
        .a = turned, .b = of, .c = shared ? dnn_between(b->s.graph, &each_head) : to};
    dnn_add_matmul(b->s.graph, &product);
    if (shared)
        dnn_add_reduction(b->s.graph, DNN_REDUCE_ADD, product.c, to);
}

/* Adds the gradients of scores. */
static void add_slopes(back *b)
{
    const dnn_sdpa *s = &b->s;
    const dnn_matmul product = {.a = b->dout, .b = b->v, .c = dnn_between(s->graph, &s->scores)};
    dnn_add_matmul(s->graph, &product);
    dnn_desc slopes = dnn_each_score(s, DNN_SUB, DNN_F32, product.c, b->sums, NULL);
    slopes = dnn_each_score(s, DNN_MUL, DNN_F32, slopes, b->weights, NULL);
    b->slopes = dnn_each_score(s, DNN_MUL, DNN_F32, slopes,
                               dnn_number(s->graph, DNN_FROM_SCALE, DNN_F32, 0), NULL);
}

static void add_queries(const back *b, bool together)
{
    const tn_attention_op *at = TN_PARAMS(b->s.op, attention);
    const int64_t head = at->queries * at->size;
    const dnn_layout parts = {.type = DNN_F32,
                              .shape = {at->batch, at->heads, at->queries, at->size},
                              .stride = {at->heads * head, head, at->size, 1}};
    dnn_graph *graph = b->s.graph;
    dnn_layout keys;
    dnn_layout_of(b->s.op, TN_ATTENTION_K, false, &keys);
    dnn_desc k = dnn_between(graph, &keys),
             to = dnn_operand(&b->s, TN_ATTENTION_BACKWARD_DQ, false);
    dnn_add_reshape(graph, b->k, k);
    const dnn_matmul product = {
        .a = b->slopes, .b = k, .c = together ? to : dnn_tensor(graph, &parts, DNN_FROM_PARTS)};
    dnn_add_matmul(graph, &product);
    if (!together)
        (void)dnn_each_to(&b->s, DNN_IDENTITY, to, product.c, NULL);
}

void dnn_add_gradients(dnn_graph *graph, const tn_op *op, bool together)
{
    back b = {0};
    dnn_sdpa_begin(graph, op, &b.s);
    b.q = dnn_operand(&b.s, TN_ATTENTION_Q, false);
    b.k = dnn_operand(&b.s, TN_ATTENTION_K, true);
    b.v = dnn_operand(&b.s, TN_ATTENTION_V, true);
    b.dout = dnn_operand(&b.s, TN_ATTENTION_BACKWARD_DOUT, false);
    add_sums(&b);
    add_weights(&b);
    add_shared(&b, transpose_tensor(&b, b.weights), b.dout, TN_ATTENTION_BACKWARD_DV);
    add_slopes(&b);
    add_shared(&b, transpose_tensor(&b, b.slopes), b.q, TN_ATTENTION_BACKWARD_DK);
    add_queries(&b, together);
}
