/* What cuBLASLt is asked to compute: a row for each kind of numbers, as each has a speed and a rounding of
 * its own. The three figures are of an H200. */
#include "../kernels/layout.h"
#include "matmul.h"
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

static tn_status admit_types(const tn_op *op, tn_refusal *why)
{
    const tn_dtype a = op->operand[TN_MATMUL_A].dtype, b = op->operand[TN_MATMUL_B].dtype;
    const tn_dtype out = op->operand[TN_MATMUL_OUT].dtype;
    const bool narrow = a == TN_F16 || a == TN_BF16;
    const tn_dtype usual = a == TN_I8 ? TN_I32 : a;
    if (b != a)
        return tn_refuse(why, TN_REFUSE_DTYPE, "b.dtype", a, b);
    if (out != usual && !(narrow && out == TN_F32))
        return tn_refuse(why, TN_REFUSE_DTYPE, "out.dtype", usual, out);
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

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    lt_shape shape;
    tn_status status = admit_capability(row, query, why);
    if (!status)
        status = admit_types(query->op, why);
    if (!status)
        status = admit_activation(query->op, why);
    if (!status)
        status = cuda_admit_alignment(query, why);
    return status ? status : lt_shape_of(query->op, &shape, why);
}

/* Its i8 products are of rows of A and columns of B that lie together, four numbers at a time. */
static tn_status admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { TOGETHER = 4 };
    lt_shape shape;
    tn_status status = admit(row, query, why);
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

static const tn_dtype wide[] = {TN_F32, TN_F64, TN_C64, TN_C128, 0};
static const tn_dtype f32[] = {TN_F32, 0}, half[] = {TN_BF16, TN_F16, 0}, i8[] = {TN_I8, 0};

enum {
    SHAPES_OF_ALL = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
                    TN_MATMUL_USES_STRIDES,
    FACTORS = TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA,
    AFTER_SUMS = TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION
};

#define ROW                                                                          \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "cublaslt", \
    .op = TN_OP_MATMUL, .version = 1, .bytes_per_us = 3.5e6, .overhead_us = 5,       \
    .workspace = lt_workspace, .plan = lt_plan, .plan_release = lt_plan_release, .run = lt_run

const tn_kernel_row cuda_lt_matmul_row = {
    .name = "cuda.matmul.cublaslt",
    .dtypes = wide,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | FACTORS | AFTER_SUMS,
    .flops_per_us = 5e7,
    .admit = admit,
    ROW,
};

const tn_kernel_row cuda_lt_tf32_row = {
    .name = "cuda.matmul.cublaslt.tf32",
    .dtypes = f32,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_ROUNDS_F32_TF32,
    .honours = SHAPES_OF_ALL | FACTORS | AFTER_SUMS,
    .flops_per_us = 4e8,
    .admit = admit,
    ROW,
};

const tn_kernel_row cuda_lt_half_row = {
    .name = "cuda.matmul.cublaslt.half",
    .dtypes = half,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = SHAPES_OF_ALL | FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.5e8,
    .admit = admit,
    ROW,
};

/* Parts of a sum may be put together in out's dtype. */
const tn_kernel_row cuda_lt_half_reduced_row = {
    .name = "cuda.matmul.cublaslt.half-reduced",
    .dtypes = half,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_REDUCED_REDUCTION,
    .honours = SHAPES_OF_ALL | FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.6e8,
    .admit = admit,
    ROW,
};

const tn_kernel_row cuda_lt_int8_row = {
    .name = "cuda.matmul.cublaslt.int8",
    .dtypes = i8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = SHAPES_OF_ALL,
    .flops_per_us = 1.3e9,
    .admit = admit_int8,
    ROW,
};
