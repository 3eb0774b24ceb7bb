/* cast: goes through doubles, which represent everything exactly except 64-bit integers, so that
 * there is one rounding. */
#include "ref_elementwise.h"
#include "ref_number.h"
#include "tenon/module/op/cast.h"

/* Integers to integers: out-of-range values saturate. */
typedef struct bounds {
    int64_t least;
    uint64_t greatest;
} bounds;

static bounds bounds_of(const tni_ref_element *element)
{
    const int32_t bits = (int32_t)element->bytes * 8;
    if (element->sort == TNI_REF_SIGNED)
        return (bounds){-(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1,
                        (UINT64_C(1) << (bits - 1)) - 1};
    return (bounds){0, UINT64_MAX >> (64 - bits)};
}

static int64_t clamp(const bounds *to, int64_t value, bool is_signed)
{
    if (is_signed && value < 0)
        return value < to->least ? to->least : value;
    return (uint64_t)value > to->greatest ? (int64_t)to->greatest : value;
}

static void cast_whole(const tni_ref_each *each, const char *from, char *to, int64_t count)
{
    const bounds limits = bounds_of(each->out);
    int64_t value[TNI_REF_PIECE];
    each->in->read_whole(from, tni_ref_along(each, TN_ELEMENTWISE_IN), count, value);
    for (int64_t i = 0; i < count && each->out->dtype != TN_BOOL; i++)
        value[i] = clamp(&limits, value[i], each->in->sort == TNI_REF_SIGNED);
    each->out->write_whole(value, count, to, tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

/* Rounds to odd: if the number is not exactly a double, the result is the truncated double with its
 * last bit set, so that a further rounding to a narrower float gives the same result as rounding
 * the number directly. */
static double to_odd(int64_t value, bool is_signed)
{
    bool negative = is_signed && value < 0;
    uint64_t rest, magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
    int32_t shift = 0;
    while (magnitude >> shift >= UINT64_C(1) << 53)
        shift++;
    rest = magnitude & ((UINT64_C(1) << shift) - 1);
    double odd = (double)((magnitude - rest) | (uint64_t)(rest != 0) << shift);
    return negative ? -odd : odd;
}

static void read_odd(const tni_ref_element *in, const char *from, int64_t step, int64_t count,
                     double *to)
{
    int64_t value[TNI_REF_PIECE];
    in->read_whole(from, step, count, value);
    for (int64_t i = 0; i < count; i++)
        to[i] = to_odd(value[i], in->sort == TNI_REF_SIGNED);
}

/* Keeps only the real parts, in place; as bool, a number is nonzero if one of its parts is. */
static void drop_imaginary(int64_t count, bool as_bool, double *value)
{
    for (int64_t i = 0; i < count; i++) {
        double real = value[2 * i], imaginary = value[2 * i + 1];
        value[i] = as_bool && real == 0 && imaginary != 0 ? 1 : real;
    }
}

static void add_imaginary(int64_t count, double *value)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        value[2 * i] = value[i];
        value[2 * i + 1] = 0;
    }
}

/* Reads as many parts as out has. */
static void read_parts(const tni_ref_each *each, const char *from, int64_t count, double *to)
{
    const tni_ref_element *in = each->in, *out = each->out;
    const int64_t step = tni_ref_along(each, TN_ELEMENTWISE_IN);
    const bool exact = out->dtype == TN_F64 || out->dtype == TN_C128 || in->bytes < 8;
    if (in->parts == 2) {
        in->read(from, step, count, to);
        if (out->parts == 1)
            drop_imaginary(count, out->dtype == TN_BOOL, to);
        return;
    }
    if (tni_ref_is_whole(in) && !exact)
        read_odd(in, from, step, count, to);
    else
        in->read(from, step, count, to);
    if (out->parts == 2)
        add_imaginary(count, to);
}

static void cast_piece(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    double value[2 * TNI_REF_PIECE];
    if (tni_ref_is_whole(each->in) && tni_ref_is_whole(each->out)) {
        cast_whole(each, at[TN_ELEMENTWISE_IN], at[TN_ELEMENTWISE_OUT], count);
        return;
    }
    read_parts(each, at[TN_ELEMENTWISE_IN], count, value);
    each->out->write(value, count, at[TN_ELEMENTWISE_OUT], tni_ref_along(each, TN_ELEMENTWISE_OUT));
}

static tn_status run_cast(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_each_run(run, cast_piece);
}

const tn_kernel_row tni_ref_cast = {
    .name = "cpu.cast.ref",
    .op = TN_OP_CAST,
    TNI_REF_ROW,
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
    .flops_per_us = 200,
    .bytes_per_us = 1000,
    .run = run_cast,
};
