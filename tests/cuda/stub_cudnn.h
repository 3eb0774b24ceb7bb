/* The stub of cuDNN from inside: descriptors that know what was set, and graphs that are computed on the host. */
#ifndef TESTS_CUDA_STUB_CUDNN_H
#define TESTS_CUDA_STUB_CUDNN_H

#include "../../backends/cuda/lib/cudnn/dnn.h"

/* What one attribute was set to; of descriptors, pointers that count. */
typedef struct stub_attribute {
    dnn_attribute name;
    dnn_type type;
    int64_t count;
    void *values;
} stub_attribute;

enum { STUB_ATTRIBUTES_MOST = 16 };

typedef struct stub_desc {
    dnn_desc_type type;
    bool finished;
    _Atomic int references;
    int count;
    stub_attribute attribute[STUB_ATTRIBUTES_MOST];
} stub_desc;

/* The values of an attribute; NULL for one that was not set. */
const void *stub_values(const stub_desc *desc, dnn_attribute name, int64_t *out_count);
stub_desc *stub_child(const stub_desc *desc,
                      dnn_attribute name); /* its first descriptor, or NULL */

/* Computes a graph's operations in their order with a pack's memory, which is the host's. False for one that is
 * not known, or without memory. */
bool stub_compute(const stub_desc *graph, const stub_desc *pack);

#endif
