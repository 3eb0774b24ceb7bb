/* Filling a tensor from host memory and reading it back, on any device and with any strides. */
#include "tensor.h"

#include "device/graph/graph.h"
#include "tenon/stream.h"

#include <inttypes.h>
#include <stdlib.h>

/* One call. */
typedef struct transfer {
    const char *where;
    const tn_tensor *tensor;
    tn_device *device;
    tn_stream *stream;
    int64_t size; /* of one element */
    bool writes;  /* to the tensor  */
} transfer;

/* A tensor in host memory with the shape of another one. */
typedef struct host_tensor {
    tn_tensor tensor;
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int64_t strides[TN_TENSOR_NDIM_MAX];
} host_tensor;

static void plan_walk(const transfer *t, const tn_tensor *tensor, const tn_tensor *host,
                      tni_walk *out)
{
    tni_walk_plan(t->writes ? host : tensor, t->writes ? tensor : host, t->size, out);
}

/* Whether one copy of rows can go along a dimension. */
static bool is_pitch(const tni_walk *walk, int32_t dimension)
{
    return walk->to_step[dimension] >= walk->bytes && walk->from_step[dimension] >= walk->bytes;
}

/* Puts the longest dimension that one copy of rows can go along last. Returns the number of copies. */
static int64_t count_copies(tni_walk *walk)
{
    const int32_t last = walk->ndim - 1;
    int32_t rows = -1;
    int64_t copies = 1;
    for (int32_t i = 0; i < walk->ndim; i++) {
        copies *= walk->count[i];
        if (is_pitch(walk, i) && (rows < 0 || walk->count[i] > walk->count[rows]))
            rows = i;
    }
    if (rows < 0)
        return copies;
    const int64_t count = walk->count[rows], to = walk->to_step[rows], from = walk->from_step[rows];
    walk->count[rows] = walk->count[last];
    walk->to_step[rows] = walk->to_step[last];
    walk->from_step[rows] = walk->from_step[last];
    walk->count[last] = count;
    walk->to_step[last] = to;
    walk->from_step[last] = from;
    return copies / count;
}

static tn_status queue_rows(const transfer *t, const tni_walk *walk, bool many, char *to,
                            const char *from, tn_error *err)
{
    const int32_t last = walk->ndim - 1;
    const tn_memory_copy_args args = {
        .struct_size = sizeof args,
        .to_device = t->writes ? t->device : NULL,
        .to = to,
        .from_device = t->writes ? NULL : t->device,
        .from = from,
        .bytes = (uint64_t)walk->bytes,
        .rows = many ? (uint64_t)walk->count[last] : 1,
        .to_pitch = many ? (uint64_t)walk->to_step[last] : 0,
        .from_pitch = many ? (uint64_t)walk->from_step[last] : 0,
        .stream = t->stream,
    };
    return tn_memory_copy(&args, err);
}

/* Queues the copies of a walk from dimension `dimension` on. */
static tn_status queue_walk(const transfer *t, const tni_walk *walk, int32_t dimension, char *to,
                            const char *from, tn_error *err)
{
    const int32_t left = walk->ndim - dimension;
    const bool many = left == 1 && is_pitch(walk, dimension);
    tn_status status = TN_OK;
    if (left == 0 || many)
        return queue_rows(t, walk, many, to, from, err);
    for (int64_t i = 0; i < walk->count[dimension] && !status; i++)
        status = queue_walk(t, walk, dimension + 1, to + i * walk->to_step[dimension],
                            from + i * walk->from_step[dimension], err);
    return status;
}

/* Queues the copies and waits for them, also after a failure: then earlier copies may still use the
 * host memory. Sets *out_done to false if waiting failed. */
static tn_status run_walk(const transfer *t, const tni_walk *walk, bool *out_done, tn_error *err)
{
    tn_status status = queue_walk(t, walk, 0, walk->to, walk->from, err);
    const tn_status waited = tn_stream_synchronize(t->stream, status ? NULL : err);
    *out_done = waited == TN_OK;
    return status ? status : waited;
}

/* Gives `out` the tensor's shape, and strides with the same order and signs but without gaps.
 * Elements that share an address do so in `out`. Returns the number of bytes that it needs. */
static int64_t order_like(const tn_tensor *tensor, int64_t size, host_tensor *out)
{
    int32_t order[TN_TENSOR_NDIM_MAX], ndim = 0;
    int64_t step = 1, first = 0;
    *out = (host_tensor){
        .tensor = {.device_type = TN_DLPACK_CPU, .ndim = tensor->ndim, .dtype = tensor->dtype}};
    out->tensor.shape = out->shape;
    out->tensor.strides = out->strides;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        int32_t at = ndim;
        out->shape[i] = tensor->shape[i];
        if (tensor->shape[i] == 1 || tensor->strides[i] == 0)
            continue;
        for (; at > 0 && llabs(tensor->strides[order[at - 1]]) > llabs(tensor->strides[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        ndim++;
    }
    for (int32_t k = 0; k < ndim; k++) {
        const int32_t i = order[k];
        out->strides[i] = tensor->strides[i] < 0 ? -step : step;
        first += tensor->strides[i] < 0 ? (tensor->shape[i] - 1) * step : 0;
        step *= tensor->shape[i];
    }
    out->tensor.byte_offset = (uint64_t)(first * size);
    return step * size;
}

/* The walk between the device's tensor and the staging memory, without the dimensions in which
 * elements share an address. */
static void plan_staged_walk(const transfer *t, const host_tensor *staging, tni_walk *out)
{
    int64_t shape[TN_TENSOR_NDIM_MAX];
    tn_tensor device_side = *t->tensor, host_side = staging->tensor;
    for (int32_t i = 0; i < device_side.ndim; i++)
        shape[i] = staging->strides[i] == 0 ? 1 : staging->shape[i];
    device_side.shape = host_side.shape = shape;
    plan_walk(t, &device_side, &host_side, out);
}

/* Copies within host memory between the staging memory and the caller's. */
static void copy_staging(const transfer *t, const tn_tensor *staging, const tn_tensor *host)
{
    tni_walk walk;
    tni_walk_plan(t->writes ? host : staging, t->writes ? staging : host, t->size, &walk);
    tni_walk_copy(&walk);
}

/* Copies through host memory in which the elements have the order that they have on the device, so
 * that they are contiguous on both sides where possible. */
static tn_status copy_staged(const transfer *t, const tn_tensor *host, tn_error *err)
{
    host_tensor staging;
    tni_walk walk;
    bool done = true;
    const int64_t bytes = order_like(t->tensor, t->size, &staging);
    tn_status status =
        tn_memory_host_alloc(t->device, (uint64_t)bytes, t->where, &staging.tensor.data, err);
    if (status)
        return status;
    plan_staged_walk(t, &staging, &walk);
    (void)count_copies(&walk);
    if (t->writes)
        copy_staging(t, &staging.tensor, host);
    status = run_walk(t, &walk, &done, err);
    if (!status && !t->writes)
        copy_staging(t, &staging.tensor, host);
    if (done) /* else it is kept until the device's memory is destroyed */
        tn_memory_host_free(t->device, staging.tensor.data);
    return status;
}

static tn_status copy_device(const transfer *t, const tn_tensor *host, tn_error *err)
{
    tni_walk direct;
    bool done;
    plan_walk(t, t->tensor, host, &direct);
    return count_copies(&direct) == 1 ? run_walk(t, &direct, &done, err)
                                      : copy_staged(t, host, err);
}

static tn_status check_transfer(transfer *t, const void *host, uint64_t bytes, tni_layout *out,
                                tn_error *err)
{
    tn_status status = tni_tensor_measure(t->tensor, t->where, "tensor", out, err);
    if (status)
        return status;
    if (bytes != (uint64_t)out->bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, t->where,
                       "bytes: expected %" PRId64 ", the size of the tensor, got %" PRIu64,
                       out->bytes, bytes);
    if (!host && bytes > 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, t->where, "the host memory is NULL");
    if (t->writes)
        status = tni_tensor_writable(t->tensor, t->where, "tensor", err);
    if (!status && t->writes)
        status = tni_tensor_separate(t->tensor, t->where, "tensor", err);
    if (!status)
        status = tni_tensor_device_of(t->tensor, t->where, &t->device, err);
    t->size = out->size;
    return status;
}

static tn_status copy_host(transfer *t, void *host, uint64_t bytes, tn_error *err)
{
    tni_layout layout;
    tn_status status = check_transfer(t, host, bytes, &layout, err);
    if (status || layout.elements == 0)
        return status;
    const tn_tensor memory = {.data = host,
                              .device_type = TN_DLPACK_CPU,
                              .ndim = t->tensor->ndim,
                              .dtype = t->tensor->dtype,
                              .shape = t->tensor->shape};
    if (tni_memory_is_host(t->device))
        return tn_copy(NULL, t->writes ? &memory : t->tensor, t->writes ? t->tensor : &memory, err);
    t->stream = tn_stream_current(t->device);
    status = tni_capture_reject(t->stream, t->where, "the host would wait for this copy", err);
    return status ? status : copy_device(t, &memory, err);
}

tn_status tn_tensor_write(const tn_tensor *tensor, const void *from, uint64_t bytes, tn_error *err)
{
    transfer t = {.where = "tn_tensor_write", .tensor = tensor, .writes = true};
    return copy_host(&t, (void *)(uintptr_t)from, bytes, err);
}

tn_status tn_tensor_read(const tn_tensor *tensor, void *to, uint64_t bytes, tn_error *err)
{
    transfer t = {.where = "tn_tensor_read", .tensor = tensor};
    return copy_host(&t, to, bytes, err);
}
