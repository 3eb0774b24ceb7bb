/* Copies through host memory, where no platform can copy directly. */
#include "base/alloc.h"
#include "device/stream/stream.h"
#include "memory.h"

/* Double buffering: one half is copied out while the next piece is copied into the other. */
enum { HALF = TNI_STAGE_BYTES / 2 };

/* A reset released all memory pinned before it. */
static bool is_gone(const tni_memory *memory, const tni_stage *stage)
{
    return stage->pinned && stage->epoch != atomic_load(&memory->epoch);
}

static void destroy_stage(const tni_memory *memory, tni_stage *stage, const tni_call *call)
{
    if (!stage->pinned)
        tni_release(stage->bytes);
    else if (call && !is_gone(memory, stage))
        call->row->host_free(call->self, call->device, stage->bytes);
    tni_release(stage);
}

/* Pinned memory, or NULL if the platform has none now. */
static char *alloc_pinned(const tni_call *call, const char *where)
{
    void *bytes = NULL;
    tn_error said = {0};
    if (!call->row->host_alloc)
        return NULL;
    tn_status status =
        call->row->host_alloc(call->self, call->device, TNI_STAGE_BYTES, &bytes, &said);
    return tni_device_result_check(call, where, status, &said, NULL) ? NULL : bytes;
}

static tni_stage *create_stage(const tni_memory *memory, const tni_call *call, const char *where)
{
    tni_stage *stage = tni_alloc(sizeof *stage);
    if (!stage)
        return NULL;
    stage->epoch = atomic_load(&memory->epoch);
    stage->bytes = alloc_pinned(call, where);
    stage->pinned = stage->bytes != NULL;
    if (is_gone(memory, stage))
        stage->pinned = false;
    if (!stage->pinned)
        stage->bytes = tni_alloc_aligned(TNI_STAGE_BYTES, TNI_ALIGNMENT);
    if (!stage->bytes) {
        tni_release(stage);
        return NULL;
    }
    return stage;
}

tni_stage *tni_stage_acquire(tn_device *device, const tni_call *call, const char *where)
{
    tni_memory *memory = tni_memory_of(device);
    if (!memory)
        return NULL;
    tni_stage *stage = atomic_exchange(&memory->stage, NULL);
    if (stage && !is_gone(memory, stage))
        return stage;
    if (stage)
        destroy_stage(memory, stage, NULL);
    return create_stage(memory, call, where);
}

void tni_stage_release(tn_device *device, tni_stage *stage)
{
    tni_call call;
    tni_stage *none = NULL;
    tni_memory *memory = tni_memory_so_far(device);
    bool usable = tni_device_open_to_return(device, &call);
    if (!atomic_compare_exchange_strong(&memory->stage, &none, stage))
        destroy_stage(memory, stage, usable ? &call : NULL);
    if (tni_offer_is_withdrawn(device->offer))
        tni_stage_trim(memory, usable ? &call : NULL);
}

void tni_stage_leave(tn_device *device, tni_stage *stage)
{
    tni_memory *memory = tni_memory_so_far(device);
    stage->next = atomic_load(&memory->left);
    while (!atomic_compare_exchange_weak(&memory->left, &stage->next, stage))
        ;
}

void tni_stage_trim(tni_memory *memory, const tni_call *call)
{
    tni_stage *stage = atomic_exchange(&memory->stage, NULL);
    if (stage)
        destroy_stage(memory, stage, call);
}

void tni_stage_end(tni_memory *memory, const tni_call *call)
{
    tni_stage_trim(memory, call);
    for (tni_stage *stage = atomic_exchange(&memory->left, NULL), *next; stage; stage = next) {
        next = stage->next;
        destroy_stage(memory, stage, call);
    }
}

/* Progress of a copy: whole rows if a row fits a half, else parts of a row. */
typedef struct place {
    uint64_t row;
    uint64_t offset;
} place;

static void next_piece(const tni_copy *copy, place *at, tni_copy *out)
{
    *out = *copy;
    out->to.at += at->row * copy->to.pitch + at->offset;
    out->from.at += at->row * copy->from.pitch + at->offset;
    if (copy->bytes <= HALF) {
        uint64_t left = copy->rows - at->row, fit = HALF / copy->bytes;
        out->rows = left < fit ? left : fit;
        at->row += out->rows;
        return;
    }
    uint64_t left = copy->bytes - at->offset;
    out->bytes = left < HALF ? left : HALF;
    out->rows = 1;
    at->offset += out->bytes;
    if (at->offset == copy->bytes)
        *at = (place){.row = at->row + 1};
}

/* Copies one piece from its device to the staging buffer and waits; then waits for the previous
 * piece, which frees its half, and queues the copy to the other device. */
static tn_status move_piece(const tni_copy *piece, char *half, tn_stream *to_stream,
                            tn_stream *from_stream, tn_error *err)
{
    const tni_side stage = {.at = half, .pitch = piece->bytes};
    tni_copy in = *piece, out = *piece;
    in.to = stage;
    out.from = stage;
    tn_status status = tni_copy_call(&in, from_stream, err);
    if (!status)
        status = tn_stream_synchronize(from_stream, err);
    if (!status)
        status = tn_stream_synchronize(to_stream, err);
    return status ? status : tni_copy_call(&out, to_stream, err);
}

/* Waits for to_stream first: it may be waiting for the work that produces the source bytes. If a
 * piece fails, the copy in may still be running; if the last wait fails, the copy out. */
tn_status tni_copy_staged(const tni_copy *copy, tn_stream *to_stream, tn_stream *from_stream,
                          const char *where, tn_error *err)
{
    tni_stage *stage = tni_stage_acquire(copy->to.device, &copy->to.call, where);
    place at = {0};
    tni_copy piece;
    if (!stage)
        return tni_no_memory(err, where, "a copy through the host");
    tn_status status = tn_stream_synchronize(to_stream, err);
    for (size_t half = 0; !status && at.row < copy->rows; half = HALF - half) {
        next_piece(copy, &at, &piece);
        status = move_piece(&piece, stage->bytes + half, to_stream, from_stream, err);
    }
    tn_status last = tn_stream_synchronize(to_stream, status ? NULL : err);
    bool begun = at.row > 0 || at.offset > 0;
    bool done = !last && (!status || !tn_stream_synchronize(from_stream, NULL));
    if (begun && !done)
        tni_stage_leave(copy->to.device, stage);
    else
        tni_stage_release(copy->to.device, stage);
    return status ? status : last;
}
