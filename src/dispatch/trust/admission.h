/* Which kernels may be trusted: verdicts on a kernel with a device, kept for the process and in the
 * cache directory, and the list of what is known to be bad. */
#ifndef TNI_DISPATCH_ADMISSION_H
#define TNI_DISPATCH_ADMISSION_H

#include "dispatch/dispatch.h"

enum {
    TNI_TRUST_NEEDLESS = 0, /* the reference, what is on the tested list, or admission=never */
    TNI_TRUST_PASSED,
    TNI_TRUST_UNTESTED,
    TNI_TRUST_QUARANTINED,
    TNI_TRUST_APART, /* it takes none of the small problems, and is tested with each of its own */
    TNI_TRUST_UNTESTABLE /* the one at hand is beyond what a test may take */
};

/* How a kernel stands for a question; looks up, tests nothing. QUARANTINED holds whatever the setting
 * `admission` says: with `never` nothing is tested, but what is known is not forgotten. Never APART;
 * `why` is filled in for QUARANTINED and UNTESTABLE. */
int32_t tni_trust_of(const tni_question *question, const tni_kernel *kernel,
                     int64_t library_version, tn_refusal *why);

/* Tests it against the reference, on a stream of its own: with small problems, and when it takes none of
 * those with the question's own. TN_OK: the kernel stands otherwise than UNTESTED now, and that is
 * remembered, QUARANTINED only for wrong numbers that were seen twice. TN_BUSY or TN_OUT_OF_MEMORY: not
 * now, nothing is remembered. TN_UNSUPPORTED: the kernel does not take the problem. */
tn_status tni_trust_examine(const tni_question *question, const tni_kernel *kernel,
                            int64_t library_version, tn_error *err);

/* What gave wrong results at run time: as a failed test that was seen twice. */
void tni_trust_quarantine(const tni_kernel *kernel, const tn_device *device,
                          int64_t library_version, const char *text);

/* Whether a list that ships with Tenon, or the user's own beside the configuration file, says that the
 * kernel gives wrong results for such an op with that version; then `why` is filled in. */
bool tni_known_bad(const tni_kernel *kernel, const tn_op *op, const tn_device_properties *device,
                   int64_t library_version, tn_refusal *why);

#endif
