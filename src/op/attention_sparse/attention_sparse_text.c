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

#include "op/fields.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const stride_keys[] = {"sq",      "sk",      "sv",     "so",     "slse", "smask",
                                          "sstarts", "sblocks", "ssizes", "sorder", NULL,   NULL,
                                          "sdo",     "sdq",     "sdk",    "sdv"};
static const char *const ways[] = {"bhld", "blhd", NULL};

/* What the layouts follow from. */
typedef struct sizes {
    int64_t batch, heads, groups, queries, keys, size, value_size;
    int64_t query_blocks, key_blocks;
    int64_t entries; /* -1: a mask */
    int64_t slots;   /* -1: no ORDER */
    int64_t lse, used;
    tn_dtype out;
} sizes;

/* Makes the default layouts for an op of these sizes. */
static void make_usual_layouts(const sizes *s, const tn_op *op, tn_dtype dtype, int32_t way,
                               tn_layout *out)
{
    const int64_t q[] = {s->batch, s->heads, s->queries, s->size};
    const int64_t k[] = {s->batch, s->groups, s->keys, s->size};
    const int64_t v[] = {s->batch, s->groups, s->keys, s->value_size};
    const int64_t to[] = {s->batch, s->heads, s->queries, s->value_size};
    const int64_t mask[] = {s->batch, s->heads, s->query_blocks, s->key_blocks};
    const int64_t starts[] = {s->batch, s->heads, s->query_blocks + 1};
    const int64_t used[] = {s->batch, s->key_blocks};
    const int64_t order[] = {s->batch, s->slots};
    for (int32_t i = 0; i < op->count; i++)
        out[i].dtype = TN_DTYPE_NONE;
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_Q], dtype, q, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_K], dtype, k, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_V], dtype, v, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_OUT], s->out, to, way);
    if (s->lse)
        tni_layout_make(&out[TN_ATTENTION_SPARSE_LSE], tni_attention_lse(dtype), q, 3);
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
    if (!tni_attention_sparse_is_backward(op))
        return;
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_BACKWARD_DOUT], dtype, to, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_BACKWARD_DQ], dtype, q, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_BACKWARD_DK], dtype, k, way);
    tni_attention_make_whole(&out[TN_ATTENTION_SPARSE_BACKWARD_DV], dtype, v, way);
}

static tn_status reject_field(const tni_fields *fields, const char *key, const char *needs,
                              tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem", "%.160s: %s: expected %s",
                   fields->problem, key, needs);
}

/* A field with an integer of at least `least`. Without it, `*to` becomes `*other`, or if that is
 * NULL, the field is missing. */
typedef struct number {
    const char *key;
    int64_t *to;
    int64_t least;
    const int64_t *other;
} number;

static tn_status parse_sizes(tni_fields *fields, bool backward, sizes *s,
                             tn_attention_sparse_op *op, tn_error *err)
{
    static const int64_t one = 1, none = -1;
    int64_t both = -1;
    tn_status status = tni_fields_integer(fields, "l", 0, &both, err);
    const int64_t *length = both >= 0 ? &both : NULL;
    const number numbers[] = {{"b", &s->batch, 0, &one},
                              {"h", &s->heads, 0, NULL},
                              {"hk", &s->groups, 0, &s->heads},
                              {"lq", &s->queries, 0, length},
                              {"lk", &s->keys, 0, length},
                              {"d", &s->size, 0, NULL},
                              {"dv", &s->value_size, 0, &s->size},
                              {"bq", &op->block_queries, 1, NULL},
                              {"bk", &op->block_keys, 1, &op->block_queries},
                              {"entries", &s->entries, 0, &none},
                              {"slots", &s->slots, 0, &none}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !status; i++) {
        const number *n = &numbers[i];
        *n->to = -1;
        if (n->to != &s->slots || !backward)
            status = tni_fields_integer(fields, n->key, n->least, n->to, err);
        if (!status && *n->to < 0 && n->other)
            *n->to = *n->other;
        else if (!status && *n->to < 0)
            status = tni_fields_missing(fields, n->key, err);
    }
    if (!status)
        status = tni_fields_switch(fields, "sizes", &s->used, err);
    s->lse = backward;
    return status || backward ? status : tni_fields_switch(fields, "lse", &s->lse, err);
}

static tn_status parse_place(tni_fields *fields, tn_attention_op *at, tn_error *err)
{
    const char *text = tni_fields_take(fields, "mask");
    (void)tni_attention_see(at, TN_MASK_NONE, 0, 0);
    if (text && (!tni_attention_read_place(&text, at) || *text))
        return reject_field(fields, "mask", "none, causal, causal-br, window:L;R or window-tl:L;R",
                            err);
    return TN_OK;
}

tn_status tni_attention_sparse_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    tn_attention_sparse_op *sparse = TN_PARAMS_MUTABLE(op, attention_sparse);
    sizes s = {.out = dtype};
    int32_t way = TN_LAYOUT_BHLD;
    *sparse = (tn_attention_sparse_op){0};
    tn_status status = parse_sizes(fields, tni_attention_sparse_is_backward(op), &s, sparse, err);
    if (!status)
        status = parse_place(fields, &sparse->at, err);
    if (!status)
        status = tni_fields_word(fields, "layout", ways, &way, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &s.out, err);
    sparse->at.scale = tni_attention_scale(s.size);
    if (!status)
        status = tni_fields_real(fields, "scale", &sparse->at.scale, err);
    if (status)
        return status;
    s.query_blocks =
        tni_attention_sparse_blocks(s.slots < 0 ? s.queries : s.slots, sparse->block_queries);
    s.key_blocks = tni_attention_sparse_blocks(s.slots < 0 ? s.keys : s.slots, sparse->block_keys);
    if (s.query_blocks == INT64_MAX) /* starts has one entry more */
        return reject_field(fields, "bq", "a number that gives fewer blocks of queries", err);
    make_usual_layouts(&s, op, dtype, way, op->operand);
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype)
            status = tni_fields_strides(fields, stride_keys[i], &op->operand[i], err);
    }
    return status;
}

static sizes sizes_of(const tn_op *op)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const tn_attention_op *at = &sparse->at;
    const tn_layout *blocks = &op->operand[TN_ATTENTION_SPARSE_BLOCKS];
    const tn_layout *order = &op->operand[TN_ATTENTION_SPARSE_ORDER];
    return (sizes){.batch = at->batch,
                   .heads = at->heads,
                   .groups = at->groups,
                   .queries = at->queries,
                   .keys = at->keys,
                   .size = at->size,
                   .value_size = at->value_size,
                   .query_blocks = sparse->query_blocks,
                   .key_blocks = sparse->key_blocks,
                   .entries = blocks->dtype ? blocks->shape[0] : -1,
                   .slots = order->dtype ? order->shape[1] : -1,
                   .lse = op->operand[TN_ATTENTION_SPARSE_LSE].dtype != TN_DTYPE_NONE,
                   .used = op->operand[TN_ATTENTION_SPARSE_SIZES].dtype != TN_DTYPE_NONE,
                   .out = op->operand[TN_ATTENTION_SPARSE_OUT].dtype};
}

/* Makes the layouts that strides are compared with: of blhd only if all whole operands are dense in it
 * and not in bhld. */
static int32_t make_nearest_layouts(const sizes *s, const tn_op *op, tn_layout *out)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    for (int32_t way = TN_LAYOUT_BHLD; way < TN_LAYOUT_COUNT; way++) {
        bool same = true;
        make_usual_layouts(s, op, dtype, way, out);
        for (int32_t i = 0; i < op->count; i++)
            same = same && (!tni_attention_sparse_is_whole(i) ||
                            tni_strides_same(&op->operand[i], &out[i]));
        if (same)
            return way;
    }
    make_usual_layouts(s, op, dtype, TN_LAYOUT_BHLD, out);
    return TN_LAYOUT_BHLD;
}

static void write_sizes(const sizes *s, const tn_attention_sparse_op *sparse, tni_buffer *out)
{
    tni_write_integer(out, "b", s->batch);
    tni_write_integer(out, "h", s->heads);
    if (s->groups != s->heads)
        tni_write_integer(out, "hk", s->groups);
    if (s->queries == s->keys) {
        tni_write_integer(out, "l", s->queries);
    } else {
        tni_write_integer(out, "lq", s->queries);
        tni_write_integer(out, "lk", s->keys);
    }
    tni_write_integer(out, "d", s->size);
    if (s->value_size != s->size)
        tni_write_integer(out, "dv", s->value_size);
    tni_write_integer(out, "bq", sparse->block_queries);
    if (sparse->block_keys != sparse->block_queries)
        tni_write_integer(out, "bk", sparse->block_keys);
}

void tni_attention_sparse_write(const tn_op *op, tni_buffer *out)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const sizes s = sizes_of(op);
    tn_layout dense[TN_OP_OPERANDS_MAX];
    const int32_t way = make_nearest_layouts(&s, op, dense);
    char place[96];
    write_sizes(&s, sparse, out);
    if (way)
        tni_write_word(out, "layout", ways[way]);
    tni_attention_write_place(&sparse->at, place, sizeof place);
    if (place[0])
        tni_write_word(out, "mask", place);
    if (s.entries >= 0)
        tni_write_integer(out, "entries", s.entries);
    if (s.used)
        tni_write_integer(out, "sizes", 1);
    if (s.slots >= 0)
        tni_write_integer(out, "slots", s.slots);
    if (s.lse && !tni_attention_sparse_is_backward(op))
        tni_write_integer(out, "lse", 1);
    if (s.out != op->operand[TN_ATTENTION_SPARSE_Q].dtype)
        tni_write_word(out, "out", tn_dtype_name(s.out));
    if (sparse->at.scale != tni_attention_scale(s.size))
        tni_write_real(out, "scale", sparse->at.scale);
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype)
            tni_write_strides(out, stride_keys[i], &op->operand[i], &dense[i]);
    }
}
