/* The text form of problems of attention-sparse and its backward pass:
 *
 *     b h hk  l | lq lk  d dv  layout=bhld|blhd   sizes; hk and dv are usually h and d
 *     bq bk     queries and keys of a block; bk is usually bq
 *     mask=none|causal|causal-br|window:L;R|window-tl:L;R   visible keys by position
 *     entries=N the blocks are given as lists with N entries; without it, as a mask
 *     sizes=1   the op has the operand SIZES
 *     slots=N   the op has the operand ORDER with N slots; of attention-sparse only
 *     lse=0|1   of attention-sparse only; its backward pass always has LSE
 *     out=DTYPE   scale
 */
#include "attention_sparse.h"

#include "op/attention/attention_fields.h"

static const char *const stride_keys[] = {"sq",      "sk",      "sv",     "so",     "slse", "smask",
                                          "sstarts", "sblocks", "ssizes", "sorder", NULL,   NULL,
                                          "sdo",     "sdq",     "sdk",    "sdv"};

/* What the layouts follow from. */
typedef struct sizes {
    tni_attention_form form; /* must be first */
    int64_t query_blocks, key_blocks;
    int64_t entries; /* -1: a mask */
    int64_t slots;   /* -1: no ORDER */
    int64_t used;
} sizes;

static void make_tables(const sizes *s, tn_layout *out)
{
    const tn_attention_op *at = &s->form.at;
    const int64_t mask[] = {at->batch, at->heads, s->query_blocks, s->key_blocks};
    const int64_t starts[] = {at->batch, at->heads, s->query_blocks + 1};
    const int64_t used[] = {at->batch, s->key_blocks};
    const int64_t order[] = {at->batch, s->slots};
    if (s->entries < 0) {
        tni_layout_make(&out[TN_ATTENTION_SPARSE_MASK], TN_BOOL, mask, 4);
    } else {
        tni_layout_make(&out[TN_ATTENTION_SPARSE_STARTS], TN_I32, starts, 3);
        tni_layout_make(&out[TN_ATTENTION_SPARSE_BLOCKS], TN_I32, &s->entries, 1);
    }
    if (s->used)
        tni_layout_make(&out[TN_ATTENTION_SPARSE_SIZES], TN_I32, used, 2);
    if (s->slots >= 0)
        tni_layout_make(&out[TN_ATTENTION_SPARSE_ORDER], TN_I32, order, 2);
}

/* Gradients have the layouts of their operands, in the dtype of Q. */
static void make_usual_layouts(const tni_attention_form *form, const tn_op *op, tn_dtype dtype,
                               tn_layout *out)
{
    const tn_attention_op *at = &form->at;
    const int64_t to[] = {at->batch, at->heads, at->queries, at->value_size};
    for (int32_t i = 0; i < op->count; i++)
        out[i].dtype = TN_DTYPE_NONE;
    tni_attention_make_form(form, dtype, out);
    make_tables((const sizes *)form, out);
    if (!tni_attention_sparse_is_backward(op))
        return;
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_BACKWARD_DOUT], dtype, to, form->way);
    out[TN_ATTENTION_SPARSE_BACKWARD_DQ] = out[TN_ATTENTION_SPARSE_Q];
    out[TN_ATTENTION_SPARSE_BACKWARD_DK] = out[TN_ATTENTION_SPARSE_K];
    out[TN_ATTENTION_SPARSE_BACKWARD_DV] = out[TN_ATTENTION_SPARSE_V];
}

/* Parses the fields that attention does not have, and lse. */
static tn_status parse_blocks(tni_fields *fields, bool backward, sizes *s,
                              tn_attention_sparse_op *op, tn_error *err)
{
    static const int64_t none = -1;
    const tni_attention_number numbers[] = {{"bq", &op->block_queries, 1, NULL},
                                            {"bk", &op->block_keys, 1, &op->block_queries},
                                            {"entries", &s->entries, 0, &none},
                                            {"slots", &s->slots, 0, &none}};
    s->slots = -1;
    s->form.lse = backward;
    tn_status status = tni_attention_parse_integers(fields, numbers, backward ? 3 : 4, err);
    if (!status)
        status = tni_fields_switch(fields, "sizes", &s->used, err);
    return status || backward ? status : tni_fields_switch(fields, "lse", &s->form.lse, err);
}

tn_status tni_attention_sparse_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    tn_attention_sparse_op *sparse = TN_PARAMS_MUTABLE(op, attention_sparse);
    sizes s = {0};
    *sparse = (tn_attention_sparse_op){0};
    tn_status status = tni_attention_parse_form(fields, dtype, &s.form, &sparse->at, err);
    if (!status)
        status = parse_blocks(fields, tni_attention_sparse_is_backward(op), &s, sparse, err);
    if (status)
        return status;
    const int64_t queries = s.slots < 0 ? s.form.at.queries : s.slots;
    const int64_t keys = s.slots < 0 ? s.form.at.keys : s.slots;
    s.query_blocks = tni_attention_sparse_blocks(queries, sparse->block_queries);
    s.key_blocks = tni_attention_sparse_blocks(keys, sparse->block_keys);
    if (s.query_blocks == INT64_MAX) /* starts has one entry more */
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem",
                       "%.160s: bq: expected a number that gives fewer blocks of queries",
                       fields->problem);
    make_usual_layouts(&s.form, op, dtype, op->operand);
    return tni_attention_parse_strides(fields, stride_keys, op, err);
}

static void take_sizes(const tn_op *op, sizes *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_layout *blocks = &op->operand[TN_ATTENTION_SPARSE_BLOCKS];
    const tn_layout *order = &op->operand[TN_ATTENTION_SPARSE_ORDER];
    *out = (sizes){.query_blocks = sparse->query_blocks,
                   .key_blocks = sparse->key_blocks,
                   .entries = blocks->dtype ? blocks->shape[0] : -1,
                   .slots = order->dtype ? order->shape[1] : -1,
                   .used = op->operand[TN_ATTENTION_SPARSE_SIZES].dtype != TN_DTYPE_NONE};
    tni_attention_take_form(op, &sparse->at, &out->form);
}

void tni_attention_sparse_write(const tn_op *op, tni_buffer *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    tn_layout nearest[TN_OP_OPERANDS_MAX];
    sizes s;
    take_sizes(op, &s);
    tni_attention_make_nearest(&s.form, op, make_usual_layouts, nearest);
    tni_attention_write_sizes(&s.form, out);
    tni_write_integer(out, "bq", sparse->block_queries);
    if (sparse->block_keys != sparse->block_queries)
        tni_write_integer(out, "bk", sparse->block_keys);
    tni_attention_write_way(&s.form, out);
    if (s.entries >= 0)
        tni_write_integer(out, "entries", s.entries);
    if (s.used)
        tni_write_integer(out, "sizes", 1);
    if (s.slots >= 0)
        tni_write_integer(out, "slots", s.slots);
    s.form.lse = s.form.lse && !tni_attention_sparse_is_backward(op);
    tni_attention_write_end(&s.form, op, stride_keys, nearest, out);
}
