#include "admit.h"

#include "../kernels/layout.h"
#include "shape.h"

static tn_status admit_capability(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_MATMUL_A].dtype;
    const int32_t needed = row->numerics & TN_NUM_ROUNDS_F32_TF32 || dtype == TN_BF16 ? 80
                           : dtype == TN_I8                                           ? 75
                                                                                      : 50;
    const tn_capability has = query->device->capability;
    const int32_t found = has.major * 10 + has.minor;
    if (found >= needed)
        return TN_OK;
    return cuda_refuse(why, TN_REFUSE_DEVICE, "capability", needed, found,
                       "capability times ten: bf16 and tf32 came with 8.0, i8 with 7.5");
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
    if (op->uses & TN_MATMUL_USES_ACC && op->as.matmul.acc != TN_F16)
        return tn_refuse(why, TN_REFUSE_DTYPE, "acc", TN_F16, op->as.matmul.acc);
    return TN_OK;
}

/* Its gelu of f64 is as exact as one of f32, and that of 16 bits is made of rounded sums (seen with 13.0). */
static tn_status admit_activation(const tn_op *op, tn_refusal *why)
{
    const int32_t act = op->as.matmul.activation;
    const bool exact = op->operand[TN_MATMUL_OUT].dtype == TN_F32;
    if (act == TN_ACT_NONE || act == TN_ACT_RELU || (act == TN_ACT_GELU_TANH && exact))
        return TN_OK;
    return cuda_refuse(why, TN_REFUSE_FEATURE, "act", TN_ACT_RELU, act,
                       "it has relu, and gelu-tanh for out of f32");
}

tn_status cuda_blas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    lt_shape shape;
    tn_status status = admit_capability(row, query, why);
    if (!status)
        status = admit_types(row, query->op, why);
    if (!status)
        status = admit_activation(query->op, why);
    if (!status)
        status = cuda_admit_alignment(query, why);
    return status ? status : lt_shape_of(query->op, &shape, why);
}

/* Its i8 products are of rows of A and columns of B that lie together, four numbers at a time. */
tn_status cuda_blas_admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { TOGETHER = 4 };
    lt_shape shape;
    tn_status status = cuda_blas_admit(row, query, why);
    if (status || (status = lt_shape_of(query->op, &shape, why)))
        return status;
    if (!shape.matrix[shape.left].turned || shape.matrix[shape.right].turned)
        return cuda_refuse(why, TN_REFUSE_STRIDE, "b.stride", 1, 0,
                           "A lies by rows and B by columns: give B transposed");
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        const lt_matrix *m = &shape.matrix[i];
        if (m->leading % TOGETHER || m->rows % TOGETHER || m->batch_stride % TOGETHER)
            return cuda_refuse(why, TN_REFUSE_SHAPE, "n, k", TOGETHER, m->leading % TOGETHER,
                               "n, k and strides are multiples of 4");
        if (query->op->operand[i].alignment < TOGETHER)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", TOGETHER,
                             query->op->operand[i].alignment);
    }
    return TN_OK;
}

const tn_dtype cuda_blas_wide[] = {TN_F32, TN_F64, TN_C64, TN_C128, 0};
const tn_dtype cuda_blas_f32[] = {TN_F32, 0}, cuda_blas_f16[] = {TN_F16, 0},
               cuda_blas_half[] = {TN_BF16, TN_F16, 0}, cuda_blas_i8[] = {TN_I8, 0};
