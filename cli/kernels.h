/* The kernels of this machine on typical problems: what is decided, whether each is right, how fast it is.
 * Thread-safety: as any struct; gathered by one thread. */
#ifndef TENON_CLI_KERNELS_H
#define TENON_CLI_KERNELS_H

#include "text.h"

#include <stdbool.h>

/* What became of looking at it. */
enum { TRIAL_NONE = 0, TRIAL_DONE, TRIAL_FAILED };

typedef struct found_kernel {
    tn_candidate candidate; /* its texts are lent by the decision */
    int checked;            /* TRIAL_...; only what could be taken is checked and timed */
    int timed;
    tn_check_result check;
    tn_bench_result bench;
    tn_error error; /* of what failed first */
} found_kernel;

typedef struct found_decision {
    const char *problem;
    const char *taken;   /* "" for nothing            */
    const char *message; /* why nothing is taken; or "" */
    found_kernel *kernels;
    size_t count;
    tn_decision *lender; /* of the texts; may be NULL */
    tn_error error;      /* of deciding itself; TN_OK, and else there are no kernels */
} found_decision;

/* Zeroed is empty: nothing was looked at. */
typedef struct found_kernels {
    found_decision *decisions;
    size_t count;
} found_kernels;

/* Told before each trial and, with `what` NULL, at the end. */
typedef void kernels_progress(void *to, size_t done, size_t count, const char *what);

/* Decides typical problems on the first device of every platform that runs, then checks and times every
 * kernel that could be taken, a few milliseconds each. What a kernel does wrong is no failure; where
 * deciding itself fails, as with a lock that is corrupt, that is the last decision. On failure, which is
 * want of memory, `out` is empty. Release it either way. `tell` may be NULL. */
tn_status kernels_gather(kernels_progress *tell, void *to, found_kernels *out, tn_error *err);
/* The lock alone: one decision when it is wrong, else none. */
tn_status kernels_gather_lock(found_kernels *out, tn_error *err);
void kernels_release(found_kernels *kernels);

/* Wrong, failed for a reason that is its own, or in quarantine. */
bool kernel_is_broken(const found_kernel *kernel);
bool decision_is_broken(const found_decision *decision); /* nothing could be decided */
int kernels_count_broken(const found_kernels *kernels);
size_t kernels_count_checked(const found_kernels *kernels);

/* "ok", "wrong", "failed", "quarantined", "refused", "not checked" */
const char *kernel_word(const found_kernel *kernel);

/* 10^9 of `*out_unit` a second: operations of a matmul, bytes of everything else; 0 when it was not timed. */
double kernel_rate(const found_decision *decision, const found_kernel *kernel,
                   const char **out_unit);

/* What is wrong with it, or why it is not taken; or nothing. */
void phrase_kernel_fault(const found_kernel *kernel, text_line *out);
/* "error 1.5% of its bound, spread 3%"; or nothing. */
void phrase_kernel_figures(const found_kernel *kernel, text_line *out);

#endif
