#include "sample.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/log.h"
#include "check/compare.h"
#include "check/inputs.h"
#include "check/oracle.h"
#include "device/tensor/tensor.h"
#include "policy/admission/admission.h"
#include "settings/context.h"
#include "tenon/stream.h"

static const char where[] = "debug.sample";

struct tni_sample {
    void *data[TN_OP_OPERANDS_MAX];     /* first elements, in the copies */
    char *block[TN_OP_OPERANDS_MAX];    /* owned */
    char *found[TN_OP_OPERANDS_MAX];    /* outputs of the call; as long as their blocks; owned */
    void *expected[TN_OP_OPERANDS_MAX]; /* the reference's outputs, dense; owned */
    size_t bytes[TN_OP_OPERANDS_MAX];
    int64_t low[TN_OP_OPERANDS_MAX];
    tni_problem placed; /* the call's, with the alignments of its data; here to spare the stack */
};

static _Atomic uint64_t calls;

/* Counts a call; true for one call in `every`. */
static bool count_call(int64_t every)
{
    return atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) % (uint64_t)every == 0;
}

void tni_sample_release(tni_sample *sample)
{
    for (int32_t i = 0; sample && i < TN_OP_OPERANDS_MAX; i++) {
        tni_release(sample->block[i]);
        tni_release(sample->found[i]);
        tni_release(sample->expected[i]);
    }
    tni_release(sample);
}

static tn_status copy_to_host(tn_device *device, tn_stream *stream, const char *from, size_t bytes,
                              char *to, tn_error *err)
{
    const tn_memory_copy_args args = {.struct_size = sizeof args,
                                      .to = to,
                                      .from_device = device,
                                      .from = from,
                                      .bytes = bytes,
                                      .stream = stream};
    tn_status status = tn_memory_copy(&args, err);
    return status ? status : tn_stream_synchronize(stream, err);
}

/* Copies every byte from an operand's lowest to its highest element. */
static tn_status copy_operand(tni_sample *sample, const tni_problem *problem, int32_t index,
                              tn_stream *stream, tn_error *err)
{
    const tn_layout *layout = &problem->op.operand[index];
    const char *at = problem->data[index];
    tni_layout extent;
    if (!at)
        return TN_OK;
    tn_status status = tni_layout_of(layout->dtype, layout->shape, layout->stride, layout->rank,
                                     where, "operand", &extent, err);
    if (status)
        return status;
    sample->low[index] = extent.low;
    sample->bytes[index] = (size_t)(extent.high - extent.low);
    sample->block[index] = tni_alloc_aligned(sample->bytes[index], TN_OP_ALIGNMENT_MAX);
    if (!sample->block[index])
        return tni_no_memory(err, where, "a copy of the operands");
    sample->data[index] = sample->block[index] - extent.low;
    return copy_to_host(problem->device, stream, at + extent.low, sample->bytes[index],
                        sample->block[index], err);
}

static bool is_output(const tn_op *op, int32_t index)
{
    return op->operand[index].dtype && tni_op_writes(tni_op_class_of(op->kind), index);
}

static tn_status make_room(tni_sample *sample, const tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *layout = &op->operand[index];
    size_t bytes = (size_t)(tni_layout_elements(layout) * tni_dtype_bytes(layout->dtype));
    sample->found[index] = tni_alloc_aligned(sample->bytes[index] + 1, TN_OP_ALIGNMENT_MAX);
    sample->expected[index] = tni_alloc_aligned(bytes + 1, TN_OP_ALIGNMENT_MAX);
    return sample->found[index] && sample->expected[index]
               ? TN_OK
               : tni_no_memory(err, where, "a copy of the output");
}

tn_status tni_sample_create(const tni_problem *problem, tn_stream *stream, tni_sample **out,
                            tn_error *err)
{
    tni_sample *made = tni_alloc_zeroed(1, sizeof *made);
    tn_status status = TN_OK;
    if (!made)
        return tni_no_memory(err, where, "a sample");
    for (int32_t i = 0; i < problem->op.count && !status; i++) {
        status = copy_operand(made, problem, i, stream, err);
        if (!status && is_output(&problem->op, i))
            status = make_room(made, &problem->op, i, err);
    }
    if (status)
        tni_sample_release(made);
    else
        *out = made;
    return status;
}

/* A call that was sampled. */
typedef struct sampled {
    tni_sample *sample;
    const tni_plan *plan;
    const tni_problem *problem;
    tn_stream *stream;
} sampled;

/* Outputs in host memory. */
typedef struct outputs {
    char *block[TN_OP_OPERANDS_MAX]; /* owned; NULL if another struct owns the memory */
    char *first[TN_OP_OPERANDS_MAX]; /* first elements; NULL for inputs and empty outputs */
} outputs;

static void outputs_release(outputs *found)
{
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        tni_release(found->block[i]);
}

/* Computes the expected outputs from the operands that were copied before the call. */
static tn_status compute_expected(const sampled *s, tn_error *err)
{
    const tn_op *op = &s->problem->op;
    tni_oracle *oracle = tni_alloc_zeroed(1, sizeof *oracle);
    if (!oracle)
        return tni_no_memory(err, where, "the reference");
    tn_status status = tni_oracle_init(oracle, op->kind, err);
    if (!status)
        status = tni_oracle_compute(oracle, op, s->sample->data, s->sample->expected, err);
    tni_oracle_release(oracle);
    tni_release(oracle);
    return status;
}

/* Compares the outputs with the expected ones. */
static tn_status compare_outputs(const sampled *s, const outputs *found, tni_difference *out,
                                 tn_error *err)
{
    tn_status status = TN_OK;
    bool worse;
    *out = (tni_difference){.at = -1};
    for (int32_t i = 0; i < s->problem->op.count && !status; i++) {
        const tni_comparand what = {.op = &s->problem->op,
                                    .output = i,
                                    .data = s->sample->data,
                                    .found = found->first[i],
                                    .expected = s->sample->expected[i],
                                    .numerics = tni_plan_kernel(s->plan)->row->numerics};
        if (what.found)
            status = tni_compare(&what, out, &worse, err);
    }
    return status;
}

/* Copies the saved operands into private blocks. */
static void restore_operands(const sampled *s, tni_operands *to)
{
    for (int32_t i = 0; i < s->problem->op.count; i++) {
        tni_operand *block = &to->operand[i];
        if (!block->host || !s->sample->block[i])
            continue;
        memset(block->host, 0, block->bytes);
        memcpy(block->host + ((int64_t)block->first + s->sample->low[i]), s->sample->block[i],
               s->sample->bytes[i]);
    }
}

static tn_status download_outputs(const sampled *s, const tni_operands *operands, outputs *out,
                                  tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->problem->op.count && !status; i++) {
        const tni_operand *operand = tni_operands_at(operands, i);
        if (!operand->host || !is_output(&s->problem->op, i))
            continue;
        out->block[i] = tni_alloc_aligned(operand->bytes, TN_OP_ALIGNMENT_MAX);
        if (!out->block[i])
            return tni_no_memory(err, where, "a copy of the output");
        out->first[i] = out->block[i] + operand->first;
        status = tni_operands_download(operands, i, s->stream, out->block[i], err);
    }
    return status;
}

/* Runs the same plan again on the saved operands. */
static tn_status run_again(const sampled *s, outputs *out, tn_error *err)
{
    tni_operands operands = {0};
    tni_problem problem;
    tn_status status = tni_operands_create(&s->problem->op, s->problem->device, &operands, err);
    if (!status) {
        restore_operands(s, &operands);
        status = tni_operands_upload(&operands, s->stream, err);
    }
    tni_operands_on_device(&operands, &problem);
    if (!status)
        status = tni_plan_run(s->plan, tni_context_defaults(), &problem,
                              &(tni_call_args){.stream = s->stream}, err);
    if (!status)
        status = download_outputs(s, &operands, out, err);
    tni_operands_release(&operands);
    return status;
}

/* Returns whether the kernel is wrong again. It is not if the error was transient, or if other code
 * wrote to the operands during the call. */
static tn_status check_again(const sampled *s, bool *out_wrong, tn_error *err)
{
    tni_difference difference;
    outputs found = {.block = {0}};
    tn_status status = run_again(s, &found, err);
    if (!status)
        status = compare_outputs(s, &found, &difference, err);
    if (!status)
        *out_wrong = difference.wrong > 0;
    outputs_release(&found);
    return status;
}

/* `told` describes the error. */
static void quarantine_kernel(const sampled *s, const char *told, const char *problem)
{
    const tni_kernel *kernel = tni_plan_kernel(s->plan);
    int64_t version = -1;
    char text[224];
    void *self;
    if (kernel->library)
        (void)tni_library_open(kernel->library, kernel->record, &self, &version, NULL);
    snprintf(text, sizeof text, "%.80s: %.120s", problem, told);
    tni_trust_quarantine(kernel, tni_plan_device(s->plan), version, text);
}

/* Writes the result of the second run. Removes the problem text from the end of an error message,
 * because the caller adds it. */
static void describe_rerun(tn_status status, bool wrong, tn_error *why, const char *problem,
                           tni_buffer *out)
{
    char *end = status ? strstr(why->message, problem) : NULL;
    if (end && end - why->message > 2)
        end[-2] = '\0';
    tni_buffer_format(out, "run again with the same operands, it ");
    if (status)
        tni_buffer_format(out, "fails: %.120s", why->message);
    else
        tni_buffer_add(out, wrong ? "is wrong again" : "is right");
}

static tn_status report_wrong(const sampled *s, const tni_difference *difference, tn_error *err)
{
    const char *id = tn_device_id(tni_plan_device(s->plan));
    tni_buffer problem = {0}, text = {0};
    bool wrong = false;
    char told[192];
    tn_error why = {0};
    tn_status again = check_again(s, &wrong, &why);
    tni_difference_write(difference, &s->problem->op, told, sizeof told);
    tni_problem_write(&s->problem->op, id, &problem);
    tni_buffer_format(&text, "%s on %s: %s; ", tni_plan_kernel(s->plan)->row->name, id, told);
    describe_rerun(again, wrong, &why, tni_buffer_text(&problem), &text);
    tni_buffer_format(&text, "; %s", tni_buffer_text(&problem));
    tni_log(TN_LOG_ERROR, "%s: %s", where, tni_buffer_text(&text));
    tn_status status = tn_fail(err, TN_CORRUPT, 0, where, "%s", text.failed ? told : text.text);
    if (wrong)
        quarantine_kernel(s, told, tni_buffer_text(&problem));
    tni_buffer_release(&text);
    tni_buffer_release(&problem);
    return status;
}

/* Copies the outputs of the call to the host. */
static tn_status fetch_outputs(const sampled *s, outputs *out, tn_error *err)
{
    tni_sample *sample = s->sample;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->problem->op.count && !status; i++) {
        const char *at = s->problem->data[i];
        if (!at || !is_output(&s->problem->op, i))
            continue;
        status = copy_to_host(s->problem->device, s->stream, at + sample->low[i], sample->bytes[i],
                              sample->found[i], err);
        out->first[i] = sample->found[i] - sample->low[i];
    }
    return status;
}

tn_status tni_sample_compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                             tn_stream *stream, tn_error *err)
{
    const sampled s = {sample, plan, &sample->placed, stream};
    tni_difference difference;
    outputs found = {.block = {0}};
    sample->placed = *problem;
    tni_problem_place(&sample->placed);
    tn_status status = fetch_outputs(&s, &found, err);
    if (!status)
        status = compute_expected(&s, err);
    if (!status)
        status = compare_outputs(&s, &found, &difference, err);
    if (!status && difference.wrong > 0)
        status = report_wrong(&s, &difference, err);
    return status;
}

static tn_status begin_watch(const tn_context *context, const tni_problem *problem,
                             tn_stream *stream, void **out, tn_error *err)
{
    tni_sample *sample = NULL;
    tn_status status = TN_OK;
    if (count_call(context->value[TN_SETTING_DEBUG_SAMPLE]))
        status = tni_sample_create(problem, stream, &sample, err);
    *out = sample;
    return status;
}

static tn_status end_watch(void *watched, const tni_plan *plan, const tni_problem *problem,
                           tn_stream *stream, tn_error *err)
{
    return tni_sample_compare(watched, plan, problem, stream, err);
}

static void release_watch(void *watched)
{
    tni_sample_release(watched);
}

const tni_run_watch tni_sample_watch = {begin_watch, end_watch, release_watch};
