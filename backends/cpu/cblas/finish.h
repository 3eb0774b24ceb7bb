/* What a matmul does to out when its products are summed, while a tile of it is in the cache. */
#ifndef TENON_BACKENDS_CPU_CBLAS_FINISH_H
#define TENON_BACKENDS_CPU_CBLAS_FINISH_H

#include "tenon/module/kernel.h"

/* out = activation(out + bias). Out's columns are together; strides are in elements. An activation is
 * asked for f32 and f64 alone. */
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
