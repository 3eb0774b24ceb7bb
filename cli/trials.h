/* Shared by `tenon check` and `tenon bench`: which kernels to try for which problems. */
#ifndef TENON_CLI_TRIALS_H
#define TENON_CLI_TRIALS_H

#include "einsum_problem.h"
#include "options.h"

typedef struct trials_request {
    option_values problems;
    option_values kernel;
    option_values files; /* device description files */
    bool all_kernels;
    bool quarantined; /* also try kernels that are in quarantine */
    bool as_json;
} trials_request;

/* A problem: of an operator, or a whole einsum, which the problems of its steps follow. */
typedef struct trial_problem {
    tn_decision *decision;
    einsum_problem *einsum; /* or NULL */
} trial_problem;

typedef struct trials {
    const trials_request *request;
    trial_problem *problems;
    size_t count, room;
} trials;

/* Decides every problem first, so that errors are reported before anything runs. Returns
 * OPTIONS_RUN, or the exit code of the reported error. Release `out` in either case. `who` is as
 * for report_request. */
int trials_decide(const char *who, const trials_request *request, trials *out);
void trials_release(trials *of);

/* Returns OPTIONS_RUN, or reports that an option does not apply to an einsum, which is among the
 * requested problems, and returns EXIT_WRONG_USE. */
int trials_need_operators(const char *who, const trials_request *request, const char *option);

/* The problem's text. */
const char *trials_text(const trials *of, size_t problem);

/* Number of kernels to try for a problem. At least 1: if there is no kernel, that trial reports
 * why. */
size_t trials_kernels(const trials *of, size_t problem);
/* NULL: the kernel that a call would use. */
const char *trials_kernel(const trials *of, size_t problem, size_t index);

/* Exit code for a kernel that could not be tried. */
int code_of_trial(tn_status status);

/* Whether a kernel (NULL: any) is now in quarantine for the problem, so that its wrong results are
 * the reason why it could not be tried. If so, its name is copied to `out_name`. */
enum { TRIAL_NAME = 96 };
bool trial_is_quarantined(const char *problem, const char *kernel, char out_name[TRIAL_NAME]);

/* The kernel's name for a table: the requested one, or the one that would be chosen; "-" for
 * none. */
const char *name_of_trial(const trials *of, size_t problem, size_t index);

#endif
