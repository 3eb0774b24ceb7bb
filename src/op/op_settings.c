/* Settings that are part of plan keys, by group of ops. */
#include "op.h"

/* Includes the precision settings that these inherit from, and their older names. */
const tn_setting tni_matmul_settings[] = {
    TNI_SETTINGS_OF_PLANS,
    TNI_SETTINGS_OF_PRODUCTS,
    TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION,
    TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION_SPLIT_K,
    TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION,
    TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION_SPLIT_K,
    TN_SETTING_CUDA_MATMUL_ALLOW_FP16_ACCUMULATION,
    TN_SETTING_CUDA_MATMUL_PREFER_CUBLASLT_GROUPED_GEMM,
    TN_SETTING_MATMUL_LIBRARY,
    TN_SETTING_CUDA_PREFERRED_BLAS_LIBRARY,
    TN_SETTING_CUDA_CUBLAS_WORKSPACE_SIZE,
    TN_SETTING_CUDA_CUBLASLT_WORKSPACE_SIZE,
    -1};

/* The switches of attention apply on every platform. */
const tn_setting tni_attention_settings[] = {TNI_SETTINGS_OF_PLANS,
                                             TNI_SETTINGS_OF_PRODUCTS,
                                             TN_SETTING_CUDA_FLASH_SDP,
                                             TN_SETTING_CUDA_MEM_EFFICIENT_SDP,
                                             TN_SETTING_CUDA_MATH_SDP,
                                             TN_SETTING_CUDA_CUDNN_SDP,
                                             TN_SETTING_CUDA_OVERRIDEABLE_SDP,
                                             TN_SETTING_CUDA_SDP_PRIORITY,
                                             TN_SETTING_CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP,
                                             TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY,
                                             TN_SETTING_ATTENTION_BACKEND,
                                             -1};

const tn_setting tni_elementwise_settings[] = {TNI_SETTINGS_OF_PLANS, -1};

const tn_setting tni_fft_settings[] = {TNI_SETTINGS_OF_PLANS, TN_SETTING_FFT_LIBRARY, -1};
