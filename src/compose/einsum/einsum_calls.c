#include "einsum_nest.h"

#include "base/alloc.h"
#include "tenon/dlpack.h"

#include <string.h>

static const char where[] = "tn_einsum";

enum { ALIGNMENT = 64, TENSORS = TNI_EINSUM_TENSORS };

struct tni_einsum_room {
    tni_einsum_nest nest;
    tni_einsum_view copies[TENSORS]; /* of a matrix product; or of a sum, two */
    tni_einsum_groups groups;
    tni_einsum_list summed; /* of a sum; or the batch of a matrix */
};

tni_einsum_room *tni_einsum_room_create(void)
{
    return tni_alloc(sizeof(tni_einsum_room));
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

tn_status tni_einsum_copy(tni_einsum_calls *calls, const tni_einsum_view *from,
                          const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {from, to};
    tni_einsum_nest_make(calls, views, 2, n);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_COPY, err);
}

tn_status tni_einsum_multiply(tni_einsum_calls *calls, const tni_einsum_view *a,
                              const tni_einsum_view *b, const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {a, b, to};
    tni_einsum_nest_make(calls, views, 3, n);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_MULTIPLY, err);
}

tn_status tni_einsum_add_to(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    const tni_einsum_view *const views[] = {from, to};
    tni_einsum_nest_make(calls, views, 2, n);
    tni_einsum_nest_split_complex(n);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_PLUS, err);
}

tn_status tni_einsum_clear(tni_einsum_calls *calls, const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_nest *n = &calls->room->nest;
    tni_einsum_nest_make(calls, &to, 1, n);
    tni_einsum_nest_split_complex(n);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_ZERO, err);
}

/* The nest of a sum: the dimensions of `to`, then the summed dimensions. */
static void make_sum(const tni_einsum_calls *calls, const tni_einsum_view *from,
                     const tni_einsum_view *to, tni_einsum_nest *out)
{
    const tni_einsum_view *const views[] = {from, to};
    tni_einsum_nest_make(calls, views, 2, out);
    for (int32_t dim = 0; dim < from->dims.count; dim++) {
        if (tni_einsum_find(to, from->dims.index[dim]) >= 0)
            continue;
        out->size[out->rank] = calls->run->sum->size[from->dims.index[dim]];
        out->stride[0][out->rank] = from->stride[dim];
        out->stride[1][out->rank++] = 0;
    }
    tni_einsum_nest_sort(out, out->kept, out->rank, 0);
    const int32_t end = tni_einsum_nest_merge(out, out->kept, out->rank);
    tni_einsum_nest_remove(out, end, out->rank);
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
        tni_einsum_nest_split_complex(&room->nest);
        status = tni_einsum_nest_run(calls, &room->nest, TNI_EINSUM_SUM, err);
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
    tni_einsum_nest *n = &calls->room->nest;
    make_sum(calls, from, to, n);
    if (n->kept == n->rank) /* nothing is summed: all such dimensions had one element */
        return tni_einsum_copy(calls, from, to, err);
    tni_einsum_nest_split_complex(n);
    if (n->rank > TN_OP_RANK_MAX)
        return reduce_copy(calls, from, to, err);
    return tni_einsum_nest_run(calls, n, TNI_EINSUM_SUM, err);
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
        else if (!tni_einsum_are_contiguous(stride, *out_stride, *out_size))
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
                       const tni_einsum_view *const *views, tni_einsum_nest *out)
{
    out->tensors = TENSORS;
    out->rank = batch->count;
    for (int32_t i = 0; i < batch->count; i++) {
        out->size[i] = calls->run->sum->size[batch->index[i]];
        for (int32_t t = 0; t < TENSORS; t++)
            out->stride[t][i] = tni_einsum_stride(views[t], batch->index[i]);
    }
    out->rank = tni_einsum_nest_merge(out, 0, out->rank);
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

static tn_status call_matmul(const tni_einsum_calls *calls, const matrices *m,
                             const tni_einsum_view *const *views, tn_error *err)
{
    tn_tensor t[TENSORS];
    for (int32_t i = 0; i < TENSORS; i++)
        t[i] = tni_einsum_tensor(calls, calls->run->out->dtype, views[i]->at, m->rank, m->shape[i],
                                 m->stride[i]);
    return calls->run->mode == TNI_EINSUM_MEASURE ? TN_OK : tni_einsum_call_matmul(calls, t, err);
}

/* Computes products of views that are matrices, with few enough batch dimensions. */
static tn_status multiply_matrices(tni_einsum_calls *calls, const tni_einsum_groups *g,
                                   const tni_einsum_view *const *views,
                                   const tni_einsum_nest *batch, tn_error *err)
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

/* Makes a contiguous view of two lists after the batch, as far as `from` has it: rows and columns that
 * became batches are in one operand only. */
static tn_status make_matrix(tni_einsum_calls *calls, const tni_einsum_groups *g,
                             const tni_einsum_view *from, const tni_einsum_list *const *sides,
                             tni_einsum_view *out, tn_error *err)
{
    tni_einsum_list *batch = &calls->room->summed;
    const tni_einsum_list *const lists[] = {batch, sides[0], sides[1]};
    batch->count = 0;
    for (int32_t i = 0; i < g->batch.count; i++) {
        if (tni_einsum_find(from, g->batch.index[i]) >= 0)
            batch->index[batch->count++] = g->batch.index[i];
    }
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

/* Makes the product of the transposed matrices: b^T a^T. */
static void swap_sides(tni_einsum_groups *g, const tni_einsum_view **views)
{
    const tni_einsum_list rows = g->rows;
    const tni_einsum_view *const a = views[0];
    g->rows = g->columns;
    g->columns = rows;
    views[0] = views[1];
    views[1] = a;
}

tn_status tni_einsum_matmul(tni_einsum_calls *calls, const tni_einsum_groups *groups,
                            const tni_einsum_view *a, const tni_einsum_view *b,
                            const tni_einsum_view *to, tn_error *err)
{
    tni_einsum_view *copies = calls->room->copies;
    tni_einsum_groups *g = &calls->room->groups;
    const tni_einsum_view *views[TENSORS] = {a, b, to};
    tni_einsum_nest *batch = &calls->room->nest;
    tn_status status = TN_OK;
    *g = *groups;
    tni_einsum_split(calls, views, g);
    bool few = make_batch(calls, &g->batch, views, batch);
    if (!few || (calls->device_type != TN_DLPACK_CPU && batch->rank > 1)) {
        *g = *groups;
        few = make_batch(calls, &g->batch, views, batch);
    }
    if (is_column_major(calls, g, to)) {
        swap_sides(g, views);
        few = make_batch(calls, &g->batch, views, batch);
    }
    const tni_einsum_list *const lists[TENSORS][2] = {
        {&g->rows, &g->sum}, {&g->sum, &g->columns}, {&g->rows, &g->columns}};
    for (int32_t i = 0; i < TENSORS; i++)
        copies[i].block = -1;
    for (int32_t i = 0; i < TENSORS && !status; i++) {
        if (few && is_matrix(calls, views[i], lists[i][0], lists[i][1]))
            continue;
        status = make_matrix(calls, g, views[i], lists[i], &copies[i], err);
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
