/* Elementwise ops: permute, cast, fill, unary, binary. */
#include "layout.h"

static const char *const unary_words[TN_UNARY_COUNT] = {
    [TN_UNARY_NEG] = "neg",
    [TN_UNARY_ABS] = "abs",
    [TN_UNARY_SQRT] = "sqrt",
    [TN_UNARY_RSQRT] = "rsqrt",
    [TN_UNARY_EXP] = "exp",
    [TN_UNARY_LOG] = "log",
    [TN_UNARY_TANH] = "tanh",
    [TN_UNARY_SIGMOID] = "sigmoid",
    [TN_UNARY_RELU] = "relu",
    [TN_UNARY_GELU] = "gelu",
    [TN_UNARY_GELU_TANH] = "gelu_tanh",
    [TN_UNARY_SILU] = "silu",
};
static const char *const binary_words[TN_BINARY_COUNT] = {
    [TN_BINARY_ADD] = "add", [TN_BINARY_SUB] = "sub", [TN_BINARY_MUL] = "mul",
    [TN_BINARY_DIV] = "div", [TN_BINARY_MAX] = "max", [TN_BINARY_MIN] = "min",
};

/* The variant for an op: the function, the number of inputs, and the types. */
typedef struct function {
    char compute[32];
    const char *in, *out;
    int inputs;
    int wraps;
} function;

/* A copy only moves bits: any type of the dtype's size will do. */
static const char *bits_type(tn_dtype dtype)
{
    switch (cuda_bytes_of(dtype)) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    case 8: return "u64";
    default: return NULL;
    }
}

static function function_of(const tn_op *op)
{
    const tn_dtype in = op->operand[TN_EACH_IN].dtype, out = op->operand[TN_EACH_OUT].dtype;
    function f = {.compute = "a", .in = cuda_type_of(in), .out = cuda_type_of(out), .inputs = 1};
    switch (op->kind) {
    case TN_OP_PERMUTE:
        f.in = f.out = bits_type(out);
        f.wraps = 1;
        break;
    case TN_OP_FILL:
        f.in = f.out;
        f.inputs = 0;
        break;
    case TN_OP_UNARY:
        snprintf(f.compute, sizeof f.compute, "of_%s%s(a)", unary_words[op->as.each.kind],
                 op->as.each.kind == TN_UNARY_GELU && cuda_bytes_of(out) == 2 ? "_narrow" : "");
        f.wraps = cuda_is_whole(in);
        break;
    case TN_OP_BINARY:
        snprintf(f.compute, sizeof f.compute, "of_%s(a,b)", binary_words[op->as.each.kind]);
        f.wraps = cuda_is_whole(in);
        f.inputs = 2;
        break;
    default: break;
    }
    return f;
}

/* Lists the op's operands in the order of the walk: out is first, because it determines the order of
 * dimensions. */
static int32_t places_of(const tn_op *op, int32_t out[3])
{
    int32_t count = 0;
    out[count++] = TN_EACH_OUT;
    if (op->kind != TN_OP_FILL)
        out[count++] = TN_EACH_IN;
    if (op->kind == TN_OP_BINARY)
        out[count++] = TN_EACH_OTHER;
    return count;
}

static bool is_dense(const tn_walk *walk)
{
    bool dense = walk->rank == 0;
    for (int32_t i = 0; i < walk->count; i++)
        dense = dense && (walk->stride[i] == 1 || walk->size == 1);
    return dense;
}

/* Returns the elements per access: 16 bytes of the widest dtype, or fewer if an operand is not
 * aligned to that. */
static int vector_of(const tn_op *op, const int32_t *places, int32_t count)
{
    int64_t widest = 1, aligned = TN_OP_ALIGNMENT_MAX;
    for (int32_t i = 0; i < count; i++) {
        const tn_layout *layout = &op->operand[places[i]];
        int64_t bytes = cuda_bytes_of(layout->dtype);
        widest = bytes > widest ? bytes : widest;
        aligned = layout->alignment < aligned ? layout->alignment : aligned;
    }
    int64_t vector = 16 / widest;
    while (vector > 1 && aligned < vector * widest)
        vector /= 2;
    return (int)vector;
}

static void fill_args(const tn_walk *walk, const int32_t *places, long long elements,
                      cuda_each_args *out)
{
    out->elements = elements;
    out->rank = cuda_walk_sizes(walk, out->size);
    for (int32_t i = 0; i < walk->count; i++)
        cuda_walk_strides(walk, i, out->stride[places[i]]);
}

/* If in's contiguous dimension differs from out's, moves it to the last but one position. Returns
 * false if none exists, or if either dimension is too small for tiles. */
static bool turn_for_tiles(cuda_each_args *args)
{
    enum { LEAST = 16 };
    const int last = args->rank - 1;
    int found = -1;
    if (args->rank < 2 || args->stride[1][last] != 1 || args->stride[0][last] == 1 ||
        args->size[last] < LEAST)
        return false;
    for (int d = 0; d < last; d++) {
        if (args->stride[0][d] == 1 && args->size[d] >= LEAST)
            found = d;
    }
    if (found < 0)
        return false;
    for (int d = found; d < last - 1; d++) {
        long long size = args->size[d], in = args->stride[0][d], out = args->stride[1][d];
        args->size[d] = args->size[d + 1];
        args->stride[0][d] = args->stride[0][d + 1];
        args->stride[1][d] = args->stride[1][d + 1];
        args->size[d + 1] = size;
        args->stride[0][d + 1] = in;
        args->stride[1][d + 1] = out;
    }
    return true;
}

/* Returns whether a tiled copy of 16-bit elements can read and write both sides in packs of eight elements. */
static bool has_packs(const tn_op *op, const cuda_each_args *args)
{
    enum { PACK = 8 };
    const int last = args->rank - 1;
    bool packs = cuda_bytes_of(op->operand[TN_EACH_OUT].dtype) == 2 &&
                 args->size[last] % PACK == 0 && args->size[last - 1] % PACK == 0 &&
                 op->operand[TN_EACH_IN].alignment >= 2 * PACK &&
                 op->operand[TN_EACH_OUT].alignment >= 2 * PACK;
    for (int d = 0; d <= last; d++)
        packs = packs && (d == last - 1 || args->stride[TN_EACH_IN][d] % PACK == 0) &&
                (d == last || args->stride[TN_EACH_OUT][d] % PACK == 0);
    return packs;
}

static tn_status plan_tiles(const tn_run *run, cuda_plan *plan, tn_error *err)
{
    enum { TILE = 64 };
    const cuda_each_args *args = &plan->args.each;
    const int last = args->rank - 1;
    char options[64];
    int64_t tiles =
        ((args->size[last] + TILE - 1) / TILE) * ((args->size[last - 1] + TILE - 1) / TILE);
    for (int d = 0; d < last - 1; d++)
        tiles *= args->size[d];
    plan->blocks = cuda_blocks_for(run, tiles);
    snprintf(options, sizeof options, "-DELEMENT=%s\n-DINDEX=%s\n",
             bits_type(run->op->operand[TN_EACH_OUT].dtype), cuda_index_of(tiles));
    return cuda_plan_kernel(run, CUDA_UNIT_PERMUTE,
                            has_packs(run->op, args) ? "tiled_pairs" : "tiled", options,
                            &plan->kernel, err);
}

static tn_status plan_elements(const tn_run *run, const tn_walk *walk, int vector, cuda_plan *plan,
                               tn_error *err)
{
    const function f = function_of(run->op);
    const int64_t elements = run->op->as.each.elements;
    const bool dense = is_dense(walk);
    char options[256];
    snprintf(options, sizeof options,
             "-DIN=%s\n-DOUT=%s\n-DCOMPUTE(a,b)=%s\n-DINPUTS=%d\n-DWRAPS=%d\n-DVECTOR=%d\n"
             "-DINDEX=%s\n-DCOMPUTED=%d\n",
             f.in, f.out, f.compute, f.inputs, f.wraps, dense ? vector : 1, cuda_index_of(elements),
             run->op->kind != TN_OP_CAST);
    int64_t in_block = (int64_t)CUDA_THREADS * (dense ? vector : 1);
    plan->blocks = cuda_blocks_for(run, (elements + in_block - 1) / in_block);
    return cuda_plan_kernel(run, CUDA_UNIT_EACH, dense ? "dense" : "strided", options,
                            &plan->kernel, err);
}

static tn_status plan_each(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    int32_t places[3] = {TN_EACH_OUT};
    tn_walk walk;
    cuda_plan *plan = NULL;
    int32_t count = places_of(run->op, places);
    tn_status status = cuda_plan_create(run, &plan, out_bytes, err);
    if (status)
        return status;
    tn_walk_over(&walk, run->op, places, count, 0, run->op->operand[TN_EACH_OUT].rank);
    fill_args(&walk, places, run->op->as.each.elements, &plan->args.each);
    status = run->op->kind == TN_OP_PERMUTE && turn_for_tiles(&plan->args.each)
                 ? plan_tiles(run, plan, err)
                 : plan_elements(run, &walk, vector_of(run->op, places, count), plan, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

static tn_status run_each(const tn_run *run, tn_error *err)
{
    const cuda_plan *plan = run->plan;
    cuda_each_args args = plan->args.each;
    for (int32_t i = 0; i < run->op->count && i < CUDA_ARGS_OPERANDS; i++)
        args.data[i] = tn_operand(run, i);
    args.value = run->op->as.each.value;
    return cuda_plan_launch(run, plan->kernel, plan->blocks, &args, err);
}

static tn_status admit_types(const tn_query *query, tn_refusal *why)
{
    const tn_dtype out = query->op->operand[TN_EACH_OUT].dtype;
    if (!cuda_type_of(out))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "out.dtype", TN_F32, out,
                           "no complex numbers and 8-bit floats here yet");
    return cuda_admit_alignment(query, why);
}

static tn_status admit_cast(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    return admit_types(query, why);
}

/* f64 only to f64, because computation is in in's type; integers only to their own dtype. */
static tn_status admit_same(const tn_query *query, tn_refusal *why)
{
    const tn_dtype in = query->op->operand[TN_EACH_IN].dtype;
    const tn_dtype out = query->op->operand[TN_EACH_OUT].dtype;
    bool floats = cuda_is_float(in) && cuda_is_float(out) && (in == TN_F64) == (out == TN_F64);
    if (in == TN_BOOL || (!floats && in != out))
        return cuda_refuse(why, TN_REFUSE_DTYPE, "out.dtype", in, out,
                           "in and out need one dtype, or narrow floats: cast before or after");
    return admit_types(query, why);
}

static tn_status admit_unary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const int32_t kind = query->op->as.each.kind;
    const tn_dtype in = query->op->operand[TN_EACH_IN].dtype;
    (void)row;
    if (kind < 0 || kind >= TN_UNARY_COUNT)
        return tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_UNARY_COUNT - 1, kind);
    if (cuda_is_whole(in) && kind != TN_UNARY_NEG && kind != TN_UNARY_ABS && kind != TN_UNARY_RELU)
        return cuda_refuse(why, TN_REFUSE_DTYPE, "in.dtype", TN_F32, in,
                           "of whole numbers there are neg, abs and relu: cast to a float first");
    return admit_same(query, why);
}

static tn_status admit_binary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    (void)row;
    if (op->as.each.kind < 0 || op->as.each.kind >= TN_BINARY_COUNT)
        return tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_BINARY_COUNT - 1, op->as.each.kind);
    if (op->operand[TN_EACH_OTHER].dtype != op->operand[TN_EACH_IN].dtype)
        return cuda_refuse(why, TN_REFUSE_DTYPE, "other.dtype", op->operand[TN_EACH_IN].dtype,
                           op->operand[TN_EACH_OTHER].dtype,
                           "both inputs need one dtype: cast one of them");
    return admit_same(query, why);
}

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype out = query->op->operand[TN_EACH_OUT].dtype;
    (void)row;
    if (!bits_type(out))
        return tn_refuse(why, TN_REFUSE_DTYPE, "out.dtype", TN_F32, out);
    return cuda_admit_alignment(query, why);
}

static const tn_dtype bits_dtypes[] = {
    TN_F32,       TN_BF16,    TN_F16,         TN_F64,         TN_I8,  TN_I16,  TN_I32,
    TN_I64,       TN_U8,      TN_U16,         TN_U32,         TN_U64, TN_BOOL, TN_C64,
    TN_F8_E4M3FN, TN_F8_E5M2, TN_F8_E4M3FNUZ, TN_F8_E5M2FNUZ, 0};

enum { ANYHOW = TN_EACH_USES_STRIDES | TN_EACH_USES_BROADCAST };
#define REPEATS    (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)
#define EVERYWHERE (REPEATS | TN_NUM_CROSS_DEVICE)

const tn_kernel_row cuda_permute_row = {
    CUDA_ROW("permute", PERMUTE), .dtypes = bits_dtypes, .numerics = EVERYWHERE, .honours = ANYHOW,
    .admit = admit_permute,       .plan = plan_each,     .run = run_each};
const tn_kernel_row cuda_cast_row = {
    CUDA_ROW("cast", CAST), .dtypes = cuda_number_dtypes,
    .numerics = EVERYWHERE, .honours = ANYHOW | TN_EACH_USES_OUT_DTYPE,
    .admit = admit_cast,    .plan = plan_each,
    .run = run_each};
const tn_kernel_row cuda_fill_row = {CUDA_ROW("fill", FILL), .dtypes = cuda_number_dtypes,
                                     .numerics = EVERYWHERE, .honours = TN_EACH_USES_STRIDES,
                                     .admit = admit_cast,    .plan = plan_each,
                                     .run = run_each};
const tn_kernel_row cuda_unary_row = {
    CUDA_ROW("unary", UNARY), .dtypes = cuda_number_dtypes,
    .numerics = REPEATS,      .honours = ANYHOW | TN_EACH_USES_OUT_DTYPE | TN_EACH_USES_IN_PLACE,
    .admit = admit_unary,     .plan = plan_each,
    .run = run_each};
const tn_kernel_row cuda_binary_row = {CUDA_ROW("binary", BINARY),
                                       .dtypes = cuda_number_dtypes,
                                       .numerics = REPEATS,
                                       .honours =
                                           ANYHOW | TN_EACH_USES_OUT_DTYPE | TN_EACH_USES_IN_PLACE,
                                       .admit = admit_binary,
                                       .plan = plan_each,
                                       .run = run_each};
