/* DLPack export: a tensor is handed to another library, which deletes it at any time. */
#include "tensor.h"

#include "base/alloc.h"
#include "device/stream/stream.h"

/* The exported block. The forms must be first: their address is all that the consumer has. */
typedef struct given {
    union {
        tn_dlpack_versioned versioned;
        tn_dlpack_managed legacy;
    } form;
    tni_owner *owner; /* held; NULL: the program owns the data and must keep it alive */
    int64_t dims[];   /* shape and strides */
} given;

static void end_export(given *g)
{
    tni_owner_release(g->owner);
    tni_release(g);
}

static void delete_versioned(tn_dlpack_versioned *self)
{
    end_export((given *)self);
}

static void delete_legacy(tn_dlpack_managed *self)
{
    end_export((given *)self);
}

/* Whether data is a vendor's handle, to which no offset can be added. */
static bool is_handle(int32_t device_type)
{
    return device_type == TN_DLPACK_OPENCL || device_type == TN_DLPACK_VULKAN ||
           device_type == TN_DLPACK_METAL || device_type == TN_DLPACK_WEBGPU;
}

/* Always sets strides, and avoids an offset where possible: some consumers ignore them. */
static void describe_export(const tn_tensor *tensor, int64_t *dims, tn_dlpack_tensor *out)
{
    int32_t ndim = tensor->ndim;
    bool offset = is_handle(tensor->device_type);
    *out = (tn_dlpack_tensor){
        .data = offset ? tensor->data : tni_tensor_first(tensor),
        .device_type = tensor->device_type,
        .device_id = tensor->device_id,
        .ndim = ndim,
        .dtype = tensor->dtype,
        .shape = dims,
        .strides = dims + ndim,
        .byte_offset = offset ? tensor->byte_offset : 0,
    };
    if (ndim == 0)
        return;
    memcpy(out->shape, tensor->shape, (size_t)ndim * sizeof *dims);
    if (tensor->strides)
        memcpy(out->strides, tensor->strides, (size_t)ndim * sizeof *dims);
    else
        tni_strides_dense(tensor->shape, ndim, out->strides);
}

/* The stream for the consumer's handle. The caller must release it. */
static tn_status find_stream(tn_device *device, int64_t consumer, tn_stream **out, tn_error *err)
{
    if (consumer == 0) {
        *out = tn_stream_default(device);
        return TN_OK;
    }
    return tn_stream_wrap(device, (void *)(uintptr_t)consumer, out, err);
}

/* Makes the consumer's stream wait for the work queued on the calling thread's. */
static tn_status order_streams(const tn_tensor *tensor, int64_t consumer, const char *where,
                               tn_error *err)
{
    tn_device *device;
    tn_stream *theirs = NULL;
    tni_call call;
    if (consumer == -1)
        return TN_OK;
    if (consumer < -1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "consumer: expected -1 or the handle of a stream, got %lld",
                       (long long)consumer);
    tn_status status = tni_tensor_device_of(tensor, where, &device, err);
    if (!status)
        status = tni_device_open(device, where, &call, err);
    if (status || !tni_row_has_streams(call.row) ||
        (uintptr_t)tn_stream_current(device)->native == (uintptr_t)consumer)
        return status;
    status = find_stream(device, consumer, &theirs, err);
    if (!status)
        status = tn_stream_wait_stream(theirs, tn_stream_current(device), err);
    tn_stream_release(theirs);
    return status;
}

/* Allocates a block for the tensor and retains its owner. On failure returns NULL, with the reason
 * in *out_status. */
static given *export_tensor(const tn_tensor *tensor, int64_t consumer, const char *where,
                            tn_status *out_status, tn_error *err)
{
    tni_layout layout;
    *out_status = tni_tensor_measure(tensor, where, "tensor", &layout, err);
    if (*out_status)
        return NULL;
    given *g = tni_alloc(sizeof *g + 2 * (size_t)tensor->ndim * sizeof g->dims[0]);
    if (!g) {
        *out_status = tni_no_memory(err, where, "a managed tensor");
        return NULL;
    }
    *out_status = order_streams(tensor, consumer, where, err);
    if (*out_status) {
        tni_release(g);
        return NULL;
    }
    g->owner = tensor->owner;
    tni_owner_retain(g->owner);
    return g;
}

tn_status tn_dlpack_export(const tn_tensor *tensor, int64_t consumer, tn_dlpack_versioned **out,
                           tn_error *err)
{
    static const char where[] = "tn_dlpack_export";
    tn_status status;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    given *g = export_tensor(tensor, consumer, where, &status, err);
    if (!g)
        return status;
    g->form.versioned = (tn_dlpack_versioned){
        .major = TN_DLPACK_VERSION_MAJOR,
        .minor = TN_DLPACK_VERSION_MINOR,
        .manager = g,
        .deleter = delete_versioned,
        .flags = tensor->flags & (TN_TENSOR_READ_ONLY | TN_TENSOR_COPIED),
    };
    describe_export(tensor, g->dims, &g->form.versioned.tensor);
    *out = &g->form.versioned;
    return TN_OK;
}

tn_status tn_dlpack_export_legacy(const tn_tensor *tensor, int64_t consumer,
                                  tn_dlpack_managed **out, tn_error *err)
{
    static const char where[] = "tn_dlpack_export_legacy";
    tn_status status;
    if (!out || !tensor)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", out ? "tensor" : "out");
    if (tensor->flags & TN_TENSOR_READ_ONLY)
        return tn_fail(err, TN_REFUSED, 0, where,
                       "the tensor is read-only, which the unversioned form cannot express; "
                       "use tn_dlpack_export, or export a copy");
    given *g = export_tensor(tensor, consumer, where, &status, err);
    if (!g)
        return status;
    g->form.legacy = (tn_dlpack_managed){.manager = g, .deleter = delete_legacy};
    describe_export(tensor, g->dims, &g->form.legacy.tensor);
    *out = &g->form.legacy;
    return TN_OK;
}
