#include "scratch.h"

#include "base/alloc.h"
#include "device/memory/memory.h"
#include "life.h"

/* Blocks grow by powers of two, so that a growing problem does not ask for each size. */
enum { LEAST = 64 * 1024 };

static bool is_queued(const tn_stream *stream)
{
    return stream->device->offer && tni_row_has_streams(stream->device->offer->platform->row);
}

static void destroy(const tn_stream *stream, tni_scratch *scratch)
{
    tni_memory_give(stream->device, scratch->memory, scratch->life);
    tni_release(scratch);
}

/* Queued work may still use it; else it goes at once. */
static void leave(tn_stream *stream, tni_scratch *scratch)
{
    if (!is_queued(stream)) {
        destroy(stream, scratch);
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
    return memory && atomic_load_explicit(&memory->life, memory_order_acquire) == scratch->life;
}

tn_status tni_scratch_take(tn_stream *stream, uint64_t bytes, const char *where, tni_scratch **out,
                           tn_error *err)
{
    tni_scratch *found = atomic_exchange(&stream->scratch, NULL);
    if (found && found->bytes >= bytes && is_of_now(stream, found)) {
        *out = found;
        return TN_OK;
    }
    if (found)
        leave(stream, found);
    tni_scratch *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return tni_no_memory(err, where, "scratch memory");
    made->bytes = room_for(bytes);
    tn_status status =
        tni_memory_take(stream->device, made->bytes, "workspace", &made->memory, &made->life, err);
    if (status)
        tni_release(made);
    else
        *out = made;
    return status;
}

void tni_scratch_give(tn_stream *stream, tni_scratch *scratch)
{
    tni_scratch *other = atomic_exchange(&stream->scratch, scratch);
    if (other)
        leave(stream, other);
}

void tni_scratch_end(tn_stream *stream)
{
    tni_scratch *idle = atomic_exchange(&stream->scratch, NULL);
    tni_scratch *left = atomic_exchange(&stream->left, NULL);
    tn_error said; /* what runs on a stream that ends concerns nobody any more */
    tni_call call;
    if ((idle || left) && is_queued(stream) && tni_device_open_to_return(stream->device, &call) &&
        tni_life_of_stream(stream) == call.life)
        (void)call.row->stream_synchronize(call.self, call.device, stream->native, &said);
    if (idle)
        destroy(stream, idle);
    while (left) {
        tni_scratch *next = left->next;
        destroy(stream, left);
        left = next;
    }
}
