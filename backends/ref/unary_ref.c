/* unary */
#include <math.h>

#include "ref_elementwise.h"
#include "ref_function.h"
#include "tenon/module/op/unary.h"

static void compute_whole(const tni_ref_each *each, const char *from, char *to, int64_t count)
{
    const int32_t kind = each->each->kind;
    int64_t value[TNI_REF_PIECE];
    each->in->read_whole(from, tni_ref_along(each, TN_ELEMENTWISE_IN), count, value);
    for (int64_t i = 0; i < count; i++) {
        bool negative = each->in->sort == TNI_REF_SIGNED && value[i] < 0;
        if (kind == TN_UNARY_RELU)
            value[i] = negative ? 0 : value[i];
        else if (kind == TN_UNARY_NEG || negative)
            value[i] = (int64_t)(0 - (uint64_t)value[i]);
    }
    each->out->write_whole(value, count, to, tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

/* abs gives one number for two; neg negates both parts. */
static void compute_complex(const tni_ref_each *each, int64_t count, double *value)
{
    const bool exact = each->in->dtype == TN_C64;
    for (int64_t i = 0; i < count && each->each->kind == TN_UNARY_ABS; i++) {
        double x = value[2 * i], y = value[2 * i + 1];
        value[i] = exact ? hypot(x, y) : (double)hypotl(x, y);
    }
    for (int64_t i = 0; i < 2 * count && each->each->kind == TN_UNARY_NEG; i++)
        value[i] = -value[i];
}

static void compute_float(const tni_ref_each *each, int64_t count, double *value)
{
    const int32_t kind = each->each->kind;
    const bool in_long = each->in->dtype == TN_F64 && tni_ref_is_libm(kind);
    for (int64_t i = 0; i < count; i++)
        value[i] = in_long ? (double)tni_ref_function_long(kind, value[i])
                           : tni_ref_function(kind, value[i]);
}

static void unary_piece(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    double value[2 * TNI_REF_PIECE];
    if (tni_ref_is_whole(each->in)) {
        compute_whole(each, at[TN_ELEMENTWISE_IN], at[TN_ELEMENTWISE_OUT], count);
        return;
    }
    each->in->read(at[TN_ELEMENTWISE_IN], tni_ref_along(each, TN_ELEMENTWISE_IN), count, value);
    if (each->in->parts == 2)
        compute_complex(each, count, value);
    else
        compute_float(each, count, value);
    each->out->write(value, count, at[TN_ELEMENTWISE_OUT], tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

static tn_status run_unary(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_each_run(run, unary_piece);
}

static bool has_function(const tni_ref_element *in, int32_t kind)
{
    if (in->sort == TNI_REF_FLOAT)
        return true;
    if (kind == TN_UNARY_NEG || kind == TN_UNARY_ABS)
        return true;
    return kind == TN_UNARY_RELU && tni_ref_is_whole(in);
}

static tn_status admit_unary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tni_ref_each each = tni_ref_each_of(query->op);
    const int32_t kind = each.each->kind;
    const bool size_of_complex = each.in->parts == 2 && kind == TN_UNARY_ABS;
    (void)row;
    if (!has_function(each.in, kind))
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "in.dtype", TN_F32, each.in->dtype,
                              "of whole numbers there are neg, abs and relu, of complex ones neg "
                              "and abs: cast to a float first");
    if (tni_ref_is_whole(each.in) != tni_ref_is_whole(each.out) || each.out->dtype == TN_BOOL)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", each.in->dtype, each.out->dtype,
                              "whole numbers give whole numbers, floats give floats: cast before "
                              "or after");
    if (!tni_ref_is_whole(each.in) && each.out->parts != (size_of_complex ? 1 : each.in->parts))
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype",
                              size_of_complex ? TN_F32 : (int64_t)each.in->dtype, each.out->dtype,
                              "abs of complex numbers gives floats, neg complex numbers");
    return tni_ref_admit_function(query, size_of_complex ? TN_UNARY_EXP : kind, why);
}

const tn_kernel_row tni_ref_unary = {
    .name = "cpu.unary.ref",
    .op = TN_OP_UNARY,
    TNI_REF_ROW,
    .dtypes = tni_ref_number_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
    .flops_per_us = 50,
    .bytes_per_us = 500,
    .admit = admit_unary,
    .run = run_unary,
};
