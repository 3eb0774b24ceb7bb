/* The part of norm_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */
#include "tenon/module/op/norm.h"

INLINE vd F(sum_piece)(tn_dtype dtype, const char *from, int64_t n)
{
    const int32_t each = size_of_dtype(dtype);
    PAIR sum = {{0}, {0}};
    for (int64_t i = 0; i < n; i += 2 * WIDTH) {
        PAIR v = F(load_pair)(dtype, from + i * each);
        sum.a += v.a;
        sum.b += v.b;
    }
    return F(wide)(sum.a + sum.b);
}

static double F(row_sum)(const strand *x, int64_t size)
{
    _Alignas(64) char raw[BLOCK * sizeof(REAL)];
    vd sum = {0};
    for (int64_t at = 0, n; at < size; at += n) {
        n = piece_of(size - at);
        sum += FOR_FORM(form_of(x->dtype, n), F(sum_piece), gather_piece(x, at, n, raw), n);
    }
    return total_f64(sum);
}

/* Sum of (x - mean) squared. */
INLINE vd F(square_piece)(tn_dtype dtype, const char *from, int64_t n, REAL mean)
{
    const int32_t each = size_of_dtype(dtype);
    PAIR sum = {{0}, {0}};
    for (int64_t i = 0; i < n; i += 2 * WIDTH) {
        PAIR v = F(load_pair)(dtype, from + i * each);
        v = n - i < 2 * WIDTH ? F(first)(v, n - i, mean) : v;
        v.a -= mean;
        v.b -= mean;
        sum.a = F(fma)(v.a, v.a, sum.a);
        sum.b = F(fma)(v.b, v.b, sum.b);
    }
    return F(wide)(sum.a + sum.b);
}

static double F(row_squares)(const strand *x, int64_t size, REAL mean)
{
    _Alignas(64) char raw[BLOCK * sizeof(REAL)];
    vd sum = {0};
    for (int64_t at = 0, n; at < size; at += n) {
        n = piece_of(size - at);
        sum +=
            FOR_FORM(form_of(x->dtype, n), F(square_piece), gather_piece(x, at, n, raw), n, mean);
    }
    return total_f64(sum);
}

/* Parameters of the normalization of a row; weight and bias are NULL if absent. */
typedef struct F(normalizer) {
    REAL mean, factor;
    const REAL *weight, *bias; /* of a piece */
} F(normalizer);

/* y = (x - mean) * factor, times weight, plus bias. */
INLINE VECTOR F(normalize)(F(normalizer) by, VECTOR v, int64_t i)
{
    v = (v - by.mean) * by.factor;
    if (by.weight && by.bias)
        return F(fma)(v, F(load)(by.weight + i), F(load)(by.bias + i));
    v = by.weight ? v * F(load)(by.weight + i) : v;
    return by.bias ? v + F(load)(by.bias + i) : v;
}

INLINE void F(normalize_pairs)(tn_dtype in, tn_dtype out, const char *from, char *to, int64_t n,
                               F(normalizer) by, bool stream, int64_t next)
{
    const int32_t in_size = size_of_dtype(in), out_size = size_of_dtype(out);
    for (int64_t i = 0; i < n; i += 2 * WIDTH) {
        PAIR v = F(load_pair)(in, from + i * in_size);
        fetch_pair(from + i * in_size, next, in_size);
        v.a = F(normalize)(by, v.a, i);
        v.b = F(normalize)(by, v.b, i + WIDTH);
        F(save_pair)(out, to + i * out_size, v, stream);
    }
}

INLINE int F(normalize_piece)(tn_dtype out, tn_dtype in, const char *from, char *to, int64_t n,
                              F(normalizer) by, bool stream, int64_t next)
{
    if (in == out)
        F(normalize_pairs)(out, out, from, to, n, by, stream, next);
    else
        F(normalize_pairs)(in, out, from, to, n, by, stream, next);
    return 0;
}

/* `row` has in, out, weight, bias at their operands' numbers. */
static void F(norm_row)(const strand *row, const tn_elementwise_op *op)
{
    _Alignas(64) REAL rooms[2][ROOM];
    _Alignas(64) char raw[2][ROOM * sizeof(REAL)];
    const strand *x = &row[TN_ELEMENTWISE_IN], *y = &row[TN_ELEMENTWISE_OUT];
    const strand *weight = &row[TN_NORM_WEIGHT], *bias = &row[TN_NORM_BIAS];
    const double count = (double)op->size;
    F(normalizer)
    by = {.mean = op->kind == TN_NORM_LAYER ? (REAL)(F(row_sum)(x, op->size) / count) : 0};
    by.factor = (REAL)(1 / sqrt(F(row_squares)(x, op->size, by.mean) / count + op->value));
    for (int64_t at = 0, n; at < op->size; at += n) {
        n = piece_of(op->size - at < ROOM ? op->size - at : ROOM);
        const char *from = gather_piece(x, at, n, raw[0]);
        char *to = piece_room(y, at, n, raw[1]);
        by.weight = weight->data ? F(read_piece)(weight, at, n, rooms[0]) : NULL;
        by.bias = bias->data ? F(read_piece)(bias, at, n, rooms[1]) : NULL;
        (void)FOR_DTYPE(y->dtype, F(normalize_piece), x->dtype, from, to, n, by,
                        is_streamed(y, at, n), x->next);
        if (to == raw[1])
            put_back(y, at, n, raw[1]);
    }
}
