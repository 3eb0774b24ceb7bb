/* Policies: what decides about candidates besides the kernels themselves. Dispatch walks the table
 * tni_policies in its order and knows no policy by name. Functions that a policy does not need are
 * NULL. A question with `only` set has no policies. */
#ifndef TNI_DISPATCH_POLICY_H
#define TNI_DISPATCH_POLICY_H

#include "dispatch.h"
#include "tenon/attention_backend.h"

/* The backends of a decision: names by which several candidates can be asked for, with a verdict on
 * each. For ops that have no such names, `make` sets *out to NULL, which the others accept. */
typedef struct tni_backends tni_backends;
struct tni_backend_bounds;
typedef struct tni_backend_table {
    tn_status (*make)(const tni_question *question, const tni_choice *choice,
                      const struct tni_backend_bounds *bounds, tni_backends **out, tn_error *err);
    void (*release)(tni_backends *backends);
    void (*unpick)(tni_backends *backends); /* a call would be refused: no backend is chosen */
    size_t (*count)(const tni_backends *backends);
    const tn_backend *(*at)(const tni_backends *backends, size_t index);
} tni_backend_table;

/* Watches runs while debug.sample is set. `begin` sets *out to NULL for a run that is not watched;
 * `end` is called after a run that succeeded, `release` always, with NULL too. */
typedef struct tni_run_watch {
    tn_status (*begin)(const tn_context *context, const tni_problem *problem, tn_stream *stream,
                       void **out, tn_error *err);
    tn_status (*end)(void *watched, const tni_plan *plan, const tni_problem *problem,
                     tn_stream *stream, tn_error *err);
    void (*release)(void *watched);
} tni_run_watch;

typedef struct tni_policy {
    const char *name;

    /* Fills in the further names of a kernel row. */
    void (*name_row)(const tn_kernel_row *row, tni_candidate *to);

    /* Mixes what the policy reads from the context, besides the class's settings, into the hash for
     * plan keys. */
    uint64_t (*key)(uint64_t hash, const tn_context *context, const tni_op_class *class);

    /* Fails if the settings cannot be followed for the question by any candidate. */
    tn_status (*check)(const tni_question *question, tn_error *err);

    /* Sets the standing of a candidate, to->judged. */
    void (*judge)(const tni_question *question, tni_contender *to);

    /* Whether the candidate may run; otherwise sets to->why. Called before anything is asked of the
     * machine. */
    bool (*permit)(const tni_question *question, tni_contender *to);

    /* The same for a candidate that can compute the problem, with the version of its library or -1.
     * A candidate that must be tested first is admitted with the verdict UNTESTED. */
    bool (*admit)(const tni_question *question, int64_t version, tni_contender *to);

    /* Fills in the measured times of an admitted candidate. */
    void (*rank)(const tni_question *question, tni_contender *to);

    /* Adds to the refusal of a candidate that cannot compute the problem. */
    void (*explain)(const tni_question *question, tni_contender *to);

    /* Whether the policy asks for the candidate: its refusal is reported before others'. */
    bool (*asks_for)(const tni_question *question, const tni_contender *candidate);

    /* The error of a question without an admitted candidate, if the policy is the cause of it;
     * otherwise TN_OK. */
    tn_status (*refused)(const tni_question *question, const tni_choice *choice, tn_error *err);

    /* Tests an UNTESTED candidate. TN_OK: it has another verdict now. */
    tn_status (*test)(const tni_question *question, const tni_contender *candidate, int64_t version,
                      tn_error *err);

    /* Times the candidates, if that is due. True: the order may have changed. */
    bool (*measure)(const tni_question *question, const tni_choice *choice);

    const tni_backend_table *backends;
    const tni_run_watch *watch;
} tni_policy;

/* Ends with NULL; src/tables/policies.c. */
extern const tni_policy *const tni_policies[];

#define TNI_POLICIES_EACH(p) \
    for (const tni_policy *const *at_##p = tni_policies, *p; ((p) = *at_##p); at_##p++)

#endif
