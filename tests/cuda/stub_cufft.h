/* What the stub of cuFFT was asked, for tests that look: found by its name. It computes nothing.
 *
 * Environment:
 *   STUB_FFT        the result of making a plan (0)
 *   STUB_FFT_WORK   bytes of work area that a plan needs (4096)
 *   STUB_FFT_EXEC   the result of a transform (0) */
#ifndef TESTS_CUDA_STUB_CUFFT_H
#define TESTS_CUDA_STUB_CUFFT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { STUB_PLANS_MOST = 4096 };

typedef struct stub_fft_plan {
    _Atomic int alive, in_use;
    int is_own_work, is_made; /* the work area is the caller's; the plan is made */
    int rank, in_type, out_type;
    long long lengths[3], in_embed[3], out_embed[3];
    long long in_stride, in_distance, out_stride, out_distance, batch;
    size_t work_bytes;
    uintptr_t work; /* of the last transform, like the following */
    void *stream;
    uintptr_t in, out;
    int direction;
} stub_fft_plan;

typedef struct stub_fft_seen {
    _Atomic int made, destroyed, transforms;
    _Atomic int crossed; /* calls with a handle that another thread had its turn with */
    _Atomic int
        unready; /* transforms of a plan that is not made, has no stream, or no work area of its own */
    stub_fft_plan plans[STUB_PLANS_MOST];
} stub_fft_seen;

extern stub_fft_seen stub_cufft_seen;

#endif
