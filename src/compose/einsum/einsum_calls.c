#include "einsum_nest.h"

#include "base/alloc.h"

#include <string.h>

static const char where[] = "tn_einsum";

enum { ALIGNMENT = 64 };

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

tn_status tni_einsum_view_make_times(tni_einsum_calls *calls, int64_t times,
                                     const tni_einsum_list *const *lists, size_t count,
                                     tni_einsum_view *out, tn_error *err)
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
    if (!fits || step > (INT64_MAX >> 2) / calls->bytes / times)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where,
                       "an intermediate result of %d dimensions has more bytes than 2^61; "
                       "contract in another order",
                       (int)out->dims.count);
    const uint64_t bytes =
        ((uint64_t)(step * times * calls->bytes) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const tn_status status = take_block(calls, bytes, &out->block, err);
    if (!status)
        out->at = (uintptr_t)calls->run->memory + (uintptr_t)calls->blocks[out->block].begin;
    return status;
}

tn_status tni_einsum_view_make(tni_einsum_calls *calls, const tni_einsum_list *const *lists,
                               size_t count, tni_einsum_view *out, tn_error *err)
{
    return tni_einsum_view_make_times(calls, 1, lists, count, out, err);
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
