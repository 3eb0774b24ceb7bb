/* The parts of cuBLASLt that are used: constants and functions, as lists that a test also reads with the
 * vendor's types. */
#ifndef CUDA_CUBLAS_LT_LIST_H
#define CUDA_CUBLAS_LT_LIST_H

/*  Our name, the vendor's name, its value; checked against the vendor's header where that is installed. */
#define LT_NUMBER_LIST(X)                                                     \
    X(LT_SUCCESS, CUBLAS_STATUS_SUCCESS, 0)                                   \
    X(LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED, 1)                   \
    X(LT_NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED, 3)                            \
    X(LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, 7)                       \
    X(LT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH, 8)                       \
    X(LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED, 13)                \
    X(LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)                      \
    X(LT_R_32F, CUDA_R_32F, 0)                                                \
    X(LT_R_64F, CUDA_R_64F, 1)                                                \
    X(LT_R_16F, CUDA_R_16F, 2)                                                \
    X(LT_R_8I, CUDA_R_8I, 3)                                                  \
    X(LT_C_32F, CUDA_C_32F, 4)                                                \
    X(LT_C_64F, CUDA_C_64F, 5)                                                \
    X(LT_R_32I, CUDA_R_32I, 10)                                               \
    X(LT_R_16BF, CUDA_R_16BF, 14)                                             \
    X(LT_R_F8_E4M3, CUDA_R_8F_E4M3, 28)                                       \
    X(LT_R_F8_E5M2, CUDA_R_8F_E5M2, 29)                                       \
    X(LT_COMPUTE_16F, CUBLAS_COMPUTE_16F, 64)                                 \
    X(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F, 68)                                 \
    X(LT_COMPUTE_64F, CUBLAS_COMPUTE_64F, 70)                                 \
    X(LT_COMPUTE_32I, CUBLAS_COMPUTE_32I, 72)                                 \
    X(LT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                      \
    X(LT_OP_N, CUBLAS_OP_N, 0)                                                \
    X(LT_OP_T, CUBLAS_OP_T, 1)                                                \
    X(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA, 3)                         \
    X(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB, 4)                         \
    X(LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                     \
    X(LT_DESC_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                     \
    X(LT_DESC_SCALE_A, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)              \
    X(LT_DESC_SCALE_B, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)              \
    X(LT_DESC_SCALE_MODE_A, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)            \
    X(LT_DESC_SCALE_MODE_B, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)            \
    X(LT_SCALE_EACH, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)           \
    X(LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT, 1)                      \
    X(LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU, 2)                            \
    X(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS, 4)                            \
    X(LT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU, 32)                           \
    X(LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)           \
    X(LT_LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
    X(LT_PREFER_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)       \
    X(LT_PREFER_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)     \
    X(LT_PREFER_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)   \
    X(LT_PREFER_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)   \
    X(LT_PREFER_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)   \
    X(LT_PREFER_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)   \
    X(LT_REDUCE_NOT, CUBLASLT_REDUCTION_SCHEME_NONE, 0)                       \
    X(LT_REDUCE_IN_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)   \
    X(LT_REDUCE_ANYHOW, CUBLASLT_REDUCTION_SCHEME_MASK, 7)

/*  Field, symbol name, result, parameters. */
#define LT_CALL_LIST(X)                                                                           \
    X(version, cublasLtGetVersion, size_t, (void))                                                \
    X(create, cublasLtCreate, lt_status, (lt_handle * out))                                       \
    X(destroy, cublasLtDestroy, lt_status, (lt_handle handle))                                    \
    X(desc_create, cublasLtMatmulDescCreate, lt_status,                                           \
      (lt_desc * out, lt_compute compute, lt_type scale))                                         \
    X(desc_destroy, cublasLtMatmulDescDestroy, lt_status, (lt_desc desc))                         \
    X(desc_set, cublasLtMatmulDescSetAttribute, lt_status,                                        \
      (lt_desc desc, lt_desc_attribute attribute, const void *value, size_t size))                \
    X(layout_create, cublasLtMatrixLayoutCreate, lt_status,                                       \
      (lt_layout * out, lt_type type, uint64_t rows, uint64_t columns, int64_t leading))          \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, lt_status, (lt_layout layout))                 \
    X(layout_set, cublasLtMatrixLayoutSetAttribute, lt_status,                                    \
      (lt_layout layout, lt_layout_attribute attribute, const void *value, size_t size))          \
    X(preference_create, cublasLtMatmulPreferenceCreate, lt_status, (lt_preference * out))        \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, lt_status, (lt_preference preference)) \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute, lt_status,                            \
      (lt_preference preference, lt_preference_attribute attribute, const void *value,            \
       size_t size))                                                                              \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic, lt_status,                                       \
      (lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c, lt_layout d,        \
       lt_preference preference, int wanted, lt_found *out, int *out_count))                      \
    X(matmul, cublasLtMatmul, lt_status,                                                          \
      (lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout of_a,          \
       const void *b, lt_layout of_b, const void *beta, const void *c, lt_layout of_c, void *d,   \
       lt_layout of_d, const lt_algo *algo, void *workspace, size_t workspace_bytes,              \
       lt_stream stream))

#endif
