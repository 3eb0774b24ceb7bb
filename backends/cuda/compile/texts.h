/* The kernels' source texts, which are embedded in the module, and the parts of each unit. */
#ifndef CUDA_TEXTS_H
#define CUDA_TEXTS_H

#include "nvrtc.h"

enum {
    CUDA_UNIT_EACH = 0,
    CUDA_UNIT_PERMUTE,
    CUDA_UNIT_SOFTMAX,
    CUDA_UNIT_NORM,
    CUDA_UNIT_ROTARY,
    CUDA_UNIT_REDUCE,
    CUDA_UNIT_RANDOM,
    CUDA_UNIT_MATMUL,
    CUDA_UNIT_MATMUL_FINISH,
    CUDA_UNIT_ATTENTION,
    CUDA_UNIT_ATTENTION_FEW,
    CUDA_UNIT_ATTENTION_JOIN,
    CUDA_UNIT_ATTENTION_BACK,
    CUDA_UNIT_ATTENTION_EMPTY,
    CUDA_UNIT_DROPOUT,
    CUDA_UNIT_COUNT
};

/* The unit's name: "elementwise.cu". */
const char *cuda_unit_name(int32_t unit);

/* Returns the unit's whole text, terminated by '\0'; #line directives keep each part's name and line
 * numbers. The caller must host->release it. NULL if out of memory. */
char *cuda_unit_text(const tn_host *host, int32_t unit);

/* Headers that the units include, in addition to their parts. */
extern const char *const cuda_header_names[];
extern const char *const cuda_header_texts[];
extern const int32_t cuda_headers;

#endif
