/* Taking snapshots of the present platforms. */
#include "snapshot.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/words.h"

tni_snapshot *tni_snapshot_create(size_t platforms, size_t devices)
{
    const size_t align = _Alignof(max_align_t);
    size_t first, second, bytes;
    if (!tni_align_size(sizeof(tni_snapshot), align, &first) ||
        !tni_mul_size(platforms, sizeof(tni_seen_platform), &bytes) ||
        !tni_add_size(first, bytes, &bytes) || !tni_align_size(bytes, align, &second) ||
        !tni_mul_size(devices, sizeof(tni_seen_device), &bytes) ||
        !tni_add_size(second, bytes, &bytes))
        return NULL;
    tni_snapshot *snapshot = tni_alloc_zeroed(1, bytes);
    if (!snapshot)
        return NULL;
    snapshot->platforms = (tni_seen_platform *)(void *)((char *)snapshot + first);
    snapshot->devices = (tni_seen_device *)(void *)((char *)snapshot + second);
    return snapshot;
}

tni_seen_platform *tni_snapshot_platform(const tni_snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->platform_count; i++) {
        if (strcmp(snapshot->platforms[i].name, name) == 0)
            return &snapshot->platforms[i];
    }
    return NULL;
}

const tni_seen_device *tni_snapshot_device(const tni_snapshot *snapshot,
                                           const tni_seen_platform *platform, int32_t index)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const tni_seen_device *device = &snapshot->devices[i];
        if (&snapshot->platforms[device->platform] == platform && device->index == index)
            return device;
    }
    return NULL;
}

static void keep_platform(const tn_platform *platform, tni_seen_platform *out)
{
    tn_text_fit(out->name, sizeof out->name, platform->name);
    out->kind = platform->known->kind;
    atomic_init(&out->current, tn_device_current(platform));
}

/* Devices, and what they point to, live as long as their set. */
static void keep_devices(const tni_pointers *devices, const tni_pointers *platforms,
                         tni_snapshot *into)
{
    for (size_t i = 0; i < devices->count; i++) {
        const tn_device *device = devices->items[i];
        size_t at = 0;
        while (at < platforms->count && platforms->items[at] != device->platform)
            at++;
        if (at == platforms->count)
            continue;
        tni_seen_device *seen = &into->devices[into->device_count++];
        seen->platform = (int32_t)at;
        seen->index = device->index;
        seen->plans_only = device->plans_only;
        seen->properties = *tn_device_properties_get(device);
        seen->properties.struct_size = sizeof seen->properties;
        into->platforms[at].devices++;
    }
}

/* Copies of the current lists of pointers. */
typedef struct lists {
    tni_pointers platforms;
    tni_pointers devices;
} lists;

static bool copy_lists(tni_platforms *set, lists *out)
{
    tni_mutex_lock(&set->lock);
    bool fits = tni_pointers_reserve(&out->platforms, set->platforms.count) &&
                tni_pointers_reserve(&out->devices, set->devices.count);
    for (size_t i = 0; fits && i < set->platforms.count; i++)
        out->platforms.items[out->platforms.count++] = set->platforms.items[i];
    for (size_t i = 0; fits && i < set->devices.count; i++) {
        if (tni_device_is_visible(set->devices.items[i]))
            out->devices.items[out->devices.count++] = set->devices.items[i];
    }
    tni_mutex_unlock(&set->lock);
    return fits;
}

/* Why a platform has no device: the message that a request for one gives. */
static void keep_reason(const tn_platform *platform, tni_seen_platform *out)
{
    tn_error why = {0};
    (void)tni_platform_empty(platform, "tn_worker_snapshot_take", &why);
    tn_text_fit(out->reason, sizeof out->reason, why.message);
    tni_words_clean(out->reason);
    atomic_store(&out->current, -1);
}

/* If the current device is not in the snapshot, the first one becomes current. */
static void choose_current(const tni_pointers *platforms, tni_snapshot *into)
{
    for (size_t i = 0; i < into->platform_count; i++) {
        tni_seen_platform *seen = &into->platforms[i];
        if (seen->devices == 0)
            keep_reason(platforms->items[i], seen);
        else if (!tni_snapshot_device(into, seen, atomic_load(&seen->current)))
            atomic_store(&seen->current, 0);
    }
}

static tn_status fill_snapshot(const lists *now, tni_snapshot **out, tn_error *err)
{
    tni_snapshot *snapshot = tni_snapshot_create(now->platforms.count, now->devices.count);
    if (!snapshot)
        return tni_no_memory(err, "tn_worker_snapshot_take", "the snapshot");
    for (size_t i = 0; i < now->platforms.count; i++)
        keep_platform(now->platforms.items[i], &snapshot->platforms[i]);
    snapshot->platform_count = now->platforms.count;
    keep_devices(&now->devices, &now->platforms, snapshot);
    choose_current(&now->platforms, snapshot);
    *out = snapshot;
    return TN_OK;
}

tn_status tni_snapshot_take(tni_platforms *set, tni_snapshot **out, tn_error *err)
{
    lists now = {0};
    tn_status status = tni_platforms_sync(set, err);
    if (!status && !copy_lists(set, &now))
        status =
            tni_no_memory(err, "tn_worker_snapshot_take", "the lists of platforms and devices");
    if (!status)
        status = fill_snapshot(&now, out, err);
    tni_release(now.platforms.items);
    tni_release(now.devices.items);
    return status;
}
