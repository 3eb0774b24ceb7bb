/* From a graph to a plan that can be executed. */
#ifndef CUDA_CUDNN_ENGINE_H
#define CUDA_CUDNN_ENGINE_H

#include "graph.h"

/* What a plan is to be: for a handle's device, or for what describes one that is not here. */
typedef struct dnn_target {
    dnn_handle handle;
    dnn_desc device;
    uint64_t most; /* bytes of workspace */
    bool repeats;  /* the same bits in every run */
} dnn_target;

/* The plan that the library's heuristics name first of those. It outlives the graph, and is the caller's to
 * destroy; *out_workspace, which may be NULL, is what it needs. TN_UNSUPPORTED, with what the library says, where
 * there is none. */
tn_status dnn_plan_make(dnn_graph *graph, const dnn_target *target, dnn_desc *out,
                        uint64_t *out_workspace, tn_error *err);

#endif
