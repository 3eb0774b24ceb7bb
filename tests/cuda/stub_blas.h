/* What the stubs of cuBLAS and cuBLASLt were asked, for tests that look: each has one of these, found by its
 * name. They compute nothing.
 *
 * Environment:
 *   STUB_LT         the result of asking cuBLASLt for an algorithm (0), or "none": it is 0, and there is none
 *   STUB_LT_WAYS    how many algorithms there are (8)
 *   STUB_LT_START   the result of making a handle of cuBLASLt (0)
 *   STUB_BLAS       the result of a product by cuBLAS (0)
 *   STUB_BLAS_AT    which product has that result, from 1; 0 (the standard): every one
 *   STUB_BLAS_VERSION  the version of cuBLAS (130002)
 *   STUB_BLAS_START the result of making a handle of cuBLAS (0) */
#ifndef TESTS_CUDA_STUB_BLAS_H
#define TESTS_CUDA_STUB_BLAS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { STUB_CALLS_MOST = 4096, STUB_ANSWERS = 8, STUB_HANDLES_MOST = 64 };

/* A product; tests/python/test_fast.py reads it too. */
typedef struct stub_blas_call {
    int compute, scale; /* cuBLAS is told no scale */
    int mode; /* cuBLAS: the mode of its mathematics; cuBLASLt: how parts of sums are put together */
    int answer; /* cuBLASLt: which of its algorithms */
    int batch;
    int scale_mode;             /* cuBLASLt: of both */
    uintptr_t scale_a, scale_b; /* cuBLASLt: where they are, 0 for none */
    void *stream;
    uintptr_t left, right, out; /* of a product, or the first of a batch */
    uintptr_t room;
    size_t bytes;
} stub_blas_call;

typedef struct stub_blas_seen {
    _Atomic int handles;           /* made              */
    void *kept[STUB_HANDLES_MOST]; /* these, also those that went with a reset device */
    _Atomic int asked;             /* for an algorithm  */
    _Atomic int crossed;           /* calls with a handle that another thread had its turn with */
    _Atomic int answers[STUB_ANSWERS]; /* products by each */
    _Atomic int count;
    stub_blas_call calls[STUB_CALLS_MOST];
    _Atomic int recorded; /* cuBLAS: calls for many at once on a stream that is recorded */
    _Atomic int outs;     /* cuBLASLt: different ones, these */
    uintptr_t out[STUB_HANDLES_MOST];
} stub_blas_seen;

extern stub_blas_seen stub_lt_seen, stub_cublas_seen;

/* Counts a handle; the module has one made at a time. */
static inline void stub_blas_made(stub_blas_seen *in, void *handle)
{
    const int i = atomic_fetch_add(&in->handles, 1);
    in->kept[i < STUB_HANDLES_MOST ? i : STUB_HANDLES_MOST - 1] = handle;
}

/* The place of the next product; the last one's where there is no more room. */
static inline stub_blas_call *stub_blas_next(stub_blas_seen *in)
{
    const int i = atomic_fetch_add(&in->count, 1);
    return &in->calls[i < STUB_CALLS_MOST ? i : STUB_CALLS_MOST - 1];
}

#endif
