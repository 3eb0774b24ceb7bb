/* rotary: rotates the pairs of a row, a piece at a time; both elements of a pair are read before
 * either is written. */
#include "ref_elementwise.h"
#include "ref_wide.h"
#include "tenon/module/op/rotary.h"

/* x c + y s. For f32 and narrower floats, the products are exact. */
static double dot(bool precise, double x, double c, double y, double s)
{
    if (!precise)
        return x * c + y * s;
    return tni_ref_wide_round(
        tni_ref_wide_plus(tni_ref_wide_product(x, c), tni_ref_wide_product(y, s)));
}

/* Positions of the pairs, in elements of the row: x at i * step, y `distance` after it. */
typedef struct pairs {
    int64_t step;
    int64_t distance;
} pairs;

static void rotate_pairs(const tni_ref_each *each, char *const *at, pairs places, int64_t first,
                         int64_t count)
{
    const bool precise = each->in->dtype == TN_F64;
    const int64_t in = tni_ref_along(each, TN_ELEMENTWISE_IN),
                  out = tni_ref_along(each, TN_ELEMENTWISE_OUT);
    const int64_t cos = tni_ref_along(each, TN_ROTARY_COS);
    const int64_t sin = tni_ref_along(each, TN_ROTARY_SIN);
    const char *from = at[TN_ELEMENTWISE_IN] + first * places.step * in;
    char *to = at[TN_ELEMENTWISE_OUT] + first * places.step * out;
    double x[TNI_REF_PIECE], y[TNI_REF_PIECE], c[TNI_REF_PIECE], s[TNI_REF_PIECE];
    each->in->read(from, places.step * in, count, x);
    each->in->read(from + places.distance * in, places.step * in, count, y);
    each->other->read(at[TN_ROTARY_COS] + first * cos, cos, count, c);
    each->fourth->read(at[TN_ROTARY_SIN] + first * sin, sin, count, s);
    for (int64_t i = 0; i < count; i++) {
        double rotated = dot(precise, x[i], c[i], -y[i], s[i]);
        y[i] = dot(precise, x[i], s[i], y[i], c[i]);
        x[i] = rotated;
    }
    each->out->write(x, count, to, places.step * out);
    each->out->write(y, count, to + places.distance * out, places.step * out);
}

static void copy_rest(const tni_ref_each *each, char *const *at, int64_t first, int64_t end)
{
    const int64_t in = tni_ref_along(each, TN_ELEMENTWISE_IN),
                  out = tni_ref_along(each, TN_ELEMENTWISE_OUT);
    double x[TNI_REF_PIECE];
    for (; first < end; first += TNI_REF_PIECE) {
        int64_t count = end - first < TNI_REF_PIECE ? end - first : TNI_REF_PIECE;
        each->in->read(at[TN_ELEMENTWISE_IN] + first * in, in, count, x);
        each->out->write(x, count, at[TN_ELEMENTWISE_OUT] + first * out, out);
    }
}

static void rotary_row(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    const tn_layout *layout = &each->op->operand[TN_ELEMENTWISE_OUT];
    const int64_t size = each->each->size, half = size / 2;
    const bool halves = each->each->kind == TN_ROTARY_HALVES;
    const pairs places = {halves ? 1 : 2, halves ? half : 1};
    (void)count;
    for (int64_t first = 0; first < half; first += TNI_REF_PIECE)
        rotate_pairs(each, at, places, first,
                     half - first < TNI_REF_PIECE ? half - first : TNI_REF_PIECE);
    copy_rest(each, at, size, layout->shape[layout->rank - 1]);
}

static tn_status run_rotary(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_rows_run(run, rotary_row);
}

static tn_status admit_rotary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in.dtype", "out.dtype", "cos.dtype", "sin.dtype"};
    (void)row;
    return tni_ref_admit_floats(query, names, sizeof names / sizeof names[0], why);
}

const tn_kernel_row tni_ref_rotary = {
    .name = "cpu.rotary.ref",
    .op = TN_OP_ROTARY,
    TNI_REF_ROW,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE |
               TN_ELEMENTWISE_USES_PARTIAL,
    .flops_per_us = 400,
    .bytes_per_us = 800,
    .admit = admit_rotary,
    .run = run_rotary,
};
