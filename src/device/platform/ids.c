/* The three numberings of a platform's devices: logical, visible, physical. */
#include "platforms.h"

#include "base/alloc.h"
#include "visible.h"

static const char where[] = "tn_platform_id_convert";

/* State of one conversion. */
typedef struct numbering {
    const tn_platform *platform;
    tni_visible visible;
    const char *variable;
    int32_t devices; /* devices that run; -1 if the platform is not ready: any number is possible */
} numbering;

/* Devices for planning only have logical numbers only. */
static int32_t count_running(const tn_platform *platform)
{
    int32_t count = 0;
    for (int32_t i = 0, all = tn_platform_device_count(platform); i < all; i++) {
        const tn_device *device = tni_devices_of(platform, i);
        count += device && !device->plans_only;
    }
    return count;
}

static void numbering_begin(const tn_platform *platform, numbering *out)
{
    out->platform = platform;
    out->devices = tni_platform_is_ready(platform) ? count_running(platform) : -1;
    tni_visible_parse(tni_platform_visible_value(platform, &out->variable), &out->visible);
}

static tn_status fail_no_device(const numbering *n, const char *kind, int32_t id, const char *why,
                                tn_error *err)
{
    return tn_fail(err, TN_NOT_FOUND, 0, where, "%s has no %s device %d: %s", n->platform->name,
                   kind, (int)id, why);
}

/* Number of visible devices; -1 if unknown. */
static int32_t visible_count(const numbering *n)
{
    return n->devices >= 0 ? n->devices : n->visible.is_set ? (int32_t)n->visible.count : -1;
}

static tn_status visible_to_physical(const numbering *n, int32_t id, int32_t *out, tn_error *err)
{
    char why[160];
    int32_t count = visible_count(n);
    if (id < 0 || (count >= 0 && id >= count)) {
        snprintf(why, sizeof why, "%d are visible%s%s", (int)(count < 0 ? 0 : count),
                 n->visible.is_set ? ", by " : "", n->visible.is_set ? n->variable : "");
        return fail_no_device(n, "visible", id, id < 0 ? "numbers start at 0" : why, err);
    }
    const tn_device *device = n->devices >= 0 ? tni_devices_of(n->platform, id) : NULL;
    const tn_device_properties *told = device ? tni_device_known(device) : NULL;
    if (told && !(told->known & TN_DEVICE_KNOWS(physical_index)))
        told = tn_device_properties_get(device);
    if (told && told->known & TN_DEVICE_KNOWS(physical_index)) {
        *out = (int32_t)told->physical_index;
        return TN_OK;
    }
    if (n->visible.is_set && (size_t)id < n->visible.count) {
        const tni_visible_entry *entry = &n->visible.entries[id];
        if (entry->number < 0)
            return tn_fail(err, TN_UNSUPPORTED, 0, where,
                           "visible device %d of %s is %s by UUID, and its physical number "
                           "is unknown",
                           (int)id, n->platform->name, entry->uuid);
        *out = entry->number;
        return TN_OK;
    }
    *out = id;
    return TN_OK;
}

static tn_status physical_to_visible(const numbering *n, int32_t id, int32_t *out, tn_error *err)
{
    int32_t count = visible_count(n);
    bool untold = false;
    for (int32_t i = 0; i < count; i++) {
        int32_t physical = -1;
        tn_status status = visible_to_physical(n, i, &physical, NULL);
        untold = untold || status == TN_UNSUPPORTED;
        if (status == TN_OK && physical == id) {
            *out = i;
            return TN_OK;
        }
    }
    if (id < 0)
        return fail_no_device(n, "physical", id, "numbers start at 0", err);
    if (untold)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "%s lists devices by UUID, and their physical numbers are unknown",
                       n->variable);
    if (count >= 0)
        return fail_no_device(n, "visible", id,
                              n->visible.is_set ? "the variable that selects devices hides it"
                                                : "there are fewer devices",
                              err);
    *out = id;
    return TN_OK;
}

static tn_status logical_to_physical(const numbering *n, int32_t id, int32_t *out, tn_error *err)
{
    tni_platforms *set = n->platform->set;
    tni_mutex_lock(&set->lock);
    bool assigned = n->platform->assigned != NULL;
    size_t count = n->platform->assigned_count;
    int32_t physical = assigned && id >= 0 && (size_t)id < count ? n->platform->assigned[id] : -1;
    tni_mutex_unlock(&set->lock);
    if (!assigned)
        return visible_to_physical(n, id, out, err);
    if (physical < 0)
        return fail_no_device(n, "logical", id, "the program assigned fewer", err);
    *out = physical;
    return TN_OK;
}

static tn_status physical_to_logical(const numbering *n, int32_t id, int32_t *out, tn_error *err)
{
    tni_platforms *set = n->platform->set;
    int32_t found = -1;
    tni_mutex_lock(&set->lock);
    bool assigned = n->platform->assigned != NULL;
    for (size_t i = 0; assigned && i < n->platform->assigned_count && found < 0; i++)
        found = n->platform->assigned[i] == id ? (int32_t)i : -1;
    tni_mutex_unlock(&set->lock);
    if (!assigned)
        return physical_to_visible(n, id, out, err);
    if (found < 0)
        return fail_no_device(n, "logical", id, "the program did not assign it", err);
    *out = found;
    return TN_OK;
}

static tn_status to_physical(const numbering *n, int32_t space, int32_t id, int32_t *out,
                             tn_error *err)
{
    switch (space) {
    case TN_ID_LOGICAL: return logical_to_physical(n, id, out, err);
    case TN_ID_VISIBLE: return visible_to_physical(n, id, out, err);
    default:
        *out = id;
        return id < 0 ? fail_no_device(n, "physical", id, "numbers start at 0", err) : TN_OK;
    }
}

static tn_status from_physical(const numbering *n, int32_t space, int32_t id, int32_t *out,
                               tn_error *err)
{
    switch (space) {
    case TN_ID_LOGICAL: return physical_to_logical(n, id, out, err);
    case TN_ID_VISIBLE: return physical_to_visible(n, id, out, err);
    default: *out = id; return TN_OK;
    }
}

tn_status tn_platform_id_convert(const tn_platform *platform, int32_t from_space, int32_t id,
                                 int32_t to_space, int32_t *out, tn_error *err)
{
    numbering n;
    int32_t physical = -1, result = -1;
    if (!out || from_space < TN_ID_LOGICAL || from_space > TN_ID_PHYSICAL ||
        to_space < TN_ID_LOGICAL || to_space > TN_ID_PHYSICAL)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       out ? "expected the spaces TN_ID_LOGICAL, _VISIBLE or _PHYSICAL"
                           : "out is NULL");
    if (!platform || !platform->set)
        return tni_platform_unready(tn_platform_unspecified(), where, err);
    numbering_begin(platform, &n);
    tn_status status = to_physical(&n, from_space, id, &physical, err);
    if (!status)
        status = from_physical(&n, to_space, physical, &result, err);
    if (!status)
        *out = result;
    return status;
}

static tn_status check_assignment(const int32_t *physical, size_t count, tn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (physical[i] < 0)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_platform_ids_assign",
                           "physical[%zu]: expected 0 or more, got %d", i, (int)physical[i]);
        for (size_t j = 0; j < i; j++) {
            if (physical[j] == physical[i])
                return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_platform_ids_assign",
                               "physical[%zu] and physical[%zu] are both %d", j, i,
                               (int)physical[i]);
        }
    }
    return TN_OK;
}

tn_status tn_platform_ids_assign(const tn_platform *platform, const int32_t *physical, size_t count,
                                 tn_error *err)
{
    static const char here[] = "tn_platform_ids_assign";
    if (!physical)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, here, "physical is NULL");
    if (count == 0 || count > TNI_VISIBLE_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, here, "expected 1 to %d numbers, got %zu",
                       TNI_VISIBLE_MAX, count);
    if (!platform || !platform->set)
        return tni_platform_unready(tn_platform_unspecified(), here, err);
    tn_status status = check_assignment(physical, count, err);
    if (status)
        return status;
    int32_t *copy = tni_alloc(count * sizeof *copy);
    if (!copy)
        return tni_no_memory(err, here, "the numbers");
    memcpy(copy, physical, count * sizeof *copy);
    tn_platform *target = tni_platforms_same(platform);
    tni_mutex_lock(&target->set->lock);
    if (!target->assigned) {
        target->assigned = copy;
        target->assigned_count = count;
        copy = NULL;
    } else if (target->assigned_count != count ||
               memcmp(target->assigned, physical, count * sizeof *physical) != 0) {
        status = tn_fail(err, TN_ALREADY_EXISTS, 0, here,
                         "the devices of %s were already assigned differently", target->name);
    }
    tni_mutex_unlock(&target->set->lock);
    tni_release(copy);
    return status;
}
