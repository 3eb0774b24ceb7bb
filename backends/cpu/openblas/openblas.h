/* OpenBLAS from inside. */
#ifndef TENON_BACKENDS_CPU_OPENBLAS_H
#define TENON_BACKENDS_CPU_OPENBLAS_H

#include "../cblas/cblas.h"
#include "tenon/module/library.h"

/* What openblas_get_parallel says. */
enum { TNI_OPENBLAS_SERIAL = 0, TNI_OPENBLAS_POOL = 1, TNI_OPENBLAS_OPENMP = 2 };

typedef struct tni_openblas {
    tni_cblas blas;
    char *(*get_config)(void);
    char *(*get_corename)(void); /* of which processor its kernels are: "SkylakeX" */
    int (*get_parallel)(void);
    int (*get_num_threads)(void);
    void (*set_num_threads)(int threads);
    int (*omp_get_max_threads)(void); /* of the run-time it is linked to; else NULL */
    void (*omp_set_num_threads)(int threads);
    /* Of builds that choose kernels when they start; else NULL. */
    void (*choose)(void); /* by OPENBLAS_CORETYPE, else by the processor; unless it has chosen */
    void (*forget)(void);
    const void *has_skylakex, *has_haswell, *has_sandybridge; /* tables of kernels */
    /* Of builds with threads of their own; else NULL. */
    int *number;       /* of threads for the next product; more than there are is not possible */
    int (*stop)(void); /* ends its threads; its next product that needs them starts them again */
    int parallel;
} tni_openblas;

/* Has it choose again where it took kernels for an older processor than this one is: those that came after
 * it was written are Prescotts to it, whose kernels know of no AVX. For a library that nobody else uses
 * yet. */
void tni_openblas_improve(const tn_host *host, tni_openblas *self);

#endif
