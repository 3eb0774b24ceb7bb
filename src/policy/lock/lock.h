/* Internals of the lock: which kernel it names for a question. */
#ifndef TNI_POLICY_LOCK_LOCK_H
#define TNI_POLICY_LOCK_LOCK_H

#include "dispatch/dispatch.h"
#include "policy/tuning/selection.h"
#include "tenon/lock.h"

/* Returns in `room` the kernel that the active lock names for the question; "" if none. */
enum { TNI_LOCK_KERNEL = 104 };
const char *tni_lock_names(const tni_question *question, char room[TNI_LOCK_KERNEL]);

/* Whether the lock permits a candidate. Returns false and sets `why` if the lock names another
 * kernel or another version. Returns true if there is no lock, and for problems that it does not
 * name, unless it is strict. */
bool tni_lock_permits(const tni_question *question, const tni_kernel *kernel,
                      int64_t library_version, tn_refusal *why);

/* If the active lock names this kernel for the question, adds the lock's entry and the remedy to a
 * refusal for alignment. Leaves refusals of other kernels unchanged. */
void tni_lock_explain_alignment(const tni_question *question, const tni_kernel *kernel,
                                tn_refusal *why);

/* Makes this thread's questions ignore the active lock, to find the choice without it; with false,
 * applies it again. */
void tni_lock_ignore(bool ignored);

/* Reads a lock: the selections of the file. Fails if a problem of a device has two kernels. */
tn_status tni_lock_read(const char *path, tni_selections *out, tn_error *err);

/* Writes "version 321", or "an unknown version", which entries have that were written for a
 * described device. Returns `room`. */
enum { TNI_LOCK_VERSION = 32 };
const char *tni_lock_version(int64_t version, char room[TNI_LOCK_VERSION]);

/* A report under construction. Texts are copied. If a row cannot be allocated, the report fails at
 * its end. */
typedef struct tni_lock_line {
    int32_t kind;
    const char *problem;
    const char *locked;
    const char *found;
} tni_lock_line;
tn_lock_report *tni_lock_report_create(void); /* NULL if out of memory */
void tni_lock_report_add(tn_lock_report *report, const tni_lock_line *line, const char *format, ...)
    TN_PRINTF(3, 4);
bool tni_lock_report_failed(const tn_lock_report *report);

/* Adds a row for each fact in which two setups differ; `there` and `here` name the two in texts. */
void tni_lock_compare_setups(const tni_setup *first, const tni_setup *second, const char *there,
                             const char *here, tn_lock_report *to);

#endif
