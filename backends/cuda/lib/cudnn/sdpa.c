#include "sdpa.h"

#include "cudnn_bias.h"
#include "cudnn_dropout.h"
#include "cudnn_packed.h"
#include "tenon/module/op/attention.h"

#include <float.h>
#include <math.h>

/* Returns the score of hidden keys: before 9.10, softmax expects the lowest finite number instead
 * of -infinity. */
static double hidden(const dnn_sdpa *s)
{
    enum { WITH_INFINITY = 91000 };
    return s->graph->dnn->version() < WITH_INFINITY ? -(double)FLT_MAX : -(double)INFINITY;
}

dnn_desc dnn_operand(const dnn_sdpa *s, int32_t operand, bool turned)
{
    const tn_attention_op *at = TN_PARAMS(s->op, attention);
    int32_t starts;
    dnn_layout layout;
    dnn_layout_of(s->op, operand, turned, &layout);
    if (!dnn_is_packed(s->op, operand, &starts))
        return dnn_tensor(s->graph, &layout, operand);
    layout.shape[DNN_BATCH] = at->batch;
    layout.shape[turned ? DNN_SIZE : DNN_LENGTH] =
        starts == TN_ATTENTION_STARTS_Q ? at->queries : at->keys;
    return dnn_tensor_at(s->graph, &layout, operand, dnn_places_of(s->graph, s->op, operand));
}

/* LSE, one number per query. */
static dnn_desc add_lse(const dnn_sdpa *s)
{
    const tn_layout *of = &s->op->operand[TN_ATTENTION_LSE];
    dnn_layout layout = s->rows;
    if (of->dtype == TN_DTYPE_NONE)
        return dnn_between(s->graph, &layout);
    layout.stride[DNN_BATCH] = TN_PARAMS(s->op, attention)->heads * of->shape[DNN_LENGTH];
    layout.stride[DNN_HEADS] = of->shape[DNN_LENGTH];
    return dnn_tensor_at(s->graph, &layout, TN_ATTENTION_LSE,
                         dnn_places_of(s->graph, s->op, TN_ATTENTION_LSE));
}

/* K or V from pages, as if each sequence were contiguous. */
static dnn_desc add_pages(const dnn_sdpa *s, int32_t operand, bool turned)
{
    const tn_attention_op *at = TN_PARAMS(s->op, attention);
    const tn_layout *pages = &s->op->operand[TN_ATTENTION_PAGES];
    const int64_t size = operand == TN_ATTENTION_K ? at->size : at->value_size;
    const int64_t all = at->keys * size, row = pages->stride[0], each = pages->shape[1];
    const dnn_layout table = {.type = DNN_I32,
                              .alignment = sizeof(int32_t),
                              .shape = {at->batch, 1, each, 1},
                              .stride = {row, row, 1, 1}};
    dnn_layout together = {.type = dnn_type_of(s->op->operand[operand].dtype),
                           .shape = {at->batch, at->groups, at->keys, size},
                           .stride = {at->groups * all, all, size, 1}};
    if (turned)
        dnn_layout_turn(&together);
    const dnn_paged of = {.y = dnn_between(s->graph, &together),
                          .from = dnn_operand(s, operand, false),
                          .lengths = s->keys,
                          .table = dnn_tensor(s->graph, &table, TN_ATTENTION_PAGES)};
    dnn_add_paged(s->graph, &of);
    return of.y;
}

/* K or V, from pages or directly. */
static dnn_desc add_keys(const dnn_sdpa *s, int32_t operand, bool turned)
{
    return s->op->uses & TN_ATTENTION_USES_PAGES ? add_pages(s, operand, turned)
                                                 : dnn_operand(s, operand, turned);
}

/* A table of one i32 for each sequence. */
static dnn_desc add_table(const dnn_sdpa *s, int32_t from)
{
    const dnn_layout table = {.type = DNN_I32,
                              .alignment = sizeof(int32_t),
                              .shape = {TN_PARAMS(s->op, attention)->batch, 1, 1, 1},
                              .stride = {1, 1, 1, 1}};
    return dnn_tensor(s->graph, &table, from);
}

dnn_desc dnn_each_score(const dnn_sdpa *s, int32_t mode, int32_t type, dnn_desc x, dnn_desc b,
                        dnn_desc t)
{
    dnn_layout layout = s->scores;
    layout.type = type;
    const dnn_each of = {
        .mode = mode, .type = type, .y = dnn_between(s->graph, &layout), .x = x, .b = b, .t = t};
    dnn_add_each(s->graph, &of);
    return of.y;
}

dnn_desc dnn_each_to(const dnn_sdpa *s, int32_t mode, dnn_desc y, dnn_desc x, dnn_desc b)
{
    const dnn_each of = {.mode = mode, .type = DNN_F32, .y = y, .x = x, .b = b};
    dnn_add_each(s->graph, &of);
    return y;
}

/* The indices of scores along an axis, as i32, computed in `type`. */
static dnn_desc index_of(const dnn_sdpa *s, int32_t axis, int32_t type)
{
    dnn_layout layout = s->scores;
    layout.type = DNN_I32;
    const dnn_each of = {.mode = DNN_INDEX,
                         .type = type,
                         .axis = axis,
                         .y = dnn_between(s->graph, &layout),
                         .x = s->score};
    dnn_add_each(s->graph, &of);
    return of.y;
}

static dnn_desc whole(const dnn_sdpa *s, int64_t number)
{
    return dnn_number(s->graph, DNN_FROM_WHOLE, DNN_I32, (double)number);
}

static dnn_desc real(const dnn_sdpa *s, double number)
{
    return dnn_number(s->graph, DNN_FROM_FLOAT, DNN_F32, number);
}

static void hide_unless(dnn_sdpa *s, dnn_desc seen)
{
    s->score = dnn_each_score(s, DNN_SELECT, DNN_F32, s->score, real(s, hidden(s)), seen);
}

static void add_cap(dnn_sdpa *s)
{
    dnn_desc cap = dnn_number(s->graph, DNN_FROM_CAP, DNN_F32, 0);
    s->score = dnn_each_score(s, DNN_DIV, DNN_F32, s->score, cap, NULL);
    s->score = dnn_each_score(s, DNN_TANH, DNN_F32, s->score, NULL, NULL);
    s->score = dnn_each_score(s, DNN_MUL, DNN_F32, s->score, cap, NULL);
}

void dnn_add_scores(dnn_sdpa *s, dnn_desc q, dnn_desc k)
{
    const dnn_layout scores = s->scores;
    const dnn_matmul product = {.a = q,
                                .b = k,
                                .c = dnn_between(s->graph, &scores),
                                .m = s->queries,
                                .n = s->keys,
                                .padded = s->shape.lengths};
    dnn_add_matmul(s->graph, &product);
    s->score = dnn_each_score(s, DNN_MUL, DNN_F32, product.c,
                              dnn_number(s->graph, DNN_FROM_SCALE, DNN_F32, 0), NULL);
    if (s->op->uses & TN_ATTENTION_USES_SOFTCAP)
        add_cap(s);
    if (s->op->uses & TN_ATTENTION_USES_ADDITIVE)
        s->score = dnn_each_score(s, DNN_ADD, DNN_F32, s->score,
                                  dnn_operand(s, TN_ATTENTION_MASK, false), NULL);
    if (s->op->uses & TN_ATTENTION_USES_MASK)
        s->score = dnn_each_score(s, DNN_ADD, DNN_F32, s->score, dnn_bias(s->graph, s->op), NULL);
}

/* Hides queries and keys beyond the end of a sequence. */
static void add_padding(dnn_sdpa *s)
{
    dnn_desc i = index_of(s, DNN_LENGTH, DNN_I32), j = index_of(s, DNN_SIZE, DNN_I32);
    dnn_desc row = dnn_each_score(s, DNN_LESS, DNN_BOOL, i, s->queries, NULL);
    dnn_desc column = dnn_each_score(s, DNN_LESS, DNN_BOOL, j, s->keys, NULL);
    hide_unless(s, dnn_each_score(s, DNN_AND, DNN_BOOL, row, column, NULL));
}

/* Key j is visible if i + keys - queries + right >= j. */
static void add_right(dnn_sdpa *s)
{
    const tn_attention_op *at = TN_PARAMS(s->op, attention);
    dnn_desc i = index_of(s, DNN_LENGTH, DNN_F32), j = index_of(s, DNN_SIZE, DNN_F32);
    if (s->shape.bottom) {
        i = dnn_each_score(s, DNN_ADD, DNN_I32, i, s->keys ? s->keys : whole(s, at->keys), NULL);
        i = dnn_each_score(s, DNN_SUB, DNN_I32, i, s->queries ? s->queries : whole(s, at->queries),
                           NULL);
    }
    if (s->shape.right_by != 0)
        i = dnn_each_score(s, DNN_ADD, DNN_I32, i, whole(s, s->shape.right_by), NULL);
    hide_unless(s, dnn_each_score(s, DNN_GREATER_EQUAL, DNN_BOOL, i, j, NULL));
}

/* Key j is visible if j + left - keys + queries > i. */
static void add_left(dnn_sdpa *s)
{
    dnn_desc i = index_of(s, DNN_LENGTH, DNN_F32), j = index_of(s, DNN_SIZE, DNN_F32);
    if (s->shape.lengths && s->shape.bottom) {
        j = dnn_each_score(s, DNN_ADD, DNN_I32, j, whole(s, s->shape.left_by), NULL);
        j = dnn_each_score(s, DNN_SUB, DNN_I32, j, s->keys, NULL);
        j = dnn_each_score(s, DNN_ADD, DNN_I32, j, s->queries, NULL);
    } else
        j = dnn_each_score(s, DNN_ADD, DNN_F32, j, real(s, (double)s->shape.left_by), NULL);
    hide_unless(s, dnn_each_score(s, DNN_GREATER, DNN_BOOL, j, i, NULL));
}

void dnn_add_bounds(dnn_sdpa *s)
{
    if (s->shape.right)
        add_right(s);
    if (s->shape.left)
        add_left(s);
}

/* Returns the exponentials, with the maximum of each row and their sum; a head's sink is one more score. */
static dnn_desc add_powers(const dnn_sdpa *s, dnn_desc *out_most, dnn_desc *out_sum)
{
    dnn_graph *graph = s->graph;
    const int64_t heads = TN_PARAMS(s->op, attention)->heads;
    const dnn_layout each_head = {
        .type = DNN_F32, .shape = {1, heads, 1, 1}, .stride = {heads, 1, 1, 1}};
    const bool sinks = s->op->uses & TN_ATTENTION_USES_SINKS;
    dnn_desc sink = sinks ? dnn_tensor(graph, &each_head, TN_ATTENTION_SINKS) : NULL;
    dnn_desc most = dnn_between(graph, &s->rows), sum = dnn_between(graph, &s->rows);
    dnn_add_reduction(graph, DNN_REDUCE_MAX, s->score, most);
    if (sinks)
        most = dnn_each_to(s, DNN_MAX, dnn_between(graph, &s->rows), most, sink);
    dnn_desc power = dnn_each_score(s, DNN_SUB, DNN_F32, s->score, most, NULL);
    power = dnn_each_score(s, DNN_EXP, DNN_F32, power, NULL, NULL);
    dnn_add_reduction(graph, DNN_REDUCE_ADD, power, sum);
    if (sinks) {
        sink = dnn_each_to(s, DNN_SUB, dnn_between(graph, &s->rows), sink, most);
        sink = dnn_each_to(s, DNN_EXP, dnn_between(graph, &s->rows), sink, NULL);
        sum = dnn_each_to(s, DNN_ADD, dnn_between(graph, &s->rows), sum, sink);
    }
    *out_most = most;
    *out_sum = sum;
    return power;
}

/* Returns the weights in the op's dtype, after dropout; the LSE is an output, or virtual. */
static dnn_desc add_softmax(const dnn_sdpa *s)
{
    dnn_graph *graph = s->graph;
    dnn_layout weights = s->scores;
    dnn_desc most = NULL, sum = NULL;
    weights.type = dnn_type_of(s->op->operand[TN_ATTENTION_Q].dtype);
    dnn_desc power = add_powers(s, &most, &sum);
    dnn_desc logarithm = dnn_each_to(s, DNN_LOG, dnn_between(graph, &s->rows), sum, NULL);
    (void)dnn_each_to(s, DNN_ADD, add_lse(s), most, logarithm);
    dnn_desc to = dnn_between(graph, &weights);
    if (!s->kept)
        return dnn_each_to(s, DNN_DIV, to, power, sum);
    dnn_desc whole_weights = dnn_each_score(s, DNN_DIV, DNN_F32, power, sum, NULL);
    dnn_desc greater = dnn_each_score(s, DNN_MUL, DNN_F32, whole_weights, s->gain, NULL);
    return dnn_each_to(s, DNN_MUL, to, greater, s->kept);
}

static void add_values(const dnn_sdpa *s, dnn_desc weights)
{
    const dnn_matmul product = {.a = weights,
                                .b = add_keys(s, TN_ATTENTION_V, false),
                                .c = dnn_operand(s, TN_ATTENTION_OUT, false),
                                .m = s->queries,
                                .k = s->keys};
    dnn_add_matmul(s->graph, &product);
}

void dnn_sdpa_begin(dnn_graph *graph, const tn_op *op, dnn_sdpa *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t all = at->heads * at->queries;
    *out = (dnn_sdpa){.graph = graph,
                      .op = op,
                      .scores = {.type = DNN_F32,
                                 .shape = {at->batch, at->heads, at->queries, at->keys},
                                 .stride = {all * at->keys, at->queries * at->keys, at->keys, 1}},
                      .rows = {.type = DNN_F32,
                               .shape = {at->batch, at->heads, at->queries, 1},
                               .stride = {all, at->queries, 1, 1}}};
    (void)dnn_shape_of(op, &out->shape, NULL); /* admitted before, so it cannot fail */
    if (op->uses & TN_ATTENTION_USES_DROPOUT) {
        out->kept = dnn_kept(out);
        out->gain = dnn_number(graph, DNN_FROM_GAIN, DNN_F32, 0);
    }
    if (!out->shape.lengths)
        return;
    out->queries = op->uses & TN_ATTENTION_USES_PACKED
                       ? dnn_tensor_of_table(graph, op, TN_ATTENTION_STARTS_Q, 0)
                       : add_table(out, DNN_FROM_TABLE);
    out->keys = op->operand[TN_ATTENTION_LENGTHS].dtype
                    ? add_table(out, TN_ATTENTION_LENGTHS)
                    : dnn_tensor_of_table(graph, op, TN_ATTENTION_STARTS_K, 0);
}

void dnn_add_attention(dnn_graph *graph, const tn_op *op)
{
    dnn_sdpa s;
    dnn_sdpa_begin(graph, op, &s);
    dnn_desc q = dnn_operand(&s, TN_ATTENTION_Q, false);
    dnn_add_scores(&s, q, add_keys(&s, TN_ATTENTION_K, true));
    if (s.shape.lengths)
        add_padding(&s);
    dnn_add_bounds(&s);
    add_values(&s, add_softmax(&s));
}
