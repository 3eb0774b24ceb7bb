/* All readers of settings, in every layer. */
#include "device/platform/platforms.h"
#include "op/op.h"

static const tn_setting of_plans[] = {TN_SETTING_PLAN_CACHE_SIZE,
                                      TN_SETTING_PLAN_CACHE_BYTES,
                                      TN_SETTING_PLAN_ONLY_PREPARED,
                                      TN_SETTING_DEBUG_SYNC,
                                      TN_SETTING_DEBUG_SAMPLE,
                                      TN_SETTING_MAY_CROSS_DEVICES,
                                      -1};

static const tni_setting_reader plans = {"plans", of_plans, TNI_READS_ALWAYS};
static const tni_setting_reader matmul = {"matmul", tni_matmul_settings, TNI_OPS_MATMUL};
static const tni_setting_reader attention = {"attention", tni_attention_settings,
                                             TNI_OPS_ATTENTION};
static const tn_setting of_sdpa[] = {TN_SETTING_INFERENCE, TN_SETTING_DETERMINISM,
                                     TN_SETTING_CUDNN_DETERMINISTIC, -1};
static const tni_setting_reader sdpa = {"attention conditions", of_sdpa, TNI_READS_ALWAYS};
static const tn_setting of_einsum[] = {TN_SETTING_OPT_EINSUM_ENABLED,
                                       TN_SETTING_OPT_EINSUM_STRATEGY, -1};
static const tni_setting_reader einsum = {"einsum", of_einsum, TNI_READS_ALWAYS};
static const tni_setting_reader elementwise = {"elementwise and row operators",
                                               tni_elementwise_settings, TNI_OPS_ELEMENTWISE};
static const tni_setting_reader fft = {"fft", tni_fft_settings, TNI_OPS_FFT};
static const tn_setting of_fft_plans[] = {TN_SETTING_CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, -1};
static const tn_setting of_cpu_fft_plans[] = {TN_SETTING_CPU_FFT_PLAN_CACHE_MAX_SIZE, -1};
static const tni_setting_reader cpu_fft_plans = {"plans of fft", of_cpu_fft_plans,
                                                 TNI_READS_ALWAYS};
static const tni_setting_reader fft_plans = {"plans of fft", of_fft_plans, TNI_OPS_FFT};

const tn_setting tni_settings_of_dispatch[] = {TN_SETTING_RULES,
                                               TN_SETTING_DETERMINISM,
                                               TN_SETTING_TUNING_ENABLED,
                                               TN_SETTING_TUNING_LIMIT,
                                               TN_SETTING_ADMISSION,
                                               TN_SETTING_WORKSPACE_LIMIT,
                                               -1};

const tni_kernel_setting tni_kernel_settings[] = {
    {TN_SETTING_CUDA_MATMUL_PREFER_CUBLASLT_GROUPED_GEMM, "nvrtc"},
    {TN_SETTING_CUDA_CUBLAS_WORKSPACE_SIZE, "cublas"},
    {TN_SETTING_CUDA_CUBLASLT_WORKSPACE_SIZE, "cublaslt"},
    {TN_SETTING_CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, "cufft"},
    {TN_SETTING_MIOPEN_IMMEDIATE, "miopen"},
    {-1, NULL}};

const tni_setting_reader *const tni_setting_readers[] = {&tni_cpu_reader,
                                                         &tni_library_reader,
                                                         &tni_platform_reader,
                                                         &plans,
                                                         &matmul,
                                                         &attention,
                                                         &sdpa,
                                                         &elementwise,
                                                         &fft,
                                                         &fft_plans,
                                                         &cpu_fft_plans,
                                                         &einsum,
                                                         NULL};
