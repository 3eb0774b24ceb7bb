/* BLIS from inside. */
#ifndef TENON_BACKENDS_CPU_BLIS_H
#define TENON_BACKENDS_CPU_BLIS_H

#include "../cblas/cblas.h"
#include "tenon/module/library.h"

typedef struct tni_blis {
    tni_cblas blas;
    const char *(*get_version)(void);
    int64_t (*get_int_size)(void);      /* bits of the numbers of its own interface, */
    int64_t (*get_blas_int_size)(void); /* and of BLAS's                             */
    void (*init)(void);
    int (*query_arch)(void);          /* after init; which set of kernels it took */
    const char *(*name_of)(int arch); /* "skx"; the last one is "generic"         */
    int64_t (*get_threads)(void);     /* -1: not said, which is one              */
    void (*set_threads)(int64_t threads);
} tni_blis;

/* Starts it, with the kernels for AVX-512 where this processor has that: BLIS itself takes them only for
 * processors whose name tells how many units for them there are, which that of a virtual one does not. For
 * a library that nobody else uses yet. */
void tni_blis_start(const tn_host *host, tni_blis *self);

#endif
