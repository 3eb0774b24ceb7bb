/* Internal declarations for MKL: the functions that are used, from mkl_service.h, mkl_types.h and mkl_dfti.h. */
#ifndef TENON_BACKENDS_CPU_MKL_H
#define TENON_BACKENDS_CPU_MKL_H

#include "../cblas/cblas.h"

typedef struct tni_mkl_version { /* MKLVersion */
    int major, minor, update;
    char *product_status, *build, *processor, *platform;
} tni_mkl_version;

/* Fourier transforms (DFTI). Results are 0 or an error. After `which`, `set` expects a long for integers,
 * a double for scales, and a pointer to long for strides. */
typedef struct tni_mkl_dfti {
    long (*create_1d_f32)(void **out, int domain, long length);
    long (*create_1d_f64)(void **out, int domain, long length);
    long (*create_nd_f32)(void **out, int domain, long dims, const long *lengths);
    long (*create_nd_f64)(void **out, int domain, long dims, const long *lengths);
    long (*set)(void *descriptor, int which, ...);
    long (*commit)(void *descriptor);
    long (*forward)(void *descriptor, void *in, ...);
    long (*backward)(void *descriptor, void *in, ...);
    long (*destroy)(void **descriptor);
    char *(*message)(long code);
} tni_mkl_dfti;

typedef struct tni_mkl {
    tni_cblas blas;
    void (*get_version)(tni_mkl_version *out);
    int (*verbose)(int enable);            /* returns -1 if it refuses */
    int (*set_threads_local)(int threads); /* for this thread; returns the old one, or 0 */
    int (*set_interface)(int layer);       /* both: before any product; return the layer */
    int (*set_threading)(int layer);
    tni_mkl_dfti dfti;
} tni_mkl;

#endif
