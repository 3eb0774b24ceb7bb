/* The epilogue of a matmul, applied while a tile of out is in the cache. */
#ifndef TENON_BACKENDS_CPU_CBLAS_FINISH_H
#define TENON_BACKENDS_CPU_CBLAS_FINISH_H

#include "tenon/module/kernel.h"

/* out = activation(out + bias). Rows of out must be contiguous; strides are in elements. An
 * activation is supported only for f32 and f64. */
typedef struct tni_finish_job {
    tn_dtype dtype;
    int32_t activation;
    void *out;
    const void *bias; /* or NULL */
    int64_t rows, columns;
    int64_t out_stride;
    int64_t bias_row, bias_column;
} tni_finish_job;

void tni_cblas_finish(const tni_finish_job *job);

#endif
