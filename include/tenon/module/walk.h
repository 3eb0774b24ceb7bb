/* A walk over operands, for authors of kernels: reduces operands of any rank and strides to one
 * inner dimension, with a stride for each operand, and a number of outer steps.
 *
 *     tn_walk walk;
 *     tn_step step;
 *     tn_walk_over(&walk, op, operands, 2, 0, op->operand[0].rank);
 *     tn_walk_seek(&walk, 0, &step);
 *     for (int64_t i = 0; i < walk.steps; i++, tn_walk_next(&walk, &step))
 *         inner_loop(in + step.offset[0], walk.stride[0], out + step.offset[1], walk.stride[1], walk.size);
 *
 * Dimensions of 1 are dropped, the others are sorted by the strides of the first operand, and
 * adjacent dimensions that are contiguous for every operand are merged. Elements are not visited in
 * the order of the shape, so use it only where the order does not matter.
 *
 * Thread-safety: types without state; several threads may read a walk, each with its own steps. */
#ifndef TENON_MODULE_WALK_H
#define TENON_MODULE_WALK_H

#include "op.h"

TN_BEGIN_DECLS

typedef struct tn_walk {
    int32_t count;                      /* number of operands                                */
    int32_t rank;                       /* number of outer dimensions, the slowest first     */
    int64_t steps;                      /* product of the outer dimensions; 0 if no elements */
    int64_t size;                       /* of the inner dimension; 1 if none exists        */
    int64_t stride[TN_OP_OPERANDS_MAX]; /* of the inner dimension, in elements               */
    int64_t outer[TN_OP_RANK_MAX];
    int64_t outer_stride[TN_OP_RANK_MAX][TN_OP_OPERANDS_MAX];
} tn_walk;

/* The current position of a walk. */
typedef struct tn_step {
    int64_t offset[TN_OP_OPERANDS_MAX]; /* of the inner dimension's first element, in elements */
    int64_t at[TN_OP_RANK_MAX];
} tn_step;

static inline int64_t tn_walk_reach_(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* True if `slow` has the larger strides: compares the first operand, then the next one if those are
 * equal. */
static inline int tn_walk_is_slower_(const tn_walk *walk, const int64_t *slow, const int64_t *fast)
{
    for (int32_t i = 0; i < walk->count; i++) {
        int64_t a = tn_walk_reach_(slow[i]), b = tn_walk_reach_(fast[i]);
        if (a != b)
            return a > b;
    }
    return 0;
}

/* Inserts a dimension in sorted order, after those with equal strides. */
static inline void tn_walk_insert_(tn_walk *walk, int64_t size, const int64_t *strides)
{
    int32_t at = walk->rank++;
    for (; at > 0 && tn_walk_is_slower_(walk, strides, walk->outer_stride[at - 1]); at--) {
        walk->outer[at] = walk->outer[at - 1];
        memcpy(walk->outer_stride[at], walk->outer_stride[at - 1], sizeof walk->outer_stride[at]);
    }
    walk->outer[at] = size;
    memcpy(walk->outer_stride[at], strides, sizeof walk->outer_stride[at]);
}

/* Merges adjacent dimensions where the strides of every operand allow it. */
static inline void tn_walk_merge_(tn_walk *walk)
{
    int32_t kept = 0;
    for (int32_t d = 1; d < walk->rank; d++) {
        int one = 1;
        for (int32_t i = 0; i < walk->count; i++)
            one = one && walk->outer_stride[kept][i] == walk->outer_stride[d][i] * walk->outer[d];
        int64_t size = one ? walk->outer[kept] * walk->outer[d] : walk->outer[d];
        kept += !one;
        walk->outer[kept] = size;
        memmove(walk->outer_stride[kept], walk->outer_stride[d], sizeof walk->outer_stride[d]);
    }
    walk->rank = walk->rank > 0 ? kept + 1 : 0;
}

/* Starts a walk over dimensions first..end-1 of the `count` operands given. They must have the same
 * shape there; that of the first is read. */
static inline void tn_walk_over(tn_walk *walk, const tn_op *op, const int32_t *operands,
                                int32_t count, int32_t first, int32_t end)
{
    const int64_t *shape = op->operand[operands[0]].shape;
    memset(walk, 0, sizeof *walk);
    walk->count = count;
    walk->steps = 1;
    walk->size = 1;
    for (int32_t d = first; d < end; d++) {
        int64_t strides[TN_OP_OPERANDS_MAX] = {0};
        for (int32_t i = 0; i < count; i++)
            strides[i] = op->operand[operands[i]].stride[d];
        if (shape[d] != 1)
            tn_walk_insert_(walk, shape[d], strides);
    }
    tn_walk_merge_(walk);
    if (walk->rank > 0) {
        int32_t inner = --walk->rank;
        walk->size = walk->outer[inner];
        memcpy(walk->stride, walk->outer_stride[inner], sizeof walk->stride);
    }
    for (int32_t d = 0; d < walk->rank; d++)
        walk->steps *= walk->outer[d];
    if (walk->size == 0)
        walk->steps = 0;
}

/* Moves to step `number`, 0..steps-1. */
static inline void tn_walk_seek(const tn_walk *walk, int64_t number, tn_step *out)
{
    memset(out, 0, sizeof *out);
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        out->at[d] = number % walk->outer[d];
        number /= walk->outer[d];
        for (int32_t i = 0; i < walk->count; i++)
            out->offset[i] += out->at[d] * walk->outer_stride[d][i];
    }
}

/* Moves to the next step; from the last one back to the first. */
static inline void tn_walk_next(const tn_walk *walk, tn_step *step)
{
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        int last = ++step->at[d] == walk->outer[d];
        int64_t by = last ? 1 - walk->outer[d] : 1;
        for (int32_t i = 0; i < walk->count; i++)
            step->offset[i] += by * walk->outer_stride[d][i];
        if (!last)
            return;
        step->at[d] = 0;
    }
}

TN_END_DECLS

#endif
