#include "base/alloc.h"
#include "base/epoch.h"
#include "base/log.h"
#include "host.h"
#include "inside.h"
#include "load.h"
#include "os/clock.h"
#include "rows.h"
#include "tenon/cache.h"
#include "tenon/status.h"
#include "verdict.h"

/* Returns the ready module of this name, or NULL. Needs no lock: only the loading thread publishes,
 * and only it calls this. */
static const tni_record *ready_module(const tni_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->records.count; i++) {
        const tni_record *record = registry->records.items[i];
        if (record->stage == TN_STAGE_READY && !atomic_load(&record->withdrawn) &&
            strcmp(record->name, name) == 0)
            return record;
    }
    return NULL;
}

static tn_status check_duplicate(const tni_registry *registry, tni_record *record)
{
    const tni_record *other = record->replaces ? NULL : ready_module(registry, record->name);
    if (!other)
        return TN_OK;
    return tni_record_stop(record, TN_ALREADY_EXISTS, "remove one of the two",
                           "a module \"%s\" is already loaded from %s; the first one is used",
                           record->name,
                           other->path                            ? other->path
                           : other->origin == TNI_ORIGIN_BUILT_IN ? "the library itself"
                                                                  : "the program itself");
}

static tn_status load_here(const tni_registry *registry, tni_record *record)
{
    tn_status status = tni_load_open(record);
    if (!status)
        status = tni_load_negotiate(record);
    if (!status)
        status = check_duplicate(registry, record);
    return status ? status : tni_load_probe(record, NULL, NULL);
}

/* Applies the verdict of a child process. A module that reached NEGOTIATED there is opened for its
 * rows, which are all that plans for an absent machine need. A module that crashed or hung is not
 * opened. */
static tn_status accept_verdict(const tni_registry *registry, tni_record *record,
                                const tni_verdict *verdict)
{
    tn_status status = TN_OK;
    if (!verdict->ended_badly && verdict->stage >= TN_STAGE_NEGOTIATED) {
        status = tni_load_open(record);
        if (!status)
            status = tni_load_negotiate(record);
        if (!status)
            status = check_duplicate(registry, record);
        if (status)
            return status;
    }
    if (verdict->name[0])
        tn_text_fit(record->name, sizeof record->name, verdict->name);
    tn_text_fit(record->version, sizeof record->version, verdict->version);
    record->stage = verdict->stage < TN_STAGE_READY ? verdict->stage : TN_STAGE_PROBED;
    record->abi_major = verdict->abi_major;
    record->abi_minor = verdict->abi_minor;
    record->foreign = true;
    for (int32_t i = 0; i < record->platform_count; i++) {
        tni_platform *platform = &record->platforms[i];
        platform->status = verdict->status;
        tn_text_fit(platform->remedy, sizeof platform->remedy, verdict->remedy);
    }
    return tni_record_stop(record, verdict->status, verdict->remedy, "%s", verdict->message);
}

static void make_verdict_cache(tni_registry *registry)
{
    const char *folder = registry->params.cache_folder;
    if (tni_cache_create(folder, TN_CACHE_LIMIT, &registry->cache, NULL) == TN_OK &&
        !tni_cache_folder(registry->cache))
        tni_log(TN_LOG_WARNING, "probe results of modules are not stored: %s",
                tni_cache_reason(registry->cache));
}

/* The cache for verdicts, or NULL. Created at first use: a program whose modules all ship with
 * Tenon never touches a cache. */
static tni_cache *verdict_cache(tni_registry *registry)
{
    const tni_registry_params *params = &registry->params;
    if (params->cache)
        return params->cache;
    if (!registry->cache && params->cache_folder)
        make_verdict_cache(registry);
    return registry->cache;
}

/* Loads an unknown module: probes it in a child process first, and opens it here only if the
 * verdict allows it. */
static tn_status load_unknown(tni_registry *registry, tni_record *record)
{
    const tni_registry_params *params = &registry->params;
    tni_cache *cache = verdict_cache(registry);
    tn_error err = {0};
    tni_verdict verdict;
    if (!params->probe)
        return tni_record_stop(record, TN_NOT_FOUND,
                               "install Tenon completely, or add the file with TN_MODULE_TRUSTED",
                               "not probed: there is no tenon-probe next to the library");
    if (params->fresh || !tni_verdict_recall(cache, params->probe, record->path, &verdict)) {
        tn_status status =
            tni_verdict_probe(params->probe, record->path, params->probe_limit_ns, &verdict, &err);
        if (status)
            return tni_record_stop(record, status, "make sure that tenon-probe can be run",
                                   "not probed: %s: %s", err.where, err.message);
        tni_verdict_remember(cache, params->probe, record->path, &verdict);
    }
    if (verdict.status != TN_OK)
        return accept_verdict(registry, record, &verdict);
    return load_here(registry, record);
}

static void load_record(tni_registry *registry, tni_record *record)
{
    char unknown[TNI_ROWS_UNKNOWN_TEXT];
    int64_t start = tni_clock_ns();
    tni_host_fill(record);
    tn_status status = tni_load_inspect(record);
    if (!status)
        status = record->trusted ? load_here(registry, record) : load_unknown(registry, record);
    record->ms = (double)(tni_clock_ns() - start) / 1e6;
    if (status)
        tni_log(status == TN_UNAVAILABLE ? TN_LOG_INFO : TN_LOG_WARNING,
                "module %s stopped at %s: %s: %s", record->name,
                tn_module_stage_name(record->stage), tn_status_name(status), record->message);
    else
        tni_log(TN_LOG_INFO, "module %s %s is ready in %.2f ms: %s", record->name, record->version,
                record->ms, record->message);
    if (!status && tni_rows_unknown(record->table->kernels, unknown))
        tni_log(TN_LOG_WARNING, "module %s: %s", record->name, unknown);
}

/* True if the failure was not the module's fault and a later attempt may succeed. */
static bool is_not_now(const tni_record *record)
{
    bool wanting = record->status == TN_OUT_OF_MEMORY || record->status == TN_BUSY;
    return wanting && (!record->foreign || record->starved);
}

/* Publishes the record and advances the cursor in one step: a fork() between the two would repeat
 * one of them. */
static void publish_record(tni_registry *registry, tni_record *record, size_t *cursor)
{
    tni_mutex_lock(&registry->lock);
    registry->records.items[registry->records.count++] = record;
    atomic_fetch_add(&registry->generation, 1);
    tni_epoch_next();
    ++*cursor;
    tni_mutex_unlock(&registry->lock);
}

/* Loads a module and publishes its record. If the library itself lacks memory or descriptors,
 * publishes nothing, so that it can be retried; every other result is published, also if the module
 * itself reports such a lack. Takes ownership of the record; NULL means out of memory. */
static tn_status bring_in(tni_registry *registry, tni_record *record, size_t *cursor, tn_error *err)
{
    tn_status status = TN_OUT_OF_MEMORY;
    if (record) {
        tni_mutex_lock(&registry->lock);
        if (tni_list_reserve(&registry->records))
            status = TN_OK;
        tni_mutex_unlock(&registry->lock);
    }
    if (!status) {
        load_record(registry, record);
        status = is_not_now(record) ? record->status : TN_OK;
    }
    if (!status) {
        tni_record_fit(record);
        publish_record(registry, record, cursor);
    } else {
        tn_fail(err, status, 0, "tn_module_discover", "%s",
                record && record->message[0] ? record->message : "no memory for a module's record");
        tni_record_destroy(record);
    }
    return status;
}

static bool is_shipped(const tni_registry *registry, const tni_place *place, const char *name)
{
    const char *const *shipped = registry->params.shipped;
    for (; place->origin == TNI_ORIGIN_FOLDER && shipped && *shipped; shipped++) {
        if (strcmp(*shipped, name) == 0)
            return true;
    }
    return false;
}

static tn_status bring_in_file(tni_registry *registry, tni_place *place, const char *path,
                               tn_error *err)
{
    tni_record *record = tni_record_create(path, place->origin);
    if (record)
        record->trusted = place->trusted || is_shipped(registry, place, tni_path_name(path));
    return bring_in(registry, record, &place->next, err);
}

static tn_status visit_names(tni_registry *registry, tni_place *place, tn_error *err)
{
    while (place->next < place->names->count) {
        char *path = tni_path_join(place->path, place->names->names[place->next]);
        if (!path)
            return tni_no_memory(err, "tn_module_discover", "a module's path");
        tn_status status = bring_in_file(registry, place, path, err);
        tni_release(path);
        if (status)
            return status;
    }
    return TN_OK;
}

/* Reads the folder. A problem with the folder is recorded in the place; out of memory or
 * descriptors is an error. */
static tn_status read_folder(tni_registry *registry, tni_place *place, tn_error *err)
{
    tn_error why = {0};
    if (place->origin == TNI_ORIGIN_ENVIRONMENT && registry->params.search_path_ignored) {
        place->status = TN_NOT_PERMITTED;
        tn_text_fit(place->message, sizeof place->message,
                    "ignored: this process runs with elevated privileges");
        return TN_OK;
    }
    if (place->origin == TNI_ORIGIN_ENVIRONMENT && !tni_path_is_absolute(place->path)) {
        place->status = TN_INVALID_ARGUMENT;
        tn_text_fit(place->message, sizeof place->message,
                    place->path[0]
                        ? "ignored: not an absolute path"
                        : "ignored: an empty entry, which would mean the current folder");
        return TN_OK;
    }
    place->status = tni_folder_list(place->path, "tenon-", TNI_LIBRARY_SUFFIX, &place->names, &why);
    if (place->status == TN_OUT_OF_MEMORY || place->status == TN_BUSY)
        return tn_fail(err, place->status, why.native_code, "tn_module_discover", "%s",
                       why.message);
    tni_file_id there;
    if (place->status == TN_NOT_FOUND && tni_file_identify(place->path, &there, NULL) == TN_OK) {
        place->status = TN_IO;
        tn_text_fit(place->message, sizeof place->message, "not a folder");
    } else if (place->status) {
        tn_text_fit(place->message, sizeof place->message,
                    place->status == TN_NOT_FOUND ? "no such folder" : why.message);
    }
    return TN_OK;
}

static tn_status visit_folder(tni_registry *registry, tni_place *place, tn_error *err)
{
    tn_status status = place->names ? TN_OK : read_folder(registry, place, err);
    if (status || !place->names)
        return status;
    status = visit_names(registry, place, err);
    if (!status)
        snprintf(place->message, sizeof place->message, "%zu module%s", place->names->count,
                 place->names->count == 1 ? "" : "s");
    return status;
}

static tn_status visit_place(tni_registry *registry, tni_place *place, tn_error *err)
{
    tn_status status;
    if (place->is_folder) {
        status = visit_folder(registry, place, err);
    } else {
        status = place->next ? TN_OK : bring_in_file(registry, place, place->path, err);
        tn_text_fit(place->message, sizeof place->message, "one file");
    }
    if (status)
        return status;
    tni_mutex_lock(&registry->lock);
    place->done = true;
    tni_mutex_unlock(&registry->lock);
    return TN_OK;
}

/* Returns the first place not visited yet, those of the program first; NULL if none exists. */
static tni_place *next_place(tni_registry *registry)
{
    tni_place *found = NULL;
    const tni_list *lists[] = {&registry->requests, &registry->standing};
    tni_mutex_lock(&registry->lock);
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; !found && i < lists[l]->count; i++) {
            tni_place *place = lists[l]->items[i];
            found = place->done ? NULL : place;
        }
    }
    tni_mutex_unlock(&registry->lock);
    return found;
}

static tn_status bring_in_builtins(tni_registry *registry, tn_error *err)
{
    const tni_builtin *builtins = registry->params.builtins;
    while (builtins && builtins[registry->builtins_done].entry) {
        const tni_builtin *builtin = &builtins[registry->builtins_done];
        tni_record *record = tni_record_create(NULL, TNI_ORIGIN_BUILT_IN);
        if (record) {
            tn_text_fit(record->name, sizeof record->name, builtin->name);
            record->entry = builtin->entry;
            record->trusted = true;
        }
        tn_status status = bring_in(registry, record, &registry->builtins_done, err);
        if (status)
            return status;
    }
    return TN_OK;
}

tn_status tni_discover_entry(tni_registry *registry, tn_module_entry_fn *entry, bool replaces,
                             const tni_record **out, tn_error *err)
{
    size_t cursor = 0;
    tni_record *record = tni_record_create(NULL, TNI_ORIGIN_PROGRAM);
    if (record) {
        tn_text_fit(record->name, sizeof record->name, "program");
        record->entry = entry;
        record->trusted = true;
        record->replaces = replaces;
    }
    tn_status status = bring_in(registry, record, &cursor, err);
    if (!status)
        *out = record;
    return status;
}

tn_status tni_discover(tni_registry *registry, tn_error *err)
{
    tn_status status = bring_in_builtins(registry, err);
    tni_place *place;
    while (!status && (place = next_place(registry)))
        status = visit_place(registry, place, err);
    return status;
}
