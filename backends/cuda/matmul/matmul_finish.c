#include "matmul_finish.h"

#include "matmul_cuda.h"
#include "tenon/module/op/matmul.h"

CUDA_TEXT_DECLARE(matmul_finish_cu);
static const cuda_text text = CUDA_TEXT(matmul_finish_cu, "matmul_finish.cu");
static const cuda_unit unit = {{&cuda_text_of_args, &cuda_text_of_matmul_args, &cuda_text_of_common,
                                &cuda_text_of_functions, &text}};

/* Out's rows, or its columns if out is column-major. */
typedef struct lines {
    int32_t down, along; /* dimension numbers */
    int64_t count, size;
    int64_t each;  /* elements per thread */
    int64_t lanes; /* threads of a block along one line */
} lines;

int64_t cuda_finish_sum_bytes(const tn_op *op)
{
    const int64_t out = cuda_bytes_of(op->operand[TN_MATMUL_OUT].dtype), f32 = sizeof(float);
    return out > f32 ? out : f32;
}

static lines lines_of(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const bool by_columns = cuda_matmul_by_columns(op);
    const int32_t m = mm->batch_rank, n = m + 1;
    lines out = {.down = by_columns ? n : m,
                 .along = by_columns ? m : n,
                 .count = by_columns ? mm->n : mm->m,
                 .size = by_columns ? mm->m : mm->n,
                 .each = CUDA_FINISH_BYTES / cuda_finish_sum_bytes(op)};
    out.lanes = cuda_matmul_lanes(out.size, out.each);
    return out;
}

int64_t cuda_finish_tiles(const tn_op *op)
{
    const lines is = lines_of(op);
    return cuda_tiles_along(is.count, CUDA_THREADS / is.lanes) *
           cuda_tiles_along(is.size, is.lanes * is.each) * TN_PARAMS(op, matmul)->matrices;
}

/* Returns whether a thread's elements along a line are aligned to their total size, in every line and matrix. */
static bool is_whole(const tn_layout *layout, const lines *is)
{
    bool whole = layout->stride[is->along] == 1 &&
                 layout->alignment >= is->each * cuda_bytes_of(layout->dtype);
    for (int32_t d = 0; d < layout->rank; d++)
        whole =
            whole && (d == is->along || layout->shape[d] == 1 || layout->stride[d] % is->each == 0);
    return whole;
}

/* A bias with one number per line is read separately. */
static bool all_are_whole(const tn_op *op, const tn_layout *sums, const lines *is)
{
    const tn_layout *bias = &op->operand[TN_MATMUL_BIAS];
    return is->size % is->each == 0 && is_whole(sums, is) &&
           is_whole(&op->operand[TN_MATMUL_OUT], is) &&
           (!bias->dtype || bias->stride[is->along] == 0 || is_whole(bias, is));
}

/* In the arguments, the sums take the place of A, and there is no B. */
static void fill_args(const tn_op *op, const tn_layout *sums, cuda_matmul_args *out)
{
    static const int32_t operands[] = {TN_MATMUL_A, TN_MATMUL_OUT, TN_MATMUL_BIAS};
    const lines is = lines_of(op);
    const int32_t count = op->operand[TN_MATMUL_BIAS].dtype ? 3 : 2;
    tn_op of = *op;
    tn_walk walk;
    of.operand[TN_MATMUL_A] = *sums;
    *out = (cuda_matmul_args){
        .m = is.count, .n = is.size, .lanes = (int)is.lanes, .whole = all_are_whole(op, sums, &is)};
    tn_walk_over(&walk, &of, operands, count, 0, TN_PARAMS(op, matmul)->batch_rank);
    out->rank = cuda_walk_sizes(&walk, out->outer);
    for (int32_t i = 0; i < count; i++) {
        const tn_layout *layout = &of.operand[operands[i]];
        cuda_walk_strides(&walk, i, out->stride[operands[i]]);
        out->down[operands[i]] = layout->stride[is.down];
        out->across[operands[i]] = layout->stride[is.along];
    }
    out->tiles_down = (unsigned)cuda_tiles_along(is.count, CUDA_THREADS / is.lanes);
    out->tiles_across = (unsigned)cuda_tiles_along(is.size, is.lanes * is.each);
    out->tiles = (unsigned)cuda_finish_tiles(op);
}

static const char *function_of(int32_t activation, tn_dtype out)
{
    const bool is_narrow = cuda_bytes_of(out) == 2;
    if (is_narrow && activation == TN_ACT_GELU)
        return "of_gelu_narrow(x)";
    if (is_narrow && activation == TN_ACT_SILU)
        return "of_silu_narrow(x)";
    return cuda_matmul_function(activation);
}

/* Returns the type's name in the kernel, which also supports complex numbers. */
static const char *type_of(tn_dtype dtype)
{
    return dtype == TN_C64 ? "c64" : dtype == TN_C128 ? "c128" : cuda_type_of(dtype);
}

void cuda_finish_case(const tn_op *op, char *options, cuda_case *out)
{
    const tn_dtype dtype = op->operand[TN_MATMUL_OUT].dtype;
    snprintf(options, CUDA_FINISH_OPTIONS,
             "-DOUT=%s\n-DFUNCTION(x)=%s\n-DCOMPUTED=1\n-default-device\n", type_of(dtype),
             function_of(TN_PARAMS(op, matmul)->activation, dtype));
    *out = (cuda_case){&unit, "matmul_finish", options};
}

tn_status cuda_finish_plan(const tn_run *run, const tn_layout *sums, cuda_finish *out,
                           tn_error *err)
{
    char options[CUDA_FINISH_OPTIONS];
    cuda_case wanted;
    cuda_finish_case(run->op, options, &wanted);
    fill_args(run->op, sums, &out->args);
    return cuda_kernel_beside(run, &wanted, "what follows a product", &out->kernel, err);
}

tn_status cuda_finish_run(const tn_run *run, const cuda_finish *finish, void *sums, tn_error *err)
{
    cuda_matmul_args args = finish->args;
    args.data[TN_MATMUL_A] = sums;
    args.data[TN_MATMUL_OUT] = tn_operand(run, TN_MATMUL_OUT);
    if (run->op->operand[TN_MATMUL_BIAS].dtype)
        args.data[TN_MATMUL_BIAS] = tn_operand(run, TN_MATMUL_BIAS);
    return args.tiles > 0
               ? cuda_plan_launch(run, finish->kernel, cuda_blocks_for(run, args.tiles), &args, err)
               : TN_OK;
}
