/* Internal declarations for BLIS. */
#ifndef TENON_BACKENDS_CPU_BLIS_H
#define TENON_BACKENDS_CPU_BLIS_H

#include "../cblas/cblas.h"
#include "tenon/module/library.h"

typedef struct tni_blis {
    tni_cblas blas;
    const char *(*get_version)(void);
    int64_t (*get_int_size)(void);      /* bits of the integers of its own interface */
    int64_t (*get_blas_int_size)(void); /* and of the BLAS interface */
    void (*init)(void);
    int (*query_arch)(void);          /* after init: the set of kernels it chose */
    const char *(*name_of)(int arch); /* "skx"; the last one is "generic" */
    int64_t (*get_threads)(void);     /* -1: not set, which means one */
    void (*set_threads)(int64_t threads);
} tni_blis;

/* Starts BLIS, with the AVX-512 kernels if this processor supports them: BLIS itself chooses them
 * only if the processor's name shows the number of its AVX-512 units, and the name of a virtual
 * processor does not. Only for a library that nobody else uses yet. */
void tni_blis_start(const tn_host *host, tni_blis *self);

#endif
