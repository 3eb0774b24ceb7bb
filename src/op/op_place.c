/* Converts a call's tensors to operands of an op, and checks their devices and memory. */
#include "fields.h"

#include "device/tensor/tensor.h"
#include "tenon/module/op/elementwise.h"

/* The operands of a call, and their extents. */
typedef struct places {
    const tni_op_class *class;
    const tn_tensor *const *tensors;
    tni_layout extent[TN_OP_OPERANDS_MAX];
    tn_error *err;
} places;

static int64_t alignment_of(const void *address)
{
    uintptr_t bits = (uintptr_t)address | TN_OP_ALIGNMENT_MAX;
    return (int64_t)(bits & (~bits + 1));
}

void tni_problem_place(tni_problem *problem)
{
    for (int32_t i = 0; i < problem->op.count; i++) {
        if (problem->op.operand[i].dtype)
            problem->op.operand[i].alignment = alignment_of(problem->data[i]);
    }
}

tn_status tni_layout_take(const tn_tensor *tensor, const char *where, const char *name,
                          tn_layout *out, tni_layout *out_extent, tn_error *err)
{
    tn_status status = tni_tensor_measure(tensor, where, name, out_extent, err);
    if (status || !tensor) /* tensor is never NULL if status is TN_OK */
        return status ? status : TN_INTERNAL;
    if (tensor->ndim > TN_OP_RANK_MAX)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s has %d dimensions; %d are the most here",
                       name, (int)tensor->ndim, TN_OP_RANK_MAX);
    out->dtype = tensor->dtype;
    out->rank = tensor->ndim;
    for (int32_t i = 0; i < tensor->ndim; i++)
        out->shape[i] = tensor->shape[i];
    if (tensor->strides) {
        for (int32_t i = 0; i < tensor->ndim; i++)
            out->stride[i] = tensor->strides[i];
    } else
        tni_layout_dense(out);
    out->alignment = alignment_of(out_extent->elements ? tni_tensor_first(tensor) : NULL);
    return TN_OK;
}

static tn_status read_operand(places *p, int32_t index, tn_layout *out, void **out_data)
{
    const tn_tensor *tensor = p->tensors[index];
    tn_status status = tni_layout_take(tensor, p->class->where, p->class->operands[index], out,
                                       &p->extent[index], p->err);
    if (!status && tensor) /* tensor is never NULL if status is TN_OK */
        *out_data = p->extent[index].elements ? tni_tensor_first(tensor) : NULL;
    return status;
}

static tn_status find_device(const places *p, tn_device **out)
{
    tn_device *device = NULL, *its;
    int32_t first = 0;
    for (int32_t i = 0; p->class->operands[i]; i++) {
        if (!p->tensors[i])
            continue;
        tn_status status = tni_tensor_device_of(p->tensors[i], p->class->where, &its, p->err);
        if (status)
            return status;
        if (!device) {
            device = its;
            first = i;
        } else if (its != device)
            return tn_fail(p->err, TN_REFUSED, 0, p->class->where,
                           "%s is on %s and %s on %s; copy one of them, or set may_cross_devices",
                           p->class->operands[first], tn_device_id(device), p->class->operands[i],
                           tn_device_id(its));
    }
    *out = device;
    return TN_OK;
}

static bool is_same(const tn_op *op, int32_t a, int32_t b)
{
    const tn_layout *x = &op->operand[a], *y = &op->operand[b];
    size_t bytes = (size_t)x->rank * sizeof x->shape[0];
    return x->dtype == y->dtype && x->rank == y->rank && memcmp(x->shape, y->shape, bytes) == 0 &&
           tni_strides_same(x, y);
}

/* Whether an operand shares a byte with an output; false if operand 0 is the first output
 * itself, for an op in place. */
static bool share(const places *p, const tni_problem *problem, int32_t index, int32_t out)
{
    const tni_layout *a = &p->extent[index], *b = &p->extent[out];
    const char *at = problem->data[index], *to = problem->data[out];
    if (!at || !to || (uintptr_t)(at + a->high) <= (uintptr_t)(to + b->low) ||
        (uintptr_t)(to + b->high) <= (uintptr_t)(at + a->low))
        return false;
    if (index == 0 && out == p->class->output && p->class->may_be_in_place && at == to &&
        is_same(&problem->op, index, out))
        return false;
    return tni_tensors_overlap(p->tensors[index], a->size, p->tensors[out], b->size);
}

static tn_status check_output(const places *p, const tni_problem *problem, int32_t out)
{
    const char *where = p->class->where, *name = p->class->operands[out];
    const tn_tensor *tensor = p->tensors[out];
    tn_status status = tni_tensor_writable(tensor, where, name, p->err);
    if (status)
        return status;
    if (!p->extent[out].dense && p->extent[out].elements > 0 &&
        tni_strides_overlap(tensor->shape, tensor->strides, tensor->ndim))
        return tn_fail(
            p->err, TN_INVALID_ARGUMENT, 0, where,
            "%s: its strides map several elements to the same address; that can only be read",
            name);
    for (int32_t i = 0; p->class->operands[i]; i++) {
        if (i != out && p->tensors[i] && share(p, problem, i, out))
            return tn_fail(p->err, TN_INVALID_ARGUMENT, 0, where,
                           "%s shares memory with %s, which is written while it is %s",
                           p->class->operands[i], name,
                           tni_op_writes(p->class, i) ? "too" : "read");
    }
    return TN_OK;
}

static tn_status check_outputs(const places *p, const tni_problem *problem)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; p->class->operands[i] && !status; i++) {
        if (p->tensors[i] && tni_op_writes(p->class, i))
            status = check_output(p, problem, i);
    }
    return status;
}

tn_status tni_problem_init(tni_problem *out, const tni_op_class *class,
                           const tn_tensor *const *tensors, tn_error *err)
{
    places p;
    p.class = class;
    p.tensors = tensors;
    p.err = err;
    tni_op_init(&out->op, class);
    for (int32_t i = 0; class->operands[i]; i++) {
        out->data[i] = NULL;
        p.extent[i] = (tni_layout){0};
        if (!tensors[i] && (class->optional >> i & 1))
            continue;
        tn_status status = read_operand(&p, i, &out->op.operand[i], &out->data[i]);
        if (status)
            return status;
    }
    tn_status status = find_device(&p, &out->device);
    if (!status)
        status = check_outputs(&p, out);
    if (!status && class->may_be_in_place && tensors[0] && out->data[0] &&
        out->data[0] == out->data[class->output])
        out->op.uses |= TN_ELEMENTWISE_USES_IN_PLACE;
    return status;
}
