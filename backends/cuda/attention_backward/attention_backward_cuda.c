/* Backward pass of attention by our own kernels, for what cuDNN does not support: f32 and f64, dropout, masks, any
 * head size, any strides. One plan serves every length. */
#include "attention_backward_cuda.h"
#include "tenon/module/op/attention_backward.h"

CUDA_TEXT_DECLARE(attention_backward_args_h);
CUDA_TEXT_DECLARE(attention_backward_cu);
const cuda_text cuda_text_of_gradient_args =
    CUDA_TEXT(attention_backward_args_h, "attention_backward_args.h");
static const cuda_text text = CUDA_TEXT(attention_backward_cu, "attention_backward.cu");
static const cuda_unit unit = {
    {CUDA_ATTENTION_PARTS, &cuda_text_of_attention_tile, &cuda_text_of_gradient_args, &text}};

typedef struct plan {
    cuda_kernel *dq;
    cuda_kernel *dkv;
} plan;

static tn_status get_kernels(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_attention_options(run->op, options);
    tn_status status = cuda_plan_kernel(run, &unit, "attention_dq", options, &to->dq, err);
    return status ? status : cuda_plan_kernel(run, &unit, "attention_dkv", options, &to->dkv, err);
}

static tn_status plan_gradients(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

/* For each row, the dot product of out and its gradient. */
static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const bool wide = query->op->operand[TN_ATTENTION_Q].dtype == TN_F64;
    (void)row;
    return (uint64_t)at->batch * (uint64_t)at->heads * (uint64_t)at->queries *
           (wide ? sizeof(double) : sizeof(float));
}

static int64_t blocks_of(const tn_op *op, int64_t rows)
{
    const int64_t tile = cuda_attention_tile(op);
    return (rows + tile - 1) / tile;
}

/* The number of groups, and the blocks of rows and of keys per group. */
typedef struct shape {
    int64_t lots, rows, keys;
} shape;

static shape shape_of(const tn_op *op)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t ratio = at->groups > 0 ? at->heads / at->groups : 0;
    return (shape){at->batch * at->groups, blocks_of(op, at->queries * ratio),
                   blocks_of(op, at->keys)};
}

static tn_status admit_gradients(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    enum { SIZE = 256, BLOCKS_MOST = 1 << 30 };
    tn_status status = cuda_attention_admit_sizes(query->op, SIZE, why);
    (void)row;
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    if (!status)
        status = cuda_attention_admit_counts(query->op, why);
    if (status)
        return status;
    const shape s = shape_of(query->op);
    const double blocks = (double)s.lots * (double)(s.rows > s.keys ? s.rows : s.keys);
    return blocks <= BLOCKS_MOST ? cuda_admit_alignment(query, why)
                                 : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", BLOCKS_MOST,
                                               (int64_t)blocks, "split queries or the batch");
}

void cuda_gradients_put(const tn_run *run, cuda_gradient_args *to)
{
    const tn_layout *of = run->op->operand;
    to->dout = tn_operand(run, TN_ATTENTION_BACKWARD_DOUT);
    to->dq = tn_operand(run, TN_ATTENTION_BACKWARD_DQ);
    to->dk = tn_operand(run, TN_ATTENTION_BACKWARD_DK);
    to->dv = tn_operand(run, TN_ATTENTION_BACKWARD_DV);
    to->delta = run->workspace;
    to->whole_dout = cuda_attention_is_whole(&of[TN_ATTENTION_BACKWARD_DOUT]);
    to->whole_dq = cuda_attention_is_whole(&of[TN_ATTENTION_BACKWARD_DQ]);
    to->whole_dk = cuda_attention_is_whole(&of[TN_ATTENTION_BACKWARD_DK]);
    to->whole_dv = cuda_attention_is_whole(&of[TN_ATTENTION_BACKWARD_DV]);
    cuda_attention_put_strides(&of[TN_ATTENTION_BACKWARD_DOUT], to->dout_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_BACKWARD_DQ], to->dq_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_BACKWARD_DK], to->dk_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_BACKWARD_DV], to->dv_stride);
}

static tn_status run_gradients(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    const shape s = shape_of(run->op);
    cuda_gradient_args args = {0};
    tn_status status = TN_OK;
    cuda_attention_put(run, &args.of);
    cuda_gradients_put(run, &args);
    args.of.blocks = (int)s.rows;
    args.key_blocks = (int)s.keys;
    if (s.rows > 0)
        status = cuda_plan_launch(run, made->dq, (unsigned)(s.lots * s.rows), &args, err);
    if (!status && s.keys > 0)
        status = cuda_plan_launch(run, made->dkv, (unsigned)(s.lots * s.keys), &args, err);
    return status;
}

/* The result of a row or a key depends only on its own sequence. */
const tn_kernel_row cuda_attention_backward_row = {
    .struct_size = sizeof(tn_kernel_row),
    .name = "cuda.attention-backward.own",
    .platform = "cuda",
    .library = "nvrtc",
    .backend = "mem_efficient",
    .op = TN_OP_ATTENTION_BACKWARD,
    .version = 1,
    .alignment = CUDA_VECTOR,
    .dtypes = cuda_float_dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours = CUDA_GRADIENT_USES,
    .free_dims = CUDA_ATTENTION_DIMS,
    .flops_per_us = 1e7,
    .bytes_per_us = 3e6,
    .overhead_us = 8,
    .admit = admit_gradients,
    .workspace = size_workspace,
    .plan = plan_gradients,
    .plan_release = cuda_plan_release,
    .run = run_gradients,
};
