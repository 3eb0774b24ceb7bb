/* Matrix products whose rows or columns are not one dimension of an operand or the result: instead of a
 * copy, some of these dimensions become batches. */
#include "einsum_calls.h"

/* Rows or columns, and products of each matrix, that must remain: with fewer, a copy is faster. */
enum { LINES_LEAST = 32, PRODUCTS_LEAST = 1 << 14 };

/* Whether the indices `at` and `at` + 1 of a list are one dimension of a view. */
static bool merge_in(const tni_einsum_calls *calls, const tni_einsum_list *list, int32_t at,
                     const tni_einsum_view *view)
{
    const int32_t index = list->index[at], next = list->index[at + 1];
    return tni_einsum_are_contiguous(tni_einsum_stride(view, index), tni_einsum_stride(view, next),
                                     calls->run->sum->size[next]);
}

static bool are_one(const tni_einsum_calls *calls, const tni_einsum_list *list,
                    const tni_einsum_view *view)
{
    for (int32_t i = 0; i + 1 < list->count; i++) {
        if (!merge_in(calls, list, i, view))
            return false;
    }
    return true;
}

/* Moves indices of a list to the batch, so that those that are left are one dimension of `to` and of
 * `view`, unless that is NULL. `products` are those of the whole matrix product. */
static void split_list(const tni_einsum_calls *calls, const tni_einsum_view *view,
                       const tni_einsum_view *to, double products, tni_einsum_list *list,
                       tni_einsum_list *batch)
{
    const double all = tni_einsum_list_values(calls, list);
    int32_t begin = 0, best_begin = 0, best_end = 0, kept = 0;
    double size = 1, best = 0;
    for (int32_t i = 0; i < list->count; i++) {
        size *= (double)calls->run->sum->size[list->index[i]];
        if (size > best) {
            best = size;
            best_begin = begin;
            best_end = i + 1;
        }
        if (i + 1 < list->count &&
            (!merge_in(calls, list, i, to) || (view && !merge_in(calls, list, i, view)))) {
            begin = i + 1;
            size = 1;
        }
    }
    if (best_end - best_begin == list->count || best < LINES_LEAST ||
        products / all * best < PRODUCTS_LEAST)
        return;
    for (int32_t i = 0; i < list->count; i++) {
        const int32_t index = list->index[i];
        if (i >= best_begin && i < best_end)
            list->index[kept++] = index;
        else
            batch->index[batch->count++] = index;
    }
    list->count = kept;
}

void tni_einsum_split(const tni_einsum_calls *calls, const tni_einsum_view *const *views,
                      tni_einsum_groups *g)
{
    /* What is copied because of the summed indices can have its other ones in any order. */
    const tni_einsum_view *a = are_one(calls, &g->sum, views[0]) ? views[0] : NULL;
    const tni_einsum_view *b = are_one(calls, &g->sum, views[1]) ? views[1] : NULL;
    const double rows = tni_einsum_list_values(calls, &g->rows),
                 columns = tni_einsum_list_values(calls, &g->columns);
    const double products = rows * columns * tni_einsum_list_values(calls, &g->sum);
    split_list(calls, a, views[2], products, &g->rows, &g->batch);
    const double left = products / rows * tni_einsum_list_values(calls, &g->rows);
    split_list(calls, b, views[2], left, &g->columns, &g->batch);
}
