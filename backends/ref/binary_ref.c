/* binary. For f32 and narrower floats, the rounded double result equals the result of f32
 * arithmetic: a double has more than twice its digits. */
#include "ref_elementwise.h"
#include "ref_wide.h"
#include "tenon/module/op/binary.h"

static int64_t divide_whole(int64_t a, int64_t b, bool is_signed)
{
    if (b == 0)
        return 0;
    if (!is_signed)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t combine_whole(int32_t kind, int64_t a, int64_t b, bool is_signed)
{
    const bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
    switch (kind) {
    case TN_BINARY_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case TN_BINARY_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case TN_BINARY_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case TN_BINARY_DIV: return divide_whole(a, b, is_signed);
    case TN_BINARY_MAX: return less ? b : a;
    default: return less ? a : b;
    }
}

/* As IEEE 754-2019: NaN if either operand is, and -0 is less than 0. */
static double less_of(double a, double b)
{
    if (tni_ref_is_nan(a) || tni_ref_is_nan(b))
        return a + b;
    if (a == b)
        return tni_ref_bits(a) >> 63 ? a : b;
    return a < b ? a : b;
}

static double combine(int32_t kind, double a, double b)
{
    switch (kind) {
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: return a / b;
    case TN_BINARY_MAX: return -less_of(-a, -b);
    default: return less_of(a, b);
    }
}

/* x x' + y y', rounded once, except for the last bits. */
static double dot(double x, double x2, double y, double y2)
{
    return tni_ref_wide_round(
        tni_ref_wide_plus(tni_ref_wide_product(x, x2), tni_ref_wide_product(y, y2)));
}

/* The divisor is scaled to about 1, so that its square neither overflows nor underflows. */
static void divide_complex(double *a, double re, double im)
{
    const double size = fmax(fabs(re), fabs(im));
    const int scale = tni_ref_is_finite(size) && size > 0 ? -ilogb(size) : 0;
    const double x = scalbn(re, scale), y = scalbn(im, scale), norm = dot(x, x, y, y);
    const double real = scalbn(dot(a[0], x, a[1], y) / norm, scale);
    a[1] = scalbn(dot(a[1], x, -a[0], y) / norm, scale);
    a[0] = real;
}

static void combine_complex(int32_t kind, double *a, const double *b)
{
    const double real = dot(a[0], b[0], -a[1], b[1]);
    switch (kind) {
    case TN_BINARY_ADD: a[0] += b[0], a[1] += b[1]; break;
    case TN_BINARY_SUB: a[0] -= b[0], a[1] -= b[1]; break;
    case TN_BINARY_MUL: a[1] = dot(a[0], b[1], a[1], b[0]), a[0] = real; break;
    default: divide_complex(a, b[0], b[1]); break;
    }
}

static void binary_whole(const tni_ref_each *each, char *const *at, int64_t count)
{
    int64_t a[TNI_REF_PIECE], b[TNI_REF_PIECE];
    each->in->read_whole(at[TN_ELEMENTWISE_IN], tni_ref_along(each, TN_ELEMENTWISE_IN), count, a);
    each->in->read_whole(at[TN_ELEMENTWISE_OTHER], tni_ref_along(each, TN_ELEMENTWISE_OTHER), count,
                         b);
    for (int64_t i = 0; i < count; i++)
        a[i] = combine_whole(each->each->kind, a[i], b[i], each->in->sort == TNI_REF_SIGNED);
    each->out->write_whole(a, count, at[TN_ELEMENTWISE_OUT],
                           tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

static void binary_piece(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    double a[2 * TNI_REF_PIECE], b[2 * TNI_REF_PIECE];
    if (tni_ref_is_whole(each->in)) {
        binary_whole(each, at, count);
        return;
    }
    each->in->read(at[TN_ELEMENTWISE_IN], tni_ref_along(each, TN_ELEMENTWISE_IN), count, a);
    each->in->read(at[TN_ELEMENTWISE_OTHER], tni_ref_along(each, TN_ELEMENTWISE_OTHER), count, b);
    for (int64_t i = 0; i < count && each->in->parts == 2; i++)
        combine_complex(each->each->kind, a + 2 * i, b + 2 * i);
    for (int64_t i = 0; i < count && each->in->parts == 1; i++)
        a[i] = combine(each->each->kind, a[i], b[i]);
    each->out->write(a, count, at[TN_ELEMENTWISE_OUT], tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

static tn_status run_binary(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_each_run(run, binary_piece);
}

static tn_status admit_binary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tni_ref_each each = tni_ref_each_of(query->op);
    const bool ordered = each.each->kind == TN_BINARY_MAX || each.each->kind == TN_BINARY_MIN;
    (void)row;
    if (each.other != each.in)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "other.dtype", each.in->dtype,
                              query->op->operand[TN_ELEMENTWISE_OTHER].dtype,
                              "both inputs need one dtype: cast one of them");
    if (tni_ref_is_whole(each.in) != tni_ref_is_whole(each.out) ||
        each.in->parts != each.out->parts || each.out->dtype == TN_BOOL)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", each.in->dtype, each.out->dtype,
                              "whole numbers give whole numbers, floats floats, complex numbers "
                              "complex ones: cast before or after");
    if (ordered && each.in->parts == 2)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "in.dtype", TN_F32, each.in->dtype,
                              "complex numbers are not ordered: compare their abs");
    return TN_OK;
}

const tn_kernel_row tni_ref_binary = {
    .name = "cpu.binary.ref",
    .op = TN_OP_BINARY,
    TNI_REF_ROW,
    .dtypes = tni_ref_number_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
    .flops_per_us = 200,
    .bytes_per_us = 1500,
    .admit = admit_binary,
    .run = run_binary,
};
