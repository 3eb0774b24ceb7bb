/* Backward pass of attention on tensor cores of capability 8.0 and later: the row, its plans and launches. */
#include "../attention/attention_cuda.h"
#include "attention_backward_cuda.h"
#include "backward_mma.h"
#include "tenon/module/op/attention_backward.h"

CUDA_TEXT_DECLARE(backward_schedule_h);
CUDA_TEXT_DECLARE(attention_backward_states_cuh);
CUDA_TEXT_DECLARE(attention_backward_mma_cu);
static const cuda_text text_of_schedule = CUDA_TEXT(backward_schedule_h, "backward_schedule.h");
const cuda_text cuda_text_of_gradient_states =
    CUDA_TEXT(attention_backward_states_cuh, "attention_backward_states.cuh");
static const cuda_text text_of_kernel =
    CUDA_TEXT(attention_backward_mma_cu, "attention_backward_mma.cu");
static const cuda_unit backward_unit = {{CUDA_ATTENTION_MMA_PARTS, &cuda_text_of_gradient_args,
                                         &cuda_text_of_gradient_states, &text_of_schedule,
                                         &text_of_kernel}};

void cuda_backward_case(const tn_op *op, backward_part part, char *options, cuda_case *out)
{
    const char *type = cuda_type_of(op->operand[TN_ATTENTION_BACKWARD_Q].dtype);
    backward_variant variant;
    cuda_backward_variant_of(op, part, &variant);
    snprintf(options, CUDA_BACKWARD_OPTIONS,
             "-DIN=%s\n-DDTYPE=\"%s\"\n-DOF_KEYS=%d\n-DADD_X=%d\n-DADD_Y=%d\n-DHEAD=%d\n"
             "-DVALUES=%d\n-DWARPS=%d\n-DWIDTH=%d\n-DHELD=%d\n"
             "-DRESIDENT=%d\n-DDROPOUT=%d\n-DCOMPUTED=1\n-default-device\n",
             type, type, part != BACKWARD_DQ, part != BACKWARD_DV,
             part == BACKWARD_DK_DV || part == BACKWARD_DV, variant.size, variant.values,
             variant.warps, variant.width, variant.held, variant.resident,
             (op->uses & TN_ATTENTION_USES_DROPOUT) != 0);
    *out = (cuda_case){&backward_unit, "attention_backward_mma", options};
}

typedef struct plan {
    cuda_kernel *kernels[BACKWARD_PARTS]; /* NULL: the problem does not have it */
} plan;

static tn_status get_kernels(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    tn_status status = TN_OK;
    for (int part = 0; !status && part < BACKWARD_PARTS; part++) {
        char options[CUDA_BACKWARD_OPTIONS];
        cuda_case wanted;
        if (!cuda_backward_has(run->op, (backward_part)part))
            continue;
        cuda_backward_case(run->op, (backward_part)part, options, &wanted);
        status = cuda_plan_kernel(run, wanted.unit, wanted.function, wanted.options,
                                  &to->kernels[part], err);
    }
    return status;
}

static tn_status plan_gradients(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

static tn_status launch(const tn_run *run, backward_part part, const backward_shape *shape,
                        cuda_gradient_args *args, tn_error *err)
{
    const plan *made = run->plan;
    const int64_t blocks = part == BACKWARD_DQ ? shape->row_blocks : shape->key_blocks;
    backward_variant variant;
    cuda_backward_variant_of(run->op, part, &variant);
    const cuda_launch launch = {.kernel = made->kernels[part],
                                .blocks = (unsigned)(shape->lots * blocks),
                                .threads = cuda_backward_threads(&variant),
                                .shared = cuda_backward_shared(&variant),
                                .args = args,
                                .stream = run->stream};
    return cuda_kernel_launch(run->platform, run->device, &launch, err);
}

static tn_status run_gradients(const tn_run *run, tn_error *err)
{
    static const double log2_e = 1.4426950408889634;
    const plan *made = run->plan;
    tn_status status = TN_OK;
    cuda_gradient_args args = {0};
    backward_shape shape;
    cuda_backward_shape_of(run->op, &shape);
    cuda_attention_put(run, &args.of);
    cuda_gradients_put(run, &args);
    args.of.blocks = (int)shape.row_blocks;
    args.key_blocks = (int)shape.key_blocks;
    args.padded_rows = (int)shape.padded_rows;
    args.log2_scale = cuda_saturated_f32(TN_PARAMS(run->op, attention)->scale * log2_e);
    for (int part = 0; !status && part < BACKWARD_PARTS; part++) {
        if (made->kernels[part])
            status = launch(run, (backward_part)part, &shape, &args, err);
    }
    return status;
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

/* The result of a row or a key depends only on its own sequence. */
const tn_kernel_row cuda_backward_mma_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-backward.mma",
    .platform = "cuda",
    .library = "nvrtc",
    .backend = "FLASH_ATTN",
    .op = TN_OP_ATTENTION_BACKWARD,
    .version = 1,
    .alignment = CUDA_VECTOR,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = CUDA_GRADIENT_USES,
    .free_dims = CUDA_ATTENTION_DIMS,
    .flops_per_us = 1.5e8,
    .bytes_per_us = 3e6,
    .overhead_us = 8,
    .admit = cuda_backward_admit,
    .cost = cuda_backward_cost,
    .workspace = cuda_backward_workspace,
    .plan = plan_gradients,
    .plan_release = cuda_plan_release,
    .run = run_gradients,
};
