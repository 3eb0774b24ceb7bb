/* Platforms that the program itself contains: registered at run time, and taken back. */
#include "base/alloc.h"
#include "device/platform/platforms.h"

static const char where[] = "tn_module_register";

struct tn_registration {
    tni_platforms *set;
    const tni_record *record;
};

/* Takes every offer of the record back and lets whoever is next serve. */
static void withdraw(tni_platforms *set, const tni_record *record)
{
    tni_registry_withdraw(set->registry, record);
    tni_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->offers.count; i++) {
        tni_offer *offer = set->offers.items[i];
        if (offer->record == record)
            atomic_store_explicit(&offer->withdrawn, true, memory_order_release);
    }
    for (size_t i = 0; i < set->platforms.count; i++)
        tni_platforms_settle(set, set->platforms.items[i]);
    if (set->current && !tni_platform_is_ready(set->current))
        set->current = NULL;
    tni_mutex_unlock(&set->lock);
}

/* Every platform of the record must be served by it now, unless it came in another's place, where a
 * third may have come in its own already. */
static tn_status check_served(tni_platforms *set, const tni_record *record, tn_error *err)
{
    for (int32_t i = 0; i < record->platform_count; i++) {
        tn_platform *platform = NULL;
        const char *name = record->platforms[i].row->name;
        tn_status status = tni_platforms_find(set, name, &platform, err);
        if (status)
            return status;
        const tni_offer *offer = atomic_load_explicit(&platform->served, memory_order_acquire);
        if (!offer || offer->record != record)
            return tn_fail(
                err, TN_ALREADY_EXISTS, 0, where,
                "platform %s is served by module %s already; TN_MODULE_REPLACE puts this "
                "one in its place",
                name, offer ? offer->record->name : "of another name");
    }
    return TN_OK;
}

tn_status tni_platforms_register(tni_platforms *set, tn_module_entry_fn *entry, uint64_t flags,
                                 tn_registration **out, tn_error *err)
{
    const tni_record *record = NULL;
    if (!entry || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", entry ? "out" : "entry");
    if (flags & ~TN_MODULE_REPLACE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "flags has unknown bits %#llx; known is TN_MODULE_REPLACE (2)",
                       (unsigned long long)(flags & ~TN_MODULE_REPLACE));
    tn_registration *registration = tni_alloc(sizeof *registration);
    if (!registration)
        return tni_no_memory(err, where, "the registration");
    tn_status status =
        tni_registry_register(set->registry, entry, (flags & TN_MODULE_REPLACE) != 0, &record, err);
    if (!status && record->status)
        status = tn_fail(err, record->status, 0, where, "module %s stopped at %s: %s", record->name,
                         tn_module_stage_name(record->stage), record->message);
    if (!status)
        status = tni_platforms_sync(set, err);
    if (!status && !record->replaces)
        status = check_served(set, record, err);
    if (status) {
        if (record)
            withdraw(set, record);
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
    withdraw(registration->set, registration->record);
    tni_release(registration);
}

tn_status tn_module_register(tn_module_entry_fn *entry, uint64_t flags, tn_registration **out,
                             tn_error *err)
{
    tni_platforms *set;
    tn_status status = tni_platforms_process(&set, err);
    return status ? status : tni_platforms_register(set, entry, flags, out, err);
}
