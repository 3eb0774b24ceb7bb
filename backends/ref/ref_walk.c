#include "ref_walk.h"

#include "ref_element.h"
#include "tenon/module/op/elementwise.h"

/* Minimum elements of a task. */
enum { GRAIN = 16384 };

typedef struct share {
    tni_ref_share_fn *task;
    void *user;
    int64_t count;
    int64_t turns; /* iterations of one task */
} share;

static void share_task(void *user, int64_t index)
{
    const share *s = user;
    int64_t first = index * s->turns, left = s->count - first;
    s->task(s->user, first, first + (left < s->turns ? left : s->turns));
}

void tni_ref_share(const tn_run *run, int64_t count, int64_t work, tni_ref_share_fn *task,
                   void *user)
{
    int64_t turns = work >= GRAIN ? 1 : GRAIN / (work > 0 ? work : 1);
    share s = {task, user, count, turns};
    if (run->threads <= 1 || count <= turns)
        task(user, 0, count);
    else
        run->host->parallel_for(run->host->self, (count - 1) / turns + 1, share_task, &s);
}

static int64_t step_of(const tn_op *op, int32_t operand, int32_t dimension)
{
    const tn_layout *layout = &op->operand[operand];
    return layout->dtype ? layout->stride[dimension] * tni_ref_element_of(layout->dtype)->bytes : 0;
}

/* Whether the dimension continues the outermost one so far, for every operand. */
static int continues(const tni_ref_walk *walk, const int64_t *step)
{
    int32_t last = walk->rank - 1;
    for (int32_t o = 0; o < walk->count; o++) {
        if (step[o] != walk->step[o][last] * walk->shape[last])
            return 0;
    }
    return 1;
}

static void add_dimension(const tn_op *op, int32_t dimension, tni_ref_walk *walk)
{
    int64_t size = op->operand[TN_ELEMENTWISE_OUT].shape[dimension], step[TN_OP_OPERANDS_MAX];
    walk->rows *= size;
    if (size == 1)
        return;
    for (int32_t o = 0; o < walk->count; o++)
        step[o] = step_of(op, o, dimension);
    if (walk->rank > 0 && continues(walk, step)) {
        walk->shape[walk->rank - 1] *= size;
        return;
    }
    walk->shape[walk->rank] = size;
    for (int32_t o = 0; o < walk->count; o++)
        walk->step[o][walk->rank] = step[o];
    walk->rank++;
}

/* Makes the innermost dimension the row. */
static void split_off_row(tni_ref_walk *walk)
{
    walk->size = walk->shape[0];
    walk->rows /= walk->size > 0 ? walk->size : 1;
    walk->rank--;
    memmove(walk->shape, walk->shape + 1, (size_t)walk->rank * sizeof walk->shape[0]);
    for (int32_t o = 0; o < walk->count; o++) {
        int64_t *step = walk->step[o];
        walk->along[o] = step[0];
        memmove(step, step + 1, (size_t)walk->rank * sizeof step[0]);
    }
}

void tni_ref_walk_each(const tn_op *op, tni_ref_walk *out)
{
    *out = (tni_ref_walk){.rows = 1, .size = 1, .count = op->count};
    for (int32_t d = op->operand[TN_ELEMENTWISE_OUT].rank - 1; d >= 0; d--)
        add_dimension(op, d, out);
    if (out->rank > 0)
        split_off_row(out);
    out->pieces = (out->size - 1) / TNI_REF_PIECE + 1;
    out->work = out->size < TNI_REF_PIECE ? out->size : TNI_REF_PIECE;
}

void tni_ref_walk_rows(const tn_op *op, int32_t last, int64_t work, tni_ref_walk *out)
{
    int32_t rank = op->operand[TN_ELEMENTWISE_OUT].rank;
    *out = (tni_ref_walk){.rows = 1, .size = 1, .pieces = 1, .work = work, .count = op->count};
    for (int32_t d = rank - last - 1; d >= 0; d--)
        add_dimension(op, d, out);
    for (int32_t o = 0; o < out->count && last > 0; o++)
        out->along[o] = step_of(op, o, rank - 1);
}

/* The position of a walk. */
typedef struct cursor {
    int64_t piece;
    int64_t at[TN_OP_RANK_MAX];
    int64_t offset[TN_OP_OPERANDS_MAX];
} cursor;

static void seek_cursor(const tni_ref_walk *walk, int64_t turn, cursor *out)
{
    int64_t row = turn / walk->pieces;
    *out = (cursor){.piece = turn % walk->pieces};
    for (int32_t d = 0; d < walk->rank; d++) {
        out->at[d] = row % walk->shape[d];
        row /= walk->shape[d];
        for (int32_t o = 0; o < walk->count; o++)
            out->offset[o] += out->at[d] * walk->step[o][d];
    }
}

static void advance_cursor(const tni_ref_walk *walk, cursor *at)
{
    if (++at->piece < walk->pieces)
        return;
    at->piece = 0;
    for (int32_t d = 0; d < walk->rank; d++) {
        int64_t back = ++at->at[d] < walk->shape[d] ? 0 : walk->shape[d];
        for (int32_t o = 0; o < walk->count; o++)
            at->offset[o] += walk->step[o][d] * (1 - back);
        if (back == 0)
            return;
        at->at[d] = 0;
    }
}

typedef struct walking {
    const tni_ref_walk *walk;
    char *data[TN_OP_OPERANDS_MAX];
    tni_ref_piece_fn *piece;
    void *job;
} walking;

static void walk_turns(void *user, int64_t first, int64_t end)
{
    const walking *w = user;
    const tni_ref_walk *walk = w->walk;
    cursor at;
    seek_cursor(walk, first, &at);
    for (int64_t turn = first; turn < end; turn++, advance_cursor(walk, &at)) {
        char *data[TN_OP_OPERANDS_MAX];
        int64_t begin = at.piece * TNI_REF_PIECE, left = walk->size - begin;
        for (int32_t o = 0; o < walk->count; o++)
            data[o] = w->data[o] ? w->data[o] + at.offset[o] + begin * walk->along[o] : NULL;
        w->piece(w->job, data, left < TNI_REF_PIECE ? left : TNI_REF_PIECE);
    }
}

void tni_ref_walk_run(const tni_ref_walk *walk, const tn_run *run, tni_ref_piece_fn *piece,
                      void *job)
{
    walking w = {.walk = walk, .piece = piece, .job = job};
    for (int32_t o = 0; o < walk->count; o++)
        w.data[o] = tn_operand(run, o);
    tni_ref_share(run, walk->rows * walk->pieces, walk->work, walk_turns, &w);
}

void tni_ref_walk_in_order(const tni_ref_walk *walk, char *const *data, tni_ref_piece_fn *piece,
                           void *job)
{
    walking w = {.walk = walk, .piece = piece, .job = job};
    memcpy(w.data, data, (size_t)walk->count * sizeof w.data[0]);
    if (walk->rows * walk->size > 0)
        walk_turns(&w, 0, walk->rows * walk->pieces);
}
