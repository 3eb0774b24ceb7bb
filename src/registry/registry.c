#include "registry.h"

#include "base/alloc.h"
#include "base/epoch.h"
#include "base/log.h"
#include "inside.h"
#include "os/fork.h"
#include "os/pool.h"

static void destroy_place(tni_place *place)
{
    if (!place)
        return;
    tni_release(place->names);
    tni_release(place->path);
    tni_release(place);
}

static tni_place *create_place(const char *path, tni_origin origin, bool is_folder, bool trusted)
{
    tni_place *place = tni_alloc_zeroed(1, sizeof *place);
    if (!place)
        return NULL;
    *place = (tni_place){.origin = origin, .is_folder = is_folder, .trusted = trusted};
    place->path = tni_text_copy(path);
    if (!place->path) {
        destroy_place(place);
        return NULL;
    }
    return place;
}

static bool add_place(tni_list *to, const char *path, tni_origin origin)
{
    tni_place *place = tni_list_reserve(to) ? create_place(path, origin, true, false) : NULL;
    if (!place)
        return false;
    to->items[to->count++] = place;
    return true;
}

/* Copies a text of the parameters; the registry then owns it. */
static bool own_text(const char **text)
{
    if (!*text)
        return true;
    *text = tni_text_copy(*text);
    return *text != NULL;
}

/* Adds one place per entry of the variable, including those that will be ignored: reports list
 * them. */
static bool add_search_path(tni_registry *registry)
{
    const char *at = registry->params.search_path;
    while (at && *at) {
        const char *end = strchr(at, TNI_PATH_SEPARATOR);
        size_t length = end ? (size_t)(end - at) : strlen(at);
        char *path = tni_text_copy_part(at, length);
        bool added = path && add_place(&registry->standing, path, TNI_ORIGIN_ENVIRONMENT);
        tni_release(path);
        if (!added)
            return false;
        at += length + (end != NULL);
    }
    return true;
}

static bool fill_params(tni_registry *registry, const tni_registry_params *params)
{
    tni_registry_params *own_params = &registry->params;
    const char **texts[] = {&own_params->module_folder, &own_params->search_path,
                            &own_params->probe, &own_params->cache_folder};
    bool owned = true;
    *own_params = *params;
    if (params->probe_limit_ns <= 0)
        own_params->probe_limit_ns = INT64_C(2000000000);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        owned = own_text(texts[i]) && owned;
    return owned &&
           (!params->module_folder ||
            add_place(&registry->standing, params->module_folder, TNI_ORIGIN_FOLDER)) &&
           add_search_path(registry);
}

tn_status tni_registry_create(const tni_registry_params *params, tni_registry **out, tn_error *err)
{
    tni_registry *registry = tni_alloc_zeroed(1, sizeof *registry);
    if (!registry)
        return tni_no_memory(err, "registry", "the registry");
    tni_mutex_init(&registry->lock);
    tni_condition_init(&registry->changed);
    if (!fill_params(registry, params)) {
        tni_registry_destroy(registry);
        return tni_no_memory(err, "registry", "the places to search");
    }
    *out = registry;
    return TN_OK;
}

static void release_text(const char *text)
{
    char *owned;
    memcpy(&owned, &text, sizeof owned);
    tni_release(owned);
}

void tni_registry_destroy(tni_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->records.count; i++)
        tni_record_destroy(registry->records.items[i]);
    for (size_t i = 0; i < registry->requests.count; i++)
        destroy_place(registry->requests.items[i]);
    for (size_t i = 0; i < registry->standing.count; i++)
        destroy_place(registry->standing.items[i]);
    tni_release(registry->records.items);
    tni_release(registry->requests.items);
    tni_release(registry->standing.items);
    release_text(registry->params.module_folder);
    release_text(registry->params.search_path);
    release_text(registry->params.probe);
    release_text(registry->params.cache_folder);
    tni_cache_release(registry->cache);
    tni_condition_destroy(&registry->changed);
    tni_mutex_destroy(&registry->lock);
    tni_release(registry);
}

/* Whether a thread of this process is loading; one that was lost in a fork() does not count. */
static bool is_loading(const tni_registry *registry)
{
    return registry->loader != 0 && registry->loader_fork == tni_fork_generation();
}

/* A module may call from its own probe, or from a task or a sink that a probe waits for: such a
 * caller must not wait and sees the current state. */
static bool may_not_wait(const tni_registry *registry, uint64_t thread)
{
    return registry->loader == thread || tni_pool_inside() || tni_log_inside();
}

/* Makes the calling thread the loading thread. Returns false if another one is loading and the
 * caller may not wait for it. */
static bool begin_loading(tni_registry *registry)
{
    uint64_t me = tni_thread_id();
    bool mine = true;
    tni_mutex_lock(&registry->lock);
    if (is_loading(registry) && may_not_wait(registry, me)) {
        mine = false;
    } else {
        while (is_loading(registry))
            tni_condition_wait(&registry->changed, &registry->lock);
        registry->loader = me;
        registry->loader_fork = tni_fork_generation();
    }
    tni_mutex_unlock(&registry->lock);
    return mine;
}

static void end_loading(tni_registry *registry, bool discovered)
{
    tni_mutex_lock(&registry->lock);
    registry->loader = 0;
    registry->discovered = registry->discovered || discovered;
    tni_condition_wake_all(&registry->changed);
    tni_mutex_unlock(&registry->lock);
}

tn_status tni_registry_discover_then(tni_registry *registry,
                                     tn_status (*then)(void *user, tn_error *err), void *user,
                                     tn_error *err)
{
    if (!begin_loading(registry))
        return TN_OK;
    tn_status status = tni_discover(registry, err);
    bool discovered = status == TN_OK;
    if (!status && then)
        status = then(user, err);
    end_loading(registry, discovered);
    return status;
}

tn_status tni_registry_discover(tni_registry *registry, tn_error *err)
{
    return tni_registry_discover_then(registry, NULL, NULL, err);
}

tn_status tni_registry_register(tni_registry *registry, tn_module_entry_fn *entry, bool replaces,
                                const tni_record **out, tn_error *err)
{
    if (!begin_loading(registry))
        return tn_fail(
            err, TN_BUSY, 0, "tn_module_register",
            "modules are being loaded, and a probe, a task or a log sink cannot wait for that");
    tn_status status = tni_discover(registry, err);
    bool discovered = status == TN_OK;
    if (!status)
        status = tni_discover_entry(registry, entry, replaces, out, err);
    end_loading(registry, discovered);
    return status;
}

void tni_registry_withdraw(tni_registry *registry, const tni_record *record,
                           const tn_error *refusal)
{
    tni_mutex_lock(&registry->lock);
    for (size_t i = 0; i < registry->records.count; i++) {
        tni_record *own = registry->records.items[i];
        if (own != record)
            continue;
        if (refusal)
            own->refusal = *refusal;
        atomic_store(&own->withdrawn, true);
    }
    atomic_fetch_add(&registry->generation, 1);
    tni_epoch_next();
    tni_mutex_unlock(&registry->lock);
}

/* Must hold the lock. */
static bool is_requested(const tni_registry *registry, const tni_place *request)
{
    for (size_t i = 0; i < registry->requests.count; i++) {
        const tni_place *other = registry->requests.items[i];
        if (!other->done && other->is_folder == request->is_folder &&
            other->trusted == request->trusted && strcmp(other->path, request->path) == 0)
            return true;
    }
    return false;
}

/* Takes ownership of the place. Returns false if out of memory. After discovery, a requested place
 * is not done only if it failed for lack of memory or another thread is loading it: then the same
 * request does not add a second place. */
static bool store_request(tni_registry *registry, tni_place *place, bool *out_discovered)
{
    tni_mutex_lock(&registry->lock);
    bool known = registry->discovered && is_requested(registry, place);
    bool room = !known && tni_list_reserve(&registry->requests);
    if (room)
        registry->requests.items[registry->requests.count++] = place;
    *out_discovered = registry->discovered;
    tni_mutex_unlock(&registry->lock);
    if (!room)
        destroy_place(place);
    return known || room;
}

tn_status tni_registry_add(tni_registry *registry, const char *path, bool is_folder, uint64_t flags,
                           tn_error *err)
{
    const char *where = is_folder ? "tn_module_folder_add" : "tn_module_file_add";
    char *full = NULL;
    if (!path || !path[0])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the path is %s",
                       path ? "empty" : "NULL");
    if (flags & ~TN_MODULE_TRUSTED)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "flags has unknown bits %#llx; known is TN_MODULE_TRUSTED (1)",
                       (unsigned long long)(flags & ~TN_MODULE_TRUSTED));
    tn_status status = tni_path_absolute(path, &full, err);
    if (status)
        return status;
    tni_place *place =
        create_place(full, TNI_ORIGIN_PROGRAM, is_folder, (flags & TN_MODULE_TRUSTED) != 0);
    tni_release(full);
    if (!place)
        return tni_no_memory(err, where, "the path");
    bool discovered;
    if (!store_request(registry, place, &discovered))
        return tni_no_memory(err, where, "the list of places");
    return discovered ? tni_registry_discover(registry, err) : TN_OK;
}

const tni_record *tni_registry_record(tni_registry *registry, size_t index)
{
    tni_mutex_lock(&registry->lock);
    const tni_record *record =
        index < registry->records.count ? registry->records.items[index] : NULL;
    tni_mutex_unlock(&registry->lock);
    return record;
}

uint64_t tni_registry_generation(const tni_registry *registry)
{
    return atomic_load(&registry->generation);
}

void tni_registry_before_fork(tni_registry *registry)
{
    tni_mutex_lock(&registry->lock);
}

void tni_registry_after_fork(tni_registry *registry, bool in_child)
{
    if (in_child)
        tni_condition_init(&registry->changed); /* its waiters do not exist in the child */
    tni_mutex_unlock(&registry->lock);
}
