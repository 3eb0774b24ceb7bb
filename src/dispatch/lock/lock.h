/* The lock from inside: what it says of a question. */
#ifndef TNI_DISPATCH_LOCK_H
#define TNI_DISPATCH_LOCK_H

#include "dispatch/dispatch.h"
#include "dispatch/tune/selection.h"
#include "tenon/lock.h"

/* The kernel that the lock in use names for the question, "" for none. Returns `room`. */
enum { TNI_LOCK_KERNEL = 104 };
const char *tni_lock_names(const tni_question *question, char room[TNI_LOCK_KERNEL]);

/* Completes a refusal for alignment of a kernel that the lock in use names for the question: with the entry, and what
 * to do. Leaves that of any other kernel as it is. */
void tni_lock_tell_alignment(const tni_question *question, const tni_kernel *kernel,
                             tn_refusal *why);

/* Has the lock in use say nothing to this thread's questions, so that what is chosen without it can be told;
 * then speak again. */
void tni_lock_ignore(bool ignored);

/* Reads a lock: selections as they are, and no problem of a device has two kernels. */
tn_status tni_lock_read(const char *path, tni_selections *out, tn_error *err);

/* "version 321"; "an unknown version", as one that was written for a device that is described has none.
 * Returns `room`. */
enum { TNI_LOCK_VERSION = 32 };
const char *tni_lock_version(int64_t version, char room[TNI_LOCK_VERSION]);

/* A report under construction. Texts are copied; a row for which there is no memory makes the report
 * fail at its end. */
typedef struct tni_lock_line {
    int32_t kind;
    const char *problem;
    const char *locked;
    const char *found;
} tni_lock_line;
tn_lock_report *tni_lock_report_create(void); /* NULL for want of memory */
void tni_lock_report_add(tn_lock_report *report, const tni_lock_line *line, const char *format, ...)
    TN_PRINTF(3, 4);
bool tni_lock_report_failed(const tn_lock_report *report);

/* Rows for the facts in which two setups differ; `there` and `here` name the two in texts. */
void tni_lock_compare_setups(const tni_setup *first, const tni_setup *second, const char *there,
                             const char *here, tn_lock_report *to);

#endif
