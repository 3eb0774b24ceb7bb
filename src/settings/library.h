/* Internals of libraries: the set of them, who offers each, and the result of opening it.
 *
 * One lock guards the set and every trial. No module is called with it held, so a module may query
 * libraries from its own functions. */
#ifndef TNI_SETTINGS_LIBRARY_H
#define TNI_SETTINGS_LIBRARY_H

#include "os/look/look.h"
#include "registry/record.h"
#include "tenon/library.h"
#include "tenon/module/library.h"

#include <stdbool.h>

/* What Tenon knows about a library without any module. A module's row takes precedence.
 * Constant. */
enum {
    TNI_LIBRARY_FOREIGN = 0, /* usable by a module that someone adds */
    TNI_LIBRARY_PART,        /* part of Tenon */
    TNI_LIBRARY_OPENMP,      /* the OpenMP runtimes of the process */
    TNI_LIBRARY_X86          /* as TNI_LIBRARY_FOREIGN, x86_64 only */
};
typedef struct tni_library_known {
    const char *name;
    const char *platform; /* "" for all */
    const char *what;
    const char *files;  /* as for tn_host.library_bind; NULL: no files to look for */
    const char *remedy; /* how to install the files; NULL where none exist */
    const char *only;   /* "part of macOS": why it cannot exist here; NULL: it can */
    int32_t kind;
} tni_library_known;

/* Returns the other name of a library that has two names ("onednn" is "mkldnn"), or NULL. */
const char *tni_library_other_name(const char *name);

/* In any order; ends with a row without a name. */
extern const tni_library_known tni_libraries_known[];

/* Progress of opening a library (a trial). A trial whose thread was lost in a fork() counts as
 * TNI_TRIAL_NONE. */
enum { TNI_TRIAL_NONE = 0, TNI_TRIAL_RUNS, TNI_TRIAL_OPEN, TNI_TRIAL_FAILED };
typedef struct tni_library_trial {
    int32_t stage;
    tn_status status; /* why it failed */
    void *self;       /* the module's handle of an open library */
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
    unsigned fork;        /* fork generation of the process that runs the trial */
    tn_setting talk;      /* the setting for its verbosity; -1 for none */
    _Atomic int32_t told; /* verbosity set last; initially 0: the environment's */
} tni_library_offer;

struct tn_library {
    const char *name;
    const tni_library_known *known; /* or NULL                            */
    tni_library_offer *offers;      /* in order of arrival */
};

/* Registers the fork hook of libraries. A caller that uses libraries under a lock which its own fork hook takes must call
 * this before it registers that hook. */
void tni_libraries_watch_forks(void);

void tni_libraries_lock(void);
void tni_libraries_unlock(void);
void tni_libraries_wait(void); /* waits for a trial to end; needs the lock */
void tni_libraries_wake(void);

/* Must be called with the lock held. tni_library_served returns the offer in effect, or NULL;
 * tni_library_offer_of that of a module, or NULL; tni_library_is_being_tried whether a thread of this
 * process is running its trial. */
tni_library_offer *tni_library_served(const tn_library *library);
tni_library_offer *tni_library_offer_of(const tn_library *library, const tni_record *record);
bool tni_library_is_being_tried(const tni_library_offer *offer);

/* Fills in a state, except for what the context determines. Looks for files, but opens nothing. */
void tni_library_describe(const tn_library *library, tn_library_state *out);

/* Finds the files in this process, else where the loader would find them. Sets to->path, unless the
 * path was truncated. Returns whether they are loaded in this process. */
bool tni_library_look(const char *files, tni_look *out, tn_library_state *to);

/* Describes the OpenMP runtimes of the process. */
void tni_library_describe_openmp(const tni_library_known *known, tn_library_state *out);

/* Fails with TN_INCOMPATIBLE, naming both, if the files need another OpenMP runtime than one in the
 * process: two runtimes oversubscribe the cores at best, and some pairs end the process. */
tn_status tni_library_openmp_check(const char *files, tn_error *err);

/* Sanitizes the result of a module: an unknown status becomes TN_CORRUPT, and its texts are
 * terminated and escaped. */
tn_status tni_library_sanitize(tn_status status, tn_error *err);

/* Opens the library that a module offers, if that was not tried yet. *out_self is the module's
 * handle; the version may be -1. Fails as tn_library_try does; TN_UNAVAILABLE if that module does
 * not offer it. */
tn_status tni_library_open(const tn_library *library, const tni_record *record, void **out_self,
                           int64_t *out_version, tn_error *err);

/* Sets the verbosity of an open library: see tn_library_row.verbose. Fails with TN_UNAVAILABLE if
 * it is not open, TN_UNSUPPORTED if it has no verbosity. */
tn_status tni_library_verbose(const tn_library *library, int32_t level, tn_error *err);

/* A module's library whose verbosity a setting controls, or NULL. */
tni_library_offer *tni_library_talker(const tn_library *library, const tni_record *record);

/* Sets the verbosity of an open library to the context's value; call it before each call into the
 * library. A library has one verbosity per process, so the last call determines that of other
 * threads too. If the library refuses, a warning is logged. */
void tni_library_apply_verbosity(tni_library_offer *offer, const tn_context *context);

#endif
