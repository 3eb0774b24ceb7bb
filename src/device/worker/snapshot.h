/* A snapshot of platforms and devices: what the worker view answers from, and its text. */
#ifndef TNI_DEVICE_WORKER_SNAPSHOT_H
#define TNI_DEVICE_WORKER_SNAPSHOT_H

#include "device/platform/platforms.h"

typedef struct tni_seen_platform {
    char name[64];
    char reason[sizeof((tn_error *)0)->message]; /* why it has no device; "" when it has one */
    int32_t kind;                                /* TN_PLATFORM_... */
    int32_t devices;
    _Atomic int32_t current; /* the worker's; -1 without devices */
} tni_seen_platform;

typedef struct tni_seen_device {
    int32_t platform; /* its place in the list */
    int32_t index;
    bool plans_only;
    tn_device_properties properties;
} tni_seen_device;

/* One block, which never changes but for the numbers of current devices. */
typedef struct tni_snapshot tni_snapshot;
struct tni_snapshot {
    tni_snapshot *next; /* for whoever keeps it */
    size_t platform_count;
    size_t device_count;
    tni_seen_platform *platforms;
    tni_seen_device *devices;
};

/* Zeroed. NULL for want of memory. tni_release it. */
tni_snapshot *tni_snapshot_create(size_t platforms, size_t devices);

/* Of every platform of the set, with the devices that names lead to; looks for modules first. The
 * worker's current devices begin as the calling thread's. Calls no module's function that was not
 * called to find it. */
tn_status tni_snapshot_take(tni_platforms *set, tni_snapshot **out, tn_error *err);

/* As text of the one form, to be released by tni_release; and back. TN_CORRUPT has the line, what was
 * found there and what was expected. */
tn_status tni_snapshot_write(const tni_snapshot *snapshot, char **out, tn_error *err);
tn_status tni_snapshot_read(const char *text, tni_snapshot **out, tn_error *err);

/* NULL when there is none. */
tni_seen_platform *tni_snapshot_platform(const tni_snapshot *snapshot, const char *name);
const tni_seen_device *tni_snapshot_device(const tni_snapshot *snapshot,
                                           const tni_seen_platform *platform, int32_t index);

#endif
