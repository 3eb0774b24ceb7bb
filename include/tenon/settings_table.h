/* All settings, one line each. This list generates the numbers and typed functions of setting.h,
 * the texts of tn_setting_info, the page docs/settings.md and `tenon settings`.
 *
 *     X(kind, NAME, name, key, words, default, least, most, since, effect)
 *
 * kind   BOOL    0 or 1
 *        INT     an integer from least to most; `words` is the word for the default, or 0
 *        BYTES   the same, written with k m g t
 *        WORD    one of a list of words, numbered from 0; `words` names the list below
 *        ORDER   several words of a list, best first; omitted words follow
 *        RULE    strength and names, which become rules for the op in `words`
 *        RULES   the rules themselves
 *        VIEW_BOOL, VIEW_WORD   no value of its own: another way to read and write other rows
 * key    PyTorch's name if there is one; the environment variable is TENON_ and the key in upper
 *        case with '_' for '.'
 *
 * A row is never renamed and its line never moved: its number is part of the ABI. New rows go at
 * the end.
 * Thread-safety: macros only. */
#ifndef TENON_SETTINGS_TABLE_H
#define TENON_SETTINGS_TABLE_H

#define TN_SETTING_LIST(X)                                                                         \
    X(WORD, FP32_PRECISION, fp32_precision, "fp32_precision", fp32, 0, 0, 0, "0.1",                \
      "lowest precision allowed for float32 operands, unless a more specific setting overrides "   \
      "it")                                                                                        \
    X(WORD, CUDA_FP32_PRECISION, cuda_fp32_precision, "cuda.fp32_precision", fp32_cuda, 0, 0, 0,   \
      "0.1", "lowest precision allowed for float32 operands on cuda")                              \
    X(WORD, CUDA_MATMUL_FP32_PRECISION, cuda_matmul_fp32_precision, "cuda.matmul.fp32_precision",  \
      fp32_cuda, 0, 0, 0, "0.1",                                                                   \
      "lowest precision allowed for float32 operands of matmul on cuda")                           \
    X(WORD, CUDNN_CONV_FP32_PRECISION, cudnn_conv_fp32_precision, "cudnn.conv.fp32_precision",     \
      fp32_cuda, 0, 0, 0, "0.1",                                                                   \
      "lowest precision allowed for float32 convolution on cuda; tf32 unless set")                 \
    X(WORD, CUDNN_RNN_FP32_PRECISION, cudnn_rnn_fp32_precision, "cudnn.rnn.fp32_precision",        \
      fp32_cuda, 0, 0, 0, "0.1",                                                                   \
      "lowest precision allowed for float32 RNNs on cuda; tf32 unless set")                        \
    X(WORD, MKLDNN_FP32_PRECISION, mkldnn_fp32_precision, "mkldnn.fp32_precision", fp32, 0, 0, 0,  \
      "0.1", "lowest precision allowed for float32 operands in oneDNN")                            \
    X(WORD, MKLDNN_MATMUL_FP32_PRECISION, mkldnn_matmul_fp32_precision,                            \
      "mkldnn.matmul.fp32_precision", fp32, 0, 0, 0, "0.1",                                        \
      "lowest precision allowed for float32 operands of matmul in oneDNN")                         \
    X(WORD, MKLDNN_CONV_FP32_PRECISION, mkldnn_conv_fp32_precision, "mkldnn.conv.fp32_precision",  \
      fp32, 0, 0, 0, "0.1",                                                                        \
      "lowest precision allowed for float32 operands of convolution in oneDNN")                    \
    X(WORD, MKLDNN_RNN_FP32_PRECISION, mkldnn_rnn_fp32_precision, "mkldnn.rnn.fp32_precision",     \
      fp32, 0, 0, 0, "0.1", "lowest precision allowed for float32 operands of RNNs in oneDNN")     \
    X(VIEW_WORD, CUDNN_FP32_PRECISION, cudnn_fp32_precision, "cudnn.fp32_precision", fp32_cuda, 0, \
      0, 0, "0.1", "PyTorch's name for cuda.fp32_precision")                                       \
    X(VIEW_BOOL, CUDA_MATMUL_ALLOW_TF32, cuda_matmul_allow_tf32, "cuda.matmul.allow_tf32", 0, 0,   \
      0, 1, "0.1", "cuda.matmul.fp32_precision as a switch: tf32 or ieee")                         \
    X(VIEW_BOOL, CUDNN_ALLOW_TF32, cudnn_allow_tf32, "cudnn.allow_tf32", 0, 1, 0, 1, "0.1",        \
      "cudnn.conv.fp32_precision and cudnn.rnn.fp32_precision as a switch: tf32 or ieee")          \
    X(VIEW_BOOL, MKLDNN_ALLOW_TF32, mkldnn_allow_tf32, "mkldnn.allow_tf32", 0, 0, 0, 1, "0.1",     \
      "mkldnn.fp32_precision as a switch: tf32 or ieee")                                           \
    X(VIEW_WORD, FLOAT32_MATMUL_PRECISION, float32_matmul_precision, "float32_matmul_precision",   \
      matmul_precision, 0, 0, 0, "0.1",                                                            \
      "cuda.matmul.fp32_precision and mkldnn.matmul.fp32_precision with PyTorch's older values")   \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION,                                    \
      cuda_matmul_allow_fp16_reduced_precision_reduction,                                          \
      "cuda.matmul.allow_fp16_reduced_precision_reduction", 0, 1, 0, 1, "0.1",                     \
      "float16 matmul may add partial sums in float16")                                            \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION_SPLIT_K,                            \
      cuda_matmul_allow_fp16_reduced_precision_reduction_split_k,                                  \
      "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k", 0, 1, 0, 1, "0.1",             \
      "float16 matmul may split the reduction dimension across blocks (split-K)")                  \
    X(BOOL, CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION,                                    \
      cuda_matmul_allow_bf16_reduced_precision_reduction,                                          \
      "cuda.matmul.allow_bf16_reduced_precision_reduction", 0, 1, 0, 1, "0.1",                     \
      "bfloat16 matmul may add partial sums in bfloat16")                                          \
    X(BOOL, CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION_SPLIT_K,                            \
      cuda_matmul_allow_bf16_reduced_precision_reduction_split_k,                                  \
      "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k", 0, 1, 0, 1, "0.1",             \
      "bfloat16 matmul may split the reduction dimension across blocks (split-K)")                 \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_ACCUMULATION, cuda_matmul_allow_fp16_accumulation,              \
      "cuda.matmul.allow_fp16_accumulation", 0, 0, 0, 1, "0.1",                                    \
      "float16 matmul may accumulate in float16")                                                  \
    X(BOOL, CUDA_MATMUL_PREFER_CUBLASLT_GROUPED_GEMM, cuda_matmul_prefer_cublaslt_grouped_gemm,    \
      "cuda.matmul.prefer_cublaslt_grouped_gemm", 0, 0, 0, 1, "0.1",                               \
      "bfloat16 grouped matmul uses cuBLASLt")                                                     \
    X(WORD, CUDA_PREFERRED_BLAS_LIBRARY, cuda_preferred_blas_library,                              \
      "cuda.preferred_blas_library", blas, 0, 0, 0, "0.1",                                         \
      "preferred library for matmul on cuda and rocm")                                             \
    X(WORD, CUDA_PREFERRED_LINALG_LIBRARY, cuda_preferred_linalg_library,                          \
      "cuda.preferred_linalg_library", linalg, 0, 0, 0, "0.1",                                     \
      "preferred library for factorisations on cuda")                                              \
    X(WORD, CUDA_PREFERRED_ROCM_FA_LIBRARY, cuda_preferred_rocm_fa_library,                        \
      "cuda.preferred_rocm_fa_library", rocm_fa, 0, 0, 0, "0.1",                                   \
      "preferred library for flash attention on rocm")                                             \
    X(BYTES, CUDA_CUBLAS_WORKSPACE_SIZE, cuda_cublas_workspace_size, "cuda.cublas_workspace_size", \
      "default", -1, 0, INT64_MAX, "0.1", "cuBLAS workspace per stream")                           \
    X(BYTES, CUDA_CUBLASLT_WORKSPACE_SIZE, cuda_cublaslt_workspace_size,                           \
      "cuda.cublaslt_workspace_size", "default", -1, 0, INT64_MAX, "0.1",                          \
      "cuBLASLt workspace per stream")                                                             \
    X(INT, CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, cuda_cufft_plan_cache_max_size,                         \
      "cuda.cufft_plan_cache.max_size", 0, 4096, 0, INT64_MAX, "0.1",                              \
      "FFT plans cached per device; 0 disables the cache")                                         \
    X(BOOL, CUDA_FLASH_SDP, cuda_flash_sdp, "cuda.flash_sdp", 0, 1, 0, 1, "0.1",                   \
      "attention may use flash kernels, on every platform")                                        \
    X(BOOL, CUDA_MEM_EFFICIENT_SDP, cuda_mem_efficient_sdp, "cuda.mem_efficient_sdp", 0, 1, 0, 1,  \
      "0.1", "attention may use memory-efficient kernels, on every platform")                      \
    X(BOOL, CUDA_MATH_SDP, cuda_math_sdp, "cuda.math_sdp", 0, 1, 0, 1, "0.1",                      \
      "attention may use the math backend, on every platform")                                     \
    X(BOOL, CUDA_CUDNN_SDP, cuda_cudnn_sdp, "cuda.cudnn_sdp", 0, 1, 0, 1, "0.1",                   \
      "attention may use cuDNN kernels")                                                           \
    X(BOOL, CUDA_OVERRIDEABLE_SDP, cuda_overrideable_sdp, "cuda.overrideable_sdp", 0, 1, 0, 1,     \
      "0.1", "attention may use the kernels of out-of-tree platforms")                             \
    X(ORDER, CUDA_SDP_PRIORITY, cuda_sdp_priority, "cuda.sdp_priority", sdp, 0, 0, 0, "0.1",       \
      "order in which attention tries the permitted backends")                                     \
    X(BOOL, CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP, cuda_allow_fp16_bf16_reduction_math_sdp,      \
      "cuda.allow_fp16_bf16_reduction_math_sdp", 0, 0, 0, 1, "0.1",                                \
      "the math backend of attention may compute in 16 bits instead of float32")                   \
    X(BOOL, CUDNN_ENABLED, cudnn_enabled, "cudnn.enabled", 0, 1, 0, 1, "0.1",                      \
      "kernels of cuDNN and MIOpen may be used")                                                   \
    X(BOOL, CUDNN_BENCHMARK, cudnn_benchmark, "cudnn.benchmark", 0, 0, 0, 1, "0.1",                \
      "time the cuDNN engines for each new problem and use the fastest")                           \
    X(INT, CUDNN_BENCHMARK_LIMIT, cudnn_benchmark_limit, "cudnn.benchmark_limit", 0, 10, 0, 10000, \
      "0.1", "maximum number of engines to time; 0 for all")                                       \
    X(BOOL, CUDNN_DETERMINISTIC, cudnn_deterministic, "cudnn.deterministic", 0, 0, 0, 1, "0.1",    \
      "use only cuDNN engines with bitwise reproducible results")                                  \
    X(WORD, CUDNN_DEPTHWISE_KERNEL, cudnn_depthwise_kernel, "cudnn.depthwise_kernel", depthwise,   \
      0, 0, 0, "0.1", "whose kernels float16 depthwise convolution uses")                          \
    X(BOOL, MIOPEN_IMMEDIATE, miopen_immediate, "miopen.immediate", 0, 0, 0, 1, "0.1",             \
      "MIOpen uses its heuristic choice instead of searching")                                     \
    X(BOOL, MKLDNN_ENABLED, mkldnn_enabled, "mkldnn.enabled", 0, 1, 0, 1, "0.1",                   \
      "kernels of oneDNN may be used")                                                             \
    X(BOOL, MKLDNN_DETERMINISTIC, mkldnn_deterministic, "mkldnn.deterministic", 0, 0, 0, 1, "0.1", \
      "use only oneDNN kernels with bitwise reproducible results")                                 \
    X(WORD, MKLDNN_VERBOSE, mkldnn_verbose, "mkldnn.verbose", verbose, 0, 0, 0, "0.1",             \
      "oneDNN logs each primitive it runs; with creation also each one it creates")                \
    X(WORD, MKL_VERBOSE, mkl_verbose, "mkl.verbose", verbose_mkl, 0, 0, 0, "0.1",                  \
      "MKL logs each call")                                                                        \
    X(BOOL, NNPACK_ENABLED, nnpack_enabled, "nnpack.enabled", 0, 1, 0, 1, "0.1",                   \
      "kernels of NNPACK may be used")                                                             \
    X(WORD, QUANTIZED_ENGINE, quantized_engine, "quantized.engine", engine, 0, 0, 0, "0.1",        \
      "which kernels PyTorch's quantised operators use")                                           \
    X(BOOL, OPT_EINSUM_ENABLED, opt_einsum_enabled, "opt_einsum.enabled", 0, 1, 0, 1, "0.1",       \
      "einsum of three or more operands searches for a cheap contraction order instead of left "   \
      "to right")                                                                                  \
    X(WORD, OPT_EINSUM_STRATEGY, opt_einsum_strategy, "opt_einsum.strategy", einsum, 0, 0, 0,      \
      "0.1", "how einsum searches for that order")                                                 \
    X(BOOL, MHA_FASTPATH_ENABLED, mha_fastpath_enabled, "mha.fastpath_enabled", 0, 1, 0, 1, "0.1", \
      "multi-head attention may run as one fused call in inference")                               \
    X(RULE, ATTENTION_BACKEND, attention_backend, "attention.backend", "attention/backend:", 0, 0, \
      0, "0.1", "the attention backend: FLASH_ATTN, TORCH_SDPA, ...")                              \
    X(RULE, MATMUL_LIBRARY, matmul_library, "matmul.library", "matmul/library:", 0, 0, 0, "0.1",   \
      "the library for matmul")                                                                    \
    X(RULE, FFT_LIBRARY, fft_library, "fft.library", "fft/library:", 0, 0, 0, "0.1",               \
      "the library for FFT")                                                                       \
    X(RULE, LINALG_LIBRARY, linalg_library, "linalg.library", "linalg/library:", 0, 0, 0, "0.1",   \
      "the library for factorisations")                                                            \
    X(RULES, RULES, rules, "rules", 0, 0, 0, 0, "0.1",                                             \
      "rules of kernel selection (require, prefer, avoid, forbid, permit): strength:selector, "    \
      "...")                                                                                       \
    X(WORD, DETERMINISM, determinism, "determinism", determinism, 0, 0, 0, "0.1",                  \
      "reproducibility of results: from run to run, for any batch size, on every device")          \
    X(BOOL, INFERENCE, inference, "inference", 0, 0, 0, 1, "0.1",                                  \
      "no backward pass follows: save nothing for it")                                             \
    X(INT, PLAN_CACHE_SIZE, plan_cache_size, "plan.cache_size", 0, 4096, 0, INT64_MAX, "0.1",      \
      "plans cached per device; 0 disables the cache")                                             \
    X(BYTES, PLAN_CACHE_BYTES, plan_cache_bytes, "plan.cache_bytes", 0, 268435456, 0, INT64_MAX,   \
      "0.1", "memory limit of the plan cache, per device")                                         \
    X(BOOL, PLAN_ONLY_PREPARED, plan_only_prepared, "plan.only_prepared", 0, 0, 0, 1, "0.1",       \
      "fail if a problem has no prepared plan")                                                    \
    X(BOOL, TUNING_ENABLED, tuning_enabled, "tuning.enabled", 0, 0, 0, 1, "0.1",                   \
      "time the candidates for each new problem and use the fastest")                              \
    X(INT, TUNING_LIMIT, tuning_limit, "tuning.limit", 0, 10, 0, 10000, "0.1",                     \
      "maximum number of candidates to time; 0 for all")                                           \
    X(WORD, ADMISSION, admission, "admission", admission, 0, 0, 0, "0.1",                          \
      "which kernels are checked against the reference before their first use")                    \
    X(BOOL, DEBUG_SYNC, debug_sync, "debug.sync", 0, 0, 0, 1, "0.1",                               \
      "every call waits for its own work, so that errors are reported where they occur")           \
    X(INT, DEBUG_SAMPLE, debug_sample, "debug.sample", "off", 0, 0, 1000000000, "0.1",             \
      "compare one call in N with the reference")                                                  \
    X(INT, CPU_THREADS, cpu_threads, "cpu.threads", "auto", 0, 0, 1024, "0.1",                     \
      "maximum number of threads per loop; one value for the whole process")                       \
    X(WORD, CPU_ISA_MASK, cpu_isa_mask, "cpu.isa_mask", isa, 0, 0, 0, "0.1",                       \
      "highest instruction set level that kernels may use; if it is below the processor's own "    \
      "level, library kernels are rejected, because they choose their own; one value for the "     \
      "whole "                                                                                     \
      "process")                                                                                   \
    X(BOOL, MAY_CROSS_DEVICES, may_cross_devices, "may_cross_devices", 0, 0, 0, 1, "0.1",          \
      "an operator may copy operands between devices")                                             \
    X(BYTES, WORKSPACE_LIMIT, workspace_limit, "workspace.limit", "none", -1, 0, INT64_MAX, "0.1", \
      "maximum workspace per call")                                                                \
    X(WORD, CPU_POOL, cpu_pool, "cpu.pool", pool, 0, 0, 0, "0.1",                                  \
      "which threads run loops: Tenon's own, or those of the OpenMP runtime loaded in the "        \
      "process; one value for the whole process")                                                  \
    X(INT, CPU_FFT_PLAN_CACHE_MAX_SIZE, cpu_fft_plan_cache_max_size,                               \
      "cpu.fft_plan_cache.max_size", 0, 4096, 0, INT64_MAX, "0.1",                                 \
      "FFT plans cached for the CPU; 0 disables the cache")

#endif
