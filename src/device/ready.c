/* Whether a device can be used, and the record of its loss. */
#include "base/epoch.h"
#include "base/words.h"
#include "device/platform/platforms.h"
#include "device/stream/epoch.h"
#include "os/fork.h"

bool tni_offer_is_of_this_process(const tni_offer *offer)
{
    return (offer->platform->row->flags & TN_PLATFORM_FORK_SAFE) ||
           offer->platform->fork == tni_fork_generation();
}

bool tni_device_is_lost(const tn_device *device)
{
    return atomic_load_explicit(&device->loss->lost, memory_order_acquire);
}

static tni_call call_of(const tn_device *device)
{
    return (tni_call){.row = device->offer->platform->row,
                      .self = device->offer->platform->self,
                      .device = device->index,
                      .epoch = tni_device_epoch(device),
                      .of = device};
}

static tn_status fail_lost(const tn_device *device, const char *where, tn_error *err)
{
    tni_mutex_lock(&device->platform->set->lock);
    tn_error cause = device->loss->cause;
    tni_mutex_unlock(&device->platform->set->lock);
    return tn_fail(err, TN_DEVICE_LOST, cause.native_code, where, "%s was lost at %s: %s",
                   device->id, cause.where, cause.message);
}

/* Checks everything but a loss: a reset ends that. */
static tn_status open_lost_or_not(const tn_device *device, const char *where, tn_error *err)
{
    if (!device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
    if (device->plans_only)
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "%s is %s for planning only and cannot run anything", device->id,
                       device->origin);
    if (tni_offer_is_withdrawn(device->offer))
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "%s no longer exists: the program removed its platform", device->id);
    if (!tni_offer_is_of_this_process(device->offer))
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "%s was opened before this process was forked and cannot be used after "
                       "fork(); start a new process, or use the worker view (tenon/worker.h)",
                       device->id);
    return TN_OK;
}

tn_status tni_device_open(const tn_device *device, const char *where, tni_call *out, tn_error *err)
{
    tn_status status = open_lost_or_not(device, where, err);
    if (status)
        return status;
    if (tni_device_is_lost(device))
        return fail_lost(device, where, err);
    *out = call_of(device);
    return TN_OK;
}

bool tni_device_is_usable(const tn_device *device)
{
    return open_lost_or_not(device, "", NULL) == TN_OK && !tni_device_is_lost(device);
}

bool tni_device_open_to_return(const tn_device *device, tni_call *out)
{
    if (device->plans_only || tni_device_is_lost(device) ||
        !tni_offer_is_of_this_process(device->offer))
        return false;
    *out = call_of(device);
    return true;
}

tn_status tni_device_open_for_reset(const tn_device *device, const char *where, tni_call *out,
                                    tn_error *err)
{
    tn_status status = open_lost_or_not(device, where, err);
    if (!status)
        *out = call_of(device);
    return status;
}

static void keep_loss(const tni_call *call, const char *where, const tn_error *said)
{
    tni_loss *loss = call->of->loss;
    tni_mutex_lock(&call->of->platform->set->lock);
    if (call->epoch == tni_device_epoch(call->of) && !loss->lost) {
        tn_error *cause = &loss->cause;
        *cause = *said;
        tn_text_fit(cause->message, sizeof cause->message, tni_words_of(said));
        if (!said->where[0])
            tn_text_fit(cause->where, sizeof cause->where, where);
        tn_text_escape(cause->where, sizeof cause->where);
        tn_text_escape(cause->message, sizeof cause->message);
        atomic_store_explicit(&loss->lost, true, memory_order_release);
        tni_epoch_next();
    }
    tni_mutex_unlock(&call->of->platform->set->lock);
}

tn_status tni_device_result_check(const tni_call *call, const char *where, tn_status status,
                                  const tn_error *said, tn_error *err)
{
    if (status == TN_OK)
        return TN_OK;
    tn_error words = *said;
    words.where[sizeof words.where - 1] = words.message[sizeof words.message - 1] = '\0';
    if (status < 0 || status >= TN_STATUS_COUNT)
        return tn_fail(err, TN_INTERNAL, words.native_code, where,
                       "%s returned the status %d, which does not exist", call->of->id,
                       (int)status);
    if (status == TN_DEVICE_LOST)
        keep_loss(call, where, &words);
    return tn_fail(err, status, words.native_code, words.where[0] ? words.where : where, "%s: %s",
                   call->of->id, tni_words_of(&words));
}

/* Whether a device reports itself lost when queried. */
static bool admits_loss(const tn_device *device)
{
    static const char where[] = "tn_device_memory_get";
    tn_device_memory asked = {.struct_size = sizeof asked};
    tn_error said = {0};
    tni_call call = {0};
    if (tni_device_open(device, where, &call, NULL) == TN_OK && call.row->device_memory)
        (void)tni_device_result_check(
            &call, where, call.row->device_memory(call.self, call.device, &asked, &said), &said,
            NULL);
    return tni_device_is_lost(device);
}

tn_status tni_device_result_check_either(const tni_call *first, const tni_call *second,
                                         const char *where, tn_status status, const tn_error *said,
                                         tn_error *err)
{
    if (status != TN_DEVICE_LOST || first->of == second->of)
        return tni_device_result_check(first, where, status, said, err);
    bool second_is = admits_loss(second->of), first_is = admits_loss(first->of);
    if (second_is || first_is)
        return tni_device_result_check(second_is ? second : first, where, status, said, err);
    tn_error words = *said;
    words.message[sizeof words.message - 1] = '\0';
    return tn_fail(err, status, words.native_code, where,
                   "%s or %s is lost, but neither reports which: %s", second->of->id, first->of->id,
                   tni_words_of(&words));
}

tn_status tni_device_epoch_check(const tn_device *device, int32_t epoch, const char *what,
                                 const char *where, tn_error *err)
{
    if (epoch == tni_device_epoch(device))
        return TN_OK;
    return tn_fail(err, TN_DEVICE_LOST, 0, where,
                   "this %s was created before %s was reset and is no longer valid; create another",
                   what, device->id);
}

tn_status tn_device_health(const tn_device *device, tn_error *err)
{
    tni_call call;
    return tni_device_open(device, "tn_device_health", &call, err);
}
