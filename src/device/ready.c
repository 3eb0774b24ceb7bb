/* Whether a device can be used, and what is kept of its loss. */
#include "base/words.h"
#include "device/platform/platforms.h"
#include "device/stream/life.h"

enum { WELL, BEING_LOST, LOST };

static tn_status lost(const tn_device *device, const char *where, tn_error *err)
{
    const tn_error *cause = &device->loss->cause;
    return tn_fail(err, TN_DEVICE_LOST, cause->native_code, where, "%s is lost since %s: %s",
                   device->id, cause->where, cause->message);
}

tn_status tni_device_open(const tn_device *device, const char *where, tni_call *out, tn_error *err)
{
    if (!device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
    if (device->plans_only)
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "%s is %s for planning only: it can run nothing", device->id,
                       device->origin);
    if (atomic_load_explicit(&device->offer->withdrawn, memory_order_acquire))
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "%s is gone: the program took its platform back", device->id);
    if (atomic_load_explicit(&device->loss->state, memory_order_acquire) == LOST)
        return lost(device, where, err);
    *out = (tni_call){.row = device->offer->platform->row,
                      .self = device->offer->platform->self,
                      .device = device->index};
    return TN_OK;
}

static void keep_loss(const tn_device *device, const char *where, const tn_error *err)
{
    int32_t well = WELL;
    if (!atomic_compare_exchange_strong(&device->loss->state, &well, BEING_LOST))
        return;
    device->loss->cause = *err;
    if (!err->where[0])
        tn_text_fit(device->loss->cause.where, sizeof device->loss->cause.where, where);
    tni_words_clean(device->loss->cause.where);
    tni_words_clean(device->loss->cause.message);
    atomic_store_explicit(&device->loss->state, LOST, memory_order_release);
}

tn_status tni_device_settle(const tn_device *device, const char *where, tn_status status,
                            const tn_error *said, tn_error *err)
{
    if (status == TN_OK)
        return TN_OK;
    tn_error words = *said;
    words.where[sizeof words.where - 1] = words.message[sizeof words.message - 1] = '\0';
    if (status < 0 || status >= TN_STATUS_COUNT)
        return tn_fail(err, TN_INTERNAL, words.native_code, where,
                       "%s gave the status %d, which does not exist", device->id, (int)status);
    if (status == TN_DEVICE_LOST)
        keep_loss(device, where, &words);
    tni_words_clean(words.message);
    return tn_fail(err, status, words.native_code, words.where[0] ? words.where : where, "%s: %s",
                   device->id, tni_words_of(&words));
}

tn_status tni_device_or_default(tn_device *device, tn_device **out, tn_error *err)
{
    if (!device)
        return tn_device_default(out, err);
    *out = device;
    return TN_OK;
}

tn_status tn_device_health(const tn_device *device, tn_error *err)
{
    tni_call call;
    return tni_device_open(device, "tn_device_health", &call, err);
}

tn_status tn_device_reset(tn_device *device, tn_error *err)
{
    static const char where[] = "tn_device_reset";
    tn_error said = {0};
    tni_call call;
    tn_status status = tni_device_open(device, where, &call, err);
    if (status && status != TN_DEVICE_LOST)
        return status;
    const tn_platform_row *row = device->offer->platform->row;
    if (!row->device_reset)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "platform %s cannot open a device anew; start the program again",
                       device->platform->name);
    status = row->device_reset(device->offer->platform->self, device->index, &said);
    if (status)
        return tn_fail(err, status, said.native_code, where, "%s: %s", device->id,
                       tni_words_of(&said));
    tni_life_next(device);
    tni_memory_forget(device->memory);
    int32_t was = LOST;
    atomic_compare_exchange_strong(&device->loss->state, &was, WELL);
    return TN_OK;
}
