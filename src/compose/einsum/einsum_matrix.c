/* Products of matrices: views are merged into matrices, or copied. */
#include "einsum_nest.h"

#include "tenon/dlpack.h"

#include <string.h>

enum { TENSORS = TNI_EINSUM_TENSORS };

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
    tn_dtype dtype;
} matrices;

/* Turns complex matrices, of which b is expanded, into real ones. */
static void make_real(matrices *m)
{
    const int32_t row = m->rank - 2, column = m->rank - 1;
    m->dtype = m->dtype == TN_C64 ? TN_F32 : TN_F64;
    for (int32_t i = 0; i < TENSORS; i++) {
        for (int32_t dim = 0; dim < column; dim++)
            m->stride[i][dim] *= 2;
        m->shape[i][column] *= 2;
        m->stride[i][column] = 1;
    }
    m->shape[1][row] *= 2;
    m->stride[1][row] = m->shape[1][column];
}

static tn_status call_matmul(const tni_einsum_calls *calls, const matrices *m,
                             const tni_einsum_view *const *views, tn_error *err)
{
    tn_tensor t[TENSORS];
    for (int32_t i = 0; i < TENSORS; i++)
        t[i] = tni_einsum_tensor(calls, m->dtype, views[i]->at, m->rank, m->shape[i], m->stride[i]);
    return calls->run->mode == TNI_EINSUM_MEASURE ? TN_OK : tni_einsum_call_matmul(calls, t, err);
}

/* Computes products of views that are matrices, with few enough batch dimensions. */
static tn_status multiply_matrices(tni_einsum_calls *calls, const tni_einsum_groups *g,
                                   const tni_einsum_view *const *views,
                                   const tni_einsum_nest *batch, bool expanded, tn_error *err)
{
    matrices m = {.rank = batch->rank + 2, .dtype = calls->run->out->dtype};
    const tni_einsum_list *const lists[TENSORS][2] = {
        {&g->rows, &g->sum}, {&g->sum, &g->columns}, {&g->rows, &g->columns}};
    const size_t bytes = (size_t)batch->rank * sizeof m.shape[0][0];
    for (int32_t i = 0; i < TENSORS; i++) {
        memcpy(m.shape[i], batch->size, bytes);
        memcpy(m.stride[i], batch->stride[i], bytes);
        put_matrix(calls, views[i], lists[i][0], lists[i][1], m.shape[i] + batch->rank,
                   m.stride[i] + batch->rank);
    }
    if (expanded)
        make_real(&m);
    return call_matmul(calls, &m, views, err);
}

/* Whether a view is a matrix for each batch, and has contiguous columns if that is needed. */
static bool fits(const tni_einsum_calls *calls, const tni_einsum_view *view,
                 const tni_einsum_list *const *lists, bool contiguous)
{
    int64_t size, stride;
    return is_matrix(calls, view, lists[0], lists[1]) &&
           (!contiguous || (merge_list(calls, view, lists[1], &size, &stride) && stride == 1));
}

/* Makes a contiguous view of two lists after the batch, as far as `from` has it: rows and columns that
 * became batches are in one operand only. */
static tn_status make_matrix(tni_einsum_calls *calls, const tni_einsum_groups *g, int64_t times,
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
    return tni_einsum_view_make_times(calls, times, lists, 3, out, err);
}

/* Copies what is not a matrix, and expands b if that is needed; a copy of out is only made. */
static tn_status provide_matrix(tni_einsum_calls *calls, const tni_einsum_groups *g, int32_t index,
                                bool expanded, const tni_einsum_list *const *sides,
                                const tni_einsum_view *from, tni_einsum_view *to, tn_error *err)
{
    const bool doubled = index == 1 && expanded;
    const tn_status status = make_matrix(calls, g, doubled ? 2 : 1, from, sides, to, err);
    if (status || index == 2)
        return status;
    return doubled ? tni_einsum_expand(calls, from, sides[1], to, err)
                   : tni_einsum_copy(calls, from, to, err);
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
    /* A copy of an operand can divide batch dimensions that are one here. */
    if (!few || g->batch.count > BATCH_MOST ||
        (calls->device_type != TN_DLPACK_CPU && batch->rank > 1)) {
        *g = *groups;
        few = make_batch(calls, &g->batch, views, batch);
    }
    if (is_column_major(calls, g, to)) {
        swap_sides(g, views);
        few = make_batch(calls, &g->batch, views, batch);
    }
    const bool expanded = tni_einsum_is_expanded(calls, g);
    const tni_einsum_list *const lists[TENSORS][2] = {
        {&g->rows, &g->sum}, {&g->sum, &g->columns}, {&g->rows, &g->columns}};
    for (int32_t i = 0; i < TENSORS; i++)
        copies[i].block = -1;
    for (int32_t i = 0; i < TENSORS && !status; i++) {
        if (few && !(i == 1 && expanded) && fits(calls, views[i], lists[i], expanded))
            continue;
        status = provide_matrix(calls, g, i, expanded, lists[i], views[i], &copies[i], err);
        views[i] = &copies[i];
    }
    if (!status && !make_batch(calls, &g->batch, views, batch))
        status =
            tn_fail(err, TN_UNSUPPORTED, 0, "tn_einsum",
                    "expected at most %d dimensions of a batch, got %d; make operands contiguous",
                    BATCH_MOST, (int)batch->rank);
    if (!status)
        status = multiply_matrices(calls, g, views, batch, expanded, err);
    if (!status && views[2] != to)
        status = tni_einsum_copy(calls, views[2], to, err);
    for (int32_t i = 0; i < TENSORS; i++)
        tni_einsum_view_free(calls, &copies[i]);
    return status;
}
