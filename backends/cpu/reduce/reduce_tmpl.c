/* Reductions. The input of one element of out is split into parts of fixed sizes, which are summed
 * in lanes and combined in f64 in a fixed order: the same bits for any number of threads. If
 * elements of out are adjacent in in, whole blocks of them are reduced at once. */
#include "../shared/loop.h"

#include "tenon/module/op/reduce.h"

enum { PARTS_MAX = 1024, FLUSH = 64 }; /* FLUSH: rows summed in lanes, for columns */

/* The inner loop over the input of one element, below the loop over out. */
typedef struct below {
    loop parts;
    int64_t count; /* of parts */
    int32_t kind;
    bool at_once; /* parts may run on several threads */
} below;

static double identity(int32_t kind)
{
    return kind == TN_REDUCE_MAX ? -INFINITY : kind == TN_REDUCE_MIN ? INFINITY : 0;
}

static double join(int32_t kind, double a, double b)
{
    switch (kind) {
    case TN_REDUCE_MAX: return a != a || a > b ? a : b;
    case TN_REDUCE_MIN: return a != a || a < b ? a : b;
    default: return a + b;
    }
}

struct below;
static double finished(const struct below *all, double value);

#include "../shared/family_f32_inc.h"

#include "reduce_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "reduce_inc.h"

#include "../shared/family_end_inc.h"

/* One element's reduction; `results` has one number for each part. */
typedef struct part {
    const below *all;
    char *in;
    double *results;
} part;

static void part_task(void *user, int64_t index)
{
    const part *it = user;
    const loop *parts = &it->all->parts;
    const tn_layout *in = &parts->op->operand[TN_ELEMENTWISE_IN];
    int64_t piece = index * parts->group, end = piece + parts->group;
    double value = identity(it->all->kind);
    tn_step step;
    end = end < parts->pieces ? end : parts->pieces;
    tn_walk_seek(&parts->walk, piece / parts->across, &step);
    for (int64_t chunk = piece % parts->across; piece < end; piece++) {
        int64_t at = chunk * parts->piece, left = parts->walk.size - at;
        int64_t offset = step.offset[0] + at * parts->walk.stride[0];
        strand x = strand_of(in, it->in + offset * parts->size[0], parts->walk.stride[0]);
        int64_t n = left < parts->piece ? left : parts->piece;
        double more = in->dtype == TN_F64 ? reduce_row_f64(&x, n, it->all->kind)
                                          : reduce_row_f32(&x, n, it->all->kind);
        value = join(it->all->kind, value, more);
        if (++chunk == parts->across) {
            chunk = 0;
            tn_walk_next(&parts->walk, &step);
        }
    }
    it->results[index] = value;
}

static double reduce_one(const below *all, char *in)
{
    double results[PARTS_MAX], value = identity(all->kind);
    part it = {all, in, results};
    const tn_host *host = all->parts.run->host;
    if (all->at_once)
        host->parallel_for(host->self, all->count, part_task, &it);
    for (int64_t i = 0; i < all->count; i++) {
        if (!all->at_once)
            part_task(&it, i);
        value = join(all->kind, value, results[i]);
    }
    return value;
}

/* The mean of nothing is 0 / 0. */
static double finished(const below *all, double value)
{
    const tn_elementwise_op *op = TN_PARAMS(all->parts.op, elementwise);
    return op->kind == TN_REDUCE_MEAN ? value / (double)op->size : value;
}

static void rows_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    const below *all = it->more;
    const tn_layout *out = &it->op->operand[TN_ELEMENTWISE_OUT];
    (void)first;
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = i * it->walk.stride[1] * it->size[1];
        char *in = data[1] ? data[1] + offset : NULL; /* an empty input may have no memory */
        strand y = strand_of(out, data[0] + i * it->walk.stride[0] * it->size[0], 1);
        double value = finished(all, reduce_one(all, in));
        _Alignas(64) float narrow[LANES] = {(float)value};
        if (out->dtype == TN_F64)
            write_block_f64(&y, 0, 1, &value);
        else
            write_block_f32(&y, 0, 1, narrow);
    }
}

static void columns_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    const below *all = it->more;
    (void)first;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        char *out = data[0] + at * it->walk.stride[0] * it->size[0];
        char *in = data[1] + at * it->size[1];
        if (it->op->operand[TN_ELEMENTWISE_IN].dtype == TN_F64)
            reduce_columns_f64(it, all, in, out, m);
        else
            reduce_columns_f32(it, all, in, out, m);
    }
}

/* Prepares the loop over the reduced dimensions. */
static void prepare_below(below *all, const tn_run *run)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_IN};
    const tn_layout *in = &run->op->operand[TN_ELEMENTWISE_IN];
    const tn_elementwise_op *op = TN_PARAMS(run->op, elementwise);
    loop *parts = &all->parts;
    *all = (below){.kind = op->kind, .parts = {.run = run, .op = run->op}};
    tn_walk_over(&parts->walk, run->op, operands, 1, in->rank - op->axes, in->rank);
    parts->size[0] = (int32_t)(in->dtype >> 8 & 255) / 8;
    loop_cut(parts, 1, 1);
    if (parts->pieces > PARTS_MAX * parts->group)
        parts->group = (parts->pieces + PARTS_MAX - 1) / PARTS_MAX;
    all->count = (parts->pieces + parts->group - 1) / parts->group;
}

ISA_KERNEL(reduce)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    const tn_elementwise_op *op = TN_PARAMS(run->op, elementwise);
    below all;
    loop it = {.body = rows_body, .more = &all};
    (void)err;
    prepare_below(&all, run);
    loop_prepare(&it, run, operands, 2, op->axes, op->size);
    if (it.walk.stride[1] == 1 && all.parts.walk.stride[0] != 1 && op->size > 0) {
        it.body = columns_body;
        loop_cut(&it, op->size, BLOCK);
    } else if (op->elements < 16 && run->threads > 1 && all.count > 1) {
        all.at_once = true;
        it.group = it.pieces;
    }
    loop_run(&it);
    return TN_OK;
}
