/* cuBLAS, NVIDIA's matrix products: our own declarations of the parts that are used.
 *
 * There is one handle for each device. It stores the stream, the workspace and the mode of the next call, so
 * only one thread at a time may use it: from setting these until the product is queued.
 *
 * Thread-safety: Safe. */
#ifndef CUDA_CUBLAS_BLAS_H
#define CUDA_CUBLAS_BLAS_H

#include "blas_list.h"
#include "cublas_common.h"
#include "tenon/module/library.h"

typedef int blas_property, blas_pointers, blas_atomics, blas_math, blas_operation, blas_algo;
typedef void *blas_handle;

enum {
#define BLAS_NUMBER_(ours, theirs, number) ours = number,
    BLAS_NUMBER_LIST(BLAS_NUMBER_)
#undef BLAS_NUMBER_
};

/* The object that the library's `open` returns. */
typedef struct cuda_blas {
    cuda_handles handles;
#define BLAS_CALL_(field, name, result, parameters) result(*field) parameters;
    BLAS_CALL_LIST(BLAS_CALL_)
    BLAS_LATER_LIST(BLAS_CALL_) /* NULL if absent */
#undef BLAS_CALL_
    mtx_t turn[CUDA_MOST];
} cuda_blas;

extern const tn_library_row cuda_blas_row;

/* Returns the handle of the scope's device, which must be current. */
tn_status cuda_blas_handle(cuda_blas *self, const cuda_scope *scope, blas_handle *out,
                           tn_error *err);

#endif
