/* The registry: where modules are sought, the one thread at a time that loads them, and the rows
 * everyone reads. The process has one (tenon/module.h); tests make others.
 *
 * No module is ever called with the registry's lock held. Thread-safety: Safe. */
#ifndef TNI_REGISTRY_REGISTRY_H
#define TNI_REGISTRY_REGISTRY_H

#include "os/cache/cache.h"
#include "record.h"
#include "tenon/module.h"

typedef struct tni_registry tni_registry;

typedef struct tni_builtin {
    const char *name;
    tn_module_entry_fn *entry;
} tni_builtin;

/* Texts are copied; `cache` is lent for as long as the registry lives. */
typedef struct tni_registry_params {
    const tni_builtin *builtins; /* ended by a NULL entry; may be NULL                         */
    const char *module_folder;   /* the library's own, or NULL                                 */
    const char *const *shipped;  /* names of its files that ship with Tenon, NULL-ended, or NULL */
    const char *search_path;     /* the value of TENON_MODULE_PATH, or NULL                    */
    bool search_path_ignored;    /* it is set, but privileges are raised                       */
    const char *probe;           /* the child program, or NULL                                 */
    int64_t probe_limit_ns;      /* its time; 0 for two seconds                                */
    tni_cache *cache;            /* for verdicts, or NULL                                      */
    const char *cache_folder;    /* where to make one, at the first need, when `cache` is NULL */
    bool fresh;                  /* remembered verdicts do not count                           */
} tni_registry_params;

tn_status tni_registry_create(const tni_registry_params *params, tni_registry **out, tn_error *err);

/* For tests: every list made from it is released, no module is in use. Accepts NULL. */
void tni_registry_destroy(tni_registry *registry);

/* As the tn_module_ functions of the same names. */
tn_status tni_registry_add(tni_registry *registry, const char *path, bool is_folder, uint64_t flags,
                           tn_error *err);
tn_status tni_registry_discover(tni_registry *registry, tn_error *err);

/* Discovers, and then calls `then` as the one thread that loads: it may call modules too. Neither is
 * done where the caller may not wait for another one that loads, as in a probe. */
tn_status tni_registry_discover_then(tni_registry *registry,
                                     tn_status (*then)(void *user, tn_error *err), void *user,
                                     tn_error *err);
tn_status tni_registry_list(tni_registry *registry, tn_module_list **out, tn_error *err);
uint64_t tni_registry_generation(const tni_registry *registry);

/* The records that are published, in the order they came in; NULL past the end. Lent for as long as
 * the registry lives: a record never changes again. */
const tni_record *tni_registry_record(tni_registry *registry, size_t index);

/* A module that the program contains, loaded at once behind all others. The record is lent as above,
 * whatever became of the module; TN_BUSY where the caller may not wait for a loading thread, inside a
 * probe or a log sink. */
tn_status tni_registry_register(tni_registry *registry, tn_module_entry_fn *entry, bool replaces,
                                const tni_record **out, tn_error *err);

/* Its name and rows no longer count, from now on. What a list says of it is `refusal`; with NULL it is
 * in none any more. */
void tni_registry_withdraw(tni_registry *registry, const tni_record *record,
                           const tn_error *refusal);

/* The process's own, made at the first need. */
tn_status tni_registry_process(tni_registry **out, tn_error *err);

/* Around fork(): the child has only the thread that forked, and loads anew what another one was
 * at. */
void tni_registry_before_fork(tni_registry *registry);
void tni_registry_after_fork(tni_registry *registry, bool in_child);

/* The modules linked into the library itself. */
extern const tni_builtin tni_builtins[];

/* Names of the files that ship with Tenon, NULL-ended: made by the build. */
extern const char *const tni_shipped[];

#endif
