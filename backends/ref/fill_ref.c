/* fill: the value is converted once, then copied as bytes. */
#include "ref_copy.h"
#include "ref_elementwise.h"
#include "tenon/module/op/fill.h"

/* The element's bytes follow the fields that all jobs share. */
typedef struct filling {
    tni_ref_each each;
    char element[16];
} filling;

static void fill_piece(void *job, char *const *at, int64_t count)
{
    const filling *f = job;
    tni_ref_copy(f->each.out->bytes, f->element, 0, at[TN_ELEMENTWISE_OUT],
                 tni_ref_along(&f->each, TN_ELEMENTWISE_OUT), count);
}

static tn_status run_fill(const tn_run *run, tn_error *err)
{
    filling f = {.each = tni_ref_each_of(run->op)};
    const double value[2] = {f.each.each->value, f.each.each->imaginary};
    (void)err;
    f.each.out->write(value, 1, f.element, 0);
    tni_ref_walk_each(run->op, &f.each.walk);
    tni_ref_walk_run(&f.each.walk, run, fill_piece, &f);
    return TN_OK;
}

const tn_kernel_row tni_ref_fill = {
    .name = "cpu.fill.ref",
    .op = TN_OP_FILL,
    TNI_REF_ROW,
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES,
    .flops_per_us = 500,
    .bytes_per_us = 4000,
    .run = run_fill,
};
