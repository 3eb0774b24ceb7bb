/* attention-sparse on tensor cores of capability 8.0 and later: the row, its plans and launches. */
#include "attention_sparse_cuda.h"
#include "sparse_mma.h"

CUDA_TEXT_DECLARE(sparse_schedule_h);
CUDA_TEXT_DECLARE(attention_sparse_mma_cu);
static const cuda_text text_of_schedule = CUDA_TEXT(sparse_schedule_h, "sparse_schedule.h");
static const cuda_text text_of_kernel =
    CUDA_TEXT(attention_sparse_mma_cu, "attention_sparse_mma.cu");
static const cuda_unit sparse_unit = {{CUDA_ATTENTION_MMA_PARTS, &cuda_text_of_sparse_args,
                                       &cuda_text_of_sparse, &text_of_schedule, &text_of_kernel}};

typedef struct plan {
    sparse_variant variant;
    cuda_kernel *kernel;
} plan;

void cuda_sparse_case(const tn_op *op, char *options, cuda_case *out)
{
    const char *type = cuda_type_of(op->operand[TN_ATTENTION_SPARSE_Q].dtype);
    sparse_variant variant;
    cuda_sparse_variant_of(op, &variant);
    snprintf(options, CUDA_SPARSE_OPTIONS,
             "-DIN=%s\n-DOUT=%s\n-DDTYPE=\"%s\"\n-DHEAD=%d\n-DVALUES=%d\n-DWARPS=%d\n-DTILES=%d\n"
             "-DWIDTH=%d\n-DSTAGES=%d\n-DRESIDENT=%d\n-DPOSITIVE=%d\n-DDROPOUT=0\n-DCOMPUTED=1\n"
             "-default-device\n",
             type, cuda_type_of(op->operand[TN_ATTENTION_SPARSE_OUT].dtype), type, variant.size,
             variant.values, variant.warps, variant.tiles, variant.width, variant.stages,
             variant.resident, variant.positive);
    *out = (cuda_case){&sparse_unit, "attention_sparse_mma", options};
}

static tn_status get_kernel(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    char options[CUDA_SPARSE_OPTIONS];
    cuda_case wanted;
    cuda_sparse_variant_of(run->op, &to->variant);
    cuda_sparse_case(run->op, options, &wanted);
    return cuda_plan_kernel(run, wanted.unit, wanted.function, wanted.options, &to->kernel, err);
}

static tn_status plan_sparse(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernel, out, out_bytes, err);
}

static tn_status run_sparse(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const int rows = cuda_sparse_rows(&made->variant);
    cuda_sparse_args args = {0};
    cuda_sparse_put(run, rows, &args);
    const cuda_launch launch = {.kernel = made->kernel,
                                .blocks = (unsigned)cuda_sparse_blocks(run->op, rows),
                                .threads = cuda_sparse_threads(&made->variant),
                                .shared = cuda_sparse_shared(&made->variant),
                                .args = &args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

/* The result of a row depends only on its own queries, its lists and the keys of its sequence. */
const tn_kernel_row cuda_sparse_mma_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-sparse.mma",
    .platform = "cuda",
    .library = "nvrtc",
    .op = TN_OP_ATTENTION_SPARSE,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = CUDA_SPARSE_USES,
    .flops_per_us = 2.5e8,
    .bytes_per_us = 3e6,
    .overhead_us = 4,
    .alignment = CUDA_VECTOR,
    .admit = cuda_sparse_mma_admit,
    .cost = cuda_sparse_mma_cost,
    .plan = plan_sparse,
    .plan_release = cuda_plan_release,
    .run = run_sparse,
};
