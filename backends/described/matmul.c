/* A plain matmul for described devices, with wrong results if the description asks for them. */
#include "tenon/module/op/matmul.h"
#include "described.h"
#include "tenon/module/kernel.h"

/* Offset of a matrix of an operand, by its index in the batch. */
static int64_t matrix_of(const tn_op *op, int32_t operand, int64_t number)
{
    const tn_layout *layout = &op->operand[operand];
    int64_t at = 0;
    for (int32_t d = TN_PARAMS(op, matmul)->batch_rank; d-- > 0;) {
        int64_t size = op->operand[TN_MATMUL_OUT].shape[d];
        at += number % size * layout->stride[d];
        number /= size;
    }
    return at;
}

static double get(tn_dtype dtype, const void *data, int64_t at)
{
    return dtype == TN_F64 ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

static void set(tn_dtype dtype, void *data, int64_t at, double value)
{
    if (dtype == TN_F64)
        ((double *)data)[at] = value;
    else
        ((float *)data)[at] = (float)value;
}

/* Computes row i of one matrix of the batch. */
static void multiply_row(const tn_run *run, int64_t number, int64_t i)
{
    const tn_op *op = run->op;
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    const tn_layout *c = &op->operand[TN_MATMUL_OUT];
    int32_t row = mm->batch_rank, column = row + 1;
    int64_t a_at = matrix_of(op, TN_MATMUL_A, number) + i * a->stride[row];
    int64_t b_at = matrix_of(op, TN_MATMUL_B, number);
    int64_t c_at = matrix_of(op, TN_MATMUL_OUT, number) + i * c->stride[row];
    for (int64_t j = 0; j < mm->n; j++) {
        int64_t to = c_at + j * c->stride[column];
        double sum = 0;
        for (int64_t k = 0; k < mm->k; k++)
            sum += get(a->dtype, tn_operand(run, TN_MATMUL_A), a_at + k * a->stride[column]) *
                   get(b->dtype, tn_operand(run, TN_MATMUL_B),
                       b_at + k * b->stride[row] + j * b->stride[column]);
        sum *= mm->alpha;
        if (mm->beta != 0)
            sum += mm->beta * get(c->dtype, tn_operand(run, TN_MATMUL_OUT), to);
        set(c->dtype, tn_operand(run, TN_MATMUL_OUT), to, sum);
    }
}

/* Counts a run; *out_number is its number. */
static tn_status count_run(described_device *device, int64_t *out_number, tn_error *err)
{
    described_lock(&device->guard);
    int64_t number = ++device->runs;
    bool lost = device->lost[0] != '\0';
    described_unlock(&device->guard);
    if (lost)
        return described_lost(device, err);
    if (number == device->behaviour.fail_run)
        return tn_fail(err, TN_IO, 0, "described: run",
                       "run %lld of described:%d is described to fail", (long long)number,
                       (int)device->index);
    *out_number = number;
    return TN_OK;
}

static tn_status run_matmul(const tn_run *run, tn_error *err)
{
    const tn_matmul_op *mm = TN_PARAMS(run->op, matmul);
    tn_dtype dtype = run->op->operand[TN_MATMUL_OUT].dtype;
    described_device *device = NULL;
    int64_t number = 0;
    tn_status status = described_find(run->platform, run->device, &device, err);
    if (!status)
        status = count_run(device, &number, err);
    if (status)
        return status;
    for (int64_t matrix = 0; matrix < mm->matrices; matrix++) {
        for (int64_t i = 0; i < mm->m; i++)
            multiply_row(run, matrix, i);
    }
    if (device->behaviour.lie_every && number % device->behaviour.lie_every == 0)
        set(dtype, tn_operand(run, TN_MATMUL_OUT), 0,
            get(dtype, tn_operand(run, TN_MATMUL_OUT), 0) + 1);
    return TN_OK;
}

/* Elements are accessed directly, so operands must be aligned to their element size. */
static tn_status admit_matmul(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    for (int32_t i = 0; i < TN_MATMUL_BIAS; i++) {
        const tn_layout *layout = &query->op->operand[i];
        int64_t needed = layout->dtype == TN_F64 ? 8 : 4;
        if (layout->alignment < needed)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", needed, layout->alignment);
    }
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_DTYPE_NONE};

const tn_kernel_row described_matmul = {
    .struct_size = sizeof described_matmul,
    .alignment = sizeof(double),
    .name = "described.matmul.plain",
    .platform = "described",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .flops_per_us = 500,
    .bytes_per_us = 2000,
    .overhead_us = 1,
    .admit = admit_matmul,
    .run = run_matmul,
};
