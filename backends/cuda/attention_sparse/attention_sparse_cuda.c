/* attention-sparse by a kernel of our own that accepts all dtypes, sizes and strides. */
#include "attention_sparse_cuda.h"

CUDA_TEXT_DECLARE(attention_sparse_args_h);
CUDA_TEXT_DECLARE(attention_sparse_cuh);
CUDA_TEXT_DECLARE(attention_sparse_cu);
const cuda_text cuda_text_of_sparse_args =
    CUDA_TEXT(attention_sparse_args_h, "attention_sparse_args.h");
const cuda_text cuda_text_of_sparse = CUDA_TEXT(attention_sparse_cuh, "attention_sparse.cuh");
static const cuda_text text = CUDA_TEXT(attention_sparse_cu, "attention_sparse.cu");
static const cuda_unit unit = {{CUDA_ATTENTION_PARTS, &cuda_text_of_attention_tile,
                                &cuda_text_of_attention_rows, &cuda_text_of_sparse_args,
                                &cuda_text_of_sparse, &text}};

typedef struct plan {
    cuda_kernel *kernel;
} plan;

static tn_status get_kernel(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_attention_options(run->op, options);
    return cuda_plan_kernel(run, &unit, "attention_sparse", options, &to->kernel, err);
}

static tn_status plan_sparse(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernel, out, out_bytes, err);
}

static tn_status admit_sparse(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { SIZE = 512, SIZE_F64 = 256 };
    const bool wide = query->op->operand[TN_ATTENTION_SPARSE_Q].dtype == TN_F64;
    const tn_status status = cuda_attention_admit_sizes(query->op, wide ? SIZE_F64 : SIZE, why);
    (void)row;
    return status ? status : cuda_sparse_admit(query, cuda_attention_tile(query->op), why);
}

/* Blocks are computed at the speed of attention_many. */
static double predict_sparse(const tn_kernel_row *row, const tn_query *query)
{
    enum { PROCESSORS = 132 };
    static const double start_us = 2.2, flops_per_us = 1.6e5; /* of a multiprocessor of an H200 */
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const int64_t tile = cuda_attention_tile(query->op);
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    const double turns = ceil(cuda_sparse_blocks(query->op, tile) / processors);
    const double flops =
        2 * (double)(at->size + at->value_size) * (double)tile * cuda_sparse_keys_seen(query->op);
    return row->overhead_us + turns * (start_us + flops / flops_per_us);
}

static tn_status run_sparse(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const int64_t tile = cuda_attention_tile(run->op);
    cuda_sparse_args args = {0};
    cuda_sparse_put(run, tile, &args);
    return cuda_plan_launch(run, made->kernel, (unsigned)cuda_sparse_blocks(run->op, tile), &args,
                            err);
}

/* The result of a row depends only on its own queries, its lists and the keys of its sequence. */
const tn_kernel_row cuda_sparse_own_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-sparse.own",
    .platform = "cuda",
    .library = "nvrtc",
    .op = TN_OP_ATTENTION_SPARSE,
    .version = 1,
    .dtypes = cuda_float_dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = CUDA_SPARSE_USES,
    .flops_per_us = 2e7,
    .bytes_per_us = 3e6,
    .overhead_us = 4,
    .alignment = CUDA_VECTOR,
    .admit = admit_sparse,
    .cost = predict_sparse,
    .plan = plan_sparse,
    .plan_release = cuda_plan_release,
    .run = run_sparse,
};
