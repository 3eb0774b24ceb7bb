/* Internal declarations for OpenBLAS. */
#ifndef TENON_BACKENDS_CPU_OPENBLAS_H
#define TENON_BACKENDS_CPU_OPENBLAS_H

#include "../cblas/cblas.h"
#include "tenon/module/library.h"

/* Results of openblas_get_parallel. */
enum { TNI_OPENBLAS_SERIAL = 0, TNI_OPENBLAS_POOL = 1, TNI_OPENBLAS_OPENMP = 2 };

typedef struct tni_openblas {
    tni_cblas blas;
    char *(*get_config)(void);
    char *(*get_corename)(void); /* the processor that its kernels are for: "SkylakeX" */
    int (*get_parallel)(void);
    int (*get_num_threads)(void);
    void (*set_num_threads)(int threads);
    int (*omp_get_max_threads)(void); /* of the OpenMP runtime it is linked to; else NULL */
    void (*omp_set_num_threads)(int threads);
    /* In builds that choose kernels at startup; else NULL. */
    void (*choose)(void); /* by OPENBLAS_CORETYPE, else by the processor; only once */
    void (*forget)(void);
    const void *has_skylakex, *has_haswell, *has_sandybridge; /* tables of kernels */
    /* In builds with their own threads; else NULL. */
    int *number;       /* threads for the next product; at most the existing ones */
    int (*stop)(void); /* ends its threads; the next product that needs them restarts them */
    int parallel;
} tni_openblas;

/* Makes OpenBLAS choose again if it chose kernels for an older processor than this one: it treats
 * processors that are newer than itself as Prescott, whose kernels do not use AVX. Only for a
 * library that nobody else uses yet. */
void tni_openblas_improve(const tn_host *host, tni_openblas *self);

#endif
