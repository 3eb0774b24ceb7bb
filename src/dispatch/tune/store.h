/* Times that were measured: in memory, and in the cache directory as text. They are kept by the device's
 * name, architecture and driver, threads, the settings that a kernel's time may depend on, and the
 * problem; each of them by its kernel, the version of its row and that of its library.
 * Thread-safety: Safe. No lock is held around files. */
#ifndef TNI_DISPATCH_STORE_H
#define TNI_DISPATCH_STORE_H

#include "dispatch/dispatch.h"

/* What became of timing a kernel. */
typedef struct tni_timed {
    const tni_kernel *kernel;
    int64_t library_version;
    int64_t ns; /* of one call; TNI_TIME_FAILED */
} tni_timed;

/* What is known of a time besides itself. A failure is remembered by the process alone. */
enum { TNI_TIME_UNKNOWN = 0, TNI_TIME_FAILED = -1 };

/* Nanoseconds, or one of the above; also TNI_TIME_UNKNOWN for want of memory. Of a time, *out_level is what it
 * is compared by: those within a tie of one another have one level, so that a prediction decides
 * between them: see tuning_time.h. Else it is left alone. Reads the cache directory for a problem that was
 * not asked for yet. */
int64_t tni_times_find(const tni_question *question, const tni_kernel *kernel, int64_t *out_level);

/* How far apart two times may be, as a part of the lesser, for chance to have ordered them: a processor's kernels
 * change by more from one process to the next, with where their memory lies and who else is at it, than those of
 * a device that says that it has its memory to itself. */
double tni_times_tie(const tn_device *device);

/* Keeps times beside those that other kernels have for the problem. What the cache directory does not take is
 * kept in memory alone. */
tn_status tni_times_keep(const tni_question *question, const tni_timed *timed, size_t count,
                         tn_error *err);

/* Forgets what is in memory; for tests, and to have the cache directory read again. */
void tni_times_forget(void);

#endif
