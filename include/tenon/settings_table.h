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
      "how far float32 operands may be rounded, where no narrower row says otherwise")             \
    X(WORD, CUDA_FP32_PRECISION, cuda_fp32_precision, "cuda.fp32_precision", fp32_cuda, 0, 0, 0,   \
      "0.1", "how far float32 operands may be rounded on cuda")                                    \
    X(WORD, CUDA_MATMUL_FP32_PRECISION, cuda_matmul_fp32_precision, "cuda.matmul.fp32_precision",  \
      fp32_cuda, 0, 0, 0, "0.1", "how far matmul on cuda may round float32 operands")              \
    X(WORD, CUDNN_CONV_FP32_PRECISION, cudnn_conv_fp32_precision, "cudnn.conv.fp32_precision",     \
      fp32_cuda, 0, 0, 0, "0.1",                                                                   \
      "how far convolution on cuda may round float32; tf32 where no row says more")                \
    X(WORD, CUDNN_RNN_FP32_PRECISION, cudnn_rnn_fp32_precision, "cudnn.rnn.fp32_precision",        \
      fp32_cuda, 0, 0, 0, "0.1",                                                                   \
      "how far RNNs on cuda may round float32; tf32 where no row says more")                       \
    X(WORD, MKLDNN_FP32_PRECISION, mkldnn_fp32_precision, "mkldnn.fp32_precision", fp32, 0, 0, 0,  \
      "0.1", "how far float32 operands may be rounded in oneDNN")                                  \
    X(WORD, MKLDNN_MATMUL_FP32_PRECISION, mkldnn_matmul_fp32_precision,                            \
      "mkldnn.matmul.fp32_precision", fp32, 0, 0, 0, "0.1",                                        \
      "how far matmul through oneDNN may round float32 operands")                                  \
    X(WORD, MKLDNN_CONV_FP32_PRECISION, mkldnn_conv_fp32_precision, "mkldnn.conv.fp32_precision",  \
      fp32, 0, 0, 0, "0.1", "how far convolution through oneDNN may round float32 operands")       \
    X(WORD, MKLDNN_RNN_FP32_PRECISION, mkldnn_rnn_fp32_precision, "mkldnn.rnn.fp32_precision",     \
      fp32, 0, 0, 0, "0.1", "how far RNNs through oneDNN may round float32 operands")              \
    X(VIEW_WORD, CUDNN_FP32_PRECISION, cudnn_fp32_precision, "cudnn.fp32_precision", fp32_cuda, 0, \
      0, 0, "0.1", "upstream's name of cuda.fp32_precision")                                       \
    X(VIEW_BOOL, CUDA_MATMUL_ALLOW_TF32, cuda_matmul_allow_tf32, "cuda.matmul.allow_tf32", 0, 0,   \
      0, 1, "0.1", "cuda.matmul.fp32_precision as a switch: tf32 or ieee")                         \
    X(VIEW_BOOL, CUDNN_ALLOW_TF32, cudnn_allow_tf32, "cudnn.allow_tf32", 0, 1, 0, 1, "0.1",        \
      "cudnn.conv.fp32_precision and cudnn.rnn.fp32_precision as a switch: tf32 or ieee")          \
    X(VIEW_BOOL, MKLDNN_ALLOW_TF32, mkldnn_allow_tf32, "mkldnn.allow_tf32", 0, 0, 0, 1, "0.1",     \
      "mkldnn.fp32_precision as a switch: tf32 or ieee")                                           \
    X(VIEW_WORD, FLOAT32_MATMUL_PRECISION, float32_matmul_precision, "float32_matmul_precision",   \
      matmul_precision, 0, 0, 0, "0.1",                                                            \
      "cuda.matmul.fp32_precision and mkldnn.matmul.fp32_precision in upstream's older words")     \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION,                                    \
      cuda_matmul_allow_fp16_reduced_precision_reduction,                                          \
      "cuda.matmul.allow_fp16_reduced_precision_reduction", 0, 1, 0, 1, "0.1",                     \
      "float16 matmul may add partial sums in float16")                                            \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION_SPLIT_K,                            \
      cuda_matmul_allow_fp16_reduced_precision_reduction_split_k,                                  \
      "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k", 0, 1, 0, 1, "0.1",             \
      "float16 matmul may split the summed dimension between blocks")                              \
    X(BOOL, CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION,                                    \
      cuda_matmul_allow_bf16_reduced_precision_reduction,                                          \
      "cuda.matmul.allow_bf16_reduced_precision_reduction", 0, 1, 0, 1, "0.1",                     \
      "bfloat16 matmul may add partial sums in bfloat16")                                          \
    X(BOOL, CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION_SPLIT_K,                            \
      cuda_matmul_allow_bf16_reduced_precision_reduction_split_k,                                  \
      "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k", 0, 1, 0, 1, "0.1",             \
      "bfloat16 matmul may split the summed dimension between blocks")                             \
    X(BOOL, CUDA_MATMUL_ALLOW_FP16_ACCUMULATION, cuda_matmul_allow_fp16_accumulation,              \
      "cuda.matmul.allow_fp16_accumulation", 0, 0, 0, 1, "0.1",                                    \
      "float16 matmul may accumulate in float16")                                                  \
    X(BOOL, CUDA_MATMUL_PREFER_CUBLASLT_GROUPED_GEMM, cuda_matmul_prefer_cublaslt_grouped_gemm,    \
      "cuda.matmul.prefer_cublaslt_grouped_gemm", 0, 0, 0, 1, "0.1",                               \
      "bfloat16 grouped matmul goes through cuBLASLt")                                             \
    X(WORD, CUDA_PREFERRED_BLAS_LIBRARY, cuda_preferred_blas_library,                              \
      "cuda.preferred_blas_library", blas, 0, 0, 0, "0.1",                                         \
      "the library that matmul on cuda or rocm takes where it can")                                \
    X(WORD, CUDA_PREFERRED_LINALG_LIBRARY, cuda_preferred_linalg_library,                          \
      "cuda.preferred_linalg_library", linalg, 0, 0, 0, "0.1",                                     \
      "the library that factorisations on cuda take where it can")                                 \
    X(WORD, CUDA_PREFERRED_ROCM_FA_LIBRARY, cuda_preferred_rocm_fa_library,                        \
      "cuda.preferred_rocm_fa_library", rocm_fa, 0, 0, 0, "0.1",                                   \
      "the library that flash attention on rocm takes where it can")                               \
    X(BYTES, CUDA_CUBLAS_WORKSPACE_SIZE, cuda_cublas_workspace_size, "cuda.cublas_workspace_size", \
      "default", -1, 0, INT64_MAX, "0.1", "memory that cuBLAS may use on each stream")             \
    X(BYTES, CUDA_CUBLASLT_WORKSPACE_SIZE, cuda_cublaslt_workspace_size,                           \
      "cuda.cublaslt_workspace_size", "default", -1, 0, INT64_MAX, "0.1",                          \
      "memory that cuBLASLt may use on each stream")                                               \
    X(INT, CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, cuda_cufft_plan_cache_max_size,                         \
      "cuda.cufft_plan_cache.max_size", 0, 4096, 0, INT64_MAX, "0.1",                              \
      "FFT plans kept for each device; 0 keeps none")                                              \
    X(BOOL, CUDA_FLASH_SDP, cuda_flash_sdp, "cuda.flash_sdp", 0, 1, 0, 1, "0.1",                   \
      "attention may take flash kernels, on every platform")                                       \
    X(BOOL, CUDA_MEM_EFFICIENT_SDP, cuda_mem_efficient_sdp, "cuda.mem_efficient_sdp", 0, 1, 0, 1,  \
      "0.1", "attention may take memory-efficient kernels, on every platform")                     \
    X(BOOL, CUDA_MATH_SDP, cuda_math_sdp, "cuda.math_sdp", 0, 1, 0, 1, "0.1",                      \
      "attention may take the plain computation, on every platform")                               \
    X(BOOL, CUDA_CUDNN_SDP, cuda_cudnn_sdp, "cuda.cudnn_sdp", 0, 1, 0, 1, "0.1",                   \
      "attention may take cuDNN's kernels")                                                        \
    X(BOOL, CUDA_OVERRIDEABLE_SDP, cuda_overrideable_sdp, "cuda.overrideable_sdp", 0, 1, 0, 1,     \
      "0.1", "attention may take the kernels of out-of-tree platforms")                            \
    X(ORDER, CUDA_SDP_PRIORITY, cuda_sdp_priority, "cuda.sdp_priority", sdp, 0, 0, 0, "0.1",       \
      "which kernels attention takes first, of those that are permitted")                          \
    X(BOOL, CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP, cuda_allow_fp16_bf16_reduction_math_sdp,      \
      "cuda.allow_fp16_bf16_reduction_math_sdp", 0, 0, 0, 1, "0.1",                                \
      "the plain computation of attention may stay in 16 bits instead of going up to float32")     \
    X(BOOL, CUDNN_ENABLED, cudnn_enabled, "cudnn.enabled", 0, 1, 0, 1, "0.1",                      \
      "kernels of cuDNN and MIOpen may be taken")                                                  \
    X(BOOL, CUDNN_BENCHMARK, cudnn_benchmark, "cudnn.benchmark", 0, 0, 0, 1, "0.1",                \
      "cuDNN's engines are timed for each new problem and the fastest is kept")                    \
    X(INT, CUDNN_BENCHMARK_LIMIT, cudnn_benchmark_limit, "cudnn.benchmark_limit", 0, 10, 0, 10000, \
      "0.1", "how many engines are timed at most; 0 for all")                                      \
    X(BOOL, CUDNN_DETERMINISTIC, cudnn_deterministic, "cudnn.deterministic", 0, 0, 0, 1, "0.1",    \
      "only engines of cuDNN that give the same bits in every run")                                \
    X(WORD, CUDNN_DEPTHWISE_KERNEL, cudnn_depthwise_kernel, "cudnn.depthwise_kernel", depthwise,   \
      0, 0, 0, "0.1", "whose kernels float16 depthwise convolution takes")                         \
    X(BOOL, MIOPEN_IMMEDIATE, miopen_immediate, "miopen.immediate", 0, 0, 0, 1, "0.1",             \
      "MIOpen takes the solution it guesses instead of searching for one")                         \
    X(BOOL, MKLDNN_ENABLED, mkldnn_enabled, "mkldnn.enabled", 0, 1, 0, 1, "0.1",                   \
      "kernels of oneDNN may be taken")                                                            \
    X(BOOL, MKLDNN_DETERMINISTIC, mkldnn_deterministic, "mkldnn.deterministic", 0, 0, 0, 1, "0.1", \
      "only kernels of oneDNN that give the same bits in every run")                               \
    X(WORD, MKLDNN_VERBOSE, mkldnn_verbose, "mkldnn.verbose", verbose, 0, 0, 0, "0.1",             \
      "oneDNN tells what it runs; with creation also what it builds")                              \
    X(WORD, MKL_VERBOSE, mkl_verbose, "mkl.verbose", verbose_mkl, 0, 0, 0, "0.1",                  \
      "MKL tells what it runs")                                                                    \
    X(BOOL, NNPACK_ENABLED, nnpack_enabled, "nnpack.enabled", 0, 1, 0, 1, "0.1",                   \
      "kernels of NNPACK may be taken")                                                            \
    X(WORD, QUANTIZED_ENGINE, quantized_engine, "quantized.engine", engine, 0, 0, 0, "0.1",        \
      "which kernels int8 operators take")                                                         \
    X(BOOL, OPT_EINSUM_ENABLED, opt_einsum_enabled, "opt_einsum.enabled", 0, 1, 0, 1, "0.1",       \
      "einsum of three and more operands seeks a cheap order instead of left to right")            \
    X(WORD, OPT_EINSUM_STRATEGY, opt_einsum_strategy, "opt_einsum.strategy", einsum, 0, 0, 0,      \
      "0.1", "how einsum seeks that order")                                                        \
    X(BOOL, MHA_FASTPATH_ENABLED, mha_fastpath_enabled, "mha.fastpath_enabled", 0, 1, 0, 1, "0.1", \
      "multi-head attention may run as one fused call in inference")                               \
    X(RULE, ATTENTION_BACKEND, attention_backend, "attention.backend", "attention/backend:", 0, 0, \
      0, "0.1", "the attention that is taken: FLASH_ATTN, TORCH_SDPA, ...")                        \
    X(RULE, MATMUL_LIBRARY, matmul_library, "matmul.library", "matmul/library:", 0, 0, 0, "0.1",   \
      "the library that matmul takes")                                                             \
    X(RULE, FFT_LIBRARY, fft_library, "fft.library", "fft/library:", 0, 0, 0, "0.1",               \
      "the library that FFT takes")                                                                \
    X(RULE, LINALG_LIBRARY, linalg_library, "linalg.library", "linalg/library:", 0, 0, 0, "0.1",   \
      "the library that factorisations take")                                                      \
    X(RULES, RULES, rules, "rules", 0, 0, 0, 0, "0.1",                                             \
      "what must, should, should not or may not be taken: strength:selector, ...")                 \
    X(WORD, DETERMINISM, determinism, "determinism", determinism, 0, 0, 0, "0.1",                  \
      "how far results repeat: from run to run, whatever the batch, on every device")              \
    X(BOOL, INFERENCE, inference, "inference", 0, 0, 0, 1, "0.1",                                  \
      "nothing is kept for a backward pass")                                                       \
    X(INT, PLAN_CACHE_SIZE, plan_cache_size, "plan.cache_size", 0, 4096, 0, INT64_MAX, "0.1",      \
      "plans kept for each device; 0 keeps none")                                                  \
    X(BYTES, PLAN_CACHE_BYTES, plan_cache_bytes, "plan.cache_bytes", 0, 268435456, 0, INT64_MAX,   \
      "0.1", "memory that kept plans may use for each device")                                     \
    X(BOOL, PLAN_ONLY_PREPARED, plan_only_prepared, "plan.only_prepared", 0, 0, 0, 1, "0.1",       \
      "a problem whose plan is not there yet is an error")                                         \
    X(BOOL, TUNING_ENABLED, tuning_enabled, "tuning.enabled", 0, 0, 0, 1, "0.1",                   \
      "candidates are timed for each new problem and the fastest is kept")                         \
    X(INT, TUNING_LIMIT, tuning_limit, "tuning.limit", 0, 10, 0, 10000, "0.1",                     \
      "how many candidates are timed at most; 0 for all")                                          \
    X(WORD, ADMISSION, admission, "admission", admission, 0, 0, 0, "0.1",                          \
      "which kernels are checked against the reference before their first use")                    \
    X(BOOL, DEBUG_SYNC, debug_sync, "debug.sync", 0, 0, 0, 1, "0.1",                               \
      "every call waits for its own work, so that a fault is told where it happens")               \
    X(INT, DEBUG_SAMPLE, debug_sample, "debug.sample", "off", 0, 0, 1000000000, "0.1",             \
      "one call in so many is computed again by the reference and compared")                       \
    X(INT, CPU_THREADS, cpu_threads, "cpu.threads", "auto", 0, 0, 1024, "0.1",                     \
      "threads that a loop may use; the process's value only")                                     \
    X(WORD, CPU_ISA_MASK, cpu_isa_mask, "cpu.isa_mask", isa, 0, 0, 0, "0.1",                       \
      "the highest level of instructions that kernels may use; below the processor's own, "        \
      "kernels of libraries, which choose theirs themselves, are refused; the process's value "    \
      "only")                                                                                      \
    X(BOOL, MAY_CROSS_DEVICES, may_cross_devices, "may_cross_devices", 0, 0, 0, 1, "0.1",          \
      "an operator may copy operands between devices")                                             \
    X(BYTES, WORKSPACE_LIMIT, workspace_limit, "workspace.limit", "none", -1, 0, INT64_MAX, "0.1", \
      "scratch memory that one call may use")                                                      \
    X(WORD, CPU_POOL, cpu_pool, "cpu.pool", pool, 0, 0, 0, "0.1",                                  \
      "whose threads loops run on: Tenon's own, or those of the OpenMP run-time that is in the "   \
      "process; the process's value only")

#endif
