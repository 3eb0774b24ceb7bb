#include "attention_cpu_problem.h"

#include "../shared/sizes.h"
#include "tenon/module/op/attention_backward.h"
#include "tenon/module/op/attention_sparse_backward.h"

#include <math.h>

/* Bytes from one index of a dimension to the next; 0 if the dimension has only one, whatever its
 * stride. */
static int64_t step_of(const tn_layout *layout, int32_t dimension, int64_t size)
{
    if (layout->shape[dimension] <= 1)
        return 0;
    return (int64_t)((uint64_t)layout->stride[dimension] * (uint64_t)size);
}

static tni_at_side side_of(const tn_op *op, const tn_run *run, int32_t operand)
{
    const tn_layout *layout = &op->operand[operand];
    if (operand >= op->count || layout->dtype == TN_DTYPE_NONE)
        return (tni_at_side){0};
    const int64_t size = dtype_bytes(layout->dtype);
    return (tni_at_side){
        .data = run ? tn_operand(run, operand) : NULL,
        .dtype = layout->dtype,
        .size = size,
        .batch = step_of(layout, 0, size),
        .head = step_of(layout, 1, size),
        .row = step_of(layout, 2, size),
        .element = layout->rank > 3 && layout->shape[3] > 1 ? step_of(layout, 3, size) : size};
}

void tni_at_read(const tn_op *op, const tn_run *run, tni_at_problem *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const bool sparse =
        op->kind == TN_OP_ATTENTION_SPARSE || op->kind == TN_OP_ATTENTION_SPARSE_BACKWARD;
    *out = (tni_at_problem){.run = run,
                            .at = at,
                            .q = side_of(op, run, TN_ATTENTION_Q),
                            .k = side_of(op, run, TN_ATTENTION_K),
                            .v = side_of(op, run, TN_ATTENTION_V),
                            .out = side_of(op, run, TN_ATTENTION_OUT),
                            .lse = side_of(op, run, TN_ATTENTION_LSE),
                            .mask = sparse ? (tni_at_side){0} : side_of(op, run, TN_ATTENTION_MASK),
                            .dout = side_of(op, run, TN_ATTENTION_BACKWARD_DOUT),
                            .dq = side_of(op, run, TN_ATTENTION_BACKWARD_DQ),
                            .dk = side_of(op, run, TN_ATTENTION_BACKWARD_DK),
                            .dv = side_of(op, run, TN_ATTENTION_BACKWARD_DV),
                            .sharers = at->groups > 0 ? at->heads / at->groups : 0,
                            .units = at->batch * at->groups};
    out->ordered = sparse && op->operand[TN_ATTENTION_SPARSE_ORDER].dtype != TN_DTYPE_NONE;
    out->packed =
        op->kind == TN_OP_ATTENTION && op->operand[TN_ATTENTION_STARTS_Q].dtype != TN_DTYPE_NONE;
    out->natural = at->softcap != 0 || (out->mask.dtype && out->mask.dtype != TN_BOOL) ||
                   !(at->scale > 0 && at->scale < 1e30);
    out->excludes_keys =
        out->mask.dtype || at->left >= 0 || at->right >= 0 || at->dropout != 0 || sparse;
}

void tni_at_unit_read(const tni_at_problem *p, int64_t index, tni_at_unit *out)
{
    *out = (tni_at_unit){.b = index / p->at->groups, .group = index % p->at->groups};
    (void)tn_attention_sequence(p->run, out->b, &out->in, NULL);
    out->rows = out->in.queries * p->sharers;
    tni_at_reach(p, out, 0, out->rows, &out->from, &out->to);
}

char *tni_at_key(const tni_at_problem *p, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j)
{
    const int64_t page = p->at->page;
    int64_t batch = unit->in.batch, row = unit->in.first_key + tni_at_token(unit, j);
    if (page > 0) {
        (void)tn_attention_page(p->run, unit->b, j / page, &batch, NULL);
        row = j % page;
    }
    return side->data + batch * side->batch + unit->group * side->head + row * side->row;
}

void tni_at_keys(const tni_at_problem *p, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j, int64_t count, const char **out)
{
    const int64_t page = p->at->page;
    for (int64_t n = 0; n < count;) {
        const char *at = tni_at_key(p, unit, side, j + n);
        int64_t end = page > 0      ? least(count, n + page - (j + n) % page)
                      : unit->order ? n + 1
                                    : count;
        for (; n < end; n++, at += side->row)
            out[n] = at;
    }
}

/* Both ends of the range of keys that a query sees grow with the query's index. */
void tni_at_reach(const tni_at_problem *p, const tni_at_unit *unit, int64_t row, int64_t rows,
                  int64_t *out_from, int64_t *out_to)
{
    const int64_t queries = unit->in.queries, keys = unit->in.keys;
    int64_t from = 0, first = 0, to = 0;
    *out_from = *out_to = 0;
    if (rows <= 0)
        return;
    (void)tn_attention_seen(p->at, tni_at_query_of(p, row), queries, keys, &from);
    to = tn_attention_seen(p->at, tni_at_query_of(p, row + rows - 1), queries, keys, &first);
    to = least(keys, first + to);
    if (to > from) {
        *out_from = from;
        *out_to = to;
    }
}

bool tni_at_all_seen(const tni_at_problem *p, const tni_at_unit *unit, int64_t row, int64_t rows,
                     int64_t key, int64_t keys)
{
    const int64_t queries = unit->in.queries;
    int64_t first, last;
    int64_t count =
        tn_attention_seen(p->at, tni_at_query_of(p, row), queries, unit->in.keys, &first);
    (void)tn_attention_seen(p->at, tni_at_query_of(p, row + rows - 1), queries, unit->in.keys,
                            &last);
    return last <= key && first + count >= key + keys && key + keys <= unit->in.keys;
}

/* Widens f16 exactly, by the difference of the exponent biases. */
static float wide_f16(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
    float value;
    if ((half & 0x7c00) == 0x7c00) {
        bits |= 0x7f800000;
        memcpy(&value, &bits, sizeof value);
    } else {
        memcpy(&value, &bits, sizeof value);
        value *= 0x1p112f;
    }
    return half & 0x8000 ? -value : value;
}

static float wide_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float number_f32(const char *at)
{
    float value;
    memcpy(&value, at, sizeof value);
    return value;
}

static double number_f64(const char *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t word_at(const char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Keys first to end of a mask's row, whose element of key 0 is at `from`. */
#define EACH_KEY(expression)              \
    for (int64_t j = first; j < end; j++) \
        out[j - key] = (expression);      \
    break

#define BIAS(name, real)                                                                     \
    static void read_mask_##name(const tni_at_side *mask, const char *from, int64_t first,   \
                                 int64_t end, int64_t key, real *out)                        \
    {                                                                                        \
        const int64_t step = mask->element;                                                  \
        switch (mask->dtype) {                                                               \
        case TN_BOOL: EACH_KEY(from[j * step] ? 0 : -(real)INFINITY);                        \
        case TN_F16: EACH_KEY(wide_f16(word_at(from + j * step)));                           \
        case TN_BF16: EACH_KEY(wide_bf16(word_at(from + j * step)));                         \
        case TN_F32: EACH_KEY(number_f32(from + j * step));                                  \
        case TN_F64: EACH_KEY((real)number_f64(from + j * step));                            \
        default: EACH_KEY(0);                                                                \
        }                                                                                    \
    }                                                                                        \
    void tni_at_bias_##name(const tni_at_problem *p, const tni_at_unit *unit, int64_t row,   \
                            int64_t key, int64_t count, real *out)                           \
    {                                                                                        \
        const tni_at_side *mask = &p->mask;                                                  \
        const int64_t i = tni_at_query_of(p, row), h = tni_at_head_of(p, unit, row);         \
        int64_t first,                                                                       \
            seen = tn_attention_seen(p->at, i, unit->in.queries, unit->in.keys, &first);     \
        int64_t end = most(key, least(key + count, least(unit->in.keys, first + seen)));     \
        const char *from =                                                                   \
            mask->data ? mask->data + unit->b * mask->batch + h * mask->head + i * mask->row \
                       : NULL;                                                               \
        first = least(end, most(key, first));                                                \
        for (int64_t j = key; j < first; j++)                                                \
            out[j - key] = -(real)INFINITY;                                                  \
        read_mask_##name(mask, from, first, end, key, out);                                  \
        for (int64_t j = end; j < key + count; j++)                                          \
            out[j - key] = -(real)INFINITY;                                                  \
    }
BIAS(f32, float)
BIAS(f64, double)

void tni_at_keeps(const tni_at_problem *p, const tni_at_unit *unit, int64_t row, int64_t key,
                  int64_t count, uint8_t *out)
{
    const tn_attention_op *at = p->at;
    uint64_t line =
        (uint64_t)unit->b * (uint64_t)at->heads + (uint64_t)tni_at_head_of(p, unit, row);
    line = line * (uint64_t)at->queries + (uint64_t)tni_at_query_of(p, row);
    const uint64_t place = line * (uint64_t)at->keys + (uint64_t)key;
    uint32_t words[TN_PHILOX_WORDS];
    for (int64_t n = 0; n < count; n++) {
        const uint64_t word = place + (uint64_t)n;
        if (n == 0 || word % TN_PHILOX_WORDS == 0)
            tn_philox_block(at->seed, 0, at->offset + word / TN_PHILOX_WORDS, words);
        out[n] = (double)tn_philox_uniform(words[word % TN_PHILOX_WORDS]) >= at->dropout;
    }
}

bool tni_at_counts(const tni_at_problem *p, const tni_at_unit *unit, int64_t row, int64_t key)
{
    float bias = 0;
    uint8_t keeps = 1;
    tni_at_bias_f32(p, unit, row, key, 1, &bias);
    if (p->at->dropout != 0)
        tni_at_keeps(p, unit, row, key, 1, &keeps);
    return keeps && bias != -INFINITY;
}

bool tni_at_next_nonfinite(const tni_at_problem *p, const tni_at_unit *unit, int64_t to,
                           int64_t *io_key, int64_t *io_column, double *out)
{
    for (; *io_key < to; ++*io_key, *io_column = 0) {
        const char *values = tni_at_key(p, unit, &p->v, *io_key);
        for (; *io_column < p->at->value_size; ++*io_column) {
            *out = tni_at_number(p->v.dtype, values + *io_column * p->v.element);
            if (!isfinite(*out))
                return true;
        }
    }
    return false;
}

double tni_at_number(tn_dtype dtype, const char *at)
{
    switch (dtype) {
    case TN_F16: return (double)wide_f16(word_at(at));
    case TN_BF16: return (double)wide_bf16(word_at(at));
    case TN_F32: return (double)number_f32(at);
    default: return number_f64(at);
    }
}

double tni_at_sink(const tni_at_problem *p, int64_t head)
{
    const tn_op *op = p->run->op;
    const tn_layout *layout = &op->operand[TN_ATTENTION_SINKS];
    if (op->kind != TN_OP_ATTENTION || layout->dtype == TN_DTYPE_NONE)
        return -(double)INFINITY;
    const int64_t size = dtype_bytes(layout->dtype);
    const char *at =
        (const char *)tn_operand(p->run, TN_ATTENTION_SINKS) + head * layout->stride[0] * size;
    return tni_at_number(layout->dtype, at);
}
