/* Devices: made when their platform is ready, or from a description; found by name. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/words.h"
#include "device/platform/platforms.h"
#include "device/random/generators.h"

void tni_device_destroy(tn_device *device)
{
    if (!device)
        return;
    tn_generator_release(device->generator);
    tni_release(device->origin);
    tni_release(device);
}

/* What a stranger's function wrote is made text, whatever it is. */
static void tidy(char *text, size_t size)
{
    text[size - 1] = '\0';
    tni_words_clean(text);
}

static void read_properties(const tni_offer *offer, int32_t index, tn_device_properties *out)
{
    const tn_platform_row *row = offer->platform->row;
    tn_error err = {0};
    if (!row->device_properties)
        return;
    tn_status status = row->device_properties(offer->platform->self, index, out, &err);
    out->struct_size = sizeof *out;
    out->dtypes[TN_DEVICE_DTYPES_MAX - 1] = 0;
    tidy(out->name, sizeof out->name);
    tidy(out->uuid, sizeof out->uuid);
    tidy(out->bus, sizeof out->bus);
    tidy(out->architecture, sizeof out->architecture);
    if (status) {
        tni_log(TN_LOG_WARNING, "%s:%d does not tell its properties: %s", row->name, (int)index,
                tni_words_of(&err));
        memset(out, 0, sizeof *out);
        out->struct_size = sizeof *out;
    }
}

tn_status tni_device_create(const tni_offer *offer, tn_platform *platform, int32_t index,
                            const tn_device_properties *properties, tn_device **out, tn_error *err)
{
    tn_device *device = tni_alloc_zeroed(1, sizeof *device);
    if (!device)
        return tni_no_memory(err, "devices", platform->name);
    device->platform = platform;
    device->index = index;
    snprintf(device->id, sizeof device->id, "%s:%d", platform->name, (int)index);
    device->properties.struct_size = sizeof device->properties;
    device->origin = tni_text_copy("found");
    tn_status status = device->origin ? TN_OK : tni_no_memory(err, "devices", device->id);
    if (!status)
        status = tni_generators_add((uint64_t)index, &device->generator, err);
    if (status) {
        tni_device_destroy(device);
        return status;
    }
    if (properties)
        device->properties = *properties;
    else
        read_properties(offer, index, &device->properties);
    *out = device;
    return TN_OK;
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
        if (device->platform == platform && device->index == index)
            found = device;
    }
    tni_mutex_unlock(&platform->set->lock);
    return found;
}

static bool same_letters(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a;
        char y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

static bool is_called(const tn_device *device, const char *name)
{
    const tn_device_properties *p = &device->properties;
    return strcmp(device->id, name) == 0 ||
           (device->index == 0 && strcmp(device->platform->name, name) == 0) ||
           (device->section[0] && strcmp(device->section, name) == 0) ||
           (p->uuid[0] && same_letters(p->uuid, name)) || (p->bus[0] && same_letters(p->bus, name));
}

enum { MOST_NAMED = 256 };

static tn_status no_such(tni_platforms *set, const char *name, tn_error *err)
{
    const char *ids[MOST_NAMED];
    char there[240] = "";
    size_t count = 0, used = 0;
    tni_mutex_lock(&set->lock);
    for (; count < set->devices.count && count < MOST_NAMED; count++) {
        const tn_device *device = set->devices.items[count];
        ids[count] = device->id;
        if (used < sizeof there)
            used +=
                (size_t)snprintf(there + used, sizeof there - used, "%s%s%s%s%s", count ? ", " : "",
                                 device->id, device->properties.name[0] ? " (" : "",
                                 device->properties.name, device->properties.name[0] ? ")" : "");
    }
    tni_mutex_unlock(&set->lock);
    const char *nearest = tni_words_nearest(name, ids, count);
    return tn_fail(err, TN_NOT_FOUND, 0, "tn_device_get", "no device \"%.60s\"; present: %s%s%s%s",
                   name, count ? there : "none", nearest ? "; did you mean " : "",
                   nearest ? nearest : "", nearest ? "?" : "");
}

/* A platform that is known and has no device gives its verdict; anything else is not there. */
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
            return tni_platform_unready(platform, "tn_device_get", err);
    }
    return no_such(set, name, err);
}

tn_status tni_devices_get(tni_platforms *set, const char *name, tn_device **out, tn_error *err)
{
    tn_device *found = NULL;
    tn_status status = tni_platforms_sync(set, err);
    if (status)
        return status;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->devices.count && !found; i++) {
        if (is_called(set->devices.items[i], name))
            found = set->devices.items[i];
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
    tni_mutex_lock(&set->lock);
    *out = set->devices.count;
    tni_mutex_unlock(&set->lock);
    return TN_OK;
}

tn_device *tn_device_at(size_t index)
{
    tni_platforms *set;
    tn_device *device = NULL;
    if (tni_platforms_process(&set, NULL))
        return NULL;
    tni_mutex_lock(&set->lock);
    if (index < set->devices.count)
        device = set->devices.items[index];
    tni_mutex_unlock(&set->lock);
    return device;
}

int32_t tn_platform_device_count(const tn_platform *platform)
{
    int32_t count = 0;
    if (platform && platform->set) {
        tni_mutex_lock(&platform->set->lock);
        count = platform->device_count;
        tni_mutex_unlock(&platform->set->lock);
    }
    return count;
}

tn_status tn_platform_device_get(const tn_platform *platform, int32_t index, tn_device **out,
                                 tn_error *err)
{
    static const char where[] = "tn_platform_device_get";
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    const tn_platform *p = platform ? platform : tn_platform_unspecified();
    tn_device *device = tni_devices_of(p, index);
    int32_t count = tn_platform_device_count(p);
    if (!device && count == 0)
        return tni_platform_unready(p, where, err);
    if (!device)
        return tn_fail(err, TN_NOT_FOUND, 0, where, "no device \"%s:%d\"; %s has %d", p->name,
                       (int)index, p->name, (int)count);
    *out = device;
    return TN_OK;
}
