/* The process's own registry, behind tenon/module.h. It lives as long as the process: modules are
 * never unloaded, and what they were lent must stay. */
#include "base/alloc.h"
#include "inside.h"
#include "os/dl.h"
#include "os/env.h"
#include "os/fork.h"

static tni_mutex creating = TNI_MUTEX_INIT;
static tni_registry *_Atomic current;
static bool fresh; /* under `creating` */

enum { CACHE_LIMIT = 256 << 20 };

/* The library's own module folder: "tenon" beside an installed library, "backends" in a build. */
static char *module_folder(void)
{
    static const char *const names[] = {"tenon", "backends"};
    char *own = tni_dl_own_folder(), *found = NULL;
    for (size_t i = 0; own && !found && i < 2; i++) {
        tni_file_id id;
        found = tni_path_join(own, names[i]);
        if (found && (tni_file_identify(found, &id, NULL) != TN_OK || !id.is_folder)) {
            tni_release(found);
            found = NULL;
        }
    }
    tni_release(own);
    return found;
}

static char *probe_program(const char *folder)
{
    char *path = folder ? tni_path_join(folder, "tenon-probe") : NULL;
    tni_file_id id;
    if (path && tni_file_identify(path, &id, NULL) == TN_OK)
        return path;
    tni_release(path);
    return NULL;
}

static tn_status create_cache(tni_cache **out, tn_error *err)
{
    tni_buffer folder = {0};
    const char *reason = NULL;
    bool known = tni_cache_default_folder(&folder, &reason);
    tn_status status = folder.failed
                           ? tni_no_memory(err, "cache", "the cache's path")
                           : tni_cache_create(known ? folder.text : NULL, CACHE_LIMIT, out, err);
    tni_buffer_release(&folder);
    return status;
}

static void before_fork(void)
{
    tni_mutex_lock(&creating);
    if (atomic_load(&current))
        tni_registry_before_fork(atomic_load(&current));
}

static void after_fork(bool in_child)
{
    if (atomic_load(&current))
        tni_registry_after_fork(atomic_load(&current), in_child);
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

static tn_status create(tni_registry **out, tn_error *err)
{
    const char *variable = "TENON_MODULE_PATH";
    tni_cache *cache = NULL;
    tn_status status = create_cache(&cache, err);
    if (status)
        return status;
    char *folder = module_folder();
    char *probe = probe_program(folder);
    const char *path = tni_env_get(variable);
    tni_registry_params params = {
        .builtins = tni_builtins,
        .module_folder = folder,
        .shipped = tni_shipped,
        .search_path = path                       ? path
                       : tni_env_is_set(variable) ? "$TENON_MODULE_PATH"
                                                  : NULL,
        .search_path_ignored = tni_env_privileged(),
        .probe = probe,
        .cache = cache,
        .fresh = fresh,
    };
    status = tni_registry_create(&params, out, err);
    tni_release(probe);
    tni_release(folder);
    if (status)
        tni_cache_release(cache);
    return status;
}

static tn_status get(tni_registry **out, tn_error *err)
{
    tni_registry *registry = atomic_load_explicit(&current, memory_order_acquire);
    tn_status status = TN_OK;
    if (!registry) {
        tni_fork_watch(&hook);
        tni_mutex_lock(&creating);
        registry = atomic_load(&current);
        if (!registry)
            status = create(&registry, err);
        if (!status)
            atomic_store_explicit(&current, registry, memory_order_release);
        tni_mutex_unlock(&creating);
    }
    if (!status)
        *out = registry;
    return status;
}

tn_status tn_module_folder_add(const char *folder, uint64_t flags, tn_error *err)
{
    tni_registry *registry;
    tn_status status = get(&registry, err);
    return status ? status : tni_registry_add(registry, folder, true, flags, err);
}

tn_status tn_module_file_add(const char *file, uint64_t flags, tn_error *err)
{
    tni_registry *registry;
    tn_status status = get(&registry, err);
    return status ? status : tni_registry_add(registry, file, false, flags, err);
}

tn_status tn_module_verdicts_ignore(tn_error *err)
{
    tn_status status = TN_OK;
    tni_mutex_lock(&creating);
    if (atomic_load(&current))
        status = tn_fail(err, TN_BUSY, 0, "tn_module_verdicts_ignore",
                         "modules were sought already; call it first");
    else
        fresh = true;
    tni_mutex_unlock(&creating);
    return status;
}

tn_status tn_module_discover(tn_error *err)
{
    tni_registry *registry;
    tn_status status = get(&registry, err);
    return status ? status : tni_registry_discover(registry, err);
}

tn_status tn_module_list_create(tn_module_list **out, tn_error *err)
{
    tni_registry *registry;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_module_list_create", "out is NULL");
    tn_status status = get(&registry, err);
    return status ? status : tni_registry_list(registry, out, err);
}

uint64_t tn_module_generation(void)
{
    tni_registry *registry = atomic_load_explicit(&current, memory_order_acquire);
    return registry ? tni_registry_generation(registry) : 0;
}
