#include "../../compile/find.h"
#include "dnn.h"

static const tn_symbol symbols[] = {
#define DNN_CALL_(field, name, result, parameters) {#name, offsetof(cuda_dnn, field)},
    DNN_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_
#define DNN_CALL_(field, name, result, parameters) {"?" #name, offsetof(cuda_dnn, field)},
        DNN_LATER_CALL_LIST(DNN_CALL_)
#undef DNN_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

/* Since version 9, the descriptor functions are in a separate library. libcudnn.so.9 only loads such
 * libraries on demand, and terminates the process if it does not find one. */
static const char files[] = "libcudnn_graph.so.9|libcudnn.so.8";
static const char kin[] =
    "libcudnn.so.9|libcudnn_ops.so.9|libcudnn_cnn.so.9|libcudnn_adv.so.9|libcudnn_heuristic.so.9";
static const cuda_sought sought = {"libcudnn_graph.so.9", "cudnn", kin, false};
/* Used to report that it is too old. */
static const cuda_sought early = {"libcudnn.so.8", "cudnn", NULL, false};

static void write_version(size_t number, char *out, size_t size)
{
    const unsigned long n = (unsigned long)number, of = n >= 10000 ? 10000 : 1000;
    snprintf(out, size, "%lu.%lu.%lu", n / of, n % of / 100, n % 100);
}

/* Checks a library when it is opened: its version must be supported, and all its parts of the same version. */
static tn_status check_open(const cuda_dnn *self, tn_error *err)
{
    const size_t version = self->version();
    char text[32];
    write_version(version, text, sizeof text);
    if (version < DNN_LEAST || !self->last_error || !self->check_parts)
        return tn_fail(err, TN_INCOMPATIBLE, (int32_t)version, "cudnn",
                       "cuDNN %s is here, and too old: attention needs 9.0.0 or later", text);
    if (self->check_parts() != DNN_SUCCESS)
        return tn_fail(err, TN_INCOMPATIBLE, DNN_MIXED, "cudnn",
                       "parts of several versions of cuDNN are mixed here, and this one is of %s: "
                       "remove all but one version",
                       text);
    return TN_OK;
}

/* Checks whether cuDNN is installed without the library that is needed. */
static tn_status report_missing(const tn_host *host, tn_error *err)
{
    static const cuda_sought whole = {"libcudnn.so.9", "cudnn", NULL, false};
    static const tn_symbol none[] = {{"cudnnGetVersion", 0}};
    void *found[1];
    if (cuda_find_bind(host, &whole, none, 1, found, NULL))
        return TN_UNAVAILABLE;
    return tn_fail(err, TN_UNAVAILABLE, 0, "cudnn",
                   "libcudnn.so.9 is here, and its part libcudnn_graph.so.9 is not: install cuDNN "
                   "whole, with all its parts in one folder");
}

static tn_status open_dnn(const tn_host *host, void **out_self, tn_error *err)
{
    cuda_dnn *self = host->alloc(host->self, sizeof *self, _Alignof(cuda_dnn));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cudnn", "no memory for its table");
    memset(self, 0, sizeof *self);
    tn_status status = cuda_find_bind(host, &sought, symbols, SYMBOLS, self, err);
    if (status == TN_UNAVAILABLE && !cuda_find_bind(host, &early, symbols, SYMBOLS, self, NULL))
        status = TN_OK;
    else if (status == TN_UNAVAILABLE)
        status = report_missing(host, err);
    if (!status)
        status = check_open(self, err);
    if (status) {
        host->release(host->self, self);
        return status;
    }
    *out_self = self;
    return TN_OK;
}

static tn_status version_of(void *any, int64_t *out_number, char *out_text, size_t size,
                            tn_error *err)
{
    const cuda_dnn *self = any;
    const size_t number = self->version();
    (void)err;
    *out_number = (int64_t)number;
    write_version(number, out_text, size);
    return TN_OK;
}

static tn_status find_library(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    return cuda_find_look(host, &sought, out_path, size, err);
}

const tn_library_row cuda_dnn_row = {
    .struct_size = sizeof cuda_dnn_row,
    .name = "cudnn",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's cuDNN 9 (pip install nvidia-cudnn-cu13)",
    .open = open_dnn,
    .version = version_of,
    .look = find_library,
};

/* The library's message has many lines, one for each engine or step; the first has the cause: "Warning: ...;
 * Reason: WORDS at: EXPRESSION". */
void dnn_said(const cuda_dnn *self, char *out, size_t size)
{
    static const char reason[] = "Reason: ", place[] = " at: ";
    char text[1024] = "";
    self->last_error(text, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    char *first = strstr(text, reason);
    first = first ? first + strlen(reason) : text;
    first[strcspn(first, "\r\n")] = '\0';
    char *end = strstr(first, place);
    if (end && end > first)
        *end = '\0';
    tn_text_fit(out, size, first);
}

static tn_status fail_not_taken(dnn_status code, const char *call, const char *said, tn_error *err)
{
    return tn_fail(err, TN_UNSUPPORTED, code, call, "cuDNN does not take it%s%s",
                   said[0] ? ": " : "", said);
}

tn_status dnn_check(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err)
{
    enum { CATEGORY = 1000 };
    char said[192];
    if (code == DNN_SUCCESS)
        return TN_OK;
    dnn_said(self, said, sizeof said);
    const char *is = said[0] ? ": " : "";
    switch (code) {
    case DNN_NOT_INITIALIZED:
        return tn_fail(err, TN_UNAVAILABLE, code, call, "cuDNN does not start%s%s", is, said);
    case DNN_MIXED:
        return tn_fail(err, TN_UNAVAILABLE, code, call,
                       "parts of several versions of cuDNN are mixed here%s%s", is, said);
    case DNN_PART_MISSING:
    case DNN_PART_UNAVAILABLE:
        return tn_fail(err, TN_UNAVAILABLE, code, call,
                       "a part of cuDNN does not load: install it whole%s%s", is, said);
    case DNN_DRIVER_OLD:
        return tn_fail(err, TN_INCOMPATIBLE, code, call,
                       "the driver is too old for this cuDNN, which is made for CUDA %lu%s%s",
                       (unsigned long)self->runtime_version() / CATEGORY, is, said);
    case DNN_NO_HOST_MEMORY:
    case DNN_NO_DEVICE_MEMORY:
        return tn_fail(err, TN_OUT_OF_MEMORY, code, call, "cuDNN has no memory for it%s%s", is,
                       said);
    default: break;
    }
    if (code / CATEGORY == DNN_NOT_SUPPORTED / CATEGORY)
        return fail_not_taken(code, call, said, err);
    return tn_fail(err, TN_INTERNAL, code, call, "cuDNN's result is %d%s%s", code, is, said);
}

tn_status dnn_check_plan(const cuda_dnn *self, dnn_status code, const char *call, tn_error *err)
{
    enum { CATEGORY = 1000, BAD_PARAMETER = 2 };
    char said[192];
    if (code / CATEGORY != BAD_PARAMETER)
        return dnn_check(self, code, call, err);
    dnn_said(self, said, sizeof said);
    return fail_not_taken(code, call, said, err);
}

/* A library for a later CUDA major version than the driver's does not start. */
static tn_status check_majors(const cuda_dnn *self, const cuda *platform, tn_error *err)
{
    enum { MAJOR = 1000 };
    const int32_t needs = (int32_t)self->runtime_version() / MAJOR;
    const int32_t has = platform->driver_version / MAJOR;
    if (needs <= has)
        return TN_OK;
    return tn_fail(err, TN_INCOMPATIBLE, needs, "cudnn",
                   "this cuDNN is made for CUDA %d and the driver is of CUDA %d: install the cuDNN "
                   "for CUDA %d, or a later driver",
                   (int)needs, (int)has, (int)has);
}

static tn_status make_handle(const cuda_dnn *self, const cuda_scope *scope, dnn_lease **out,
                             tn_error *err)
{
    const tn_host *host = scope->self->host;
    tn_status status = check_majors(self, scope->self, err);
    if (status)
        return status;
    dnn_lease *made = host->alloc(host->self, sizeof *made, _Alignof(dnn_lease));
    if (!made)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cudnn", "no memory for a handle");
    made->handle = NULL;
    made->life = atomic_load_explicit(&scope->device->life, memory_order_acquire);
    cuda_scope aside = {.self = scope->self, .device = scope->device};
    cuda_relax(&aside); /* it allocates, which a capture that includes this call must not see */
    status = dnn_check(self, self->create(&made->handle), "cudnnCreate", err);
    cuda_leave(&aside);
    status = cuda_blame(scope, status, "cudnnCreate", err);
    if (status)
        host->release(host->self, made);
    else
        *out = made;
    return status;
}

tn_status dnn_handle_take(cuda_dnn *self, const cuda_scope *scope, dnn_lease **out, tn_error *err)
{
    const tn_host *host = scope->self->host;
    const uint32_t life = atomic_load_explicit(&scope->device->life, memory_order_acquire);
    for (int i = 0; i < DNN_IDLE_MOST; i++) {
        dnn_lease *found = atomic_exchange(&self->idle[scope->device->index][i], NULL);
        if (found && found->life == life) {
            *out = found;
            return TN_OK;
        }
        if (found) /* destroyed when its context was reset */
            host->release(host->self, found);
    }
    return make_handle(self, scope, out, err);
}

void dnn_handle_give(cuda_dnn *self, const cuda_scope *scope, dnn_lease *lease)
{
    const tn_host *host = scope->self->host;
    for (int i = 0; i < DNN_IDLE_MOST; i++) {
        dnn_lease *none = NULL;
        if (atomic_compare_exchange_strong(&self->idle[scope->device->index][i], &none, lease))
            return;
    }
    (void)self->destroy(lease->handle);
    host->release(host->self, lease);
}
