/* Kernels held to the reference, as cases of the suite: a case for each aspect of each kernel row.
 *
 *     kernels.acme.matmul.shapes       sizes of all kinds, in every dtype of the row
 *     kernels.acme.matmul.pitches      rows that do not follow one another closely
 *     kernels.acme.matmul.alignment    operands that are aligned to less than 64 bytes
 *     kernels.acme.matmul.transpose    a bit that the row honours, by its word; one case for each
 *     kernels.acme.matmul.together     several of them at once
 *
 * Problems are of random sizes, within what the row takes; inputs are random, outputs are poisoned,
 * and what lies around operands is watched, as by tn_check. Settings that narrow the choice of
 * kernels do not count. */
#ifndef TENON_CLI_CONFORMANCE_KERNEL_CASES_H
#define TENON_CLI_CONFORMANCE_KERNEL_CASES_H

#include "suite.h"

/* The cases of one platform's first device. Zeroed is empty. They lend what they point to:
 * release them when no case runs any more. */
typedef struct kernel_cases {
    const suite_case **cases; /* ends with NULL; NULL if empty */
    size_t count;
    void *room; /* that they lie in */
} kernel_cases;

/* Every kernel of the platform that the module has; NULL: of every module. None when the
 * platform has no device. TN_OUT_OF_MEMORY, or why modules could not be asked. Release it either
 * way. */
tn_status kernel_cases_find(const tn_platform *platform, const char *module, kernel_cases *out,
                            tn_error *err);
void kernel_cases_release(kernel_cases *cases);

/* Whether a name is of these cases: "kernels", or anything behind "kernels.". */
bool is_kernel_case(const char *name);

#endif
