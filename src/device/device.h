/* Platforms and devices from inside: what their handles are, and how the floor calls the module
 * behind one. */
#ifndef TNI_DEVICE_DEVICE_H
#define TNI_DEVICE_DEVICE_H

#include "device/platform/known.h"
#include "os/thread.h"
#include "registry/record.h"
#include "tenon/device.h"
#include "tenon/stream.h"

#include <stdatomic.h>

/* A module that serves a platform, or could. It never changes but for `withdrawn`: set when the
 * program that registered it took it back. */
typedef struct tni_offer {
    const tni_record *record;
    const tni_platform *platform; /* in the record */
    const tn_platform *owner;
    _Atomic bool withdrawn;
} tni_offer;

/* The program took it back: nothing more is taken from it, and what comes back is not kept. */
static inline bool tni_offer_is_withdrawn(const tni_offer *offer)
{
    return atomic_load_explicit(&offer->withdrawn, memory_order_acquire);
}

/* Its probe found devices, or it can be given some. */
static inline bool tni_offer_is_ready(const tni_offer *offer)
{
    return tni_platform_can_serve(offer->platform);
}

typedef struct tni_platforms tni_platforms;

/* Slots are small numbers for tables that each thread has. Few: a library that is opened late gets
 * only so much of the memory of threads. Platforms beyond do without one. */
enum { TNI_PLATFORM_SLOTS = 16 };

struct tn_platform {
    char name[64];
    const tni_known *known;
    tni_platforms *set;              /* NULL for the unspecified one */
    const tni_offer *_Atomic served; /* NULL while no module offers it */
    int32_t slot; /* below TNI_PLATFORM_SLOTS; unique in the process; -1 when all are taken */
    char no_language[128];
    char no_communicator[128];
    _Atomic int32_t devices;  /* how many have numbers from 0 on, described ones included */
    _Atomic uint64_t lacks;   /* as of the latest tni_platforms_weigh: a bit for each TN_OP_... */
    _Atomic int32_t replaced; /* what tn_platform_is_available says instead; -1: nothing */
    int32_t *assigned;        /* under the set's lock: physical numbers by logical ones, or NULL */
    size_t assigned_count;
};

/* Whether a device is lost, and who resets it. All but the reading of `lost` under its set's lock. */
typedef struct tni_loss {
    _Atomic bool lost;
    tn_error cause; /* of the loss: the first one of this life */
    bool resetting; /* a thread of the process of that generation is at it */
    unsigned resetting_fork;
} tni_loss;

struct tn_device {
    tn_platform *platform;
    const tni_offer *offer; /* who made it; NULL when it is for planning only */
    int32_t index;
    int32_t ordinal; /* its place in the list of all devices that ever came */
    bool plans_only;
    _Atomic bool visible; /* names lead to it; written under its set's lock */
    char id[80];
    char section[64]; /* of its description; "" for a device that was found */
    char *origin;
    tn_generator *generator;
    tn_stream *standard;               /* its default stream; owned, made with the device */
    struct tni_memory *_Atomic memory; /* its book of allocations; owned, NULL until it is needed */
    tni_loss *loss; /* owned: calls on a device that does not change may find it lost */
    tn_device_properties properties; /* as told at once: who it is, and as much as it knew then */
    tn_device_properties
        *_Atomic whole; /* with what is asked for late; owned, NULL until someone wants to know */
    _Atomic int64_t silent_ns; /* it did not tell, and is not asked again before that time; or 0 */
    uint64_t cpu_features;     /* TN_CPU_BIT(...) of a described processor; 0 of any other device */
    char fault[192];           /* what is wrong with what its platform told of it; "" for nothing */
};

/* What calls on a device go through: the row and the self of its module. */
typedef struct tni_call {
    const tn_platform_row *row;
    void *self;
    int32_t device; /* the index */
    int32_t life;   /* of the device, when it was opened: what a call says is of that one */
    const tn_device *of;
} tni_call;

/* Whether the device can be used now. TN_UNAVAILABLE: for planning only, withdrawn, or opened before
 * a fork() that its platform does not survive; TN_DEVICE_LOST: with the first cause;
 * TN_INVALID_ARGUMENT: NULL. */
tn_status tni_device_open(const tn_device *device, const char *where, tni_call *out, tn_error *err);

/* The same without words, and without a lock. */
bool tni_device_is_usable(const tn_device *device);

/* Lost, and not reset since. */
bool tni_device_is_lost(const tn_device *device);

/* For what is given back: the platform of a device that was withdrawn hears of it too. */
bool tni_device_open_to_return(const tn_device *device, tni_call *out);

/* False in a process that was forked after the platform was probed, unless it survives that. */
bool tni_offer_is_of_this_process(const tni_offer *offer);

/* Passes on what a call gave and said (`said` was zeroed before it), in the words of "cuda:0: ...",
 * and keeps a loss: the first one counts, until the device is reset; one of an earlier life does
 * not. */
tn_status tni_device_settle(const tni_call *call, const char *where, tn_status status,
                            const tn_error *said, tn_error *err);

/* The same for a call that had to do with two devices, `first` and `second`, which may be one: a loss is kept
 * with those that say they are lost when they are asked (device_memory); with none where none does. */
tn_status tni_device_settle_either(const tni_call *first, const tni_call *second, const char *where,
                                   tn_status status, const tn_error *said, tn_error *err);

/* Asks its platform for its properties and keeps what can be; the rest is unknown, and a fault. */
void tni_device_ask(tn_device *device);

/* Its properties with all that was asked for so far; asks for nothing. */
const tn_device_properties *tni_device_told(const tn_device *device);

/* Its properties with what operators are chosen by: architecture, capability, dtypes, memory, compute units. Asks its
 * platform for what it tells late if one of them is lacking so far; so with no lock held. One that did not
 * tell is not asked at every step of a plan but a second later, or by tn_device_properties_get and its like. */
const tn_device_properties *tni_device_described(const tn_device *device);

/* `device`, or the current one of the current platform for NULL. */
tn_status tni_device_or_default(tn_device *device, tn_device **out, tn_error *err);

/* The row has streams, or events, of its own. */
static inline bool tni_row_has_streams(const tn_platform_row *row)
{
    return row->stream_create != NULL;
}

static inline bool tni_row_has_events(const tn_platform_row *row)
{
    return row->event_create != NULL;
}

/* Parts of a device that other files of this floor make and end with it. */
tn_status tni_stream_standard_create(tn_device *device, tn_stream **out, tn_error *err);
void tni_stream_standard_destroy(tn_stream *stream); /* accepts NULL */
void tni_memory_destroy(struct tni_memory *memory);  /* accepts NULL; gives all it holds back */

/* After a reset nothing of before counts. Accepts NULL. */
void tni_memory_forget(struct tni_memory *memory);

#endif
