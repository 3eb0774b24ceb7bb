/* Decisions as the program sees them, and the entry points for explaining. */
#include "decision.h"

#include "base/alloc.h"
#include "base/words.h"
#include "plan.h"
#include "policy.h"
#include "settings/context.h"

struct tn_decision {
    tn_context *context; /* candidates borrow its rules */
    tn_device *device;
    tn_op op;
    char *problem;
    tn_error failure;             /* status TN_OK if a kernel would be taken */
    const char *unmet;            /* one of the context's rules */
    tni_backends *backends;       /* for ops that have names of backends; otherwise NULL */
    const tn_candidate *runs_now; /* one of the candidates, or NULL */
    size_t count;
    tn_candidate candidates[TNI_CANDIDATES_MOST];
    tni_choice choice;
};

static void fill_candidate(const tni_contender *v, tn_candidate *out)
{
    const tni_candidate *names = &v->kernel->names;
    *out = (tn_candidate){.struct_size = sizeof *out,
                          .kernel = names->kernel,
                          .library = names->library,
                          .backend = names->backend,
                          .platform = names->platform,
                          .module = v->kernel->record->name,
                          .rule = v->judged.rule ? v->judged.rule->text : "",
                          .overruled = v->judged.overrode ? v->judged.overrode->text : "",
                          .verdict = v->verdict,
                          .standing = v->judged.order == TNI_JUDGED_PREFERRED ? 1
                                      : v->judged.order == TNI_JUDGED_AVOIDED ? -1
                                                                              : 0,
                          .predicted_us = v->predicted_us,
                          .tuned_us = v->tuned_us,
                          .workspace_bytes = v->workspace,
                          .numerics = v->kernel->row->numerics,
                          .why = v->why.code ? &v->why : NULL,
                          .predicted_by = v->by_cost ? "cost" : "figures",
                          .note = v->why.code ? "" : v->why.text};
}

/* Returns the policy's table of backends. */
static const tni_backend_table *backend_table(void)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->backends)
            return policy->backends;
    }
    return NULL;
}

/* Returns the status that a call with these arguments (may be NULL) would have for a candidate. */
static tn_status check_call(const tni_question *question, const tni_contender *candidate,
                            const tni_call_args *args, tn_error *err)
{
    const tn_op *op = question->op;
    if (!args)
        return TN_OK;
    return tni_workspace_check(args, candidate->kernel->row,
                               tni_op_is_empty(op) ? 0 : candidate->workspace,
                               tni_op_class_of(op->kind)->where, err);
}

/* Returns the first candidate that a call may run without a test, if the call's arguments suffice
 * for it; otherwise NULL. */
static const tn_candidate *find_runs_now(const tn_decision *decision, const tni_question *question,
                                         const tni_call_args *args)
{
    size_t i = 0;
    while (i < decision->choice.admitted && decision->candidates[i].verdict == TN_VERDICT_UNTESTED)
        i++;
    bool found = i < decision->choice.admitted &&
                 !check_call(question, &decision->choice.candidates[i], args, NULL);
    return found ? &decision->candidates[i] : NULL;
}

/* Checks the call for the first candidate, and finds which candidate runs now and which rule is not
 * met. */
static void find_next_run(tn_decision *decision, const tni_question *question,
                          const tni_call_args *args)
{
    const tni_contender *first = &decision->choice.candidates[0];
    const tni_rule *unmet = tni_fallback_unmet(question, first);
    decision->unmet = unmet ? unmet->text : "";
    if (!decision->failure.status && !check_call(question, first, args, &decision->failure)) {
        decision->runs_now = find_runs_now(decision, question, args);
        return;
    }
    if (decision->candidates[0].verdict == TN_VERDICT_CHOSEN)
        decision->candidates[0].verdict = TN_VERDICT_ADMITTED;
    backend_table()->unpick(decision->backends);
}

static tn_status fill_decision(tn_decision *decision, const struct tni_backend_bounds *bounds,
                               const tni_call_args *args, tn_error *err)
{
    const tni_question question = {
        .context = decision->context, .op = &decision->op, .device = decision->device};
    tni_buffer text = {0};
    tn_status status = tni_decide(&question, &decision->choice, err);
    if (status)
        return status;
    decision->failure.status = TN_OK;
    (void)tni_prepared_check(&question, &decision->choice, &decision->failure);
    decision->count = decision->choice.count;
    for (size_t i = 0; i < decision->count; i++)
        fill_candidate(&decision->choice.candidates[i], &decision->candidates[i]);
    status = backend_table()->make(&question, &decision->choice, bounds, &decision->backends, err);
    if (status)
        return status;
    if (decision->choice.admitted == 0)
        (void)tni_choice_refused(&question, &decision->choice, &decision->failure);
    else
        find_next_run(decision, &question, args);
    tni_problem_write(&decision->op, decision->device->id, &text);
    decision->problem = tni_buffer_detach(&text);
    return decision->problem ? TN_OK : tni_no_memory(err, "tn_explain", "a problem's text");
}

static tn_status explain_op(const tn_context *context, const tn_op *op, tn_device *device,
                            const struct tni_backend_bounds *bounds, const tni_call_args *args,
                            tn_decision **out, tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_explain", "out is NULL");
    tn_decision *made = tni_alloc(sizeof *made);
    if (!made)
        return tni_no_memory(err, "tn_explain", "a decision");
    made->context = tn_context_retain((tn_context *)(uintptr_t)tni_context_or_current(context));
    made->device = device;
    tni_op_copy(op, &made->op);
    made->problem = NULL;
    made->backends = NULL;
    made->unmet = "";
    made->runs_now = NULL;
    tn_status status = fill_decision(made, bounds, args, err);
    if (status)
        tn_decision_release(made);
    else
        *out = made;
    return status;
}

tn_status tni_explain_within(const tn_context *context, const tn_op *op, tn_device *device,
                             const struct tni_backend_bounds *bounds, tn_decision **out,
                             tn_error *err)
{
    return explain_op(context, op, device, bounds, NULL, out, err);
}

tn_status tni_explain_call(const tni_asked *asked, const tni_problem *problem, tn_decision **out,
                           tn_error *err)
{
    tni_call_args args;
    memcpy(&args, (const char *)asked->args + asked->class->args.stream, sizeof args);
    return explain_op(asked->context, &problem->op, problem->device, NULL, &args, out, err);
}

tn_status tni_question_parse(const char *problem, tn_op *out_op, tn_device **out_device,
                             tn_error *err)
{
    char name[128];
    tn_status status = tni_problem_parse(problem, out_op, name, sizeof name, err);
    return status ? status : tn_device_get(name[0] ? name : "best", out_device, err);
}

tn_status tn_explain(const tn_context *context, const char *problem, tn_decision **out,
                     tn_error *err)
{
    tn_op op;
    tn_device *device;
    tn_status status = tni_question_parse(problem, &op, &device, err);
    return status ? status : explain_op(context, &op, device, NULL, NULL, out, err);
}

tn_status tni_prepare(const tn_context *context, const tn_op *op, tn_device *device, tn_error *err)
{
    const tni_question question = {
        .context = tni_context_or_current(context), .op = op, .device = device};
    tni_lease lease;
    tn_status status = tni_lease_acquire(&question, true, &lease, err);
    if (!status)
        tni_lease_end(&lease);
    return status;
}

tn_status tn_prepare(const tn_context *context, const char *problem, tn_error *err)
{
    tn_op op;
    tn_device *device;
    tn_status status = tni_question_parse(problem, &op, &device, err);
    return status ? status : tni_prepare(context, &op, device, err);
}

void tn_decision_release(tn_decision *decision)
{
    if (!decision)
        return;
    tn_context_release(decision->context);
    backend_table()->release(decision->backends);
    tni_release(decision->problem);
    tni_release(decision);
}

size_t tn_decision_count(const tn_decision *decision)
{
    return decision ? decision->count : 0;
}

const tn_candidate *tn_decision_candidate(const tn_decision *decision, size_t index)
{
    return decision && index < decision->count ? &decision->candidates[index] : NULL;
}

const tn_candidate *tn_decision_chosen(const tn_decision *decision)
{
    bool taken = decision && decision->choice.admitted > 0 && decision->failure.status == TN_OK;
    return taken ? &decision->candidates[0] : NULL;
}

const tn_candidate *tn_decision_runs_now(const tn_decision *decision)
{
    return decision ? decision->runs_now : NULL;
}

const tn_candidate *tn_decision_runs_once_tested(const tn_decision *decision)
{
    const tn_candidate *first = tn_decision_chosen(decision);
    return first && first->verdict == TN_VERDICT_UNTESTED ? first : NULL;
}

tn_status tn_decision_status(const tn_decision *decision, const char **out_message)
{
    if (out_message)
        *out_message = decision && decision->failure.status ? decision->failure.message : "";
    return decision ? decision->failure.status : TN_INVALID_ARGUMENT;
}

const char *tn_decision_unmet(const tn_decision *decision)
{
    return decision ? decision->unmet : "";
}

const char *tn_decision_problem(const tn_decision *decision)
{
    return decision ? decision->problem : "";
}

tn_device *tn_decision_device(const tn_decision *decision)
{
    return decision ? decision->device : NULL;
}

size_t tn_decision_backend_count(const tn_decision *decision)
{
    return decision ? backend_table()->count(decision->backends) : 0;
}

const tn_backend *tn_decision_backend(const tn_decision *decision, size_t index)
{
    return decision ? backend_table()->at(decision->backends, index) : NULL;
}
