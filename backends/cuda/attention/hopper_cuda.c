/* Attention on Hopper's tensor cores: the row, its plans and launches. The driver makes tensor maps of Q, K and V for TMA
 * at every run. */
#include "attention_cuda.h"
#include "hopper.h"

#include "../kernels/rows.h"
#include "../platform/tile.h"

CUDA_TEXT_DECLARE(hopper_cuh);
CUDA_TEXT_DECLARE(hopper_tiles_cuh);
CUDA_TEXT_DECLARE(hopper_schedule_h);
CUDA_TEXT_DECLARE(hopper_args_h);
CUDA_TEXT_DECLARE(attention_hopper_cuh);
CUDA_TEXT_DECLARE(attention_hopper_cu);
const cuda_text cuda_text_of_hopper = CUDA_TEXT(hopper_cuh, "hopper.cuh");
const cuda_text cuda_text_of_hopper_tiles = CUDA_TEXT(hopper_tiles_cuh, "hopper_tiles.cuh");
const cuda_text cuda_text_of_hopper_schedule = CUDA_TEXT(hopper_schedule_h, "hopper_schedule.h");
const cuda_text cuda_text_of_hopper_args = CUDA_TEXT(hopper_args_h, "hopper_args.h");
const cuda_text cuda_text_of_attention_hopper =
    CUDA_TEXT(attention_hopper_cuh, "attention_hopper.cuh");
static const cuda_text text_of_kernel = CUDA_TEXT(attention_hopper_cu, "attention_hopper.cu");
static const cuda_unit hopper_unit = {{&cuda_text_of_args, &cuda_text_of_attention_args,
                                       &cuda_text_of_common, &cuda_text_of_mma, CUDA_HOPPER_PARTS,
                                       &cuda_text_of_attention_hopper, &text_of_kernel}};

typedef struct plan {
    hopper_variant variant;
    cuda_kernel *kernel;
} plan;

void cuda_hopper_options(const hopper_variant *variant, tn_dtype dtype, char *out)
{
    const char *type = cuda_type_of(dtype);
    snprintf(
        out, CUDA_HOPPER_OPTIONS,
        "-DIN=%s\n-DDTYPE=\"%s\"\n-DSIZE=%d\n-DVALUES=%d\n-DWIDTH=%d\n-DGROUPS=%d\n-DSTAGES=%d\n"
        "-DBOUNDS=%d\n-DTABLES=%d\n-DMASK=%d\n-DSCORES=%d\n-default-device\n",
        type, type, variant->size, variant->values, variant->width, variant->groups,
        variant->stages, variant->bounds, variant->tables, variant->mask, variant->scores);
}

static tn_status fill_plan(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    cuda_hopper_variant_of(run->op, &to->variant);
    tn_status status = cuda_tiles_check(run->platform, err);
    char options[CUDA_HOPPER_OPTIONS];
    cuda_hopper_options(&to->variant, run->op->operand[TN_ATTENTION_Q].dtype, options);
    return status
               ? status
               : cuda_plan_kernel(run, &hopper_unit, "attention_hopper", options, &to->kernel, err);
}

static tn_status plan_hopper(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), fill_plan, out, out_bytes, err);
}

_Static_assert(sizeof(hopper_map) == sizeof(cu_tensor_map),
               "hopper_map has the size of CUtensorMap");

static cuda_tile tile_of(const tn_run *run, int32_t operand, int rows, hopper_map *out)
{
    return (cuda_tile){.layout = &run->op->operand[operand],
                       .memory = tn_operand(run, operand),
                       .rows = rows,
                       .out = (void *)out};
}

tn_status cuda_hopper_describe(const tn_run *run, const hopper_variant *variant, hopper_args *to,
                               tn_error *err)
{
    const cuda_tile tiles[] = {tile_of(run, TN_ATTENTION_Q, cuda_hopper_rows(variant), &to->q),
                               tile_of(run, TN_ATTENTION_K, variant->width, &to->k),
                               tile_of(run, TN_ATTENTION_V, variant->width, &to->v)};
    return cuda_tiles_describe(run->platform, run->device, tiles, 3, err);
}

static const double log2_e = 1.4426950408889634;

/* Fills in everything but the tensor maps. */
static void put_args(const tn_run *run, const hopper_variant *variant, hopper_args *to)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    const int64_t mask_bytes = cuda_bytes_of(run->op->operand[TN_ATTENTION_MASK].dtype);
    cuda_attention_put(run, &to->at);
    cuda_attention_put_tables(run, &to->at);
    for (int d = 0; d < 4; d++)
        to->at.mask_stride[d] *= mask_bytes;
    to->plain = cuda_saturated_f32(at->scale * log2_e);
    to->scale = variant->scores == 2 ? cuda_saturated_f32(at->scale / at->softcap) : to->plain;
    to->cap = cuda_saturated_f32(at->softcap * log2_e);
    cuda_hopper_counts_of(run->op, variant, &to->counts);
}

static tn_status run_hopper(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const hopper_variant *variant = &made->variant;
    hopper_args args = {0};
    const int64_t found = cuda_processors(run->platform, run->device);
    put_args(run, variant, &args);
    const tn_status status = cuda_hopper_describe(run, variant, &args, err);
    if (status)
        return status;
    const int64_t blocks = (int64_t)args.counts.all_heads * args.counts.blocks;
    const cuda_launch launch = {.kernel = made->kernel,
                                .blocks = (unsigned)(found > 0 && found < blocks ? found : blocks),
                                .threads = cuda_hopper_threads(variant),
                                .shared = cuda_hopper_shared(variant),
                                .args = &args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

enum {
    USES = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |
           TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_SINKS |
           TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS |
           TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_OFFSET
};

const tn_kernel_row cuda_hopper_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention.hopper",
    .platform = "cuda",
    .library = "nvrtc",
    .backend = "FLASH_ATTN",
    .op = TN_OP_ATTENTION,
    .version = 1,
    .dtypes = dtypes,
    .honours = USES,
    .numerics = TN_NUM_RUN_TO_RUN,
    .free_dims = CUDA_ATTENTION_DIMS,
    .flops_per_us = 6.2e8,
    .bytes_per_us = 3.8e6,
    .overhead_us = 5,
    .alignment = CUDA_VECTOR,
    .admit = cuda_hopper_admit,
    .cost = cuda_hopper_cost,
    .plan = plan_hopper,
    .plan_release = cuda_plan_release,
    .run = run_hopper,
};
