/* A stub of cuDNN's graph part, beside the stub of the driver: it keeps descriptors, minds that each is finished
 * before it is used, finds fault where the environment says so, and computes nothing.
 *
 * Environment:
 *   STUB_DNN          the result of asking for engines (0), or "none": it is 0, and there is none
 *   STUB_DNN_START    the result of making a handle (0)
 *   STUB_DNN_RUN      the result of executing a plan (0)
 *   STUB_DNN_VERSION  its version (91900)
 *   STUB_DNN_MIXED    the result of comparing its parts (0)
 *   STUB_DNN_CUDA     the CUDA it is made for (13000)
 *   STUB_DNN_DIFFERS  not empty: its engine says that results differ from run to run
 *   STUB_DNN_BYTES    the workspace of a plan (0) */
#include "../../backends/cuda/cudnn/dnn.h"

#include <stdlib.h>

#define DNN_CALL_(field, name, result, parameters) result name parameters;
DNN_CALL_LIST(DNN_CALL_)
DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_

typedef struct stub_desc {
    dnn_desc_type type;
    bool finished;
} stub_desc;

static long number(const char *name, long standard)
{
    const char *text = getenv(name);
    return text && text[0] ? strtol(text, NULL, 10) : standard;
}

size_t cudnnGetVersion(void)
{
    return (size_t)number("STUB_DNN_VERSION", 91900);
}

size_t cudnnGetCudartVersion(void)
{
    return (size_t)number("STUB_DNN_CUDA", 13000);
}

dnn_status cudnnGraphVersionCheck(void)
{
    return (dnn_status)number("STUB_DNN_MIXED", 0);
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    snprintf(message, max_size,
             "Warning: SHAPE; Reason: the stub has no shape like this at: d %% 8\nmore");
}

dnn_status cudnnCreate(dnn_handle *out)
{
    dnn_status code = (dnn_status)number("STUB_DNN_START", 0);
    *out = code ? NULL : malloc(1);
    return code || *out ? code : DNN_NO_HOST_MEMORY;
}

dnn_status cudnnDestroy(dnn_handle handle)
{
    free(handle);
    return DNN_SUCCESS;
}

dnn_status cudnnSetStream(dnn_handle handle, dnn_stream stream)
{
    (void)stream;
    return handle ? DNN_SUCCESS : DNN_BAD_PARAM;
}

dnn_status cudnnBackendCreateDescriptor(dnn_desc_type type, dnn_desc *out)
{
    stub_desc *made = malloc(sizeof *made);
    if (made)
        *made = (stub_desc){type, false};
    *out = made;
    return made ? DNN_SUCCESS : DNN_NO_HOST_MEMORY;
}

dnn_status cudnnBackendDestroyDescriptor(dnn_desc desc)
{
    free(desc);
    return DNN_SUCCESS;
}

dnn_status cudnnBackendFinalize(dnn_desc desc)
{
    stub_desc *of = desc;
    if (!of || of->finished)
        return DNN_BAD_PARAM;
    of->finished = true;
    return DNN_SUCCESS;
}

/* A descriptor takes only others that are finished, but for the configurations that heuristics fill in. */
dnn_status cudnnBackendSetAttribute(dnn_desc desc, dnn_attribute attribute, dnn_type type,
                                    int64_t count, const void *of)
{
    const stub_desc *to = desc;
    const dnn_desc *others = of;
    (void)attribute;
    if (!to || to->finished || count < 1 || !of)
        return DNN_BAD_PARAM;
    for (int64_t i = 0; type == DNN_TYPE_DESC && i < count; i++) {
        const stub_desc *other = others[i];
        if (!other || (!other->finished && other->type != DNN_CONFIG))
            return DNN_BAD_PARAM;
    }
    return DNN_SUCCESS;
}

static dnn_status get_results(int64_t *out_count)
{
    const char *text = getenv("STUB_DNN");
    *out_count = !text || text[0] != 'n';
    return (dnn_status)number("STUB_DNN", 0);
}

dnn_status cudnnBackendGetAttribute(dnn_desc desc, dnn_attribute attribute, dnn_type type,
                                    int64_t most, int64_t *out_count, void *out)
{
    (void)type;
    if (!desc || most < 1 || !out_count || !out)
        return DNN_BAD_PARAM;
    *out_count = 1;
    switch (attribute) {
    case DNN_HEURISTIC_RESULTS: return get_results(out_count);
    case DNN_PLAN_WORKSPACE: *(int64_t *)out = number("STUB_DNN_BYTES", 0); return DNN_SUCCESS;
    case DNN_ENGINE_NOTES:
        *(int32_t *)out = getenv("STUB_DNN_DIFFERS") ? DNN_NOTE_DIFFERS : 0;
        return DNN_SUCCESS;
    default: return DNN_SUCCESS;
    }
}

dnn_status cudnnBackendExecute(dnn_handle handle, dnn_desc plan, dnn_desc pack)
{
    const stub_desc *of[] = {plan, pack};
    if (!handle || !of[0]->finished || !of[1]->finished || of[0]->type != DNN_PLAN ||
        of[1]->type != DNN_PACK)
        return DNN_BAD_PARAM;
    return (dnn_status)number("STUB_DNN_RUN", 0);
}
