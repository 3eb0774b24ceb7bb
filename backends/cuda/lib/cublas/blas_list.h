/* The parts of cuBLAS that are used in addition to lt_list.h: constants and functions, as lists that a test
 * also reads with the vendor's types. */
#ifndef CUDA_CUBLAS_BLAS_LIST_H
#define CUDA_CUBLAS_BLAS_LIST_H

/*  Our name, the vendor's name, its value; checked against the vendor's header where that is installed. The parts of
 *  a version are those that cuda_find_version passes. */
#define BLAS_NUMBER_LIST(X)                                                      \
    X(BLAS_MAJOR, MAJOR_VERSION, 0)                                              \
    X(BLAS_MINOR, MINOR_VERSION, 1)                                              \
    X(BLAS_PATCH, PATCH_LEVEL, 2)                                                \
    X(BLAS_POINTERS_OF_HOST, CUBLAS_POINTER_MODE_HOST, 0)                        \
    X(BLAS_NO_ATOMICS, CUBLAS_ATOMICS_NOT_ALLOWED, 0)                            \
    X(BLAS_MATH_USUAL, CUBLAS_DEFAULT_MATH, 0)                                   \
    X(BLAS_MATH_TF32, CUBLAS_TF32_TENSOR_OP_MATH, 3)                             \
    X(BLAS_MATH_WIDE_SUMS, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16) \
    X(BLAS_ALGO_USUAL, CUBLAS_GEMM_DEFAULT, -1)

/*  Field, symbol name, result, parameters. */
#define BLAS_CALL_LIST(X)                                                                         \
    X(property, cublasGetProperty, lt_status, (blas_property which, int *out))                    \
    X(create, cublasCreate_v2, lt_status, (blas_handle * out))                                    \
    X(destroy, cublasDestroy_v2, lt_status, (blas_handle handle))                                 \
    X(set_pointers, cublasSetPointerMode_v2, lt_status, (blas_handle handle, blas_pointers mode)) \
    X(set_atomics, cublasSetAtomicsMode, lt_status, (blas_handle handle, blas_atomics mode))      \
    X(set_math, cublasSetMathMode, lt_status, (blas_handle handle, blas_math mode))               \
    X(set_stream, cublasSetStream_v2, lt_status, (blas_handle handle, lt_stream stream))          \
    X(set_workspace, cublasSetWorkspace_v2, lt_status,                                            \
      (blas_handle handle, void *workspace, size_t bytes))                                        \
    X(gemm, cublasGemmEx, lt_status,                                                              \
      (blas_handle handle, blas_operation of_a, blas_operation of_b, int m, int n, int k,         \
       const void *alpha, const void *a, lt_type type_a, int leading_a, const void *b,            \
       lt_type type_b, int leading_b, const void *beta, void *c, lt_type type_c, int leading_c,   \
       lt_compute compute, blas_algo algo))                                                       \
    X(gemm_batched, cublasGemmStridedBatchedEx, lt_status,                                        \
      (blas_handle handle, blas_operation of_a, blas_operation of_b, int m, int n, int k,         \
       const void *alpha, const void *a, lt_type type_a, int leading_a, long long stride_a,       \
       const void *b, lt_type type_b, int leading_b, long long stride_b, const void *beta,        \
       void *c, lt_type type_c, int leading_c, long long stride_c, int count, lt_compute compute, \
       blas_algo algo))

/*  The same for functions that came with 12.5 and may be absent. */
#define BLAS_LATER_LIST(X)                                                                    \
    X(grouped, cublasGemmGroupedBatchedEx, lt_status,                                         \
      (blas_handle handle, const blas_operation of_a[], const blas_operation of_b[],          \
       const int m[], const int n[], const int k[], const void *alpha, const void *const a[], \
       lt_type type_a, const int leading_a[], const void *const b[], lt_type type_b,          \
       const int leading_b[], const void *beta, void *const c[], lt_type type_c,              \
       const int leading_c[], int count, const int sizes[], lt_compute compute))

#endif
