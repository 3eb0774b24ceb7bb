/* Measured times, in memory and as text in the cache directory. The key is the device's name,
 * architecture and driver, the threads, the settings that can affect a kernel's time, and the
 * problem; under it, each time has its kernel, the version of its row and the version of its
 * library. Thread-safety: Safe. No lock is held during file access. */
#ifndef TNI_POLICY_TUNING_STORE_H
#define TNI_POLICY_TUNING_STORE_H

#include "dispatch/dispatch.h"

/* The result of timing a kernel. */
typedef struct tni_timed {
    const tni_kernel *kernel;
    int64_t library_version;
    int64_t ns; /* of one call, or TNI_TIME_FAILED */
} tni_timed;

/* Special values of a time. Failures are kept only in this process. */
enum { TNI_TIME_UNKNOWN = 0, TNI_TIME_FAILED = -1 };

/* Returns nanoseconds, or one of the values above; TNI_TIME_UNKNOWN also if out of memory. For a
 * time, sets *out_level to the value it is compared by: times within a tie of each other have the
 * same level, so that the prediction decides between them (see tuning_time.h). Otherwise leaves
 * *out_level unchanged. Reads the cache directory the first time a problem is looked up. */
int64_t tni_times_find(const tni_question *question, const tni_kernel *kernel, int64_t *out_level);

/* Returns the relative difference, as a fraction of the smaller time, below which two times may be
 * ordered by chance. It is larger for a processor, whose kernels vary more from process to process
 * with memory placement and other load, than for a device that reports exclusive use of its
 * memory. */
double tni_times_tie(const tn_device *device);

/* Stores times next to those of other kernels for the problem. If the cache directory cannot be
 * written, they are kept in memory only. */
tn_status tni_times_keep(const tni_question *question, const tni_timed *timed, size_t count,
                         tn_error *err);

/* Clears the times in memory; for tests, and to read the cache directory again. */
void tni_times_forget(void);

#endif
