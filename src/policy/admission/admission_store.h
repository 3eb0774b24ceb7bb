/* Verdicts on kernels with devices: in this process, backed by the cache directory. Thread-safety:
 * Safe; no lock is held while files are read or written. */
#ifndef TNI_POLICY_ADMISSION_ADMISSION_STORE_H
#define TNI_POLICY_ADMISSION_ADMISSION_STORE_H

#include "admission.h"

/* The subject of a verdict. Problems that the same plan of the kernel serves share one verdict. */
typedef struct tni_exam {
    const tni_kernel *kernel;
    const tn_device *device;
    int64_t library_version;
    const tn_op *op; /* NULL: the kernel in general */
} tni_exam;

typedef struct tni_trust {
    int32_t
        verdict; /* TNI_TRUST_UNTESTED, _PASSED; for a kernel in general also _QUARANTINED, _APART */
    char text[224]; /* for _QUARANTINED: the error */
} tni_trust;

/* Looks up a verdict. UNTESTED also if out of memory. The cache directory is read once for each
 * kernel, and for a problem again whenever it was dropped from memory: the number of problems kept
 * per kernel is limited. */
void tni_trust_lookup(const tni_exam *exam, tni_trust *out);

/* Stores a verdict for this process; with `keep` also for other and later processes. If the cache
 * directory cannot be written, it is kept in memory only. May fail with TN_OUT_OF_MEMORY. */
tn_status tni_trust_store(const tni_exam *exam, const tni_trust *trust, bool keep, tn_error *err);

/* Makes the calling thread the one that tests the kernel; *out_mine is false if there is already a
 * verdict (for an APART kernel, on the problem). Waits for another thread's test, except inside a
 * kernel under test, a task of a parallel loop or a log sink: then fails with TN_BUSY. A thread
 * that got the claim must call tni_trust_unclaim. */
tn_status tni_trust_claim(const tni_exam *exam, bool *out_mine, tn_error *err);
void tni_trust_unclaim(const tni_exam *exam);

/* Converts a verdict to the stored text and back; reading fails with TN_CORRUPT for any other
 * text. */
tn_status tni_trust_write(const tni_exam *exam, const tni_trust *trust, tni_buffer *to,
                          tn_error *err);
tn_status tni_trust_read(const char *text, size_t length, tni_trust *out, tn_error *err);

/* Clears the verdicts in memory; for tests, and to read the cache directory again. */
void tni_trust_forget(void);

#endif
