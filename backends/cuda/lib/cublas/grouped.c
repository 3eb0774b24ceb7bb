/* Products of several sizes with one call of cuBLAS. The library reads the operands' addresses on the device: they
 * are at the end of the run's workspace. */
#include "../../kernels/layout.h"
#include "../../matmul/matmul_cuda.h"
#include "cublas_admit.h"
#include "cublas_shape.h"
#include "gemm.h"

/* MOST is the maximum number of products per call: a copy of less than 64 KiB has finished reading host memory
 * when it returns. ROOM is the space for the addresses, including alignment. */
enum { MOST = 2048, ROOM = (3 * MOST + 1) * sizeof(void *) };

/* The arguments of a call, per group. */
typedef struct told {
    blas_operation of_left[MOST], of_right[MOST];
    int m[MOST], n[MOST], k[MOST], lead_left[MOST], lead_right[MOST], lead_out[MOST], one[MOST];
    double alpha[MOST], beta[MOST];  /* space for f64; with f32 only the first half is used */
    const void *addresses[3 * MOST]; /* of the left operands, the right operands, out */
    const void *const *there;        /* the same, in device memory */
    size_t count;
} told;

static tn_status admit_grouped(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { SINCE = 120500, ALIGNED = 16 };
    const tn_op *op = query->op;
    if (!TN_PARAMS(op, matmul)->grouped)
        return cuda_refuse(why, TN_REFUSE_FEATURE, "grouped", 1, 0,
                           "it is for several at once: tn_matmul_grouped");
    tn_status status = cuda_admit_groups(query, why);
    if (status)
        return status;
    if (query->library_version >= 0 && query->library_version < SINCE)
        return tn_refuse(why, TN_REFUSE_VERSION, "cuBLAS", SINCE, query->library_version);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        if (op->operand[i].alignment < ALIGNED)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, "alignment", ALIGNED,
                             op->operand[i].alignment);
    }
    return cuda_gemm_admit(row, query, why);
}

static uint64_t grouped_workspace(const tn_kernel_row *row, const tn_query *query)
{
    (void)row;
    return cuda_gemm_room(query, ROOM);
}

static void describe_group(const tn_run *run, told *to, size_t i)
{
    const tn_matmul_op *mm = TN_PARAMS(run->op, matmul);
    const lt_type scale = ((const cuda_gemm_ready *)run->plan)->sums.scale;
    const cuda_blas_factor alpha = cuda_blas_factor_of(scale, mm->alpha);
    const cuda_blas_factor beta = cuda_blas_factor_of(scale, mm->beta);
    const size_t bytes = scale == LT_R_64F ? sizeof(double) : sizeof(float);
    lt_shape shape;
    (void)lt_shape_of(run->op, &shape, NULL); /* admitted before, so it cannot fail */
    const lt_matrix *l = &shape.matrix[shape.left], *r = &shape.matrix[shape.right];
    const lt_matrix *out = &shape.matrix[TN_MATMUL_OUT];
    to->of_left[i] = l->turned ? LT_OP_T : LT_OP_N;
    to->of_right[i] = r->turned ? LT_OP_T : LT_OP_N;
    to->m[i] = (int)out->rows, to->n[i] = (int)out->columns, to->k[i] = (int)mm->k;
    to->lead_left[i] = (int)l->leading, to->lead_right[i] = (int)r->leading;
    to->lead_out[i] = (int)out->leading;
    to->one[i] = 1;
    memcpy((char *)to->alpha + i * bytes, &alpha, bytes);
    memcpy((char *)to->beta + i * bytes, &beta, bytes);
    to->addresses[i] = tn_operand(run, shape.left);
    to->addresses[to->count + i] = tn_operand(run, shape.right);
    to->addresses[2 * to->count + i] = tn_operand(run, TN_MATMUL_OUT);
}

static lt_status multiply(const tn_run *run, const void *user, blas_handle handle,
                          const char **call)
{
    const cuda_blas *blas = run->library;
    const told *t = user;
    const lt_type type = cuda_blas_type(run->op->operand[TN_MATMUL_A].dtype);
    const lt_compute compute = ((const cuda_gemm_ready *)run->plan)->sums.compute;
    *call = "cublasGemmGroupedBatchedEx";
    if (!blas->grouped)
        return LT_NOT_SUPPORTED;
    return blas->grouped(handle, t->of_left, t->of_right, t->m, t->n, t->k, t->alpha, t->there,
                         type, t->lead_left, t->there + t->count, type, t->lead_right, t->beta,
                         (void *const *)(uintptr_t)(t->there + 2 * t->count), type, t->lead_out,
                         (int)t->count, t->one, compute);
}

/* The addresses come after the library's workspace. */
static tn_status run_some(const tn_run *runs, const cuda_scope *scope, told *t, tn_error *err)
{
    tn_run first = runs[0];
    first.workspace_bytes -= ROOM;
    const uintptr_t end = (uintptr_t)first.workspace + (uintptr_t)first.workspace_bytes;
    const uintptr_t at = (end + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    for (size_t i = 0; i < t->count; i++)
        describe_group(&runs[i], t, i);
    t->there = (const void *const *)at;
    tn_status status =
        cuda_check(scope,
                   scope->self->driver.copy_in(at, (const void *)t->addresses,
                                               3 * t->count * sizeof(void *), first.stream),
                   "cuMemcpyHtoDAsync", err);
    return status ? status : cuda_gemm_turn(&first, scope, multiply, t, err);
}

/* Reports that `some` of `all` products, starting at `first`, failed together: cuBLAS does not say which
 * one it rejects. */
static tn_status report_groups(const tn_error *said, size_t first, size_t some, size_t all,
                               tn_error *err)
{
    if (some == all)
        return tn_fail(err, said->status, said->native_code, said->where, "%s", said->message);
    return tn_fail(err, said->status, said->native_code, said->where,
                   "a call for %zu of them, behind %zu: %s", some, first, said->message);
}

/* A failure concerns all products of a call; no single one is blamed unless the call has only one. */
static tn_status run_many(const tn_run *runs, size_t count, size_t *out_failed, tn_error *err)
{
    const tn_host *host = runs->host;
    cuda_scope scope;
    tn_error said = {0};
    told *t = host->alloc(host->self, sizeof *t, _Alignof(told));
    *out_failed = count;
    if (!t)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, runs->row->name, "no memory for the groups");
    tn_status status = cuda_enter(runs->platform, runs->device, &scope, err);
    if (!status) {
        for (size_t i = 0; i < count && !status; i += t->count) {
            t->count = count - i < MOST ? count - i : MOST;
            status = run_some(runs + i, &scope, t, &said);
            if (status) {
                *out_failed = t->count == 1 ? i : count;
                (void)report_groups(&said, i, t->count, count, err);
            }
        }
        cuda_leave(&scope);
    }
    host->release(host->self, t);
    return status;
}

static tn_status run_one(const tn_run *run, tn_error *err)
{
    size_t failed = 0;
    return run_many(run, 1, &failed, err);
}

/* Not yet timed on an H200: a call is expensive, but the products share its cost. */
#define ROW                                                                                    \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "cublas",             \
    .op = TN_OP_MATMUL, .version = 1, .bytes_per_us = 3e6, .overhead_us = 2,                   \
    .alignment = CUDA_VECTOR, .honours = (BLAS_SHAPES & ~TN_MATMUL_USES_BATCH) | BLAS_FACTORS, \
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K, .admit = admit_grouped,  \
    .workspace = grouped_workspace, .plan = cuda_gemm_plan,                                    \
    .plan_release = cuda_gemm_plan_release, .run = run_one, .run_many = run_many

static const tn_dtype real[] = {TN_F32, TN_F64, 0};
const tn_kernel_row cuda_blas_grouped_row = {
    .name = "cuda.matmul.cublas.grouped",
    .dtypes = real,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS,
    .flops_per_us = 4e7,
    ROW,
};

const tn_kernel_row cuda_blas_grouped_half_row = {
    .name = "cuda.matmul.cublas.grouped-half",
    .dtypes = cuda_blas_half,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_PRODUCT,
    .flops_per_us = 5e8,
    ROW,
};
