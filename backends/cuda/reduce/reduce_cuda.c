/* Reductions. The elements of one output are split into parts of a fixed size; a second kernel combines the
 * parts of an output. */
#include "../kernels/layout.h"
#include "reduce_args.h"
#include "tenon/module/op/reduce.h"

CUDA_TEXT_DECLARE(reduce_args_h);
CUDA_TEXT_DECLARE(reduce_cu);
static const cuda_text args_text = CUDA_TEXT(reduce_args_h, "reduce_args.h");
static const cuda_text text = CUDA_TEXT(reduce_cu, "reduce.cu");
static const cuda_unit unit = {
    {&cuda_text_of_args, &args_text, &cuda_text_of_common, &cuda_text_of_functions, &text}};

/* For contiguous elements, and for columns, where a block has fewer threads per output. */
enum { PART = 16384, PART_OF_COLUMN = 2048 };

static const char *join_of(int32_t kind)
{
    switch (kind) {
    case TN_REDUCE_MAX: return "of_max(a,b)";
    case TN_REDUCE_MIN: return "of_min(a,b)";
    default: return "of_add(a,b)";
    }
}

/* Returns the accumulator type: f32 for narrow floats, 64 bits for integers, f64 if either side is f64 or
 * integers become floats. */
static const char *work_of(tn_dtype in, tn_dtype out)
{
    if (cuda_is_whole(in) && cuda_is_whole(out))
        return in == TN_U64 ? "u64" : "i64";
    return in == TN_F64 || out == TN_F64 || cuda_is_whole(in) ? "f64" : "f32";
}

static const char *identity_of(int32_t kind, const char *work)
{
    const bool max = kind == TN_REDUCE_MAX;
    if (kind != TN_REDUCE_MAX && kind != TN_REDUCE_MIN)
        return "0";
    switch (work[0] == 'f' ? work[1] : work[0]) {
    case '3': return max ? "(-__int_as_float(0x7F800000))" : "__int_as_float(0x7F800000)";
    case '6':
        return max ? "(-__longlong_as_double(0x7FF0000000000000ll))"
                   : "__longlong_as_double(0x7FF0000000000000ll)";
    case 'u': return max ? "0ull" : "18446744073709551615ull";
    default: return max ? "(-9223372036854775807ll-1)" : "9223372036854775807ll";
    }
}

/* Walks over the kept and the reduced dimensions, ordered by in's strides. */
static void walk_both(const tn_op *op, tn_walk *kept, tn_walk *taken)
{
    static const int32_t both[] = {TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OUT};
    const int32_t rank = op->operand[TN_ELEMENTWISE_IN].rank,
                  first = rank - TN_PARAMS(op, elementwise)->axes;
    tn_walk_over(kept, op, both, 2, 0, first);
    tn_walk_over(taken, op, both, 1, first, rank);
}

/* Returns whether the elements of one output are not contiguous. Must not depend on the number and position
 * of outputs: an output must have the same bits alone and among others. */
static bool is_columns(const tn_walk *taken)
{
    return taken->stride[0] != 1;
}

static int64_t parts_of(const tn_op *op, bool columns)
{
    const int64_t size = TN_PARAMS(op, elementwise)->size, part = columns ? PART_OF_COLUMN : PART;
    return size > part ? (size + part - 1) / part : 1;
}

static void fill_args(const tn_op *op, const tn_walk *kept, const tn_walk *taken,
                      cuda_reduce_args *out)
{
    const bool columns = is_columns(taken);
    out->outputs = TN_PARAMS(op, elementwise)->elements;
    out->size = TN_PARAMS(op, elementwise)->size;
    out->parts = parts_of(op, columns);
    out->part = columns ? PART_OF_COLUMN : PART;
    out->kept_rank = cuda_walk_sizes(kept, out->kept);
    cuda_walk_strides(kept, 0, out->kept_in);
    cuda_walk_strides(kept, 1, out->kept_out);
    out->taken_rank = cuda_walk_sizes(taken, out->taken);
    cuda_walk_strides(taken, 0, out->taken_in);
}

/* Returns whether the elements of one output are contiguous, whole vectors, and aligned. So an output computed
 * alone uses the same vectors as one among consecutive others. */
static bool is_dense(const tn_op *op, const cuda_reduce_args *args, int64_t vector)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    bool sound = args->taken_rank == 1 && args->size % vector == 0 &&
                 in->alignment >= vector * cuda_bytes_of(in->dtype);
    for (int d = 0; d < args->kept_rank; d++)
        sound = sound && (args->kept[d] == 1 || args->kept_in[d] % vector == 0);
    return sound;
}

/* Returns the threads per part of contiguous elements. Must not depend on the number of outputs either. */
static int64_t group_of(const tn_op *op)
{
    enum { OF_WARP = 8192, WARP = 32 };
    const int64_t bytes = cuda_bytes_of(op->operand[TN_ELEMENTWISE_IN].dtype);
    return TN_PARAMS(op, elementwise)->size <= OF_WARP / bytes ? WARP : CUDA_THREADS;
}

static void write_options(const tn_op *op, bool dense, int64_t vector, char *out, size_t size)
{
    const tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype,
                   to = op->operand[TN_ELEMENTWISE_OUT].dtype;
    const int32_t kind = TN_PARAMS(op, elementwise)->kind;
    const char *work = work_of(in, to);
    snprintf(out, size,
             "-DIN=%s\n-DOUT=%s\n-DA=%s\n-DJOIN(a,b)=%s\n-DIDENTITY=%s\n-DMEAN=%d\n-DWRAPS=%d\n"
             "-DDENSE=%d\n-DVECTOR=%d\n-DGROUP=%d\n",
             cuda_type_of(in), cuda_type_of(to), work, join_of(kind), identity_of(kind, work),
             kind == TN_REDUCE_MEAN, cuda_is_whole(in) && cuda_is_whole(to), dense, (int)vector,
             (int)group_of(op));
}

typedef struct plan {
    cuda_kernel *kernel;
    cuda_kernel *finish; /* combines the parts of an output; NULL if there is one part */
    unsigned blocks;
    unsigned finish_blocks;
    cuda_reduce_args args; /* without addresses */
} plan;

static tn_status plan_kernels(const tn_run *run, void *any, tn_error *err)
{
    plan *made = any;
    const int64_t vector = 16 / cuda_bytes_of(run->op->operand[TN_ELEMENTWISE_IN].dtype);
    cuda_reduce_args *args = &made->args;
    tn_walk kept, taken;
    char options[384];
    walk_both(run->op, &kept, &taken);
    fill_args(run->op, &kept, &taken, args);
    const bool columns = is_columns(&taken);
    const bool dense = !columns && is_dense(run->op, args, vector);
    const int64_t in_block = columns ? 32 : CUDA_THREADS / group_of(run->op);
    const int64_t jobs = (args->outputs + in_block - 1) / in_block;
    write_options(run->op, dense, dense ? vector : 1, options, sizeof options);
    made->blocks = cuda_blocks_for(run, jobs * args->parts);
    tn_status status =
        cuda_plan_kernel(run, &unit, columns ? "columns" : "rows", options, &made->kernel, err);
    if (!status && args->parts > 1) {
        made->finish_blocks = cuda_blocks_for(run, (args->outputs + 7) / 8);
        status = cuda_plan_kernel(run, &unit, "finish", options, &made->finish, err);
    }
    return status;
}

static tn_status plan_reduce(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_plan_make(run, sizeof(plan), plan_kernels, out, out_bytes, err);
}

static tn_status run_reduce(const tn_run *run, tn_error *err)
{
    const plan *made = run->plan;
    cuda_reduce_args args = made->args;
    args.in = tn_operand(run, TN_ELEMENTWISE_IN);
    args.out = tn_operand(run, TN_ELEMENTWISE_OUT);
    args.partial = run->workspace;
    tn_status status = cuda_plan_launch(run, made->kernel, made->blocks, &args, err);
    if (!status && made->finish)
        status = cuda_plan_launch(run, made->finish, made->finish_blocks, &args, err);
    return status;
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tn_walk kept, taken;
    walk_both(query->op, &kept, &taken);
    const uint64_t parts = (uint64_t)parts_of(query->op, is_columns(&taken));
    (void)row;
    return parts > 1
               ? parts * (uint64_t)TN_PARAMS(query->op, elementwise)->elements * sizeof(int64_t)
               : 0;
}

static tn_status admit_reduce(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_elementwise_op *each = TN_PARAMS(query->op, elementwise);
    const tn_dtype in = query->op->operand[TN_ELEMENTWISE_IN].dtype;
    const tn_dtype out = query->op->operand[TN_ELEMENTWISE_OUT].dtype;
    const bool sums = each->kind == TN_REDUCE_SUM || each->kind == TN_REDUCE_MEAN;
    (void)row;
    if (!sums && each->kind != TN_REDUCE_MAX && each->kind != TN_REDUCE_MIN)
        return tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_REDUCE_MIN, each->kind);
    if (!cuda_type_of(out) || out == TN_BOOL || (cuda_is_float(in) && cuda_is_whole(out)) ||
        (cuda_is_whole(in) && cuda_is_float(out) && !sums) ||
        (cuda_is_whole(in) && cuda_is_whole(out) && each->kind == TN_REDUCE_MEAN))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "out.dtype", in, out,
                           "out needs numbers of in's sort; sums and means of whole numbers may be "
                           "floats: cast before or after");
    if (!sums && each->size == 0)
        return tn_refuse(why, TN_REFUSE_SHAPE, "size", 1, 0);
    return cuda_admit_alignment(query, why);
}

const tn_kernel_row cuda_reduce_row = {
    .name = "cuda.reduce.own",
    .op = TN_OP_REDUCE,
    CUDA_ROW,
    .dtypes = cuda_number_dtypes,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,
    .honours =
        TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_OUT_DTYPE,
    .admit = admit_reduce,
    .workspace = size_workspace,
    .plan = plan_reduce,
    .run = run_reduce,
};
