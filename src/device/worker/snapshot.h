/* A snapshot of platforms and devices, which the worker view uses, and its text form. */
#ifndef TNI_DEVICE_WORKER_SNAPSHOT_H
#define TNI_DEVICE_WORKER_SNAPSHOT_H

#include "device/platform/platforms.h"

typedef struct tni_seen_platform {
    char name[64];
    char reason[sizeof((tn_error *)0)->message]; /* why it has no device; "" when it has one */
    int32_t kind;                                /* TN_PLATFORM_... */
    int32_t devices;
    _Atomic int32_t current; /* the worker's current device; -1 without devices */
} tni_seen_platform;

typedef struct tni_seen_device {
    tn_device_properties properties; /* must be first, for tni_device_schema */
    int64_t plans_only;              /* 0 or 1 */
    int32_t platform;                /* index in the list */
    int32_t index;
} tni_seen_device;

/* One allocation; immutable, except the numbers of current devices. */
typedef struct tni_snapshot tni_snapshot;
struct tni_snapshot {
    tni_snapshot *next; /* for the holder's list */
    size_t platform_count;
    size_t device_count;
    tni_seen_platform *platforms;
    tni_seen_device *devices;
};

/* Returns zeroed memory, or NULL if out of memory. Free it with tni_release. */
tni_snapshot *tni_snapshot_create(size_t platforms, size_t devices);

/* Takes a snapshot of every platform of the set, with its visible devices; discovers modules first.
 * The worker's current devices start as those of the calling thread. Calls module functions only to
 * find devices and to read their properties. */
tn_status tni_snapshot_take(tni_platforms *set, tni_snapshot **out, tn_error *err);

/* Writes a snapshot in Tenon's text form, to be freed with tni_release; reads it back. Reading
 * fails with TN_CORRUPT, and the line, what was found and what was expected. */
tn_status tni_snapshot_write(const tni_snapshot *snapshot, char **out, tn_error *err);
tn_status tni_snapshot_read(const char *text, tni_snapshot **out, tn_error *err);

/* NULL if none exists. */
tni_seen_platform *tni_snapshot_platform(const tni_snapshot *snapshot, const char *name);
const tni_seen_device *tni_snapshot_device(const tni_snapshot *snapshot,
                                           const tni_seen_platform *platform, int32_t index);

#endif
