/* Which kernels may be trusted: verdicts on a kernel with a device, kept for the process and in the
 * cache directory, and the list of kernels known to be bad. */
#ifndef TNI_POLICY_ADMISSION_ADMISSION_H
#define TNI_POLICY_ADMISSION_ADMISSION_H

#include "dispatch/dispatch.h"

enum {
    TNI_TRUST_NEEDLESS = 0, /* the reference, kernels on the tested list, or admission=never */
    TNI_TRUST_PASSED,
    TNI_TRUST_UNTESTED,
    TNI_TRUST_QUARANTINED,
    TNI_TRUST_APART, /* supports none of the small problems, and is tested with each problem of its
                      * own */
    TNI_TRUST_UNTESTABLE /* the problem exceeds the limits of a test */
};

/* Returns the verdict on a kernel for a question; only looks up, tests nothing. QUARANTINED is
 * returned regardless of the setting `admission`: with `never` nothing is tested, but earlier
 * verdicts still apply. Never returns APART. `why` is filled in for QUARANTINED and UNTESTABLE. */
int32_t tni_trust_of(const tni_question *question, const tni_kernel *kernel,
                     int64_t library_version, tn_refusal *why);

/* Tests the kernel against the reference on a separate stream: with small problems, and if it
 * supports none of those, with the question's own. TN_OK: the verdict is no longer UNTESTED and is
 * stored; QUARANTINED only for wrong results that were seen twice. TN_BUSY or TN_OUT_OF_MEMORY:
 * cannot be tested now, nothing is stored. TN_UNSUPPORTED: the kernel does not support the
 * problem. */
tn_status tni_trust_examine(const tni_question *question, const tni_kernel *kernel,
                            int64_t library_version, tn_error *err);

/* Quarantines a kernel that gave wrong results at run time, like a failed test that was seen
 * twice. */
void tni_trust_quarantine(const tni_kernel *kernel, const tn_device *device,
                          int64_t library_version, const char *text);

/* Whether a list that ships with Tenon, or the user's own next to the configuration file, says that
 * the kernel gives wrong results for such an op with that version; if so, `why` is filled in. */
bool tni_known_bad(const tni_kernel *kernel, const tn_op *op, const tn_device_properties *device,
                   int64_t library_version, tn_refusal *why);

#endif
