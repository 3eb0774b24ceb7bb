/* A row for numbers.c: products whose sums are made by our own kernel, in the place of a library, and finished as those of
 * cuBLASLt are. Our own kernel takes no complex numbers: a loop here makes their sums. */
#include "test_rows.h"

#include "../../backends/cuda/kernels/rows.h"
#include "../../backends/cuda/lib/cublas/cublas_after.h"
#include "../../backends/cuda/matmul/matmul_finish.h"
#include "tenon/module/op/matmul.h"

#include <complex.h>

typedef struct finished {
    void *sums; /* the plan of our own kernel; NULL for complex numbers */
    cuda_finish finish;
} finished;

tn_status cuda_kernel_beside(const tn_run *run, const cuda_case *wanted, const char *what,
                             cuda_kernel **out, tn_error *err)
{
    (void)what;
    return cuda_kernel_get(run->platform, NULL, run->device, wanted, out, err);
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    if (!lt_is_finished(query->op))
        return cuda_refuse(why, TN_REFUSE_FEATURE, "act", 1, 0, "the library has it");
    return lt_admit_following(row, query->op, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    (void)row;
    return (uint64_t)lt_sums_bytes(query->op);
}

static bool is_complex(const tn_op *op)
{
    const tn_dtype out = op->operand[TN_MATMUL_OUT].dtype;
    return out == TN_C64 || out == TN_C128;
}

static double complex element(const tn_run *run, int32_t operand, int64_t at)
{
    const void *data = tn_operand(run, operand);
    return run->op->operand[operand].dtype == TN_C64 ? ((const float complex *)data)[at]
                                                     : ((const double complex *)data)[at];
}

/* One element of out: alpha A B + beta out. `at` is where its row of A, its column of B and itself begin. */
static void multiply_complex_element(const tn_run *run, const int64_t at[3])
{
    const tn_op *op = run->op;
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const int64_t along_a = op->operand[TN_MATMUL_A].stride[mm->batch_rank + 1];
    const int64_t along_b = op->operand[TN_MATMUL_B].stride[mm->batch_rank];
    void *out = tn_operand(run, TN_MATMUL_OUT);
    double complex sum = 0;
    for (int64_t k = 0; k < mm->k; k++)
        sum += element(run, TN_MATMUL_A, at[TN_MATMUL_A] + k * along_a) *
               element(run, TN_MATMUL_B, at[TN_MATMUL_B] + k * along_b);
    sum *= mm->alpha;
    if (mm->beta != 0)
        sum += mm->beta * element(run, TN_MATMUL_OUT, at[TN_MATMUL_OUT]);
    if (op->operand[TN_MATMUL_OUT].dtype == TN_C64)
        ((float complex *)out)[at[TN_MATMUL_OUT]] = (float complex)sum;
    else
        ((double complex *)out)[at[TN_MATMUL_OUT]] = sum;
}

static void multiply_complex(const tn_run *run)
{
    const tn_op *op = run->op;
    const tn_layout *out = &op->operand[TN_MATMUL_OUT];
    const int32_t batch_rank = TN_PARAMS(op, matmul)->batch_rank;
    int64_t count = 1;
    for (int32_t d = 0; d < out->rank; d++)
        count *= out->shape[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t at[3] = {0, 0, 0}, left = i;
        for (int32_t d = out->rank - 1; d >= 0; d--) {
            const int64_t here = left % out->shape[d];
            left /= out->shape[d];
            if (d != batch_rank + 1)
                at[TN_MATMUL_A] += here * op->operand[TN_MATMUL_A].stride[d];
            if (d != batch_rank)
                at[TN_MATMUL_B] += here * op->operand[TN_MATMUL_B].stride[d];
            at[TN_MATMUL_OUT] += here * out->stride[d];
        }
        multiply_complex_element(run, at);
    }
}

static void release(const tn_run *run, void *any)
{
    finished *plan = any;
    if (plan->sums)
        cuda_matmul_row.plan_release(run, plan->sums);
    run->host->release(run->host->self, plan);
}

static tn_status make(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    tn_run told = *run;
    tn_op product;
    finished *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(finished));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    lt_sums_of(run->op, &product);
    told.op = &product;
    *out_bytes = sizeof *plan;
    tn_status status =
        is_complex(run->op) ? TN_OK : cuda_matmul_row.plan(&told, &plan->sums, out_bytes, err);
    if (!status)
        status = cuda_finish_plan(run, &product.operand[TN_MATMUL_OUT], &plan->finish, err);
    if (status)
        release(run, plan);
    else
        *out = plan;
    return status;
}

static tn_status compute(const tn_run *run, tn_error *err)
{
    const finished *plan = run->plan;
    tn_run told = *run;
    tn_op product;
    void *data[TN_OP_OPERANDS_MAX];
    lt_sums_of(run->op, &product);
    memcpy(data, run->data, (size_t)run->op->count * sizeof *data);
    if (lt_sums_bytes(run->op) > 0)
        data[TN_MATMUL_OUT] = run->workspace;
    data[TN_MATMUL_BIAS] = NULL;
    told.op = &product;
    told.data = data;
    told.plan = plan->sums;
    tn_status status = TN_OK;
    if (is_complex(run->op))
        multiply_complex(&told);
    else
        status = cuda_matmul_row.run(&told, err);
    return status ? status : cuda_finish_run(run, &plan->finish, data[TN_MATMUL_OUT], err);
}

static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16, TN_C64, TN_C128, 0};

const tn_kernel_row finished_row = {
    .struct_size = sizeof finished_row,
    .name = "cuda.matmul.finished",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .flops_per_us = 1,
    .bytes_per_us = 1,
    .overhead_us = 1,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |
               TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION | TN_MATMUL_USES_OUT_DTYPE,
    .admit = admit,
    .workspace = workspace,
    .plan = make,
    .plan_release = release,
    .run = compute,
};
