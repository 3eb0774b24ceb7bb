/* Plans from inside: what planning, the cache and running share. */
#ifndef TNI_DISPATCH_PLAN_H
#define TNI_DISPATCH_PLAN_H

#include "dispatch.h"
#include "front.h"

/* What a kernel made for all runs of one plan, with the problems that it serves: those whose words,
 * with the row's free dimensions taken out, are the same. Counted by plans. */
typedef struct tni_state {
    _Atomic int64_t references;
    struct tni_state *next; /* in the cache's list of those that are shared; under its lock */
    int64_t kept;           /* plans in the cache that have it; under its lock */
    const tni_kernel *kernel;
    tn_device *device;
    uint64_t bytes;     /* as the kernel says */
    uint64_t workspace; /* of every run; 0 for a row with free dimensions, as runs differ */
    tn_run made_with;
    uint64_t hash;
    size_t key_count;
    uint64_t key[TNI_KEY_MOST + 2]; /* the last are the device's life and the workspace */
} tni_state;

/* The alignments that the kernel was shown when it made the state, and is shown by every run. */
static inline uint64_t tni_state_alignments(const tni_state *state)
{
    return state->key[TNI_KEY_ALIGNMENTS];
}

struct tni_plan {
    _Atomic int64_t references;
    _Atomic bool dead; /* it was given up: whoever still finds it makes another one */
    _Atomic bool used; /* since eviction last looked at it */
    const tni_kernel *kernel;
    const char *face; /* of its op, for messages */
    tn_device *device;
    tni_state *state;
    void *library;
    uint64_t workspace;
    uint64_t bytes; /* all it holds, its part of the state's included */
    tn_op op;

    struct tni_plan *next; /* in its bucket; under the cache's lock, as the next two */
    struct tni_plan *newer;
    struct tni_plan *older;
    uint64_t hash;
    size_t key_count;
    uint64_t key[];
};

/* What is to be taken: decides, tests and times as the settings say. *out_choice is how it came about,
 * with what is taken at *out_index. */
tn_status tni_choose(const tni_question *question, tni_choice *out_choice, size_t *out_index,
                     tn_error *err);

/* The words of a state for a candidate: fills in all but what its kernel makes. */
void tni_state_begin(const tni_question *question, const tni_contender *of, tni_state *out);

/* Has the kernel make its own plan. The caller releases *out. TN_UNSUPPORTED is kept: the kernel declined. */
tn_status tni_state_make(const tni_question *question, const tni_state *like, tni_state **out,
                         tn_error *err);
/* Whether the kernel that was chosen has declined the problem meanwhile, so that the next choice is another. */
bool tni_choose_again(const tni_question *question, const tni_contender *tried, tn_status status);

tni_state *tni_state_retain(tni_state *state);
void tni_state_release(tni_state *state); /* accepts NULL */

/* A plan of what was chosen, which takes the state over also on failure. */
tn_status tni_plan_bind(const tni_question *question, const tni_contender *chosen, tni_state *state,
                        const uint64_t *key, size_t key_count, tni_plan **out, tn_error *err);

static inline tni_plan *tni_plan_retain(tni_plan *plan)
{
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    return plan;
}

/* Under plan.only_prepared, moves the candidate whose plan a call would have to the front of the choice.
 * TN_REFUSED says what to do where there is no plan for the call. */
tn_status tni_prepared_check(const tni_question *question, tni_choice *choice, tn_error *err);

/* Whether what a call brings as workspace, if anything, does for a kernel that needs so many bytes: a call's and an
 * explanation's one rule. TN_INVALID_ARGUMENT says what it needs. */
tn_status tni_workspace_check(const tni_call_args *args, const tn_kernel_row *row, uint64_t needed,
                              const char *face, tn_error *err);

/* Returns whether a plan that the calling thread holds a count of may be used once more: not if it was
 * evicted. Counts as a hit. `front` is the calling thread's. */
bool tni_lease_again(tni_kept_front *front, tni_plan *plan);

/* The first rule that prefers something for the question which what was chosen is not; or NULL. Lent as long
 * as the context. */
const tni_rule *tni_fallback_unmet(const tni_question *question, const tni_contender *chosen);

/* Counts what a choice fell back from. */
void tni_fallback_count(const tni_question *question, const tni_choice *choice, size_t chosen);

#endif
