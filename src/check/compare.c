#include "compare.h"

#include "base/dtype.h"
#include "op/bounds.h"
#include "op/op_check.h"

#include <inttypes.h>

/* Returns the error of a number divided by its bound. */
static double relative_error(double found, double expected, double bound)
{
    if (tni_is_nan(found) || tni_is_nan(expected))
        return tni_is_nan(found) && tni_is_nan(expected) ? 0 : INFINITY;
    if (found == expected)
        return 0;
    double off = fabs(found - expected);
    return tni_is_infinite(off) || bound == 0 ? INFINITY : off / bound;
}

/* One element of an output; `at` is its index in a dense tensor. */
typedef struct output {
    tn_dtype dtype;
    int32_t operand;
    const char *found, *expected;
    int64_t at;
} output;

/* Compares one element. For a complex number, the part with the larger error counts. If `by_bytes`,
 * the bytes must be equal: for ops that only copy, and for integers whose bound is 0. */
static void compare_element(const output *o, double bound, bool by_bytes, tni_difference *out)
{
    tni_number f = tni_element_read(o->dtype, o->found);
    tni_number e = tni_element_read(o->dtype, o->expected);
    double re = relative_error(f.re, e.re, bound), im = relative_error(f.im, e.im, bound);
    bool real = re >= im;
    *out = (tni_difference){.error = real ? re : im,
                            .bound = bound,
                            .found = real ? f.re : f.im,
                            .expected = real ? e.re : e.im,
                            .output = o->operand,
                            .at = o->at};
    if (by_bytes && memcmp(o->found, o->expected, (size_t)tni_dtype_bytes(o->dtype)) != 0)
        out->error = INFINITY;
    else if (by_bytes)
        out->error = 0;
}

/* Returns true if `one` has the largest error so far. */
static bool add_difference(const tni_difference *one, tni_difference *io)
{
    int64_t checked = io->checked + 1, wrong = io->wrong + (one->error > 1);
    bool worse = io->at < 0 || one->error > io->error;
    if (worse)
        *io = *one;
    io->checked = checked;
    io->wrong = wrong;
    return worse;
}

tn_status tni_compare(const tni_comparand *what, tni_difference *difference, bool *out_worse,
                      tn_error *err)
{
    const tn_layout *out = &what->op->operand[what->output];
    int64_t size = tni_dtype_bytes(out->dtype), at = 0;
    bool whole = tni_dtype_is_integer(out->dtype);
    tni_place place = {{0}};
    tni_bounds bounds = {
        .op = what->op, .output = what->output, .data = what->data, .numerics = what->numerics};
    const bool copies = tni_op_class_of(what->op->kind)->check->copies;
    *out_worse = false;
    if (tni_layout_elements(out) == 0)
        return TN_OK;
    tn_status status = tni_bounds_init(&bounds, err);
    if (status)
        return status;
    do {
        output o = {.dtype = out->dtype,
                    .operand = what->output,
                    .found = (const char *)what->found + tni_place_in(&place, out) * size,
                    .expected = (const char *)what->expected + at * size,
                    .at = at};
        double bound = tni_bounds_at(&bounds, &place, tni_element_read(o.dtype, o.expected));
        bool by_bytes = copies || (whole && bound == 0);
        tni_difference one;
        compare_element(&o, bound, by_bytes, &one);
        *out_worse = add_difference(&one, difference) || *out_worse;
        at++;
    } while (tni_place_next(&place, out));
    tni_bounds_release(&bounds);
    return TN_OK;
}

/* Returns the operand's name; "output" if the op has only one output. */
static const char *name_of(const tn_op *op, int32_t index)
{
    const tni_op_class *class = tni_op_class_of(op->kind);
    return class->outputs & (class->outputs - 1) ? class->operands[index] : "output";
}

void tni_difference_write(const tni_difference *difference, const tn_op *op, char *out, size_t size)
{
    snprintf(out, size,
             "%s %" PRId64 " is %.9g, the reference has %.9g, and they may be %.3g apart; "
             "%" PRId64 " of %" PRId64 " are wrong",
             name_of(op, difference->output), difference->at, difference->found,
             difference->expected, difference->bound, difference->wrong, difference->checked);
}
