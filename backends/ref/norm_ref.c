/* norm, layer and rms. Sums are made in twice the precision of f64. For f64, everything else is
 * also computed in that precision; for other floats, in double. */
#include "ref_elementwise.h"
#include "ref_wide.h"
#include "tenon/module/op/norm.h"

typedef struct row {
    const tni_ref_each *each;
    char *const *at;
    bool precise;
    tni_ref_wide mean; /* 0 for rms */
    tni_ref_wide scale;
} row;

static void read_piece(const row *r, int32_t operand, const tni_ref_element *element, int64_t first,
                       int64_t count, double *out)
{
    const int64_t step = tni_ref_along(r->each, operand);
    element->read(r->at[operand] + first * step, step, count, out);
}

static int64_t piece_of(const row *r, int64_t first)
{
    const int64_t left = r->each->each->size - first;
    return left < TNI_REF_PIECE ? left : TNI_REF_PIECE;
}

static tni_ref_wide from_mean(const row *r, double x)
{
    return tni_ref_wide_tidy(tni_ref_wide_add((tni_ref_wide){-r->mean.hi, -r->mean.lo}, x));
}

/* The average of the row's elements, or of the squares of their distances from the mean. */
static tni_ref_wide average(const row *r, bool squares)
{
    tni_ref_wide sum = {0, 0};
    double x[TNI_REF_PIECE];
    for (int64_t first = 0; first < r->each->each->size; first += TNI_REF_PIECE) {
        int64_t count = piece_of(r, first);
        read_piece(r, TN_ELEMENTWISE_IN, r->each->in, first, count, x);
        for (int64_t i = 0; i < count; i++) {
            double d = x[i] - r->mean.hi;
            if (!squares)
                sum = tni_ref_wide_add(sum, x[i]);
            else if (!r->precise)
                sum = tni_ref_wide_add(sum, d * d);
            else
                sum = tni_ref_wide_plus(sum,
                                        tni_ref_wide_times(from_mean(r, x[i]), from_mean(r, x[i])));
        }
    }
    return tni_ref_wide_divide(tni_ref_wide_tidy(sum),
                               (tni_ref_wide){(double)r->each->each->size, 0});
}

static double result(const row *r, double x, double weight, double bias)
{
    if (!r->precise)
        return (x - r->mean.hi) * r->scale.hi * weight + bias;
    tni_ref_wide value = tni_ref_wide_times(from_mean(r, x), r->scale);
    value = tni_ref_wide_tidy(tni_ref_wide_scale(value, weight));
    return tni_ref_wide_round(tni_ref_wide_add(value, bias));
}

static void write_results(const row *r)
{
    const tni_ref_each *each = r->each;
    const int64_t step = tni_ref_along(each, TN_ELEMENTWISE_OUT);
    double x[TNI_REF_PIECE], weight[TNI_REF_PIECE], bias[TNI_REF_PIECE];
    for (int64_t first = 0; first < each->each->size; first += TNI_REF_PIECE) {
        int64_t count = piece_of(r, first);
        read_piece(r, TN_ELEMENTWISE_IN, each->in, first, count, x);
        if (each->other->dtype)
            read_piece(r, TN_NORM_WEIGHT, each->other, first, count, weight);
        if (each->fourth->dtype)
            read_piece(r, TN_NORM_BIAS, each->fourth, first, count, bias);
        for (int64_t i = 0; i < count; i++)
            x[i] = result(r, x[i], each->other->dtype ? weight[i] : 1,
                          each->fourth->dtype ? bias[i] : 0);
        each->out->write(x, count, r->at[TN_ELEMENTWISE_OUT] + first * step, step);
    }
}

static void norm_row(void *job, char *const *at, int64_t count)
{
    row r = {.each = job, .at = at};
    (void)count;
    r.precise = r.each->in->dtype == TN_F64;
    if (r.each->each->kind == TN_NORM_LAYER)
        r.mean = average(&r, false);
    r.scale = average(&r, true);
    r.scale = tni_ref_wide_tidy(tni_ref_wide_add(r.scale, r.each->each->value));
    r.scale = tni_ref_wide_rsqrt(r.scale);
    write_results(&r);
}

static tn_status run_norm(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_rows_run(run, norm_row);
}

static tn_status admit_norm(const tn_kernel_row *kernel, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in.dtype", "out.dtype", "weight.dtype", "bias.dtype"};
    (void)kernel;
    return tni_ref_admit_floats(query, names, sizeof names / sizeof names[0], why);
}

const tn_kernel_row tni_ref_norm = {
    .name = "cpu.norm.ref",
    .op = TN_OP_NORM,
    TNI_REF_ROW,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE |
               TN_ELEMENTWISE_USES_WEIGHT | TN_ELEMENTWISE_USES_BIAS,
    .flops_per_us = 200,
    .bytes_per_us = 400,
    .admit = admit_norm,
    .run = run_norm,
};
