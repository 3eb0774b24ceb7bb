/* Kernels that were compiled when the module was built, for the architectures that the build listed; there may
 * be none. Thread-safety: Safe. */
#ifndef CUDA_READY_H
#define CUDA_READY_H

#include "code.h"

/* How a kernel lies in the file that is a part of the module: this, the options, the code, each from a multiple
 * of 16 bytes on. The file ends with one of no code. */
typedef struct cuda_ready {
    char architecture[16]; /* "sm_90a" */
    char function[32];
    uint32_t unit;
    uint32_t options_bytes; /* with the end */
    uint32_t code_bytes;
    uint32_t compiler; /* 1300 is NVRTC 13.0 */
} cuda_ready;

enum { CUDA_READY_ALIGNMENT = 16 };

/* Machine code that a device of this architecture runs: its own, or of an earlier one of its family; NULL for
 * none. Lent for good. */
const void *cuda_ready_find(const char *architecture, const cuda_case *wanted, size_t *out_size);

/* How many there are, for all architectures; the compiler's version, or 0. */
int32_t cuda_ready_count(void);
int32_t cuda_ready_compiler(void);

/* Whether code for one architecture runs on another: "sm_80" on "sm_86", "sm_90a" on "sm_90a" alone. */
int cuda_ready_serves(const char *code, const char *device);

#endif
