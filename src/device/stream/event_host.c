/* Host events: a count and a time, in this process or in shared memory. */
#include "event.h"
#include "os/clock.h"
#include "os/sha256.h"

TN_STATIC_ASSERT(ATOMIC_LLONG_LOCK_FREE == 2, "processes share marks without a lock");

/* The memory that processes share. */
typedef struct page {
    char kind[16];
    uint32_t flags;
    uint32_t reserved;
    tni_event_mark mark;
} page;

static const char kind[16] = "tenon event 1";

/* Layout of a handle's bytes. */
typedef struct layout {
    char kind[8];
    unsigned char name[TNI_SHARED_NAME];
    unsigned char device[8]; /* first bytes of the SHA-256 of its id */
    unsigned char check[32]; /* SHA-256 of all bytes before it */
} layout;
TN_STATIC_ASSERT(sizeof(layout) == sizeof(tn_event_handle), "a handle has no other room");

static const char handle_kind[8] = "tn-host";

tn_status tni_event_host_create(tn_event *event, tn_error *err)
{
    if (!(event->flags & TN_EVENT_INTERPROCESS))
        return TN_OK;
    tn_status status = tni_shared_create(sizeof(page), &event->shared, err);
    if (status)
        return status;
    page *shared = tni_shared_memory(event->shared);
    memcpy(shared->kind, kind, sizeof kind);
    shared->flags = event->flags;
    event->mark = &shared->mark;
    return TN_OK;
}

void tni_event_host_end(tn_event *event)
{
    tni_shared_release(event->shared);
}

void tni_event_host_record(tn_event *event)
{
    if (event->flags & TN_EVENT_TIMING)
        atomic_store_explicit(&event->mark->ns, tni_clock_ns(), memory_order_relaxed);
    atomic_fetch_add_explicit(&event->mark->recorded, 1, memory_order_release);
}

double tni_event_host_elapsed(const tn_event *start, const tn_event *stop)
{
    int64_t from = atomic_load_explicit(&start->mark->ns, memory_order_relaxed);
    int64_t to = atomic_load_explicit(&stop->mark->ns, memory_order_relaxed);
    return (double)(to - from) / 1e6;
}

static layout layout_of(const tn_event *event, const unsigned char *name)
{
    layout made;
    unsigned char digest[TNI_SHA256_SIZE];
    memcpy(made.kind, handle_kind, sizeof made.kind);
    memcpy(made.name, name, sizeof made.name);
    tni_sha256_of(event->device->id, strlen(event->device->id), digest);
    memcpy(made.device, digest, sizeof made.device);
    tni_sha256_of(&made, offsetof(layout, check), made.check);
    return made;
}

void tni_event_host_export(const tn_event *event, tn_event_handle *out)
{
    layout made = layout_of(event, tni_shared_name(event->shared));
    memcpy(out->bytes, &made, sizeof made);
}

static tn_status check_handle(const tn_event *event, const layout *given, tn_error *err)
{
    static const char where[] = "tn_event_import";
    unsigned char digest[TNI_SHA256_SIZE];
    layout expected = layout_of(event, given->name);
    tni_sha256_of(given, offsetof(layout, check), digest);
    if (memcmp(given->kind, handle_kind, sizeof given->kind) != 0 ||
        memcmp(given->check, digest, sizeof given->check) != 0)
        return tn_fail(err, TN_CORRUPT, 0, where,
                       "expected a handle from tn_event_export for a device like %s",
                       event->device->id);
    if (memcmp(given->device, expected.device, sizeof given->device) != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "the handle belongs to an event of another device than %s",
                       event->device->id);
    return TN_OK;
}

tn_status tni_event_host_import(tn_event *event, const tn_event_handle *handle, tn_error *err)
{
    layout given;
    tni_shared *shared = NULL;
    memcpy(&given, handle->bytes, sizeof given);
    tn_status status = check_handle(event, &given, err);
    if (!status)
        status = tni_shared_open(given.name, sizeof(page), &shared, err);
    if (status)
        return status;
    page *there = tni_shared_memory(shared);
    uint32_t flags = there->flags;
    if (memcmp(there->kind, kind, sizeof kind) != 0 || (flags & ~TN_EVENT_FLAGS)) {
        tni_shared_release(shared);
        return tn_fail(err, TN_CORRUPT, 0, "tn_event_import",
                       "the shared memory of that name does not contain an event");
    }
    event->flags = flags;
    event->shared = shared;
    event->mark = &there->mark;
    return TN_OK;
}
