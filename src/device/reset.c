/* Resets a device, which ends its loss and everything that was allocated or created on it. */
#include "device/platform/platforms.h"
#include "device/stream/epoch.h"
#include "os/fork.h"

/* Lets one thread at a time reset a device, without a lock that its module could need. Returns
 * false if another thread did the reset meanwhile: then it is done. */
static bool begin_reset(const tn_device *device)
{
    tni_platforms *set = device->platform->set;
    tni_loss *loss = device->loss;
    tni_mutex_lock(&set->lock);
    int32_t epoch = tni_device_epoch(device);
    while (loss->resetting && loss->resetting_fork == tni_fork_generation())
        tni_condition_wait(&set->changed, &set->lock);
    bool mine = epoch == tni_device_epoch(device);
    if (mine) {
        loss->resetting = true;
        loss->resetting_fork = tni_fork_generation();
    }
    tni_mutex_unlock(&set->lock);
    return mine;
}

/* If `anew`, starts the next epoch, which ends the loss. */
static void end_reset(tn_device *device, bool anew)
{
    tni_platforms *set = device->platform->set;
    tni_mutex_lock(&set->lock);
    if (anew) {
        tni_device_epoch_next(device);
        atomic_store_explicit(&device->loss->lost, false, memory_order_release);
    }
    device->loss->resetting = false;
    tni_condition_wake_all(&set->changed);
    tni_mutex_unlock(&set->lock);
}

tn_status tn_device_reset(tn_device *device, tn_error *err)
{
    static const char where[] = "tn_device_reset";
    tn_error said = {0};
    tni_call call;
    tn_status status = tni_device_open_for_reset(device, where, &call, err);
    if (status)
        return status;
    if (!call.row->device_reset)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "platform %s cannot reset a device; restart the program",
                       device->platform->name);
    if (!begin_reset(device))
        return TN_OK;
    status = call.row->device_reset(call.self, call.device, &said);
    if (!status)
        tni_memory_forget(device->memory);
    else
        status = tni_device_result_check(&call, where, status, &said, err);
    end_reset(device, !status);
    return status;
}
