/* Makes an executable plan from a graph. */
#ifndef CUDA_CUDNN_ENGINE_H
#define CUDA_CUDNN_ENGINE_H

#include "cudnn_graph.h"

/* Requirements for a plan: for a handle's device, or for a described device that is not present. */
typedef struct dnn_target {
    dnn_handle handle;
    dnn_desc device;
    uint64_t most; /* maximum bytes of workspace */
    bool repeats;  /* must give the same bits in every run */
} dnn_target;

/* Returns the first plan of the library's heuristics that meets the target. It outlives the graph, and the caller
 * must destroy it; *out_workspace is the workspace it needs (may be NULL). Fails with TN_UNSUPPORTED and the
 * library's message if none exists. */
tn_status dnn_plan_make(dnn_graph *graph, const dnn_target *target, dnn_desc *out,
                        uint64_t *out_workspace, tn_error *err);

#endif
