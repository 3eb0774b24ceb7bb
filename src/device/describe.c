/* Devices from a description file: run by a platform that accepts described devices, or for
 * planning only. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/words.h"
#include "device/platform/platforms.h"
#include "os/fork.h"

static const char where[] = "tn_device_file_add";

/* The devices of one file, all created before the first becomes visible. */
typedef struct described {
    tni_platforms *set;
    const char *file;
    tni_pointers devices;
} described;

static void discard_devices(described *d)
{
    for (size_t i = 0; i < d->devices.count; i++)
        tni_device_destroy(d->devices.items[i]);
    tni_release(d->devices.items);
}

static tn_status check_entries(const tni_description *description, tn_error *err)
{
    if (description->view.entry_count == 0)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: %s needs a platform that runs described devices, but platform %s is for "
                   "planning only; use platform = described, or remove the key",
                   description->view.entries[0].origin, description->view.entries[0].key,
                   description->platform);
}

/* A visible device that answers to `name`; NULL if none exists, or if the name is empty. */
static const tn_device *other_of(const described *d, const char *name)
{
    const tn_device *other = NULL;
    tni_mutex_lock(&d->set->lock);
    for (size_t i = 0; name[0] && i < d->set->devices.count && !other; i++) {
        const tn_device *device = d->set->devices.items[i];
        other = tni_device_is_visible(device) && tni_device_is_called(device, name) ? device : NULL;
    }
    tni_mutex_unlock(&d->set->lock);
    return other;
}

/* A description before the index-th with the same UUID or bus address; NULL if none. */
static const tni_description *find_earlier(const tni_descriptions *all, size_t index,
                                           const char *name)
{
    for (size_t i = 0; name[0] && i < index; i++) {
        const tni_description *other = tni_descriptions_get(all, i);
        if (tni_properties_are_called(&other->properties, name))
            return other;
    }
    return NULL;
}

/* A name, UUID or bus address must denote one device, and no platform. */
static tn_status check_names(const described *d, const tni_descriptions *all, size_t index,
                             tn_error *err)
{
    const tni_description *description = tni_descriptions_get(all, index);
    const char *names[] = {description->view.name, description->properties.uuid,
                           description->properties.bus};
    bool chooses = strcmp(names[0], "best") == 0;
    tn_platform *platform;
    if (chooses || (names[0][0] && tni_platforms_find(d->set, names[0], &platform, NULL) == TN_OK))
        return tn_fail(err, TN_ALREADY_EXISTS, 0, where,
                       "%s: a device cannot have the name \"%s\": %s", description->view.origin,
                       names[0],
                       chooses ? "that word selects a device" : "it is the name of a platform");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tn_device *other = other_of(d, names[i]);
        const tni_description *before = find_earlier(all, index, names[i]);
        if (other || before)
            return tn_fail(err, TN_ALREADY_EXISTS, 0, where,
                           "%s: the device name \"%s\" is already in use: %s",
                           description->view.origin, names[i],
                           other ? other->id : before->view.origin);
    }
    return TN_OK;
}

/* One more than any index of the platform's devices, in the set or in this file. */
static int32_t next_index(described *d, const tn_platform *platform)
{
    int32_t next = 0;
    tni_mutex_lock(&d->set->lock);
    const tni_pointers *lists[] = {&d->set->devices, &d->devices};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            const tn_device *device = lists[l]->items[i];
            if (device->platform == platform && (l == 1 || tni_device_is_visible(device)) &&
                device->index >= next)
                next = device->index + 1;
        }
    }
    tni_mutex_unlock(&d->set->lock);
    return next;
}

/* The module that runs described devices of the platform; NULL: they are for planning only. */
static const tni_offer *runner_of(const tn_platform *platform)
{
    const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
    return offer && tni_offer_is_ready(offer) && offer->platform->row->describe ? offer : NULL;
}

/* Describes one device to the module; if `out_index` is NULL, only asks whether it would accept
 * it. */
static tn_status describe_to_module(const tni_offer *offer, const tn_description *view,
                                    int32_t *out_index, tn_error *err)
{
    tn_error why = {0};
    if (!tni_offer_is_of_this_process(offer))
        return tn_fail(
            err, TN_UNAVAILABLE, 0, where,
            "%s: platform %s was opened before this process was forked and cannot be used "
            "after fork(); start a new process",
            view->origin, offer->owner->name);
    tn_status status = offer->platform->row->describe(offer->platform->self, view, out_index, &why);
    if (!status)
        return TN_OK;
    return tn_fail(err, status, why.native_code, where, "%s", tni_words_of(&why));
}

/* Validates everything about one description, before the first device is created. */
static tn_status check_one(const described *d, const tni_descriptions *all, size_t index,
                           tn_error *err)
{
    const tni_description *description = tni_descriptions_get(all, index);
    tn_platform *platform = NULL;
    tn_error why;
    tn_status status = tni_platforms_find(d->set, description->platform, &platform, &why);
    if (status)
        return tn_fail(err, status, 0, where, "%s: %s", description->platform_origin, why.message);
    status = check_names(d, all, index, err);
    if (status)
        return status;
    const tni_offer *offer = runner_of(platform);
    return offer ? describe_to_module(offer, &description->view, NULL, err)
                 : check_entries(description, err);
}

static tn_status check_index(described *d, const tn_platform *platform, int32_t index,
                             const tn_description *view, tn_error *err)
{
    bool used = tni_devices_of(platform, index) != NULL;
    for (size_t i = 0; i < d->devices.count; i++) {
        const tn_device *device = d->devices.items[i];
        used = used || (device->platform == platform && device->index == index);
    }
    if (index >= 0 && !used)
        return TN_OK;
    return tn_fail(err, TN_CORRUPT, 0, where, "%s: platform %s gave it the number %d, which %s",
                   view->origin, platform->name, (int)index,
                   used ? "belongs to another device" : "is not a device number");
}

static tn_status make_one(described *d, const tni_description *description, tn_error *err)
{
    tn_platform *platform = NULL;
    tn_device *device = NULL;
    tn_status status = tni_platforms_find(d->set, description->platform, &platform, err);
    const tni_offer *offer = status ? NULL : runner_of(platform);
    int32_t index = status ? 0 : next_index(d, platform);
    if (!status && offer)
        status = describe_to_module(offer, &description->view, &index, err);
    if (!status && offer)
        status = check_index(d, platform, index, &description->view, err);
    if (!status)
        status = tni_device_create(offer, platform, index, &description->properties, &device, err);
    if (status)
        return status;
    tni_buffer origin = {0};
    tni_buffer_format(&origin, "described in %s", d->file);
    tni_release(device->origin);
    device->origin = tni_buffer_detach(&origin);
    tn_text_fit(device->section, sizeof device->section, description->view.name);
    device->cpu_features = description->cpu_features;
    d->devices.items[d->devices.count++] = device;
    return device->origin ? TN_OK : tni_no_memory(err, where, "an origin");
}

/* Makes all of them visible at once. */
static tn_status publish(described *d, tn_error *err)
{
    tni_platforms *set = d->set;
    tni_mutex_lock(&set->lock);
    bool fits = tni_devices_reserve(set, d->devices.count);
    for (size_t i = 0; fits && i < d->devices.count; i++) {
        tn_device *device = d->devices.items[i];
        tni_device_publish(set, device);
        tni_platforms_update(set, device->platform);
    }
    tni_mutex_unlock(&set->lock);
    if (!fits)
        return tni_no_memory(err, where, "the list of devices");
    d->devices.count = 0;
    return TN_OK;
}

/* Lets one thread at a time describe devices, without holding a lock that a module's code, a log
 * sink or a fork could need. Returns false if the caller may not wait: inside a log sink, or
 * recursively. */
static bool begin_turn(tni_platforms *set)
{
    uint64_t me = tni_thread_id();
    tni_mutex_lock(&set->lock);
    bool mine = !tni_log_inside();
    while (mine && set->describer && set->describer_fork == tni_fork_generation()) {
        if (set->describer == me)
            mine = false;
        else
            tni_condition_wait(&set->changed, &set->lock);
    }
    if (mine) {
        set->describer = me;
        set->describer_fork = tni_fork_generation();
    }
    tni_mutex_unlock(&set->lock);
    return mine;
}

static void end_turn(tni_platforms *set)
{
    tni_mutex_lock(&set->lock);
    set->describer = 0;
    tni_condition_wake_all(&set->changed);
    tni_mutex_unlock(&set->lock);
}

static tn_status add_all(described *d, const tni_descriptions *descriptions, tn_error *err)
{
    size_t count = tni_descriptions_count(descriptions);
    tn_status status = TN_OK;
    if (!tni_pointers_reserve(&d->devices, count))
        status = tni_no_memory(err, where, "the devices");
    for (size_t i = 0; !status && i < count; i++)
        status = check_one(d, descriptions, i, err);
    for (size_t i = 0; !status && i < count; i++)
        status = make_one(d, tni_descriptions_get(descriptions, i), err);
    return status ? status : publish(d, err);
}

tn_status tni_devices_describe(tni_platforms *set, const tni_descriptions *descriptions,
                               const char *file, tn_error *err)
{
    described d = {.set = set, .file = file};
    tn_status status = tni_platforms_sync(set, err);
    if (status)
        return status;
    if (!begin_turn(set))
        return tn_fail(
            err, TN_BUSY, 0, where,
            "devices cannot be added from a log sink or while a platform is receiving devices");
    status = add_all(&d, descriptions, err);
    end_turn(set);
    discard_devices(&d);
    return status;
}

tn_status tn_device_file_add(const char *path, tn_error *err)
{
    tni_platforms *set;
    tni_descriptions *descriptions = NULL;
    if (!path)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "path is NULL");
    if (!path[0])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "path is empty");
    tn_status status = tni_platforms_process(&set, err);
    if (!status)
        status = tni_descriptions_read(path, &descriptions, err);
    if (!status)
        status = tni_devices_describe(set, descriptions, path, err);
    tni_descriptions_release(descriptions);
    return status;
}
