/* Per-thread current objects that have no slot of their own: streams by device, and device numbers
 * by platform, for platforms that were created after all slots were taken.
 *
 * Entries stay until the thread ends, so that a former current stream can be restored without
 * memory; then their streams are released. Thread-safety: each thread has its own. */
#ifndef TNI_DEVICE_STREAM_CURRENT_H
#define TNI_DEVICE_STREAM_CURRENT_H

#include "stream.h"

typedef struct tni_current {
    const void *of;                     /* a device, or a platform                      */
    tn_stream *stream;                  /* for a device: held, unless it is the default one */
    void (*release)(tn_stream *stream); /* releases `stream` */
    int32_t index;                      /* for a platform */
} tni_current;

/* NULL if none exists. Borrowed: valid until the next tni_current_add. */
tni_current *tni_current_find(const void *of);

/* Returns the existing entry, or a new zeroed one. NULL if out of memory. */
tni_current *tni_current_add(const void *of);

/* The calling thread's number: positive, and unique among living threads. */
int32_t tni_current_thread(void);

/* Whether the calling thread entered the guard and has not left it. */
bool tni_guard_is_of_this_thread(const tn_device_guard *guard);

/* Removes the entry of a device or platform that is being destroyed. */
void tni_current_drop(const void *of);

#endif
