/* Gradients of attention on Hopper's tensor cores: the row, its plans and launches. The driver makes tensor maps of Q, K, V and
 * dOut for TMA at every run. */
#include "../attention/attention_cuda.h"
#include "../platform/tile.h"
#include "attention_backward_cuda.h"
#include "backward_hopper.h"
#include "tenon/module/op/attention_backward.h"

CUDA_TEXT_DECLARE(backward_hopper_schedule_h);
CUDA_TEXT_DECLARE(backward_hopper_args_h);
CUDA_TEXT_DECLARE(backward_hopper_cuh);
CUDA_TEXT_DECLARE(attention_backward_states_cu);
CUDA_TEXT_DECLARE(attention_backward_hopper_keys_cu);
CUDA_TEXT_DECLARE(attention_backward_hopper_queries_cu);
static const cuda_text text_of_schedule =
    CUDA_TEXT(backward_hopper_schedule_h, "backward_hopper_schedule.h");
static const cuda_text text_of_args = CUDA_TEXT(backward_hopper_args_h, "backward_hopper_args.h");
static const cuda_text text_of_tiles = CUDA_TEXT(backward_hopper_cuh, "backward_hopper.cuh");
static const cuda_text text_of_states =
    CUDA_TEXT(attention_backward_states_cu, "attention_backward_states.cu");
static const cuda_text text_of_keys =
    CUDA_TEXT(attention_backward_hopper_keys_cu, "attention_backward_hopper_keys.cu");
static const cuda_text text_of_queries =
    CUDA_TEXT(attention_backward_hopper_queries_cu, "attention_backward_hopper_queries.cu");

#define HOPPER_PARTS                                                                           \
    &cuda_text_of_args, &cuda_text_of_attention_args, &cuda_text_of_common, &cuda_text_of_mma, \
        CUDA_HOPPER_PARTS, &cuda_text_of_gradient_args, &text_of_schedule, &text_of_args,      \
        &text_of_tiles
static const cuda_unit states_unit = {
    {CUDA_ATTENTION_PARTS, &cuda_text_of_hopper_schedule, &cuda_text_of_hopper_args,
     &cuda_text_of_gradient_args, &text_of_args, &cuda_text_of_gradient_states, &text_of_states}};
static const cuda_unit keys_unit = {{HOPPER_PARTS, &text_of_keys}};
static const cuda_unit queries_unit = {{HOPPER_PARTS, &text_of_queries}};

void cuda_backward_hopper_case(const tn_op *op, backward_hopper_part part, char *options,
                               cuda_case *out)
{
    static const struct {
        const cuda_unit *unit;
        const char *function, *shared; /* what has the bytes of shared memory */
    } kernels[BACKWARD_HOPPER_PARTS] = {
        [BACKWARD_HOPPER_STATES] = {&states_unit, "attention_backward_states", "STATES_SHARED"},
        [BACKWARD_HOPPER_KEYS] = {&keys_unit, "backward_hopper_keys", "KEYS_SHARED"},
        [BACKWARD_HOPPER_QUERIES] = {&queries_unit, "backward_hopper_queries", "QUERIES_SHARED"}};
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const char *type = cuda_type_of(op->operand[TN_ATTENTION_BACKWARD_Q].dtype);
    snprintf(options, CUDA_BACKWARD_HOPPER_OPTIONS,
             "-DIN=%s\n-DDTYPE=\"%s\"\n-DHEAD=%d\n-DVALUES=%d\n-D%s=%u\n-DDROPOUT=0\n"
             "-DCOMPUTED=1\n-default-device\n",
             type, type, (int)at->size, (int)at->value_size, kernels[part].shared,
             cuda_backward_hopper_shared(op, part));
    *out = (cuda_case){kernels[part].unit, kernels[part].function, options};
}

typedef struct plan {
    cuda_kernel *kernels[BACKWARD_HOPPER_PARTS];
} plan;

static tn_status get_kernels(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    tn_status status = cuda_tiles_check(run->platform, err);
    for (int part = 0; !status && part < BACKWARD_HOPPER_PARTS; part++) {
        char options[CUDA_BACKWARD_HOPPER_OPTIONS];
        cuda_case wanted;
        cuda_backward_hopper_case(run->op, (backward_hopper_part)part, options, &wanted);
        status = cuda_plan_kernel(run, wanted.unit, wanted.function, wanted.options,
                                  &to->kernels[part], err);
    }
    return status;
}

static tn_status plan_gradients(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

static cuda_tile tile_of(const tn_run *run, int32_t operand, hopper_map *out)
{
    return (cuda_tile){.layout = &run->op->operand[operand],
                       .memory = tn_operand(run, operand),
                       .rows = SLOPE_TILE,
                       .out = (void *)out};
}

static int64_t bound_of(int64_t bound)
{
    return bound < 0 || bound > HOPPER_FAR ? HOPPER_FAR : bound;
}

/* Fills in everything but the tensor maps and the section. */
static void put_args(const tn_run *run, const backward_hopper_shape *shape,
                     backward_hopper_args *to)
{
    static const double log2_e = 1.4426950408889634;
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    unsigned char *workspace = run->workspace;
    cuda_attention_put(run, &to->at.of);
    cuda_gradients_put(run, &to->at);
    to->at.log2_scale = cuda_saturated_f32(at->scale * log2_e);
    to->counts = (hopper_counts){.queries = (int)at->queries,
                                 .keys = (int)at->keys,
                                 .left = (int)bound_of(at->left),
                                 .right = (int)bound_of(at->right),
                                 .shift = (int)at->shift,
                                 .bottom = at->corner == TN_CORNER_BOTTOM_RIGHT};
    to->lse = (float *)(void *)workspace;
    to->delta = (float *)(void *)(workspace + shape->states_bytes);
    to->slopes = (unsigned short *)(void *)(workspace + 2 * shape->states_bytes);
    to->partial = (float *)(void *)(workspace + 2 * shape->states_bytes + shape->slopes_bytes);
    to->padded = shape->tiles * SLOPE_TILE;
    to->tiles = (int)shape->tiles;
    to->row_blocks = (int)shape->row_blocks;
}

static tn_status launch(const tn_run *run, backward_hopper_part part, int64_t blocks,
                        backward_hopper_args *args, tn_error *err)
{
    const plan *made = run->plan;
    const cuda_launch launch = {.kernel = made->kernels[part],
                                .blocks = (unsigned)blocks,
                                .threads = cuda_backward_hopper_threads(part),
                                .shared = cuda_backward_hopper_shared(run->op, part),
                                .args = args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

static tn_status launch_section(const tn_run *run, const backward_hopper_shape *shape,
                                int64_t number, backward_hopper_args *args, tn_error *err)
{
    const backward_hopper_section section = cuda_backward_hopper_section(shape, number);
    args->lot = (int)section.lot;
    args->first_block = (int)section.block;
    args->blocks = (int)section.blocks;
    args->resumes = section.block > 0;
    args->continues = section.block + section.blocks < shape->all_blocks;
    tn_status status = launch(run, BACKWARD_HOPPER_KEYS, section.lots * section.blocks, args, err);
    return status ? status
                  : launch(run, BACKWARD_HOPPER_QUERIES,
                           section.lots * args->at.of.ratio * shape->row_blocks, args, err);
}

static tn_status run_gradients(const tn_run *run, tn_error *err)
{
    enum { STATE_ROWS = 32 }; /* per block */
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    backward_hopper_args args = {0};
    backward_hopper_shape shape;
    const cuda_tile tiles[] = {tile_of(run, TN_ATTENTION_BACKWARD_Q, &args.q),
                               tile_of(run, TN_ATTENTION_BACKWARD_K, &args.k),
                               tile_of(run, TN_ATTENTION_BACKWARD_V, &args.v),
                               tile_of(run, TN_ATTENTION_BACKWARD_DOUT, &args.dout)};
    cuda_backward_hopper_shape_of(run->op, &shape);
    put_args(run, &shape, &args);
    tn_status status =
        cuda_tiles_describe(run->platform, run->device, tiles, sizeof tiles / sizeof tiles[0], err);
    if (!status)
        status =
            launch(run, BACKWARD_HOPPER_STATES,
                   at->batch * at->heads * shape.tiles * (SLOPE_TILE / STATE_ROWS), &args, err);
    const int64_t sections = cuda_backward_hopper_sections(&shape);
    for (int64_t number = 0; !status && number < sections; number++)
        status = launch_section(run, &shape, number, &args, err);
    return status;
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

enum {
    USES = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_LSE |
           TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OFFSET
};

/* The result of a row or a key depends only on its own sequence: sums are kept in f32 between sections. */
const tn_kernel_row cuda_backward_hopper_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-backward.hopper",
    .platform = "cuda",
    .library = "nvrtc",
    .backend = "FLASH_ATTN",
    .op = TN_OP_ATTENTION_BACKWARD,
    .version = 1,
    .alignment = CUDA_VECTOR,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = USES,
    .free_dims = CUDA_ATTENTION_DIMS,
    .flops_per_us = 5e8,
    .bytes_per_us = 3.6e6,
    .overhead_us = 12,
    .admit = cuda_backward_hopper_admit,
    .cost = cuda_backward_hopper_cost,
    .workspace = cuda_backward_hopper_workspace,
    .plan = plan_gradients,
    .plan_release = cuda_plan_release,
    .run = run_gradients,
};
