#include "sample.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/log.h"
#include "compare.h"
#include "device/tensor/tensor.h"
#include "dispatch/trust/admission.h"
#include "oracle.h"
#include "tenon/stream.h"

struct tni_sample {
    void *data[TN_OP_OPERANDS_MAX];  /* first elements, in what was copied */
    char *block[TN_OP_OPERANDS_MAX]; /* owned */
    char *found[TN_OP_OPERANDS_MAX]; /* of outputs: room for them, as long as their blocks; owned */
    void *expected[TN_OP_OPERANDS_MAX]; /* the same, dense; owned */
    size_t bytes[TN_OP_OPERANDS_MAX];
    int64_t low[TN_OP_OPERANDS_MAX];
};

static _Atomic uint64_t calls;

bool tni_sample_count(int64_t every)
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

static tn_status fetch(tn_device *device, tn_stream *stream, const char *from, size_t bytes,
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

/* Every byte from an operand's lowest to its highest element. */
static tn_status keep(tni_sample *sample, const tni_problem *problem, int32_t index,
                      tn_stream *stream, tn_error *err)
{
    const tn_layout *layout = &problem->op.operand[index];
    const char *at = problem->data[index];
    tni_layout extent;
    if (!at)
        return TN_OK;
    tn_status status = tni_layout_of(layout->dtype, layout->shape, layout->stride, layout->rank,
                                     "debug.sample", "operand", &extent, err);
    if (status)
        return status;
    sample->low[index] = extent.low;
    sample->bytes[index] = (size_t)(extent.high - extent.low);
    sample->block[index] = tni_alloc_aligned(sample->bytes[index], TN_OP_ALIGNMENT_MAX);
    if (!sample->block[index])
        return tni_no_memory(err, "debug.sample", "a copy of the operands");
    sample->data[index] = sample->block[index] - extent.low;
    return fetch(problem->device, stream, at + extent.low, sample->bytes[index],
                 sample->block[index], err);
}

static bool is_output(const tn_op *op, int32_t index)
{
    return op->operand[index].dtype && tni_op_writes(tni_op_class_of(op->kind), index);
}

static tn_status make_room(tni_sample *sample, const tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *layout = &op->operand[index];
    size_t bytes = (size_t)tni_layout_elements(layout) * (size_t)tni_dtype_bytes(layout->dtype);
    sample->found[index] = tni_alloc_aligned(sample->bytes[index] + 1, TN_OP_ALIGNMENT_MAX);
    sample->expected[index] = tni_alloc_aligned(bytes + 1, TN_OP_ALIGNMENT_MAX);
    return sample->found[index] && sample->expected[index]
               ? TN_OK
               : tni_no_memory(err, "debug.sample", "a copy of the output");
}

tn_status tni_sample_begin(const tni_problem *problem, tn_stream *stream, tni_sample **out,
                           tn_error *err)
{
    tni_sample *made = tni_alloc_zeroed(1, sizeof *made);
    tn_status status = TN_OK;
    if (!made)
        return tni_no_memory(err, "debug.sample", "a sample");
    for (int32_t i = 0; i < problem->op.count && !status; i++) {
        status = keep(made, problem, i, stream, err);
        if (!status && is_output(&problem->op, i))
            status = make_room(made, &problem->op, i, err);
    }
    if (status)
        tni_sample_release(made);
    else
        *out = made;
    return status;
}

/* Wrong once is told; wrong twice in a row is kept apart. */
static void accuse(const tni_plan *plan, const char *text)
{
    static _Atomic uintptr_t seen; /* the kernel and the device that were wrong last */
    const tni_kernel *kernel = tni_plan_kernel(plan);
    const uintptr_t both = (uintptr_t)kernel ^ (uintptr_t)tni_plan_device(plan);
    const bool again = atomic_exchange(&seen, both) == both;
    void *self;
    int64_t version = -1;
    tni_log(TN_LOG_ERROR, "debug.sample: %s", text);
    if (!again || kernel->reference)
        return;
    if (kernel->library)
        (void)tni_library_open(kernel->library, kernel->record, &self, &version, NULL);
    tni_trust_quarantine(kernel, tni_plan_device(plan), version, text);
}

static tn_status tell(const tni_plan *plan, const tni_problem *problem,
                      const tni_difference *difference, tn_error *err)
{
    tni_buffer text = {0};
    tni_buffer_format(&text,
                      "%s gave %.9g where %.9g is right, bound %.3g, in %lld of %lld outputs, "
                      "first told at %lld; ",
                      tni_plan_kernel(plan)->row->name, difference->found, difference->expected,
                      difference->bound, (long long)difference->wrong,
                      (long long)difference->checked, (long long)difference->at);
    tni_problem_write(&problem->op, tn_device_id(problem->device), &text);
    accuse(plan, tni_buffer_text(&text));
    tn_status status = tn_fail(err, TN_CORRUPT, 0, "debug.sample", "%s", tni_buffer_text(&text));
    tni_buffer_release(&text);
    return status;
}

static tn_status compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                         int32_t index, tn_stream *stream, tni_difference *difference,
                         tn_error *err)
{
    const char *at = problem->data[index];
    bool worse;
    if (!at)
        return TN_OK;
    tn_status status = fetch(problem->device, stream, at + sample->low[index], sample->bytes[index],
                             sample->found[index], err);
    const tni_comparand what = {.op = &problem->op,
                                .output = index,
                                .data = sample->data,
                                .found = sample->found[index] - sample->low[index],
                                .expected = sample->expected[index],
                                .numerics = tni_plan_kernel(plan)->row->numerics};
    return status ? status : tni_compare(&what, difference, &worse, err);
}

tn_status tni_sample_compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                             tn_stream *stream, tn_error *err)
{
    tni_oracle oracle = {0};
    tni_difference difference = {.at = -1};
    tn_status status = tni_oracle_begin(&oracle, problem->op.kind, err);
    if (!status)
        status = tni_oracle_ask(&oracle, &problem->op, sample->data, sample->expected, err);
    for (int32_t i = 0; i < problem->op.count && !status; i++) {
        if (is_output(&problem->op, i))
            status = compare(sample, plan, problem, i, stream, &difference, err);
    }
    tni_oracle_end(&oracle);
    return status || difference.wrong == 0 ? status : tell(plan, problem, &difference, err);
}
