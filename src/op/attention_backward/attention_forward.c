#include "attention_backward.h"
#include "base/alloc.h"
#include "check/inputs.h"
#include "dispatch/dispatch.h"
#include "settings/context.h"
#include "tenon/module/op/attention.h"

/* Makes the op of the forward pass with the same operands. */
static tn_status make_forward(const tni_op_class *class, const tn_op *backward, tn_op *out,
                              tn_error *err)
{
    tni_op_init(out, class);
    out->params = backward->params;
    for (int32_t i = 0; i < out->count; i++)
        out->operand[i] = backward->operand[i];
    return tni_op_validate(out, err);
}

static tn_status run_forward(const tni_op_class *class, const tni_operands *operands,
                             tni_problem *problem, tn_error *err)
{
    tni_plan *plan = NULL;
    tn_status status = make_forward(class, operands->op, &problem->op, err);
    if (!status)
        status = tn_device_get("cpu:0", &problem->device, err);
    if (status)
        return status;
    const tni_question question = {
        .context = tni_context_defaults(), .op = &problem->op, .device = problem->device};
    status = tni_plan_make(&question, &plan, err);
    if (status == TN_UNSUPPORTED || status == TN_REFUSED)
        return TN_OK;
    if (status)
        return status;
    void *data[TN_OP_OPERANDS_MAX];
    tni_operands_on_host(operands, data);
    for (int32_t i = 0; i < problem->op.count; i++)
        problem->data[i] = data[i];
    const tni_call_args args = {.stream = tn_stream_default(problem->device)};
    status = tni_plan_run(plan, question.context, problem, &args, err);
    tni_plan_release(plan);
    return status;
}

tn_status tni_attention_forward_fill_by(const tni_op_class *class, const tni_operands *operands,
                                        tn_error *err)
{
    if (tni_op_is_empty(operands->op))
        return TN_OK;
    tni_problem *problem = tni_alloc_zeroed(1, sizeof *problem);
    if (!problem)
        return tni_no_memory(err, "tn_check", "the forward pass");
    tn_status status = run_forward(class, operands, problem, err);
    tni_release(problem);
    return status;
}

tn_status tni_attention_forward_fill(const tni_operands *operands, tn_error *err)
{
    return tni_attention_forward_fill_by(&tni_attention_class, operands, err);
}
