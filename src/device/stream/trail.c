#include "trail.h"

#include "base/alloc.h"
#include "base/log.h"
#include "device/memory/latch.h"

enum { STEPS = 8 };

typedef struct tni_trail {
    tni_latch lock;
    uint32_t next;
    tni_trace steps[STEPS];
} tni_trail;

/* Returns the stream's trail, created on first use; NULL if out of memory. */
static tni_trail *trail_of(tn_stream *stream)
{
    tni_trail *trail = atomic_load_explicit(&stream->trail, memory_order_acquire);
    if (trail)
        return trail;
    tni_trail *made = tni_alloc_zeroed(1, sizeof *made);
    if (made && !atomic_compare_exchange_strong(&stream->trail, &trail, made)) {
        tni_release(made);
        return trail;
    }
    return made;
}

void tni_trail_add(tn_stream *stream, const tni_trace *trace)
{
    tni_trail *trail = trail_of(stream);
    tni_trace gone = *trace;
    if (trail) {
        tni_latch_lock(&trail->lock);
        tni_trace *at = &trail->steps[trail->next++ % STEPS];
        gone = *at;
        *at = *trace;
        tni_latch_unlock(&trail->lock);
    }
    if (gone.object)
        gone.release(gone.object);
}

static size_t list_steps(tni_trail *trail, tni_buffer *out)
{
    size_t count = 0;
    tni_latch_lock(&trail->lock);
    for (uint32_t i = 0; i < STEPS; i++) {
        const tni_trace *step = &trail->steps[(trail->next + STEPS - 1 - i) % STEPS];
        if (!step->object)
            break;
        tni_buffer_add(out, count++ ? "; " : "");
        step->write(step->object, out);
    }
    tni_latch_unlock(&trail->lock);
    return count;
}

tn_status tni_trail_report(tn_stream *stream, tn_status status, tn_error *err)
{
    tni_trail *trail = atomic_load_explicit(&stream->trail, memory_order_acquire);
    tni_buffer text = {0};
    if (status != TN_DEVICE_LOST || !trail || list_steps(trail, &text) == 0)
        return status;
    tni_log(TN_LOG_ERROR, "%s was lost; last on the stream, newest first: %s", stream->device->id,
            tni_buffer_text(&text));
    if (err) {
        char message[sizeof err->message + 512];
        snprintf(message, sizeof message, "%s; last on the stream: %.480s", err->message,
                 tni_buffer_text(&text));
        tn_text_fit(err->message, sizeof err->message, message);
    }
    tni_buffer_release(&text);
    return status;
}

void tni_trail_end(tn_stream *stream)
{
    tni_trail *trail = atomic_exchange(&stream->trail, NULL);
    for (uint32_t i = 0; trail && i < STEPS; i++) {
        if (trail->steps[i].object)
            trail->steps[i].release(trail->steps[i].object);
    }
    tni_release(trail);
}
