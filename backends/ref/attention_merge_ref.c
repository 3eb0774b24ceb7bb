/* attention-merge: a row is the mean of two rows with the weights exp(lse - the greater lse), and
 * its lse is the greater lse plus the logarithm of the sum of the weights. A part that saw no key,
 * whose lse is -infinity, is not read. Computed in long double, each row separately. */
#include "ref_elementwise.h"

#include "tenon/module/op/attention_merge.h"

#include <math.h>
#include <stdbool.h>

typedef struct job {
    const tn_run *run;
    const tni_ref_element *element[TN_MERGE_OPERANDS];
} job;

static char *row_at(const job *j, int32_t operand, int64_t row)
{
    const int64_t *shape = j->run->op->operand[TN_MERGE_IN].shape;
    const int64_t *stride = j->run->op->operand[operand].stride;
    char *first = tn_operand(j->run, operand);
    int64_t offset = row % shape[2] * stride[2];
    row /= shape[2];
    offset += row % shape[1] * stride[1] + row / shape[1] * stride[0];
    return first ? first + offset * j->element[operand]->bytes : NULL;
}

static long double read_lse(const job *j, int32_t operand, int64_t row)
{
    double value;
    j->element[operand]->read(row_at(j, operand, row), 0, 1, &value);
    return value;
}

/* Adds a part's values times `weight` to `count` of a row's sums, from element `first` on. */
static void add_part(const job *j, int32_t operand, int64_t row, int64_t first, int64_t count,
                     long double weight, long double *sum)
{
    int64_t step = j->run->op->operand[operand].stride[3] * j->element[operand]->bytes;
    double values[TNI_REF_PIECE];
    j->element[operand]->read(row_at(j, operand, row) + first * step, step, count, values);
    for (int64_t d = 0; d < count; d++)
        sum[d] += weight * values[d];
}

static void merge_row(const job *j, int64_t row)
{
    const int64_t size = j->run->op->operand[TN_MERGE_OUT].shape[3];
    const int64_t step =
        j->run->op->operand[TN_MERGE_OUT].stride[3] * j->element[TN_MERGE_OUT]->bytes;
    const long double nothing = -(long double)INFINITY;
    long double a = read_lse(j, TN_MERGE_LSE_IN, row), b = read_lse(j, TN_MERGE_LSE_OTHER, row);
    const long double greater = b > a ? b : a;
    const long double weight_a = expl(a - greater), weight_b = expl(b - greater);
    const bool any = a != nothing || b != nothing;
    const double lse = (double)(any ? greater + logl(weight_a + weight_b) : nothing);
    for (int64_t first = 0; first < size; first += TNI_REF_PIECE) {
        int64_t count = size - first < TNI_REF_PIECE ? size - first : TNI_REF_PIECE;
        long double sum[TNI_REF_PIECE] = {0};
        double values[TNI_REF_PIECE];
        if (a != nothing)
            add_part(j, TN_MERGE_IN, row, first, count, weight_a, sum);
        if (b != nothing)
            add_part(j, TN_MERGE_OTHER, row, first, count, weight_b, sum);
        for (int64_t d = 0; d < count; d++)
            values[d] = (double)(any ? sum[d] / (weight_a + weight_b) : 0);
        j->element[TN_MERGE_OUT]->write(values, count, row_at(j, TN_MERGE_OUT, row) + first * step,
                                        step);
    }
    if (j->element[TN_MERGE_LSE]->dtype)
        j->element[TN_MERGE_LSE]->write(&lse, 1, row_at(j, TN_MERGE_LSE, row), 0);
}

static void merge_rows(void *user, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        merge_row(user, row);
}

static tn_status run_merge(const tn_run *run, tn_error *err)
{
    const tn_layout *in = &run->op->operand[TN_MERGE_IN];
    job j = {.run = run};
    (void)err;
    for (int32_t o = 0; o < TN_MERGE_OPERANDS; o++)
        j.element[o] = tni_ref_operand_element(run->op, o);
    tni_ref_share(run, in->shape[0] * in->shape[1] * in->shape[2], in->shape[3] + 1, merge_rows,
                  &j);
    return TN_OK;
}

const tn_kernel_row tni_ref_attention_merge = {
    .name = "cpu.attention-merge.ref",
    .op = TN_OP_ATTENTION_MERGE,
    TNI_REF_ROW,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE,
    .flops_per_us = 200,
    .bytes_per_us = 800,
    .run = run_merge,
};
