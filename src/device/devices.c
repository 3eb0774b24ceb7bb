/* Devices: found by name, by number and by conditions. */
#include "base/words.h"
#include "device/platform/platforms.h"
#include "device/select.h"

/* If two devices have the same UUID or bus address, one is described and one runs, because its
 * module was loaded later. The running one is preferred. */
static tn_device *prefer_running(tn_device *found, tn_device *other)
{
    return !found || (found->plans_only && !other->plans_only) ? other : found;
}

tn_device *tni_devices_of(const tn_platform *platform, int32_t index)
{
    tn_device *found = NULL;
    if (!platform->set)
        return NULL;
    tni_mutex_lock(&platform->set->lock);
    const tni_pointers *devices = &platform->set->devices;
    for (size_t i = 0; i < devices->count && !found; i++) {
        tn_device *device = devices->items[i];
        if (device->platform == platform && device->index == index && tni_device_is_visible(device))
            found = device;
    }
    tni_mutex_unlock(&platform->set->lock);
    return found;
}

/* A bus address may have more leading zeros: 0000:3b:00.0 is 00000000:3b:00.0. */
static const char *without_zeros(const char *bus)
{
    while (bus[0] == '0' && bus[1] == '0')
        bus++;
    return bus;
}

bool tni_properties_are_called(const tn_device_properties *p, const char *name)
{
    return (p->uuid[0] && tni_words_same(p->uuid, name)) ||
           (p->bus[0] && tni_words_same(without_zeros(p->bus), without_zeros(name)));
}

bool tni_device_is_called(const tn_device *device, const char *name)
{
    return strcmp(device->id, name) == 0 ||
           (device->index == 0 && strcmp(device->platform->name, name) == 0) ||
           (device->section[0] && strcmp(device->section, name) == 0) ||
           tni_properties_are_called(&device->properties, name);
}

enum { MOST_NAMED = 256 };

/* The visible devices, for a message: "cpu:0 (Xeon), cuda:0 (H200, for planning only)". */
typedef struct roll {
    char text[224];
    const char *ids[MOST_NAMED];
    size_t count;
} roll;

static void name_one(const tn_device *device, size_t *used, roll *out)
{
    const char *name = device->properties.name;
    const char *plans = device->plans_only ? "for planning only" : "";
    bool more = name[0] || plans[0];
    if (*used < sizeof out->text)
        *used += (size_t)snprintf(out->text + *used, sizeof out->text - *used, "%s%s%s%s%s%s%s",
                                  out->count ? ", " : "", device->id, more ? " (" : "", name,
                                  name[0] && plans[0] ? ", " : "", plans, more ? ")" : "");
    out->ids[out->count++] = device->id;
}

static void call_roll(tni_platforms *set, roll *out)
{
    size_t used = 0;
    out->count = 0;
    tn_text_fit(out->text, sizeof out->text, "none");
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count && out->count < MOST_NAMED; i++) {
        if (tni_device_is_visible(set->devices.items[i]))
            name_one(set->devices.items[i], &used, out);
    }
    tni_mutex_unlock(&set->lock);
}

static tn_status no_such(tni_platforms *set, const char *name, tn_error *err)
{
    roll present;
    char hint[TNI_HINT];
    call_roll(set, &present);
    const char *nearest = tni_words_nearest(name, present.ids, present.count);
    return tn_fail(err, TN_NOT_FOUND, 0, "tn_device_get", "no device \"%.60s\"; present: %s%s",
                   name, present.text, tni_words_hint(nearest, hint));
}

/* For a known platform without devices, returns its verdict; otherwise the name is not found. */
static tn_status why_not(tni_platforms *set, const char *name, tn_error *err)
{
    char word[64];
    tn_platform *platform;
    size_t length = strcspn(name, ":");
    if (length > 0 && length < sizeof word) {
        memcpy(word, name, length);
        word[length] = '\0';
        if (tni_platforms_find(set, word, &platform, NULL) == TN_OK &&
            tn_platform_device_count(platform) == 0)
            return tni_platform_empty(platform, "tn_device_get", err);
    }
    return no_such(set, name, err);
}

/* Of two devices that meet the conditions, the better is that of the current platform, else of the
 * platform with the lower rank, else the one with more memory, else the first. */
static bool is_better(const tn_device *a, const tn_device *b, const tn_platform *current)
{
    int32_t rank_a = tni_platform_rank(a->platform), rank_b = tni_platform_rank(b->platform);
    if ((a->platform == current) != (b->platform == current))
        return a->platform == current;
    if (rank_a != rank_b)
        return rank_a < rank_b;
    return tni_device_known(a)->memory_bytes > tni_device_known(b)->memory_bytes;
}

/* The first condition that no running device meets, or NULL if each is met by some device.
 * *out_planned is a device that would match if it were not for planning only. */
static const tni_select_term *find_unmet(tni_platforms *set, const tni_select_terms *conditions,
                                         const tn_device **out_planned)
{
    const tni_select_term *unmet = NULL;
    tni_mutex_lock(&set->lock);
    for (size_t c = conditions->count; c-- > 0;) {
        bool is_met = false;
        for (size_t i = 0; i < set->devices.count; i++) {
            const tn_device *device = set->devices.items[i];
            if (!tni_device_is_visible(device))
                continue;
            if (device->plans_only && tni_select_meets(device, conditions))
                *out_planned = device;
            is_met = is_met ||
                     (!device->plans_only && tni_select_meets_one(device, &conditions->items[c]));
        }
        if (!is_met)
            unmet = &conditions->items[c];
    }
    tni_mutex_unlock(&set->lock);
    return unmet;
}

/* Fails if a condition names a platform that is unknown or has no device. */
static tn_status check_platforms(tni_platforms *set, const char *text,
                                 const tni_select_terms *conditions, tn_error *err)
{
    for (size_t i = 0; i < conditions->count; i++) {
        const char *name = tni_select_platform(&conditions->items[i]);
        tn_platform *platform = NULL;
        tn_error why;
        if (!name)
            continue;
        if (tni_platforms_find(set, name, &platform, &why))
            return tn_fail(err, why.status, 0, "tn_device_get", "in \"%.60s\": %s", text,
                           why.message);
        if (conditions->items[i].op == TNI_SELECT_EQ && tn_platform_device_count(platform) == 0)
            return tni_platform_empty(platform, "tn_device_get", err);
    }
    return TN_OK;
}

/* Explains why no device is selected: the platform's verdict, or the condition that is not met. */
static tn_status none_meets(tni_platforms *set, const char *text,
                            const tni_select_terms *conditions, tn_error *err)
{
    roll present;
    const tn_device *planned = NULL;
    tn_status status = check_platforms(set, text, conditions, err);
    if (status)
        return status;
    const tni_select_term *unmet = find_unmet(set, conditions, &planned);
    call_roll(set, &present);
    if (planned)
        return tn_fail(
            err, TN_NOT_FOUND, 0, "tn_device_get",
            "\"%.60s\": %s is skipped because it is for planning only, and no other device "
            "matches; present: %s",
            text, planned->id, present.text);
    return tn_fail(err, TN_NOT_FOUND, 0, "tn_device_get",
                   "no device matches %s%s%s in \"%.60s\"; present: %s", unmet ? "\"" : "",
                   unmet ? unmet->text : "all conditions together", unmet ? "\"" : "", text,
                   present.text);
}

/* The best running device that meets the conditions, and the best lost one, which is used only if
 * there is no other and it was reset since. */
typedef struct finalists {
    tn_device *best;
    tn_device *lost;
} finalists;

/* Queries the properties that the conditions need, and the memory if that decides between several
 * devices. */
static void query_one(const tn_device *device, const tni_select_terms *conditions,
                      const tn_platform *current)
{
    tni_select_query(device, conditions);
    if (tn_platform_device_count(device->platform) > 1 &&
        (conditions->count ? tni_select_meets(device, conditions) : device->platform == current))
        (void)tni_device_described(device);
}

/* Devices live as long as their set. */
static void query_all(tni_platforms *set, const tni_select_terms *conditions,
                      const tn_platform *current)
{
    const tn_device *device = NULL;
    size_t i = 0;
    do {
        tni_mutex_lock(&set->lock);
        device = i < set->devices.count ? set->devices.items[i] : NULL;
        tni_mutex_unlock(&set->lock);
        if (device && tni_device_is_visible(device))
            query_one(device, conditions, current);
        i++;
    } while (device);
}

static finalists compare_all(tni_platforms *set, const tni_select_terms *conditions,
                             const tn_platform *current)
{
    finalists out = {NULL, NULL};
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count; i++) {
        tn_device *device = set->devices.items[i];
        bool fits = tni_device_is_visible(device) && !device->plans_only &&
                    (conditions->count ? tni_select_meets(device, conditions)
                                       : device->platform == current);
        tn_device **leads = tni_device_is_lost(device) ? &out.lost : &out.best;
        if (fits && (!*leads || is_better(device, *leads, current)))
            *leads = device;
    }
    tni_mutex_unlock(&set->lock);
    return out;
}

/* "best" alone selects from the current platform. */
static tn_status select_device(tni_platforms *set, const char *text, tn_device **out, tn_error *err)
{
    tni_select_terms conditions;
    const tn_platform *current = NULL;
    tni_call call;
    tn_status status = tni_select_parse(text, &conditions, err);
    if (!status)
        status = tni_platforms_current(set, &current, conditions.count ? NULL : err);
    if (status && (status == TN_INVALID_ARGUMENT || conditions.count == 0))
        return status;
    query_all(set, &conditions, current);
    if (conditions.count)
        tni_platforms_weigh(set);
    finalists found = compare_all(set, &conditions, current);
    if (!found.best && found.lost) {
        status = tni_device_open(found.lost, "tn_device_get", &call, err);
        if (status)
            return status;
        found.best = found.lost;
    }
    if (!found.best)
        return conditions.count ? none_meets(set, text, &conditions, err)
                                : tni_platform_empty(current, "tn_device_get", err);
    *out = found.best;
    return TN_OK;
}

tn_status tni_devices_get(tni_platforms *set, const char *name, tn_device **out, tn_error *err)
{
    tn_device *found = NULL;
    tn_status status = tni_platforms_sync(set, err);
    if (status)
        return status;
    if (tni_select_is(name))
        return select_device(set, name, out, err);
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count; i++) {
        tn_device *device = set->devices.items[i];
        if (tni_device_is_visible(device) && tni_device_is_called(device, name))
            found = prefer_running(found, device);
    }
    tni_mutex_unlock(&set->lock);
    if (!found)
        return why_not(set, name, err);
    *out = found;
    return TN_OK;
}

tn_status tn_device_get(const char *name, tn_device **out, tn_error *err)
{
    tni_platforms *set;
    if (!name || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_device_get", "%s is NULL",
                       name ? "out" : "name");
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_devices_get(set, name, out, err);
}

tn_status tn_device_count(size_t *out, tn_error *err)
{
    tni_platforms *set;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_device_count", "out is NULL");
    tn_status status = tni_platforms_process(&set, err);
    if (!status)
        status = tni_platforms_sync(set, err);
    if (status)
        return status;
    size_t count = 0;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count; i++)
        count += tni_device_is_visible(set->devices.items[i]);
    tni_mutex_unlock(&set->lock);
    *out = count;
    return TN_OK;
}

tn_device *tn_device_at(size_t index)
{
    tni_platforms *set;
    tn_device *device = NULL;
    if (tni_platforms_process(&set, NULL))
        return NULL;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count && !device; i++) {
        tn_device *visible = set->devices.items[i];
        if (tni_device_is_visible(visible) && index-- == 0)
            device = visible;
    }
    tni_mutex_unlock(&set->lock);
    return device;
}

tn_status tn_platform_device_get(const tn_platform *platform, int32_t index, tn_device **out,
                                 tn_error *err)
{
    static const char where[] = "tn_platform_device_get";
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    const tn_platform *p = tni_platform_or_unspecified(platform);
    tn_device *device = tni_devices_of(p, index);
    if (!device)
        return tni_platform_no_device(p, index, where, err);
    *out = device;
    return TN_OK;
}
