/* Kernels that were compiled ahead, when the module was built, for the architectures that the build listed;
 * there may be none. Thread-safety: Safe. */
#ifndef CUDA_READY_H
#define CUDA_READY_H

#include "code.h"

/* Format of a kernel in the embedded file: this header, the options, the code, each aligned to 16 bytes. A
 * header with code_bytes 0 ends the file. */
typedef struct cuda_ready {
    char architecture[16]; /* "sm_90a" */
    char function[32];
    char unit[32];          /* its name */
    uint32_t options_bytes; /* including the '\0' */
    uint32_t code_bytes;
    uint32_t compiler; /* 1300 is NVRTC 13.0 */
    uint32_t reserved;
} cuda_ready;

enum { CUDA_READY_ALIGNMENT = 16 };
TN_STATIC_ASSERT(sizeof(cuda_ready) == 96, "as the files in ready/ assume");

/* Returns machine code that runs on this architecture: its own, or that of an earlier one of its family; NULL
 * if none exists. The memory is static. */
const void *cuda_ready_find(const char *architecture, const cuda_case *wanted, size_t *out_size);

/* The number of kernels, for all architectures; the compiler's version, or 0. */
int32_t cuda_ready_count(void);
int32_t cuda_ready_compiler(void);

/* Returns whether code for one architecture runs on another: "sm_80" runs on "sm_86", "sm_90a" only on
 * "sm_90a". */
int cuda_ready_serves(const char *code, const char *device);

#endif
