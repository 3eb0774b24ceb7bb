#include "cublas_admit.h"

#include "../../kernels/layout.h"
#include "cublas_after.h"
#include "cublas_pad.h"
#include "cublas_shape.h"

static tn_status admit_capability(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_MATMUL_A].dtype;
    const bool f8 = dtype == TN_F8_E4M3FN || dtype == TN_F8_E5M2;
    const int32_t needed = f8                                                           ? 89
                           : row->numerics & TN_NUM_ROUNDS_F32_TF32 || dtype == TN_BF16 ? 80
                           : dtype == TN_I8                                             ? 75
                                                                                        : 50;
    const tn_capability has = query->device->capability;
    const int32_t found = has.major * 10 + has.minor;
    if (found >= needed)
        return TN_OK;
    return cuda_refuse(
        why, TN_REFUSE_DEVICE, "capability", needed, found,
        "capability times ten: i8 came with 7.5, bf16 and tf32 with 8.0, 8-bit floats with 8.9");
}

static tn_status admit_types(const tn_kernel_row *row, const tn_op *op, tn_refusal *why)
{
    const tn_dtype a = op->operand[TN_MATMUL_A].dtype, b = op->operand[TN_MATMUL_B].dtype;
    const tn_dtype out = op->operand[TN_MATMUL_OUT].dtype;
    const bool f16_sums = row->numerics & TN_NUM_F16_SUMS;
    const bool narrow = (a == TN_F16 || a == TN_BF16) && !f16_sums;
    const tn_dtype usual = a == TN_I8 ? TN_I32 : a;
    if (b != a)
        return tn_refuse(why, TN_REFUSE_DTYPE, "b.dtype", a, b);
    if (out != usual && !(narrow && out == TN_F32))
        return tn_refuse(why, TN_REFUSE_DTYPE, "out.dtype", usual, out);
    if (op->uses & TN_MATMUL_USES_ACC && TN_PARAMS(op, matmul)->acc != TN_F16)
        return tn_refuse(why, TN_REFUSE_DTYPE, "acc", TN_F16, TN_PARAMS(op, matmul)->acc);
    return TN_OK;
}

tn_status cuda_blas_admit_kind(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_status status = admit_capability(row, query, why);
    if (!status)
        status = admit_types(row, query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

/* pytorch/pytorch pull request 194497: cuBLASLt may choose a kernel that reads the bias 16 bytes at a time, and it
 * has no parameter for the alignment of the bias. */
static tn_status admit_bias(const tn_op *op, tn_refusal *why)
{
    enum { AT_ONCE = 16 };
    const tn_layout *bias = &op->operand[TN_MATMUL_BIAS];
    return !bias->dtype || bias->alignment >= AT_ONCE
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_ALIGNMENT, "bias", AT_ONCE, bias->alignment,
                             "its kernels may read a bias 16 bytes at once");
}

/* If a separate kernel computes the epilogue (lt_is_finished), the library is given only the product. */
tn_status cuda_blas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    lt_shape shape;
    tn_op sums;
    lt_sums_of(query->op, &sums);
    tn_status status = cuda_blas_admit_kind(row, query, why);
    if (!status)
        status = admit_bias(&sums, why);
    if (!status)
        status = lt_shape_of(&sums, &shape, why);
    return status ? status : lt_admit_following(row, query->op, why);
}

tn_status cuda_blas_admit_padded(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_op sums;
    tn_status status = cuda_blas_admit(row, query, why);
    if (status)
        return status;
    lt_sums_of(query->op, &sums);
    return lt_admit_pads(&sums, lt_sums_bytes(query->op) > 0, why);
}

/* For 8-bit products, rows of A and columns of B must be contiguous, and sizes, strides and alignment
 * multiples of `together` elements. */
static tn_status admit_together(const tn_query *query, int64_t together, tn_refusal *why)
{
    lt_shape shape;
    tn_status status = lt_shape_of(query->op, &shape, why);
    if (status || lt_is_empty(query->op)) /* nothing is read then */
        return status;
    if (!shape.matrix[shape.left].turned || shape.matrix[shape.right].turned)
        return cuda_refuse(why, TN_REFUSE_STRIDE, "b.stride", 1, 0,
                           "A must be row-major and B column-major: transpose B");
    const char *sizes = shape.out_by_rows ? "n, k" : "m, k";
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        const lt_matrix *m = &shape.matrix[i];
        char text[48];
        const int64_t off = m->leading % together ? m->leading % together
                            : m->rows % together  ? m->rows % together
                                                  : m->batch_stride % together;
        if (off) {
            snprintf(text, sizeof text, "%s and strides are multiples of %d", sizes, (int)together);
            return cuda_refuse(why, TN_REFUSE_SHAPE, sizes, together, off, text);
        }
        if (query->op->operand[i].alignment < together)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", together,
                             query->op->operand[i].alignment);
    }
    return TN_OK;
}

tn_status cuda_blas_admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_status status = cuda_blas_admit(row, query, why);
    return status ? status : admit_together(query, 4, why);
}

bool cuda_blas_scales_each(const tn_op *op)
{
    const tn_layout *a = &op->operand[TN_MATMUL_SCALE_A], *b = &op->operand[TN_MATMUL_SCALE_B];
    const int32_t m = TN_PARAMS(op, matmul)->batch_rank, n = m + 1;
    return (a->dtype && a->shape[m] > 1 && a->stride[m] != 0) ||
           (b->dtype && b->shape[n] > 1 && b->stride[n] != 0);
}

/* Returns whether an operand of scales is a dense vector along the dimension, or a single number. */
static bool is_vector(const tn_layout *layout, int32_t along)
{
    return layout->dtype && (layout->shape[along] <= 1 || layout->stride[along] == 1);
}

/* Scales for each row of A and each column of B. */
static tn_status admit_vectors(const tn_query *query, tn_refusal *why)
{
    enum { SINCE = 120900, HOPPER = 9, ALIGNED = 16 };
    const tn_op *op = query->op;
    const int32_t m = TN_PARAMS(op, matmul)->batch_rank;
    if (!is_vector(&op->operand[TN_MATMUL_SCALE_A], m) ||
        !is_vector(&op->operand[TN_MATMUL_SCALE_B], m + 1) || TN_PARAMS(op, matmul)->matrices > 1)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "scales", 2, 1,
                           "A has one for each row and B one for each column, both dense, or each "
                           "has one for all; a batch has those");
    if (query->device->capability.major != HOPPER)
        return cuda_refuse(why, TN_REFUSE_DEVICE, "capability", HOPPER,
                           query->device->capability.major,
                           "one scale for each row is for devices of capability 9.0");
    if (query->library_version >= 0 && query->library_version < SINCE)
        return tn_refuse(why, TN_REFUSE_VERSION, "cuBLASLt", SINCE, query->library_version);
    for (int32_t i = TN_MATMUL_SCALE_A; i <= TN_MATMUL_SCALE_B; i++) {
        if (op->operand[i].alignment < ALIGNED)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "scale.alignment", ALIGNED,
                             op->operand[i].alignment);
    }
    return TN_OK;
}

static tn_status admit_scales(const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const int32_t m = TN_PARAMS(op, matmul)->batch_rank;
    for (int32_t i = TN_MATMUL_SCALE_A; i <= TN_MATMUL_SCALE_B; i++) {
        const tn_layout *scale = &op->operand[i];
        for (int32_t d = 0; scale->dtype && d < m; d++) {
            if (scale->shape[d] > 1 && scale->stride[d] != 0)
                return cuda_refuse(why, TN_REFUSE_STRIDE, "scale.stride", 0, scale->stride[d],
                                   "one scale serves all matrices of a batch");
        }
    }
    return cuda_blas_scales_each(op) ? admit_vectors(query, why) : TN_OK;
}

/* With an f32 output, the library would read the bias as bf16. */
static tn_status admit_f8_types(const tn_op *op, tn_refusal *why)
{
    const tn_dtype a = op->operand[TN_MATMUL_A].dtype, b = op->operand[TN_MATMUL_B].dtype;
    if (a == TN_F8_E5M2 && b == TN_F8_E5M2)
        return tn_refuse(why, TN_REFUSE_DTYPE, "b.dtype", TN_F8_E4M3FN, b);
    if (op->operand[TN_MATMUL_BIAS].dtype == TN_F32)
        return tn_refuse(why, TN_REFUSE_DTYPE, "bias.dtype", TN_BF16, TN_F32);
    return TN_OK;
}

tn_status cuda_blas_admit_f8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_status status = admit_f8_types(query->op, why);
    if (!status)
        status = admit_capability(row, query, why);
    if (!status)
        status = cuda_admit_alignment(query, why);
    if (!status && !lt_is_finished(query->op))
        status = admit_bias(query->op, why);
    if (!status)
        status = admit_together(query, 16, why);
    if (!status)
        status = admit_scales(query, why);
    return status ? status : lt_admit_following(row, query->op, why);
}

const tn_dtype cuda_blas_wide[] = {TN_F32, TN_F64, TN_C64, TN_C128, 0};
const tn_dtype cuda_blas_f32[] = {TN_F32, 0}, cuda_blas_f16[] = {TN_F16, 0},
               cuda_blas_half[] = {TN_BF16, TN_F16, 0}, cuda_blas_i8[] = {TN_I8, 0},
               cuda_blas_f8[] = {TN_F8_E4M3FN, TN_F8_E5M2, 0};
