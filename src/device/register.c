/* Platforms that the program itself contains: registered at run time, and withdrawn. */
#include "base/alloc.h"
#include "device/platform/platforms.h"
#include "tenon/memory.h"

static const char where[] = "tn_module_register";

struct tn_registration {
    tni_platforms *set;
    const tni_record *record;
};

/* The next device of the record, starting at ordinal *at; NULL if none. */
static tn_device *next_device(tni_platforms *set, const tni_record *record, size_t *at)
{
    tn_device *found = NULL;
    tni_mutex_lock(&set->lock);
    for (; !found && *at < set->ever.count; ++*at) {
        tn_device *device = set->ever.items[*at];
        found = device->offer && device->offer->record == record ? device : NULL;
    }
    tni_mutex_unlock(&set->lock);
    return found;
}

/* Removes the record's offers and devices from the lists that are searched. Returns the lowest
 * ordinal that one of its devices can have. Must be called with the lock held. */
static size_t set_aside(tni_platforms *set, const tni_record *record)
{
    size_t kept = 0, lowest = set->ever.count;
    for (size_t i = 0; i < set->offers.count; i++) {
        tni_offer *offer = set->offers.items[i];
        if (offer->record != record) {
            set->offers.items[kept++] = offer;
            continue;
        }
        atomic_store_explicit(&offer->withdrawn, true, memory_order_release);
        set->past.items[set->past.count++] = offer;
    }
    set->offers.count = kept;
    kept = 0;
    for (size_t i = 0; i < set->devices.count; i++) {
        tn_device *device = set->devices.items[i];
        if (!device->offer || device->offer->record != record) {
            set->devices.items[kept++] = device;
            continue;
        }
        atomic_store_explicit(&device->visible, false, memory_order_release);
        if ((size_t)device->ordinal < lowest)
            lowest = (size_t)device->ordinal;
    }
    set->devices.count = kept;
    return lowest;
}

/* Withdraws every offer of the record, lets the next offer serve, and returns kept memory to its
 * platforms. */
static void withdraw(tni_platforms *set, const tni_record *record, const tn_error *refusal)
{
    tn_device *device;
    tni_registry_withdraw(set->registry, record, refusal);
    tni_mutex_lock(&set->lock);
    size_t at = set_aside(set, record);
    for (size_t i = 0; i < set->platforms.count; i++)
        tni_platforms_update(set, set->platforms.items[i]);
    if (set->current && !tni_platform_is_ready(set->current))
        set->current = NULL;
    tni_mutex_unlock(&set->lock);
    while ((device = next_device(set, record, &at)) != NULL)
        tn_memory_trim(device);
}

/* The record's own offer of the platform; NULL if it was not accepted. *out_rival is the offer that
 * served instead when the record was added, or NULL. An offer that was added later and replaced
 * both is not a rival. */
static const tni_offer *find_offer(tni_platforms *set, const tn_platform *platform,
                                   const tni_record *record, const tni_offer **out_rival)
{
    const tni_offer *own = NULL;
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->offers.count && !own; i++) {
        const tni_offer *offer = set->offers.items[i];
        own = offer->owner == platform && offer->record == record ? offer : NULL;
    }
    const tni_offer *chosen = tni_platforms_choose(set, platform, record);
    tni_mutex_unlock(&set->lock);
    *out_rival = chosen == own ? NULL : chosen;
    return own;
}

/* Checks that the row's platform was added, and that the record serves it. With TN_MODULE_REPLACE
 * the record need not serve it: without a device it waits for its turn. */
static tn_status check_platform(tni_platforms *set, const tni_record *record,
                                const tn_platform_row *row, tn_error *err)
{
    tn_platform *platform = NULL;
    const tni_offer *rival = NULL;
    tn_status status = tni_platforms_find(set, row->name, &platform, err);
    if (status)
        return status;
    if (!find_offer(set, platform, record, &rival))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "module %s offers platform %s as kind %s, but it is of kind %s; give its row "
            "that kind, or another name",
            record->name, row->name, tn_platform_kind_name(row->kind),
            tn_platform_kind_name(platform->known->kind));
    if (!rival || record->replaces)
        return TN_OK;
    return tn_fail(err, TN_ALREADY_EXISTS, 0, where,
                   "platform %s is already provided by module %s; TN_MODULE_REPLACE "
                   "replaces it",
                   row->name, rival->record->name);
}

static tn_status check_platforms(tni_platforms *set, const tni_record *record, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; !status && i < record->platform_count; i++)
        status = check_platform(set, record, record->platforms[i].row, err);
    return status;
}

/* Loads the module, and checks that its platforms were added. */
static tn_status bring_in(tni_platforms *set, tn_module_entry_fn *entry, bool replaces,
                          const tni_record **out, tn_error *err)
{
    tn_status status = tni_registry_register(set->registry, entry, replaces, out, err);
    if (status)
        return status;
    const tni_record *record = *out;
    if (record->status)
        return tn_fail(err, record->status, 0, where, "module %s stopped at %s: %s%s%s",
                       record->name, tn_module_stage_name(record->stage), record->message,
                       record->remedy[0] ? "; remedy: " : "", record->remedy);
    status = tni_platforms_sync(set, err);
    return status ? status : check_platforms(set, record, err);
}

tn_status tni_platforms_register(tni_platforms *set, tn_module_entry_fn *entry, uint64_t flags,
                                 tn_registration **out, tn_error *err)
{
    const tni_record *record = NULL;
    tn_error why;
    if (!entry || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", entry ? "out" : "entry");
    if (flags & ~TN_MODULE_REPLACE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "flags has unknown bits %#llx; known is TN_MODULE_REPLACE (2)",
                       (unsigned long long)(flags & ~TN_MODULE_REPLACE));
    tn_registration *registration = tni_alloc(sizeof *registration);
    if (!registration)
        return tni_no_memory(err, where, "the registration");
    tn_status status = bring_in(set, entry, (flags & TN_MODULE_REPLACE) != 0, &record, &why);
    if (status) {
        if (record)
            withdraw(set, record, &why);
        if (err)
            *err = why;
        tni_release(registration);
        return status;
    }
    *registration = (tn_registration){.set = set, .record = record};
    *out = registration;
    return TN_OK;
}

void tn_registration_release(tn_registration *registration)
{
    if (!registration)
        return;
    withdraw(registration->set, registration->record, NULL);
    tni_release(registration);
}

tn_status tn_module_register(tn_module_entry_fn *entry, uint64_t flags, tn_registration **out,
                             tn_error *err)
{
    tni_platforms *set;
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_platforms_register(set, entry, flags, out, err);
}
