/* The selection lock: which kernel computes which problem, written down, so that another run, process or
 * machine takes the same ones or is refused.
 *
 * A lock is a file in Tenon's text form with a checksum: what was changed since it was written is refused
 * (TN_CORRUPT) and never followed. It has the machine it was written on and, for each problem, the kernel,
 * its version and that of its library.
 *
 * A problem that the lock names may be computed by that kernel alone; where that one cannot be taken, the
 * call ends with TN_REFUSED and says which is locked, and why it is not taken. A lock speaks of its devices
 * by their names ("cuda:0"), and of others that have the same name of hardware and architecture. Numbers of
 * a problem that no kernel is chosen by, such as alpha, do not count. An entry holds for every alignment of the
 * problem's memory; where the locked kernel cannot run at one, the call ends with TN_REFUSED. Of several
 * entries that differ in alignment, the one for the most alignment that the memory has counts.
 *
 * Thread-safety: Safe; a report is constant once made. */
#ifndef TENON_LOCK_H
#define TENON_LOCK_H

#include "context.h"
#include "device.h"

TN_BEGIN_DECLS

/* tn_lock_write_args.flags: a problem that the lock does not name is refused. */
#define TN_LOCK_STRICT UINT64_C(1)

typedef struct tn_lock_write_args {
    size_t struct_size;
    const char *path;
    const char *const *problems; /* as for tn_explain; one that stands there twice counts once */
    size_t count;
    uint64_t flags; /* TN_LOCK_... */
} tn_lock_write_args;
TN_ENDS_WITH(tn_lock_write_args, flags);

/* Writes what would compute each problem, as tn_explain says it, in the context (NULL: the thread's): all
 * of them or, when one cannot be computed, nothing. Tests and times nothing: tn_prepare does, before. The
 * file is replaced at once. */
TN_API tn_status tn_lock_write(const tn_context *context, const tn_lock_write_args *args,
                               tn_error *err);

/* From now on the choices of the process are those of the lock; NULL: nothing is locked. Plans that were
 * made before are made anew. Without this call the variable TENON_LOCK names the file, read at the first
 * choice, unless the process has more rights than whoever started it; a file that cannot be read or is
 * wrong then makes every choice fail and say so. Fails with what is wrong, and then nothing changes. */
TN_API tn_status tn_lock_use(const char *path, tn_error *err);

/* The file whose choices hold; "" for none. Copied; returns the length it needs without its end, text too
 * long for `size` is cut. */
TN_API size_t tn_lock_used(char *out, size_t size);

/*  What a row of a report says: name, number, word. Numbers are never reused. */
#define TN_LOCK_ROW_LIST(X)                                                                        \
    X(SAME, 1, "same")                                                                             \
    X(KERNEL, 2, "kernel") /* another one would be taken, were it not for the lock            */   \
    X(VERSION, 3,                                                                                  \
      "version") /* the kernel, or its library, has another version: a use refuses it */           \
    X(REFUSED, 4, "refused") /* the locked kernel cannot be taken                               */ \
    X(SETTINGS, 5,                                                                                 \
      "settings")            /* the same was chosen under other settings                        */ \
    X(MACHINE, 6, "machine") /* a fact of the machine differs                                   */ \
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

/* One line of a report. Texts are lent as long as the report; "" for what it has not. */
typedef struct tn_lock_row {
    size_t struct_size;
    const char *problem; /* with its device; the device alone for MACHINE, "" for STRICT */
    const char *locked;  /* the kernel, or the fact, of the lock, or of the first one    */
    const char *found;   /* of this machine, or of the second one                        */
    const char *text;    /* the difference as a sentence                                 */
    int32_t kind;        /* TN_LOCK_ROW_...                                              */
    int32_t reserved;
} tn_lock_row;
TN_ENDS_WITH(tn_lock_row, reserved);

typedef struct tn_lock_report tn_lock_report;

/* Holds a lock against what would be chosen now, in the context: a row for each fact of the machine that
 * differs and one for each problem. NULL device: each problem on the device that the lock names; another
 * one, which may be described: all of them on that. Locks in use do not count. Opens libraries as tn_explain
 * does, changes nothing. Succeeds whatever it finds. The caller releases the report. */
TN_API tn_status tn_lock_check(const tn_context *context, const char *path, tn_device *device,
                               tn_lock_report **out, tn_error *err);

/* Holds two locks against one another. */
TN_API tn_status tn_lock_diff(const char *first, const char *second, tn_lock_report **out,
                              tn_error *err);
TN_API void tn_lock_report_release(tn_lock_report *report); /* accepts NULL */

/* 0 and NULL for a NULL report; NULL past the end. */
TN_API size_t tn_lock_report_count(const tn_lock_report *report);
TN_API const tn_lock_row *tn_lock_report_row(const tn_lock_report *report, size_t index);

/* How many rows are not SAME. */
TN_API size_t tn_lock_report_differences(const tn_lock_report *report);

TN_END_DECLS

#endif
