/* What cuBLAS and cuBLASLt share: results, handles that follow a device's resets, numbers of dtypes, memory.
 * Thread-safety: Safe. */
#ifndef CUDA_CUBLAS_COMMON_H
#define CUDA_CUBLAS_COMMON_H

#include "../compile/find.h"
#include "../platform/cuda.h"
#include "lt_list.h"
#include "tenon/module/kernel.h"

typedef int lt_status, lt_type, lt_compute;
typedef cu_stream lt_stream;

enum {
#define LT_NUMBER_(ours, theirs, number) ours = number,
    LT_NUMBER_LIST(LT_NUMBER_)
#undef LT_NUMBER_
};

/* Handles, one for each device. A reset takes a device's handle along, and the next use makes another. */
typedef struct cuda_handles {
    mtx_t lock; /* of making them */
    struct {
        _Atomic(void *) handle;
        _Atomic uint32_t life; /* of the device, when it was made */
    } of[CUDA_MOST];
} cuda_handles;

/* A library's table of `size` bytes, which begins with its handles: all else is 0 but the functions. */
typedef struct cuda_blas_form {
    const char *library;
    size_t size;
    const cuda_sought *sought;
    const tn_symbol *symbols;
    size_t count;
} cuda_blas_form;
tn_status cuda_blas_open(const tn_host *host, const cuda_blas_form *form, void **out_self,
                         tn_error *err);

/* The handle of the scope's device, which is current; `make` makes one of `self`'s library, and may allocate even
 * while the program captures. */
typedef tn_status cuda_handle_make(void *self, const cuda_scope *scope, void **out, tn_error *err);
tn_status cuda_handles_get(cuda_handles *handles, const cuda_scope *scope, void *self,
                           cuda_handle_make *make, void **out, tn_error *err);

/* The status of one of a library's results: "cuBLASLt". */
tn_status cuda_blas_check(const char *library, lt_status code, const char *call, tn_error *err);

/* The same of a handle's making, by a library of version `number`, 130002 for 13.0.2: it may be too new for the
 * driver. */
tn_status cuda_blas_check_start(const cuda_scope *scope, const char *library, int number,
                                lt_status code, const char *call, tn_error *err);

/* The library's number of a dtype. */
lt_type cuda_blas_type(tn_dtype dtype);

/* What a row sums in, and has alpha and beta in. */
typedef struct cuda_blas_sums {
    lt_compute compute;
    lt_type scale;
} cuda_blas_sums;
cuda_blas_sums cuda_blas_sums_of(const tn_kernel_row *row, const tn_op *op);

/* Microseconds on the device, by a row's figures, for those whose `cost` adds to them. */
double cuda_blas_work_us(const tn_kernel_row *row, const tn_op *op);

/* alpha or beta as the library reads it. Of f16, which no row with factors has, 0 or 1. */
typedef union cuda_blas_factor {
    float f32[2];
    double f64[2];
    int32_t i32;
    uint16_t f16;
} cuda_blas_factor;
cuda_blas_factor cuda_blas_factor_of(lt_type scale, double value);

/* Memory that a library is given. */
typedef struct cuda_blas_memory {
    const char *setting; /* says how much */
    uint64_t usual;      /* where that is "default", as far as workspace.limit goes */
    uint64_t least;      /* but not below this */
    uint64_t behind;     /* further bytes that a run needs, which the limit also counts */
} cuda_blas_memory;

/* What a run asks for: all of it, and room to align it; 0 where the library is to have none, and nothing is behind. */
uint64_t cuda_blas_room(const tn_query *query, const cuda_blas_memory *memory);

/* What a library has of so much, and where it begins. */
uint64_t cuda_blas_room_usable(uint64_t bytes);
void *cuda_blas_room_begin(void *workspace);

#endif
