/* Compiled kernels: one function of one unit with one set of options, on one device. Compiled at first use
 * for exactly that device, and stored in the cache directory under the text, the options, the architecture
 * and the compiler's version. Thread-safety: Safe. Kernels live as long as the process. */
#ifndef CUDA_CODE_H
#define CUDA_CODE_H

#include "../platform/cuda.h"
#include "nvrtc.h"
#include "tenon/module/kernel.h"
#include "texts.h"

typedef struct cuda_kernel cuda_kernel;

/* Identifies a kernel. The options, one per line, select the variant. */
typedef struct cuda_case {
    const cuda_unit *unit;
    const char *function;
    const char *options;
} cuda_case;

/* Finds the kernel among the device's, else in the cache directory, else compiles it; and loads it. */
tn_status cuda_kernel_get(cuda *self, const cuda_nvrtc *nvrtc, int32_t device,
                          const cuda_case *wanted, cuda_kernel **out, tn_error *err);

typedef struct cuda_launch {
    cuda_kernel *kernel;
    unsigned blocks;
    unsigned threads;
    unsigned shared; /* bytes of dynamic shared memory */
    void *args;      /* the kernel's only argument */
    void *stream;
    bool
        overlaps; /* may start before the stream's previous launch ends: the kernel calls await_previous first */
} cuda_launch;

/* Queues a launch. If the device was reset in the meantime, loads the code again. */
tn_status cuda_kernel_launch(cuda *self, int32_t device, const cuda_launch *launch, tn_error *err);

/* Returns the compiler for kernels whose row does not use nvrtc as its library; NULL if none exists. Searches
 * once. */
const cuda_nvrtc *cuda_compiler(cuda *self);

/* Gets a kernel that runs before or after a library's. Fails with TN_UNSUPPORTED, naming `what` it is for, if it
 * cannot be compiled or loaded, also if there is no compiler: problems that do not need it are still accepted. */
tn_status cuda_kernel_beside(const tn_run *run, const cuda_case *wanted, const char *what,
                             cuda_kernel **out, tn_error *err);

/* Returns machine code for an architecture: compiled ahead, from the cache directory, or compiled
 * now. The caller must host->release it. */
tn_status cuda_code_make(const cuda_nvrtc *nvrtc, const char *architecture, const cuda_case *wanted,
                         void **out, size_t *out_size, tn_error *err);

#endif
