/* One candidate module: how far it came, and why it stopped.
 *
 * A record is filled by the one thread that loads, then published and never changed again, so that
 * reading it needs no lock. Its texts have room of their own: once loading has begun, nothing more
 * is allocated that could fail after a module's code has run. */
#ifndef TNI_REGISTRY_RECORD_H
#define TNI_REGISTRY_RECORD_H

#include "os/file.h"
#include "rows.h"
#include "tenon/module.h"
#include "tenon/module/module.h"
#include "tenon/module/platform.h"

#include <stdatomic.h>

/* What one platform's probe found; status TN_NOT_READY until it has been asked. */
typedef struct tni_platform {
    const tn_platform_row *row;
    void *self;
    int32_t devices;
    unsigned fork; /* the generation of the process that asked */
    tn_status status;
    char message[256]; /* why it has no devices, as its probe said; "" otherwise */
    char remedy[256];  /* and what helps; "" when nobody says */
} tni_platform;

/* Its probe found devices, or it can be given some. */
static inline bool tni_platform_can_serve(const tni_platform *platform)
{
    return platform->status == TN_OK && (platform->devices > 0 || platform->row->describe);
}

/* Who brought it; indexes the words of reports. */
typedef enum tni_origin {
    TNI_ORIGIN_BUILT_IN,
    TNI_ORIGIN_PROGRAM,
    TNI_ORIGIN_FOLDER,
    TNI_ORIGIN_ENVIRONMENT
} tni_origin;

const char *tni_origin_name(tni_origin origin);

typedef struct tni_record {
    char name[64]; /* cut to fit, if it is not legal */
    char version[64];
    char message[1024];
    char remedy[512];
    char *path;                /* owned; NULL for a built-in */
    tn_module_entry_fn *entry; /* set for a built-in, found by opening otherwise */
    tni_origin origin;
    bool trusted;  /* probed in this process: it ships with Tenon, or the program vouches for it */
    bool replaces; /* the program wants it to serve in the place of others */
    tn_module_stage stage;
    tn_status status;
    bool foreign; /* the module's own code gave the status */
    /* The host itself had no memory or descriptor for it. Counts until the record is published;
     * later calls of the host may still set it. */
    _Atomic bool starved;
    uint32_t abi_major;
    uint32_t abi_minor;
    _Atomic uint64_t prober; /* the thread that is in a probe of it, or 0 */
    char helps[256];         /* the prober's: what it told, or against a library it did not find */
    bool helps_own;          /* by the module's own words */
    _Atomic bool withdrawn;  /* by the program that registered it, later than all else */
    tn_error refusal;        /* then, why: TN_OK when the program released it itself */
    const tn_module *table;  /* from NEGOTIATED on, when its code is in this process */
    tni_platform *platforms; /* owned: TNI_PLATFORMS_MAX, from tni_record_fit on `platform_count` */
    int32_t platform_count;
    int32_t devices;
    double ms;
    tn_host host; /* lent to the module */
} tni_record;

/* Whether its rows count: they are sound, and neither taken back nor those of a second of its name. */
static inline bool tni_record_counts(const tni_record *record)
{
    return record->table && record->status != TN_ALREADY_EXISTS &&
           !atomic_load_explicit(&record->withdrawn, memory_order_acquire);
}

/* The one rule of who serves a platform, asked of those that offer it in the order they came:
 * whether `next`, of `record`, serves in the place of `best`, which may be NULL. It is the
 * latest that the program put in the place of others, else the first that can, else the first. */
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

/* A record for a file, or for a built-in when `path` is NULL. NULL for want of memory. */
tni_record *tni_record_create(const char *path, tni_origin origin);

/* Keeps no more room than it needs, if there is memory to do so; before it is published. */
void tni_record_fit(tni_record *record);

/* For records whose code has not run, and for tests: a module may still hold the host's table. */
void tni_record_destroy(tni_record *record);

/* "acme" from "/x/tenon-acme.so"; the file's own name when it has another form. */
void tni_record_name_of(const char *path, char *out, size_t size);

/* Stops the record where it stands: status, message, remedy, cut to fit and cleaned of what is no
 * text. Whatever did not succeed has a remedy: "" means that its author is to be told. Returns
 * `status`. */
tn_status tni_record_stop(tni_record *record, tn_status status, const char *remedy,
                          const char *format, ...) TN_PRINTF(4, 5);

#endif
