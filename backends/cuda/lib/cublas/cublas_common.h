/* Shared by cuBLAS and cuBLASLt: results, handles that follow a device's resets, dtype constants, workspace.
 * Thread-safety: Safe. */
#ifndef CUDA_CUBLAS_COMMON_H
#define CUDA_CUBLAS_COMMON_H

#include "../../compile/find.h"
#include "../../platform/cuda.h"
#include "lt_list.h"
#include "tenon/module/kernel.h"

typedef int lt_status, lt_type, lt_compute;
typedef cu_stream lt_stream;

enum {
#define LT_NUMBER_(ours, theirs, number) ours = number,
    LT_NUMBER_LIST(LT_NUMBER_)
#undef LT_NUMBER_
};

/* One handle for each device. A reset destroys the device's handle, and the next use creates a new one. */
typedef struct cuda_handles {
    mtx_t lock; /* protects their creation */
    struct {
        _Atomic(void *) handle;
        _Atomic uint32_t life; /* the device's epoch at creation */
    } of[CUDA_MOST];
} cuda_handles;

/* Describes a library's object of `size` bytes, which begins with its cuda_handles. Everything except
 * the functions is initialised to 0. */
typedef struct cuda_blas_form {
    const char *library;
    size_t size;
    const cuda_sought *sought;
    const tn_symbol *symbols;
    size_t count;
} cuda_blas_form;
tn_status cuda_blas_open(const tn_host *host, const cuda_blas_form *form, void **out_self,
                         tn_error *err);

/* Returns the handle of the scope's device, which must be current. `make` creates one for `self`'s library; it
 * may allocate even while the program captures. */
typedef tn_status cuda_handle_make(void *self, const cuda_scope *scope, void **out, tn_error *err);
tn_status cuda_handles_get(cuda_handles *handles, const cuda_scope *scope, void *self,
                           cuda_handle_make *make, void **out, tn_error *err);

/* Converts a result of `library`, for example "cuBLASLt", to a status. */
tn_status cuda_blas_check(const char *library, lt_status code, const char *call, tn_error *err);

/* The same for the creation of a handle by a library of version `number`, 130002 for 13.0.2: it may be too new
 * for the driver. */
tn_status cuda_blas_check_start(const cuda_scope *scope, const char *library, int number,
                                lt_status code, const char *call, tn_error *err);

/* Returns the library's constant for a dtype. */
lt_type cuda_blas_type(tn_dtype dtype);

/* The type in which a row accumulates, and that of alpha and beta. */
typedef struct cuda_blas_sums {
    lt_compute compute;
    lt_type scale;
} cuda_blas_sums;
cuda_blas_sums cuda_blas_sums_of(const tn_kernel_row *row, const tn_op *op);

/* alpha or beta in the library's format. In f16, where no row supports factors, 0 or 1. */
typedef union cuda_blas_factor {
    float f32[2];
    double f64[2];
    int32_t i32;
    uint16_t f16;
} cuda_blas_factor;
cuda_blas_factor cuda_blas_factor_of(lt_type scale, double value);

/* Workspace that a library is given. */
typedef struct cuda_blas_memory {
    const char *setting; /* the setting that determines its size */
    uint64_t usual;      /* size if the setting is "default", up to workspace.limit */
    uint64_t least;      /* minimum in that case */
    uint64_t behind;     /* additional bytes that a run needs; the limit counts them, too */
} cuda_blas_memory;

/* Returns the workspace of a run, including the padding for alignment; 0 if the library gets none and `behind` is
 * 0. */
uint64_t cuda_blas_room(const tn_query *query, const cuda_blas_memory *memory);

/* The usable part of a workspace of that many bytes, and its aligned beginning. */
uint64_t cuda_blas_room_usable(uint64_t bytes);
void *cuda_blas_room_begin(void *workspace);

#endif
