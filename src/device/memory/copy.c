/* Copies between any two devices. */
#include "base/alloc.h"
#include "base/checked.h"
#include "device/graph/graph.h"
#include "memory.h"

static const char where[] = "tn_memory_copy";

/* Whether the last byte of the last row is within the address space. */
static bool fits_address_space(const tni_side *side, uint64_t bytes, uint64_t rows)
{
    size_t span;
    return bytes <= SIZE_MAX && rows <= SIZE_MAX && side->pitch <= SIZE_MAX &&
           tni_mul_size((size_t)rows - 1, (size_t)side->pitch, &span) &&
           tni_add_size(span, (size_t)bytes, &span) &&
           span - 1 <= UINTPTR_MAX - (uintptr_t)side->at;
}

static tn_status check_side(const tni_side *side, const char *name, uint64_t bytes, uint64_t rows,
                            tn_error *err)
{
    if (!side->at)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", name);
    if (side->pitch < bytes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s_pitch is %llu, less than a row of %llu bytes", name,
                       (unsigned long long)side->pitch, (unsigned long long)bytes);
    if (!fits_address_space(side, bytes, rows))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "%llu rows of %llu bytes with a pitch of %llu exceed the address space from %s",
            (unsigned long long)rows, (unsigned long long)bytes, (unsigned long long)side->pitch,
            name);
    return TN_OK;
}

/* `bytes` of *out is 0 when there is nothing to copy. Contiguous rows are merged into one. The
 * `call` of each side is not initialized, since clearing it costs more than a small copy; open_side
 * fills it in. */
static tn_status read_args(const tn_memory_copy_args *args, tni_copy *out, tn_error *err)
{
    if (!args || !TN_HAS(args, tn_memory_copy_args, stream))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where, "%s",
            args ? "args->struct_size is too small; make args with TN_ARGS(memory_copy, ...)"
                 : "args is NULL");
    uint64_t bytes = args->bytes, rows = args->rows ? args->rows : 1;
    bool one = rows == 1;
    out->to.device = args->to_device;
    out->to.at = args->to;
    out->to.pitch = one || !args->to_pitch ? bytes : args->to_pitch;
    out->from.device = args->from_device;
    out->from.at = (char *)(uintptr_t)args->from;
    out->from.pitch = one || !args->from_pitch ? bytes : args->from_pitch;
    out->bytes = bytes;
    out->rows = rows;
    if (bytes == 0)
        return TN_OK;
    tn_status status = check_side(&out->to, "to", bytes, rows, err);
    if (!status)
        status = check_side(&out->from, "from", bytes, rows, err);
    if (!status && !one && out->to.pitch == bytes && out->from.pitch == bytes) {
        out->bytes = out->to.pitch = out->from.pitch = rows * bytes;
        out->rows = 1;
    }
    return status;
}

/* Distance from the first byte of a side to its last. */
static uintptr_t reach(const tni_copy *copy, const tni_side *side)
{
    return (uintptr_t)((copy->rows - 1) * side->pitch + copy->bytes - 1);
}

/* Whether a row of one side and a row of the other share a byte. If the address ranges of the sides
 * overlap, walks the rows of both in address order. */
static bool sides_overlap(const tni_copy *copy)
{
    uintptr_t to = (uintptr_t)copy->to.at, from = (uintptr_t)copy->from.at;
    uint64_t to_left = copy->rows, from_left = copy->rows;
    if (to < from ? from - to > reach(copy, &copy->to) : to - from > reach(copy, &copy->from))
        return false;
    while (to_left > 0 && from_left > 0) {
        if (to < from ? from - to < copy->bytes : to - from < copy->bytes)
            return true;
        if (to < from) {
            to += (uintptr_t)copy->to.pitch;
            to_left--;
        } else {
            from += (uintptr_t)copy->from.pitch;
            from_left--;
        }
    }
    return false;
}

static void copy_rows(const tni_copy *copy)
{
    char *to = copy->to.at;
    const char *from = copy->from.at;
    for (uint64_t row = 0; row < copy->rows; row++)
        memcpy(to + row * copy->to.pitch, from + row * copy->from.pitch, (size_t)copy->bytes);
}

/* The stream that the copy uses on `device`: `named` if it belongs to that device, else the current
 * one. */
static tn_status stream_on(tn_device *device, tn_stream *named, tn_stream **out, tn_error *err)
{
    return tni_stream_for(named && named->device == device ? named : NULL, device, where, out, err);
}

/* The same, for a copy that the host waits for. */
static tn_status stream_to_wait_on(tn_device *device, tn_stream *named, tn_stream **out,
                                   tn_error *err)
{
    tn_status status = stream_on(device, named, out, err);
    return status ? status
                  : tni_capture_reject(*out, where, "the host would wait for this copy", err);
}

/* Copies between a device and host memory. If the copy belongs to the stream of a device that
 * computes in host memory (that stream is the calling thread), waits until the copy is complete. */
static tn_status copy_host(const tni_copy *copy, const tn_memory_copy_args *args, tn_error *err)
{
    tn_device *device = copy->to.device ? copy->to.device : copy->from.device;
    tn_stream *stream = NULL;
    const tn_device *owner = args->stream      ? args->stream->device
                             : args->to_device ? args->to_device
                                               : args->from_device;
    tn_status status = owner == device ? stream_on(device, args->stream, &stream, err)
                                       : stream_to_wait_on(device, args->stream, &stream, err);
    if (!status)
        status = tni_copy_call(copy, stream, err);
    if (!status && owner != device)
        status = tn_stream_synchronize(stream, err);
    return status;
}

/* Copies between devices of one platform. For the platform, a NULL stream means the default stream
 * of the destination device. So if the named stream is the source's default stream, the host waits
 * for it first. */
static tn_status copy_within(const tni_copy *copy, tn_stream *named, tn_error *err)
{
    tn_stream *stream = NULL;
    bool far = named && named->device != copy->to.device;
    if (far && named->native)
        return tni_copy_call(copy, named, err);
    tn_status status = far ? stream_to_wait_on(copy->to.device, named, &stream, err)
                           : stream_on(copy->to.device, named, &stream, err);
    if (!status && far)
        status = tn_stream_synchronize(named, err);
    if (!status)
        status = tni_copy_call(copy, stream, err);
    if (!status && far)
        status = tn_stream_synchronize(stream, err);
    return status;
}

static tn_status copy_devices(const tni_copy *copy, tn_stream *named, tn_error *err)
{
    tn_stream *to = NULL, *from = NULL;
    tn_error direct;
    if (copy->to.device->offer == copy->from.device->offer) {
        tn_status status = copy_within(copy, named, &direct);
        if (!status)
            return TN_OK;
        if (status != TN_UNSUPPORTED || copy->to.device == copy->from.device) {
            if (err)
                *err = direct;
            return status;
        }
    }
    tn_status status = stream_to_wait_on(copy->to.device, named, &to, err);
    if (!status)
        status = stream_to_wait_on(copy->from.device, named, &from, err);
    return status ? status : tni_copy_staged(copy, to, from, where, err);
}

/* Graph step: repeats the copy with the recorded addresses. */
static tn_status run_step(void *object, tn_stream *stream, tn_error *err)
{
    const tni_copy *copy = object;
    if (copy->to.device || copy->from.device)
        return tni_copy_call(copy, stream, err);
    copy_rows(copy);
    return TN_OK;
}

static void write_step(const void *object, tni_buffer *out)
{
    const tni_copy *copy = object;
    tni_buffer_format(out, "copy of %llu bytes from %s to %s",
                      (unsigned long long)copy->bytes * copy->rows,
                      copy->from.device ? copy->from.device->id : "the host",
                      copy->to.device ? copy->to.device->id : "the host");
}

static tn_status record_copy(const tni_copy *copy, tn_stream *stream, tn_error *err)
{
    tn_graph *graph = tni_graph_of(stream);
    tn_device *to = copy->to.device, *from = copy->from.device;
    tn_status status = tni_graph_own(stream, where, err);
    if (status)
        return status;
    if ((to && to != stream->device) || (from && from != stream->device))
        return tni_graph_reject(stream, where, "it cannot contain a copy to or from another device",
                                err);
    tni_copy *kept = tni_alloc(sizeof *kept);
    if (!kept)
        return tni_no_memory(err, where, "a step of a graph");
    *kept = *copy;
    status = graph->native ? run_step(kept, stream, err) : TN_OK;
    if (status) {
        tni_release(kept);
        return status;
    }
    return tni_graph_add(graph, &(tni_graph_step){kept, run_step, write_step, tni_release}, where,
                         err);
}

/* Returns the stream that the copy belongs to if it is being recorded, else NULL. */
static tn_stream *find_recorded_stream(const tn_memory_copy_args *args)
{
    const tn_device *device = args->to_device ? args->to_device : args->from_device;
    tn_stream *stream = args->stream ? args->stream : tn_stream_current(device);
    return stream && tni_graph_of(stream) ? stream : NULL;
}

static tn_status open_side(tni_side *side, tn_error *err)
{
    return side->device ? tni_device_open(side->device, where, &side->call, err) : TN_OK;
}

/* A named stream must belong to one of the two devices, and to that device's current epoch. */
static tn_status check_stream(const tn_memory_copy_args *args, tn_error *err)
{
    tn_stream *same = args->stream;
    tn_device *of = same ? same->device : NULL;
    if (!of)
        return TN_OK;
    if (of == args->to_device || of == args->from_device)
        return tni_stream_for_step(same, of, where, &same, err);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "the stream belongs to %s, but the copy is from %s to %s", of->id,
                   args->from_device ? args->from_device->id : "the host",
                   args->to_device ? args->to_device->id : "the host");
}

tn_status tn_memory_copy(const tn_memory_copy_args *args, tn_error *err)
{
    tni_copy copy;
    tn_status status = read_args(args, &copy, err);
    if (status || copy.bytes == 0)
        return status;
    status = check_stream(args, err);
    if (!status)
        status = open_side(&copy.to, err);
    if (!status && copy.from.device == copy.to.device)
        copy.from.call = copy.to.call;
    else if (!status)
        status = open_side(&copy.from, err);
    if (status)
        return status;
    if (tni_memory_is_host(copy.to.device))
        copy.to.device = NULL;
    if (tni_memory_is_host(copy.from.device))
        copy.from.device = NULL;
    if (copy.to.device == copy.from.device && sides_overlap(&copy))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "source and destination overlap, on %s",
                       copy.to.device ? copy.to.device->id : "the host");
    tn_stream *recording = tni_graph_any() ? find_recorded_stream(args) : NULL;
    if (recording)
        return record_copy(&copy, recording, err);
    if (copy.to.device && copy.from.device)
        return copy_devices(&copy, args->stream, err);
    if (copy.to.device || copy.from.device)
        return copy_host(&copy, args, err);
    copy_rows(&copy);
    return TN_OK;
}
