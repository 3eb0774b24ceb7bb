/* The links between the devices of a platform. */
#include "device/platform/platforms.h"

tn_status tn_device_link(const tn_device *from, const tn_device *to, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_device_link";
    int32_t link = TN_LINK_UNKNOWN;
    if (!from || !to)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (from->platform != to->platform || from == to)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s and %s are not two devices of one platform", from->id, to->id);
    if (from->plans_only || to->plans_only || !from->offer->platform->row->device_link)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "the link between %s and %s is not reported",
                       from->id, to->id);
    tni_call call;
    tn_error said = {0};
    tn_status status = tni_device_open(from, where, &call, err);
    if (!status)
        status = tni_device_result_check(
            &call, where, call.row->device_link(call.self, call.device, to->index, &link, &said),
            &said, err);
    if (!status && (link <= TN_LINK_UNKNOWN || link > TN_LINK_FABRIC))
        status = tn_fail(err, TN_UNSUPPORTED, 0, where, "the link between %s and %s is unknown",
                         from->id, to->id);
    if (!status)
        *out = link;
    return status;
}

/* Sets *all to 0 at the first device below `count` to which it has no direct link. */
static tn_status joins_all(const tn_device *from, int32_t count, int32_t *all, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; !status && *all && i < count; i++) {
        const tn_device *to = tni_devices_of(from->platform, i);
        int32_t link = TN_LINK_UNKNOWN;
        if (!to || to == from || to->plans_only)
            continue;
        status = tn_device_link(from, to, &link, err);
        *all = status || link == TN_LINK_FABRIC;
    }
    return status;
}

tn_status tn_platform_is_fully_connected(const tn_platform *platform, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_platform_is_fully_connected";
    const tn_platform *p = tni_platform_or_unspecified(platform);
    int32_t count = tn_platform_device_count(p), all = 1;
    tn_status status = TN_OK;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (count == 0)
        return tni_platform_empty(p, where, err);
    for (int32_t i = 0; !status && all && i < count; i++) {
        const tn_device *from = tni_devices_of(p, i);
        if (from && !from->plans_only)
            status = joins_all(from, count, &all, err);
    }
    if (!status)
        *out = all;
    return status;
}
