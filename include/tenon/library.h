/* Vendor libraries: whether each is available, its version and file; if not, why, and how to fix
 * it.
 *
 * Thread-safety: Safe. A library is valid as long as the process. */
#ifndef TENON_LIBRARY_H
#define TENON_LIBRARY_H

#include "context.h"

TN_BEGIN_DECLS

typedef struct tn_library tn_library;

/* All libraries that a module offers or that Tenon knows by name; finds the modules first. Sorted
 * by name, so indices change when a module is loaded or released. NULL past the end. */
TN_API tn_status tn_library_count(size_t *out, tn_error *err);
TN_API const tn_library *tn_library_at(size_t index);

/* Finds a library by name ("mkl") or alias ("onednn" is "mkldnn"). TN_NOT_FOUND names the closest
 * match. */
TN_API tn_status tn_library_get(const char *name, const tn_library **out, tn_error *err);

enum { TN_AVAILABLE_NO = 0, TN_AVAILABLE_YES, TN_AVAILABLE_UNTRIED };
TN_API const char *tn_available_name(int32_t available); /* "no", "yes", "untried"; "unknown" */

/* The state of a library. Strings are "" if unknown. Values that can change are copied into arrays;
 * pointers are valid as long as the process. */
typedef struct tn_library_state {
    size_t struct_size;
    const char *name;
    const char *platform;
    const char *what;    /* "NVIDIA's neural-network operators"                   */
    const char *module;  /* module that offers it; "" for none                    */
    const char *verbose; /* setting for its diagnostic output: "mkl.verbose"      */
    int32_t built;       /* 1: a module here, or Tenon itself, has code for it    */
    int32_t available;   /* TN_AVAILABLE_...                                      */
    int32_t enabled;     /* 0: a rule of the context forbids it                   */
    int32_t kernels;     /* number of kernels that use it                         */
    int64_t version;     /* vendor's number: cuDNN 9.10.2 is 91002; -1 if unknown */
    char version_text[96];
    char path[512];   /* file that is open, or would be opened        */
    char reason[416]; /* why for "no" and "untried"; for "yes", notes */
    char remedy[416];
} tn_library_state;
TN_ENDS_WITH(tn_library_state, remedy);

/* Reads the current state; opens nothing. `enabled` follows the rules of the context. Set
 * out->struct_size first. "openmp" describes the OpenMP runtime that is loaded in the process; if none
 * is, the file that would be loaded; if two are, the reason says so. */
TN_API tn_status tn_library_state_get(const tn_library *library, const tn_context *context,
                                      tn_library_state *out, tn_error *err);

/* Opens the library if that has not been tried yet. Afterwards it is available, or the call fails
 * with the reason, which the state has too. Waits while another thread opens it, except inside the
 * library's module, a parallel loop's task or a log sink: there it fails with TN_BUSY. If memory or
 * file descriptors run out (TN_OUT_OF_MEMORY, TN_BUSY), it stays untried. */
TN_API tn_status tn_library_try(const tn_library *library, tn_error *err);

TN_END_DECLS

#endif
