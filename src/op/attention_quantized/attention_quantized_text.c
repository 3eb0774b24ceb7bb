/* The text form of attention-quantized problems:
 *
 *     b h hk  l | lq lk  d dv  layout=bhld|blhd   sizes; hk and dv are usually h and d
 *     mask=none|causal|causal-br|window:L;R|window-tl:L;R   visible keys by position
 *     weights=f32|f16|f8_e4m3fn|u8|i8   precision of the second product
 *     scales=thread|warp|block          rows that share a scale
 *     smoothing=k|none   lse=0|1   out=DTYPE   scale
 */
#include "attention_quantized.h"

#include "op/fields.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const stride_keys[] = {"sq", "sk", "sv", "so", "slse"};
static const char *const ways[] = {"bhld", "blhd", NULL};
static const char *const scales[] = {"thread", "warp", "block", NULL};
static const char *const smoothings[] = {"k", "none", NULL};

/* What the layouts follow from. */
typedef struct sizes {
    int64_t batch, heads, groups, queries, keys, size, value_size;
    int64_t lse;
    tn_dtype out;
} sizes;

/* Makes the default layouts. */
static void make_usual_layouts(const sizes *s, tn_dtype dtype, int32_t way, tn_layout *out)
{
    const int64_t q[] = {s->batch, s->heads, s->queries, s->size};
    const int64_t k[] = {s->batch, s->groups, s->keys, s->size};
    const int64_t v[] = {s->batch, s->groups, s->keys, s->value_size};
    const int64_t to[] = {s->batch, s->heads, s->queries, s->value_size};
    out[TN_ATTENTION_QUANTIZED_LSE].dtype = TN_DTYPE_NONE;
    tni_attention_make_whole(&out[TN_ATTENTION_QUANTIZED_Q], dtype, q, way);
    tni_attention_make_whole(&out[TN_ATTENTION_QUANTIZED_K], dtype, k, way);
    tni_attention_make_whole(&out[TN_ATTENTION_QUANTIZED_V], dtype, v, way);
    tni_attention_make_whole(&out[TN_ATTENTION_QUANTIZED_OUT], s->out, to, way);
    if (s->lse)
        tni_layout_make(&out[TN_ATTENTION_QUANTIZED_LSE], tni_attention_lse(dtype), q, 3);
}

/* A field with a size. Without it, `*to` becomes `*other`, or if that is NULL, the field is missing. */
typedef struct number {
    const char *key;
    int64_t *to;
    const int64_t *other;
} number;

static tn_status parse_sizes(tni_fields *fields, sizes *s, tn_error *err)
{
    static const int64_t one = 1;
    int64_t both = -1;
    tn_status status = tni_fields_integer(fields, "l", 0, &both, err);
    const int64_t *length = both >= 0 ? &both : NULL;
    const number numbers[] = {{"b", &s->batch, &one},          {"h", &s->heads, NULL},
                              {"hk", &s->groups, &s->heads},   {"lq", &s->queries, length},
                              {"lk", &s->keys, length},        {"d", &s->size, NULL},
                              {"dv", &s->value_size, &s->size}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !status; i++) {
        const number *n = &numbers[i];
        *n->to = -1;
        status = tni_fields_integer(fields, n->key, 0, n->to, err);
        if (!status && *n->to < 0 && n->other)
            *n->to = *n->other;
        else if (!status && *n->to < 0)
            status = tni_fields_missing(fields, n->key, err);
    }
    return status ? status : tni_fields_switch(fields, "lse", &s->lse, err);
}

static tn_status parse_place(tni_fields *fields, tn_attention_op *at, tn_error *err)
{
    const char *text = tni_fields_take(fields, "mask");
    (void)tni_attention_see(at, TN_MASK_NONE, 0, 0);
    if (text && (!tni_attention_read_place(&text, at) || *text))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem",
                       "%.160s: mask: expected none, causal, causal-br, window:L;R or "
                       "window-tl:L;R",
                       fields->problem);
    return TN_OK;
}

/* Parses what attention does not have. */
static tn_status parse_precision(tni_fields *fields, tn_attention_quantized_op *out, tn_error *err)
{
    tn_status status = tni_fields_dtype(fields, "weights", &out->weights, err);
    if (!status)
        status = tni_fields_word(fields, "scales", scales, &out->scales, err);
    return status ? status : tni_fields_word(fields, "smoothing", smoothings, &out->smoothing, err);
}

tn_status tni_attention_quantized_parse(tni_fields *fields, tn_dtype dtype, tn_op *op,
                                        tn_error *err)
{
    tn_attention_quantized_op *quantized = TN_PARAMS_MUTABLE(op, attention_quantized);
    sizes s = {.out = dtype};
    int32_t way = TN_LAYOUT_BHLD;
    *quantized = (tn_attention_quantized_op){.weights = TN_F32};
    tn_status status = parse_sizes(fields, &s, err);
    if (!status)
        status = parse_place(fields, &quantized->at, err);
    if (!status)
        status = parse_precision(fields, quantized, err);
    if (!status)
        status = tni_fields_word(fields, "layout", ways, &way, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &s.out, err);
    quantized->at.scale = tni_attention_scale(s.size);
    if (!status)
        status = tni_fields_real(fields, "scale", &quantized->at.scale, err);
    if (status)
        return status;
    make_usual_layouts(&s, dtype, way, op->operand);
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype)
            status = tni_fields_strides(fields, stride_keys[i], &op->operand[i], err);
    }
    return status;
}

static sizes sizes_of(const tn_op *op)
{
    const tn_attention_op *at = &TN_PARAMS(op, attention_quantized)->at;
    return (sizes){.batch = at->batch,
                   .heads = at->heads,
                   .groups = at->groups,
                   .queries = at->queries,
                   .keys = at->keys,
                   .size = at->size,
                   .value_size = at->value_size,
                   .lse = op->operand[TN_ATTENTION_QUANTIZED_LSE].dtype != TN_DTYPE_NONE,
                   .out = op->operand[TN_ATTENTION_QUANTIZED_OUT].dtype};
}

/* Makes the layouts that strides are compared with: of blhd only if all of Q, K, V and OUT are dense
 * in it and not in bhld. */
static int32_t make_nearest_layouts(const sizes *s, const tn_op *op, tn_layout *out)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_QUANTIZED_Q].dtype;
    for (int32_t way = TN_LAYOUT_BHLD; way < TN_LAYOUT_COUNT; way++) {
        bool same = true;
        make_usual_layouts(s, dtype, way, out);
        for (int32_t i = 0; i <= TN_ATTENTION_QUANTIZED_OUT; i++)
            same = same && tni_strides_same(&op->operand[i], &out[i]);
        if (same)
            return way;
    }
    make_usual_layouts(s, dtype, TN_LAYOUT_BHLD, out);
    return TN_LAYOUT_BHLD;
}

static void write_sizes(const sizes *s, tni_buffer *out)
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
}

static void write_precision(const tn_attention_quantized_op *quantized, tni_buffer *out)
{
    if (quantized->weights != TN_F32)
        tni_write_word(out, "weights", tn_dtype_name(quantized->weights));
    if (quantized->scales)
        tni_write_word(out, "scales", scales[quantized->scales]);
    if (quantized->smoothing)
        tni_write_word(out, "smoothing", smoothings[quantized->smoothing]);
}

void tni_attention_quantized_write(const tn_op *op, tni_buffer *out)
{
    const tn_attention_quantized_op *quantized = TN_PARAMS(op, attention_quantized);
    const sizes s = sizes_of(op);
    tn_layout dense[TN_ATTENTION_QUANTIZED_OPERANDS];
    const int32_t way = make_nearest_layouts(&s, op, dense);
    char place[96];
    write_sizes(&s, out);
    if (way)
        tni_write_word(out, "layout", ways[way]);
    tni_attention_write_place(&quantized->at, place, sizeof place);
    if (place[0])
        tni_write_word(out, "mask", place);
    write_precision(quantized, out);
    if (s.lse)
        tni_write_integer(out, "lse", 1);
    if (s.out != op->operand[TN_ATTENTION_QUANTIZED_Q].dtype)
        tni_write_word(out, "out", tn_dtype_name(s.out));
    if (quantized->at.scale != tni_attention_scale(s.size))
        tni_write_real(out, "scale", quantized->at.scale);
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype)
            tni_write_strides(out, stride_keys[i], &op->operand[i], &dense[i]);
    }
}
