/* Kernels of fft. */
#include "fft_scheme.h"

/* ROOM, and a slice for each thread. */
static uint64_t workspace_of_fft(const tn_query *query, const tni_fft_machine *machine)
{
    tni_fft_scheme scheme;
    tni_fft_scheme_make(query->op, machine, NULL, &scheme);
    const int64_t threads = query->threads > 1 ? query->threads : 1;
    return (uint64_t)(scheme.room + threads * tni_fft_slice_bytes(&scheme));
}

static tn_status run_fft(const tn_run *run, const tni_fft_machine *machine, tni_fft_compute *f32,
                         tni_fft_compute *f64)
{
    tni_fft_scheme scheme;
    tni_fft_scheme_make(run->op, machine, run->plan, &scheme);
    const int64_t slice = tni_fft_slice_bytes(&scheme);
    const int64_t slices = ((int64_t)run->workspace_bytes - scheme.room) / slice;
    const tni_fft_work work = {.run = run,
                               .scheme = &scheme,
                               .plan = run->plan,
                               .slices = slices < run->threads ? slices
                                         : run->threads > 1    ? run->threads
                                                               : 1,
                               .room = run->workspace,
                               .memory = (char *)run->workspace + scheme.room};
    (tni_fft_is_wide(run->op) ? f64 : f32)(&work);
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_C64, TN_F64, TN_C128, 0};

/* Instruction set, its CPU requirements, bytes of a vector, whether there are 32 registers,
 * operations per microsecond of a core. */
#define ROW(isa, needs, bytes, many, rate)                                                         \
    tni_fft_compute tni_cpu_fft_f32_##isa, tni_cpu_fft_f64_##isa;                                  \
    static const tni_fft_machine machine_##isa = {bytes, many, tni_cpu_fft_f64_##isa};             \
    static uint64_t workspace_##isa(const tn_kernel_row *row, const tn_query *query)               \
    {                                                                                              \
        (void)row;                                                                                 \
        return workspace_of_fft(query, &machine_##isa);                                            \
    }                                                                                              \
    static tn_status plan_##isa(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err) \
    {                                                                                              \
        return tni_fft_plan_make(run, &machine_##isa, out, out_bytes, err);                        \
    }                                                                                              \
    static tn_status run_##isa(const tn_run *run, tn_error *err)                                   \
    {                                                                                              \
        (void)err;                                                                                 \
        return run_fft(run, &machine_##isa, tni_cpu_fft_f32_##isa, tni_cpu_fft_f64_##isa);         \
    }                                                                                              \
    const tn_kernel_row tni_cpu_fft_row_##isa = {                                                  \
        .struct_size = sizeof(tn_kernel_row),                                                      \
        .name = "cpu.fft." #isa,                                                                   \
        .platform = "cpu",                                                                         \
        .op = TN_OP_FFT,                                                                           \
        .version = 1,                                                                              \
        .dtypes = dtypes,                                                                          \
        .numerics = TN_NUM_RUN_TO_RUN,                                                             \
        .honours = TN_FFT_USES_STRIDES | TN_FFT_USES_BROADCAST | TN_FFT_USES_REAL |                \
                   TN_FFT_USES_IN_PLACE | TN_FFT_USES_DIMS,                                        \
        .free_dims = TN_FFT_DIM_BATCH,                                                             \
        .cpu_needs = needs,                                                                        \
        .flops_per_us = (rate),                                                                    \
        .bytes_per_us = 6e3,                                                                       \
        .overhead_us = 0.2,                                                                        \
        .workspace = workspace_##isa,                                                              \
        .plan = plan_##isa,                                                                        \
        .plan_release = tni_fft_plan_release,                                                      \
        .run = run_##isa};

#if defined(__aarch64__)
ROW(neon, 0, 16, true, 6e3)
#else
ROW(plain, 0, 16, false, 3e3)
#endif
#if defined(TENON_ISA_AVX2)
ROW(avx2, TENON_ISA_AVX2, 32, false, 9e3)
#endif
#if defined(TENON_ISA_AVX512)
ROW(avx512, TENON_ISA_AVX512, 64, true, 14e3)
#endif
