/* The selection lock: a file that records which kernel computes which problem, so that another run,
 * process or machine uses the same kernels or fails.
 *
 * A lock is a file in Tenon's text form with a checksum: a file that was modified after it was
 * written fails with TN_CORRUPT and is never used. It records the machine it was written on and,
 * for each problem, the kernel, its version and the version of its library.
 *
 * A problem that the lock names can only be computed by that kernel. If the kernel cannot be used,
 * the call fails with TN_REFUSED; the message says which kernel is locked and why it cannot be
 * used. A lock applies to its devices by name ("cuda:0"), and to other devices with the same
 * hardware name and architecture. Parameters of a problem that do not affect the choice of a
 * kernel, such as alpha, are ignored. An entry applies to every memory alignment of the problem; if
 * the locked kernel cannot run at an alignment, the call fails with TN_REFUSED. If several entries
 * differ only in alignment, the one with the largest alignment that the memory has is used.
 *
 * Thread-safety: Safe; a report is constant once created. */
#ifndef TENON_LOCK_H
#define TENON_LOCK_H

#include "context.h"
#include "device.h"

TN_BEGIN_DECLS

/* Bit of tn_lock_write_args.flags: problems that the lock does not name are refused. */
#define TN_LOCK_STRICT UINT64_C(1)

typedef struct tn_lock_write_args {
    size_t struct_size;
    const char *path;
    const char *const *problems; /* as for tn_explain; duplicates count once */
    size_t count;
    uint64_t flags; /* TN_LOCK_... */
} tn_lock_write_args;
TN_ENDS_WITH(tn_lock_write_args, flags);

/* Writes the kernel that would compute each problem, as tn_explain reports it, in the context
 * (NULL: the calling thread's): all problems, or nothing if one of them cannot be computed. Does
 * not test or time kernels; call tn_prepare first for that. The file is replaced atomically. */
TN_API tn_status tn_lock_write(const tn_context *context, const tn_lock_write_args *args,
                               tn_error *err);

/* From now on the process uses the kernels of the lock; NULL removes the lock. Existing plans are
 * made again. Without this call, the variable TENON_LOCK names the file, which is read at the first
 * choice of a kernel, unless the process runs with elevated privileges. If that file is invalid or
 * cannot be read, every choice fails with the reason. If this call fails, nothing changes. */
TN_API tn_status tn_lock_use(const char *path, tn_error *err);

/* Copies the path of the lock in use; "" for none. Returns the length of the full text without the
 * terminator; text longer than `size` is truncated. */
TN_API size_t tn_lock_used(char *out, size_t size);

/* Kinds of rows in a report: name, number, word. Numbers are never reused. */
#define TN_LOCK_ROW_LIST(X)                                                                        \
    X(SAME, 1, "same")                                                                             \
    X(KERNEL, 2, "kernel")   /* without the lock, another one would be chosen                   */ \
    X(VERSION, 3, "version") /* kernel or library version differs: using the lock refuses it */    \
    X(REFUSED, 4, "refused") /* the locked kernel cannot be used                                */ \
    X(SETTINGS, 5,                                                                                 \
      "settings")            /* same kernel, chosen under other settings                        */ \
    X(MACHINE, 6, "machine") /* a property of the machine differs                               */ \
    X(STRICT, 7, "strict")   /* one of two locks is strict                                      */ \
    X(FIRST_ONLY, 8, "first-only")                                                                 \
    X(SECOND_ONLY, 9, "second-only")
enum {
#define TN_LOCK_ROW_ENUM_(NAME, number, word) TN_LOCK_ROW_##NAME = number,
    TN_LOCK_ROW_LIST(TN_LOCK_ROW_ENUM_)
#undef TN_LOCK_ROW_ENUM_
        TN_LOCK_ROW_COUNT
};
TN_API const char *tn_lock_row_name(int32_t kind); /* "same"; "unknown" */

/* One row of a report. Strings are valid as long as the report; "" if not applicable. */
typedef struct tn_lock_row {
    size_t struct_size;
    const char *problem; /* with its device; the device alone for MACHINE, "" for STRICT */
    const char *locked;  /* kernel, or machine property, in the (first) lock             */
    const char *found;   /* the same on this machine, or in the second lock              */
    const char *text;    /* the difference as a sentence                                 */
    int32_t kind;        /* TN_LOCK_ROW_...                                              */
    int32_t reserved;
} tn_lock_row;
TN_ENDS_WITH(tn_lock_row, reserved);

typedef struct tn_lock_report tn_lock_report;

/* Compares a lock with what would be chosen now in the context: one row for each machine property
 * that differs and one for each problem. NULL device: each problem on the device that the lock
 * names; otherwise all problems on `device`, which may be a described one. Locks in use are
 * ignored. May open libraries, as tn_explain does; changes nothing else. Succeeds even if there are
 * differences. The caller must release the report. */
TN_API tn_status tn_lock_check(const tn_context *context, const char *path, tn_device *device,
                               tn_lock_report **out, tn_error *err);

/* Compares two locks. */
TN_API tn_status tn_lock_diff(const char *first, const char *second, tn_lock_report **out,
                              tn_error *err);
TN_API void tn_lock_report_release(tn_lock_report *report); /* accepts NULL */

/* 0 and NULL for a NULL report; NULL past the end. */
TN_API size_t tn_lock_report_count(const tn_lock_report *report);
TN_API const tn_lock_row *tn_lock_report_row(const tn_lock_report *report, size_t index);

/* Number of rows that are not SAME. */
TN_API size_t tn_lock_report_differences(const tn_lock_report *report);

TN_END_DECLS

#endif
