/* One candidate module: how far it was loaded, and why it stopped.
 *
 * The loading thread fills a record, then publishes it; after that it never changes, so that
 * reading it needs no lock. Its texts are stored inline: after loading has begun, nothing is
 * allocated that could fail once a module's code has run. */
#ifndef TNI_REGISTRY_RECORD_H
#define TNI_REGISTRY_RECORD_H

#include "os/file.h"
#include "rows.h"
#include "tenon/module.h"
#include "tenon/module/module.h"
#include "tenon/module/platform.h"

#include <stdatomic.h>

/* Result of one platform's probe; status TN_NOT_READY until it was probed. */
typedef struct tni_platform {
    const tn_platform_row *row;
    void *self;
    int32_t devices;
    unsigned fork; /* fork generation of the process that probed it */
    tn_status status;
    char message[256]; /* why it has no devices, from its probe; else "" */
    char remedy[256];  /* the remedy; "" if none exists */
} tni_platform;

/* Whether its probe found devices, or devices can be described for it. */
static inline bool tni_platform_can_serve(const tni_platform *platform)
{
    return platform->status == TN_OK && (platform->devices > 0 || platform->row->describe);
}

/* Where a module came from; index of the names in reports. */
typedef enum tni_origin {
    TNI_ORIGIN_BUILT_IN,
    TNI_ORIGIN_PROGRAM,
    TNI_ORIGIN_FOLDER,
    TNI_ORIGIN_ENVIRONMENT
} tni_origin;

const char *tni_origin_name(tni_origin origin);

typedef struct tni_record {
    char name[64]; /* truncated to fit if it is not legal */
    char version[64];
    char message[1024];
    char remedy[512];
    char *path;                /* owned; NULL for a built-in */
    tn_module_entry_fn *entry; /* set for a built-in; otherwise found by opening the file */
    tni_origin origin;
    bool trusted;  /* probed in this process: ships with Tenon or is trusted by the program */
    bool replaces; /* the program wants it to replace others */
    tn_module_stage stage;
    tn_status status;
    bool foreign; /* the status is from the module's own code */
    /* The host itself was out of memory or descriptors. Valid until the record is published; later
     * host calls may still set it. */
    _Atomic bool starved;
    uint32_t abi_major;
    uint32_t abi_minor;
    _Atomic uint64_t prober; /* the thread that is probing it, or 0 */
    char helps[256];         /* set by the prober: its remedy, or one for a missing library */
    bool helps_own;          /* `helps` has the module's own words */
    _Atomic bool withdrawn;  /* no longer registered; set after all else */
    tn_error refusal;        /* why it was withdrawn; TN_OK if the program released it */
    const tn_module *table;  /* from NEGOTIATED on, if its code is in this process */
    tni_platform *platforms; /* owned: TNI_PLATFORMS_MAX; `platform_count` after tni_record_fit */
    int32_t platform_count;
    int32_t devices;
    double ms;
    tn_host host; /* lent to the module */
} tni_record;

/* Whether its rows count: they are valid, not withdrawn, and not from a second module of the same
 * name. */
static inline bool tni_record_counts(const tni_record *record)
{
    return record->table && record->status != TN_ALREADY_EXISTS &&
           !atomic_load_explicit(&record->withdrawn, memory_order_acquire);
}

/* The rule that decides who serves a platform. Called for all modules that offer it, in load order:
 * whether `next`, of `record`, takes precedence over `best`, which may be NULL. The result is the
 * latest one that the program registered as a replacement, else the first that can serve, else the
 * first. */
static inline bool tni_platform_goes_before(const tni_record *record, const tni_platform *next,
                                            const tni_platform *best)
{
    return !best ||
           (tni_platform_can_serve(next) && (record->replaces || !tni_platform_can_serve(best)));
}

/* Whether it ships with Tenon: built in, or a file of Tenon's own in the module folder. */
static inline bool tni_record_is_own(const tni_record *record)
{
    return record->origin == TNI_ORIGIN_BUILT_IN ||
           (record->origin == TNI_ORIGIN_FOLDER && record->trusted);
}

/* Creates a record for a file, or for a built-in if `path` is NULL. NULL if out of memory. */
tni_record *tni_record_create(const char *path, tni_origin origin);

/* Releases unused room, if there is memory to do so. Call before the record is published. */
void tni_record_fit(tni_record *record);

/* Only for records whose code has not run, and for tests: a module may still use the host's
 * table. */
void tni_record_destroy(tni_record *record);

/* Extracts "acme" from "/x/tenon-acme.so"; the file's own name if it has another form. */
void tni_record_name_of(const char *path, char *out, size_t size);

/* Stops the record at its current stage and sets status, message and remedy, truncated to fit and
 * with invalid text escaped. Every failure has a remedy; "" means: report it to the author.
 * Returns `status`. */
tn_status tni_record_stop(tni_record *record, tn_status status, const char *remedy,
                          const char *format, ...) TN_PRINTF(4, 5);

#endif
