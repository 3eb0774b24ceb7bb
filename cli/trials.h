/* What `tenon check` and `tenon bench` share: which kernels of which problems. */
#ifndef TENON_CLI_TRIALS_H
#define TENON_CLI_TRIALS_H

#include "options.h"

typedef struct trials_wish {
    option_values problems;
    option_values kernel;
    option_values files; /* that describe devices */
    bool all_kernels;
    bool quarantined; /* those in quarantine count as kernels that could be tried */
    bool as_json;
} trials_wish;

typedef struct trials {
    const trials_wish *wish;
    tn_decision *decisions[OPTION_VALUES_MAX];
    size_t count;
} trials;

/* Decides every problem, so that what is wrong is told before anything runs. OPTIONS_RUN, or the exit code
 * of what was said. Release it either way. `who` is as for report_wish. */
int trials_decide(const char *who, const trials_wish *wish, trials *out);
void trials_release(trials *of);

/* How many kernels to try of a problem: at least one, which then says why there is none. */
size_t trials_kernels(const trials *of, size_t problem);
/* NULL: the one that a call would take. */
const char *trials_kernel(const trials *of, size_t problem, size_t index);

/* Exit code for a kernel that could not be tried. */
int code_of_trial(tn_status status);

/* Whether a kernel, NULL for any, is in quarantine for the problem now, so that its numbers are why it could
 * not be tried. Its name is then copied to `out_name`. */
enum { TRIAL_NAME = 96 };
bool trial_is_quarantined(const char *problem, const char *kernel, char out_name[TRIAL_NAME]);

/* Its name for a table: that of the kernel that was asked for, or that would be taken; "-" for none. */
const char *name_of_trial(const trials *of, size_t problem, size_t index);

#endif
