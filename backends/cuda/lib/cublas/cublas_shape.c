#include "cublas_shape.h"

#include "../../kernels/layout.h"
#include "tenon/module/op/matmul.h"

bool lt_is_empty(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    return mm->m == 0 || mm->n == 0 || mm->matrices == 0;
}

int32_t lt_along(const tn_layout *layout)
{
    const int32_t r = layout->rank - 2, c = layout->rank - 1;
    return layout->stride[c] == 1 || layout->shape[c] == 1 ||
                   (layout->shape[r] > 1 && layout->stride[r] != 1)
               ? c
               : r;
}

bool lt_lies_by_rows(const tn_layout *layout)
{
    return lt_along(layout) == layout->rank - 1;
}

/* Merges the batch dimensions from `first` on into one with the stride `*stride` between matrices; returns false if
 * that is not possible. */
static bool join_batch(const tn_layout *layout, int32_t first, int32_t batch_rank, int64_t *stride)
{
    int64_t count = 1;
    *stride = 0;
    for (int32_t d = batch_rank - 1; d >= first; d--) {
        if (layout->shape[d] == 1)
            continue;
        if (count == 1)
            *stride = layout->stride[d];
        else if (layout->stride[d] != *stride * count)
            return false;
        count *= layout->shape[d];
    }
    return true;
}

static tn_status describe(const tn_op *op, int32_t operand, lt_shape *out, tn_refusal *why)
{
    static const char *const names[] = {"a.stride", "b.stride", "out.stride"};
    const tn_layout *layout = &op->operand[operand];
    const int32_t r = layout->rank - 2, c = layout->rank - 1;
    const bool by_rows = lt_lies_by_rows(layout);
    const int64_t rows = layout->shape[by_rows ? c : r], columns = layout->shape[by_rows ? r : c];
    lt_matrix *to = &out->matrix[operand];
    *to = (lt_matrix){.rows = rows,
                      .columns = columns,
                      .leading = columns > 1 ? layout->stride[by_rows ? r : c] : rows,
                      .turned = by_rows != out->out_by_rows};
    if (to->leading < rows || (rows > 1 && layout->stride[by_rows ? c : r] != 1))
        return cuda_refuse(why, TN_REFUSE_STRIDE, names[operand], rows, to->leading,
                           "rows or columns must be contiguous and must not overlap");
    (void)join_batch(layout, out->outer, TN_PARAMS(op, matmul)->batch_rank, &to->batch_stride);
    return TN_OK;
}

/* Returns how many leading batch dimensions must be excluded so that the others have a single stride in every
 * operand. */
static int32_t count_outer(const tn_op *op)
{
    const int32_t rank = TN_PARAMS(op, matmul)->batch_rank;
    int64_t stride;
    int32_t first = 0;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        while (!join_batch(&op->operand[i], first, rank, &stride))
            first++;
    }
    return first;
}

bool lt_place_next(const tn_op *op, const lt_shape *shape, lt_place *io)
{
    int32_t d = shape->outer - 1;
    while (d >= 0 && ++io->at[d] == op->operand[TN_MATMUL_OUT].shape[d])
        io->at[d--] = 0;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        io->offset[i] = 0;
        for (int32_t k = 0; k < shape->outer; k++)
            io->offset[i] += io->at[k] * op->operand[i].stride[k];
    }
    return d >= 0;
}

/* Consecutive matrices of A that share one B are merged into one matrix with more rows. */
static void join_rows(const tn_op *op, lt_shape *shape)
{
    lt_matrix *a = &shape->matrix[TN_MATMUL_A], *out = &shape->matrix[TN_MATMUL_OUT];
    const int64_t m = TN_PARAMS(op, matmul)->m;
    if (shape->batch == 1 || !shape->out_by_rows || a->turned ||
        shape->matrix[TN_MATMUL_B].batch_stride != 0 || a->batch_stride != m * a->leading ||
        out->batch_stride != m * out->leading)
        return;
    a->columns *= shape->batch;
    out->columns *= shape->batch;
    shape->batch = 1;
}

/* Accepts one number for each column of out, the same for all matrices. */
static tn_status admit_bias(const tn_op *op, const lt_shape *shape, tn_refusal *why)
{
    const tn_layout *bias = &op->operand[TN_MATMUL_BIAS];
    bool sound = shape->out_by_rows && bias->dtype == op->operand[TN_MATMUL_OUT].dtype;
    if (!bias->dtype || lt_is_empty(op)) /* an empty out has no order */
        return TN_OK;
    for (int32_t d = 0; d < bias->rank - 1; d++)
        sound = sound && (bias->shape[d] == 1 || bias->stride[d] == 0);
    sound = sound && (bias->shape[bias->rank - 1] == 1 || bias->stride[bias->rank - 1] == 1);
    return sound
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_STRIDE, "bias.stride", 0, 1,
                             "a bias is of out's dtype, one number for each column of out, dense");
}

tn_status lt_shape_of(const tn_op *op, lt_shape *out, tn_refusal *why)
{
    tn_status status = lt_shape_split(op, out, why);
    return status || out->outer == 0
               ? status
               : cuda_refuse(why, TN_REFUSE_STRIDE, "batch.stride", 1, out->outer + 1,
                             "the batch's dimensions have one stride together, in each of A, B and "
                             "out");
}

tn_status lt_shape_split(const tn_op *op, lt_shape *out, tn_refusal *why)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    tn_status status = TN_OK;
    if (mm->k < 1)
        return tn_refuse(why, TN_REFUSE_SHAPE, "k", 1, mm->k);
    const cuda_count sizes[] = {{"m", mm->m}, {"n", mm->n}, {"k", mm->k}, {"batch", mm->matrices}};
    status = cuda_admit_counts(sizes, sizeof sizes / sizeof sizes[0], INT32_MAX,
                               "sizes of at most 2147483647 each", why);
    if (status)
        return status;
    out->out_by_rows = lt_lies_by_rows(&op->operand[TN_MATMUL_OUT]);
    out->left = out->out_by_rows ? TN_MATMUL_B : TN_MATMUL_A;
    out->right = out->out_by_rows ? TN_MATMUL_A : TN_MATMUL_B;
    out->outer = count_outer(op);
    out->batch = 1;
    for (int32_t d = out->outer; d < mm->batch_rank; d++)
        out->batch *= op->operand[TN_MATMUL_OUT].shape[d];
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT && !status; i++)
        status = describe(op, i, out, why);
    if (status)
        return status;
    join_rows(op, out);
    return admit_bias(op, out, why);
}
