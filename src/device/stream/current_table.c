/* The table of each thread's current objects, and the current stream of a device. */
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

static void release_stream(const tni_current *entry)
{
    if (entry->stream)
        entry->release(entry->stream);
}

/* At the end of a thread its thread-local variables may be gone already, and `mine` may be a new
 * one. */
static void table_release(tni_thread_end *end)
{
    table *ending = (table *)end;
    if (mine == ending)
        mine = NULL;
    for (size_t i = 0; i < ending->count; i++)
        release_stream(&ending->entries[i]);
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
    const tni_current dropped = *found;
    *found = mine->entries[--mine->count];
    release_stream(&dropped);
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

/* Must fit the field `entered` of a guard. */
int32_t tni_current_thread(void)
{
    static _Thread_local int32_t number;
    static _Atomic uint32_t last;
    while (number == 0)
        number = (int32_t)((atomic_fetch_add(&last, 1) + 1) & INT32_MAX);
    return number;
}
