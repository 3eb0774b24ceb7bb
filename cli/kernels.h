/* The kernels of this machine on typical problems: the decisions, whether each kernel is correct,
 * and how fast it is.
 * Thread-safety: as any struct; gathered by one thread. */
#ifndef TENON_CLI_KERNELS_H
#define TENON_CLI_KERNELS_H

#include "text.h"

#include <stdbool.h>

/* State of a check or a timing. */
enum { TRIAL_NONE = 0, TRIAL_DONE, TRIAL_FAILED };

typedef struct found_kernel {
    tn_candidate candidate; /* its texts belong to the decision */
    int checked;            /* TRIAL_...; only kernels that could be chosen are checked and timed */
    int timed;
    tn_check_result check;
    tn_bench_result bench;
    tn_error error; /* of the first failure */
} found_kernel;

typedef struct found_decision {
    const char *problem;
    const char *taken;   /* "" for none */
    const char *message; /* why none was chosen; or "" */
    found_kernel *kernels;
    size_t count;
    tn_decision *lender; /* owns the texts; may be NULL */
    tn_error error;      /* of the decision itself; if not TN_OK, there are no kernels */
    bool is_headline;    /* among the problems that a short report shows first */
} found_decision;

/* Zeroed is empty: nothing was gathered. */
typedef struct found_kernels {
    found_decision *decisions;
    size_t count;
} found_kernels;

/* Called before each trial and, with `what` NULL, at the end. */
typedef void kernels_progress(void *to, size_t done, size_t count, const char *what);

/* Decides typical problems on the first device of every platform that runs, then checks and times
 * every kernel that could be chosen, a few milliseconds each. A kernel's errors are not a failure
 * of this function. If deciding itself fails, as with a corrupt lock, that is the last decision.
 * Fails only if out of memory; `out` is empty then. Release it in either case. `tell` may be
 * NULL. */
tn_status kernels_gather(kernels_progress *tell, void *to, found_kernels *out, tn_error *err);
/* Checks only the lock: one decision if it is invalid, otherwise none. */
tn_status kernels_gather_lock(found_kernels *out, tn_error *err);
void kernels_release(found_kernels *kernels);

/* Wrong, failed through its own fault, or in quarantine. */
bool kernel_is_broken(const found_kernel *kernel);
bool decision_is_broken(const found_decision *decision); /* the decision itself failed */
int kernels_count_broken(const found_kernels *kernels);
size_t kernels_count_checked(const found_kernels *kernels);

/* "ok", "wrong", "failed", "quarantined", "refused", "not checked" */
const char *kernel_word(const found_kernel *kernel);

/* Rate in 10^9 `*out_unit` per second: operations for products and attention, otherwise bytes; 0 if
 * not timed. */
double kernel_rate(const found_decision *decision, const found_kernel *kernel,
                   const char **out_unit);

/* Its fault, or why it was not chosen; or nothing. */
void phrase_kernel_fault(const found_kernel *kernel, text_line *out);
/* "error 1.5% of its bound, spread 3%"; or nothing. */
void phrase_kernel_figures(const found_kernel *kernel, text_line *out);

#endif
