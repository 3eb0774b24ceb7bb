#include "settings_plans.h"

#include "settings_check.h"
#include "toy.h"

#include "device/description.h"
#include "device/platform/platforms.h"
#include "dispatch/judge.h"
#include "settings/context.h"

/* Kernels for devices that are only described. By platform and dtype, the faster one first:
 *     cuda    f32   tf32 rounds to tf32; plain
 *             f16, bf16   narrow sums in 16 bits and splits; splits; plain
 *             f16   f16-sums sums in f16
 *             f64   lt of cublaslt; blas of cublas
 *             c128, i8   roomy-lt and roomy-blas, which refuse without memory for their libraries; bare
 *             bf16  grouped refuses what is alone, and where cublaslt is preferred for groups
 *             c64   loose of cudnn promises nothing; steady promises run-to-run
 *     opencl  f32   dnn-tf32 of mkldnn; plain
 *             f64   dnn-loose of mkldnn; steady promises run-to-run
 *             c64   search of miopen, which refuses its immediate mode; found
 * Of attention on cuda, plain is math and the slowest of each; besides it
 *             f32   flash; ck of ck; tf32 is math and rounds to tf32
 *             f16   narrow is math and sums in 16 bits; efficient
 *             bf16  fused of cudnn's family; f64   foreign is overrideable */
static tn_status run(const tn_run *r, tn_error *err)
{
    (void)r, (void)err;
    return TN_OK;
}

/* Whether the setting of its library's memory is not 0. */
static tn_status has_room(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const char *key = strcmp(row->library, "cublas") == 0 ? "cuda.cublas_workspace_size"
                                                          : "cuda.cublaslt_workspace_size";
    int64_t bytes = 0;
    assert_int_equal(query->setting(query, key, &bytes), TN_OK);
    return bytes ? TN_OK : tn_refuse(why, TN_REFUSE_SETTING, "workspace", 1, 0);
}

/* Whether it is one of several, which need not go to another library. */
static tn_status is_grouped(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t other = 0;
    (void)row;
    assert_int_equal(query->setting(query, "cuda.matmul.prefer_cublaslt_grouped_gemm", &other),
                     TN_OK);
    return tn_op_matmul(query->op)->grouped && !other
               ? TN_OK
               : tn_refuse(why, TN_REFUSE_SETTING, "grouped", 1, 0);
}

/* Whether the library may search for its best kernel. */
static tn_status may_search(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t immediate = 0;
    (void)row;
    assert_int_equal(query->setting(query, "miopen.immediate", &immediate), TN_OK);
    return immediate ? tn_refuse(why, TN_REFUSE_SETTING, "immediate", 0, 1) : TN_OK;
}

#define KERNEL(word, on, speed, ...)                               \
    static const tn_kernel_row word = {.struct_size = sizeof word, \
                                       .platform = on,             \
                                       .op = TN_OP_MATMUL,         \
                                       .version = 1,               \
                                       .flops_per_us = speed,      \
                                       .bytes_per_us = 1e9,        \
                                       .run = run,                 \
                                       __VA_ARGS__}
#define DTYPES(...)    \
    (const tn_dtype[]) \
    {                  \
        __VA_ARGS__, 0 \
    }
KERNEL(cuda_tf32, "cuda", 9, .name = "cuda.matmul.tf32", .dtypes = DTYPES(TN_F32),
       .numerics = TN_NUM_ROUNDS_F32_TF32);
KERNEL(cuda_narrow, "cuda", 9, .name = "cuda.matmul.narrow", .dtypes = DTYPES(TN_F16, TN_BF16),
       .numerics = TN_NUM_REDUCED_REDUCTION | TN_NUM_SPLIT_SUMS);
KERNEL(cuda_splits, "cuda", 5, .name = "cuda.matmul.splits", .dtypes = DTYPES(TN_F16, TN_BF16),
       .numerics = TN_NUM_SPLIT_SUMS);
KERNEL(cuda_f16_sums, "cuda", 99, .name = "cuda.matmul.f16-sums", .dtypes = DTYPES(TN_F16),
       .numerics = TN_NUM_F16_SUMS, .honours = TN_MATMUL_USES_ACC);
KERNEL(cuda_roomy_lt, "cuda", 9, .name = "cuda.matmul.roomy-lt", .dtypes = DTYPES(TN_C128),
       .library = "cublaslt", .admit = has_room);
KERNEL(cuda_roomy_blas, "cuda", 5, .name = "cuda.matmul.roomy-blas", .dtypes = DTYPES(TN_I8),
       .library = "cublas", .admit = has_room);
KERNEL(cuda_grouped, "cuda", 99, .name = "cuda.matmul.grouped", .dtypes = DTYPES(TN_BF16),
       .library = "cublas", .admit = is_grouped);
KERNEL(cuda_bare, "cuda", 1, .name = "cuda.matmul.bare", .dtypes = DTYPES(TN_C128, TN_I8));
KERNEL(cuda_plain, "cuda", 1, .name = "cuda.matmul.plain",
       .dtypes = DTYPES(TN_F32, TN_F16, TN_BF16));
KERNEL(cuda_lt, "cuda", 9, .name = "cuda.matmul.lt", .dtypes = DTYPES(TN_F64),
       .library = "cublaslt");
KERNEL(cuda_blas, "cuda", 1, .name = "cuda.matmul.blas", .dtypes = DTYPES(TN_F64),
       .library = "cublas");
KERNEL(cuda_loose, "cuda", 9, .name = "cuda.matmul.loose", .dtypes = DTYPES(TN_C64),
       .library = "cudnn");
KERNEL(cuda_steady, "cuda", 1, .name = "cuda.matmul.steady", .dtypes = DTYPES(TN_C64),
       .numerics = TN_NUM_RUN_TO_RUN);
KERNEL(dnn_tf32, "opencl", 9, .name = "opencl.matmul.dnn-tf32", .dtypes = DTYPES(TN_F32),
       .library = "mkldnn", .numerics = TN_NUM_ROUNDS_F32_TF32);
KERNEL(opencl_plain, "opencl", 1, .name = "opencl.matmul.plain", .dtypes = DTYPES(TN_F32));
KERNEL(dnn_loose, "opencl", 9, .name = "opencl.matmul.dnn-loose", .dtypes = DTYPES(TN_F64),
       .library = "mkldnn");
KERNEL(opencl_steady, "opencl", 1, .name = "opencl.matmul.steady", .dtypes = DTYPES(TN_F64),
       .numerics = TN_NUM_RUN_TO_RUN);
KERNEL(miopen_search, "opencl", 9, .name = "opencl.matmul.search", .dtypes = DTYPES(TN_C64),
       .library = "miopen", .admit = may_search);
KERNEL(miopen_found, "opencl", 1, .name = "opencl.matmul.found", .dtypes = DTYPES(TN_C64),
       .library = "miopen");

#define ATTENTION(word, speed, ...)                                \
    static const tn_kernel_row word = {.struct_size = sizeof word, \
                                       .platform = "cuda",         \
                                       .op = TN_OP_ATTENTION,      \
                                       .version = 1,               \
                                       .flops_per_us = speed,      \
                                       .bytes_per_us = 1e9,        \
                                       .run = run,                 \
                                       __VA_ARGS__}
ATTENTION(sdp_flash, 9, .name = "cuda.attention.flash", .dtypes = DTYPES(TN_F32),
          .backend = "FLASH_ATTN");
ATTENTION(sdp_ck, 5, .name = "cuda.attention.ck", .dtypes = DTYPES(TN_F32), .backend = "flash",
          .library = "ck");
ATTENTION(sdp_narrow, 99, .name = "cuda.attention.narrow", .dtypes = DTYPES(TN_F16),
          .backend = "math", .numerics = TN_NUM_REDUCED_REDUCTION);
ATTENTION(sdp_efficient, 9, .name = "cuda.attention.efficient", .dtypes = DTYPES(TN_F16),
          .backend = "mem_efficient");
ATTENTION(sdp_fused, 9, .name = "cuda.attention.fused", .dtypes = DTYPES(TN_BF16),
          .backend = "cudnn");
ATTENTION(sdp_foreign, 9, .name = "cuda.attention.foreign", .dtypes = DTYPES(TN_F64),
          .backend = "overrideable");
ATTENTION(sdp_tf32, 9, .name = "cuda.attention.tf32", .dtypes = DTYPES(TN_F32), .backend = "math",
          .numerics = TN_NUM_ROUNDS_F32_TF32, .honours = TN_ATTENTION_USES_SOFTCAP);
ATTENTION(sdp_plain, 1, .name = "cuda.attention.plain",
          .dtypes = DTYPES(TN_F32, TN_F16, TN_BF16, TN_F64), .backend = "math",
          .honours = TN_ATTENTION_USES_SOFTCAP);

static const tn_kernel_row *const kernels[] = {
    &cuda_grouped,    &cuda_splits,   &cuda_f16_sums, &cuda_roomy_lt,
    &cuda_roomy_blas, &cuda_bare,     &cuda_tf32,     &cuda_narrow,
    &cuda_plain,      &cuda_lt,       &cuda_blas,     &cuda_loose,
    &cuda_steady,     &dnn_tf32,      &opencl_plain,  &dnn_loose,
    &opencl_steady,   &sdp_flash,     &sdp_ck,        &sdp_narrow,
    &sdp_efficient,   &sdp_fused,     &sdp_foreign,   &sdp_tf32,
    &sdp_plain,       &miopen_search, &miopen_found,  NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "absent",
                                 .version = "1",
                                 .kernels = kernels};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void describe(void)
{
    static const char text[] =
        "[device lab]\nplatform = cuda\nname = A GPU that is not here\n"
        "[device board]\nplatform = opencl\nname = A board that is not here\n";
    static tn_registration *registration;
    tni_platforms *set;
    tni_descriptions *all = NULL;
    tn_error err;
    if (registration)
        return;
    assert_int_equal(tn_module_register(entry, 0, &registration, &err), TN_OK);
    assert_int_equal(tni_platforms_process(&set, &err), TN_OK);
    assert_int_equal(tni_descriptions_parse(text, sizeof text - 1, "lab", &all, &err), TN_OK);
    if (tni_devices_describe(set, all, "lab", &err))
        fail_msg("%s", err.message);
    tni_descriptions_release(all);
}

static const char *choice(const char *problem)
{
    const char *name = toy_choice(NULL, problem);
    return name[0] ? strrchr(name, '.') + 1 : "";
}

static const char f32_lab[] = "matmul:f32:m=8,n=8,k=8@lab",
                  f32_board[] = "matmul:f32:m=8,n=8,k=8@board";
static const char f16_lab[] = "matmul:f16:m=8,n=8,k=8@lab",
                  bf16_lab[] = "matmul:bf16:m=8,n=8,k=8@lab",
                  bf16_groups[] = "matmul:bf16:m=8,n=8,k=8,grouped=1@lab";
static const char f64_lab[] = "matmul:f64:m=8,n=8,k=8@lab",
                  f64_board[] = "matmul:f64:m=8,n=8,k=8@board";
static const char c64_lab[] = "matmul:c64:m=8,n=8,k=8@lab",
                  c64_board[] = "matmul:c64:m=8,n=8,k=8@board",
                  c128_lab[] = "matmul:c128:m=8,n=8,k=8@lab",
                  i8_lab[] = "matmul:i8:m=8,n=8,k=8@lab";
static const char attend_f32[] = "attention:f32:b=1,h=1,l=8,d=8@lab",
                  attend_f16[] = "attention:f16:b=1,h=1,l=8,d=8@lab",
                  attend_bf16[] = "attention:bf16:b=1,h=1,l=8,d=8@lab",
                  attend_f64[] = "attention:f64:b=1,h=1,l=8,d=8@lab",
                  attend_capped[] = "attention:f32:b=1,h=1,l=8,d=8,softcap=30@lab";
static const char on_toy[] = "matmul:f32:m=8,n=8,k=8@toy:0";

/* Rows whose effect is another choice. */
static const struct {
    tn_setting setting;
    const char *change;
    const char *problem;
    const char *before, *after;
} choices[] = {
    {TN_SETTING_FP32_PRECISION, "fp32_precision=tf32", on_toy, "fast", "tf32"},
    {TN_SETTING_CUDA_FP32_PRECISION, "cuda.fp32_precision=tf32", f32_lab, "plain", "tf32"},
    {TN_SETTING_CUDA_MATMUL_FP32_PRECISION, "cuda.matmul.fp32_precision=tf32", f32_lab, "plain",
     "tf32"},
    {TN_SETTING_CUDNN_FP32_PRECISION, "cudnn.fp32_precision=tf32", f32_lab, "plain", "tf32"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_TF32, "cuda.matmul.allow_tf32=true", f32_lab, "plain", "tf32"},
    {TN_SETTING_FLOAT32_MATMUL_PRECISION, "float32_matmul_precision=high", f32_lab, "plain",
     "tf32"},
    {TN_SETTING_MKLDNN_FP32_PRECISION, "mkldnn.fp32_precision=tf32", f32_board, "plain",
     "dnn-tf32"},
    {TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION, "mkldnn.matmul.fp32_precision=tf32", f32_board,
     "plain", "dnn-tf32"},
    {TN_SETTING_MKLDNN_ALLOW_TF32, "mkldnn.allow_tf32=true", f32_board, "plain", "dnn-tf32"},
    {TN_SETTING_CUDA_FP32_PRECISION, "cuda.fp32_precision=tf32", attend_capped, "plain", "tf32"},
    {TN_SETTING_CUDA_MATMUL_FP32_PRECISION, "cuda.matmul.fp32_precision=tf32", attend_capped,
     "plain", "tf32"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_TF32, "cuda.matmul.allow_tf32=true", attend_capped, "plain",
     "tf32"},
    {TN_SETTING_FLOAT32_MATMUL_PRECISION, "float32_matmul_precision=high", attend_capped, "plain",
     "tf32"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION,
     "cuda.matmul.allow_fp16_reduced_precision_reduction=false", f16_lab, "narrow", "splits"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION_SPLIT_K,
     "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k=false", f16_lab, "narrow",
     "plain"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION_SPLIT_K,
     "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k=false", bf16_lab, "narrow",
     "plain"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_FP16_ACCUMULATION, "cuda.matmul.allow_fp16_accumulation=true",
     f16_lab, "narrow", "f16-sums"},
    {TN_SETTING_CUDA_MATMUL_PREFER_CUBLASLT_GROUPED_GEMM,
     "cuda.matmul.prefer_cublaslt_grouped_gemm=true", bf16_groups, "grouped", "narrow"},
    {TN_SETTING_CUDA_CUBLASLT_WORKSPACE_SIZE, "cuda.cublaslt_workspace_size=0", c128_lab,
     "roomy-lt", "bare"},
    {TN_SETTING_CUDA_CUBLAS_WORKSPACE_SIZE, "cuda.cublas_workspace_size=0", i8_lab, "roomy-blas",
     "bare"},
    {TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION,
     "cuda.matmul.allow_bf16_reduced_precision_reduction=false", bf16_lab, "narrow", "splits"},
    {TN_SETTING_DETERMINISM, "determinism=run-to-run", c64_lab, "loose", "steady"},
    {TN_SETTING_CUDNN_DETERMINISTIC, "cudnn.deterministic=true", c64_lab, "loose", "steady"},
    {TN_SETTING_MKLDNN_DETERMINISTIC, "mkldnn.deterministic=true", f64_board, "dnn-loose",
     "steady"},
    {TN_SETTING_MATMUL_LIBRARY, "matmul.library=cublas", f64_lab, "lt", "blas"},
    {TN_SETTING_CUDA_PREFERRED_BLAS_LIBRARY, "cuda.preferred_blas_library=cublas", f64_lab, "lt",
     "blas"},
    {TN_SETTING_CUDA_FLASH_SDP, "cuda.flash_sdp=false", attend_f32, "flash", "plain"},
    {TN_SETTING_CUDA_MEM_EFFICIENT_SDP, "cuda.mem_efficient_sdp=false", attend_f16, "efficient",
     "plain"},
    {TN_SETTING_CUDA_CUDNN_SDP, "cuda.cudnn_sdp=false", attend_bf16, "fused", "plain"},
    {TN_SETTING_CUDA_OVERRIDEABLE_SDP, "cuda.overrideable_sdp=false", attend_f64, "foreign",
     "plain"},
    {TN_SETTING_CUDA_MATH_SDP, "cuda.math_sdp=false", attend_capped, "plain", ""},
    {TN_SETTING_CUDA_SDP_PRIORITY, "cuda.sdp_priority=math", attend_f32, "flash", "plain"},
    {TN_SETTING_CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP,
     "cuda.allow_fp16_bf16_reduction_math_sdp=true", attend_f16, "efficient", "narrow"},
    {TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY, "cuda.preferred_rocm_fa_library=ck", attend_f32,
     "flash", "ck"},
    {TN_SETTING_ATTENTION_BACKEND, "attention.backend=math", attend_f32, "flash", "plain"},
    {TN_SETTING_MIOPEN_IMMEDIATE, "miopen.immediate=true", c64_board, "search", "found"},
    {TN_SETTING_WORKSPACE_LIMIT, "workspace.limit=100", on_toy, "fast", "slow"},
};

static tn_status multiply(tn_error *err)
{
    tn_device *device = toy_device();
    tn_tensor a = toy_tensor(device, TN_F32, 8, 8, 1), b = toy_tensor(device, TN_F32, 8, 8, 2);
    tn_tensor out = toy_tensor(device, TN_F32, 8, 8, 3);
    tn_status status = tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), err);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    return status;
}

/* How often the toy's kernels run for one call whose plan is made anew. */
static int64_t runs_of_a_call(void)
{
    tn_error err = {0};
    int64_t before = toy.runs;
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    if (multiply(&err))
        fail_msg("%s", err.message);
    return toy.runs - before;
}

static void show_admission(void)
{
    set("admission=never");
    assert_int_equal(runs_of_a_call(), 1);
    set("admission=always");
    assert_true(runs_of_a_call() > 1); /* tested first */
}

static void show_tuning(void)
{
    set("admission=never");
    int64_t slow = toy.slow_runs;
    assert_int_equal(runs_of_a_call(), 1);
    set("tuning.enabled=true");
    assert_true(runs_of_a_call() > 3);
    assert_true(toy.slow_runs > slow);
    assert_int_equal(runs_of_a_call(), 1); /* the times are kept */
}

static void show_tuning_limit(void)
{
    tn_error err;
    set("admission=never");
    set("tuning.enabled=true");
    set("tuning.limit=1");
    int64_t slow = toy.slow_runs;
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_int_equal(tn_prepare(NULL, "matmul:f32:m=9,n=8,k=8@toy:0", &err), TN_OK);
    assert_int_equal(toy.slow_runs, slow);
    set("tuning.limit=2");
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_int_equal(tn_prepare(NULL, "matmul:f32:m=10,n=8,k=8@toy:0", &err), TN_OK);
    assert_true(toy.slow_runs > slow);
}

static int64_t kept(void)
{
    tn_plan_cache_state s = {.struct_size = sizeof s};
    tn_error err;
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_int_equal(multiply(&err), TN_OK);
    assert_int_equal(tn_plan_cache_state_get(NULL, NULL, TN_OP_MATMUL, &s, &err), TN_OK);
    return s.size;
}

static void show_cache_size(void)
{
    assert_int_equal(kept(), 1);
    set("plan.cache_size=0");
    assert_int_equal(kept(), 0);
}

static void show_cache_bytes(void)
{
    assert_int_equal(kept(), 1);
    set("plan.cache_bytes=10");
    assert_int_equal(kept(), 0);
}

static void show_only_prepared(void)
{
    tn_error err;
    assert_int_equal(kept(), 1);
    set("plan.only_prepared=true");
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_int_equal(multiply(&err), TN_REFUSED);
}

static void show_sync(void)
{
    tn_error err;
    int64_t before = toy.syncs;
    set("debug.sync=true");
    assert_int_equal(multiply(&err), TN_OK);
    assert_int_equal(toy.syncs, before + 1);
}

static void show_sample(void)
{
    tn_error err;
    assert_int_equal(multiply(&err), TN_OK);
    toy.lies = 2;
    assert_int_equal(multiply(&err), TN_OK);
    set("debug.sample=1");
    assert_int_equal(multiply(&err), TN_CORRUPT);
    assert_contains(err.message, "toy.matmul.fast on toy:0: output ");
    assert_contains(err.message, on_toy);
    assert_int_equal(multiply(&err), TN_OK);
}

static int64_t most_plans_of_fft(void)
{
    tn_plan_cache_state s = {.struct_size = sizeof s};
    tn_device *lab = NULL;
    tn_error err;
    assert_int_equal(tn_device_get("lab", &lab, &err), TN_OK);
    assert_int_equal(tn_plan_cache_state_get(NULL, lab, TN_OP_FFT, &s, &err), TN_OK);
    return s.max_size;
}

/* Plans of fft on cuda have a limit of their own; tests/cuda/cufft.c shows that it is kept. */
static void show_cufft_plan_cache(void)
{
    assert_int_equal(most_plans_of_fft(), 4096);
    set("cuda.cufft_plan_cache.max_size=7");
    assert_int_equal(most_plans_of_fft(), 7);
}

/* Returns how many plans of fft the processor keeps after six lengths, and checks that their memory is bounded too. */
static int64_t plans_of_six_lengths(void)
{
    tn_plan_cache_state s = {.struct_size = sizeof s};
    tn_device *cpu = NULL;
    tn_error err;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    tn_plan_cache_clear(cpu, TN_OP_FFT);
    for (int i = 0; i < 6; i++) {
        char text[64];
        snprintf(text, sizeof text, "fft:c64:shape=4x%d@cpu:0", 2048 << i);
        assert_int_equal(tn_prepare(NULL, text, &err), TN_OK);
    }
    assert_int_equal(tn_plan_cache_state_get(NULL, cpu, TN_OP_FFT, &s, &err), TN_OK);
    assert_true(s.size <= s.max_size);
    assert_int_equal(s.bytes > 0, s.size > 0);
    return s.size;
}

static void show_cpu_fft_plan_cache(void)
{
    assert_int_equal(plans_of_six_lengths(), 6);
    set("cpu.fft_plan_cache.max_size=2");
    assert_int_equal(plans_of_six_lengths(), 2);
    set("cpu.fft_plan_cache.max_size=0");
    assert_int_equal(plans_of_six_lengths(), 0);
}

static void show_crossing(void)
{
    tn_device *cpu = NULL;
    tn_error err;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    tn_tensor in = toy_tensor(toy_device(), TN_F32, 2, 2, 1),
              out = toy_tensor(cpu, TN_F32, 2, 2, 2);
    assert_int_equal(tn_permute(NULL, TN_ARGS(permute, .in = &in, .out = &out), &err), TN_REFUSED);
    set("may_cross_devices=true");
    assert_int_equal(tn_permute(NULL, TN_ARGS(permute, .in = &in, .out = &out), &err), TN_OK);
    tn_tensor_release(&in);
    tn_tensor_release(&out);
}

static const struct {
    tn_setting setting;
    void (*show)(void);
} effects[] = {
    {TN_SETTING_ADMISSION, show_admission},
    {TN_SETTING_TUNING_ENABLED, show_tuning},
    {TN_SETTING_TUNING_LIMIT, show_tuning_limit},
    {TN_SETTING_PLAN_CACHE_SIZE, show_cache_size},
    {TN_SETTING_PLAN_CACHE_BYTES, show_cache_bytes},
    {TN_SETTING_CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, show_cufft_plan_cache},
    {TN_SETTING_CPU_FFT_PLAN_CACHE_MAX_SIZE, show_cpu_fft_plan_cache},
    {TN_SETTING_PLAN_ONLY_PREPARED, show_only_prepared},
    {TN_SETTING_DEBUG_SYNC, show_sync},
    {TN_SETTING_DEBUG_SAMPLE, show_sample},
    {TN_SETTING_MAY_CROSS_DEVICES, show_crossing},
};

/* What plans of the problem's op are told apart by. */
static uint64_t hash_for(const char *problem)
{
    tn_op op;
    char device[16];
    assert_int_equal(tni_problem_parse(problem, &op, device, sizeof device, NULL), TN_OK);
    return tni_context_hash(tni_context_or_current(NULL), tni_op_class_of(op.kind));
}

/* Another kernel is chosen, and a plan that was made before does not stand for it. */
static void show_choice(const char *problem, const char *change, const char *before,
                        const char *after)
{
    reset(NULL);
    assert_string_equal(choice(problem), before);
    uint64_t hash = hash_for(problem);
    set(change);
    assert_string_equal(choice(problem), after);
    assert_int_not_equal(hash_for(problem), hash);
}

bool show_effect_on_plans(tn_setting setting)
{
    bool shown = false;
    toy_device();
    describe();
    reset(NULL);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (choices[i].setting != setting)
            continue;
        show_choice(choices[i].problem, choices[i].change, choices[i].before, choices[i].after);
        shown = true;
    }
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        if (effects[i].setting == setting) {
            set("admission=never");
            effects[i].show();
            shown = true;
        }
    }
    reset(NULL);
    return shown;
}
