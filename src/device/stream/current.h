/* What the calling thread has made current, beyond what has a place of its own: streams by their
 * devices, and device numbers by those platforms that came when all slots were taken.
 *
 * Entries stay until the thread ends, so that what was current once can be restored without memory;
 * then the streams in them are released. Thread-safety: each thread has its own. */
#ifndef TNI_DEVICE_STREAM_CURRENT_H
#define TNI_DEVICE_STREAM_CURRENT_H

#include "stream.h"

typedef struct tni_current {
    const void *of;    /* a device, or a platform                      */
    tn_stream *stream; /* of a device: held, unless it is the standard */
    int32_t index;     /* of a platform                                */
} tni_current;

/* NULL when there is none. Lent until the next `add`. */
tni_current *tni_current_find(const void *of);

/* The one there is, or a zeroed one. NULL for want of memory. */
tni_current *tni_current_add(const void *of);

/* The calling thread's number: positive, and no other thread's that lives. */
int32_t tni_current_thread(void);

/* True when the calling thread entered it and has not left it. */
bool tni_guard_is_of_this_thread(const tn_device_guard *guard);

/* For a device or platform that ends. */
void tni_current_drop(const void *of);

#endif
