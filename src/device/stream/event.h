/* An event from inside, and those of the host: what platforms without events of their own have. */
#ifndef TNI_DEVICE_EVENT_H
#define TNI_DEVICE_EVENT_H

#include "os/shared.h"
#include "stream.h"

/* What is known of an event's records; of a host event all there is to know. */
typedef struct tni_event_mark {
    _Atomic uint64_t recorded; /* how often */
    _Atomic int64_t ns;        /* when last, of host events with timing */
} tni_event_mark;

struct tn_event {
    tn_device *device;
    void *native;   /* what the platform's functions take; NULL for a host event */
    uint32_t flags; /* TN_EVENT_...                                              */
    int32_t life;
    _Atomic bool captured; /* its last record is part of a capture, and no point of any work */
    tni_event_mark own;
    tni_event_mark *mark; /* `own`, or in `shared`                                */
    tni_shared *shared;   /* of a host event for other processes; owned           */
};

/* Gives `event`, which has its device and flags, what it needs as a host event. */
tn_status tni_event_host_create(tn_event *event, tn_error *err);
void tni_event_host_end(tn_event *event);

/* On the host everything before it is done by then, and so is the event. */
void tni_event_host_record(tn_event *event);
double tni_event_host_elapsed(const tn_event *start, const tn_event *stop); /* milliseconds */

/* TN_CORRUPT for bytes that no export gave, TN_INVALID_ARGUMENT for those of another device,
 * TN_NOT_FOUND when the event is released. */
void tni_event_host_export(const tn_event *event, tn_event_handle *out);
tn_status tni_event_host_import(tn_event *event, const tn_event_handle *handle, tn_error *err);

#endif
