/* softmax: three passes over a row, for the maximum, the sum and the results; each element is read
 * before it is written. For f64, the exponentials are long doubles, each kept in two doubles. */
#include "ref_elementwise.h"
#include "ref_wide.h"
#include "tenon/module/op/softmax.h"

typedef struct row {
    const tni_ref_each *each;
    const char *in;
    char *out;
    bool in_long;
    double greatest;
    tni_ref_wide sum;
} row;

static int64_t read_piece(const row *r, int64_t first, double *out)
{
    const int64_t step = tni_ref_along(r->each, TN_ELEMENTWISE_IN),
                  left = r->each->each->size - first;
    const int64_t count = left < TNI_REF_PIECE ? left : TNI_REF_PIECE;
    r->each->in->read(r->in + first * step, step, count, out);
    return count;
}

static tni_ref_wide exponential(const row *r, double x)
{
    if (!r->in_long)
        return (tni_ref_wide){exp(x - r->greatest), 0};
    long double y = expl((long double)x - r->greatest);
    return (tni_ref_wide){(double)y, (double)(y - (long double)(double)y)};
}

/* Ignores NaNs: the sum becomes NaN. */
static void find_greatest(row *r)
{
    double x[TNI_REF_PIECE], greatest = -(double)INFINITY;
    for (int64_t first = 0; first < r->each->each->size; first += TNI_REF_PIECE) {
        int64_t count = read_piece(r, first, x);
        for (int64_t i = 0; i < count; i++)
            greatest = x[i] > greatest ? x[i] : greatest;
    }
    r->greatest = greatest;
}

static void find_sum(row *r)
{
    double x[TNI_REF_PIECE];
    for (int64_t first = 0; first < r->each->each->size; first += TNI_REF_PIECE) {
        int64_t count = read_piece(r, first, x);
        for (int64_t i = 0; i < count; i++)
            r->sum = tni_ref_wide_plus(r->sum, exponential(r, x[i]));
    }
    r->sum = tni_ref_wide_tidy(r->sum);
}

static double logarithm(const row *r, double x)
{
    if (!r->in_long)
        return x - r->greatest - log(r->sum.hi);
    return (double)((long double)x - r->greatest - logl((long double)r->sum.hi + r->sum.lo));
}

static void write_results(const row *r)
{
    const int64_t step = tni_ref_along(r->each, TN_ELEMENTWISE_OUT);
    double x[TNI_REF_PIECE];
    for (int64_t first = 0; first < r->each->each->size; first += TNI_REF_PIECE) {
        int64_t count = read_piece(r, first, x);
        for (int64_t i = 0; i < count; i++) {
            if (r->each->op->uses & TN_ELEMENTWISE_USES_LOG)
                x[i] = logarithm(r, x[i]);
            else if (r->in_long)
                x[i] = tni_ref_wide_divide(exponential(r, x[i]), r->sum).hi;
            else
                x[i] = exp(x[i] - r->greatest) / r->sum.hi;
        }
        r->each->out->write(x, count, r->out + first * step, step);
    }
}

static void softmax_row(void *job, char *const *at, int64_t count)
{
    row r = {.each = job, .in = at[TN_ELEMENTWISE_IN], .out = at[TN_ELEMENTWISE_OUT]};
    (void)count;
    r.in_long = r.each->in->dtype == TN_F64;
    find_greatest(&r);
    find_sum(&r);
    write_results(&r);
}

static tn_status run_softmax(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_rows_run(run, softmax_row);
}

static tn_status admit_softmax(const tn_kernel_row *kernel, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in.dtype", "out.dtype"};
    (void)kernel;
    return tni_ref_admit_floats(query, names, sizeof names / sizeof names[0], why);
}

const tn_kernel_row tni_ref_softmax = {
    .name = "cpu.softmax.ref",
    .op = TN_OP_SOFTMAX,
    TNI_REF_ROW,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE |
               TN_ELEMENTWISE_USES_LOG,
    .flops_per_us = 100,
    .bytes_per_us = 200,
    .admit = admit_softmax,
    .run = run_softmax,
};
