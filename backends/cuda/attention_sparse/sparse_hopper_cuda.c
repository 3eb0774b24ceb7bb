/* attention-sparse on Hopper's tensor cores: the row, its plans and launches. The driver makes tensor maps of Q, K and V for TMA at
 * every run. */
#include "sparse_hopper.h"

#include "../platform/tile.h"

CUDA_TEXT_DECLARE(sparse_hopper_schedule_h);
CUDA_TEXT_DECLARE(sparse_hopper_args_h);
CUDA_TEXT_DECLARE(attention_sparse_hopper_cu);
static const cuda_text text_of_schedule =
    CUDA_TEXT(sparse_hopper_schedule_h, "sparse_hopper_schedule.h");
static const cuda_text text_of_args = CUDA_TEXT(sparse_hopper_args_h, "sparse_hopper_args.h");
static const cuda_text text_of_kernel =
    CUDA_TEXT(attention_sparse_hopper_cu, "attention_sparse_hopper.cu");
static const cuda_unit hopper_unit = {
    {&cuda_text_of_args, &cuda_text_of_attention_args, &cuda_text_of_common,
     &cuda_text_of_functions, &cuda_text_of_block, &cuda_text_of_attention, &cuda_text_of_mma,
     CUDA_HOPPER_PARTS, &cuda_text_of_attention_hopper, &cuda_text_of_sparse_args,
     &cuda_text_of_sparse, &text_of_schedule, &text_of_args, &text_of_kernel}};

typedef struct plan {
    hopper_variant variant;
    cuda_kernel *kernel;
} plan;

void cuda_sparse_hopper_case(const tn_op *op, char *options, cuda_case *out)
{
    const tn_dtype dtype = op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    hopper_variant variant;
    cuda_sparse_hopper_variant_of(op, &variant);
    cuda_hopper_options(&variant, dtype, options);
    const size_t used = strlen(options);
    snprintf(options + used, CUDA_SPARSE_HOPPER_OPTIONS - used, "-DOUT=%s\n-DDROPOUT=0\n",
             cuda_type_of(dtype));
    *out = (cuda_case){&hopper_unit, "attention_sparse_hopper", options};
}

static tn_status fill_plan(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    char options[CUDA_SPARSE_HOPPER_OPTIONS];
    cuda_case wanted;
    const tn_status status = cuda_tiles_check(run->platform, err);
    if (status)
        return status;
    cuda_sparse_hopper_variant_of(run->op, &to->variant);
    cuda_sparse_hopper_case(run->op, options, &wanted);
    return cuda_plan_kernel(run, wanted.unit, wanted.function, wanted.options, &to->kernel, err);
}

static tn_status plan_sparse(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), fill_plan, out, out_bytes, err);
}

/* Fills in everything but the tensor maps. */
static void put_args(const tn_run *run, const hopper_variant *variant, sparse_hopper_args *to)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    cuda_sparse_put(run, cuda_hopper_rows(variant), &to->list);
    to->of.at = to->list.of;
    to->of.scale = to->list.log2_scale;
    to->of.counts.all_heads = (int)(at->batch * at->heads);
    to->of.counts.blocks = to->list.query_blocks * to->list.tiles;
    to->of.counts.sorted = 1; /* dealt forth and back, as lists may grow along the queries */
}

static tn_status run_sparse(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const hopper_variant *variant = &made->variant;
    const int64_t found = cuda_processors(run->platform, run->device);
    sparse_hopper_args args = {0};
    put_args(run, variant, &args);
    const tn_status status = cuda_hopper_describe(run, variant, &args.of, err);
    if (status)
        return status;
    const int64_t blocks = (int64_t)args.of.counts.all_heads * args.of.counts.blocks;
    const int64_t most = found * cuda_sparse_hopper_resident(variant);
    const cuda_launch launch = {.kernel = made->kernel,
                                .blocks = (unsigned)(most > 0 && most < blocks ? most : blocks),
                                .threads = cuda_hopper_threads(variant),
                                .shared = cuda_sparse_hopper_shared(variant),
                                .args = &args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

enum {
    USES = TN_ATTENTION_SPARSE_USES_MASK | TN_ATTENTION_SPARSE_USES_LISTS |
           TN_ATTENTION_SPARSE_USES_SIZES | TN_ATTENTION_SPARSE_USES_GROUPS |
           TN_ATTENTION_SPARSE_USES_LSE | TN_ATTENTION_SPARSE_USES_VALUE_SIZE
};

/* The result of a row depends only on its own queries, its lists and the keys of its sequence. */
const tn_kernel_row cuda_sparse_hopper_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-sparse.hopper",
    .platform = "cuda",
    .library = "nvrtc",
    .op = TN_OP_ATTENTION_SPARSE,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = USES,
    .flops_per_us = 6.2e8,
    .bytes_per_us = 3.8e6,
    .overhead_us = 5,
    .alignment = CUDA_VECTOR,
    .admit = cuda_sparse_hopper_admit,
    .cost = cuda_sparse_hopper_cost,
    .plan = plan_sparse,
    .plan_release = cuda_plan_release,
    .run = run_sparse,
};
