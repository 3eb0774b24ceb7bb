/* cuBLASLt, NVIDIA's matrix products with epilogues: our own declarations of the parts that are used.
 * Thread-safety: the library's functions are safe, and so is a handle; a descriptor is not while it is
 * modified. */
#ifndef CUDA_CUBLAS_LT_H
#define CUDA_CUBLAS_LT_H

#include "cublas_common.h"
#include "tenon/module/library.h"

typedef int lt_desc_attribute, lt_layout_attribute, lt_preference_attribute;
typedef void *lt_handle, *lt_desc, *lt_layout, *lt_preference;

typedef struct lt_algo {
    uint64_t data[8];
} lt_algo;

typedef struct lt_found {
    lt_algo algo;
    size_t workspace;
    lt_status state;
    float waves;
    int reserved[4];
} lt_found;

/* The object that the library's `open` returns. A handle serves one device. */
typedef struct cuda_lt {
    cuda_handles handles;
#define LT_CALL_(field, name, result, parameters) result(*field) parameters;
    LT_CALL_LIST(LT_CALL_)
#undef LT_CALL_
} cuda_lt;

extern const tn_library_row cuda_lt_row;

/* Returns the handle of the scope's device, which must be current. */
tn_status cuda_lt_handle(cuda_lt *self, const cuda_scope *scope, lt_handle *out, tn_error *err);

/* Converts a result of the library to a status. */
tn_status cuda_lt_check(lt_status code, const char *call, tn_error *err);

#endif
