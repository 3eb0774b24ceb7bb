#include "scratch.h"

#include "base/alloc.h"
#include "device/graph/graph.h"
#include "device/memory/memory.h"
#include "epoch.h"

/* Blocks grow by powers of two, so that a growing problem does not allocate at each size. */
enum { LEAST = 64 * 1024 };

static bool is_queued(const tn_stream *stream)
{
    return stream->device->offer && tni_row_has_streams(stream->device->offer->platform->row);
}

static void destroy_scratch(const tn_stream *stream, tni_scratch *scratch)
{
    tni_memory_release(stream->device, scratch->memory, scratch->epoch);
    tni_release(scratch);
}

/* Keeps the block while queued work may still use it; without queues frees it at once. */
static void keep_scratch(tn_stream *stream, tni_scratch *scratch)
{
    if (!is_queued(stream)) {
        destroy_scratch(stream, scratch);
        return;
    }
    scratch->next = atomic_load(&stream->left);
    while (!atomic_compare_exchange_weak(&stream->left, &scratch->next, scratch))
        ;
}

static uint64_t room_for(uint64_t bytes)
{
    uint64_t room = LEAST;
    while (room < bytes && room <= UINT64_MAX / 2)
        room *= 2;
    return room < bytes ? bytes : room;
}

static bool is_of_now(const tn_stream *stream, const tni_scratch *scratch)
{
    const tni_memory *memory = tni_memory_so_far(stream->device);
    return memory && atomic_load_explicit(&memory->epoch, memory_order_acquire) == scratch->epoch;
}

/* For a captured call: the stream's own memory could be freed or reused by the time the graph
 * runs. */
static tn_status alloc_captured(tn_stream *stream, const char *where, tni_scratch *to,
                                tn_error *err)
{
    tn_error said = {0};
    tni_call call;
    tn_status status = tni_device_open(stream->device, where, &call, err);
    if (status)
        return status;
    to->captured = true;
    return tni_device_result_check(&call, where,
                                   call.row->capture_alloc(call.self, call.device, stream->native,
                                                           to->bytes, &to->memory, &said),
                                   &said, err);
}

static void free_captured(const tn_stream *stream, tni_scratch *scratch)
{
    tni_call call;
    if (tni_device_open_to_return(stream->device, &call))
        call.row->capture_free(call.self, call.device, stream->native, scratch->memory);
    tni_release(scratch);
}

static tn_status alloc_scratch(tn_stream *stream, bool captured, const char *where, tni_scratch *to,
                               tn_error *err)
{
    return captured ? alloc_captured(stream, where, to, err)
                    : tni_memory_acquire(stream->device, to->bytes, "workspace", &to->memory,
                                         &to->epoch, err);
}

tn_status tni_scratch_acquire(tn_stream *stream, uint64_t bytes, const char *where,
                              tni_scratch **out, tn_error *err)
{
    const bool captured = tni_capture_is_on(stream);
    tni_scratch *found = captured ? NULL : atomic_exchange(&stream->scratch, NULL);
    if (found && found->bytes >= bytes && is_of_now(stream, found)) {
        *out = found;
        return TN_OK;
    }
    if (found)
        keep_scratch(stream, found);
    tni_scratch *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return tni_no_memory(err, where, "scratch memory");
    made->bytes = captured ? bytes : room_for(bytes);
    tn_status status = alloc_scratch(stream, captured, where, made, err);
    if (status)
        tni_release(made);
    else
        *out = made;
    return status;
}

void tni_scratch_release(tn_stream *stream, tni_scratch *scratch)
{
    if (scratch->captured) {
        free_captured(stream, scratch);
        return;
    }
    tni_scratch *other = atomic_exchange(&stream->scratch, scratch);
    if (other)
        keep_scratch(stream, other);
}

/* A captured stream cannot be waited for: its memory is passed on to the device's default
 * stream. */
static void pass_on(tn_stream *stream, tni_scratch *idle, tni_scratch *left)
{
    if (idle)
        keep_scratch(stream->device->standard, idle);
    while (left) {
        tni_scratch *next = left->next;
        keep_scratch(stream->device->standard, left);
        left = next;
    }
}

void tni_scratch_end(tn_stream *stream)
{
    tni_scratch *idle = atomic_exchange(&stream->scratch, NULL);
    tni_scratch *left = atomic_exchange(&stream->left, NULL);
    tn_error said; /* errors of work on a stream that is being destroyed are ignored */
    tni_call call;
    if ((idle || left) && tni_capture_is_on(stream)) {
        pass_on(stream, idle, left);
        return;
    }
    if ((idle || left) && is_queued(stream) && tni_device_open_to_return(stream->device, &call) &&
        tni_stream_epoch(stream) == call.epoch)
        (void)call.row->stream_synchronize(call.self, call.device, stream->native, &said);
    if (idle)
        destroy_scratch(stream, idle);
    while (left) {
        tni_scratch *next = left->next;
        destroy_scratch(stream, left);
        left = next;
    }
}
