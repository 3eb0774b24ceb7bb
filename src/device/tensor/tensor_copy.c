/* Copies between tensors: one memory copy if the layouts allow it, else element by element in host
 * memory; refused otherwise. */
#include "tensor.h"

#include "device/stream/stream.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char where[] = "tn_copy";

static tn_status check_same(const tn_tensor *from, const tn_tensor *to, tn_error *err)
{
    if (from->dtype != to->dtype)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "to: expected %s, the dtype of from, got %s", tn_dtype_name(from->dtype),
                       tn_dtype_name(to->dtype));
    if (from->ndim != to->ndim)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "to: expected %d dimensions, as many as from, got %d", (int)from->ndim,
                       (int)to->ndim);
    for (int32_t i = 0; i < from->ndim; i++) {
        if (from->shape[i] != to->shape[i])
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "to: dimension %d: expected %" PRId64 ", the size of from, got %" PRId64,
                           (int)i, from->shape[i], to->shape[i]);
    }
    return TN_OK;
}

/* Both sides of a copy, and their checked properties. */
typedef struct sides {
    const tn_tensor *from;
    const tn_tensor *to;
    tn_device *from_device;
    tn_device *to_device;
    int64_t elements;
    int64_t size;
} sides;

static tn_status check_sides(sides *s, tn_error *err)
{
    tni_layout from, to;
    tn_status status = tni_tensor_measure(s->from, where, "from", &from, err);
    if (!status)
        status = tni_tensor_measure(s->to, where, "to", &to, err);
    if (!status)
        status = check_same(s->from, s->to, err);
    if (!status)
        status = tni_tensor_writable(s->to, where, "to", err);
    if (!status)
        status = tni_tensor_separate(s->to, where, "to", err);
    if (!status)
        status = tni_tensor_device_of(s->from, where, &s->from_device, err);
    if (!status)
        status = tni_tensor_device_of(s->to, where, &s->to_device, err);
    if (status)
        return status;
    s->elements = from.elements;
    s->size = from.size;
    return TN_OK;
}

static bool share_memory(const sides *s)
{
    return s->from_device == s->to_device ||
           (tni_memory_is_host(s->from_device) && tni_memory_is_host(s->to_device));
}

static tn_status copy_rows(tn_stream *stream, const sides *s, const tni_walk *walk, tn_error *err)
{
    const bool many = walk->ndim > 0;
    const tn_memory_copy_args args = {
        .struct_size = sizeof args,
        .to_device = s->to_device,
        .to = walk->to,
        .from_device = s->from_device,
        .from = walk->from,
        .bytes = (uint64_t)walk->bytes,
        .rows = many ? (uint64_t)walk->count[0] : 1,
        .to_pitch = many ? (uint64_t)walk->to_step[0] : 0,
        .from_pitch = many ? (uint64_t)walk->from_step[0] : 0,
        .stream = stream,
    };
    return tn_memory_copy(&args, err);
}

static bool is_rows(const tni_walk *walk)
{
    return walk->ndim == 0 || (walk->ndim == 1 && walk->to_step[0] >= walk->bytes &&
                               walk->from_step[0] >= walk->bytes);
}

static tn_status copy_in_host(tn_stream *stream, const sides *s, const tni_walk *walk,
                              tn_error *err)
{
    tn_status status = tni_stream_for(stream, s->to_device, where, &stream, err);
    if (!status)
        tni_walk_copy(walk);
    return status;
}

tn_status tn_copy(tn_stream *stream, const tn_tensor *from, const tn_tensor *to, tn_error *err)
{
    sides s = {.from = from, .to = to};
    tni_walk walk;
    tn_status status = check_sides(&s, err);
    if (status || s.elements == 0)
        return status;
    tni_walk_plan(from, to, s.size, &walk);
    if (share_memory(&s) && tni_walk_overlaps(&walk))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "from and to overlap in the memory of %s; copy through a third tensor",
                       s.to_device->id);
    if (walk.ndim > 0 && tni_memory_is_host(s.from_device) && tni_memory_is_host(s.to_device))
        return copy_in_host(stream, &s, &walk, err);
    if (is_rows(&walk))
        return copy_rows(stream, &s, &walk, err);
    return tn_fail(
        err, TN_UNSUPPORTED, 0, where,
        "from %s to %s, these strides cannot be copied by rows: copy through a dense tensor "
        "in host memory, or use the same order of dimensions for both",
        s.from_device->id, s.to_device->id);
}
