/* Making plans: chooses the kernel and lets it make its own plan. */
#include "plan.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/out_of_line.h"
#include "declined.h"
#include "device/stream/epoch.h"
#include "policy/admission/admission.h"
#include "policy/tuning/tuning.h"
#include "judge.h"
#include "os/parallel.h"

static const char where[] = "plan";

/* Opens the kernel's library. *out_version is -1 if it has none. The library was already opened
 * when the kernel was judged. */
static tn_status open_library(const tni_kernel *kernel, void **out_self, int64_t *out_version,
                              tn_error *err)
{
    *out_self = NULL;
    *out_version = -1;
    if (!kernel->library)
        return TN_OK;
    return tni_library_open(kernel->library, kernel->record, out_self, out_version, err);
}

/* Failures caused by the current moment or the device, not by a kernel. */
static bool is_for_now(tn_status status)
{
    return status == TN_BUSY || status == TN_OUT_OF_MEMORY || status == TN_DEVICE_LOST;
}

/* The kernel's library cannot start here: the cause is the machine, not the problem. */
static bool does_not_serve(tn_status status)
{
    return status == TN_UNAVAILABLE || status == TN_INCOMPATIBLE;
}

/* Failures to make a plan that are permanent for this kernel in this process, not temporary. */
static bool is_declined(tn_status status)
{
    return status == TN_UNSUPPORTED || does_not_serve(status);
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
    tn_status status = open_library(candidate->kernel, &self, &version, why);
    if (!status)
        status = tni_trust_examine(question, candidate->kernel, version, why);
    if (does_not_serve(status))
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

tn_status tni_choose(const tni_question *question, tni_choice *out_choice, size_t *out_index,
                     tn_error *err)
{
    enum { ROUNDS = 2 * TNI_CANDIDATES_MOST };
    tn_error why = {0};
    bool tuned = question->only != NULL;
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
        if (tuned || !tni_tuning_is_due(question, out_choice))
            return TN_OK;
        tuned = true;
        (void)tni_tune(question, out_choice, NULL); /* without times, predictions are used */
    }
    return tn_fail(err, TN_INTERNAL, 0, where, "verdicts changed %d times during the decision",
                   ROUNDS);
}

void tni_state_init(const tni_question *question, const tni_contender *of, tni_state *out)
{
    const tni_kernel *kernel = of->kernel;
    tn_op op;
    tni_op_free(question->op, kernel->row->free_dims, &op);
    atomic_init(&out->references, 1);
    out->next = NULL;
    out->kept = 0;
    out->kernel = kernel;
    out->device = question->device;
    out->bytes = 0;
    out->workspace = kernel->row->free_dims ? 0 : of->workspace;
    out->key_count = tni_op_key_up_to(&op, kernel->alignment, out->key);
    out->key[out->key_count++] = (uint32_t)tni_device_epoch(question->device);
    out->key[out->key_count++] = out->workspace;
    out->hash = (uint64_t)(uintptr_t)kernel;
    for (size_t i = 0; i < out->key_count; i++)
        out->hash = tni_hash_mix(out->hash, out->key[i]);
}

/* An op without elements is not run and needs no native plan: libraries refuse to make one. The
 * plan of a row with free dimensions also serves other sizes. */
static bool is_never_run(const tn_op *op, const tn_kernel_row *row)
{
    return !row->free_dims && tni_op_is_empty(op);
}

static tn_status make_native(const tni_question *question, tni_state *state, tn_error *err)
{
    static void *const nothing[TN_OP_OPERANDS_MAX] = {NULL};
    const tni_kernel *kernel = state->kernel;
    tn_op shown;
    tn_error said = {0};
    int64_t version;
    tni_call call;
    void *plan = NULL;
    tn_status status = tni_device_open(question->device, where, &call, err);
    state->made_with = (tn_run){.struct_size = sizeof(tn_run),
                                .row = kernel->row,
                                .data = nothing,
                                .platform = status ? NULL : call.self,
                                .host = &kernel->record->host,
                                .device = status ? 0 : call.device,
                                .threads = tni_parallel_threads_hint()};
    if (!status)
        status = open_library(kernel, &state->made_with.library, &version, err);
    if (status || !kernel->row->plan || is_never_run(question->op, kernel->row))
        return status;
    tni_op_copy(question->op, &shown);
    if (kernel->talker)
        tni_library_apply_verbosity(kernel->talker, question->context);
    tni_alignments_set(&shown, tni_state_alignments(state));
    state->made_with.op = &shown;
    state->made_with.workspace_bytes = state->workspace;
    status = kernel->row->plan(&state->made_with, &plan, &state->bytes, &said);
    state->made_with.plan = plan;
    state->made_with.op = NULL;
    state->made_with.workspace_bytes = 0;
    return tni_device_result_check(&call, kernel->row->name, status, &said, err);
}

tn_status tni_state_make(const tni_question *question, const tni_state *like, tni_state **out,
                         tn_error *err)
{
    tni_state *made = tni_alloc(sizeof *made);
    if (!made)
        return tni_no_memory(err, where, "a plan");
    tn_error said = {0};
    *made = *like;
    atomic_init(&made->references, 1);
    tn_status status = make_native(question, made, &said);
    if (is_declined(status))
        tni_declined_note(made, said.message);
    if (is_declined(status))
        tni_log(does_not_serve(status) ? TN_LOG_WARNING : TN_LOG_INFO,
                does_not_serve(status) ? "%s cannot be used on this device: %s"
                                       : "%s does not support a problem: %s",
                like->kernel->row->name, said.message);
    if (status && err)
        *err = said;
    if (status)
        tni_release(made);
    else
        *out = made;
    return status;
}

bool tni_choose_again(const tni_question *question, const tni_contender *tried, tn_status status)
{
    tn_refusal why = {.struct_size = sizeof why};
    return is_declined(status) && !question->only && tni_declined(question, tried, &why);
}

tni_state *tni_state_retain(tni_state *state)
{
    atomic_fetch_add_explicit(&state->references, 1, memory_order_relaxed);
    return state;
}

/* If the device was lost or reset since, the kernel's plan was lost with it and is not released. */
void tni_state_release(tni_state *state)
{
    tni_call call;
    if (!state || atomic_fetch_sub_explicit(&state->references, 1, memory_order_acq_rel) != 1)
        return;
    const tn_kernel_row *row = state->kernel->row;
    if (row->plan_release && state->made_with.plan &&
        tni_device_open_to_return(state->device, &call))
        row->plan_release(&state->made_with, state->made_with.plan);
    tni_release(state);
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
    atomic_init(&made->references, 1);
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
    if (!plan || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1)
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
