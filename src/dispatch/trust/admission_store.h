/* Verdicts on kernels with devices: those of this process, and behind them the cache directory.
 * Thread-safety: Safe; no lock is held while files are read or written. */
#ifndef TNI_DISPATCH_ADMISSION_STORE_H
#define TNI_DISPATCH_ADMISSION_STORE_H

#include "admission.h"

/* What a verdict is about. Problems that one plan of the kernel serves are one. */
typedef struct tni_exam {
    const tni_kernel *kernel;
    const tn_device *device;
    int64_t library_version;
    const tn_op *op; /* NULL: the kernel as such */
} tni_exam;

typedef struct tni_trust {
    int32_t
        verdict;    /* TNI_TRUST_UNTESTED, _PASSED; of a kernel as such also _QUARANTINED, _APART */
    char text[224]; /* of _QUARANTINED: what was wrong */
} tni_trust;

/* UNTESTED too for want of memory. The cache directory is read once for each kernel, and for a problem as
 * often as it was forgotten: only so many of each kernel are kept in memory. */
void tni_trust_recall(const tni_exam *exam, tni_trust *out);

/* For this process; with `keep` for others and later ones too. What the cache directory does not take is
 * kept in memory alone. TN_OUT_OF_MEMORY. */
tn_status tni_trust_remember(const tni_exam *exam, const tni_trust *trust, bool keep,
                             tn_error *err);

/* Makes the calling thread the one that tests the kernel; *out_mine is false when there is a verdict
 * already, for an APART one on the problem. Waits for that one, but not inside a kernel under test, a loop's task or a log sink: TN_BUSY. Who has
 * it gives it back. */
tn_status tni_trust_claim(const tni_exam *exam, bool *out_mine, tn_error *err);
void tni_trust_unclaim(const tni_exam *exam);

/* A verdict as the text that is kept, and back; TN_CORRUPT for what is none. */
tn_status tni_trust_write(const tni_exam *exam, const tni_trust *trust, tni_buffer *to,
                          tn_error *err);
tn_status tni_trust_read(const char *text, size_t length, tni_trust *out, tn_error *err);

/* Forgets what is in memory; for tests, and to have the cache directory read again. */
void tni_trust_forget(void);

#endif
