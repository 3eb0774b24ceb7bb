/* permute: a copy in tiles if in and out are contiguous along different dimensions, else element by element. */
#include "../kernels/elementwise.h"

#include "tenon/module/op/permute.h"

CUDA_TEXT_DECLARE(permute_cu);
static const cuda_text text = CUDA_TEXT(permute_cu, "permute.cu");
const cuda_unit cuda_permute_unit = {{&cuda_text_of_args, &cuda_text_of_common, &text}};

enum { PAIR_BYTES = 16 };

/* A copy only moves bits: any type of the dtype's size will do. Elements of 16 bytes are copied as pairs. */
static const char *bits_type(tn_dtype dtype)
{
    switch (cuda_bytes_of(dtype)) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    case 8:
    case PAIR_BYTES: return "u64";
    default: return NULL;
    }
}

/* Doubles the elements: pairs are in the last dimension if that is contiguous, else in one more. */
static void copy_pairs(cuda_each_args *args)
{
    static const int operands[] = {TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OUT};
    const int last = args->rank - 1;
    const bool contiguous =
        args->stride[TN_ELEMENTWISE_IN][last] == 1 && args->stride[TN_ELEMENTWISE_OUT][last] == 1;
    for (int i = 0; i < 2; i++) {
        long long *const stride = args->stride[operands[i]];
        for (int d = 0; d < (contiguous ? last : args->rank); d++)
            stride[d] *= 2;
        stride[contiguous ? last : args->rank] = 1;
    }
    if (contiguous)
        args->size[last] *= 2;
    else
        args->size[args->rank++] = 2;
    args->elements *= 2;
}

/* If in's contiguous dimension differs from out's, moves it to the last but one position. Returns
 * false if none exists, or if either dimension is too small for tiles. */
static bool order_for_tiles(cuda_each_args *args)
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
    bool packs = cuda_bytes_of(op->operand[TN_ELEMENTWISE_OUT].dtype) == 2 &&
                 args->size[last] % PACK == 0 && args->size[last - 1] % PACK == 0 &&
                 op->operand[TN_ELEMENTWISE_IN].alignment >= 2 * PACK &&
                 op->operand[TN_ELEMENTWISE_OUT].alignment >= 2 * PACK;
    for (int d = 0; d <= last; d++)
        packs = packs && (d == last - 1 || args->stride[TN_ELEMENTWISE_IN][d] % PACK == 0) &&
                (d == last || args->stride[TN_ELEMENTWISE_OUT][d] % PACK == 0);
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
             bits_type(run->op->operand[TN_ELEMENTWISE_OUT].dtype), cuda_index_of(tiles));
    return cuda_plan_kernel(run, &cuda_permute_unit,
                            has_packs(run->op, args) ? "tiled_pairs" : "tiled", options,
                            &plan->kernel, err);
}

static tn_status plan_permute(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const char *type = bits_type(run->op->operand[TN_ELEMENTWISE_OUT].dtype);
    const cuda_elementwise copy = {
        .in = type, .out = type, .compute = "a", .inputs = 1, .wraps = true};
    tn_walk walk;
    cuda_plan *plan = NULL;
    tn_status status = cuda_plan_create(run, &plan, out_bytes, err);
    if (status)
        return status;
    cuda_elementwise_walk(run->op, copy.inputs, &walk, &plan->args.each);
    if (cuda_bytes_of(run->op->operand[TN_ELEMENTWISE_OUT].dtype) == PAIR_BYTES)
        copy_pairs(&plan->args.each);
    status = order_for_tiles(&plan->args.each)
                 ? plan_tiles(run, plan, err)
                 : cuda_elementwise_kernel(run, &copy, &walk, plan, err);
    if (status)
        cuda_plan_release(run, plan);
    else
        *out = plan;
    return status;
}

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype out = query->op->operand[TN_ELEMENTWISE_OUT].dtype;
    (void)row;
    if (!bits_type(out))
        return tn_refuse(why, TN_REFUSE_DTYPE, "out.dtype", TN_F32, out);
    const int32_t rank = query->op->operand[TN_ELEMENTWISE_OUT].rank, most = CUDA_ARGS_RANK - 1;
    if (cuda_bytes_of(out) == PAIR_BYTES && rank > most)
        return tn_refuse(why, TN_REFUSE_SHAPE, "rank", most, rank);
    return cuda_admit_alignment(query, why);
}

static const tn_dtype bits_dtypes[] = {
    TN_F32,  TN_BF16,      TN_F16,     TN_F64,         TN_I8,          TN_I16,  TN_I32,
    TN_I64,  TN_U8,        TN_U16,     TN_U32,         TN_U64,         TN_BOOL, TN_C64,
    TN_C128, TN_F8_E4M3FN, TN_F8_E5M2, TN_F8_E4M3FNUZ, TN_F8_E5M2FNUZ, 0};

const tn_kernel_row cuda_permute_row = {
    .name = "cuda.permute.own",
    .op = TN_OP_PERMUTE,
    CUDA_ROW,
    .dtypes = bits_dtypes,
    .numerics = CUDA_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST,
    .admit = admit_permute,
    .plan = plan_permute,
    .run = cuda_elementwise_run,
};
