/* The platforms of one registry, and their devices: which module serves each, the evidence for it,
 * which is current. The process has one set; tests create others.
 *
 * No module is called with the set's lock held. Thread-safety: Safe. */
#ifndef TNI_DEVICE_PLATFORMS_H
#define TNI_DEVICE_PLATFORMS_H

#include "base/buffer.h"
#include "device/description.h"
#include "device/device.h"
#include "known.h"
#include "os/thread.h"
#include "registry/registry.h"
#include "settings/reader.h"
#include "tenon/device.h"

#include <stdatomic.h>

/* A list of pointers that only grows. */
typedef struct tni_pointers {
    void **items;
    size_t count;
    size_t capacity;
} tni_pointers;

struct tni_platforms {
    tni_mutex lock; /* guards the fields below, except `registry`, `root` and `records_seen` */
    tni_condition changed;
    uint64_t describer; /* the thread that is adding described devices, or 0 */
    unsigned describer_fork;
    tni_registry *registry;
    const char *root; /* replaces "/" in searches for traces, or NULL */
    tni_pointers platforms;
    tni_pointers offers;        /* of modules that are not withdrawn */
    tni_pointers devices;       /* theirs, and those for planning only */
    tni_pointers past;          /* withdrawn offers; has room for all others */
    tni_pointers ever;          /* every device ever added, by ordinal; owned: handles stay valid */
    size_t records_seen;        /* used by the loading thread only */
    const tn_platform *current; /* NULL until it is resolved */
    const char
        *chosen_by; /* "the first platform that is ready", "selected by TENON_PLATFORM", ... */
};

/* `registry` and `root` are borrowed and must outlive the set. */
tn_status tni_platforms_create(tni_registry *registry, const char *root, tni_platforms **out,
                               tn_error *err);
void tni_platforms_destroy(tni_platforms *set); /* for tests; nothing of it may be in use */
tn_status tni_platforms_process(tni_platforms **out, tn_error *err);

/* Discovers modules, adds what the registry found since the last call, and queries the properties of
 * each new device, once. Fails only if out of memory. */
tn_status tni_platforms_sync(tni_platforms *set, tn_error *err);

/* Determines which offer serves a platform and how many devices it has. Must be called with the
 * lock held, after offers or devices changed. */
void tni_platforms_update(tni_platforms *set, tn_platform *platform);

/* The offer that serves the platform according to the rule, among those up to that of `last` (NULL:
 * all). Must be called with the lock held. */
const tni_offer *tni_platforms_choose(const tni_platforms *set, const tn_platform *platform,
                                      const tni_record *last);

/* Finds a platform by name, whatever its verdict. */
tn_status tni_platforms_find(tni_platforms *set, const char *name, tn_platform **out,
                             tn_error *err);
size_t tni_platforms_count(tni_platforms *set);
tn_platform *tni_platforms_at(tni_platforms *set, size_t index);

/* The platform as its set stores it, so that it can be changed under the set's lock. NULL for the
 * unspecified one. */
tn_platform *tni_platforms_same(const tn_platform *platform);

/* Updates which operators each platform lacks for "best". Required are those that the cpu has a
 * kernel for, if the platform's module does not ship with Tenon. Must be called with no lock
 * held. */
void tni_platforms_weigh(tni_platforms *set);

/* Rank of a platform for the choice of the current one, lowest first, as of the last
 * tni_platforms_weigh: by kind; after all kinds, platforms that lack operators; after them,
 * stand-ins. */
int32_t tni_platform_rank(const tn_platform *platform);

/* Whether it may become current without being requested by name, as of the last
 * tni_platforms_weigh. */
bool tni_platform_is_eligible(const tn_platform *platform);

/* Why "best" does not choose a ready platform: "it has no kernel for softmax, norm"; "" if it may
 * choose it, and for a stand-in. */
void tni_platform_lacks_text(const tn_platform *platform, char *out, size_t size);

/* As the tn_platform_ functions of the same names, for one set. */
tn_status tni_platforms_current(tni_platforms *set, const tn_platform **out, tn_error *err);
tn_status tni_platforms_select(tni_platforms *set, const char *name, tn_error *err);

tn_status tni_platform_list_of(tni_platforms *set, tn_platform_list **out, tn_error *err);

tn_status tni_platforms_register(tni_platforms *set, tn_module_entry_fn *entry, uint64_t flags,
                                 tn_registration **out, tn_error *err);

/* `platform`, or the unspecified one for NULL. */
static inline const tn_platform *tni_platform_or_unspecified(const tn_platform *platform)
{
    return platform ? platform : tn_platform_unspecified();
}

/* The row that serves it, or NULL; and whether its probe succeeded, so that it may be called. */
const tn_platform_row *tni_platform_row_of(const tn_platform *platform);
bool tni_platform_is_ready(const tn_platform *platform);

/* The value of the variable that selects its devices, and that variable's name: the first one set
 * of those that its runtime reads. NULL if none is set; the name is "" if it has no variable. */
const char *tni_platform_visible_value(const tn_platform *platform, const char **out_name);

/* The row's evidence if it has any, else that of the kind. */
const tn_evidence_row *const *tni_platform_evidence_rows(const tn_platform *platform);

/* Fails with TN_UNAVAILABLE for `where`: the verdict on a platform that is not ready, with its
 * reason. */
tn_status tni_platform_unready(const tn_platform *platform, const char *where, tn_error *err);

/* The same for a platform without devices, which may still be ready and get some later
 * (TN_NOT_FOUND). */
tn_status tni_platform_empty(const tn_platform *platform, const char *where, tn_error *err);

/* For a device number that does not exist: fails with TN_NOT_FOUND and the number of devices, or as
 * above. */
tn_status tni_platform_no_device(const tn_platform *platform, int32_t index, const char *where,
                                 tn_error *err);

/* As the tn_device_ functions of the same names, for one set. */
tn_status tni_devices_get(tni_platforms *set, const char *name, tn_device **out, tn_error *err);
tn_status tni_devices_describe(tni_platforms *set, const tni_descriptions *descriptions,
                               const char *file, tn_error *err);
tn_device *tni_devices_of(const tn_platform *platform, int32_t index); /* NULL if none exists */

/* Creates a device, found or described; it is invisible until it is in the set's list. Without an
 * offer it is for planning only. If `properties` is NULL, they are queried from its platform. */
tn_status tni_device_create(const tni_offer *offer, tn_platform *platform, int32_t index,
                            const tn_device_properties *properties, tn_device **out, tn_error *err);
void tni_device_destroy(tn_device *device); /* accepts NULL */

/* Reserves room for `more` devices in the lists; appends one. Must be called with the set's lock
 * held. */
bool tni_devices_reserve(tni_platforms *set, size_t more);
void tni_device_publish(tni_platforms *set, tn_device *device);

/* Whether `name` is the UUID or bus address; or, of a device, also its id, its platform's name or
 * its section. */
bool tni_properties_are_called(const tn_device_properties *properties, const char *name);
bool tni_device_is_called(const tn_device *device, const char *name);

/* Whether a device can be found by name: it belongs to the module that serves its platform now, or
 * is for planning and has a number that none of those has. */
static inline bool tni_device_is_visible(const tn_device *device)
{
    return atomic_load_explicit(&device->visible, memory_order_acquire);
}

/* Reserves room for `more` items, so that appending cannot fail. */
bool tni_pointers_reserve(tni_pointers *list, size_t more);

/* tn_platform_inference_mode as a reader of settings. */
extern const tni_setting_reader tni_platform_reader;

#endif
