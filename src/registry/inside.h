/* What registry.c and discover.c share, and no one else. */
#ifndef TNI_REGISTRY_INSIDE_H
#define TNI_REGISTRY_INSIDE_H

#include "os/thread.h"
#include "registry.h"

#include <stdatomic.h>

/* One place to look. Only the loading thread touches it until `done`; then it never changes. */
typedef struct tni_place {
    char *path;
    tni_origin origin;
    bool is_folder;
    bool trusted;     /* the program vouches for what is there            */
    bool done;        /* written under the registry's lock                */
    tni_names *names; /* of a folder, once it has been read; owned        */
    size_t next;      /* how many of them, or of one file, have a record  */
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
    uint64_t loader; /* the thread that loads, or 0 */
    unsigned loader_fork;
    tni_list wishes;   /* places the program added       */
    tni_list standing; /* the module folder, the variable's */
    tni_list records;  /* tni_record, published           */
    size_t builtins_done;
    bool discovered; /* what is added from now on is loaded at once */
    _Atomic uint64_t generation;

    tni_registry_params params; /* its texts are owned */
    tni_cache *cache;           /* owned; the loading thread's */
};

/* Loads everything that has not been loaded. Called by the loading thread alone, without the lock.
 * TN_OUT_OF_MEMORY leaves what was done done; the next call goes on from there. */
tn_status tni_discover(tni_registry *registry, tn_error *err);

/* The same for a module that the program contains. */
tn_status tni_discover_entry(tni_registry *registry, tn_module_entry_fn *entry, bool replaces,
                             const tni_record **out, tn_error *err);

tni_place *tni_place_create(const char *path, tni_origin origin, bool is_folder, bool trusted);
void tni_place_destroy(tni_place *place);

/* Room for one more, so that the append cannot fail. */
bool tni_list_reserve(tni_list *list);

#endif
