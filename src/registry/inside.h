/* Internals shared by registry.c, discover.c, report.c and registry_process.c only. */
#ifndef TNI_REGISTRY_INSIDE_H
#define TNI_REGISTRY_INSIDE_H

#include "base/alloc.h"
#include "os/thread.h"
#include "registry.h"

#include <stdatomic.h>

/* One place to search. Only the loading thread accesses it until `done`; after that it never
 * changes. */
typedef struct tni_place {
    char *path;
    tni_origin origin;
    bool is_folder;
    bool trusted;     /* the program trusts the modules there */
    bool done;        /* written under the registry's lock */
    tni_names *names; /* names in a folder, after it was read; owned */
    size_t next;      /* number of its files that have a record */
    tn_status status;
    char message[256];
} tni_place;

typedef struct tni_list {
    void **items;
    size_t count;
    size_t capacity;
} tni_list;

struct tni_registry {
    tni_mutex lock; /* guards everything down to `generation` */
    tni_condition changed;
    uint64_t loader; /* the loading thread, or 0 */
    unsigned loader_fork;
    tni_list requests; /* places the program added */
    tni_list standing; /* the module folder and those of the variable */
    tni_list records;  /* published tni_record */
    size_t builtins_done;
    bool discovered; /* places added from now on are loaded immediately */
    _Atomic uint64_t generation;

    tni_registry_params params; /* owns its texts */
    tni_cache *cache;           /* owned; used by the loading thread only */
};

/* Loads everything that has not been loaded. Only the loading thread calls it, without the lock.
 * After TN_OUT_OF_MEMORY or TN_BUSY, what was loaded stays loaded; the next call continues from
 * there. */
tn_status tni_discover(tni_registry *registry, tn_error *err);

/* As tni_discover, for a module that is part of the program. */
tn_status tni_discover_entry(tni_registry *registry, tn_module_entry_fn *entry, bool replaces,
                             const tni_record **out, tn_error *err);

/* Reserves room for one more item, so that the append cannot fail. */
static inline bool tni_list_reserve(tni_list *list)
{
    return tni_array_reserve((void **)&list->items, &list->capacity, list->count, list->count + 1,
                             sizeof *list->items);
}

#endif
