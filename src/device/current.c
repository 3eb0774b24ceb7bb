/* The current device of each thread, one per platform, and the guards that restore it. */
#include "device/stream/current.h"

#include "base/alloc.h"
#include "device/graph/graph.h"
#include "device/platform/platforms.h"
#include "device/stream/trail.h"

/* The vendor's current device when a guard was entered, no matter who set it. */
typedef struct vendors {
    bool entered;
    void *previous;
} vendors;

/* The current device of each platform, by the platform's slot. Device 0 is current until another is set. */
static _Thread_local uint16_t by_slot[TNI_PLATFORM_SLOTS];

/* Whether the choice of a device can be stored. Without a slot this fails only if out of memory,
 * and never again once it has succeeded. */
static bool has_room(const tn_platform *platform, int32_t index)
{
    return platform->slot >= 0 ? index <= UINT16_MAX : tni_current_add(platform) != NULL;
}

static void store_current(const tn_platform *platform, int32_t index)
{
    tni_current *entry = platform->slot >= 0 ? NULL : tni_current_add(platform);
    if (platform->slot >= 0)
        by_slot[platform->slot] = (uint16_t)index;
    else if (entry)
        entry->index = index;
}

/* The platform may have lost the device since; using the number then reports that error. */
int32_t tn_device_current(const tn_platform *platform)
{
    if (tn_platform_device_count(platform) == 0)
        return -1;
    if (platform->slot >= 0)
        return by_slot[platform->slot];
    const tni_current *entry = tni_current_find(platform);
    return entry ? entry->index : 0;
}

/* Makes the device of an open call the vendor's current one. With `out`, if the vendor can, enters
 * a scope that also returns the previous one. Clears only the used fields of `said`: zeroing all of
 * it would take longer than the call. */
static tn_status make_current(const tni_call *call, vendors *out, const char *where, tn_error *err)
{
    tn_error said;
    said.native_code = 0;
    said.where[0] = said.message[0] = '\0';
    bool enters = out && call->row->device_enter;
    tn_status status =
        enters ? call->row->device_enter(call->self, call->device, &out->previous, &said)
               : call->row->device_activate(call->self, call->device, &said);
    if (enters)
        out->entered = status == TN_OK;
    return tni_device_result_check(call, where, status, &said, err);
}

/* Initializes the device and makes it the vendor's current one, if the vendor has such a concept.
 * Fails for a device that cannot be used, unless it is for planning only. With `out`, if the vendor
 * can, stores the vendor's previous device there, and the caller must restore it. */
static tn_status activate_device(const tn_device *device, vendors *out, const char *where,
                                 tn_error *err)
{
    tni_call call;
    if (device->plans_only)
        return TN_OK;
    if (!device->offer->platform->row->device_activate && tni_device_is_usable(device))
        return TN_OK;
    tn_status status = tni_device_open(device, where, &call, err);
    return status || !call.row->device_activate ? status : make_current(&call, out, where, err);
}

static bool is_initialized(const tni_call *call)
{
    return !call->row->device_is_initialized ||
           call->row->device_is_initialized(call->self, call->device);
}

int32_t tn_device_is_initialized(const tn_device *device)
{
    tni_call call;
    return tni_device_open(device, "tn_device_is_initialized", &call, NULL) == TN_OK &&
           is_initialized(&call);
}

/* Makes the vendor's current device follow if that initializes nothing. Errors are left to the
 * device's first use. */
static void follow_device(const tn_device *device)
{
    static const char where[] = "tn_device_maybe_exchange";
    tni_call call;
    if (tni_device_open(device, where, &call, NULL) == TN_OK && call.row->device_activate &&
        is_initialized(&call))
        (void)make_current(&call, NULL, where, NULL);
}

/* Reserves the entry before the module is called, so that nothing can fail afterwards. store_current() looks
 * it up again: the module's log messages reach the program, which may make other things current. */
static tn_status exchange_device(const tn_device *device, bool initialise, vendors *out,
                                 const char *where, int32_t *out_previous, tn_error *err)
{
    const tn_platform *platform = device->platform;
    int32_t previous = tn_device_current(platform);
    if (!has_room(platform, device->index))
        return tni_no_memory(err, where, "a thread's current device");
    tn_status status = initialise ? activate_device(device, out, where, err) : TN_OK;
    if (status)
        return status;
    if (!initialise)
        follow_device(device);
    store_current(platform, device->index);
    *out_previous = previous;
    return TN_OK;
}

static tn_status exchange_number(const tn_platform *platform, int32_t index, bool initialise,
                                 const char *where, int32_t *out_previous, tn_error *err)
{
    if (!platform || !out_previous)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       platform ? "out_previous" : "the platform");
    if (index == -1) {
        *out_previous = tn_device_current(platform);
        return TN_OK;
    }
    const tn_device *device = tni_devices_of(platform, index);
    return device ? exchange_device(device, initialise, NULL, where, out_previous, err)
                  : tni_platform_no_device(platform, index, where, err);
}

tn_status tn_device_set(const tn_platform *platform, int32_t index, tn_error *err)
{
    int32_t previous;
    return exchange_number(platform, index, true, "tn_device_set", &previous, err);
}

tn_status tn_device_exchange(const tn_platform *platform, int32_t index, int32_t *out_previous,
                             tn_error *err)
{
    return exchange_number(platform, index, true, "tn_device_exchange", out_previous, err);
}

tn_status tn_device_maybe_exchange(const tn_platform *platform, int32_t index,
                                   int32_t *out_previous, tn_error *err)
{
    return exchange_number(platform, index, false, "tn_device_maybe_exchange", out_previous, err);
}

tn_status tn_device_default(tn_device **out, tn_error *err)
{
    const tn_platform *platform;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_device_default", "out is NULL");
    tn_status status = tn_platform_current(&platform, err);
    return status ? status
                  : tn_platform_device_get(platform, tn_device_current(platform), out, err);
}

tn_status tni_device_or_default(tn_device *device, tn_device **out, tn_error *err)
{
    if (!device)
        return tn_device_default(out, err);
    *out = device;
    return TN_OK;
}

bool tni_guard_is_of_this_thread(const tn_device_guard *guard)
{
    return guard->entered &&
           (guard->entered < 0 ? -guard->entered : guard->entered) == tni_current_thread();
}

tn_status tn_device_guard_enter(tn_device_guard *guard, tn_device *device, tn_error *err)
{
    static const char where[] = "tn_device_guard_enter";
    int32_t previous = -1;
    vendors had = {0};
    tn_status status = TN_OK;
    if (!guard)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the guard is NULL");
    if (guard->entered)
        return tn_fail(err, TN_BUSY, 0, where,
                       "this guard was entered already; leave it first, or "
                       "use another guard");
    if (device && !tni_device_is_visible(device))
        status =
            tn_fail(err, TN_UNAVAILABLE, 0, where,
                    "%s no longer exists: platform %s now belongs to another module or to none",
                    device->id, device->platform->name);
    else if (device)
        status = exchange_device(device, true, &had, where, &previous, err);
    if (!status)
        *guard = (tn_device_guard){device ? device->platform : NULL, previous,
                                   had.entered ? -tni_current_thread() : tni_current_thread(),
                                   had.previous};
    return status;
}

/* Restores the vendor's device, even if the device was lost meanwhile. In a forked child there is
 * nothing to restore. */
static void bring_back(const tn_platform *platform, void *previous)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    if (offer && tni_offer_is_of_this_process(offer) && offer->platform->row->device_leave)
        offer->platform->row->device_leave(offer->platform->self, previous);
}

void tn_device_guard_leave(tn_device_guard *guard)
{
    if (!guard || !tni_guard_is_of_this_thread(guard))
        return;
    const tn_platform *platform = guard->platform;
    int32_t previous = guard->previous;
    const vendors had = {guard->entered < 0, guard->vendors};
    *guard = (tn_device_guard){0};
    if (!platform || previous < 0)
        return;
    store_current(platform, previous);
    if (had.entered) {
        bring_back(platform, had.previous);
        return;
    }
    const tn_platform_row *row = tni_platform_row_of(platform);
    const tn_device *device =
        row && row->device_activate ? tni_devices_of(platform, previous) : NULL;
    if (device)
        follow_device(device);
}

static bool has_device_that_runs(const tn_platform *platform)
{
    bool found = false;
    tni_mutex_lock(&platform->set->lock);
    const tni_pointers *devices = &platform->set->devices;
    for (size_t i = 0; i < devices->count && !found; i++) {
        const tn_device *device = devices->items[i];
        found = device->platform == platform && tni_device_is_visible(device) &&
                tni_device_is_usable(device);
    }
    tni_mutex_unlock(&platform->set->lock);
    return found;
}

int32_t tn_platform_is_available(const tn_platform *platform)
{
    if (!platform || !platform->set)
        return 0;
    int32_t answer = atomic_load(&platform->replaced);
    return answer >= 0 ? answer : has_device_that_runs(platform);
}

tn_status tn_platform_availability_replace(const tn_platform *platform, int32_t answer,
                                           tn_error *err)
{
    static const char where[] = "tn_platform_availability_replace";
    if (!platform)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the platform is NULL");
    if (answer < -1 || answer > 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected 0, 1, or -1 to restore the real answer; got %d", (int)answer);
    tn_platform *same = tni_platforms_same(platform);
    if (!same)
        return tni_platform_unready(platform, where, err);
    atomic_store(&same->replaced, answer);
    return TN_OK;
}

tn_status tn_device_synchronize(const tn_device *device, tn_error *err)
{
    static const char where[] = "tn_device_synchronize";
    tn_device *standing = NULL;
    tni_call call;
    tn_status status = device ? TN_OK : tn_device_default(&standing, err);
    if (status)
        return status;
    if (!device)
        device = standing;
    status = tni_device_open(device, where, &call, err);
    if (!status)
        status = tni_capture_reject(tn_stream_current(device), where,
                                    "captured work does not run before the capture ends", err);
    if (status || !call.row->device_synchronize)
        return status;
    tn_error said = {0};
    status = call.row->device_synchronize(call.self, call.device, &said);
    return tni_trail_report(device->standard,
                            tni_device_result_check(&call, where, status, &said, err), err);
}
