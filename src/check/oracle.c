#include "oracle.h"

#include "base/dtype.h"
#include "base/out_of_line.h"
#include "inputs.h"
#include "op/op_check.h"
#include "settings/context.h"
#include "tenon/module/op/elementwise.h"

tn_status tni_oracle_init(tni_oracle *oracle, int32_t op, tn_error *err)
{
    memset(oracle, 0, sizeof *oracle);
    tn_status status = tni_kernel_reference(op, &oracle->kernel, err);
    return status ? status : tn_device_get("cpu:0", &oracle->device, err);
}

void tni_oracle_release(tni_oracle *oracle)
{
    tni_plan_release(oracle->plan);
    oracle->plan = NULL;
}

/* Makes a plan for the op, or reuses the last one if its key is the same. */
static TNI_OUT_OF_LINE tn_status plan_for(tni_oracle *oracle, const tn_op *op, tn_error *err)
{
    uint64_t key[TNI_KEY_MOST];
    size_t count = tni_op_key(op, key);
    if (oracle->plan && count == oracle->key_count &&
        memcmp(key, oracle->key, count * sizeof *key) == 0)
        return TN_OK;
    const tni_question question = {.context = tni_context_defaults(),
                                   .op = op,
                                   .device = oracle->device,
                                   .only = oracle->kernel};
    tni_oracle_release(oracle);
    tn_status status = tni_plan_make(&question, &oracle->plan, err);
    if (!status) {
        memcpy(oracle->key, key, sizeof key);
        oracle->key_count = count;
    }
    return status;
}

/* Makes the same op with dense outputs that do not overlap its other operands. */
static tn_status make_dense_op(const tn_op *op, tn_op *out, tn_error *err)
{
    const tni_op_class *class = tni_op_class_of(op->kind);
    *out = *op;
    if (class->may_be_in_place)
        out->uses &= ~(uint64_t)TN_ELEMENTWISE_USES_IN_PLACE;
    for (int32_t i = 0; i < op->count; i++) {
        if (!op->operand[i].dtype || !tni_op_writes(class, i))
            continue;
        tni_layout_dense(&out->operand[i]);
        out->operand[i].alignment = tni_dtype_bytes(op->operand[i].dtype);
    }
    return tni_op_validate(out, err);
}

/* Copies the elements of the output to a dense array. */
static void gather_elements(const tn_layout *layout, const char *from, char *to)
{
    int64_t size = tni_dtype_bytes(layout->dtype);
    tni_place place = {{0}};
    do {
        memcpy(to, from + tni_place_in(&place, layout) * size, (size_t)size);
        to += size;
    } while (tni_place_next(&place, layout));
}

/* Returns whether the op leaves some of its outputs unwritten. */
static bool leaves_output(const tn_op *op)
{
    const tni_op_check *check = tni_op_class_of(op->kind)->check;
    return check->leaves_output && check->leaves_output(op);
}

tn_status tni_oracle_compute(tni_oracle *oracle, const tn_op *op, void *const *data,
                             void *const *out, tn_error *err)
{
    const tni_op_class *class = tni_op_class_of(op->kind);
    tni_problem *problem = &oracle->problem;
    const tni_call_args args = {.stream = tn_stream_default(oracle->device)};
    if (tni_op_is_empty(op))
        return TN_OK;
    memset(problem, 0, sizeof *problem);
    problem->device = oracle->device;
    tn_status status = make_dense_op(op, &problem->op, err);
    if (!status)
        status = plan_for(oracle, &problem->op, err);
    if (status)
        return status;
    memcpy(problem->data, data, (size_t)op->count * sizeof *data);
    for (int32_t i = 0; i < op->count; i++) {
        if (!op->operand[i].dtype || !tni_op_writes(class, i))
            continue;
        problem->data[i] = out[i];
        if (leaves_output(op) || (i == class->output && tni_op_reads_output(op)))
            gather_elements(&op->operand[i], data[i], out[i]);
    }
    return tni_plan_run(oracle->plan, tni_context_defaults(), problem, &args, err);
}
