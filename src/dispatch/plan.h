/* Internals of plans, shared by planning, the cache and running. */
#ifndef TNI_DISPATCH_PLAN_H
#define TNI_DISPATCH_PLAN_H

#include "base/references.h"
#include "dispatch.h"
#include "thread_state.h"

/* The kernel's own plan, and the key of the problems that it serves: those with the same key words,
 * leaving out the row's free dimensions. Reference counted by plans. */
typedef struct tni_state {
    tni_references references;
    struct tni_state *next; /* in the cache's list of shared states; under the cache's lock */
    int64_t kept;           /* number of cached plans that use it; under the cache's lock */
    const tni_kernel *kernel;
    tn_device *device;
    uint64_t bytes;     /* as reported by the kernel */
    uint64_t workspace; /* for every run; 0 for a row with free dimensions, where runs differ */
    tn_run made_with;
    uint64_t hash;
    size_t key_count;
    uint64_t key[TNI_KEY_MOST + 2]; /* the last two are the device's epoch and the workspace */
} tni_state;

/* Returns the alignments that the kernel saw when it made the state, and sees in every run. */
static inline tni_alignments tni_state_alignments(const tni_state *state)
{
    return tni_key_alignments(state->key);
}

struct tni_plan {
    tni_references references;
    _Atomic bool dead; /* evicted: a thread that still finds it makes another one */
    _Atomic bool used; /* since the last eviction pass */
    const tni_kernel *kernel;
    const char *where; /* public function of its op, for messages */
    tn_device *device;
    tni_state *state;
    void *library;
    uint64_t workspace;
    uint64_t bytes; /* everything it holds, including its share of the state */
    tn_op op;

    struct tni_plan *next; /* in its bucket; under the cache's lock, like the next two */
    struct tni_plan *newer;
    struct tni_plan *older;
    uint64_t hash;
    size_t key_count;
    uint64_t key[];
};

/* Chooses a kernel: decides, tests and times as the settings say. The kernel to take is at
 * *out_index of *out_choice. */
tn_status tni_choose(const tni_question *question, tni_choice *out_choice, size_t *out_index,
                     tn_error *err);

/* Opens the kernel's library, which was already opened when the kernel was judged. *out_version is
 * -1 if it has none. */
tn_status tni_kernel_open_library(const tni_kernel *kernel, void **out_self, int64_t *out_version,
                                  tn_error *err);

/* Fills in the state of a candidate, except for the kernel's own plan. */
void tni_state_init(const tni_question *question, const tni_contender *of, tni_state *out);

/* Lets the kernel make its own plan. The caller releases *out. TN_UNSUPPORTED is recorded: the
 * kernel declined. */
tn_status tni_state_make(const tni_question *question, const tni_state *like, tni_state **out,
                         tn_error *err);
/* Whether the chosen kernel has declined the problem meanwhile, so that the next choice will
 * differ. */
bool tni_choose_again(const tni_question *question, const tni_contender *tried, tn_status status);

tni_state *tni_state_retain(tni_state *state);
void tni_state_release(tni_state *state); /* accepts NULL */

/* Makes a plan of the chosen candidate. Takes ownership of the state, also on failure. */
tn_status tni_plan_bind(const tni_question *question, const tni_contender *chosen, tni_state *state,
                        const uint64_t *key, size_t key_count, tni_plan **out, tn_error *err);

static inline tni_plan *tni_plan_retain(tni_plan *plan)
{
    tni_references_add(&plan->references);
    return plan;
}

/* If plan.only_prepared is set, moves the candidate whose plan a call would use to the front of the
 * choice. If there is no plan for the call, fails with TN_REFUSED and says what to do. */
tn_status tni_prepared_check(const tni_question *question, tni_choice *choice, tn_error *err);

/* Checks that the workspace of a call, if it has one, suffices for a kernel that needs `needed`
 * bytes. Calls and explanations share this check. Otherwise fails with TN_INVALID_ARGUMENT and
 * reports the needed size and alignment. */
tn_status tni_workspace_check(const tni_call_args *args, const tn_kernel_row *row, uint64_t needed,
                              const char *where, tn_error *err);

/* Returns whether a plan that the calling thread holds a reference to may be used again: false if
 * it was evicted. Counts as a hit. `kept` is the calling thread's. */
static inline bool tni_lease_again(tni_thread_kept *kept, tni_plan *plan)
{
    const int64_t hits = atomic_load_explicit(&kept->hits, memory_order_relaxed);
    if (atomic_load_explicit(&plan->dead, memory_order_acquire))
        return false;
    if (!atomic_load_explicit(&plan->used, memory_order_relaxed))
        atomic_store_explicit(&plan->used, true, memory_order_relaxed);
    atomic_store_explicit(&kept->hits, hits + 1, memory_order_relaxed);
    return true;
}

/* Whether a run of the plan is nothing but a workspace and the call of the kernel: no library to
 * configure before it, and nothing to note after it. */
bool tni_plan_is_plain(const tni_plan *plan);

/* Runs a plain plan on a fitted problem that is not empty, in the stream's own workspace. The device
 * was opened for `call`; nothing is recorded, sampled or waited for. */
tn_status tni_plan_run_plain(const tni_plan *plan, const tni_call *call, const tni_problem *problem,
                             tn_stream *stream, tn_error *err);

/* Returns the first rule that prefers something else than `chosen` for the question, or NULL. Valid
 * as long as the context. */
const tni_rule *tni_fallback_unmet(const tni_question *question, const tni_contender *chosen);

/* Counts the fallbacks of a choice. */
void tni_fallback_count(const tni_question *question, const tni_choice *choice, size_t chosen);

#endif
