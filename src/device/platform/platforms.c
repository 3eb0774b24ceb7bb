/* The set of platforms: those that Tenon knows, those that modules offer, and which module serves
 * each. */
#include "platforms.h"

#include "base/alloc.h"
#include "base/log.h"
#include "os/fork.h"

bool tni_pointers_reserve(tni_pointers *list, size_t more)
{
    return tni_array_reserve((void **)&list->items, &list->capacity, list->count,
                             list->count + more, sizeof *list->items);
}

bool tni_devices_reserve(tni_platforms *set, size_t more)
{
    return tni_pointers_reserve(&set->devices, more) && tni_pointers_reserve(&set->ever, more);
}

void tni_device_publish(tni_platforms *set, tn_device *device)
{
    device->ordinal = (int32_t)set->ever.count;
    set->ever.items[set->ever.count++] = device;
    set->devices.items[set->devices.count++] = device;
}

/* Slots are never reused: a thread may still have data in one. */
static int32_t reserve_slot(void)
{
    static _Atomic int32_t next;
    int32_t slot = atomic_fetch_add(&next, 1);
    if (slot < TNI_PLATFORM_SLOTS)
        return slot;
    atomic_store(&next, TNI_PLATFORM_SLOTS);
    return -1;
}

static tn_platform *platform_create(tni_platforms *set, const char *name, int32_t kind)
{
    tn_platform *platform = tni_alloc_zeroed(1, sizeof *platform);
    if (!platform)
        return NULL;
    tn_text_fit(platform->name, sizeof platform->name, name);
    platform->known = tni_known_get(kind);
    platform->set = set;
    platform->slot = reserve_slot();
    atomic_init(&platform->served, NULL);
    atomic_init(&platform->replaced, -1);
    snprintf(platform->no_language, sizeof platform->no_language,
             "no module offers a kernel language for platform %s", platform->name);
    snprintf(platform->no_communicator, sizeof platform->no_communicator,
             "no module offers a communicator for platform %s", platform->name);
    return platform;
}

static void platform_destroy(tn_platform *platform)
{
    if (platform)
        tni_release(platform->assigned);
    tni_release(platform);
}

tn_status tni_platforms_create(tni_registry *registry, const char *root, tni_platforms **out,
                               tn_error *err)
{
    tni_platforms *set = tni_alloc_zeroed(1, sizeof *set);
    if (!set)
        return tni_no_memory(err, "platforms", "their table");
    tni_condition_init(&set->changed);
    tni_mutex_init(&set->lock);
    set->registry = registry;
    set->root = root;
    bool fits = tni_pointers_reserve(&set->platforms, TN_PLATFORM_KIND_COUNT);
    for (int32_t kind = TN_PLATFORM_CPU; fits && kind < TN_PLATFORM_OOT; kind++) {
        tn_platform *platform = platform_create(set, tni_known_get(kind)->word, kind);
        fits = platform != NULL;
        if (fits)
            set->platforms.items[set->platforms.count++] = platform;
    }
    if (!fits) {
        tni_platforms_destroy(set);
        return tni_no_memory(err, "platforms", "their table");
    }
    *out = set;
    return TN_OK;
}

void tni_platforms_destroy(tni_platforms *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->ever.count; i++)
        tni_device_destroy(set->ever.items[i]);
    for (size_t i = 0; i < set->offers.count; i++)
        tni_release(set->offers.items[i]);
    for (size_t i = 0; i < set->past.count; i++)
        tni_release(set->past.items[i]);
    for (size_t i = 0; i < set->platforms.count; i++)
        platform_destroy(set->platforms.items[i]);
    tni_release(set->devices.items);
    tni_release(set->ever.items);
    tni_release(set->offers.items);
    tni_release(set->past.items);
    tni_release(set->platforms.items);
    tni_mutex_destroy(&set->lock);
    tni_condition_destroy(&set->changed);
    tni_release(set);
}

/* Must be called with the lock held. */
static tn_platform *find_platform(const tni_platforms *set, const char *name)
{
    for (size_t i = 0; i < set->platforms.count; i++) {
        tn_platform *platform = set->platforms.items[i];
        if (strcmp(platform->name, name) == 0)
            return platform;
    }
    return NULL;
}

size_t tni_platforms_count(tni_platforms *set)
{
    tni_mutex_lock(&set->lock);
    size_t count = set->platforms.count;
    tni_mutex_unlock(&set->lock);
    return count;
}

tn_platform *tni_platforms_at(tni_platforms *set, size_t index)
{
    tni_mutex_lock(&set->lock);
    tn_platform *platform = index < set->platforms.count ? set->platforms.items[index] : NULL;
    tni_mutex_unlock(&set->lock);
    return platform;
}

tn_platform *tni_platforms_same(const tn_platform *platform)
{
    for (size_t i = 0; platform->set; i++) {
        tn_platform *same = tni_platforms_at(platform->set, i);
        if (!same || same == platform)
            return same;
    }
    return NULL;
}

/* One platform of one record, prepared without the lock and then published at once. */
typedef struct arrival {
    tn_platform *platform; /* existing, or created if `is_new` */
    bool is_new;
    tni_offer *offer;
    tni_pointers devices;
} arrival;

static void arrival_discard(arrival *a)
{
    for (size_t i = 0; i < a->devices.count; i++)
        tni_device_destroy(a->devices.items[i]);
    tni_release(a->devices.items);
    tni_release(a->offer);
    if (a->is_new)
        platform_destroy(a->platform);
}

static tn_status arrival_devices(arrival *a, tn_error *err)
{
    int32_t count = a->offer->platform->status == TN_OK ? a->offer->platform->devices : 0;
    tn_status status = TN_OK;
    if (!tni_pointers_reserve(&a->devices, (size_t)count))
        return tni_no_memory(err, "platforms", "a list of devices");
    for (int32_t i = 0; !status && i < count; i++) {
        tn_device *device = NULL;
        status = tni_device_create(a->offer, a->platform, i, NULL, &device, err);
        if (!status)
            a->devices.items[a->devices.count++] = device;
    }
    return status;
}

static tn_status arrival_prepare(tni_platforms *set, const tni_record *record, int32_t index,
                                 arrival *a, tn_error *err)
{
    const tni_platform *offered = &record->platforms[index];
    tni_mutex_lock(&set->lock);
    a->platform = find_platform(set, offered->row->name);
    tni_mutex_unlock(&set->lock);
    a->is_new = !a->platform;
    if (a->platform && a->platform->known->kind != offered->row->kind) {
        tni_log(TN_LOG_ERROR, "module %s offers platform %s as %s, but it is %s; it is ignored",
                record->name, offered->row->name, tn_platform_kind_name(offered->row->kind),
                tn_platform_kind_name(a->platform->known->kind));
        a->platform = NULL;
        a->is_new = false;
        return TN_OK;
    }
    if (a->is_new)
        a->platform = platform_create(set, offered->row->name, offered->row->kind);
    a->offer = tni_alloc_zeroed(1, sizeof *a->offer);
    if (!a->platform || !a->offer)
        return tni_no_memory(err, "platforms", offered->row->name);
    a->offer->record = record;
    a->offer->platform = offered;
    a->offer->owner = a->platform;
    return arrival_devices(a, err);
}

const tni_offer *tni_platforms_choose(const tni_platforms *set, const tn_platform *platform,
                                      const tni_record *last)
{
    const tni_offer *best = NULL;
    bool ended = false;
    for (size_t i = 0; i < set->offers.count && !ended; i++) {
        const tni_offer *offer = set->offers.items[i];
        if (offer->owner != platform)
            continue;
        if (tni_platform_goes_before(offer->record, offer->platform, best ? best->platform : NULL))
            best = offer;
        ended = offer->record == last;
    }
    return best;
}

/* Whether the device can be found by name while `served` serves its platform. A device for planning
 * is hidden by a running one with the same number. */
static bool is_led_to(const tni_platforms *set, const tn_device *device, const tni_offer *served)
{
    bool hidden = false;
    if (!device->plans_only)
        return device->offer == served;
    for (size_t i = 0; served && i < set->devices.count && !hidden; i++) {
        const tn_device *other = set->devices.items[i];
        hidden = other->offer == served && other->index == device->index;
    }
    return !hidden;
}

void tni_platforms_update(tni_platforms *set, tn_platform *platform)
{
    int32_t count = 0;
    const tni_offer *served = tni_platforms_choose(set, platform, NULL);
    atomic_store_explicit(&platform->served, served, memory_order_release);
    for (size_t i = 0; i < set->devices.count; i++) {
        tn_device *device = set->devices.items[i];
        if (device->platform != platform)
            continue;
        bool visible = is_led_to(set, device, served);
        atomic_store_explicit(&device->visible, visible, memory_order_release);
        count += visible;
    }
    atomic_store_explicit(&platform->devices, count, memory_order_release);
}

/* Must be called with the lock held and room reserved. */
static void arrival_publish(tni_platforms *set, arrival *a)
{
    if (!a->platform)
        return;
    if (a->is_new)
        set->platforms.items[set->platforms.count++] = a->platform;
    a->is_new = false;
    for (size_t i = 0; i < a->devices.count; i++)
        tni_device_publish(set, a->devices.items[i]);
    a->devices.count = 0;
    set->offers.items[set->offers.count++] = a->offer;
    a->offer = NULL;
    tni_platforms_update(set, a->platform);
}

static bool has_room(tni_platforms *set, size_t devices)
{
    return tni_devices_reserve(set, devices) &&
           tni_pointers_reserve(&set->platforms, TNI_PLATFORMS_MAX) &&
           tni_pointers_reserve(&set->offers, TNI_PLATFORMS_MAX) &&
           tni_pointers_reserve(&set->past, set->offers.count + TNI_PLATFORMS_MAX);
}

/* A record that is withdrawn before it is published adds nothing: the thread that withdraws it searches the
 * set afterwards, with the lock held. */
static tn_status add_record(tni_platforms *set, const tni_record *record, tn_error *err)
{
    arrival arrivals[TNI_PLATFORMS_MAX] = {{0}};
    size_t devices = 0;
    tn_status status = TN_OK;
    for (int32_t i = 0; !status && i < record->platform_count; i++) {
        status = arrival_prepare(set, record, i, &arrivals[i], err);
        devices += arrivals[i].devices.count;
    }
    tni_mutex_lock(&set->lock);
    bool publish = !status && !atomic_load(&record->withdrawn);
    if (publish && !has_room(set, devices))
        status = tni_no_memory(err, "platforms", "their table");
    for (int32_t i = 0; publish && !status && i < record->platform_count; i++)
        arrival_publish(set, &arrivals[i]);
    set->records_seen += !status;
    tni_mutex_unlock(&set->lock);
    for (int32_t i = 0; i < record->platform_count; i++)
        arrival_discard(&arrivals[i]);
    return status;
}

/* Called by the thread that loads modules: one at a time, and never recursively. */
static tn_status add_all_records(void *user, tn_error *err)
{
    tni_platforms *set = user;
    const tni_record *record;
    tn_status status = TN_OK;
    while (!status && (record = tni_registry_record(set->registry, set->records_seen)) != NULL)
        status = add_record(set, record, err);
    return status;
}

tn_status tni_platforms_sync(tni_platforms *set, tn_error *err)
{
    return tni_registry_discover_then(set->registry, add_all_records, set, err);
}

static tni_mutex creating = TNI_MUTEX_INIT;
static tni_platforms *_Atomic process;

static void before_fork(void)
{
    tni_mutex_lock(&creating);
    if (atomic_load(&process))
        tni_mutex_lock(&atomic_load(&process)->lock);
}

static void after_fork(bool in_child)
{
    tni_platforms *set = atomic_load(&process);
    if (set && in_child)
        tni_condition_init(&set->changed); /* the child has no waiting threads */
    if (set)
        tni_mutex_unlock(&set->lock);
    tni_mutex_unlock(&creating);
}

static void in_parent(void)
{
    after_fork(false);
}

static void in_child(void)
{
    after_fork(true);
}

static const tni_fork_hook hook = {.before = before_fork, .parent = in_parent, .child = in_child};

tn_status tni_platforms_process(tni_platforms **out, tn_error *err)
{
    tni_platforms *set = atomic_load_explicit(&process, memory_order_acquire);
    tni_registry *registry;
    tn_status status = TN_OK;
    if (!set) {
        status = tni_registry_process(&registry, err);
        if (status)
            return status;
        tni_fork_watch(&hook);
        tni_mutex_lock(&creating);
        set = atomic_load(&process);
        if (!set)
            status = tni_platforms_create(registry, NULL, &set, err);
        if (!status)
            atomic_store_explicit(&process, set, memory_order_release);
        tni_mutex_unlock(&creating);
    }
    if (!status)
        *out = set;
    return status;
}
