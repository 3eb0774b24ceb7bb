/* The process's registry, behind tenon/module.h. It lives as long as the process: modules are never
 * unloaded, and what was lent to them must stay valid. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/log.h"
#include "inside.h"
#include "os/dl.h"
#include "os/env.h"
#include "os/fork.h"

static tni_mutex creating = TNI_MUTEX_INIT;
static tni_registry *_Atomic current;
static bool fresh; /* guarded by `creating` */

/* Whether the file or folder exists. What cannot be examined counts as existing: its row will
 * report why. Fails if out of memory or descriptors, since a later attempt may succeed. */
static tn_status check_exists(const char *path, bool is_folder, bool *out_there, tn_error *err)
{
    tni_file_id id;
    tn_status status = tni_file_identify(path, &id, err);
    if (status == TN_OUT_OF_MEMORY || status == TN_BUSY)
        return status;
    *out_there = status == TN_OK ? id.is_folder == is_folder : status != TN_NOT_FOUND;
    return TN_OK;
}

/* Returns "folder/name" if it exists, else NULL. */
static tn_status find_in(const char *folder, const char *name, bool is_folder, char **out,
                         tn_error *err)
{
    bool there = false;
    char *path = tni_path_join(folder, name);
    if (!path)
        return tni_no_memory(err, "modules", name);
    tn_status status = check_exists(path, is_folder, &there, err);
    if (!status)
        *out = there ? path : NULL;
    if (status || !there)
        tni_release(path);
    return status;
}

/* Messages are collected in `notes` and logged when no lock is held: a log sink may call Tenon. */

/* The library's own module folder: "tenon" beside an installed library, "backends" in a build; NULL
 * if none exists. */
static tn_status module_folder(char **out, tni_buffer *notes, tn_error *err)
{
    static const char *const names[] = {"tenon", "backends"};
    tn_error why = {0};
    char *own = NULL, *found = NULL;
    tn_status status = tni_dl_own_folder(&own, &why);
    if (status == TN_OUT_OF_MEMORY || status == TN_BUSY)
        return tn_fail(err, status, why.native_code, why.where, "%s", why.message);
    if (status) {
        tni_buffer_format(notes, "no module folder: %s", why.message);
        *out = NULL;
        return TN_OK;
    }
    for (size_t i = 0; !status && !found && i < 2; i++)
        status = find_in(own, names[i], true, &found, err);
    tni_release(own);
    if (!status)
        *out = found;
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

static tn_status create_with(const char *folder, const char *probe, const char *cache_folder,
                             tni_registry **out, tn_error *err)
{
    const char *variable = "TENON_MODULE_PATH";
    const char *path = tni_env_get(variable);
    const tni_registry_params params = {
        .builtins = tni_builtins,
        .module_folder = folder,
        .shipped = tni_shipped,
        .search_path = path                       ? path
                       : tni_env_is_set(variable) ? "$TENON_MODULE_PATH"
                                                  : NULL,
        .search_path_ignored = tni_env_privileged(),
        .probe = probe,
        .cache_folder = cache_folder,
        .fresh = fresh,
    };
    return tni_registry_create(&params, out, err);
}

static tn_status create(tni_registry **out, tni_buffer *notes, tn_error *err)
{
    char *folder = NULL, *probe = NULL;
    tni_buffer cache = {0};
    const char *reason = NULL;
    tn_status status = TN_OK;
    bool remembers = tni_cache_default_folder(&cache, &reason);
    if (cache.failed)
        status = tni_no_memory(err, "modules", "the cache folder's path");
    else if (!remembers)
        tni_buffer_format(notes, "probe results of modules are not stored: %s", reason);
    if (!status)
        status = module_folder(&folder, notes, err);
    if (!status && folder)
        status = find_in(folder, "tenon-probe", false, &probe, err);
    if (!status)
        status = create_with(folder, probe, remembers ? cache.text : NULL, out, err);
    tni_release(probe);
    tni_release(folder);
    tni_buffer_release(&cache);
    return status;
}

tn_status tni_registry_process(tni_registry **out, tn_error *err)
{
    tni_registry *registry = atomic_load_explicit(&current, memory_order_acquire);
    tn_status status = TN_OK;
    if (!registry) {
        tni_buffer notes = {0};
        tni_fork_watch(&hook);
        tni_mutex_lock(&creating);
        registry = atomic_load(&current);
        if (!registry)
            status = create(&registry, &notes, err);
        if (!status)
            atomic_store_explicit(&current, registry, memory_order_release);
        tni_mutex_unlock(&creating);
        if (notes.length > 0)
            tni_log(TN_LOG_WARNING, "%s", tni_buffer_text(&notes));
        tni_buffer_release(&notes);
    }
    if (!status)
        *out = registry;
    return status;
}

tn_status tn_module_folder_add(const char *folder, uint64_t flags, tn_error *err)
{
    tni_registry *registry;
    tn_status status = tni_registry_process(&registry, err);
    return status ? status : tni_registry_add(registry, folder, true, flags, err);
}

tn_status tn_module_file_add(const char *file, uint64_t flags, tn_error *err)
{
    tni_registry *registry;
    tn_status status = tni_registry_process(&registry, err);
    return status ? status : tni_registry_add(registry, file, false, flags, err);
}

tn_status tn_module_verdicts_ignore(tn_error *err)
{
    tn_status status = TN_OK;
    tni_mutex_lock(&creating);
    if (atomic_load(&current))
        status = tn_fail(err, TN_BUSY, 0, "tn_module_verdicts_ignore",
                         "modules were already searched for; call this first");
    else
        fresh = true;
    tni_mutex_unlock(&creating);
    return status;
}

tn_status tn_module_discover(tn_error *err)
{
    tni_registry *registry;
    tn_status status = tni_registry_process(&registry, err);
    return status ? status : tni_registry_discover(registry, err);
}

tn_status tn_module_list_create(tn_module_list **out, tn_error *err)
{
    tni_registry *registry;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_module_list_create", "out is NULL");
    tn_status status = tni_registry_process(&registry, err);
    return status ? status : tni_registry_list(registry, out, err);
}

uint64_t tn_module_generation(void)
{
    tni_registry *registry = atomic_load_explicit(&current, memory_order_acquire);
    return registry ? tni_registry_generation(registry) : 0;
}
