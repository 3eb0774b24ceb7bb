/* The kernels of matmul: f32 and f64; i8, summed exactly in i32, which wraps; bf16 and f16, summed
 * in f32.
 *
 * The bf16 instructions of avx512_bf16, amx and neon_bf16 flush subnormals to 0: operands and sums
 * below 2^-126 in magnitude. Those of neon_bf16 round sums to odd. Everything else is rounded as in
 * f32. */
#include "../shared/row_kernels.h"
#include "matmul_cost.h"
#include "matmul_in_place.h"
#include "matmul_lowp_narrow.h"
#include "matmul_stream.h"
#include "matmul_thin.h"

static uint64_t most_bytes(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Packs B for many products, unless it has fewer rows than that. */
static tn_status pack_b(const tni_mm_set *set, int64_t rows_least, const tn_run *run, void **out,
                        uint64_t *out_bytes, tn_error *err)
{
    const char *const name = run->row->name;
    tni_mm_product product;
    tni_mm_describe(run->op, &product);
    if (!tni_mm_stream_packs(set, &product, rows_least))
        return tn_fail(err, TN_UNSUPPORTED, 0, name, "packing does not make this product faster");
    const uint64_t bytes = tni_mm_stream_packed_bytes(set, &product);
    char *made = run->host->alloc(run->host->self, bytes, 64);
    if (!made)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, name, "no memory for %llu bytes of packed B",
                       (unsigned long long)bytes);
    tni_mm_stream_pack(set, &product, run, made);
    *out = made;
    *out_bytes = bytes;
    return TN_OK;
}

static void release_packed(const tn_run *run, void *packed)
{
    run->host->release(run->host->self, packed);
}

/* f32 and f64: the choice of algorithm for a product */

/* Whether B is streamed rather than read in place or packed as a whole: if it is contiguous along k,
 * as soon as there are more rows than are summed at once; if its rows are, with more rows, and unless
 * it is so small that in place it stays in a cache. */
static bool is_streamed(const tni_mm_set *set, const tni_mm_product *p)
{
    enum { ROWS = 10, SMALL_BYTES = 4 << 20 };
    if (p->m <= TNI_MM_THIN || !tni_mm_stream_suits(set, p))
        return false;
    const bool small = p->n * p->k < SMALL_BYTES / p->b.size && tni_mm_is_in_place(p);
    return p->b.column != 1 || (p->m > ROWS && !small);
}

static tn_status run_real(const tn_run *run, const tni_mm_kernels *f32, const tni_mm_kernels *f64,
                          tn_error *err)
{
    const tn_op *op = run->op;
    const tni_mm_kernels *kernels = op->operand[TN_MATMUL_A].dtype == TN_F32 ? f32 : f64;
    if (!run->packed && !(op->uses & ~(uint64_t)TNI_MM_PLAIN_USES) &&
        tni_mm_plain_run(kernels, run))
        return TN_OK;
    tni_mm_product product;
    bool fits = true;
    tni_mm_describe(op, &product);
    if (run->packed || is_streamed(&kernels->packed, &product))
        tni_mm_stream_run(&kernels->packed, &product, run);
    else if (tni_mm_is_thin(&product))
        tni_mm_thin_run(kernels, &product, run);
    else if (tni_mm_is_in_place(&product))
        fits = tni_mm_in_place_run(kernels, &product, run);
    else
        tni_mm_packed_run(&kernels->packed, &product, run);
    return fits ? TN_OK
                : tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a panel of B");
}

static uint64_t workspace_real(const tn_query *query, const tni_mm_kernels *f32,
                               const tni_mm_kernels *f64)
{
    const tni_mm_kernels *kernels = query->op->operand[TN_MATMUL_A].dtype == TN_F32 ? f32 : f64;
    const tni_mm_set *set = &kernels->packed;
    tni_mm_product product;
    tni_mm_describe(query->op, &product);
    const uint64_t bytes = tni_mm_stream_packs(set, &product, 1)
                               ? tni_mm_stream_packed_workspace(set, &product, query->threads)
                               : 0;
    if (is_streamed(set, &product))
        return most_bytes(tni_mm_stream_workspace(set, &product, query->threads), bytes);
    if (tni_mm_is_thin(&product))
        return most_bytes(tni_mm_thin_workspace(&product), bytes);
    if (tni_mm_is_in_place(&product))
        return bytes;
    return most_bytes(tni_mm_packed_workspace(set, &product, query->threads), bytes);
}

static tn_status pack_real(const tn_run *run, const tni_mm_kernels *f32, const tni_mm_kernels *f64,
                           void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_dtype dtype = run->op->operand[TN_MATMUL_A].dtype;
    return pack_b(dtype == TN_F32 ? &f32->packed : &f64->packed, 1, run, out, out_bytes, err);
}

static double cost_real(const tn_query *query, const tni_mm_kernels *f32, const tni_mm_kernels *f64,
                        double step_ns)
{
    const tn_dtype dtype = query->op->operand[TN_MATMUL_A].dtype;
    return tni_mm_cost(dtype == TN_F32 ? f32 : f64, step_ns, query);
}

static tn_status admit_real(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"a", "b", "out", "bias", "scale_a", "scale_b"};
    const tn_op *op = query->op;
    const tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    (void)row;
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    return TN_OK;
}

/* i8, bf16 and f16. Allowed dtypes of out, bias and accumulator: the operands' own or f32; for i8,
 * i32 or f32. */
static tn_status admit_low(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_dtype in = op->operand[TN_MATMUL_A].dtype, own = in == TN_I8 ? TN_I32 : in;
    const tn_dtype b = op->operand[TN_MATMUL_B].dtype, out = op->operand[TN_MATMUL_OUT].dtype;
    const tn_dtype bias = op->count > TN_MATMUL_BIAS ? op->operand[TN_MATMUL_BIAS].dtype : 0;
    const tn_dtype acc = TN_PARAMS(op, matmul)->acc, sums = in == TN_I8 ? TN_I32 : TN_F32;
    (void)row;
    if (b != in)
        return tni_cpu_reject_dtype(why, "b.dtype", in, b,
                                    "A and B must have the same dtype: cast one of them");
    if (out != own && out != TN_F32)
        return tni_cpu_reject_dtype(why, "out.dtype", own, out,
                                    "out must be f32 or have A's dtype (i32 for i8)");
    if (bias && bias != out)
        return tni_cpu_reject_dtype(why, "bias.dtype", out, bias, "bias must have out's dtype");
    if (acc && acc != sums && acc != own)
        return tni_cpu_reject_dtype(why, "acc", sums, acc, "the accumulator is f32, or i32 for i8");
    if (TN_PARAMS(op, matmul)->activation != TN_ACT_NONE && out == TN_I32)
        return tni_cpu_reject_dtype(why, "activation", TN_F32, out,
                                    "activations need an out of floats");
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

/* Minimum rows for packing B beforehand. Panels of widened elements have twice the bytes of B. */
static int64_t rows_to_pack(const tn_kernel_row *row)
{
    return ((const tni_mm_row *)row)->packs ? TNI_MM_FEW + 1 : 1;
}

static uint64_t workspace_low(const tn_kernel_row *row, const tn_query *query)
{
    const tni_mm_set set = set_of(row);
    tni_mm_product product;
    tni_mm_describe(query->op, &product);
    const uint64_t bytes = tni_mm_stream_packs(&set, &product, rows_to_pack(row))
                               ? tni_mm_stream_packed_workspace(&set, &product, query->threads)
                               : 0;
    if (thin_of(row) && tni_mm_low_is_thin(&product))
        return most_bytes(tni_mm_low_thin_workspace(thin_of(row), &product), bytes);
    if (tni_mm_low_is_narrow(&set, &product))
        return most_bytes(tni_mm_low_narrow_workspace(&set, &product), bytes);
    if (tni_mm_stream_suits(&set, &product))
        return most_bytes(tni_mm_stream_workspace(&set, &product, query->threads), bytes);
    return most_bytes(tni_mm_packed_workspace(&set, &product, query->threads), bytes);
}

static tn_status pack_low(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tni_mm_set set = set_of(run->row);
    return pack_b(&set, rows_to_pack(run->row), run, out, out_bytes, err);
}

static tn_status run_low(const tn_run *run, tn_error *err)
{
    const tni_mm_set set = set_of(run->row);
    tni_mm_product product;
    (void)err;
    tni_mm_describe(run->op, &product);
    if (run->packed)
        tni_mm_stream_run(&set, &product, run);
    else if (thin_of(run->row) && tni_mm_low_is_thin(&product))
        tni_mm_low_thin_run(thin_of(run->row), set.acc, &product, run);
    else if (tni_mm_low_is_narrow(&set, &product))
        tni_mm_low_narrow_run(&set, &product, run);
    else if (tni_mm_stream_suits(&set, &product))
        tni_mm_stream_run(&set, &product, run);
    else
        tni_mm_packed_run(&set, &product, run);
    return TN_OK;
}

static const tn_dtype dtypes_real[] = {TN_F32, TN_F64, 0};
static const tn_dtype dtypes_i8[] = {TN_I8, 0};
static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
static const tn_dtype dtypes_f16[] = {TN_F16, 0};

#define DIMS (TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH)
#define USES                                                                                     \
    (TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |                \
     TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA | TN_MATMUL_USES_BIAS | \
     TN_MATMUL_USES_ACTIVATION)

/* Fields of every row: name, dtypes, features, CPU requirements; operations and bytes per
 * microsecond of a core; overhead of a call in microseconds. */
#define FIELDS(word, types, uses, needs, flops, bytes, overhead)                                \
    .struct_size = sizeof(tn_kernel_row), .name = "cpu.matmul." word, .platform = "cpu",        \
    .op = TN_OP_MATMUL, .version = 1, .dtypes = types,                                          \
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT, .honours = uses, .free_dims = DIMS, \
    .cpu_needs = needs, .flops_per_us = (flops), .bytes_per_us = (bytes),                       \
    .overhead_us = (overhead)

/* The step is the time of a vector multiply-add, in nanoseconds. */
#define REAL(isa, needs, flops, bytes, step)                                                  \
    static tn_status run_##isa(const tn_run *run, tn_error *err)                              \
    {                                                                                         \
        return run_real(run, &tni_mm_f32_##isa, &tni_mm_f64_##isa, err);                      \
    }                                                                                         \
    static tn_status pack_##isa(const tn_run *run, void **out, uint64_t *size, tn_error *err) \
    {                                                                                         \
        return pack_real(run, &tni_mm_f32_##isa, &tni_mm_f64_##isa, out, size, err);          \
    }                                                                                         \
    static uint64_t workspace_##isa(const tn_kernel_row *row, const tn_query *query)          \
    {                                                                                         \
        (void)row;                                                                            \
        return workspace_real(query, &tni_mm_f32_##isa, &tni_mm_f64_##isa);                   \
    }                                                                                         \
    static double cost_##isa(const tn_kernel_row *row, const tn_query *query)                 \
    {                                                                                         \
        (void)row;                                                                            \
        return cost_real(query, &tni_mm_f32_##isa, &tni_mm_f64_##isa, step);                  \
    }                                                                                         \
    const tn_kernel_row tni_cpu_matmul_row_##isa = {                                          \
        FIELDS(#isa, dtypes_real, USES, needs, flops, bytes, 0.05),                           \
        .admit = admit_real,                                                                  \
        .workspace = workspace_##isa,                                                         \
        .run = run_##isa,                                                                     \
        .cost = cost_##isa,                                                                   \
        .pack = pack_##isa,                                                                   \
        .pack_release = release_packed};

#define LOW_USES (USES | TN_MATMUL_USES_OUT_DTYPE | TN_MATMUL_USES_ACC)
#define LOW(type, isa, needs, its_set, its_packs, its_thin, flops, bytes, overhead, ...)        \
    const tni_mm_row tni_mm_row_##type##_##isa = {                                              \
        .row = {FIELDS(#type "." #isa, dtypes_##type, LOW_USES, needs, flops, bytes, overhead), \
                .admit = admit_low, .workspace = workspace_low, .run = run_low,                 \
                .cost = tni_mm_low_cost, .pack = pack_low, .pack_release = release_packed},     \
        .set = &(its_set),                                                                      \
        .packs = its_packs,                                                                     \
        .thin = its_thin,                                                                       \
        __VA_ARGS__};
#define COST(call, step, row, few) \
    .call_ns = (call), .step_ns = (step), .row_ns = (row), .thin_ns = (few)
#define OWN(type, isa, needs, flops, ...)                                                       \
    LOW(type, isa, needs, tni_mm_##type##_##isa, NULL, &tni_mm_thin_##type##_##isa, flops, 2e4, \
        0.4, __VA_ARGS__)
#define WIDENED(type, isa, needs, flops, ...)                              \
    LOW(type, isa, needs, tni_mm_f32_##isa.packed, &tni_mm_##type##_##isa, \
        &tni_mm_thin_##type##_##isa, flops, 2e4, 0.8, __VA_ARGS__)
/* Few rows are packed like many, which takes longer than reading them in place. */
#define TILED(type, isa, needs, flops, bytes, overhead, ...) \
    LOW(type, isa, needs, tni_mm_##type##_##isa, NULL, NULL, flops, bytes, overhead, __VA_ARGS__)

#if defined(__aarch64__)
REAL(neon, 0, 1.5e4, 8e3, 0.27)
#else
REAL(plain, 0, 1.5e4, 8e3, 0.3)
#endif
#if defined(TENON_ISA_AVX2)
REAL(avx2, TENON_ISA_AVX2, 7e4, 1e4, 0.163)
#endif
#if defined(TENON_ISA_AVX512)
REAL(avx512, TENON_ISA_AVX512, 1.4e5, 1e4, 0.163)
#endif

#if defined(__aarch64__)
OWN(i8, neon, 0, 40e3, COST(340, 3, 8, 0.75))
WIDENED(bf16, neon, 0, 20e3, COST(400, 9, 33, 1.9))
WIDENED(f16, neon, 0, 20e3, COST(400, 9, 33, 1.9))
#else
OWN(i8, plain, 0, 40e3, COST(340, 3, 8, 0.75))
WIDENED(bf16, plain, 0, 20e3, COST(400, 9, 33, 1.9))
WIDENED(f16, plain, 0, 20e3, COST(400, 9, 33, 1.9))
#endif
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
#if defined(TENON_ISA_NEON_DOTPROD)
OWN(i8, neon_dotprod, TENON_ISA_NEON_DOTPROD, 150e3, COST(365, 0.76, 5.5, 0.11))
#endif
/* The inputs of the cost models of the next two follow from counts of instructions; they were not
 * measured. */
#if defined(TENON_ISA_NEON_I8MM)
OWN(i8, neon_i8mm, TENON_ISA_NEON_I8MM, 200e3, COST(365, 0.8, 5.5, 0.11))
#endif
#if defined(TENON_ISA_NEON_BF16)
OWN(bf16, neon_bf16, TENON_ISA_NEON_BF16, 100e3, COST(400, 1.6, 33, 0.4))
#endif
