/* Slices of a call whose intermediate results exceed the limit of memory: some indices are divided into equal
 * parts, and the call is computed for each combination of parts. Slices along an index of out write parts of
 * out; others are added up. */
#include "einsum.h"

#include "base/dtype.h"
#include "device/tensor/tensor.h"

#include <math.h>
#include <string.h>

/* The most slices: more would take too long to be of use. */
static const double slices_most = 1 << 20;

/* The strides of a tensor, also without strides of its own. */
static void copy_layout(const tn_tensor *tensor, int64_t *shape, int64_t *strides)
{
    const size_t bytes = (size_t)tensor->ndim * sizeof *shape;
    memcpy(shape, tensor->shape, bytes);
    if (tensor->strides)
        memcpy(strides, tensor->strides, bytes);
    else
        tni_strides_dense(tensor->shape, tensor->ndim, strides);
}

static tn_status init_slices(const tn_einsum_args *args, const tn_tensor *tensors,
                             const tni_einsum *whole, tni_einsum_slices *s, tn_error *err)
{
    const size_t count = (size_t)args->count + 1, indices = (size_t)whole->indices + 1;
    s->args = *args;
    s->whole = whole;
    s->count = 1;
    s->tensors = tni_alloc_zeroed(count, sizeof *s->tensors);
    s->list = tni_alloc_zeroed(count, sizeof *s->list);
    s->shapes = tni_alloc_zeroed(2 * count, sizeof *s->shapes);
    s->parts = tni_alloc_zeroed(2 * indices, sizeof *s->parts);
    if (!s->tensors || !s->list || !s->shapes || !s->parts)
        return tni_einsum_no_memory(err, "slices");
    s->at = s->parts + indices;
    for (size_t i = 0; i < indices; i++)
        s->parts[i] = 1;
    for (size_t i = 0; i < count; i++) {
        int64_t *shape = s->shapes[2 * i], *strides = s->shapes[2 * i + 1];
        copy_layout(&tensors[i], shape, strides);
        s->tensors[i] = tensors[i];
        s->tensors[i].shape = shape;
        s->tensors[i].strides = strides;
        s->list[i] = &s->tensors[i];
    }
    s->args.operands = s->list;
    s->args.out = s->list[args->count];
    return TN_OK;
}

/* Sets the shapes of a slice. */
static void set_shapes(const tn_tensor *tensors, tni_einsum_slices *s)
{
    for (int32_t term = 0; term <= s->whole->terms; term++) {
        for (int32_t dim = 0; dim < tensors[term].ndim; dim++) {
            const int64_t size = tensors[term].shape[dim];
            s->shapes[2 * (size_t)term][dim] =
                size == 1 ? 1 : size / s->parts[s->whole->axes[term][dim]];
        }
    }
}

static bool is_summed(const tni_einsum *sum, int32_t index)
{
    return !(tni_einsum_set(sum, sum->terms)[index / 64] >> index % 64 & 1);
}

/* Bytes of a slice's result, which is added to out. 0 if slices are not added. */
static uint64_t added_bytes(const tni_einsum_slices *s)
{
    const tni_einsum *sum = &s->sum;
    return s->adds ? (uint64_t)tni_dtype_bytes(s->list[sum->terms]->dtype) *
                         (uint64_t)tni_einsum_values(sum, tni_einsum_set(sum, sum->terms))
                   : 0;
}

/* Raises *bytes to the memory of the same run with a contiguous result. */
static tn_status measure_added(const tni_einsum_run *run, uint64_t *bytes, tn_error *err)
{
    tn_tensor contiguous = *run->out;
    tni_einsum_run measured = *run;
    uint64_t needed = 0;
    contiguous.strides = NULL;
    measured.out = &contiguous;
    const tn_status status = tni_einsum_execute(&measured, &needed, err);
    *bytes = needed > *bytes ? needed : *bytes;
    return status;
}

/* Finds the memory and the cost, of all slices, with the parts that are set. */
static tn_status evaluate(const tn_tensor *tensors, const tni_einsum_order *order,
                          tni_einsum_slices *s, tn_error *err)
{
    const tni_einsum_run run = {.mode = TNI_EINSUM_MEASURE,
                                .by_parts = s->by_parts,
                                .sum = &s->sum,
                                .order = order,
                                .operands = s->tensors,
                                .out = s->list[s->whole->terms]};
    set_shapes(tensors, s);
    s->count = 1;
    s->adds = false;
    for (int32_t i = 0; i < s->whole->indices; i++) {
        s->count *= (double)s->parts[i];
        s->adds = s->adds || (s->parts[i] > 1 && is_summed(s->whole, i));
    }
    tni_einsum_release(&s->sum);
    tn_status status = tni_einsum_parse(&s->args, &s->sum, err);
    if (!status)
        status = tni_einsum_execute(&run, &s->bytes, err);
    if (!status && s->adds) /* all slices but the first write a contiguous result */
        status = measure_added(&run, &s->bytes, err);
    if (!status)
        status = tni_einsum_cost(&s->sum, order, &s->cost, err);
    if (status)
        return status;
    s->added = s->bytes;
    s->cost *= s->count;
    s->bytes += (added_bytes(s) + 63) / 64 * 64;
    return TN_OK;
}

static int64_t least_factor(int64_t number)
{
    for (int64_t factor = 2; factor * factor <= number; factor++) {
        if (number % factor == 0)
            return factor;
    }
    return number;
}

/* Divides the index for which memory and cost together become least; *out_index is -1 if none can be
 * divided. */
static tn_status divide_best(const tn_tensor *tensors, const tni_einsum_order *order,
                             tni_einsum_slices *s, tn_error *err)
{
    int32_t best = -1;
    double least = INFINITY;
    const double count = s->count;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->whole->indices && !status; i++) {
        const int64_t left = s->whole->size[i] / s->parts[i], before = s->parts[i];
        const int64_t factor = left > 1 && left < INT32_MAX ? least_factor(left) : 0;
        if (!factor || (!s->can_add && is_summed(s->whole, i)) ||
            count * (double)factor > slices_most)
            continue;
        s->parts[i] *= factor;
        status = evaluate(tensors, order, s, err);
        const double weight = (double)s->bytes * s->cost;
        if (!status && weight < least) {
            least = weight;
            best = i;
        }
        s->parts[i] = before;
    }
    if (!status && best >= 0)
        s->parts[best] *= least_factor(s->whole->size[best] / s->parts[best]);
    s->divided = best >= 0;
    return status ? status : evaluate(tensors, order, s, err);
}

/* Whether slices of one element each need no more than the limit: no others need less, except of the result
 * that is added. */
static tn_status check_least(const tn_tensor *tensors, const tni_einsum_order *order,
                             tni_einsum_slices *s, bool *out_fits, tn_error *err)
{
    for (int32_t i = 0; i < s->whole->indices; i++)
        s->parts[i] = s->whole->size[i] > 0 ? s->whole->size[i] : 1;
    const tn_status status = evaluate(tensors, order, s, err);
    *out_fits = s->added <= s->args.memory_limit;
    for (int32_t i = 0; i < s->whole->indices; i++)
        s->parts[i] = 1;
    return status;
}

static tn_status note_kernel(void *user, int32_t step, const tn_decision *decision, tn_error *err)
{
    (void)step;
    (void)err;
    *(bool *)user = tn_decision_chosen(decision) != NULL;
    return TN_OK;
}

/* Whether a kernel adds results to out. */
static bool can_add(const tni_einsum_run *whole, tni_einsum_slices *s)
{
    bool found = false;
    tn_error ignored = {0};
    tni_einsum_run run = *whole;
    tn_tensor added = *s->list[whole->sum->terms];
    added.data = whole->memory;
    added.byte_offset = 0;
    added.strides = NULL;
    run.mode = TNI_EINSUM_EXPLAIN;
    run.out = &added;
    run.explained = note_kernel;
    run.user = &found;
    return !tni_einsum_add(&run, 0, whole->out, &ignored) && found;
}

tn_status tni_einsum_slice(const tn_einsum_args *args, const tni_einsum_run *run,
                           const int64_t *parts, tni_einsum_slices *out, tn_error *err)
{
    const tn_tensor *tensors = run->operands;
    const tni_einsum *whole = run->sum;
    const tni_einsum_order *order = run->order;
    *out = (tni_einsum_slices){.by_parts = run->by_parts};
    tn_status status = init_slices(args, tensors, whole, out, err);
    bool adds = !parts;
    for (int32_t i = 0; !adds && i < whole->indices; i++)
        adds = parts[i] > 1 && is_summed(whole, i);
    out->can_add = !status && adds && can_add(run, out);
    if (adds && !out->can_add)
        parts = NULL;
    if (!status && parts)
        memcpy(out->parts, parts, (size_t)whole->indices * sizeof *parts);
    else if (!status)
        status = check_least(tensors, order, out, &out->divided, err);
    if (!status)
        status = evaluate(tensors, order, out, err);
    while (!status && out->divided && out->bytes > args->memory_limit)
        status = divide_best(tensors, order, out, err);
    out->fits = !status && out->bytes <= args->memory_limit;
    if (status || !out->fits)
        tni_einsum_slices_release(out);
    return status;
}

void tni_einsum_slices_release(tni_einsum_slices *s)
{
    tni_einsum_release(&s->sum);
    tni_release(s->tensors);
    tni_release(s->list);
    tni_release(s->shapes);
    tni_release(s->parts);
    *s = (tni_einsum_slices){0};
}

/* Moves the tensors to the current slice. */
static void move_tensors(const tn_tensor *tensors, tni_einsum_slices *s)
{
    for (int32_t term = 0; term <= s->whole->terms; term++) {
        tn_tensor *tensor = &s->tensors[term];
        int64_t elements = 0;
        for (int32_t dim = 0; dim < tensor->ndim; dim++) {
            if (tensors[term].shape[dim] != 1)
                elements +=
                    s->at[s->whole->axes[term][dim]] * tensor->shape[dim] * tensor->strides[dim];
        }
        const uintptr_t first = (uintptr_t)tni_tensor_first(&tensors[term]);
        tensor->data = (void *)(first + (uintptr_t)(elements * tni_dtype_bytes(tensor->dtype)));
        tensor->byte_offset = 0;
    }
}

/* Moves to the next slice, those that are added to one another after each other. Sets whether it is the first
 * of these; returns false after the last. */
static bool next_slice(tni_einsum_slices *s, bool *out_first)
{
    const uint64_t *out = tni_einsum_set(s->whole, s->whole->terms);
    *out_first = false;
    for (int32_t kept = 0; kept < 2; kept++) {
        for (int32_t i = 0; i < s->whole->indices; i++) {
            if ((int32_t)(out[i / 64] >> i % 64 & 1) != kept)
                continue;
            if (++s->at[i] < s->parts[i])
                return true;
            s->at[i] = 0;
        }
        *out_first = true;
    }
    return false;
}

tn_tensor tni_einsum_added(const tni_einsum_slices *s, void *memory)
{
    tn_tensor added = s->tensors[s->whole->terms];
    added.data = (char *)memory + s->added;
    added.byte_offset = 0;
    added.strides = NULL;
    return added;
}

tn_status tni_einsum_run_slices(const tni_einsum_run *run, tni_einsum_slices *s, tn_error *err)
{
    uint64_t bytes;
    bool first = true;
    tn_status status = TN_OK;
    tni_einsum_run slice = *run;
    tn_tensor *out = &s->tensors[s->whole->terms], added;
    slice.sum = &s->sum;
    slice.operands = s->tensors;
    do {
        move_tensors(run->operands, s);
        added = first ? *out : tni_einsum_added(s, run->memory);
        slice.out = &added;
        status = tni_einsum_execute(&slice, &bytes, err);
        if (!status && !first)
            status = tni_einsum_add(&slice, 0, out, err);
    } while (!status && next_slice(s, &first));
    return status;
}
