/* A stub of cuDNN's graph part, beside the stub of the driver: it keeps descriptors, minds that each is finished
 * before it is used, finds fault where the environment says so, and computes graphs on the host, whose memory the
 * stub's devices have.
 *
 * Environment:
 *   STUB_DNN          the result of asking for engines (0), or "none": it is 0, and there is none
 *   STUB_DNN_START    the result of making a handle (0)
 *   STUB_DNN_IDLE     not empty: executing a plan computes nothing
 *   STUB_DNN_RUN      the result of executing a plan (0)
 *   STUB_DNN_VERSION  its version (91900)
 *   STUB_DNN_MIXED    the result of comparing its parts (0)
 *   STUB_DNN_CUDA     the CUDA it is made for (13000)
 *   STUB_DNN_DIFFERS  not empty: its engine says that results differ from run to run
 *   STUB_DNN_BYTES    the workspace of a plan (0) */
#include "stub_cudnn.h"

#include <stdlib.h>

#define DNN_CALL_(field, name, result, parameters) result name parameters;
DNN_CALL_LIST(DNN_CALL_)
DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_

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
    stub_desc *made = calloc(1, sizeof *made);
    if (made) {
        made->type = type;
        made->references = 1;
    }
    *out = made;
    return made ? DNN_SUCCESS : DNN_NO_HOST_MEMORY;
}

/* The others that it has may go with it. */
static void drop(stub_desc *desc)
{
    if (!desc || --desc->references > 0)
        return;
    for (int i = 0; i < desc->count; i++) {
        const stub_attribute *it = &desc->attribute[i];
        for (int64_t j = 0; it->type == DNN_TYPE_DESC && j < it->count; j++)
            drop(((stub_desc **)it->values)[j]);
        free(it->values);
    }
    free(desc);
}

dnn_status cudnnBackendDestroyDescriptor(dnn_desc desc)
{
    drop(desc);
    return DNN_SUCCESS;
}

const void *stub_values(const stub_desc *desc, dnn_attribute name, int64_t *out_count)
{
    for (int i = 0; desc && i < desc->count; i++) {
        if (desc->attribute[i].name == name) {
            if (out_count)
                *out_count = desc->attribute[i].count;
            return desc->attribute[i].values;
        }
    }
    return NULL;
}

stub_desc *stub_child(const stub_desc *desc, dnn_attribute name)
{
    stub_desc *const *found = stub_values(desc, name, NULL);
    return found ? found[0] : NULL;
}

dnn_status cudnnBackendFinalize(dnn_desc desc)
{
    stub_desc *of = desc;
    if (!of || of->finished)
        return DNN_BAD_PARAM;
    of->finished = true;
    return DNN_SUCCESS;
}

static size_t size_of(dnn_type type)
{
    switch (type) {
    case DNN_TYPE_BOOL:
    case DNN_TYPE_CHAR: return 1;
    case DNN_TYPE_I64:
    case DNN_TYPE_F64:
    case DNN_TYPE_POINTER:
    case DNN_TYPE_HANDLE:
    case DNN_TYPE_DESC: return 8;
    default: return 4;
    }
}

static dnn_status keep(stub_desc *to, dnn_attribute name, dnn_type type, int64_t count,
                       const void *of)
{
    const size_t bytes = (size_t)count * size_of(type);
    void *copy = to->count < STUB_ATTRIBUTES_MOST ? malloc(bytes) : NULL;
    if (!copy)
        return DNN_NO_HOST_MEMORY;
    memcpy(copy, of, bytes);
    for (int64_t i = 0; type == DNN_TYPE_DESC && i < count; i++)
        ((stub_desc **)copy)[i]->references++;
    to->attribute[to->count++] = (stub_attribute){name, type, count, copy};
    return DNN_SUCCESS;
}

/* A descriptor takes only others that are finished, but for the configurations that heuristics fill in. */
dnn_status cudnnBackendSetAttribute(dnn_desc desc, dnn_attribute attribute, dnn_type type,
                                    int64_t count, const void *of)
{
    stub_desc *to = desc;
    const dnn_desc *others = of;
    if (!to || to->finished || count < 1 || !of)
        return DNN_BAD_PARAM;
    for (int64_t i = 0; type == DNN_TYPE_DESC && i < count; i++) {
        const stub_desc *other = others[i];
        if (!other || (!other->finished && other->type != DNN_CONFIG))
            return DNN_BAD_PARAM;
    }
    return keep(to, attribute, type, count, of);
}

/* One configuration, which knows the graph; the heuristics' own attribute is where it finds it. */
static dnn_status get_results(const stub_desc *asked, int64_t *out_count, dnn_desc *out)
{
    const char *text = getenv("STUB_DNN");
    const dnn_status code = (dnn_status)number("STUB_DNN", 0);
    const stub_desc *graph = stub_child(asked, DNN_HEURISTIC_GRAPH);
    *out_count = !code && (!text || text[0] != 'n');
    return *out_count ? keep(out[0], DNN_HEURISTIC_GRAPH, DNN_TYPE_DESC, 1, &graph) : code;
}

dnn_status cudnnBackendGetAttribute(dnn_desc desc, dnn_attribute attribute, dnn_type type,
                                    int64_t most, int64_t *out_count, void *out)
{
    (void)type;
    if (!desc || most < 1 || !out_count || !out)
        return DNN_BAD_PARAM;
    *out_count = 1;
    switch (attribute) {
    case DNN_HEURISTIC_RESULTS: return get_results(desc, out_count, out);
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
    const dnn_status code = (dnn_status)number("STUB_DNN_RUN", 0);
    if (!handle || !of[0]->finished || !of[1]->finished || of[0]->type != DNN_PLAN ||
        of[1]->type != DNN_PACK)
        return DNN_BAD_PARAM;
    if (code || getenv("STUB_DNN_IDLE"))
        return code;
    const stub_desc *config = stub_child(of[0], DNN_PLAN_CONFIG);
    return stub_compute(stub_child(config, DNN_HEURISTIC_GRAPH), of[1]) ? DNN_SUCCESS
                                                                        : DNN_INTERNAL;
}
