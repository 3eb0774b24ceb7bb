/* Internals of events, and host events, for platforms that have no events. */
#ifndef TNI_DEVICE_EVENT_H
#define TNI_DEVICE_EVENT_H

#include "os/shared.h"
#include "stream.h"

/* What is known about an event's records; for a host event this is everything. */
typedef struct tni_event_mark {
    _Atomic uint64_t recorded; /* number of records */
    _Atomic int64_t ns;        /* time of the last one, for host events with timing */
} tni_event_mark;

struct tn_event {
    tn_device *device;
    void *native;   /* the platform's handle; NULL for a host event */
    uint32_t flags; /* TN_EVENT_...                                              */
    int32_t epoch;
    _Atomic bool captured; /* its last record is part of a capture, not of queued work */
    tni_event_mark own;
    tni_event_mark *mark; /* `own`, or in `shared` */
    tni_shared *shared;   /* host events shared with other processes; owned */
};

/* Initializes `event`, whose device and flags are set, as a host event. */
tn_status tni_event_host_create(tn_event *event, tn_error *err);
void tni_event_host_end(tn_event *event);

/* On the host all earlier work is done by now, so the event completes at once. */
void tni_event_host_record(tn_event *event);
double tni_event_host_elapsed(const tn_event *start, const tn_event *stop); /* milliseconds */

/* tni_event_host_import fails with TN_CORRUPT for bytes that no export wrote, TN_INVALID_ARGUMENT
 * for those of another device, and TN_NOT_FOUND if the event was released. */
void tni_event_host_export(const tn_event *event, tn_event_handle *out);
tn_status tni_event_host_import(tn_event *event, const tn_event_handle *handle, tn_error *err);

#endif
