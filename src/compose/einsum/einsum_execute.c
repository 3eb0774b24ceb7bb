/* Executes an order of contraction by calls of operators. */
#include "einsum_calls.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "device/tensor/tensor.h"
#include "tenon/dlpack.h"

#include <string.h>

/* The most bytes of a product that is summed afterwards, unless a single sum needs more. On CPUs, smaller ones
 * remain in the caches, as long as each call has enough elements. */
enum { PRODUCT_MOST = 32 << 20, PRODUCT_CACHED = 1 << 20, PRODUCT_LEAST = 64 << 10 };

/* A product that is summed afterwards, one part of `to` at a time. */
typedef struct parts {
    tni_einsum_view a, b, to;
    tni_einsum_list looped; /* the dimensions that are looped over */
    int64_t at[TNI_EINSUM_DIMS];
    int64_t step[3][TNI_EINSUM_DIMS]; /* of a, b and to along them, in bytes */
} parts;

/* On the heap, because programs call from small stacks. */
typedef struct executor {
    tni_einsum_calls calls;
    const tni_einsum *sum;
    tni_einsum_left left;
    tni_einsum_view *views; /* [2 * terms]: of the operands and the results */
    tni_einsum_view out;
    tni_einsum_view x, y, product; /* of a step: operands without private indices */
    tni_einsum_groups groups;
    tni_einsum_list kept;
    parts parts;
} executor;

static bool has(const uint64_t *set, int32_t index)
{
    return set[index / 64] >> index % 64 & 1;
}

static void append(tni_einsum_list *list, int32_t index)
{
    list->index[list->count++] = index;
}

/* The view of a tensor: repeated indices become one dimension along their diagonal, and dimensions of
 * one element none. */
static void view_tensor(const tni_einsum *sum, int32_t term, const tn_tensor *tensor,
                        tni_einsum_view *out)
{
    int64_t dense[TN_TENSOR_NDIM_MAX];
    const int64_t *strides = tensor->strides;
    if (!strides) {
        tni_strides_dense(tensor->shape, tensor->ndim, dense);
        strides = dense;
    }
    out->at = (uintptr_t)tni_tensor_first(tensor);
    out->block = -1;
    out->dims.count = 0;
    for (int32_t dim = 0; dim < tensor->ndim; dim++) {
        const int32_t index = sum->axes[term][dim];
        if (tensor->shape[dim] == 1)
            continue;
        int32_t at = tni_einsum_find(out, index);
        if (at < 0) {
            at = out->dims.count;
            append(&out->dims, index);
            out->stride[at] = 0;
        }
        out->stride[at] += strides[dim];
    }
}

/* Sums the indices of a view that `keep` does not have. *out is the view itself, or a new one. */
static tn_status sum_private(executor *e, const tni_einsum_view *from, const uint64_t *keep,
                             tni_einsum_view *out, tn_error *err)
{
    tni_einsum_list *kept = &e->kept;
    const tni_einsum_list *const lists[] = {kept};
    kept->count = 0;
    for (int32_t dim = 0; dim < from->dims.count; dim++) {
        if (has(keep, from->dims.index[dim]))
            append(kept, from->dims.index[dim]);
    }
    if (kept->count == from->dims.count) {
        *out = *from;
        return TN_OK;
    }
    const tn_status status = tni_einsum_view_make(&e->calls, lists, 1, out, err);
    return status ? status : tni_einsum_reduce(&e->calls, from, out, err);
}

static uint64_t magnitude_in(const tni_einsum_view *view, int32_t index)
{
    return tni_einsum_magnitude(tni_einsum_stride(view, index));
}

/* Sorts a list by descending magnitudes of its strides in a view, so that its dimensions merge if they can. */
static void sort_list(tni_einsum_list *list, const tni_einsum_view *by)
{
    for (int32_t i = 1; i < list->count; i++) {
        for (int32_t k = i;
             k > 0 && magnitude_in(by, list->index[k - 1]) < magnitude_in(by, list->index[k]);
             k--) {
            const int32_t index = list->index[k];
            list->index[k] = list->index[k - 1];
            list->index[k - 1] = index;
        }
    }
}

static void group_indices(const tni_einsum_view *a, const tni_einsum_view *b,
                          const uint64_t *result, tni_einsum_groups *out)
{
    *out = (tni_einsum_groups){0};
    for (int32_t dim = 0; dim < a->dims.count; dim++) {
        const int32_t index = a->dims.index[dim];
        const bool both = tni_einsum_find(b, index) >= 0;
        append(!both ? &out->rows : has(result, index) ? &out->batch : &out->sum, index);
    }
    for (int32_t dim = 0; dim < b->dims.count; dim++) {
        if (tni_einsum_find(a, b->dims.index[dim]) < 0)
            append(&out->columns, b->dims.index[dim]);
    }
    sort_list(&out->batch, a);
    sort_list(&out->rows, a);
    sort_list(&out->columns, b);
    sort_list(&out->sum, a);
}

static bool is_float(tn_dtype dtype)
{
    return dtype == TN_F64 || dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

static bool has_matmul(tn_dtype dtype)
{
    return is_float(dtype) || dtype == TN_C64 || dtype == TN_C128;
}

static void remove_index(tni_einsum_view *view, int32_t index)
{
    const int32_t dim = tni_einsum_find(view, index);
    if (dim < 0)
        return;
    const size_t after = (size_t)(view->dims.count - dim - 1);
    memmove(view->dims.index + dim, view->dims.index + dim + 1, after * sizeof view->dims.index[0]);
    memmove(view->stride + dim, view->stride + dim + 1, after * sizeof view->stride[0]);
    view->dims.count--;
}

/* The largest dimension of a view; -1 if it has none. */
static int32_t largest_index(const executor *e, const tni_einsum_view *view)
{
    int32_t found = -1;
    for (int32_t dim = 0; dim < view->dims.count; dim++) {
        const int32_t index = view->dims.index[dim];
        if (found < 0 || e->sum->size[index] > e->sum->size[found])
            found = index;
    }
    return found;
}

/* Removes the largest dimensions of `to` from the views until the product is small enough. */
static void divide(const executor *e, const tni_einsum_list *sum, parts *p)
{
    double bytes = (double)e->calls.bytes;
    for (int32_t i = 0; i < sum->count; i++)
        bytes *= (double)e->sum->size[sum->index[i]];
    for (int32_t i = 0; i < p->to.dims.count; i++)
        bytes *= (double)e->sum->size[p->to.dims.index[i]];
    while (bytes > PRODUCT_CACHED && p->to.dims.count > 0) {
        const int32_t index = largest_index(e, &p->to), at = p->looped.count;
        const bool small = bytes < PRODUCT_LEAST * (double)e->sum->size[index];
        if (bytes <= PRODUCT_MOST && (small || e->calls.device_type != TN_DLPACK_CPU))
            break;
        tni_einsum_view *const views[] = {&p->a, &p->b, &p->to};
        for (int32_t i = 0; i < 3; i++) {
            p->step[i][at] = tni_einsum_stride(views[i], index) * e->calls.bytes;
            remove_index(views[i], index);
        }
        append(&p->looped, index);
        bytes /= (double)e->sum->size[index];
    }
}

/* Moves the views to the next part; returns whether there is one. */
static bool next_part(const executor *e, parts *p)
{
    tni_einsum_view *const views[] = {&p->a, &p->b, &p->to};
    for (int32_t dim = p->looped.count; dim-- > 0;) {
        const int64_t size = e->sum->size[p->looped.index[dim]];
        const bool wraps = ++p->at[dim] == size;
        for (int32_t i = 0; i < 3; i++)
            views[i]->at += (uintptr_t)((wraps ? 1 - size : 1) * p->step[i][dim]);
        if (!wraps)
            return true;
        p->at[dim] = 0;
    }
    return false;
}

/* Multiplies elements, then sums: for dtypes that have no matrix product. */
static tn_status multiply_and_sum(executor *e, const tni_einsum_list *sum, const tni_einsum_view *a,
                                  const tni_einsum_view *b, const tni_einsum_view *to,
                                  tn_error *err)
{
    parts *p = &e->parts;
    tni_einsum_view *product = &e->product;
    p->a = *a;
    p->b = *b;
    p->to = *to;
    p->looped.count = 0;
    memset(p->at, 0, sizeof p->at);
    divide(e, sum, p);
    const tni_einsum_list *const lists[] = {&p->to.dims, sum};
    tn_status status = tni_einsum_view_make(&e->calls, lists, 2, product, err);
    if (status)
        return status;
    do {
        status = tni_einsum_multiply(&e->calls, &p->a, &p->b, product, err);
        if (!status)
            status = tni_einsum_reduce(&e->calls, product, &p->to, err);
    } while (!status && e->calls.run->mode == TNI_EINSUM_RUN && next_part(e, p));
    tni_einsum_view_free(&e->calls, product);
    return status;
}

/* Whether a product of elements is a matrix product with an inner dimension of 1 that is large enough for one:
 * on CPUs, that writes its result faster. It copies nothing, so the memory that is needed does not depend on the
 * setting, and it rounds as a product of elements does. */
static bool is_large_outer(executor *e, const tni_einsum_groups *groups, const tni_einsum_view *a,
                           const tni_einsum_view *b, const tni_einsum_view *to)
{
    const double rows = tni_einsum_list_values(&e->calls, &groups->rows),
                 columns = tni_einsum_list_values(&e->calls, &groups->columns);
    return e->calls.device_type == TN_DLPACK_CPU && is_float(e->calls.run->out->dtype) &&
           rows >= 16 && columns >= 16 && rows * columns >= 4096 &&
           tn_setting_resolved(e->calls.run->context, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION) ==
               TN_FP32_IEEE &&
           tni_einsum_are_matrices(&e->calls, groups, a, b, to);
}

static tn_status contract_views(executor *e, const tni_einsum_groups *groups,
                                const tni_einsum_view *a, const tni_einsum_view *b,
                                const tni_einsum_view *to, tn_error *err)
{
    if (groups->sum.count == 0 && !is_large_outer(e, groups, a, b, to))
        return tni_einsum_multiply(&e->calls, a, b, to, err);
    if (!has_matmul(e->calls.run->out->dtype))
        return multiply_and_sum(e, &groups->sum, a, b, to, err);
    return tni_einsum_matmul(&e->calls, groups, a, b, to, err);
}

/* The indices that the result of a pair has, or that both operands have. */
static void find_kept(const executor *e, int32_t a, int32_t b, int32_t made, uint64_t *out)
{
    const size_t words = (size_t)e->sum->words;
    for (size_t i = 0; i < words; i++)
        out[i] = e->left.sets[(size_t)made * words + i] |
                 (e->left.sets[(size_t)a * words + i] & e->left.sets[(size_t)b * words + i]);
}

/* Contracts a pair into the next term, which is out for the last pair. */
static tn_status run_pair(executor *e, int32_t pair, uint64_t *keep, tn_error *err)
{
    const int32_t a = e->calls.run->order->pairs[pair][0], b = e->calls.run->order->pairs[pair][1];
    const int32_t made = e->left.next;
    const bool last = pair == e->calls.run->order->count - 1;
    tni_einsum_view *x = &e->x, *y = &e->y, *to = &e->views[made];
    x->block = y->block = -1;
    const tni_einsum_pair_cost cost = tni_einsum_left_pair(&e->left, a, b);
    find_kept(e, a, b, made, keep);
    const int32_t first = e->calls.step, second = first + (cost.before[0] > 0);
    const int32_t last_step = second + (cost.before[1] > 0);
    e->calls.step = cost.before[0] > 0 ? first : last_step;
    tn_status status = sum_private(e, &e->views[a], keep, x, err);
    e->calls.step = cost.before[1] > 0 ? second : last_step;
    if (!status)
        status = sum_private(e, &e->views[b], keep, y, err);
    e->calls.step = last_step;
    if (!status) {
        group_indices(x, y, e->left.sets + (size_t)made * (size_t)e->sum->words, &e->groups);
        const tni_einsum_list *const lists[] = {&e->groups.batch, &e->groups.rows,
                                                &e->groups.columns};
        if (last)
            *to = e->out;
        else
            status = tni_einsum_view_make(&e->calls, lists, 3, to, err);
    }
    if (!status)
        status = contract_views(e, &e->groups, x, y, to, err);
    tni_einsum_view_free(&e->calls, x);
    tni_einsum_view_free(&e->calls, y);
    tni_einsum_view_free(&e->calls, &e->views[a]);
    tni_einsum_view_free(&e->calls, &e->views[b]);
    return status;
}

static tn_status run_all(executor *e, tn_error *err)
{
    tn_status status = tni_einsum_left_init(e->sum, &e->left, err);
    uint64_t *keep = NULL;
    if (e->sum->empty) /* a sum of nothing; an out without elements is not changed by it */
        return status ? status : tni_einsum_clear(&e->calls, &e->out, err);
    if (!status && !(keep = tni_alloc_zeroed((size_t)e->sum->words, sizeof *keep)))
        status = tni_einsum_no_memory(err, "a step");
    if (!status && e->sum->terms == 1)
        status = tni_einsum_reduce(&e->calls, &e->views[0], &e->out, err);
    for (int32_t i = 0; i < e->calls.run->order->count && !status; i++) {
        status = run_pair(e, i, keep, err);
        e->calls.step++;
    }
    tni_release(keep);
    return status;
}

static tn_status create_executor(const tni_einsum_run *run, executor **out, tn_error *err)
{
    executor *e =
        tni_alloc(sizeof *e); /* not zeroed: it is large, and each step sets what it uses */
    if (!e)
        return tni_einsum_no_memory(err, "a contraction");
    e->sum = run->sum;
    e->calls = (tni_einsum_calls){.run = run,
                                  .bytes = tni_dtype_bytes(run->out->dtype),
                                  .device_type = run->out->device_type,
                                  .device_id = run->out->device_id,
                                  .room = tni_einsum_room_create()};
    e->left = (tni_einsum_left){0};
    e->views = tni_alloc(2 * (size_t)run->sum->terms * sizeof *e->views);
    view_tensor(run->sum, run->sum->terms, run->out, &e->out);
    *out = e;
    return e->views && e->calls.room ? TN_OK : tni_einsum_no_memory(err, "views of the operands");
}

static void release_executor(executor *e)
{
    if (!e)
        return;
    tni_einsum_left_release(&e->left);
    tni_release(e->views);
    tni_release(e->calls.room);
    tni_release(e->calls.blocks);
    tni_release(e);
}

tn_status tni_einsum_execute(const tni_einsum_run *run, uint64_t *out_bytes, tn_error *err)
{
    executor *e = NULL;
    tn_status status = create_executor(run, &e, err);
    if (!status) {
        for (int32_t term = 0; term < run->sum->terms; term++)
            view_tensor(run->sum, term, &run->operands[term], &e->views[term]);
        status = run_all(e, err);
        *out_bytes = e->calls.peak;
    }
    release_executor(e);
    return status;
}

tn_status tni_einsum_add(const tni_einsum_run *run, int32_t step, const tn_tensor *to,
                         tn_error *err)
{
    executor *e = NULL;
    tn_status status = create_executor(run, &e, err);
    if (!status) {
        e->calls.step = step;
        view_tensor(run->sum, run->sum->terms, to, &e->x);
        status = tni_einsum_add_to(&e->calls, &e->out, &e->x, err);
    }
    release_executor(e);
    return status;
}
