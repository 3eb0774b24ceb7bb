/* Internal declarations of the module `fftw`: what it uses of FFTW's C interface, version 3 (fftw3.h),
 * declared here so that the header is not needed. The module links nothing of FFTW. */
#ifndef TENON_BACKENDS_FFTW_FFTW_H
#define TENON_BACKENDS_FFTW_FFTW_H

#include "tenon/module/kernel.h"
#include "tenon/module/library.h"

/* A dimension (fftw_iodim64); strides in elements of each side. */
typedef struct fftw_dim {
    ptrdiff_t n, in, out;
} fftw_dim;

enum { FFTW_TO_FREQUENCY = -1, FFTW_FROM_FREQUENCY = 1 }; /* FFTW_FORWARD, FFTW_BACKWARD */
enum {
    FFTW_IS_UNALIGNED = 1 << 1,
    FFTW_KEEPS_INPUT = 1 << 4, /* FFTW_PRESERVE_INPUT */
    FFTW_ESTIMATES = 1 << 6    /* without it, the planner runs and times transforms */
};

/* The functions for one precision. Data are float or double, complex numbers as pairs of them. The
 * first three and `release` must be called inside of tni_fftw_planner_enter and _leave; the others
 * may be called from any thread. */
typedef struct fftw_calls {
    void *(*plan)(int rank, const fftw_dim *dims, int batch_rank, const fftw_dim *batch, void *in,
                  void *out, int sign, unsigned flags);
    void *(*plan_to_complex)(int rank, const fftw_dim *dims, int batch_rank, const fftw_dim *batch,
                             void *in, void *out, unsigned flags);
    void *(*plan_to_real)(int rank, const fftw_dim *dims, int batch_rank, const fftw_dim *batch,
                          void *in, void *out, unsigned flags);
    void (*release)(void *plan);
    void (*run)(void *plan, void *in, void *out);
    void (*run_to_complex)(void *plan, void *in, void *out);
    void (*run_to_real)(void *plan, void *in, void *out);
    int (*alignment_of)(void *memory); /* 0: may be used where aligned memory was planned for */
    const char *version;               /* the text itself: "fftw-3.3.10-sse2-avx" */
} fftw_calls;

/* What the library's `open` returns. */
typedef struct fftw_library {
    fftw_calls f32, f64;
} fftw_library;

extern const tn_library_row tni_fftw_library;
extern const tn_kernel_row tni_fftw_estimated, tni_fftw_measured;

/* FFTW's planner has one state for the process. Between these two, the calling thread has it for
 * itself, and fork() waits, so that a child finds it complete. */
void tni_fftw_planner_enter(void);
void tni_fftw_planner_leave(void);

#endif
