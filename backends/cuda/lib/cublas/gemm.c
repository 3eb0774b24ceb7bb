#include "gemm.h"

#include "../../kernels/layout.h"
#include "cublas_admit.h"
#include "cublas_cost.h"
#include "cublas_shape.h"

/* According to NVIDIA, some products run out of memory with less. */
enum { ROOM_LEAST = 16 << 10 };
static const char room_setting[] = "cuda.cublas_workspace_size";

/* Uses NVIDIA's recommended size. */
uint64_t cuda_gemm_room(const tn_query *query, uint64_t behind)
{
    const cuda_blas_memory memory = {
        .setting = room_setting,
        .usual = (uint64_t)(query->device->capability.major >= 9 ? 32 : 4) << 20,
        .least = ROOM_LEAST,
        .behind = behind};
    return cuda_blas_room(query, &memory);
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    (void)row;
    return cuda_gemm_room(query, 0);
}

static tn_status admit_room(const tn_query *query, tn_refusal *why)
{
    int64_t bytes = -1;
    (void)query->setting(query, room_setting, &bytes);
    if (bytes < 0 || bytes >= ROOM_LEAST)
        return TN_OK;
    return cuda_refuse(why, TN_REFUSE_SETTING, room_setting, ROOM_LEAST, bytes,
                       "with less some of its products find no memory");
}

/* Returns the number of strided batches along the outer dimensions. */
static int64_t batches_of(const tn_op *op, const lt_shape *shape)
{
    int64_t count = 1;
    for (int32_t d = 0; d < shape->outer; d++)
        count *= op->operand[TN_MATMUL_OUT].shape[d];
    return count;
}

/* cuBLAS 13.1 computes batches of real matrices with negative strides, and declines those of complex ones. */
static tn_status admit_batch_strides(const lt_shape *shape, tn_refusal *why)
{
    tn_status status = TN_OK;
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT && !status && shape->batch > 1; i++)
        if (shape->matrix[i].batch_stride < 0)
            status =
                cuda_refuse(why, TN_REFUSE_STRIDE, "batch.stride", 0, shape->matrix[i].batch_stride,
                            "a batch of complex matrices needs strides of at least 0");
    return status;
}

static tn_status admit_sizes(const tn_query *query, tn_refusal *why)
{
    lt_shape shape;
    tn_status status = lt_shape_split(query->op, &shape, why);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT && !status; i++) {
        const lt_matrix *m = &shape.matrix[i];
        const int64_t most = m->leading > m->columns ? m->leading : m->columns;
        if (most > INT32_MAX)
            status = cuda_refuse(why, TN_REFUSE_STRIDE, "stride", INT32_MAX, most,
                                 "sizes and strides of at most 2147483647");
    }
    if (!status && (query->op->operand[TN_MATMUL_A].dtype & 0xFF) == TN_DTYPE_CODE_COMPLEX)
        status = admit_batch_strides(&shape, why);
    if (!status && shape.outer > 0)
        (void)snprintf(why->text, sizeof why->text,
                       "a batch without one stride: it is %lld calls, one after another",
                       (long long)batches_of(query->op, &shape));
    return status;
}

tn_status cuda_gemm_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_status status = row->dtypes == cuda_blas_i8 ? cuda_blas_admit_int8(row, query, why)
                                                   : cuda_blas_admit_kind(row, query, why);
    if (!status)
        status = admit_sizes(query, why);
    return status ? status : admit_room(query, why);
}

static blas_math math_of(const tn_kernel_row *row)
{
    if (row->numerics & TN_NUM_ROUNDS_F32_TF32)
        return BLAS_MATH_TF32;
    return row->numerics & (TN_NUM_REDUCED_REDUCTION | TN_NUM_F16_SUMS) ? BLAS_MATH_USUAL
                                                                        : BLAS_MATH_WIDE_SUMS;
}

/* Creates the handle here, because that is not possible during a capture. */
tn_status cuda_gemm_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    cuda_scope scope;
    blas_handle handle = NULL;
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    status = cuda_blas_handle(run->library, &scope, &handle, err);
    cuda_leave(&scope);
    if (status)
        return status;
    cuda_gemm_ready *plan =
        run->host->alloc(run->host->self, sizeof *plan, _Alignof(cuda_gemm_ready));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    *plan = (cuda_gemm_ready){cuda_blas_sums_of(run->row, run->op), math_of(run->row)};
    *out = plan;
    *out_bytes = sizeof *plan;
    return TN_OK;
}

void cuda_gemm_plan_release(const tn_run *run, void *plan)
{
    run->host->release(run->host->self, plan);
}

/* Returns an operand's data at a position in the outer dimensions. */
static char *data_at(const tn_run *run, int32_t operand, const lt_place *place)
{
    return (char *)tn_operand(run, operand) +
           place->offset[operand] * cuda_bytes_of(run->op->operand[operand].dtype);
}

static lt_status multiply(const tn_run *run, const void *user, blas_handle handle,
                          const char **call)
{
    const cuda_blas *blas = run->library;
    const cuda_gemm_ready *plan = run->plan;
    const tn_matmul_op *mm = TN_PARAMS(run->op, matmul);
    const cuda_blas_factor alpha = cuda_blas_factor_of(plan->sums.scale, mm->alpha);
    const cuda_blas_factor beta = cuda_blas_factor_of(plan->sums.scale, mm->beta);
    const lt_place *place = user;
    lt_shape shape;
    (void)lt_shape_split(run->op, &shape, NULL); /* admitted before, so it cannot fail */
    const lt_matrix *l = &shape.matrix[shape.left], *r = &shape.matrix[shape.right];
    const lt_matrix *to = &shape.matrix[TN_MATMUL_OUT];
    const blas_operation of_l = l->turned ? LT_OP_T : LT_OP_N, of_r = r->turned ? LT_OP_T : LT_OP_N;
    const lt_type in = cuda_blas_type(run->op->operand[TN_MATMUL_A].dtype);
    const lt_type type = cuda_blas_type(run->op->operand[TN_MATMUL_OUT].dtype);
    const int m = (int)to->rows, n = (int)to->columns, k = (int)mm->k;
    const void *left = data_at(run, shape.left, place), *right = data_at(run, shape.right, place);
    void *out = data_at(run, TN_MATMUL_OUT, place);
    *call = shape.batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx";
    if (shape.batch == 1)
        return blas->gemm(handle, of_l, of_r, m, n, k, &alpha, left, in, (int)l->leading, right, in,
                          (int)r->leading, &beta, out, type, (int)to->leading, plan->sums.compute,
                          BLAS_ALGO_USUAL);
    return blas->gemm_batched(handle, of_l, of_r, m, n, k, &alpha, left, in, (int)l->leading,
                              l->batch_stride, right, in, (int)r->leading, r->batch_stride, &beta,
                              out, type, (int)to->leading, to->batch_stride, (int)shape.batch,
                              plan->sums.compute, BLAS_ALGO_USUAL);
}

/* Setting the stream resets a handle's workspace to its own, so the run's workspace must be set afterwards. */
static lt_status call_with_handle(const tn_run *run, blas_handle handle, cuda_gemm_multiply *queue,
                                  const void *user, const char **call)
{
    const cuda_blas *blas = run->library;
    const cuda_gemm_ready *plan = run->plan;
    *call = "cublasSetStream";
    lt_status code = blas->set_stream(handle, run->stream);
    if (!code) {
        *call = "cublasSetWorkspace";
        code = blas->set_workspace(handle, cuda_blas_room_begin(run->workspace),
                                   (size_t)cuda_blas_room_usable(run->workspace_bytes));
    }
    if (!code) {
        *call = "cublasSetMathMode";
        code = blas->set_math(handle, plan->math);
    }
    return code ? code : queue(run, user, handle, call);
}

tn_status cuda_gemm_turn(const tn_run *run, const cuda_scope *scope, cuda_gemm_multiply *queue,
                         const void *user, tn_error *err)
{
    cuda_blas *blas = run->library;
    const char *call = "";
    blas_handle handle = NULL;
    tn_status status = cuda_blas_handle(blas, scope, &handle, err);
    if (status)
        return status;
    mtx_t *turn = &blas->turn[scope->device->index];
    mtx_lock(turn);
    const lt_status code = call_with_handle(run, handle, queue, user, &call);
    mtx_unlock(turn);
    return cuda_blame(scope, cuda_blas_check("cuBLAS", code, call, err), call, err);
}

static tn_status gemm_run(const tn_run *run, tn_error *err)
{
    cuda_scope scope;
    lt_shape shape;
    lt_place place = {{0}, {0}};
    tn_status status = cuda_enter(run->platform, run->device, &scope, err);
    if (status)
        return status;
    (void)lt_shape_split(run->op, &shape, NULL);
    do
        status = cuda_gemm_turn(run, &scope, multiply, &place, err);
    while (!status && lt_place_next(run->op, &shape, &place));
    cuda_leave(&scope);
    return status;
}

/* For a batch without a single stride, each call adds its overhead. 0, for other products of aligned operands, means that
 * the row's figures apply. Products of misaligned 16-bit operands that take less than about a millisecond rank before
 * cuBLASLt's: on an H200, the first answer of its heuristics was as fast or slower. */
static double estimate_gemm(const tn_kernel_row *row, const tn_query *query)
{
    const double sooner = 1.5;
    const bool misaligned = cuda_blas_is_misaligned(query->op);
    lt_shape shape;
    if (lt_shape_split(query->op, &shape, NULL) || (shape.outer == 0 && !misaligned))
        return 0;
    return row->overhead_us * (double)batches_of(query->op, &shape) - (misaligned ? sooner : 0) +
           cuda_blas_work_us(row, query->op);
}

/* The figures are slightly lower than cuBLASLt's, so that this row ranks after it: on an H200 it mostly uses the
 * same kernels. Its calls cost more, because it selects an algorithm each time. */
#define ROW                                                                                 \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "cublas",          \
    .op = TN_OP_MATMUL, .version = 2, .bytes_per_us = 3.5e6, .overhead_us = 10.5,           \
    .alignment = CUDA_VECTOR,                                                               \
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH, \
    .admit = cuda_gemm_admit, .cost = estimate_gemm, .workspace = size_workspace,           \
    .plan = cuda_gemm_plan, .plan_release = cuda_gemm_plan_release, .run = gemm_run

const tn_kernel_row cuda_blas_matmul_row = {
    .name = "cuda.matmul.cublas",
    .dtypes = cuda_blas_wide,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS,
    .honours = BLAS_SHAPES | BLAS_FACTORS,
    .flops_per_us = 4.99e7,
    ROW,
};

const tn_kernel_row cuda_blas_tf32_row = {
    .name = "cuda.matmul.cublas.tf32",
    .dtypes = cuda_blas_f32,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_F32_TF32,
    .honours = BLAS_SHAPES | BLAS_FACTORS,
    .flops_per_us = 3.99e8,
    ROW,
};

/* beta c may be added to an already rounded product (seen with 13.1). */
const tn_kernel_row cuda_blas_half_row = {
    .name = "cuda.matmul.cublas.half",
    .dtypes = cuda_blas_half,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_PRODUCT,
    .honours = BLAS_SHAPES | BLAS_FACTORS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.49e8,
    ROW,
};

const tn_kernel_row cuda_blas_half_reduced_row = {
    .name = "cuda.matmul.cublas.half-reduced",
    .dtypes = cuda_blas_half,
    .numerics =
        TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_REDUCED_REDUCTION | TN_NUM_ROUNDS_PRODUCT,
    .honours = BLAS_SHAPES | BLAS_FACTORS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.59e8,
    ROW,
};

/* Without alpha and beta, which would be in f16. */
const tn_kernel_row cuda_blas_f16_sums_row = {
    .name = "cuda.matmul.cublas.f16-sums",
    .dtypes = cuda_blas_f16,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_F16_SUMS,
    .honours = BLAS_SHAPES | TN_MATMUL_USES_ACC,
    .flops_per_us = 7.69e8,
    ROW,
};

const tn_kernel_row cuda_blas_int8_row = {
    .name = "cuda.matmul.cublas.int8",
    .dtypes = cuda_blas_i8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = BLAS_SHAPES,
    .flops_per_us = 1.29e9,
    ROW,
};
