/* Libraries from inside: the set of them, who offers each, and what became of opening it.
 *
 * One lock guards the set and every trial. No module is called with it held, so a module may ask of
 * libraries from inside its own functions. */
#ifndef TNI_SETTINGS_LIBRARY_H
#define TNI_SETTINGS_LIBRARY_H

#include "os/look/look.h"
#include "registry/record.h"
#include "tenon/library.h"
#include "tenon/module/library.h"

#include <stdbool.h>

/* What Tenon knows of a library without any module. A module's row goes before. Constant. */
enum {
    TNI_LIBRARY_FOREIGN = 0, /* of use to whoever brings a module for it */
    TNI_LIBRARY_PART,        /* of Tenon                                 */
    TNI_LIBRARY_OPENMP,      /* whatever run-times the process has       */
    TNI_LIBRARY_X86          /* as the first, made for x86_64 alone      */
};
typedef struct tni_library_known {
    const char *name;
    const char *platform; /* "" for all                                                     */
    const char *what;
    const char *files;  /* as for tn_host.library_bind; NULL: none to be looked for         */
    const char *remedy; /* what brings the files; NULL where there are none                 */
    const char *only;   /* "part of macOS": why it cannot be here; NULL where it can        */
    int32_t kind;
} tni_library_known;

/* In any order; ended by one without a name. */
extern const tni_library_known tni_libraries_known[];

/* How far opening it came. A trial whose thread fork() left behind counts as none. */
enum { TNI_TRIAL_NONE = 0, TNI_TRIAL_RUNS, TNI_TRIAL_OPEN, TNI_TRIAL_FAILED };
typedef struct tni_library_trial {
    int32_t stage;
    tn_status status; /* of one that failed */
    void *self;       /* of one that is open */
    int64_t version;
    char version_text[96];
    char path[512];
    char reason[416];
} tni_library_trial;

/* One module's row for a library. Lives as long as the process. */
typedef struct tni_library_offer {
    struct tni_library_offer *next;
    const tni_record *record;
    const tn_library_row *row;
    tni_library_trial trial;
    unsigned fork;        /* generation of the process that runs it                    */
    tn_setting talk;      /* the setting that makes it talk; -1 for none               */
    _Atomic int32_t told; /* what it was told last; 0 before: what the environment says */
} tni_library_offer;

struct tn_library {
    const char *name;
    const tni_library_known *known; /* or NULL                            */
    tni_library_offer *offers;      /* in the order in which they came    */
};

/* Registers the fork hook of libraries. A caller that uses libraries under a lock which its own fork hook takes must call
 * this before it registers that hook. */
void tni_libraries_watch_forks(void);

void tni_libraries_lock(void);
void tni_libraries_unlock(void);
void tni_libraries_wait(void); /* for a trial to end, with the lock held */
void tni_libraries_wake(void);

/* With the lock held: the offer that counts, or NULL; that of a module, or NULL; whether a living thread is
 * at its trial. */
tni_library_offer *tni_library_served(const tn_library *library);
tni_library_offer *tni_library_offer_of(const tn_library *library, const tni_record *record);
bool tni_library_is_tried_now(const tni_library_offer *offer);

/* Everything of a state but what the context says; looks for files, opens nothing. */
void tni_library_tell(const tn_library *library, tn_library_state *out);

/* Where the files are in this process, else where the loader would find them; also the state's path, unless it was
 * cut. Whether they are in this process. */
bool tni_library_look(const char *files, tni_look *out, tn_library_state *to);

/* The OpenMP run-times that the process has. */
void tni_library_tell_openmp(const tni_library_known *known, tn_library_state *out);

/* TN_INCOMPATIBLE, with both, when the files need another OpenMP run-time than one that the process has:
 * the two would crowd the cores at best, and some end the process when they meet. */
tn_status tni_library_openmp_check(const char *files, tn_error *err);

/* What a module gave: a status that this version does not know is its fault, not a success, and its
 * words end where the struct does. */
tn_status tni_library_sane(tn_status status, tn_error *err);

/* Formats a text of a state, cut to fit. */
void tni_library_say(char *out, size_t size, const char *format, ...) TN_PRINTF(3, 4);

/* Opens what a module offers of the library, if that was not tried yet: *out_self is what it keeps, and
 * the version may be -1. Fails as tn_library_try does; TN_UNAVAILABLE when that module offers none. */
tn_status tni_library_open(const tn_library *library, const tni_record *record, void **out_self,
                           int64_t *out_version, tn_error *err);

/* Tells an open library how much to say: see tn_library_row.verbose. TN_UNAVAILABLE when it is not
 * open, TN_UNSUPPORTED when it cannot talk. */
tn_status tni_library_verbose(const tn_library *library, int32_t level, tn_error *err);

/* A module's library that a setting can make talk, or NULL. */
tni_library_offer *tni_library_talker(const tn_library *library, const tni_record *record);

/* Has an open library talk as the context says, from now on: before each call into it. A library has one
 * level for the process, so that calls of other threads talk as the last one said. One that refuses is told
 * of in the log. */
void tni_library_heed(tni_library_offer *offer, const tn_context *context);

#endif
