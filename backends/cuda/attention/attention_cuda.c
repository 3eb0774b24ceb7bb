/* Attention by kernels of our own, which accept any strides and lengths. Each run decides which kernel is used and
 * into how many parts the keys are split; one plan contains all kernels. */
#include "attention_cuda.h"

#include "../kernels/rows.h"
#include "attention_dropout.h"

#include <math.h>

CUDA_TEXT_DECLARE(attention_args_h);
CUDA_TEXT_DECLARE(attention_cuh);
CUDA_TEXT_DECLARE(attention_tile_cuh);
CUDA_TEXT_DECLARE(attention_rows_cuh);
CUDA_TEXT_DECLARE(attention_cu);
CUDA_TEXT_DECLARE(attention_few_cu);
CUDA_TEXT_DECLARE(attention_join_cu);
CUDA_TEXT_DECLARE(attention_empty_cu);
const cuda_text cuda_text_of_attention_args = CUDA_TEXT(attention_args_h, "attention_args.h");
const cuda_text cuda_text_of_attention = CUDA_TEXT(attention_cuh, "attention.cuh");
const cuda_text cuda_text_of_attention_tile = CUDA_TEXT(attention_tile_cuh, "attention_tile.cuh");
const cuda_text cuda_text_of_attention_rows = CUDA_TEXT(attention_rows_cuh, "attention_rows.cuh");
static const cuda_text text_of_many = CUDA_TEXT(attention_cu, "attention.cu");
static const cuda_text text_of_few = CUDA_TEXT(attention_few_cu, "attention_few.cu");
static const cuda_text text_of_join = CUDA_TEXT(attention_join_cu, "attention_join.cu");
static const cuda_text text_of_empty = CUDA_TEXT(attention_empty_cu, "attention_empty.cu");
static const cuda_unit many_unit = {{CUDA_ATTENTION_PARTS, &cuda_text_of_attention_tile,
                                     &cuda_text_of_attention_rows, &text_of_many}};
static const cuda_unit few_unit = {{CUDA_ATTENTION_PARTS, &text_of_few}};
static const cuda_unit join_unit = {{CUDA_ATTENTION_PARTS, &text_of_join}};
static const cuda_unit empty_unit = {{CUDA_ATTENTION_PARTS, &text_of_empty}};

/* For all parts: sums of values, maximum score, sum of weights. */
static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const uint64_t bytes =
        query->op->operand[TN_ATTENTION_Q].dtype == TN_F64 ? sizeof(double) : sizeof(float);
    cuda_attention_shape shape;
    cuda_attention_shape_of(row, query->op, &shape);
    const uint64_t parts = (uint64_t)(shape.lots * shape.rows * shape.parts);
    return shape.parts > 1 ? parts * (uint64_t)(at->value_size + 2) * bytes : 0;
}

/* The kernels of one variant. */
typedef struct plan {
    cuda_kernel *few, *many, *join;
} plan;

/* Returns the maximum head size that the kernels are compiled for. */
static int size_of(const tn_attention_op *at)
{
    enum { LEAST = 64 };
    const int64_t greater = at->size > at->value_size ? at->size : at->value_size;
    int size = LEAST;
    while (size < greater)
        size *= 2;
    return size;
}

static const char options_form[] =
    "-DIN=%s\n-DOUT=%s\n-DSIZE=%d\n-DDROPOUT=%d\n-DCOMPUTED=1\n-default-device\n";

void cuda_attention_options(const tn_op *op, char *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    snprintf(out, CUDA_ATTENTION_OPTIONS, options_form,
             cuda_type_of(op->operand[TN_ATTENTION_Q].dtype),
             cuda_type_of(op->operand[TN_ATTENTION_OUT].dtype), size_of(at), at->dropout != 0);
}

/* Options of a unit that serves all head sizes, with or without dropout. */
static void options_of_any(const tn_op *op, char *out)
{
    snprintf(out, CUDA_ATTENTION_OPTIONS, options_form,
             cuda_type_of(op->operand[TN_ATTENTION_Q].dtype),
             cuda_type_of(op->operand[TN_ATTENTION_OUT].dtype), 0, 0);
}

void cuda_attention_empty_case(const tn_op *op, char *options, cuda_case *out)
{
    options_of_any(op, options);
    *out = (cuda_case){&empty_unit, "attention_empty", options};
}

void cuda_attention_join_case(const tn_op *op, char *options, cuda_case *out)
{
    options_of_any(op, options);
    *out = (cuda_case){&join_unit, "attention_join", options};
}

static tn_status get_kernels(const tn_run *run, void *made, tn_error *err)
{
    plan *to = made;
    const tn_op *op = run->op;
    char options[CUDA_ATTENTION_OPTIONS], joined[CUDA_ATTENTION_OPTIONS];
    cuda_case join;
    cuda_attention_options(op, options);
    cuda_attention_join_case(op, joined, &join);
    tn_status status = cuda_plan_kernel(run, &few_unit, "attention_few", options, &to->few, err);
    if (!status)
        status = cuda_plan_kernel(run, join.unit, join.function, join.options, &to->join, err);
    if (!status && !cuda_attention_is_invariant(run->row))
        status = cuda_plan_kernel(run, &many_unit, "attention_many", options, &to->many, err);
    return status;
}

static tn_status plan_attention(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), get_kernels, out, out_bytes, err);
}

int cuda_attention_is_whole(const tn_layout *layout)
{
    enum { AT_ONCE = 16 };
    const int64_t each = AT_ONCE / cuda_bytes_of(layout->dtype);
    bool whole = layout->alignment >= AT_ONCE && (layout->stride[3] == 1 || layout->shape[3] == 1);
    for (int32_t d = 0; d < 3; d++)
        whole = whole && (layout->shape[d] == 1 || layout->stride[d] % each == 0);
    return whole;
}

void cuda_attention_put_strides(const tn_layout *layout, long long to[4])
{
    for (int32_t d = 0; d < layout->rank && d < 4; d++)
        to[d] = layout->shape[d] == 1 ? 0 : layout->stride[d];
}

static cuda_table table_of(const tn_run *run, int32_t operand)
{
    const tn_layout *layout = &run->op->operand[operand];
    return (cuda_table){layout->dtype ? tn_operand(run, operand) : NULL, layout->stride[0]};
}

int cuda_attention_kind(const tn_layout *layout)
{
    enum { NONE, OF_BOOL, OF_F32, OF_OPERANDS };
    switch (layout->dtype) {
    case TN_DTYPE_NONE: return NONE;
    case TN_BOOL: return OF_BOOL;
    case TN_F32: return OF_F32;
    default: return OF_OPERANDS;
    }
}

static void put_operands(const tn_run *run, cuda_attention_args *to)
{
    const tn_layout *of = run->op->operand;
    to->q = tn_operand(run, TN_ATTENTION_Q);
    to->k = tn_operand(run, TN_ATTENTION_K);
    to->v = tn_operand(run, TN_ATTENTION_V);
    to->out = tn_operand(run, TN_ATTENTION_OUT);
    to->lse = of[TN_ATTENTION_LSE].dtype ? tn_operand(run, TN_ATTENTION_LSE) : NULL;
    to->mask = tn_operand(run, TN_ATTENTION_MASK);
    cuda_attention_put_strides(&of[TN_ATTENTION_Q], to->q_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_K], to->k_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_V], to->v_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_OUT], to->out_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_LSE], to->lse_stride);
    cuda_attention_put_strides(&of[TN_ATTENTION_MASK], to->mask_stride);
    to->mask_kind = cuda_attention_kind(&of[TN_ATTENTION_MASK]);
    to->whole_q = cuda_attention_is_whole(&of[TN_ATTENTION_Q]);
    to->whole_k = cuda_attention_is_whole(&of[TN_ATTENTION_K]);
    to->whole_v = cuda_attention_is_whole(&of[TN_ATTENTION_V]);
    to->whole_out = cuda_attention_is_whole(&of[TN_ATTENTION_OUT]);
}

void cuda_attention_put_tables(const tn_run *run, cuda_attention_args *to)
{
    const tn_layout *of = run->op->operand;
    to->sinks = tn_operand(run, TN_ATTENTION_SINKS);
    to->sinks_stride = of[TN_ATTENTION_SINKS].stride[0];
    to->sinks_kind = cuda_attention_kind(&of[TN_ATTENTION_SINKS]);
    to->starts_q = table_of(run, TN_ATTENTION_STARTS_Q);
    to->starts_k = table_of(run, TN_ATTENTION_STARTS_K);
    to->lengths = table_of(run, TN_ATTENTION_LENGTHS);
    to->pages = table_of(run, TN_ATTENTION_PAGES);
    to->pages_along = of[TN_ATTENTION_PAGES].stride[1];
    to->all_queries = of[TN_ATTENTION_Q].shape[2];
    to->all_keys = of[TN_ATTENTION_K].shape[2];
    to->pool = (int)of[TN_ATTENTION_K].shape[0];
}

static void put_numbers(const tn_op *op, cuda_attention_args *to)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    to->left = at->left;
    to->right = at->right;
    to->shift = at->shift;
    to->batch = (int)at->batch;
    to->heads = (int)at->heads;
    to->groups = (int)at->groups;
    to->ratio = (int)(at->heads / at->groups);
    to->queries = (int)at->queries;
    to->keys = (int)at->keys;
    to->size = (int)at->size;
    to->value_size = (int)at->value_size;
    to->page = (int)at->page;
    to->seed = at->seed;
    to->offset = at->offset;
    to->scale = at->scale;
    to->softcap = at->softcap;
    to->kept = 1 - at->dropout;
    to->threshold = cuda_dropout_least(at->dropout);
    to->bottom = at->corner == TN_CORNER_BOTTOM_RIGHT;
}

void cuda_attention_put(const tn_run *run, cuda_attention_args *to)
{
    put_operands(run, to);
    put_numbers(run->op, to);
}

static tn_status run_attention(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    cuda_attention_shape shape;
    cuda_attention_args args = {0};
    cuda_attention_shape_of(run->row, run->op, &shape);
    cuda_attention_put(run, &args);
    cuda_attention_put_tables(run, &args);
    args.partial = run->workspace;
    args.blocks = (int)shape.blocks;
    args.parts = (int)shape.parts;
    args.part = (int)shape.part;
    tn_status status =
        cuda_plan_launch(run, shape.few ? made->few : made->many,
                         (unsigned)(shape.lots * shape.blocks * shape.parts), &args, err);
    if (status || shape.parts == 1)
        return status;
    args.blocks = (int)shape.rows;
    return cuda_plan_launch(run, made->join, (unsigned)(shape.lots * shape.rows), &args, err);
}

static double predict_attention(const tn_kernel_row *row, const tn_query *query)
{
    return cuda_attention_cost(row, &cuda_attention_row, query);
}

/* In PyTorch's family, mem_efficient is the backend that supports f32, masks and arbitrary sizes. */
#define ROW                                                                                       \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "nvrtc",                 \
    .backend = "mem_efficient", .op = TN_OP_ATTENTION, .version = 1, .dtypes = cuda_float_dtypes, \
    .honours = CUDA_ATTENTION_USES, .free_dims = CUDA_ATTENTION_DIMS, .bytes_per_us = 3e6,        \
    .overhead_us = 4, .alignment = CUDA_VECTOR, .admit = cuda_attention_admit,                    \
    .cost = predict_attention, .workspace = size_workspace, .plan = plan_attention,               \
    .plan_release = cuda_plan_release, .run = run_attention

const tn_kernel_row cuda_attention_row = {
    .name = "cuda.attention.own",
    .numerics = TN_NUM_RUN_TO_RUN,
    .flops_per_us = 2e7,
    ROW,
};

/* A row is always computed by the same kernel, with its keys split in the same way. */
const tn_kernel_row cuda_attention_invariant_row = {
    .name = "cuda.attention.own.invariant",
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .flops_per_us = 7e6,
    ROW,
};
