/* A row for numbers.c: products of misaligned operands, which are copied as those of cuBLASLt are, and multiplied by our
 * own kernel in the library's place. */
#include "test_rows.h"

#include "../../backends/cuda/kernels/rows.h"
#include "../../backends/cuda/lib/cublas/cublas_pad.h"
#include "../../backends/cuda/lib/cublas/cublas_shape.h"
#include "tenon/module/op/matmul.h"

typedef struct padded {
    void *product; /* the plan of our own kernel */
    tn_op op;      /* what it computes */
    lt_pad_plan pads;
} padded;

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    lt_shape shape;
    (void)row;
    const tn_status status = lt_shape_of(query->op, &shape, why);
    return status ? status : lt_admit_pads(query->op, false, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    tn_op product = *query->op;
    lt_pads pads;
    (void)row;
    lt_pad(&product, false, &pads);
    return (uint64_t)pads.bytes;
}

static void release(const tn_run *run, void *any)
{
    padded *plan = any;
    if (plan->product)
        cuda_matmul_row.plan_release(run, plan->product);
    run->host->release(run->host->self, plan);
}

static tn_status make(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    tn_run told = *run;
    lt_shape shape;
    lt_pads pads;
    padded *plan = run->host->alloc(run->host->self, sizeof *plan, _Alignof(padded));
    if (!plan)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a plan");
    memset(plan, 0, sizeof *plan);
    plan->op = *run->op;
    lt_pad(&plan->op, false, &pads);
    told.op = &plan->op;
    *out_bytes = sizeof *plan;
    tn_status status = lt_shape_of(&plan->op, &shape, NULL); /* the library can express it */
    if (!status)
        status = cuda_matmul_row.plan(&told, &plan->product, out_bytes, err);
    if (!status)
        status = lt_pad_plan_make(run, &pads, &plan->op, &plan->pads, err);
    if (status)
        release(run, plan);
    else
        *out = plan;
    return status;
}

static tn_status compute(const tn_run *run, tn_error *err)
{
    const padded *plan = run->plan;
    tn_run told = *run;
    void *data[TN_OP_OPERANDS_MAX], *out = tn_operand(run, TN_MATMUL_OUT);
    memcpy(data, run->data, (size_t)run->op->count * sizeof *data);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++)
        data[i] = lt_pad_operand(&plan->pads, i, run->workspace, data[i]);
    tn_op op = plan->op; /* with this run's factors */
    TN_PARAMS_MUTABLE(&op, matmul)->alpha = TN_PARAMS(run->op, matmul)->alpha;
    TN_PARAMS_MUTABLE(&op, matmul)->beta = TN_PARAMS(run->op, matmul)->beta;
    told.op = &op;
    told.data = data;
    told.plan = plan->product;
    tn_status status = lt_pad_before(run, &plan->pads, run->workspace, out, err);
    if (!status)
        status = cuda_matmul_row.run(&told, err);
    return status ? status : lt_pad_after(run, &plan->pads, run->workspace, out, err);
}

static const tn_dtype dtypes[] = {TN_F16, TN_BF16, 0};

const tn_kernel_row padded_row = {
    .struct_size = sizeof padded_row,
    .name = "cuda.matmul.padded",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .flops_per_us = 1,
    .bytes_per_us = 1,
    .overhead_us = 1,
    .alignment = 16,
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
