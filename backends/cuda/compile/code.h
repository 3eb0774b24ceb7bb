/* Compiled kernels: one function of one unit for one case, on one device. Made at first need for the very
 * device, kept in the cache directory by the text, the options, the architecture and the compiler's version.
 * Thread-safety: Safe. Kernels live as long as the process. */
#ifndef CUDA_CODE_H
#define CUDA_CODE_H

#include "../platform/cuda.h"
#include "nvrtc.h"
#include "tenon/module/kernel.h"

typedef struct cuda_kernel cuda_kernel;

/* What is asked for. The options are one a line, and say which case it is. */
typedef struct cuda_case {
    int32_t unit; /* CUDA_UNIT_... */
    const char *function;
    const char *options;
} cuda_case;

/* Finds it among the device's, else in the cache directory, else compiles it; and loads it. */
tn_status cuda_kernel_get(cuda *self, const cuda_nvrtc *nvrtc, int32_t device,
                          const cuda_case *wanted, cuda_kernel **out, tn_error *err);

typedef struct cuda_launch {
    cuda_kernel *kernel;
    unsigned blocks;
    unsigned threads;
    void *args; /* the kernel's one argument */
    void *stream;
} cuda_launch;

/* Queues. A device that was reset since gets the code again. */
tn_status cuda_kernel_launch(cuda *self, int32_t device, const cuda_launch *launch, tn_error *err);

/* The compiler for kernels of what does not go through it as a library; NULL where there is none. It is sought once. */
const cuda_nvrtc *cuda_compiler(cuda *self);

/* A kernel that runs before a library's, or after it. TN_UNSUPPORTED, with `what` it is for, where it cannot be made or
 * loaded, for want of a compiler too: what does not need it is taken all the same. */
tn_status cuda_kernel_beside(const tn_run *run, const cuda_case *wanted, const char *what,
                             cuda_kernel **out, tn_error *err);

/* Machine code for an architecture, from the cache directory or compiled; host->release it. */
tn_status cuda_code_make(const cuda_nvrtc *nvrtc, const char *architecture, const cuda_case *wanted,
                         void **out, size_t *out_size, tn_error *err);

#endif
