#include "call.h"

#include "cross.h"
#include "decision.h"
#include "fast_path.h"
#include "settings/context.h"

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
        status = tni_dispatch(&asked, &problem, err);
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
