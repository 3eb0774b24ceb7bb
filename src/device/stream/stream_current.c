/* The current streams of each thread, and the guards that restore them. */
#include "base/alloc.h"
#include "current.h"
#include "epoch.h"

typedef struct table {
    tni_thread_end end; /* must be first: the thread-end callback gets its address */
    tni_current *entries;
    size_t count;
    size_t capacity;
} table;

static _Thread_local table *mine;

/* Whether any thread ever had a table. Until then, calls skip the access to `mine`, which is a
 * function call in a shared library. */
static _Atomic bool in_use;

/* At the end of a thread its thread-local variables may be gone already, and `mine` may be a new
 * one. */
static void table_release(tni_thread_end *end)
{
    table *ending = (table *)end;
    if (mine == ending)
        mine = NULL;
    for (size_t i = 0; i < ending->count; i++)
        tn_stream_release(ending->entries[i].stream);
    tni_release(ending->entries);
    tni_release(ending);
}

static bool table_make(void)
{
    table *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return false;
    made->end.run = table_release;
    if (!tni_thread_end_add(&made->end)) {
        tni_release(made);
        return false;
    }
    mine = made;
    atomic_store_explicit(&in_use, true, memory_order_relaxed);
    return true;
}

tni_current *tni_current_find(const void *of)
{
    if (!atomic_load_explicit(&in_use, memory_order_relaxed))
        return NULL;
    const table *here = mine;
    for (size_t i = 0; here && i < here->count; i++) {
        if (here->entries[i].of == of)
            return &here->entries[i];
    }
    return NULL;
}

tni_current *tni_current_add(const void *of)
{
    tni_current *found = tni_current_find(of);
    if (found)
        return found;
    if ((!mine && !table_make()) ||
        !tni_array_reserve((void **)&mine->entries, &mine->capacity, mine->count, mine->count + 1,
                           sizeof *mine->entries))
        return NULL;
    mine->entries[mine->count] = (tni_current){.of = of};
    return &mine->entries[mine->count++];
}

void tni_current_drop(const void *of)
{
    tni_current *found = tni_current_find(of);
    if (!found)
        return;
    tn_stream *stream = found->stream;
    *found = mine->entries[--mine->count];
    tn_stream_release(stream);
    if (mine->count == 0) {
        tni_thread_end_remove(&mine->end);
        table_release(&mine->end);
    }
}

tn_stream *tn_stream_default(const tn_device *device)
{
    return device ? device->standard : NULL;
}

/* A stream from before a reset of its device is no longer current. */
tn_stream *tn_stream_current(const tn_device *device)
{
    if (!device)
        return NULL;
    const tni_current *entry = tni_current_find(device);
    return entry && tni_stream_epoch(entry->stream) == tni_device_epoch(device) ? entry->stream
                                                                                : device->standard;
}

static void retain_stream(tn_stream *stream)
{
    if (stream->kind != TNI_STREAM_STANDARD)
        atomic_fetch_add_explicit(&stream->holders, 1, memory_order_relaxed);
}

/* Returns false if out of memory; never if the device had an entry before. */
static bool make_current(tn_stream *stream)
{
    tni_current *entry = stream->kind == TNI_STREAM_STANDARD ? tni_current_find(stream->device)
                                                             : tni_current_add(stream->device);
    if (!entry)
        return stream->kind == TNI_STREAM_STANDARD;
    tn_stream *before = entry->stream;
    retain_stream(stream);
    entry->stream = stream;
    tn_stream_release(before);
    return true;
}

static tn_status set_stream(tn_stream *stream, const char *where, tn_error *err)
{
    if (!stream)
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "the stream is NULL; tn_stream_default returns the default stream of a device");
    tn_status status =
        tni_device_epoch_check(stream->device, tni_stream_epoch(stream), "stream", where, err);
    if (!status && !make_current(stream))
        status = tni_no_memory(err, where, "a thread's current streams");
    return status;
}

tn_status tn_stream_set(tn_stream *stream, tn_error *err)
{
    return set_stream(stream, "tn_stream_set", err);
}

tn_status tn_stream_guard_enter(tn_stream_guard *guard, tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_stream_guard_enter";
    if (!guard)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the guard is NULL");
    tn_status status = tn_device_guard_enter(&guard->device, stream ? stream->device : NULL, err);
    if (status || !stream)
        return status;
    tn_stream *previous = tn_stream_current(stream->device);
    retain_stream(previous);
    status = set_stream(stream, where, err);
    if (status) {
        tn_stream_release(previous);
        tn_device_guard_leave(&guard->device);
    } else {
        guard->previous = previous;
    }
    return status;
}

void tn_stream_guard_leave(tn_stream_guard *guard)
{
    if (!guard || !tni_guard_is_of_this_thread(&guard->device))
        return;
    if (guard->previous) {
        (void)make_current(guard->previous);
        tn_stream_release(guard->previous);
        guard->previous = NULL;
    }
    tn_device_guard_leave(&guard->device);
}
