/* Calls of operators on views: tensors of more dimensions than an operator accepts, whose dimensions
 * are known by their indices. */
#ifndef TNI_COMPOSE_EINSUM_CALLS_H
#define TNI_COMPOSE_EINSUM_CALLS_H

#include "einsum.h"

#include "base/checked.h"

/* Results have no dimensions of size 1, so more than 62 dimensions are more elements than an
 * address. */
enum { TNI_EINSUM_DIMS = 64 };

/* A list of indices. */
typedef struct tni_einsum_list {
    int32_t count;
    int32_t index[TNI_EINSUM_DIMS];
} tni_einsum_list;

typedef struct tni_einsum_view {
    uintptr_t at;  /* address of the first element; an offset in MEASURE */
    int32_t block; /* of the memory of intermediate results; -1 for operands and out */
    tni_einsum_list dims;
    int64_t stride[TNI_EINSUM_DIMS]; /* of each dimension, in elements */
} tni_einsum_view;

/* A part of the memory of intermediate results. */
typedef struct tni_einsum_block {
    uint64_t begin, end;
    bool used;
} tni_einsum_block;

/* Indices of a pair: in a, b and to; in a and to; in b and to; in a and b. */
typedef struct tni_einsum_groups {
    tni_einsum_list batch, rows, columns, sum;
} tni_einsum_groups;

/* What a call of an operator needs while it runs: on the heap, because programs call from small
 * stacks. Nothing in it is kept from one function of this header to the next. */
typedef struct tni_einsum_room tni_einsum_room;

typedef struct tni_einsum_calls {
    const tni_einsum_run *run;
    int32_t step;
    int64_t bytes; /* of an element */
    int32_t device_type, device_id;
    tni_einsum_block *blocks;
    size_t block_count, block_room;
    uint64_t peak;
    tni_einsum_room *room;
} tni_einsum_calls;

/* NULL if out of memory; released by tni_release. */
tni_einsum_room *tni_einsum_room_create(void);

/* Position of an index among the dimensions of a view; -1 if it has none. */
static inline int32_t tni_einsum_find(const tni_einsum_view *view, int32_t index)
{
    for (int32_t i = 0; i < view->dims.count; i++) {
        if (view->dims.index[i] == index)
            return i;
    }
    return -1;
}

/* Stride of an index; 0 if the view does not have it. */
static inline int64_t tni_einsum_stride(const tni_einsum_view *view, int32_t index)
{
    const int32_t dim = tni_einsum_find(view, index);
    return dim < 0 ? 0 : view->stride[dim];
}

/* Number of combinations of the values of a list's indices. */
static inline double tni_einsum_list_values(const tni_einsum_calls *calls,
                                            const tni_einsum_list *list)
{
    double values = 1;
    for (int32_t i = 0; i < list->count; i++)
        values *= (double)calls->run->sum->size[list->index[i]];
    return values;
}

static inline uint64_t tni_einsum_magnitude(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Whether a dimension of stride `outer` and one of `size` elements that are `inner` apart are one. */
static inline bool tni_einsum_are_contiguous(int64_t outer, int64_t inner, int64_t size)
{
    int64_t whole;
    return tni_mul_i64(inner, size, &whole) && outer == whole;
}

/* Makes a contiguous view, in the memory of intermediate results, of the indices of the lists in
 * their order. Fails with TN_OUT_OF_MEMORY if its size has no number. */
tn_status tni_einsum_view_make(tni_einsum_calls *calls, const tni_einsum_list *const *lists,
                               size_t count, tni_einsum_view *out, tn_error *err);
/* The same with memory for `times` as many elements. */
tn_status tni_einsum_view_make_times(tni_einsum_calls *calls, int64_t times,
                                     const tni_einsum_list *const *lists, size_t count,
                                     tni_einsum_view *out, tn_error *err);
/* Frees the memory of a view, if it is of intermediate results. */
void tni_einsum_view_free(tni_einsum_calls *calls, const tni_einsum_view *view);

/* to += from, which has the same indices. */
tn_status tni_einsum_add_to(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_view *to, tn_error *err);

/* to = from, which may lack indices of `to`. */
tn_status tni_einsum_copy(tni_einsum_calls *calls, const tni_einsum_view *from,
                          const tni_einsum_view *to, tn_error *err);
/* to = a * b; a and b may lack indices of `to`. */
tn_status tni_einsum_multiply(tni_einsum_calls *calls, const tni_einsum_view *a,
                              const tni_einsum_view *b, const tni_einsum_view *to, tn_error *err);
/* to = from, summed over the indices that `to` lacks. */
tn_status tni_einsum_reduce(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_view *to, tn_error *err);
/* to = 0. */
tn_status tni_einsum_clear(tni_einsum_calls *calls, const tni_einsum_view *to, tn_error *err);

/* Whether a product of complex matrices is large enough to be computed as a real one: rows of pairs (re, im) of a times an expanded b,
 * whose each number is the matrix (re, im; -im, re), are rows of pairs of the result. On CPUs, the kernels
 * for real numbers are faster. */
bool tni_einsum_is_expanded(const tni_einsum_calls *calls, const tni_einsum_groups *groups);
/* Writes an expanded matrix to `to`, which has memory for twice its elements and becomes a view of the upper rows
 * of those matrices. `columns` are its last dimensions. */
tn_status tni_einsum_expand(tni_einsum_calls *calls, const tni_einsum_view *from,
                            const tni_einsum_list *columns, tni_einsum_view *to, tn_error *err);

/* Moves rows and columns to the batch if the views of a, b and to are then matrices without copies, and these
 * are large enough. */
void tni_einsum_split(const tni_einsum_calls *calls, const tni_einsum_view *const *views,
                      tni_einsum_groups *groups);

/* Whether tni_einsum_matmul needs no copies. */
bool tni_einsum_are_matrices(tni_einsum_calls *calls, const tni_einsum_groups *groups,
                             const tni_einsum_view *a, const tni_einsum_view *b,
                             const tni_einsum_view *to);
/* to = the matrix products of a and b. */
tn_status tni_einsum_matmul(tni_einsum_calls *calls, const tni_einsum_groups *groups,
                            const tni_einsum_view *a, const tni_einsum_view *b,
                            const tni_einsum_view *to, tn_error *err);

#endif
