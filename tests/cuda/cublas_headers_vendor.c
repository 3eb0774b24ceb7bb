/* NVIDIA's side of cublas_headers.c. Our list is read with NVIDIA's types under our names. */
#include <cublasLt.h>
#include <cublas_v2.h>

#include "../../backends/cuda/lib/cublas/blas_list.h"
#include "../../backends/cuda/lib/cublas/lt_list.h"
#include "cublas_headers.h"

#include <stddef.h>

#if CUBLAS_VERSION < 120900 /* what came with 12.9 has nothing to be compared with */
enum {
    CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3,
    CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,
    CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32
};
#endif

typedef cublasStatus_t lt_status;
typedef cudaDataType_t lt_type;
typedef cublasComputeType_t lt_compute;
typedef cublasLtMatmulDescAttributes_t lt_desc_attribute;
typedef cublasLtMatrixLayoutAttribute_t lt_layout_attribute;
typedef cublasLtMatmulPreferenceAttributes_t lt_preference_attribute;
typedef cublasLtHandle_t lt_handle;
typedef cublasLtMatmulDesc_t lt_desc;
typedef cublasLtMatrixLayout_t lt_layout;
typedef cublasLtMatmulPreference_t lt_preference;
typedef cublasLtMatmulAlgo_t lt_algo;
typedef cublasLtMatmulHeuristicResult_t lt_found;
typedef cudaStream_t lt_stream;
typedef libraryPropertyType blas_property;
typedef cublasHandle_t blas_handle;
typedef cublasPointerMode_t blas_pointers;
typedef cublasAtomicsMode_t blas_atomics;
typedef cublasMath_t blas_math;
typedef cublasOperation_t blas_operation;
typedef cublasGemmAlgo_t blas_algo;

const header_number lt_vendor_numbers[] = {
#define LT_NUMBER_(ours, theirs, number) {#theirs, theirs},
    LT_NUMBER_LIST(LT_NUMBER_)
#undef LT_NUMBER_
#define BLAS_NUMBER_(ours, theirs, number) {#theirs, theirs},
        BLAS_NUMBER_LIST(BLAS_NUMBER_)
#undef BLAS_NUMBER_
            {"sizeof the algorithm", sizeof(lt_algo)},
    {"sizeof the result", sizeof(lt_found)},
    {"offset of the workspace", offsetof(lt_found, workspaceSize)},
    {"offset of the state", offsetof(lt_found, state)},
    {NULL, 0}};

/* A function that is declared otherwise does not compile. */
#define LT_CALL_(field, name, result, parameters)                                         \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), \
                   #name " is declared otherwise");
LT_CALL_LIST(LT_CALL_)
BLAS_CALL_LIST(LT_CALL_)
#if CUBLAS_VERSION >= 120500
BLAS_LATER_LIST(LT_CALL_)
#endif
#undef LT_CALL_
