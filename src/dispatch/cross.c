#include "cross.h"

#include "base/log.h"
#include "device/graph/graph.h"
#include "device/tensor/tensor.h"
#include "settings/context.h"
#include "tenon/stream.h"

/* An operand on another device than the output. */
typedef struct stray {
    const tn_tensor *tensor;
    const char *name;
    tn_device *device;
    tni_layout extent;
} stray;

static const void *pointer_at(const void *args, size_t offset)
{
    const void *pointer;
    memcpy(&pointer, (const char *)args + offset, sizeof pointer);
    return pointer;
}

/* Returns NULL if the call does not have this operand. */
static const tn_tensor *tensor_of(const tni_asked *asked, int32_t index)
{
    size_t offset = asked->class->args.tensors[index];
    bool given = offset && *(const size_t *)asked->args >= offset + sizeof(void *);
    return given ? pointer_at(asked->args, offset) : NULL;
}

/* Returns whether the operand is valid and is on another device than the output. */
static bool is_stray(const tni_asked *asked, int32_t index, const tni_crossing *c, stray *out)
{
    const char *where = asked->class->where;
    *out = (stray){.tensor = tensor_of(asked, index), .name = asked->class->operands[index]};
    return out->tensor && !tni_tensor_measure(out->tensor, where, out->name, &out->extent, NULL) &&
           !tni_tensor_device_of(out->tensor, where, &out->device, NULL) &&
           out->device != c->device;
}

/* Copies every byte from the lowest element to the highest, to memory with the same alignment. *out
 * is the address of the first element in the copy. */
static tn_status copy_operand(tni_crossing *c, const stray *s, const char *where, void **out,
                              tn_error *err)
{
    const char *lowest = (const char *)tni_tensor_first(s->tensor) + s->extent.low;
    uint64_t bytes = (uint64_t)(s->extent.high - s->extent.low);
    void **memory = &c->copies[c->count];
    if (tn_graph_is_recording(c->stream))
        return tni_graph_reject(
            c->stream, where, "operands of another device would be copied for this call only", err);
    tn_status status = tni_capture_reject(
        c->stream, where, "operands of another device would be copied for this call only", err);
    if (!status)
        status = tn_memory_alloc(c->device, bytes + TN_OP_ALIGNMENT_MAX, where, memory, err);
    if (!status)
        status = tn_stream_synchronize(tn_stream_current(s->device), err);
    if (status)
        return status;
    char *to = (char *)*memory + ((uintptr_t)lowest - (uintptr_t)*memory) % TN_OP_ALIGNMENT_MAX;
    *out = to - s->extent.low;
    tni_log(TN_LOG_INFO, "%s: copies %s from %s to %s, because may_cross_devices is set", where,
            s->name, tn_device_id(s->device), tn_device_id(c->device));
    return tn_memory_copy(TN_ARGS(memory_copy, .to_device = c->device, .to = to,
                                  .from_device = s->device, .from = lowest, .bytes = bytes,
                                  .stream = c->stream),
                          err);
}

/* Replaces a stray operand by a tensor on the output's device. */
static tn_status replace_operand(tni_asked *asked, int32_t index, const stray *s, bool copies,
                                 tni_crossing *c, tn_error *err)
{
    const tn_tensor *from = s->tensor, *made = &c->tensors[c->count];
    void *first = tni_tensor_first(from);
    tn_status status = TN_OK;
    if (copies && s->extent.elements > 0)
        status = copy_operand(c, s, asked->class->where, &first, err);
    if (!status)
        status = tn_tensor_wrap(c->device, first, from->dtype, from->shape, from->strides,
                                from->ndim, NULL, NULL, &c->tensors[c->count], err);
    c->count++;
    memcpy((char *)c->args + asked->class->args.tensors[index], &made, sizeof made);
    asked->args = c->args;
    return status;
}

static bool is_whole(const tni_asked *asked, const tni_crossing *c)
{
    return asked->args && *(const size_t *)asked->args >= asked->class->args.size &&
           asked->class->args.size <= sizeof c->args && tensor_of(asked, asked->class->output);
}

tn_status tni_cross_begin(tni_asked *asked, bool copies, tni_crossing *out, tn_error *err)
{
    const tni_op_class *class = asked->class;
    tn_status status = TN_OK;
    out->count = 0;
    if (!asked->context->value[TN_SETTING_MAY_CROSS_DEVICES] || !is_whole(asked, out) ||
        tni_tensor_device_of(tensor_of(asked, class->output), class->where, &out->device, NULL))
        return TN_OK;
    const tni_asked given = *asked;
    tn_stream *const *stream = (const void *)((const char *)given.args + class->args.stream);
    out->stream = *stream ? *stream : tn_stream_current(out->device);
    const size_t size = *(const size_t *)given.args; /* fields were added at the end */
    memset(out->args, 0, sizeof out->args);
    out->args[0] = size < sizeof out->args ? size : sizeof out->args;
    memcpy((char *)out->args + sizeof size, (const char *)given.args + sizeof size,
           out->args[0] - sizeof size);
    memset(out->tensors, 0, sizeof out->tensors);
    memset(out->copies, 0, sizeof out->copies);
    for (int32_t i = 0; class->operands[i] && !status; i++) {
        stray s;
        if (i != class->output && is_stray(&given, i, out, &s))
            status = replace_operand(asked, i, &s, copies, out, err);
    }
    return status;
}

void tni_cross_end(tni_crossing *crossing)
{
    bool waits = false;
    for (size_t i = 0; i < crossing->count; i++)
        waits = waits || crossing->copies[i];
    if (waits)
        (void)tn_stream_synchronize(crossing->stream, NULL);
    for (size_t i = 0; i < crossing->count; i++) {
        tn_tensor_release(&crossing->tensors[i]);
        tn_memory_free(crossing->device, crossing->copies[i]);
    }
    crossing->count = 0;
}
