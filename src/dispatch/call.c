#include "call.h"

#include "base/epoch.h"
#include "cross.h"
#include "decision.h"
#include "fast_path.h"
#include "settings/context.h"

/* Finds or makes the plan of a call's problem, fits the problem, and runs the plan. */
static tn_status run_problem(const tni_asked *asked, tni_problem *problem, tn_error *err)
{
    const uint64_t epoch = tni_epoch_now();
    tni_lease lease;
    tni_call_args args;
    memcpy(&args, (const char *)asked->args + asked->class->args.stream, sizeof args);
    const tni_question question = {.context = asked->context,
                                   .op = &problem->op,
                                   .device = problem->device,
                                   .recorded = tni_is_recorded(args.stream, problem->device)};
    tn_status status = tni_lease_acquire(&question, false, &lease, err);
    if (status)
        return status;
    tni_plan_fit(lease.plan, problem);
    if (!lease.stands_in)
        tni_fast_path_keep(asked, problem, lease.plan, epoch);
    status = tni_plan_run_fitted(lease.plan, asked->context, problem, NULL, &args, err);
    tni_lease_end(&lease);
    return status;
}

tn_status tni_call_run(const tn_context *context, const tni_op_class *class, const void *args,
                       tn_error *err)
{
    tni_problem problem;
    tni_crossing crossing;
    tn_status status;
    tni_asked asked = {tni_context_or_current(context), class, args};
    if (tni_fast_path_lookup(&asked, &status, err))
        return status;
    status = tni_cross_begin(&asked, true, &crossing, err);
    if (!status)
        status = class->make(asked.args, &problem, err);
    if (!status)
        status = run_problem(&asked, &problem, err);
    tni_cross_end(&crossing);
    return status;
}

/* Makes the problem of a call that is not run. */
static tn_status make_problem(const tn_context *context, const tni_op_class *class,
                              const void *args, tni_problem *out, tn_error *err)
{
    tni_crossing crossing;
    tni_asked asked = {tni_context_or_current(context), class, args};
    tn_status status = tni_cross_begin(&asked, false, &crossing, err);
    if (!status)
        status = class->make(asked.args, out, err);
    tni_cross_end(&crossing);
    return status;
}

tn_status tni_call_explain(const tn_context *context, const tni_op_class *class, const void *args,
                           tn_decision **out, tn_error *err)
{
    tni_problem problem;
    tn_status status = make_problem(context, class, args, &problem, err);
    const tni_asked asked = {tni_context_or_current(context), class, args};
    return status ? status : tni_explain_call(&asked, &problem, out, err);
}

tn_status tni_call_prepare(const tn_context *context, const tni_op_class *class, const void *args,
                           tn_error *err)
{
    tni_problem problem;
    tn_status status = make_problem(context, class, args, &problem, err);
    return status ? status : tni_prepare(context, &problem.op, problem.device, err);
}
