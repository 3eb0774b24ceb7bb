/* Kernels checked against the reference, as cases of the suite: one case for each aspect of each
 * kernel row.
 *
 *     kernels.acme.matmul.shapes       sizes of all kinds, in every dtype of the row
 *     kernels.acme.matmul.pitches      rows that are not contiguous
 *     kernels.acme.matmul.alignment    operands that are aligned to less than 64 bytes
 *     kernels.acme.matmul.transpose    a feature bit that the row honours; one case for each
 *     kernels.acme.matmul.together     several features at once
 *
 * Problems have random sizes, within what the row supports. Inputs are random, outputs are
 * poisoned, and the bytes around operands are checked, as by tn_check. Settings that restrict the
 * choice of kernels are ignored. */
#ifndef TENON_CLI_CONFORMANCE_KERNEL_CASES_H
#define TENON_CLI_CONFORMANCE_KERNEL_CASES_H

#include "suite.h"

/* The cases of one platform's first device. Zeroed is empty. The cases point into `room`: release
 * them only when no case is running. */
typedef struct kernel_cases {
    const suite_case **cases; /* ends with NULL; NULL if empty */
    size_t count;
    void *room; /* the memory that holds the cases */
} kernel_cases;

/* Finds every kernel of the platform that the module has; `module` NULL: those of every module.
 * Finds none if the platform has no device. Fails with TN_OUT_OF_MEMORY, or with the error from
 * querying the modules. Release `out` in either case. */
tn_status kernel_cases_find(const tn_platform *platform, const char *module, kernel_cases *out,
                            tn_error *err);
void kernel_cases_release(kernel_cases *cases);

/* Whether a name belongs to these cases: "kernels", or "kernels." and anything after it. */
bool is_kernel_case(const char *name);

#endif
