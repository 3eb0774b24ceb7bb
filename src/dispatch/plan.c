/* Making plans: chooses the kernel and lets it make its own plan. */
#include "plan.h"

#include "base/alloc.h"
#include "base/out_of_line.h"
#include "declined.h"
#include "policy.h"

static const char where[] = "plan";

/* Failures caused by the current moment or the device, not by a kernel. */
static bool is_for_now(tn_status status)
{
    return status == TN_BUSY || status == TN_OUT_OF_MEMORY || status == TN_DEVICE_LOST;
}

/* The test failed because the kernel's library does not work here, so making its plan would fail
 * too. */
static TNI_OUT_OF_LINE void record_declined(const tni_question *question,
                                            const tni_contender *candidate, const char *text)
{
    tni_state state;
    tni_state_init(question, candidate, &state);
    tni_declined_note(&state, text);
}

/* Tests a candidate that nothing vouches for. Returns true if the decision must be made again;
 * false if the candidate cannot be tested now, so that another one must be used. */
static bool test_candidate(const tni_question *question, const tni_contender *candidate,
                           tn_error *why)
{
    void *self;
    int64_t version;
    tn_status status = tni_kernel_open_library(candidate->kernel, &self, &version, why);
    TNI_POLICIES_EACH (policy) {
        if (!status && policy->test)
            status = policy->test(question, candidate, version, why);
    }
    if (tni_does_not_serve(status))
        record_declined(question, candidate, why->message);
    return status == TN_OK;
}

/* Finds the first candidate of a choice that may be taken; *out_index is choice->admitted if each
 * needs a test and none can be tested. Makes at most one test: returns true if it did and the
 * decision must be made again. */
static bool find_tested(const tni_question *question, const tni_choice *choice, size_t *out_index,
                        tn_error *why)
{
    for (*out_index = 0; *out_index < choice->admitted; ++*out_index) {
        const tni_contender *candidate = &choice->candidates[*out_index];
        if (candidate->verdict != TN_VERDICT_UNTESTED)
            return false;
        if (test_candidate(question, candidate, why))
            return true;
    }
    return false;
}

/* Returns true if something was measured and the decision must be made again. */
static bool measure_candidates(const tni_question *question, const tni_choice *choice)
{
    bool measured = false;
    TNI_POLICIES_EACH (policy) {
        if (policy->measure)
            measured = policy->measure(question, choice) || measured;
    }
    return measured;
}

tn_status tni_choose(const tni_question *question, tni_choice *out_choice, size_t *out_index,
                     tn_error *err)
{
    enum { ROUNDS = 2 * TNI_CANDIDATES_MOST };
    tn_error why = {0};
    bool measured = question->only != NULL;
    for (int32_t round = 0; round < ROUNDS; round++) {
        tn_status status = tni_decide(question, out_choice, err);
        if (status)
            return status;
        if (out_choice->admitted == 0)
            return tni_choice_refused(question, out_choice, err);
        if (find_tested(question, out_choice, out_index, &why))
            continue;
        if (*out_index == out_choice->admitted &&
            tni_choose_again(question, &out_choice->candidates[out_choice->admitted - 1],
                             why.status))
            continue; /* the failure is permanent for the problem, not temporary */
        if (*out_index == out_choice->admitted)
            return tn_fail(err, is_for_now(why.status) ? why.status : TN_BUSY, why.native_code,
                           where, "no kernel could be tested; the last error: %s", why.message);
        if (measured || !measure_candidates(question, out_choice))
            return TN_OK;
        measured = true;
    }
    return tn_fail(err, TN_INTERNAL, 0, where, "verdicts changed %d times during the decision",
                   ROUNDS);
}

bool tni_choose_again(const tni_question *question, const tni_contender *tried, tn_status status)
{
    tn_refusal why = {.struct_size = sizeof why};
    return tni_declined_by(status) && !question->only && tni_declined(question, tried, &why);
}

tn_status tni_plan_bind(const tni_question *question, const tni_contender *chosen, tni_state *state,
                        const uint64_t *key, size_t key_count, tni_plan **out, tn_error *err)
{
    size_t bytes = sizeof(tni_plan) + key_count * sizeof *key;
    tni_plan *made = tni_alloc(bytes);
    if (!made) {
        tni_state_release(state);
        return tni_no_memory(err, where, "a plan");
    }
    tni_references_init(&made->references);
    atomic_init(&made->dead, false);
    atomic_init(&made->used, true);
    made->kernel = chosen->kernel;
    made->where = tni_op_class_of(question->op->kind)->where;
    made->device = question->device;
    made->state = state;
    made->library = state->made_with.library;
    made->workspace = chosen->workspace;
    made->bytes = bytes + sizeof *state + state->bytes;
    tni_op_copy(question->op, &made->op);
    made->next = made->newer = made->older = NULL;
    made->hash = 0;
    made->key_count = key_count;
    if (key_count > 0)
        memcpy(made->key, key, key_count * sizeof *key);
    *out = made;
    return TN_OK;
}

void tni_plan_release(tni_plan *plan)
{
    if (!plan || !tni_references_drop(&plan->references))
        return;
    tni_state_release(plan->state);
    tni_release(plan);
}

const tni_kernel *tni_plan_kernel(const tni_plan *plan)
{
    return plan->kernel;
}

tn_device *tni_plan_device(const tni_plan *plan)
{
    return plan->device;
}

uint64_t tni_plan_workspace(const tni_plan *plan)
{
    return plan->workspace;
}

static TNI_OUT_OF_LINE tn_status make_state(const tni_question *question, const tni_contender *of,
                                            tni_state **out, tn_error *err)
{
    tni_state like;
    tni_state_init(question, of, &like);
    return tni_state_make(question, &like, out, err);
}

tn_status tni_plan_make(const tni_question *question, tni_plan **out, tn_error *err)
{
    tni_choice *choice = tni_alloc(sizeof *choice);
    tni_state *state = NULL;
    size_t index = 0;
    bool again = true;
    if (!choice)
        return tni_no_memory(err, where, "a choice");
    tn_status status = TN_OK;
    for (int32_t round = 0; again && round < TNI_CANDIDATES_MOST; round++) {
        again = false;
        status = tni_choose(question, choice, &index, err);
        if (status)
            continue;
        status = make_state(question, &choice->candidates[index], &state, err);
        again = tni_choose_again(question, &choice->candidates[index], status);
    }
    if (!status && state)
        status = tni_plan_bind(question, &choice->candidates[index], state, NULL, 0, out, err);
    tni_release(choice);
    return status;
}
