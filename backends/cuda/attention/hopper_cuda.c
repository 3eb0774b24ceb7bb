/* Attention on Hopper's tensor cores: the row, its plans and launches. The driver makes tensor maps of Q, K and V for TMA
 * at every run. */
#include "attention_cuda.h"
#include "hopper.h"

#include "../kernels/rows.h"
#include "../platform/tile.h"

#include <float.h>
#include <math.h>

CUDA_TEXT_DECLARE(hopper_cuh);
CUDA_TEXT_DECLARE(hopper_schedule_h);
CUDA_TEXT_DECLARE(hopper_args_h);
CUDA_TEXT_DECLARE(attention_hopper_cu);
static const cuda_text text_of_instructions = CUDA_TEXT(hopper_cuh, "hopper.cuh");
static const cuda_text text_of_schedule = CUDA_TEXT(hopper_schedule_h, "hopper_schedule.h");
static const cuda_text text_of_args = CUDA_TEXT(hopper_args_h, "hopper_args.h");
static const cuda_text text_of_kernel = CUDA_TEXT(attention_hopper_cu, "attention_hopper.cu");
static const cuda_unit hopper_unit = {{&cuda_text_of_args, &cuda_text_of_attention_args,
                                       &cuda_text_of_common, &text_of_instructions,
                                       &text_of_schedule, &text_of_args, &text_of_kernel}};

typedef struct plan {
    hopper_variant variant;
    cuda_kernel *kernel; /* for positive scales */
} plan;

static tn_status get_kernel(const tn_run *run, const hopper_variant *variant, cuda_kernel **out,
                            tn_error *err)
{
    enum { OPTIONS = 256 };
    const bool is_f16 = run->op->operand[TN_ATTENTION_Q].dtype == TN_F16;
    const char *type = is_f16 ? "f16" : "bf16";
    char options[OPTIONS];
    snprintf(
        options, sizeof options,
        "-DIN=%s\n-DDTYPE=\"%s\"\n-DSIZE=%d\n-DVALUES=%d\n-DWIDTH=%d\n-DSTAGES=%d\n-DGROUPS=%d\n-DBOUNDS=%d\n"
        "-DTABLES=%d\n-DMASK=%d\n-DSCORES=%d\n-default-device\n",
        type, type, variant->size, variant->values, variant->width, variant->stages,
        variant->groups, variant->bounds, variant->tables, variant->mask, variant->scores);
    return cuda_plan_kernel(run, &hopper_unit, "attention_hopper", options, out, err);
}

static tn_status plan_hopper(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    void *made = NULL;
    tn_status status = cuda_plan_alloc(run, sizeof(plan), &made, out_bytes, err);
    if (status)
        return status;
    plan *to = made;
    cuda_hopper_variant_of(run->op, false, &to->variant);
    status = cuda_tiles_check(run->platform, err);
    if (!status)
        status = get_kernel(run, &to->variant, &to->kernel, err);
    if (status)
        cuda_plan_release(run, made);
    else
        *out = made;
    return status;
}

/* A map of the kernel's arguments is one of the driver's. */
_Static_assert(sizeof(hopper_map) == sizeof(cu_tensor_map), "a map is one of the driver");

static cuda_tile tile_of(const tn_run *run, int32_t operand, int rows, hopper_map *out)
{
    return (cuda_tile){.layout = &run->op->operand[operand],
                       .memory = tn_operand(run, operand),
                       .rows = rows,
                       .out = (void *)out};
}

static void put_strides(const long long *from, long long *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = from[i];
}

static const double log2_e = 1.4426950408889634;

/* The nearest finite number of f32. */
static float nearest_finite(double x)
{
    return (float)fmin(fmax(x, -(double)FLT_MAX), (double)FLT_MAX);
}

/* What the kernel multiplies products of Q and K by. */
static float factor_of(const tn_attention_op *at)
{
    return nearest_finite(at->scale * log2_e);
}

/* Fills in everything but the tensor maps. Strides of the mask are in bytes. */
static void put_args(const tn_run *run, const hopper_variant *variant, hopper_args *to)
{
    const tn_op *op = run->op;
    const tn_attention_op *at = TN_PARAMS(op, attention);
    cuda_attention_args from = {0};
    cuda_attention_put(run, &from);
    cuda_attention_put_tables(run, &from);
    to->out = from.out;
    to->lse = from.lse;
    to->mask = from.mask;
    to->sinks = from.sinks;
    to->sinks_stride = from.sinks_stride;
    to->sinks_kind = from.sinks_kind;
    to->starts_q = from.starts_q;
    to->starts_k = from.starts_k;
    to->lengths = from.lengths;
    to->all_queries = from.all_queries;
    to->all_keys = from.all_keys;
    put_strides(from.out_stride, to->out_stride, 3);
    put_strides(from.lse_stride, to->lse_stride, 3);
    for (int d = 0; d < 4; d++)
        to->mask_stride[d] =
            from.mask_stride[d] * cuda_bytes_of(op->operand[TN_ATTENTION_MASK].dtype);
    to->heads = from.heads;
    to->ratio = from.ratio;
    to->value_size = from.value_size;
    to->whole = from.whole_out;
    to->plain = factor_of(at);
    to->scale = variant->scores == 2 ? nearest_finite(at->scale / at->softcap) : to->plain;
    to->cap = nearest_finite(at->softcap * log2_e);
    cuda_hopper_counts_of(op, variant, &to->counts);
}

static tn_status launch_hopper(const tn_run *run, const hopper_variant *variant,
                               cuda_kernel *kernel, tn_error *err)
{
    hopper_args args = {0};
    const int64_t found = cuda_processors(run->platform, run->device);
    put_args(run, variant, &args);
    const cuda_tile tiles[] = {tile_of(run, TN_ATTENTION_Q, cuda_hopper_rows(variant), &args.q),
                               tile_of(run, TN_ATTENTION_K, variant->width, &args.k),
                               tile_of(run, TN_ATTENTION_V, variant->width, &args.v)};
    tn_status status = cuda_tiles_describe(run->platform, run->device, tiles, 3, err);
    if (status)
        return status;
    const int64_t blocks = (int64_t)args.counts.lots * args.counts.blocks;
    const cuda_launch launch = {.kernel = kernel,
                                .blocks = (unsigned)(found > 0 && found < blocks ? found : blocks),
                                .threads = cuda_hopper_threads(variant),
                                .shared = cuda_hopper_shared(variant),
                                .args = &args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

/* The key of plans does not contain the scale: kernels for scales that are not positive are found at the run. */
static tn_status run_hopper(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    hopper_variant variant = made->variant;
    cuda_kernel *kernel = made->kernel;
    tn_status status = TN_OK;
    if (variant.scores == 0 && !(factor_of(TN_PARAMS(run->op, attention)) > 0)) {
        cuda_hopper_variant_of(run->op, true, &variant);
        status = get_kernel(run, &variant, &kernel, err);
    }
    return status ? status : launch_hopper(run, &variant, kernel, err);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

enum {
    USES = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |
           TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_SINKS |
           TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS |
           TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_OFFSET,
    DIMS = TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS | TN_ATTENTION_DIM_QUERIES |
           TN_ATTENTION_DIM_KEYS
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
    .free_dims = DIMS,
    .flops_per_us = 6.2e8,
    .bytes_per_us = 3e6,
    .overhead_us = 5,
    .alignment = CUDA_VECTOR,
    .admit = cuda_hopper_admit,
    .cost = cuda_hopper_cost,
    .plan = plan_hopper,
    .plan_release = cuda_plan_release,
    .run = run_hopper,
};
