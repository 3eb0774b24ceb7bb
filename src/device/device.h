/* Internals of platforms and devices: their handles, and how this layer calls the module that
 * serves one. */
#ifndef TNI_DEVICE_DEVICE_H
#define TNI_DEVICE_DEVICE_H

#include "device/platform/known.h"
#include "os/thread.h"
#include "registry/record.h"
#include "tenon/device.h"
#include "tenon/stream.h"

#include <stdatomic.h>

/* A module that serves a platform, or could. Immutable, except `withdrawn`, which is set when the
 * program that registered it withdraws it. */
typedef struct tni_offer {
    const tni_record *record;
    const tni_platform *platform; /* in the record */
    const tn_platform *owner;
    _Atomic bool withdrawn;
} tni_offer;

/* Withdrawn by the program: nothing more is allocated from it, and returned memory is not kept. */
static inline bool tni_offer_is_withdrawn(const tni_offer *offer)
{
    return atomic_load_explicit(&offer->withdrawn, memory_order_acquire);
}

/* Its probe found devices, or it accepts described ones. */
static inline bool tni_offer_is_ready(const tni_offer *offer)
{
    return tni_platform_can_serve(offer->platform);
}

typedef struct tni_platforms tni_platforms;

/* Slots are small indices for per-thread tables. There are few, because a library that is loaded
 * late gets only a small amount of thread-local memory. Further platforms have none. */
enum { TNI_PLATFORM_SLOTS = 16 };

struct tn_platform {
    char name[64];
    const tni_known *known;
    tni_platforms *set;              /* NULL for the unspecified one */
    const tni_offer *_Atomic served; /* NULL while no module offers it */
    int32_t slot; /* below TNI_PLATFORM_SLOTS; unique in the process; -1 if all are taken */
    char no_language[128];
    char no_communicator[128];
    _Atomic int32_t devices;  /* number of devices, numbered from 0, described ones included */
    _Atomic uint64_t lacks;   /* as of the last tni_platforms_weigh: a bit for each TN_OP_... */
    _Atomic int32_t replaced; /* overrides tn_platform_is_available; -1: does not */
    int32_t *assigned;        /* under the set's lock: physical numbers by logical ones, or NULL */
    size_t assigned_count;
};

/* Whether a device is lost, and which process resets it. Guarded by the set's lock, except reads of
 * `lost`. */
typedef struct tni_loss {
    _Atomic bool lost;
    tn_error cause; /* of the loss: the first one of this epoch */
    bool resetting; /* a thread is resetting it, in the process of `resetting_fork` */
    unsigned resetting_fork;
} tni_loss;

struct tn_device {
    tn_platform *platform;
    const tni_offer *offer; /* whose device it is; NULL if it is for planning only */
    int32_t index;
    int32_t ordinal; /* its index in the list of all devices ever added */
    bool plans_only;
    _Atomic bool visible; /* can be found by name; written under its set's lock */
    char id[80];
    char section[64]; /* of its description; "" for a device that was found */
    char *origin;
    tn_generator *generator;
    tn_stream *standard;               /* its default stream; owned, made with the device */
    struct tni_memory *_Atomic memory; /* its allocations; owned, NULL until first used */
    tni_loss *loss; /* owned separately: a loss may be recorded for a const device */
    tn_device_properties properties; /* what the platform reported when the device was created */
    tn_device_properties
        *_Atomic whole;        /* with properties queried later; owned, NULL until queried */
    _Atomic int64_t silent_ns; /* query failed; retry after this time (ns); or 0 */
    uint64_t cpu_features;     /* TN_CPU_BIT(...) of a described CPU; 0 for other devices */
    char fault[192];           /* error in the properties that the platform reported, or "" */
};

/* What is needed to call a device's module: its row and its handle. */
typedef struct tni_call {
    const tn_platform_row *row;
    void *self;
    int32_t device; /* the index */
    int32_t epoch;  /* epoch of the device when it was opened; results apply to that one */
    const tn_device *of;
} tni_call;

/* Checks that the device can be used now. Fails with TN_UNAVAILABLE if it is for planning only,
 * withdrawn, or opened before a fork() that its platform does not survive; TN_DEVICE_LOST with the
 * first cause; TN_INVALID_ARGUMENT for NULL. */
tn_status tni_device_open(const tn_device *device, const char *where, tni_call *out, tn_error *err);

/* The same without a message and without a lock. */
bool tni_device_is_usable(const tn_device *device);

/* Lost, and not reset since. */
bool tni_device_is_lost(const tn_device *device);

/* For returning resources: also succeeds for a withdrawn device. */
bool tni_device_open_to_return(const tn_device *device, tni_call *out);

/* For a reset: also succeeds for a lost device. */
tn_status tni_device_open_for_reset(const tn_device *device, const char *where, tni_call *out,
                                    tn_error *err);

/* False in a process that was forked after the platform was probed, unless the platform survives
 * that. */
bool tni_offer_is_of_this_process(const tni_offer *offer);

/* Passes on the result of a call (`said` must be zeroed before the call), with the message "cuda:0:
 * ...", and records a loss: the first one counts, until the device is reset; one of an earlier
 * epoch is ignored. */
tn_status tni_device_result_check(const tni_call *call, const char *where, tn_status status,
                                  const tn_error *said, tn_error *err);

/* The same for a call that involved two devices, `first` and `second`, which may be equal: a loss
 * is recorded for those that report themselves lost when queried (device_memory), if any. */
tn_status tni_device_result_check_either(const tni_call *first, const tni_call *second,
                                         const char *where, tn_status status, const tn_error *said,
                                         tn_error *err);

/* Asks the platform for the device's properties and stores the valid ones; the others are unknown,
 * and reported as a fault. */
void tni_device_query(tn_device *device);

/* All properties known so far; queries nothing. */
const tn_device_properties *tni_device_known(const tn_device *device);

/* The properties including those that operators are selected by: architecture, capability, dtypes,
 * memory, compute units. If one is missing, queries the platform for the late ones, so call it with
 * no lock held. After a failure the query is not repeated at every step of a plan, but after a
 * second, or by tn_device_properties_get and similar functions. */
const tn_device_properties *tni_device_described(const tn_device *device);

/* `device`, or the current one of the current platform for NULL. */
tn_status tni_device_or_default(tn_device *device, tn_device **out, tn_error *err);

/* Whether the platform has streams, or events. */
static inline bool tni_row_has_streams(const tn_platform_row *row)
{
    return row->stream_create != NULL;
}

static inline bool tni_row_has_events(const tn_platform_row *row)
{
    return row->event_create != NULL;
}

/* Parts of a device that other files of this layer create, and destroy with it. */
tn_status tni_stream_standard_create(tn_device *device, tn_stream **out, tn_error *err);
void tni_stream_standard_destroy(tn_stream *stream); /* accepts NULL */
void tni_memory_destroy(struct tni_memory *memory);  /* accepts NULL; returns all memory */

/* Forgets everything from before a reset. Accepts NULL. */
void tni_memory_forget(struct tni_memory *memory);

#endif
