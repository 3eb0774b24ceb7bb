/* The platforms of one registry, and their devices: who serves each, what speaks for it, which is
 * current. The process has one set; tests make others.
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
    tni_mutex lock; /* guards what is below, but for `registry` and `root`, and `records_seen` */
    tni_condition changed;
    uint64_t describer; /* the thread that adds described devices, or 0 */
    unsigned describer_fork;
    tni_registry *registry;
    const char *root; /* stands for "/" where traces are looked for, or NULL */
    tni_pointers platforms;
    tni_pointers offers;  /* of modules that were not taken back             */
    tni_pointers devices; /* theirs, and those for planning only             */
    tni_pointers past;    /* offers that were taken back; has room for all others */
    tni_pointers ever;    /* every device that came, by its ordinal; owned: handles stay valid */
    size_t records_seen;  /* the loading thread's */
    const tn_platform *current; /* NULL until it is resolved */
    const char *chosen_by;      /* "the first that is ready", "TENON_PLATFORM asks for it", ... */
};

/* `registry` and `root` are lent for as long as the set lives. */
tn_status tni_platforms_create(tni_registry *registry, const char *root, tni_platforms **out,
                               tn_error *err);
void tni_platforms_destroy(tni_platforms *set); /* for tests: nothing of it is in use */
tn_status tni_platforms_process(tni_platforms **out, tn_error *err);

/* Takes in what the registry found since; discovers first, and asks each new device for its properties,
 * once. Fails for want of memory. */
tn_status tni_platforms_sync(tni_platforms *set, tn_error *err);

/* Settles who serves a platform and how many devices it has; with the lock held, after offers or
 * devices changed. */
void tni_platforms_settle(tni_platforms *set, tn_platform *platform);

/* Whom the one rule has serve the platform, of the offers up to that of `last`, or of all for NULL; with
 * the lock held. */
const tni_offer *tni_platforms_choose(const tni_platforms *set, const tn_platform *platform,
                                      const tni_record *last);

/* Whatever the names say without a verdict. */
tn_status tni_platforms_find(tni_platforms *set, const char *name, tn_platform **out,
                             tn_error *err);
size_t tni_platforms_count(tni_platforms *set);
tn_platform *tni_platforms_at(tni_platforms *set, size_t index);

/* The same platform as its set holds it, to be changed under the set's lock. NULL for the unspecified
 * one. */
tn_platform *tni_platforms_same(const tn_platform *platform);

/* Finds out anew which operators each platform lacks that "best" asks of it: those that the cpu
 * has a kernel for, of a platform whose module does not ship with Tenon. With no lock held. */
void tni_platforms_weigh(tni_platforms *set);

/* Where a platform stands in the order that the current one is chosen by, least first, as of the
 * latest tni_platforms_weigh: by kind; behind all kinds, those that lack operators; behind them,
 * stand-ins. */
int32_t tni_platform_rank(const tn_platform *platform);

/* Whether it may become current without being asked for by name, as of the latest
 * tni_platforms_weigh. */
bool tni_platform_takes_part(const tn_platform *platform);

/* Why "best" passes over a platform that is ready: "it has no kernel for softmax, norm"; ""
 * where it does not, and for a stand-in. */
void tni_platform_lacks_text(const tn_platform *platform, char *out, size_t size);

/* As the tn_platform_ functions of the same names, of one set. */
tn_status tni_platforms_current(tni_platforms *set, const tn_platform **out, tn_error *err);
tn_status tni_platforms_select(tni_platforms *set, const char *name, tn_error *err);

tn_status tni_platform_list_of(tni_platforms *set, tn_platform_list **out, tn_error *err);

tn_status tni_platforms_register(tni_platforms *set, tn_module_entry_fn *entry, uint64_t flags,
                                 tn_registration **out, tn_error *err);

/* The row that serves it, or NULL; and whether its probe succeeded, so that it may be called. */
const tn_platform_row *tni_platform_row_of(const tn_platform *platform);
bool tni_platform_is_ready(const tn_platform *platform);

/* The value of the variable that selects its devices, and which one that is: the first that is set of
 * those its run-time reads. NULL when none is set; the name is "" where there is none. */
const char *tni_platform_visible_value(const tn_platform *platform, const char **out_name);

/* What the row says, else what the kind has. */
const tn_evidence_row *const *tni_platform_evidence_rows(const tn_platform *platform);

/* TN_UNAVAILABLE for `where`: the verdict on a platform that is not ready, with its reason. */
tn_status tni_platform_unready(const tn_platform *platform, const char *where, tn_error *err);

/* The same of a platform without devices, which may yet be ready to be given some (TN_NOT_FOUND). */
tn_status tni_platform_empty(const tn_platform *platform, const char *where, tn_error *err);

/* For a number that none of its devices has: TN_NOT_FOUND with how many it has, or as above. */
tn_status tni_platform_no_device(const tn_platform *platform, int32_t index, const char *where,
                                 tn_error *err);

/* As the tn_device_ functions of the same names, of one set. */
tn_status tni_devices_get(tni_platforms *set, const char *name, tn_device **out, tn_error *err);
tn_status tni_devices_describe(tni_platforms *set, const tni_descriptions *descriptions,
                               const char *file, tn_error *err);
tn_device *tni_devices_of(const tn_platform *platform, int32_t index); /* NULL when there is none */

/* A device, found or described; no one sees it before it is in the set's list. Without an offer it is
 * for planning only. With NULL properties its platform tells them. */
tn_status tni_device_create(const tni_offer *offer, tn_platform *platform, int32_t index,
                            const tn_device_properties *properties, tn_device **out, tn_error *err);
void tni_device_destroy(tn_device *device); /* accepts NULL */

/* Room for `more` further ones in the lists, and appending one; with the set's lock held. */
bool tni_devices_reserve(tni_platforms *set, size_t more);
void tni_device_publish(tni_platforms *set, tn_device *device);

/* By UUID or bus address; or by its id, its platform's name or its section too. */
bool tni_properties_are_called(const tn_device_properties *properties, const char *name);
bool tni_device_is_called(const tn_device *device, const char *name);

/* A device that names lead to: one of the module that serves its platform now, or one for planning whose
 * number none of those has. */
bool tni_device_is_visible(const tn_device *device);

/* Room for `more` further ones, so that appending cannot fail. */
bool tni_pointers_reserve(tni_pointers *list, size_t more);

/* tn_platform_inference_mode, as one who reads settings. */
extern const tni_setting_reader tni_platform_reader;

#endif
