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

#include <dlfcn.h>
#include <pthread.h>
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

typedef struct handle {
    dnn_stream stream;
} handle;

dnn_status cudnnCreate(dnn_handle *out)
{
    dnn_status code = (dnn_status)number("STUB_DNN_START", 0);
    *out = code ? NULL : calloc(1, sizeof(handle));
    return code || *out ? code : DNN_NO_HOST_MEMORY;
}

dnn_status cudnnDestroy(dnn_handle any)
{
    free(any);
    return DNN_SUCCESS;
}

dnn_status cudnnSetStream(dnn_handle any, dnn_stream stream)
{
    handle *of = any;
    if (of)
        of->stream = stream;
    return of ? DNN_SUCCESS : DNN_BAD_PARAM;
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

/* A run of a graph, which a recording may keep: it is freed with the process. */
typedef struct work {
    struct work *next;
    stub_desc *graph, *pack;
    double values[STUB_ATTRIBUTES_MOST]; /* that the caller passed by value */
    int count;
    bool done, well;
} work;

/* Lets the pack point to a copy of the tensor's value, which the caller's memory need not keep. */
static void keep_value(work *w, const stub_desc *tensor)
{
    const bool *by_value = stub_values(tensor, DNN_TENSOR_BY_VALUE, NULL);
    const int64_t *id = stub_values(tensor, DNN_TENSOR_ID, NULL);
    int64_t count = 0;
    const int64_t *ids = stub_values(w->pack, DNN_PACK_IDS, &count);
    const void *pointers = stub_values(w->pack, DNN_PACK_POINTERS, NULL);
    const void **data = (const void **)(uintptr_t)pointers;
    for (int64_t i = 0; by_value && *by_value && data && i < count; i++) {
        if (ids[i] != *id || w->count == STUB_ATTRIBUTES_MOST)
            continue;
        memcpy(&w->values[w->count], data[i], sizeof(float)); /* all such tensors are of f32 */
        data[i] = &w->values[w->count++];
    }
}

static void keep_values(work *w, const stub_desc *desc)
{
    keep_value(w, desc);
    for (int i = 0; i < desc->count; i++) {
        const stub_attribute *it = &desc->attribute[i];
        for (int64_t j = 0; it->type == DNN_TYPE_DESC && j < it->count; j++)
            keep_values(w, ((stub_desc **)it->values)[j]);
    }
}

static void do_work(void *any)
{
    work *w = any;
    w->well = stub_compute(w->graph, w->pack);
    w->done = true;
}

static work *keep_work(stub_desc *graph, stub_desc *pack)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static work *all;
    work *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (work){.graph = graph, .pack = pack};
    keep_values(made, graph);
    graph->references++;
    pack->references++;
    pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
    return made;
}

/* Queues it with the stub of the driver, which records it or does it at once; without one, does it. */
static dnn_status queue_work(dnn_stream stream, stub_desc *graph, stub_desc *pack)
{
    int (*queue)(void *on, void (*work)(void *with), void *with) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, "stub_queue_work") : NULL;
    memcpy(&queue, &found, sizeof queue);
    if (!queue)
        return stub_compute(graph, pack) ? DNN_SUCCESS : DNN_INTERNAL;
    work *w = keep_work(graph, pack);
    const bool queued = w && queue(stream, do_work, w) == 0;
    (void)dlclose(driver);
    return queued && (!w->done || w->well) ? DNN_SUCCESS : DNN_INTERNAL;
}

dnn_status cudnnBackendExecute(dnn_handle any, dnn_desc plan, dnn_desc pack)
{
    const handle *with = any;
    const stub_desc *of[] = {plan, pack};
    const dnn_status code = (dnn_status)number("STUB_DNN_RUN", 0);
    if (!with || !of[0]->finished || !of[1]->finished || of[0]->type != DNN_PLAN ||
        of[1]->type != DNN_PACK)
        return DNN_BAD_PARAM;
    if (code || getenv("STUB_DNN_IDLE"))
        return code;
    const stub_desc *config = stub_child(of[0], DNN_PLAN_CONFIG);
    return queue_work(with->stream, stub_child(config, DNN_HEURISTIC_GRAPH), pack);
}
