/* What is known of one device, and what follows from it. */
#include "base/words.h"
#include "device/platform/platforms.h"
#include "tenon/dtype.h"

const tn_platform *tn_device_platform(const tn_device *device)
{
    return device ? device->platform : tn_platform_unspecified();
}

int32_t tn_device_index(const tn_device *device)
{
    return device ? device->index : -1;
}

const char *tn_device_id(const tn_device *device)
{
    return device ? device->id : "";
}

const char *tn_device_name(const tn_device *device)
{
    return device ? device->properties.name : "";
}

const char *tn_device_uuid(const tn_device *device)
{
    return device ? device->properties.uuid : "";
}

const char *tn_device_bus(const tn_device *device)
{
    return device ? device->properties.bus : "";
}

const char *tn_device_origin(const tn_device *device)
{
    return device ? device->origin : "";
}

int32_t tn_device_plans_only(const tn_device *device)
{
    return device && device->plans_only;
}

tn_generator *tn_device_generator(const tn_device *device)
{
    return device ? device->generator : NULL;
}

const tn_device_properties *tn_device_properties_get(const tn_device *device)
{
    return device ? &device->properties : NULL;
}

static tn_status no_device(const char *where, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
}

static void tidy(tn_fact *fact)
{
    fact->known = fact->known != 0;
    if (!fact->known)
        fact->value = 0;
    fact->origin[sizeof fact->origin - 1] = '\0';
    tni_words_clean(fact->origin);
}

/* What a device tells of its memory when nothing can be asked. */
static void memory_untold(const tn_device *device, const char *why, tn_device_memory *out)
{
    bool total = device->properties.known & TN_DEVICE_KNOWS(memory_bytes);
    out->total =
        total ? tn_fact_of(device->properties.memory_bytes, device->origin) : tn_fact_unknown(why);
    out->available = tn_fact_unknown(why);
    out->in_use = tn_fact_unknown(why);
}

static tn_status ask_memory(const tn_device *device, tn_device_memory *out, tn_error *err)
{
    static const char where[] = "tn_device_memory_get";
    tni_call call;
    tn_error said = {0};
    tn_status status = tni_device_open(device, where, &call, err);
    if (!status)
        status = tni_device_settle(
            device, where, call.row->device_memory(call.self, call.device, out, &said), &said, err);
    return status;
}

tn_status tn_device_memory_get(const tn_device *device, tn_device_memory *out, tn_error *err)
{
    static const char where[] = "tn_device_memory_get";
    tn_device_memory read = {.struct_size = sizeof read};
    if (!device)
        return no_device(where, err);
    if (!out || !TN_HAS(out, tn_device_memory, in_use))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    if (device->plans_only) {
        memory_untold(device, "the device is described for planning only", &read);
    } else if (!device->offer->platform->row->device_memory) {
        memory_untold(device, "its platform does not tell", &read);
    } else {
        tn_status status = ask_memory(device, &read, err);
        if (status)
            return status;
    }
    tidy(&read.total);
    tidy(&read.available);
    tidy(&read.in_use);
    out->total = read.total;
    out->available = read.available;
    out->in_use = read.in_use;
    return TN_OK;
}

tn_status tn_device_capability(const tn_device *device, tn_capability *out, tn_error *err)
{
    static const char where[] = "tn_device_capability";
    if (!device)
        return no_device(where, err);
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (!(device->properties.known & TN_DEVICE_KNOWS(capability)))
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "%s has no capability: platform %s does not number its generations",
                       device->id, device->platform->name);
    *out = device->properties.capability;
    return TN_OK;
}

int32_t tn_device_has_capability(const tn_device *device, tn_capability least)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) && tn_capability_compare(has, least) >= 0;
}

int32_t tn_device_has_capability_int(const tn_device *device, int32_t least)
{
    return tn_device_has_capability(device, tn_capability_from_int(least));
}

int32_t tn_device_is_capability(const tn_device *device, tn_capability same)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) && tn_capability_compare(has, same) == 0;
}

int32_t tn_device_is_capability_int(const tn_device *device, int32_t same)
{
    return tn_device_is_capability(device, tn_capability_from_int(same));
}

int32_t tn_device_is_capability_family(const tn_device *device, int32_t number)
{
    tn_capability has = {0};
    return !tn_device_capability(device, &has, NULL) &&
           tn_capability_same_family(has, tn_capability_from_int(number));
}

const tn_dtype *tn_device_supported_dtypes(const tn_device *device)
{
    static const tn_dtype none[] = {0};
    return device ? device->properties.dtypes : none;
}

tn_status tn_device_verify_dtype(const tn_device *device, tn_dtype dtype, tn_error *err)
{
    static const char where[] = "tn_device_verify_dtype";
    char there[256] = "";
    size_t used = 0;
    const char *asked = tn_dtype_name(dtype);
    if (!device)
        return no_device(where, err);
    if (!asked)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%#x is no dtype", (unsigned)dtype);
    const tn_dtype *dtypes = device->properties.dtypes;
    for (size_t i = 0; dtypes[i]; i++) {
        const char *word = tn_dtype_name(dtypes[i]);
        if (dtypes[i] == dtype)
            return TN_OK;
        if (used < sizeof there)
            used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", used ? ", " : "",
                                     word ? word : "?");
    }
    return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s does not compute with %s; it does with %s",
                   device->id, asked, there[0] ? there : "what its platform does not tell");
}

tn_dtype tn_device_fp8_dtype(const tn_device *device)
{
    const tn_dtype *dtypes = tn_device_supported_dtypes(device);
    for (size_t i = 0; dtypes[i]; i++) {
        if (dtypes[i] == TN_F8_E4M3FN || dtypes[i] == TN_F8_E4M3FNUZ || dtypes[i] == TN_F8_E5M2 ||
            dtypes[i] == TN_F8_E5M2FNUZ)
            return dtypes[i];
    }
    return 0;
}

int32_t tn_device_supports_fp8(const tn_device *device)
{
    return tn_device_fp8_dtype(device) != 0;
}

int32_t tn_device_is_fp8_fnuz(const tn_device *device)
{
    tn_dtype dtype = tn_device_fp8_dtype(device);
    return dtype == TN_F8_E4M3FNUZ || dtype == TN_F8_E5M2FNUZ;
}

tn_status tn_device_link(const tn_device *from, const tn_device *to, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_device_link";
    int32_t link = TN_LINK_UNKNOWN;
    if (!from || !to)
        return no_device(where, err);
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (from->platform != to->platform || from == to)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s and %s are not two devices of one platform", from->id, to->id);
    if (from->plans_only || to->plans_only || !from->offer->platform->row->device_link)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "how %s and %s are joined is not told",
                       from->id, to->id);
    tni_call call;
    tn_error said = {0};
    tn_status status = tni_device_open(from, where, &call, err);
    if (!status)
        status = tni_device_settle(
            from, where, call.row->device_link(call.self, call.device, to->index, &link, &said),
            &said, err);
    if (!status && (link <= TN_LINK_UNKNOWN || link > TN_LINK_FABRIC))
        status = tn_fail(err, TN_UNSUPPORTED, 0, where, "how %s and %s are joined is unknown",
                         from->id, to->id);
    if (!status)
        *out = link;
    return status;
}

tn_status tn_platform_is_fully_connected(const tn_platform *platform, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_platform_is_fully_connected";
    const tn_platform *p = platform ? platform : tn_platform_unspecified();
    int32_t count = tn_platform_device_count(p), all = 1;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (count == 0)
        return tni_platform_empty(p, where, err);
    for (int32_t i = 0; i < count * count; i++) {
        const tn_device *from = tni_devices_of(p, i / count), *to = tni_devices_of(p, i % count);
        int32_t link = TN_LINK_UNKNOWN;
        if (from == to || !from || !to || from->plans_only || to->plans_only)
            continue;
        tn_status status = tn_device_link(from, to, &link, err);
        if (status)
            return status;
        all = all && link == TN_LINK_FABRIC;
    }
    *out = all;
    return TN_OK;
}
