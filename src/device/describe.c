/* Devices from a description file: run by a platform that can be given devices, or for planning. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/words.h"
#include "device/platform/platforms.h"

/* Devices of one file, made before the first of them is seen. */
typedef struct described {
    tni_platforms *set;
    const char *file;
    tni_pointers devices;
} described;

static void discard(described *d)
{
    for (size_t i = 0; i < d->devices.count; i++)
        tni_device_destroy(d->devices.items[i]);
    tni_release(d->devices.items);
}

static tn_status check_entries(const tni_description *description, tn_error *err)
{
    if (description->view.entry_count == 0)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_device_file_add",
                   "%s: %s is for a platform that runs described devices, and %s serves for "
                   "planning only; use platform = described, or leave it out",
                   description->view.origin, description->view.entries[0].key,
                   description->platform);
}

static tn_status taken(described *d, const tni_description *description, tn_error *err)
{
    tn_device *other = NULL;
    const char *name = description->view.name;
    for (size_t i = 0; name[0] && i < d->devices.count && !other; i++) {
        tn_device *device = d->devices.items[i];
        other = strcmp(device->section, name) == 0 ? device : NULL;
    }
    if (!other && (!name[0] || tni_devices_get(d->set, name, &other, NULL) != TN_OK))
        return TN_OK;
    return tn_fail(err, TN_ALREADY_EXISTS, 0, "tn_device_file_add",
                   "%s: there is a device called \"%s\" already: %s", description->view.origin,
                   name, other->id);
}

/* The number a device of the platform would get, behind those there are and those of this file. */
static int32_t next_index(const described *d, const tn_platform *platform)
{
    int32_t index = tn_platform_device_count(platform);
    for (size_t i = 0; i < d->devices.count; i++)
        index += ((const tn_device *)d->devices.items[i])->platform == platform;
    return index;
}

static tn_status add_one(described *d, const tni_description *description, tn_error *err)
{
    tn_platform *platform;
    tn_device *device = NULL;
    tn_error why;
    tn_status status = tni_platforms_find(d->set, description->platform, &platform, &why);
    if (status)
        return tn_fail(err, status, 0, "tn_device_file_add", "%s: %s", description->view.origin,
                       why.message);
    const tn_platform_row *row = tni_platform_row_of(platform);
    bool runs = row && row->describe && tni_platform_is_ready(platform);
    status = taken(d, description, err);
    if (!status && !runs)
        status = check_entries(description, err);
    if (!status)
        status = tni_device_create(NULL, platform, next_index(d, platform),
                                   &description->properties, &device, err);
    if (status)
        return status;
    tni_buffer origin = {0};
    tni_buffer_format(&origin, "described in %s", d->file);
    tni_release(device->origin);
    device->origin = tni_buffer_take(&origin);
    device->plans_only = !runs;
    tn_text_fit(device->section, sizeof device->section, description->view.name);
    d->devices.items[d->devices.count++] = device;
    return device->origin ? TN_OK : tni_no_memory(err, "tn_device_file_add", "an origin");
}

/* Hands each to the platform that runs it. What was handed over cannot be taken back, so this comes
 * last; when one is refused, those of the same file before it stay in their platform, unseen. */
static tn_status hand_over(described *d, const tni_descriptions *descriptions, tn_error *err)
{
    for (size_t i = 0; i < d->devices.count; i++) {
        tn_device *device = d->devices.items[i];
        const tni_offer *offer = atomic_load(&device->platform->served);
        int32_t index = device->index;
        tn_error why = {0};
        if (device->plans_only)
            continue;
        const tn_description *view = &tni_descriptions_get(descriptions, i)->view;
        tn_status status =
            offer->platform->row->describe(offer->platform->self, view, &index, &why);
        if (status)
            return tn_fail(err, status, 0, "tn_device_file_add", "%s: %s", view->origin,
                           tni_words_of(&why));
        if (index != device->index && tni_devices_of(device->platform, index))
            return tn_fail(err, TN_CORRUPT, 0, "tn_device_file_add",
                           "%s: platform %s gave it the number %d, which another device has",
                           view->origin, device->platform->name, (int)index);
        device->index = index;
        snprintf(device->id, sizeof device->id, "%s:%d", device->platform->name, (int)index);
    }
    return TN_OK;
}

/* Makes them visible, all at once. */
static tn_status publish(described *d, tn_error *err)
{
    tni_platforms *set = d->set;
    tni_mutex_lock(&set->lock);
    bool fits = tni_pointers_reserve(&set->devices, d->devices.count);
    for (size_t i = 0; fits && i < d->devices.count; i++) {
        tn_device *device = d->devices.items[i];
        set->devices.items[set->devices.count++] = device;
        device->platform->device_count++;
    }
    tni_mutex_unlock(&set->lock);
    if (!fits)
        return tni_no_memory(err, "tn_device_file_add", "the list of devices");
    d->devices.count = 0;
    return TN_OK;
}

tn_status tni_devices_describe(tni_platforms *set, const tni_descriptions *descriptions,
                               const char *file, tn_error *err)
{
    described d = {.set = set, .file = file};
    size_t count = tni_descriptions_count(descriptions);
    if (tni_log_inside())
        return tn_fail(err, TN_BUSY, 0, "tn_device_file_add", "a log sink cannot add devices");
    tni_mutex_lock(&set->describing);
    tn_status status = tni_platforms_sync(set, err);
    if (!status && !tni_pointers_reserve(&d.devices, count))
        status = tni_no_memory(err, "tn_device_file_add", "the devices");
    for (size_t i = 0; !status && i < count; i++)
        status = add_one(&d, tni_descriptions_get(descriptions, i), err);
    if (!status)
        status = hand_over(&d, descriptions, err);
    if (!status)
        status = publish(&d, err);
    tni_mutex_unlock(&set->describing);
    discard(&d);
    return status;
}

tn_status tn_device_file_add(const char *path, tn_error *err)
{
    tni_platforms *set;
    tni_descriptions *descriptions = NULL;
    if (!path)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_device_file_add", "path is NULL");
    tn_status status = tni_platforms_process(&set, err);
    if (!status)
        status = tni_descriptions_read(path, &descriptions, err);
    if (!status)
        status = tni_devices_describe(set, descriptions, path, err);
    tni_descriptions_release(descriptions);
    return status;
}
