/* Graphs: the driver captures the work queued on a stream and turns it into one executable graph.
 *
 * The capture mode is relaxed: during a capture, memory is allocated from the pool and code is loaded, on
 * a stream of our own. Calls that are not allowed are rejected before they reach this file. */
#include "cuda.h"

tn_status cuda_graph_begin(void *any, int32_t index, void *stream, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    const cuda_driver *driver = &scope.self->driver;
    if (!driver->graph_instantiate) {
        cuda_leave(&scope);
        return tn_fail(err, TN_UNSUPPORTED, 0, "cuGraphInstantiateWithFlags",
                       "graphs need a driver for CUDA 11.4, this one serves %d.%d",
                       (int)scope.self->driver_version / 1000,
                       (int)scope.self->driver_version % 1000 / 10);
    }
    return cuda_done(&scope, driver->graph_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                     "cuStreamBeginCapture_v2", err);
}

/* The captured graph is no longer needed after it has been instantiated. */
tn_status cuda_graph_end(void *any, int32_t index, void *stream, void **out_graph, tn_error *err)
{
    cuda_scope scope;
    cu_graph recorded = NULL;
    cu_graph_exec made = NULL;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    const cuda_driver *driver = &scope.self->driver;
    status = cuda_check(&scope, driver->graph_end(stream, &recorded), "cuStreamEndCapture", err);
    if (!status && out_graph)
        status = cuda_check(&scope, driver->graph_instantiate(&made, recorded, 0),
                            "cuGraphInstantiateWithFlags", err);
    if (recorded)
        (void)driver->graph_destroy(recorded);
    cuda_leave(&scope);
    if (!status && out_graph)
        *out_graph = made;
    return status;
}

tn_status cuda_graph_run(void *any, int32_t index, void *graph, void *stream, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    return status ? status
                  : cuda_done(&scope, scope.self->driver.graph_launch(graph, stream),
                              "cuGraphLaunch", err);
}

/* The driver lets a running launch finish. */
void cuda_graph_destroy(void *any, int32_t index, void *graph)
{
    cuda_scope scope;
    if (cuda_enter(any, index, &scope, NULL))
        return;
    cuda_relax(&scope);
    (void)cuda_done(&scope, scope.self->driver.graph_exec_destroy(graph), "cuGraphExecDestroy",
                    NULL);
}
