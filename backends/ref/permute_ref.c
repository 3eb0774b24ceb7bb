/* permute and fill: elements are copied as bytes. */
#include "ref_elementwise.h"

/* One element size; a copy of a constant number of bytes is one move. */
#define COPY(bytes)                                                                          \
    static void copy_##bytes(const char *from, int64_t from_step, char *to, int64_t to_step, \
                             int64_t count)                                                  \
    {                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                  \
            memmove(to + i * to_step, from + i * from_step, bytes);                          \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

static void copy(int64_t bytes, const char *from, int64_t from_step, char *to, int64_t to_step,
                 int64_t count)
{
    switch (bytes) {
    case 1: copy_1(from, from_step, to, to_step, count); break;
    case 2: copy_2(from, from_step, to, to_step, count); break;
    case 4: copy_4(from, from_step, to, to_step, count); break;
    case 8: copy_8(from, from_step, to, to_step, count); break;
    default: copy_16(from, from_step, to, to_step, count); break;
    }
}

static void permute_piece(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    int64_t bytes = each->out->bytes, from = tni_ref_along(each, TN_EACH_IN);
    int64_t to = tni_ref_along(each, TN_EACH_OUT);
    if (from == bytes && to == bytes)
        memmove(at[TN_EACH_OUT], at[TN_EACH_IN], (size_t)(bytes * count));
    else
        copy(bytes, at[TN_EACH_IN], from, at[TN_EACH_OUT], to, count);
}

static tn_status run_permute(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_each_run(run, permute_piece);
}

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_dtype in = query->op->operand[TN_EACH_IN].dtype;
    tn_dtype out = query->op->operand[TN_EACH_OUT].dtype;
    (void)row;
    if (in != out)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", in, out,
                              "permute keeps the dtype: cast changes it");
    return TN_OK;
}

const tn_kernel_row tni_ref_permute = {
    TNI_REF_EACH_ROW("permute", PERMUTE),
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_EACH_USES_STRIDES | TN_EACH_USES_BROADCAST | TN_EACH_USES_IN_PLACE,
    .flops_per_us = 500,
    .bytes_per_us = 4000,
    .admit = admit_permute,
    .run = run_permute,
};

/* The element's bytes follow the fields that all jobs share. */
typedef struct filling {
    tni_ref_each each;
    char element[16];
} filling;

static void fill_piece(void *job, char *const *at, int64_t count)
{
    const filling *f = job;
    copy(f->each.out->bytes, f->element, 0, at[TN_EACH_OUT], tni_ref_along(&f->each, TN_EACH_OUT),
         count);
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
    TNI_REF_EACH_ROW("fill", FILL),
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours = TN_EACH_USES_STRIDES,
    .flops_per_us = 500,
    .bytes_per_us = 4000,
    .run = run_fill,
};
