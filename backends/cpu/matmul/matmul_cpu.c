/* The module's own matmul of f32 and f64: a kernel row for each instruction set, and the choice of
 * algorithm for a product. */
#include "../cpu_module.h"
#include "matmul_cost.h"
#include "matmul_in_place.h"
#include "matmul_thin.h"

static tn_status run_on(const tn_run *run, const tni_mm_kernels *f32, const tni_mm_kernels *f64,
                        tn_error *err)
{
    const tn_op *op = run->op;
    const tni_mm_kernels *kernels = op->operand[TN_MATMUL_A].dtype == TN_F32 ? f32 : f64;
    if (!(op->uses & ~(uint64_t)TNI_MM_PLAIN_USES) && tni_mm_plain_run(kernels, run))
        return TN_OK;
    tni_mm_product product;
    bool fits = true;
    tni_mm_describe(op, &product);
    if (tni_mm_is_thin(&product))
        tni_mm_thin_run(kernels, &product, run);
    else if (tni_mm_is_in_place(&product))
        fits = tni_mm_in_place_run(kernels, &product, run);
    else
        tni_mm_packed_run(&kernels->packed, &product, run);
    return fits ? TN_OK
                : tn_fail(err, TN_OUT_OF_MEMORY, 0, run->row->name, "no memory for a panel of B");
}

static uint64_t workspace_on(const tn_query *query, const tni_mm_kernels *f32,
                             const tni_mm_kernels *f64)
{
    const tni_mm_kernels *kernels = query->op->operand[TN_MATMUL_A].dtype == TN_F32 ? f32 : f64;
    tni_mm_product product;
    tni_mm_describe(query->op, &product);
    if (tni_mm_is_thin(&product))
        return tni_mm_thin_workspace(&product);
    if (tni_mm_is_in_place(&product))
        return 0;
    return tni_mm_packed_workspace(&kernels->packed, &product, query->threads);
}

static double cost_on(const tn_query *query, const tni_mm_kernels *f32, const tni_mm_kernels *f64,
                      double step_ns)
{
    const tn_dtype dtype = query->op->operand[TN_MATMUL_A].dtype;
    return tni_mm_cost(dtype == TN_F32 ? f32 : f64, step_ns, query);
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
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

static const tn_dtype dtypes[] = {TN_F32, TN_F64, 0};

/* Instruction set, its CPU requirements, operations/us and bytes/us of one core, and the
 * nanoseconds of a vector multiply-add. */
#define ROW(isa, needs, flops, bytes, step)                                                     \
    static tn_status run_##isa(const tn_run *run, tn_error *err)                                \
    {                                                                                           \
        return run_on(run, &tni_mm_f32_##isa, &tni_mm_f64_##isa, err);                          \
    }                                                                                           \
    static uint64_t workspace_##isa(const tn_kernel_row *row, const tn_query *query)            \
    {                                                                                           \
        (void)row;                                                                              \
        return workspace_on(query, &tni_mm_f32_##isa, &tni_mm_f64_##isa);                       \
    }                                                                                           \
    static double cost_##isa(const tn_kernel_row *row, const tn_query *query)                   \
    {                                                                                           \
        (void)row;                                                                              \
        return cost_on(query, &tni_mm_f32_##isa, &tni_mm_f64_##isa, step);                      \
    }                                                                                           \
    const tn_kernel_row tni_cpu_module_matmul_##isa = {                                         \
        .struct_size = sizeof(tn_kernel_row),                                                   \
        .name = "cpu.matmul." #isa,                                                             \
        .platform = "cpu",                                                                      \
        .op = TN_OP_MATMUL,                                                                     \
        .version = 1,                                                                           \
        .dtypes = dtypes,                                                                       \
        .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,                                 \
        .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE | \
                   TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA |        \
                   TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION,                             \
        .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH, \
        .cpu_needs = needs,                                                                     \
        .flops_per_us = flops,                                                                  \
        .bytes_per_us = bytes,                                                                  \
        .overhead_us = 0.05,                                                                    \
        .admit = admit,                                                                         \
        .workspace = workspace_##isa,                                                           \
        .run = run_##isa,                                                                       \
        .cost = cost_##isa,                                                                     \
    };

#if defined(__aarch64__)
ROW(plain, 0, 1.5e4, 8e3, 0.27)
#else
ROW(plain, 0, 1.5e4, 8e3, 0.3)
#endif
#if defined(TENON_ISA_AVX2)
ROW(avx2, TENON_ISA_AVX2, 7e4, 1e4, 0.163)
#endif
#if defined(TENON_ISA_AVX512)
ROW(avx512, TENON_ISA_AVX512, 1.4e5, 1e4, 0.163)
#endif
