#include "einsum_calls.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "tenon/elementwise.h"
#include "tenon/matmul.h"
#include "tenon/reduce.h"

#include <string.h>

static const char where[] = "tn_einsum";

enum { ALIGNMENT = 64, TENSORS = 3 };

/* A loop over dimensions that several tensors have; the last tensor is the output. */
typedef struct nest {
    int32_t tensors;
    int32_t rank;
    int32_t kept; /* the first dimensions, which are not summed */
    int64_t size[TNI_EINSUM_DIMS];
    int64_t stride[TENSORS][TNI_EINSUM_DIMS];
    uintptr_t at[TENSORS];
} nest;

struct tni_einsum_room {
    nest nest;
    tni_einsum_view copies[TENSORS]; /* of a matrix product; or of a sum, two */
    tni_einsum_groups groups;
    tni_einsum_list summed;
};

tni_einsum_room *tni_einsum_room_create(void)
{
    return tni_alloc(sizeof(tni_einsum_room));
}

/* Calls an operator for tensors of the nest's dimensions from `first` on. */
typedef tn_status (*call_fn)(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err);

int32_t tni_einsum_find(const tni_einsum_view *view, int32_t index)
{
    for (int32_t i = 0; i < view->dims.count; i++) {
        if (view->dims.index[i] == index)
            return i;
    }
    return -1;
}

int64_t tni_einsum_stride(const tni_einsum_view *view, int32_t index)
{
    const int32_t dim = tni_einsum_find(view, index);
    return dim < 0 ? 0 : view->stride[dim];
}

/* Finds the first gap for `bytes` bytes between the blocks, which are sorted by address. */
static tn_status take_block(tni_einsum_calls *calls, uint64_t bytes, int32_t *out, tn_error *err)
{
    void *blocks = calls->blocks;
    uint64_t at = 0;
    size_t index = 0;
    for (; index < calls->block_count; index++) {
        if (!calls->blocks[index].used)
            break;
    }
    if (index == calls->block_count) {
        if (!tni_array_reserve(&blocks, &calls->block_room, index, index + 1,
                               sizeof *calls->blocks))
            return tni_einsum_no_memory(err, "the list of intermediate results");
        calls->blocks = blocks;
        calls->block_count++;
    }
    calls->blocks[index].used = false;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < calls->block_count; i++) {
            const tni_einsum_block *block = &calls->blocks[i];
            if (block->used && at < block->end && block->begin < at + bytes) {
                at = block->end;
                moved = true;
            }
        }
    }
    calls->blocks[index] = (tni_einsum_block){at, at + bytes, true};
    calls->peak = at + bytes > calls->peak ? at + bytes : calls->peak;
    *out = (int32_t)index;
    return TN_OK;
}

tn_status tni_einsum_view_make(tni_einsum_calls *calls, const tni_einsum_list *const *lists,
                               size_t count, tni_einsum_view *out, tn_error *err)
{
    int64_t step = 1;
    bool fits = true;
    out->dims.count = 0;
    for (size_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < lists[i]->count && fits; k++) {
            fits = out->dims.count < TNI_EINSUM_DIMS;
            if (fits)
                out->dims.index[out->dims.count++] = lists[i]->index[k];
        }
    }
    for (int32_t dim = out->dims.count; dim-- > 0 && fits;) {
        out->stride[dim] = step;
        fits = tni_mul_i64(step, calls->run->sum->size[out->dims.index[dim]], &step);
    }
    if (!fits || step > (INT64_MAX >> 2) / calls->bytes)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where,
                       "an intermediate result of %d dimensions has more bytes than 2^61; "
                       "contract in another order",
                       (int)out->dims.count);
    const uint64_t bytes =
        ((uint64_t)(step * calls->bytes) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const tn_status status = take_block(calls, bytes, &out->block, err);
    if (!status)
        out->at = (uintptr_t)calls->run->memory + (uintptr_t)calls->blocks[out->block].begin;
    return status;
}

void tni_einsum_view_free(tni_einsum_calls *calls, const tni_einsum_view *view)
{
    if (view->block >= 0)
        calls->blocks[view->block].used = false;
}

static tn_tensor make_tensor(const tni_einsum_calls *calls, uintptr_t at, int32_t ndim,
                             const int64_t *shape, const int64_t *strides)
{
    return (tn_tensor){.data = (void *)at,
                       .device_type = calls->device_type,
                       .device_id = calls->device_id,
                       .ndim = ndim,
                       .dtype = calls->run->out->dtype,
                       .shape = (int64_t *)(uintptr_t)shape,
                       .strides = (int64_t *)(uintptr_t)strides};
}

/* The tensor of a nest's dimensions from `first` to `end` - 1. */
static tn_tensor tensor_of(const tni_einsum_calls *calls, const nest *n, int32_t tensor,
                           int32_t first, int32_t end)
{
    return make_tensor(calls, n->at[tensor], end - first, n->size + first,
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

static tn_status call_permute(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->rank);
    CALL(permute, .in = &in, .out = &out);
}

static tn_status call_multiply(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor other = tensor_of(calls, n, 1, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 2, first, n->rank);
    CALL(binary, .in = &in, .other = &other, .out = &out, .kind = TN_BINARY_MUL);
}

static tn_status call_add(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->rank);
    CALL(binary, .in = &out, .other = &in, .out = &out, .kind = TN_BINARY_ADD);
}

static tn_status call_fill(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err)
{
    const tn_tensor out = tensor_of(calls, n, 0, first, n->rank);
    CALL(fill, .out = &out);
}

static tn_status call_reduce(tni_einsum_calls *calls, const nest *n, int32_t first, tn_error *err)
{
    const tn_tensor in = tensor_of(calls, n, 0, first, n->rank);
    const tn_tensor out = tensor_of(calls, n, 1, first, n->kept);
    const uint64_t axes = ((UINT64_C(1) << (n->rank - n->kept)) - 1) << (n->kept - first);
    CALL(reduce, .in = &in, .out = &out, .axes = axes, .kind = TN_REDUCE_SUM);
}

static void swap_dims(nest *n, int32_t a, int32_t b)
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

/* Sorts dimensions by descending strides of a tensor. */
static void sort_dims(nest *n, int32_t from, int32_t to, int32_t tensor)
{
    for (int32_t i = from + 1; i < to; i++) {
        for (int32_t k = i; k > from && tni_einsum_magnitude(n->stride[tensor][k - 1]) <
                                            tni_einsum_magnitude(n->stride[tensor][k]);
             k--)
            swap_dims(n, k - 1, k);
    }
}

/* Whether a dimension of stride `outer` and one of `size` elements that are `inner` apart are one. */
static bool are_contiguous(int64_t outer, int64_t inner, int64_t size)
{
    int64_t whole;
    return tni_mul_i64(inner, size, &whole) && outer == whole;
}

/* Merges dimensions from `from` to `to` - 1 that are contiguous in every tensor. Returns the new
 * end. */
static int32_t merge_dims(nest *n, int32_t from, int32_t to)
{
    int32_t last = from;
    for (int32_t i = from + 1; i < to; i++) {
        bool merged = true;
        for (int32_t t = 0; t < n->tensors; t++)
            merged = merged && are_contiguous(n->stride[t][last], n->stride[t][i], n->size[i]);
        last += !merged;
        n->size[last] = merged ? n->size[last] * n->size[i] : n->size[i];
        for (int32_t t = 0; t < n->tensors; t++)
            n->stride[t][last] = n->stride[t][i];
    }
    return from < to ? last + 1 : to;
}

/* Removes the dimensions from `from` to `to` - 1. */
static void remove_dims(nest *n, int32_t from, int32_t to)
{
    const size_t bytes = (size_t)(n->rank - to) * sizeof n->size[0];
    memmove(n->size + from, n->size + to, bytes);
    for (int32_t t = 0; t < n->tensors; t++)
        memmove(n->stride[t] + from, n->stride[t] + to, bytes);
    n->rank -= to - from;
}

/* The nest of the dimensions of `to`, which is the last view. */
static void make_nest(const tni_einsum_calls *calls, const tni_einsum_view *const *views,
                      int32_t count, nest *out)
{
    const tni_einsum_view *to = views[count - 1];
    out->tensors = count;
    out->rank = out->kept = to->dims.count;
    for (int32_t t = 0; t < count; t++)
        out->at[t] = views[t]->at;
    for (int32_t dim = 0; dim < out->rank; dim++) {
        out->size[dim] = calls->run->sum->size[to->dims.index[dim]];
        for (int32_t t = 0; t < count; t++)
            out->stride[t][dim] = tni_einsum_stride(views[t], to->dims.index[dim]);
    }
    sort_dims(out, 0, out->rank, count - 1);
    out->rank = out->kept = merge_dims(out, 0, out->rank);
}

/* Calls an operator once for each element of the outermost dimensions that it does not support. In
 * EXPLAIN, only once; in MEASURE, not at all. */
static tn_status run_nest(tni_einsum_calls *calls, nest *n, call_fn call, tn_error *err)
{
    const int32_t outer = n->rank > TN_OP_RANK_MAX ? n->rank - TN_OP_RANK_MAX : 0;
    int64_t at[TNI_EINSUM_DIMS] = {0};
    if (calls->run->mode == TNI_EINSUM_MEASURE)
        return TN_OK;
    for (;;) {
        const tn_status status = call(calls, n, outer, err);
        int32_t dim = outer;
        while (dim-- > 0) {
            const bool wraps = ++at[dim] == n->size[dim];
            for (int32_t t = 0; t < n->tensors; t++)
                n->at[t] +=
                    (uintptr_t)((wraps ? 1 - n->size[dim] : 1) * n->stride[t][dim] * calls->bytes);
            if (!wraps)
                break;
            at[dim] = 0;
        }
        if (status || dim < 0 || calls->run->mode == TNI_EINSUM_EXPLAIN)
            return status;
    }
}

tn_status tni_einsum_copy(tni_einsum_calls *calls, const tni_einsum_view *from,
                          const tni_einsum_view *to, tn_error *err)
{
    nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {from, to};
    make_nest(calls, views, 2, n);
    return run_nest(calls, n, call_permute, err);
}

tn_status tni_einsum_multiply(tni_einsum_calls *calls, const tni_einsum_view *a,
                              const tni_einsum_view *b, const tni_einsum_view *to, tn_error *err)
{
    nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {a, b, to};
    make_nest(calls, views, 3, n);
    return run_nest(calls, n, call_multiply, err);
}

tn_status tni_einsum_add_to(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_view *to, tn_error *err)
{
    nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {from, to};
    make_nest(calls, views, 2, n);
    return run_nest(calls, n, call_add, err);
}

tn_status tni_einsum_clear(tni_einsum_calls *calls, const tni_einsum_view *to, tn_error *err)
{
    nest *n = &calls->room->nest;
    make_nest(calls, &to, 1, n);
    return run_nest(calls, n, call_fill, err);
}

/* The nest of a sum: the dimensions of `to`, then the summed dimensions. */
static void make_sum(const tni_einsum_calls *calls, const tni_einsum_view *from,
                     const tni_einsum_view *to, nest *out)
{
    const tni_einsum_view *const views[] = {from, to};
    make_nest(calls, views, 2, out);
    for (int32_t dim = 0; dim < from->dims.count; dim++) {
        if (tni_einsum_find(to, from->dims.index[dim]) >= 0)
            continue;
        out->size[out->rank] = calls->run->sum->size[from->dims.index[dim]];
        out->stride[0][out->rank] = from->stride[dim];
        out->stride[1][out->rank++] = 0;
    }
    sort_dims(out, out->kept, out->rank, 0);
    const int32_t end = merge_dims(out, out->kept, out->rank);
    remove_dims(out, end, out->rank);
}

/* Sums a copy in which the dimensions that are summed are contiguous, and those of `to` too. */
static tn_status reduce_copy(tni_einsum_calls *calls, const tni_einsum_view *from,
                             const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_room *room = calls->room;
    tni_einsum_view *copy = &room->copies[0], *dense = &room->copies[1];
    room->summed.count = 0;
    for (int32_t dim = 0; dim < from->dims.count; dim++) {
        if (tni_einsum_find(to, from->dims.index[dim]) < 0)
            room->summed.index[room->summed.count++] = from->dims.index[dim];
    }
    const tni_einsum_list *const lists[] = {&to->dims, &room->summed};
    tn_status status = tni_einsum_view_make(calls, lists, 2, copy, err);
    if (status)
        return status;
    status = tni_einsum_copy(calls, from, copy, err);
    if (!status)
        status = tni_einsum_view_make(calls, lists, 1, dense, err);
    if (!status) {
        make_sum(calls, copy, dense, &room->nest);
        status = run_nest(calls, &room->nest, call_reduce, err);
        if (!status)
            status = tni_einsum_copy(calls, dense, to, err);
        tni_einsum_view_free(calls, dense);
    }
    tni_einsum_view_free(calls, copy);
    return status;
}

tn_status tni_einsum_reduce(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_view *to, tn_error *err)
{
    nest *n = &calls->room->nest;
    make_sum(calls, from, to, n);
    if (n->kept == n->rank) /* nothing is summed: all such dimensions had one element */
        return tni_einsum_copy(calls, from, to, err);
    if (n->rank > TN_OP_RANK_MAX)
        return reduce_copy(calls, from, to, err);
    return run_nest(calls, n, call_reduce, err);
}

/* Merges a list of indices to one dimension of a view, if its strides permit that. */
static bool merge_list(const tni_einsum_calls *calls, const tni_einsum_view *view,
                       const tni_einsum_list *list, int64_t *out_size, int64_t *out_stride)
{
    *out_size = 1;
    *out_stride = 1;
    for (int32_t i = list->count; i-- > 0;) {
        const int64_t stride = tni_einsum_stride(view, list->index[i]);
        if (i == list->count - 1)
            *out_stride = stride;
        else if (!are_contiguous(stride, *out_stride, *out_size))
            return false;
        *out_size *= calls->run->sum->size[list->index[i]];
    }
    return true;
}

/* Whether a view is a matrix for each batch. */
static bool is_matrix(const tni_einsum_calls *calls, const tni_einsum_view *view,
                      const tni_einsum_list *rows, const tni_einsum_list *columns)
{
    int64_t size, stride;
    return merge_list(calls, view, rows, &size, &stride) &&
           merge_list(calls, view, columns, &size, &stride);
}

/* Fills in the last two dimensions of a nest for one tensor. */
static void put_matrix(const tni_einsum_calls *calls, const tni_einsum_view *view,
                       const tni_einsum_list *rows, const tni_einsum_list *columns,
                       int64_t out_shape[2], int64_t out_stride[2])
{
    merge_list(calls, view, rows, &out_shape[0], &out_stride[0]);
    merge_list(calls, view, columns, &out_shape[1], &out_stride[1]);
}

enum { BATCH_MOST = TN_OP_RANK_MAX - 2 };

/* The batch dimensions, merged; returns whether they are few enough. */
static bool make_batch(const tni_einsum_calls *calls, const tni_einsum_list *batch,
                       const tni_einsum_view *const *views, nest *out)
{
    out->tensors = TENSORS;
    out->rank = batch->count;
    for (int32_t i = 0; i < batch->count; i++) {
        out->size[i] = calls->run->sum->size[batch->index[i]];
        for (int32_t t = 0; t < TENSORS; t++)
            out->stride[t][i] = tni_einsum_stride(views[t], batch->index[i]);
    }
    out->rank = merge_dims(out, 0, out->rank);
    return out->rank <= BATCH_MOST;
}

bool tni_einsum_are_matrices(tni_einsum_calls *calls, const tni_einsum_groups *groups,
                             const tni_einsum_view *a, const tni_einsum_view *b,
                             const tni_einsum_view *to)
{
    const tni_einsum_view *const views[TENSORS] = {a, b, to};
    return make_batch(calls, &groups->batch, views, &calls->room->nest) &&
           is_matrix(calls, a, &groups->rows, &groups->sum) &&
           is_matrix(calls, b, &groups->sum, &groups->columns) &&
           is_matrix(calls, to, &groups->rows, &groups->columns);
}

/* Shapes and strides of the three matrices, whose batch dimensions are those of a nest. */
typedef struct matrices {
    int64_t shape[TENSORS][TN_OP_RANK_MAX];
    int64_t stride[TENSORS][TN_OP_RANK_MAX];
    int32_t rank;
} matrices;

static tn_status call_matmul(tni_einsum_calls *calls, const matrices *m,
                             const tni_einsum_view *const *views, tn_error *err)
{
    tn_tensor t[TENSORS];
    for (int32_t i = 0; i < TENSORS; i++)
        t[i] = make_tensor(calls, views[i]->at, m->rank, m->shape[i], m->stride[i]);
    if (calls->run->mode == TNI_EINSUM_MEASURE)
        return TN_OK;
    CALL(matmul, .a = &t[0], .b = &t[1], .out = &t[2]);
}

/* Computes products of views that are matrices, with few enough batch dimensions. */
static tn_status multiply_matrices(tni_einsum_calls *calls, const tni_einsum_groups *g,
                                   const tni_einsum_view *const *views, const nest *batch,
                                   tn_error *err)
{
    matrices m = {.rank = batch->rank + 2};
    const tni_einsum_list *const lists[TENSORS][2] = {
        {&g->rows, &g->sum}, {&g->sum, &g->columns}, {&g->rows, &g->columns}};
    const size_t bytes = (size_t)batch->rank * sizeof m.shape[0][0];
    for (int32_t i = 0; i < TENSORS; i++) {
        memcpy(m.shape[i], batch->size, bytes);
        memcpy(m.stride[i], batch->stride[i], bytes);
        put_matrix(calls, views[i], lists[i][0], lists[i][1], m.shape[i] + batch->rank,
                   m.stride[i] + batch->rank);
    }
    return call_matmul(calls, &m, views, err);
}

/* Makes a contiguous view of two lists after the batch. */
static tn_status make_matrix(tni_einsum_calls *calls, const tni_einsum_groups *g,
                             const tni_einsum_list *rows, const tni_einsum_list *columns,
                             tni_einsum_view *out, tn_error *err)
{
    const tni_einsum_list *const lists[] = {&g->batch, rows, columns};
    return tni_einsum_view_make(calls, lists, 3, out, err);
}

/* out's columns get the smaller stride, so that kernels write along rows. */
static bool is_column_major(const tni_einsum_calls *calls, const tni_einsum_groups *g,
                            const tni_einsum_view *to)
{
    int64_t rows, columns, row_stride, column_stride;
    return merge_list(calls, to, &g->rows, &rows, &row_stride) &&
           merge_list(calls, to, &g->columns, &columns, &column_stride) && rows > 1 &&
           columns > 1 && tni_einsum_magnitude(column_stride) > tni_einsum_magnitude(row_stride);
}

tn_status tni_einsum_matmul(tni_einsum_calls *calls, const tni_einsum_groups *groups,
                            const tni_einsum_view *a, const tni_einsum_view *b,
                            const tni_einsum_view *to, tn_error *err)
{
    const bool swapped = is_column_major(calls, groups, to);
    tni_einsum_view *copies = calls->room->copies;
    tni_einsum_groups *g = &calls->room->groups;
    const tni_einsum_view *views[TENSORS] = {swapped ? b : a, swapped ? a : b, to};
    nest *batch = &calls->room->nest;
    tn_status status = TN_OK;
    *g = *groups;
    if (swapped) {
        g->rows = groups->columns;
        g->columns = groups->rows;
    }
    const tni_einsum_list *const lists[TENSORS][2] = {
        {&g->rows, &g->sum}, {&g->sum, &g->columns}, {&g->rows, &g->columns}};
    const bool few = make_batch(calls, &g->batch, views, batch);
    for (int32_t i = 0; i < TENSORS; i++)
        copies[i].block = -1;
    for (int32_t i = 0; i < TENSORS && !status; i++) {
        if (few && is_matrix(calls, views[i], lists[i][0], lists[i][1]))
            continue;
        status = make_matrix(calls, g, lists[i][0], lists[i][1], &copies[i], err);
        if (!status && i < 2)
            status = tni_einsum_copy(calls, views[i], &copies[i], err);
        views[i] = &copies[i];
    }
    if (!status) {
        make_batch(calls, &g->batch, views, batch);
        status = multiply_matrices(calls, g, views, batch, err);
    }
    if (!status && views[2] != to)
        status = tni_einsum_copy(calls, views[2], to, err);
    for (int32_t i = 0; i < TENSORS; i++)
        tni_einsum_view_free(calls, &copies[i]);
    return status;
}
