/* Attention with few rows on tensor cores of capability 8.0 and later: the row, its plans and launches. */
#include "attention_cuda.h"
#include "decode.h"

#include "../kernels/rows.h"

CUDA_TEXT_DECLARE(mma_cuh);
CUDA_TEXT_DECLARE(decode_schedule_h);
CUDA_TEXT_DECLARE(attention_mma_cuh);
CUDA_TEXT_DECLARE(attention_decode_cu);
const cuda_text cuda_text_of_mma = CUDA_TEXT(mma_cuh, "mma.cuh");
const cuda_text cuda_text_of_decode_schedule = CUDA_TEXT(decode_schedule_h, "decode_schedule.h");
const cuda_text cuda_text_of_attention_mma = CUDA_TEXT(attention_mma_cuh, "attention_mma.cuh");
static const cuda_text text_of_kernel = CUDA_TEXT(attention_decode_cu, "attention_decode.cu");
static const cuda_unit decode_unit = {{CUDA_ATTENTION_MMA_PARTS, &text_of_kernel}};

typedef struct plan {
    decode_variant variant;
    cuda_kernel *decode, *join;
} plan;

void cuda_decode_case(const tn_op *op, char *options, cuda_case *out)
{
    const char *type = cuda_type_of(op->operand[TN_ATTENTION_Q].dtype);
    decode_variant variant;
    cuda_decode_variant_of(op, &variant);
    snprintf(options, CUDA_DECODE_OPTIONS,
             "-DIN=%s\n-DOUT=%s\n-DDTYPE=\"%s\"\n-DHEAD=%d\n-DVALUES=%d\n-DTILES=%d\n-DSLOTS=%d\n"
             "-DPAGED=%d\n-DDROPOUT=0\n-DCOMPUTED=1\n-default-device\n",
             type, cuda_type_of(op->operand[TN_ATTENTION_OUT].dtype), type, variant.size,
             variant.values, variant.tiles, variant.slots,
             (op->uses & TN_ATTENTION_USES_PAGES) != 0);
    *out = (cuda_case){&decode_unit, "attention_decode", options};
}

static tn_status get_kernels(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    char options[CUDA_DECODE_OPTIONS], joined[CUDA_ATTENTION_OPTIONS];
    cuda_case decode, join;
    cuda_decode_variant_of(run->op, &to->variant);
    cuda_decode_case(run->op, options, &decode);
    cuda_attention_join_case(run->op, joined, &join);
    tn_status status =
        cuda_plan_kernel(run, decode.unit, decode.function, decode.options, &to->decode, err);
    return status ? status
                  : cuda_plan_kernel(run, join.unit, join.function, join.options, &to->join, err);
}

static tn_status plan_decode(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

/* The workspace is for as many multiprocessors as the device's properties have; without those, keys are not split if it is
 * too small. */
static void find_shape(const tn_run *run, decode_shape *out)
{
    cuda_decode_shape_of(run->op, cuda_processors(run->platform, run->device), out);
    if (cuda_decode_partial(run->op, out) > run->workspace_bytes) {
        out->parts = 1;
        out->part = TN_PARAMS(run->op, attention)->keys;
    }
}

static tn_status run_decode(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    decode_shape shape;
    cuda_attention_args args = {0};
    find_shape(run, &shape);
    cuda_attention_put(run, &args);
    cuda_attention_put_tables(run, &args);
    args.partial = run->workspace;
    args.blocks = (int)shape.blocks;
    args.parts = (int)shape.parts;
    args.part = (int)shape.part;
    const cuda_launch launch = {.kernel = made->decode,
                                .blocks = (unsigned)(shape.lots * shape.blocks * shape.parts),
                                .threads = DECODE_WARPS * 32,
                                .shared = cuda_decode_shared(&made->variant),
                                .args = &args,
                                .stream = run->stream,
                                .overlaps = true};
    tn_status status = cuda_kernel_launch(run->platform, run->device, &launch, err);
    if (status || shape.parts == 1)
        return status;
    args.blocks = (int)shape.rows;
    const cuda_launch join = {.kernel = made->join,
                              .blocks = (unsigned)(shape.lots * shape.rows),
                              .threads = CUDA_THREADS,
                              .args = &args,
                              .stream = run->stream,
                              .overlaps = true};
    return cuda_kernel_launch(run->platform, run->device, &join, err);
}

static const tn_dtype dtypes[] = {TN_BF16, TN_F16, 0};

enum {
    USES = CUDA_ATTENTION_USES & ~TN_ATTENTION_USES_DROPOUT,
    DIMS = TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_KEYS
};

/* The number of tiles of rows depends on heads and queries, so these are not free. */
const tn_kernel_row cuda_decode_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention.decode",
    .platform = "cuda",
    .library = "nvrtc",
    .backend = "FLASH_ATTN",
    .op = TN_OP_ATTENTION,
    .version = 1,
    .dtypes = dtypes,
    .honours = USES,
    .numerics = TN_NUM_RUN_TO_RUN,
    .free_dims = DIMS,
    .flops_per_us = 6e7,
    .bytes_per_us = 3.9e6,
    .overhead_us = 2,
    .alignment = CUDA_VECTOR,
    .admit = cuda_decode_admit,
    .cost = cuda_decode_cost,
    .workspace = cuda_decode_workspace,
    .plan = plan_decode,
    .plan_release = cuda_plan_release,
    .run = run_decode,
};
