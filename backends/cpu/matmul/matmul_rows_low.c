/* Kernel rows of matmuls of i8, bf16 and f16. i8 is summed exactly in i32, which wraps, by every
 * instruction set; the others are summed in f32.
 *
 * The bf16 instructions of avx512_bf16 and amx flush subnormals to 0: operands and sums below
 * 2^-126 in magnitude. Everything else is rounded as in f32. */
#include "matmul_cost.h"
#include "matmul_lowp_narrow.h"

static tn_status refuse(tn_refusal *why, const char *what, tn_dtype needed, tn_dtype found,
                        const char *text)
{
    (void)tn_refuse(why, TN_REFUSE_DTYPE, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Allowed dtypes of out, bias and accumulator: the operands' own or f32; for i8, i32 or f32. */
static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_dtype in = op->operand[TN_MATMUL_A].dtype, own = in == TN_I8 ? TN_I32 : in;
    const tn_dtype b = op->operand[TN_MATMUL_B].dtype, out = op->operand[TN_MATMUL_OUT].dtype;
    const tn_dtype bias = op->count > TN_MATMUL_BIAS ? op->operand[TN_MATMUL_BIAS].dtype : 0;
    const tn_dtype acc = op->as.matmul.acc, sums = in == TN_I8 ? TN_I32 : TN_F32;
    (void)row;
    if (b != in)
        return refuse(why, "b.dtype", in, b, "A and B need one dtype: cast one of them");
    if (out != own && out != TN_F32)
        return refuse(why, "out.dtype", own, out, "out is of f32, or of the usual dtype");
    if (bias && bias != out)
        return refuse(why, "bias.dtype", out, bias, "bias is of out's dtype");
    if (acc && acc != sums && acc != own)
        return refuse(why, "acc", sums, acc, "it sums in f32, and of i8 in i32");
    if (op->as.matmul.activation != TN_ACT_NONE && out == TN_I32)
        return refuse(why, "activation", TN_F32, out, "activations need out of floats");
    return TN_OK;
}

/* The set of a row, with its packing functions replaced if the row has others. */
static tni_mm_set set_of(const tn_kernel_row *row)
{
    const tni_mm_row *it = (const tni_mm_row *)row;
    tni_mm_set set = *it->set;
    if (it->packs) {
        set.pack_a = it->packs->pack_a;
        set.pack_b = it->packs->pack_b;
    }
    return set;
}

static const tni_mm_thin_set *thin_of(const tn_kernel_row *row)
{
    return ((const tni_mm_row *)row)->thin;
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    const tni_mm_set set = set_of(row);
    tni_mm_product product;
    tni_mm_describe(query->op, &product);
    if (thin_of(row) && tni_mm_low_is_thin(&product))
        return tni_mm_low_thin_workspace(thin_of(row), &product);
    if (tni_mm_low_is_narrow(&set, &product))
        return tni_mm_low_narrow_workspace(&set, &product);
    return tni_mm_packed_workspace(&set, &product, query->threads);
}

static tn_status run(const tn_run *run, tn_error *err)
{
    const tni_mm_set set = set_of(run->row);
    tni_mm_product product;
    (void)err;
    tni_mm_describe(run->op, &product);
    if (thin_of(run->row) && tni_mm_low_is_thin(&product))
        tni_mm_low_thin_run(thin_of(run->row), set.acc, &product, run);
    else if (tni_mm_low_is_narrow(&set, &product))
        tni_mm_low_narrow_run(&set, &product, run);
    else
        tni_mm_packed_run(&set, &product, run);
    return TN_OK;
}

static const tn_dtype dtypes_i8[] = {TN_I8, 0};
static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
static const tn_dtype dtypes_f16[] = {TN_F16, 0};

enum {
    USES = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
           TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |
           TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION | TN_MATMUL_USES_OUT_DTYPE |
           TN_MATMUL_USES_ACC,
    DIMS = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH
};

#define ROW(type, isa, needs, its_set, its_packs, its_thin, flops, bytes, overhead, ...) \
    const tni_mm_row tni_mm_row_##type##_##isa = {                                       \
        .row = {.struct_size = sizeof(tn_kernel_row),                                    \
                .name = "cpu.matmul." #type "." #isa,                                    \
                .platform = "cpu",                                                       \
                .op = TN_OP_MATMUL,                                                      \
                .version = 1,                                                            \
                .dtypes = dtypes_##type,                                                 \
                .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,                  \
                .honours = USES,                                                         \
                .free_dims = DIMS,                                                       \
                .cpu_needs = (needs),                                                    \
                .flops_per_us = (flops),                                                 \
                .bytes_per_us = (bytes),                                                 \
                .overhead_us = (overhead),                                               \
                .admit = admit,                                                          \
                .workspace = workspace,                                                  \
                .run = run,                                                              \
                .cost = tni_mm_low_cost},                                                \
        .set = &(its_set),                                                               \
        .packs = its_packs,                                                              \
        .thin = its_thin,                                                                \
        __VA_ARGS__};
#define COST(call, step, row, few) \
    .call_ns = (call), .step_ns = (step), .row_ns = (row), .thin_ns = (few)
#define OWN(type, isa, needs, flops, ...)                                                       \
    ROW(type, isa, needs, tni_mm_##type##_##isa, NULL, &tni_mm_thin_##type##_##isa, flops, 2e4, \
        0.4, __VA_ARGS__)
#define WIDENED(type, isa, needs, flops, ...)                              \
    ROW(type, isa, needs, tni_mm_f32_##isa.packed, &tni_mm_##type##_##isa, \
        &tni_mm_thin_##type##_##isa, flops, 2e4, 0.8, __VA_ARGS__)
/* Few rows are packed like many, which takes longer than reading them in place. */
#define TILED(type, isa, needs, flops, bytes, overhead, ...) \
    ROW(type, isa, needs, tni_mm_##type##_##isa, NULL, NULL, flops, bytes, overhead, __VA_ARGS__)

OWN(i8, plain, 0, 40e3, COST(340, 3, 8, 0.75))
WIDENED(bf16, plain, 0, 20e3, COST(400, 9, 33, 1.9))
WIDENED(f16, plain, 0, 20e3, COST(400, 9, 33, 1.9))
#if defined(TENON_ISA_AVX2)
OWN(i8, avx2, TENON_ISA_AVX2, 110e3, COST(420, 1.6, 4, 0.33))
WIDENED(bf16, avx2, TENON_ISA_AVX2, 70e3, COST(420, 3.3, 45, 0.4))
WIDENED(f16, avx2, TENON_ISA_AVX2, 70e3, COST(420, 3.3, 45, 0.4))
#endif
#if defined(TENON_ISA_AVX_VNNI)
OWN(i8, avx_vnni, TENON_ISA_AVX_VNNI, 300e3, COST(420, 0.76, 5.5, 0.11))
#endif
#if defined(TENON_ISA_AVX512)
OWN(i8, avx512, TENON_ISA_AVX512, 150e3, COST(365, 4.1, 4, 0.25))
WIDENED(bf16, avx512, TENON_ISA_AVX512, 120e3, COST(380, 6.5, 41, 0.31))
WIDENED(f16, avx512, TENON_ISA_AVX512, 120e3, COST(380, 6.5, 41, 0.31))
#endif
#if defined(TENON_ISA_AVX512_VNNI)
OWN(i8, avx512_vnni, TENON_ISA_AVX512_VNNI, 550e3, COST(365, 0.87, 4, 0.1))
#endif
#if defined(TENON_ISA_AVX512_BF16)
/* Twice as fast as f32 on some processors; half as fast on others, which have AMX. */
TILED(bf16, avx512_bf16, TENON_ISA_AVX512_BF16, 140e3, 8e3, 0.35, COST(430, 8.5, 26, 0))
#endif
#if defined(TENON_ISA_AMX)
TILED(i8, amx, TENON_ISA_AMX, 1500e3, 19e3, 0.4, COST(680, 0.6, 27, 0))
TILED(bf16, amx, TENON_ISA_AMX, 800e3, 14e3, 0.4, COST(750, 1.2, 16, 0))
#endif
#if defined(TENON_ISA_ARM_DOTPROD)
OWN(i8, arm_dotprod, TENON_ISA_ARM_DOTPROD, 150e3, COST(365, 0.76, 5.5, 0.11))
#endif
