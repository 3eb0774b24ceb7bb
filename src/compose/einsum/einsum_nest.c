#include "einsum_nest.h"

#include "tenon/elementwise.h"
#include "tenon/matmul.h"
#include "tenon/reduce.h"

#include <string.h>

tn_tensor tni_einsum_tensor(const tni_einsum_calls *calls, tn_dtype dtype, uintptr_t at,
                            int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    return (tn_tensor){.data = (void *)at,
                       .device_type = calls->device_type,
                       .device_id = calls->device_id,
                       .ndim = ndim,
                       .dtype = dtype,
                       .shape = (int64_t *)(uintptr_t)shape,
                       .strides = (int64_t *)(uintptr_t)strides};
}

/* The tensor of a nest's dimensions from `first` to `end` - 1. */
static tn_tensor tensor_of(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t tensor,
                           int32_t first, int32_t end)
{
    return tni_einsum_tensor(calls, n->dtype, n->at[tensor], end - first, n->size + first,
                             n->stride[tensor] + first);
}

static tn_status end_explain(const tni_einsum_calls *calls, tn_status status, tn_decision *decision,
                             tn_error *err)
{
    if (!status)
        status = calls->run->explained(calls->run->user, calls->step, decision, err);
    tn_decision_release(decision);
    return status;
}

/* Calls tn_NOUN or tn_NOUN_explain. */
#define CALL(noun, ...)                                                               \
    const tni_einsum_run *run = calls->run;                                           \
    const tn_##noun##_args *args = TN_ARGS(noun, .stream = run->stream, __VA_ARGS__); \
    tn_decision *decision = NULL;                                                     \
    if (run->mode == TNI_EINSUM_RUN)                                                  \
        return tn_##noun(run->context, args, err);                                    \
    const tn_status status = tn_##noun##_explain(run->context, args, &decision, err); \
    return end_explain(calls, status, decision, err)

static tn_status call_permute(const tni_einsum_calls *calls, const tni_einsum_nest *n,
                              int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->rank);
    CALL(permute, .in = &in, .out = &out);
}

static tn_status call_negate(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t first,
                             tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->rank);
    CALL(unary, .in = &in, .out = &out, .kind = TN_UNARY_NEG);
}

static tn_status call_multiply(const tni_einsum_calls *calls, const tni_einsum_nest *n,
                               int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor other = tensor_of(calls, n, 1, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 2, first, n->rank);
    CALL(binary, .in = &in, .other = &other, .out = &out, .kind = TN_BINARY_MUL);
}

static tn_status call_add(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t first,
                          int32_t kind, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->rank);
    CALL(binary, .in = &out, .other = &in, .out = &out, .kind = kind);
}

static tn_status call_fill(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t first,
                           tn_error *err)
{
    const tn_tensor out = tensor_of(calls, n, 0, first, n->rank);
    CALL(fill, .out = &out);
}

static tn_status call_reduce(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t first,
                             tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->kept);
    const uint64_t axes = ((UINT64_C(1) << (n->rank - n->kept)) - 1) << (n->kept - first);
    CALL(reduce, .in = &in, .out = &out, .axes = axes, .kind = TN_REDUCE_SUM);
}

tn_status tni_einsum_call_matmul(const tni_einsum_calls *calls, const tn_tensor *t, tn_error *err)
{
    CALL(matmul, .a = &t[0], .b = &t[1], .out = &t[2]);
}

static void swap_dims(tni_einsum_nest *n, int32_t a, int32_t b)
{
    const int64_t size = n->size[a];
    n->size[a] = n->size[b];
    n->size[b] = size;
    for (int32_t i = 0; i < n->tensors; i++) {
        const int64_t stride = n->stride[i][a];
        n->stride[i][a] = n->stride[i][b];
        n->stride[i][b] = stride;
    }
}

void tni_einsum_nest_sort(tni_einsum_nest *n, int32_t from, int32_t to, int32_t tensor)
{
    for (int32_t i = from + 1; i < to; i++) {
        for (int32_t k = i; k > from && tni_einsum_magnitude(n->stride[tensor][k - 1]) <
                                            tni_einsum_magnitude(n->stride[tensor][k]);
             k--)
            swap_dims(n, k - 1, k);
    }
}

int32_t tni_einsum_nest_merge(tni_einsum_nest *n, int32_t from, int32_t to)
{
    int32_t last = from;
    for (int32_t i = from + 1; i < to; i++) {
        bool merged = true;
        for (int32_t t = 0; t < n->tensors; t++)
            merged = merged &&
                     tni_einsum_are_contiguous(n->stride[t][last], n->stride[t][i], n->size[i]);
        last += !merged;
        n->size[last] = merged ? n->size[last] * n->size[i] : n->size[i];
        for (int32_t t = 0; t < n->tensors; t++)
            n->stride[t][last] = n->stride[t][i];
    }
    return from < to ? last + 1 : to;
}

void tni_einsum_nest_remove(tni_einsum_nest *n, int32_t from, int32_t to)
{
    const size_t bytes = (size_t)(n->rank - to) * sizeof n->size[0];
    memmove(n->size + from, n->size + to, bytes);
    for (int32_t t = 0; t < n->tensors; t++)
        memmove(n->stride[t] + from, n->stride[t] + to, bytes);
    n->rank -= to - from;
}

void tni_einsum_nest_make(const tni_einsum_calls *calls, const tni_einsum_view *const *views,
                          int32_t count, tni_einsum_nest *out)
{
    const tni_einsum_view *to = views[count - 1];
    out->tensors = count;
    out->dtype = calls->run->out->dtype;
    out->bytes = calls->bytes;
    out->rank = out->kept = to->dims.count;
    for (int32_t t = 0; t < count; t++)
        out->at[t] = views[t]->at;
    for (int32_t dim = 0; dim < out->rank; dim++) {
        out->size[dim] = calls->run->sum->size[to->dims.index[dim]];
        for (int32_t t = 0; t < count; t++)
            out->stride[t][dim] = tni_einsum_stride(views[t], to->dims.index[dim]);
    }
    tni_einsum_nest_sort(out, 0, out->rank, count - 1);
    out->rank = out->kept = tni_einsum_nest_merge(out, 0, out->rank);
}

static void make_real(tni_einsum_nest *n)
{
    n->dtype = n->dtype == TN_C64 ? TN_F32 : TN_F64;
    n->bytes /= 2;
}

void tni_einsum_nest_take_parts(tni_einsum_nest *n, const tni_einsum_part *parts)
{
    static const struct {
        int64_t offset, stride; /* in real numbers */
    } places[] = {[TNI_EINSUM_REAL] = {0, 0},
                  [TNI_EINSUM_IMAGINARY] = {1, 0},
                  [TNI_EINSUM_BOTH] = {0, 1},
                  [TNI_EINSUM_SWAPPED] = {1, -1}};
    bool pairs = false;
    make_real(n);
    for (int32_t t = 0; t < n->tensors; t++) {
        n->at[t] += (uintptr_t)(places[parts[t]].offset * n->bytes);
        for (int32_t dim = 0; dim < n->rank; dim++)
            n->stride[t][dim] *= 2;
        n->stride[t][n->rank] = places[parts[t]].stride;
        pairs = pairs || places[parts[t]].stride;
    }
    n->size[n->rank] = 2;
    n->rank += pairs;
    n->kept = n->rank;
}

void tni_einsum_nest_split_complex(tni_einsum_nest *n)
{
    if (n->dtype != TN_C64 && n->dtype != TN_C128)
        return;
    const int32_t at = n->kept++;
    make_real(n);
    n->rank++;
    for (int32_t dim = n->rank; dim-- > at + 1;)
        n->size[dim] = n->size[dim - 1];
    n->size[at] = 2;
    for (int32_t t = 0; t < n->tensors; t++) {
        for (int32_t dim = n->rank; dim-- > 0;)
            n->stride[t][dim] = dim == at ? 1 : 2 * n->stride[t][dim - (dim > at)];
    }
    const int32_t end = tni_einsum_nest_merge(n, 0, n->kept);
    tni_einsum_nest_remove(n, end, n->kept);
    n->kept = end;
}

static tn_status call_act(const tni_einsum_calls *calls, const tni_einsum_nest *n, int32_t first,
                          tni_einsum_act act, tn_error *err)
{
    switch (act) {
    case TNI_EINSUM_COPY: return call_permute(calls, n, first, err);
    case TNI_EINSUM_MULTIPLY: return call_multiply(calls, n, first, err);
    case TNI_EINSUM_NEGATE: return call_negate(calls, n, first, err);
    case TNI_EINSUM_PLUS: return call_add(calls, n, first, TN_BINARY_ADD, err);
    case TNI_EINSUM_MINUS: return call_add(calls, n, first, TN_BINARY_SUB, err);
    case TNI_EINSUM_ZERO: return call_fill(calls, n, first, err);
    default: return call_reduce(calls, n, first, err);
    }
}

tn_status tni_einsum_nest_run(tni_einsum_calls *calls, tni_einsum_nest *n, tni_einsum_act act,
                              tn_error *err)
{
    const int32_t outer = n->rank > TN_OP_RANK_MAX ? n->rank - TN_OP_RANK_MAX : 0;
    int64_t at[TNI_EINSUM_DIMS] = {0};
    if (calls->run->mode == TNI_EINSUM_MEASURE)
        return TN_OK;
    for (;;) {
        const tn_status status = call_act(calls, n, outer, act, err);
        int32_t dim = outer;
        while (dim-- > 0) {
            const bool wraps = ++at[dim] == n->size[dim];
            for (int32_t t = 0; t < n->tensors; t++)
                n->at[t] +=
                    (uintptr_t)((wraps ? 1 - n->size[dim] : 1) * n->stride[t][dim] * n->bytes);
            if (!wraps)
                break;
            at[dim] = 0;
        }
        if (status || dim < 0 || calls->run->mode == TNI_EINSUM_EXPLAIN)
            return status;
    }
}
