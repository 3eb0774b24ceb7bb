/* Calls of the platform's copy function, and copies in pieces through host memory where no platform
 * can copy directly. */
#include "base/alloc.h"
#include "device/stream/stream.h"
#include "memory.h"

/* `call` is that of a side with a device. */
static tn_status copy_by(const tni_call *call, const tni_copy *copy, const tn_stream *stream,
                         tn_error *err)
{
    tn_error said = {0};
    const tn_copy_job job = {.struct_size = sizeof job,
                             .to = copy->to.at,
                             .from = copy->from.at,
                             .bytes = copy->bytes,
                             .to_device = copy->to.device ? copy->to.call.device : -1,
                             .from_device = copy->from.device ? copy->from.call.device : -1,
                             .stream = stream->native,
                             .rows = copy->rows,
                             .to_pitch = copy->to.pitch,
                             .from_pitch = copy->from.pitch};
    const tni_call *from = copy->from.device ? &copy->from.call : call;
    tn_status status = call->row->copy(call->self, &job, &said);
    return status ? tni_device_result_check_either(call, from, "tn_memory_copy", status, &said, err)
                  : TN_OK;
}

tn_status tni_copy_call(const tni_copy *copy, const tn_stream *stream, tn_error *err)
{
    return copy_by(copy->to.device ? &copy->to.call : &copy->from.call, copy, stream, err);
}

/* Double buffering: one half is copied out while the next piece is copied into the other. */
enum { HALF = TNI_STAGE_BYTES / 2 };

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
    tn_status status = copy_by(&piece->from.call, &in, from_stream, err);
    if (!status)
        status = tn_stream_synchronize(from_stream, err);
    if (!status)
        status = tn_stream_synchronize(to_stream, err);
    return status ? status : copy_by(&piece->to.call, &out, to_stream, err);
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
