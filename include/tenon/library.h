/* Vendor libraries: is it here, which version, which file; if not, why, and what helps.
 *
 * Thread-safety: Safe. A library lives as long as the process. */
#ifndef TENON_LIBRARY_H
#define TENON_LIBRARY_H

#include "context.h"

TN_BEGIN_DECLS

typedef struct tn_library tn_library;

/* Every library that a module offers or that Tenon knows by name; finds the modules first. In the
 * order of their names, so that a module that comes in, or is taken back, moves those behind. NULL
 * past the end. */
TN_API tn_status tn_library_count(size_t *out, tn_error *err);
TN_API const tn_library *tn_library_at(size_t index);

/* By name ("mkl") or by another name of the same ("onednn" is "mkldnn"). TN_NOT_FOUND with the
 * nearest. */
TN_API tn_status tn_library_get(const char *name, const tn_library **out, tn_error *err);

enum { TN_AVAILABLE_NO = 0, TN_AVAILABLE_YES, TN_AVAILABLE_UNTRIED };
TN_API const char *tn_available_name(int32_t available); /* "no", "yes", "untried"; "unknown" */

/* How it stands. Texts are "" when unknown. What can change has room of its own; the texts that are
 * lent live as long as the process. */
typedef struct tn_library_state {
    size_t struct_size;
    const char *name;
    const char *platform;
    const char *what;    /* "NVIDIA's neural-network operators"                              */
    const char *module;  /* the one that offers it; "" for none                              */
    const char *verbose; /* the setting that makes it talk: "mkl.verbose"                    */
    int32_t built;       /* 1: a module here, or Tenon itself, has code for it               */
    int32_t available;   /* TN_AVAILABLE_...                                                 */
    int32_t enabled;     /* 0: a rule of the context forbids it                              */
    int32_t kernels;     /* how many kernels go through it                                   */
    int64_t version;     /* as the vendor numbers it: cuDNN 9.10.2 is 91002; -1 unknown      */
    char version_text[96];
    char path[512];   /* the file that is open, or that would be                          */
    char reason[416]; /* for "no" and "untried"; for "yes" what there is to know          */
    char remedy[416];
} tn_library_state;
TN_ENDS_WITH(tn_library_state, remedy);

/* As it stands now; opens nothing. `enabled` is by the context's rules. Set out->struct_size first.
 * "openmp" is what OpenMP run-times the process has: two at once are told in the reason. */
TN_API tn_status tn_library_state_get(const tn_library *library, const tn_context *context,
                                      tn_library_state *out, tn_error *err);

/* Opens it, if that was not tried yet: afterwards it is available, or the reason says why not, which
 * is also the error's. Waits when another thread is at it, but not inside its module, a loop's task or
 * a log sink: TN_BUSY. Want of memory or descriptors (TN_OUT_OF_MEMORY, TN_BUSY) leaves it untried. */
TN_API tn_status tn_library_try(const tn_library *library, tn_error *err);

TN_END_DECLS

#endif
