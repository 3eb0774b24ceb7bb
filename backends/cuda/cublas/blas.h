/* cuBLAS, NVIDIA's matrix products: our own declarations of what is used of it.
 *
 * A handle is one for each device. It remembers the stream, the memory and the mode of the next call, so that
 * one thread at a time has its turn with it: from telling it these to having queued the product.
 *
 * Thread-safety: Safe. */
#ifndef CUDA_CUBLAS_BLAS_H
#define CUDA_CUBLAS_BLAS_H

#include "blas_list.h"
#include "common.h"
#include "tenon/module/library.h"

typedef int blas_property, blas_pointers, blas_atomics, blas_math, blas_operation, blas_algo;
typedef void *blas_handle;

enum {
#define BLAS_NUMBER_(ours, theirs, number) ours = number,
    BLAS_NUMBER_LIST(BLAS_NUMBER_)
#undef BLAS_NUMBER_
};

/* What the library's `open` gives. */
typedef struct cuda_blas {
    cuda_handles handles;
#define BLAS_CALL_(field, name, result, parameters) result(*field) parameters;
    BLAS_CALL_LIST(BLAS_CALL_)
    BLAS_LATER_LIST(BLAS_CALL_) /* NULL where it is not there */
#undef BLAS_CALL_
    mtx_t turn[CUDA_MOST];
} cuda_blas;

extern const tn_library_row cuda_blas_row;

/* The handle of the scope's device, which is current. */
tn_status cuda_blas_handle(cuda_blas *self, const cuda_scope *scope, blas_handle *out,
                           tn_error *err);

#endif
