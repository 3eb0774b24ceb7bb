/* Reductions. The input of one element of out is split into parts of fixed sizes, which are summed
 * in lanes and combined in f64 in a fixed order: the same bits for any number of threads. If
 * elements of out are adjacent in in, whole blocks of them are reduced at once. */
#include "../shared/loop.h"
#include "../shared/row_kernels.h"
#include "reduce_whole.h"

#include "tenon/module/op/reduce.h"

enum { PARTS_MAX = 1024, FLUSH = 64 }; /* FLUSH: rows summed in lanes, for columns */

/* The inner loop over the input of one element, below the loop over out. */
typedef struct below {
    loop parts;
    int64_t count; /* of parts */
    int32_t kind;
    bool is_whole; /* sums of integers */
    bool at_once;  /* parts may run on several threads */
} below;

/* What elements are reduced to. */
typedef union tally {
    double real;
    uint64_t whole;
} tally;

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

static tally join_tallies(const below *all, tally a, tally b)
{
    return all->is_whole ? (tally){.whole = a.whole + b.whole}
                         : (tally){.real = join(all->kind, a.real, b.real)};
}

/* The tally of nothing. */
static tally empty_tally(const below *all)
{
    return all->is_whole ? (tally){.whole = 0} : (tally){.real = identity(all->kind)};
}

static double finished(const below *all, double value);

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
    tally *results;
} part;

static tally reduce_strand(const below *all, const strand *x, int64_t n)
{
    if (all->is_whole)
        return (tally){.whole = sum_row(x, n)};
    return (tally){.real = x->dtype == TN_F64 ? reduce_row_f64(x, n, all->kind)
                                              : reduce_row_f32(x, n, all->kind)};
}

static void part_task(void *user, int64_t index)
{
    const part *it = user;
    const loop *parts = &it->all->parts;
    const tn_layout *in = &parts->op->operand[TN_ELEMENTWISE_IN];
    int64_t piece = index * parts->group, end = piece + parts->group;
    tally value = empty_tally(it->all);
    tn_step step;
    end = end < parts->pieces ? end : parts->pieces;
    tn_walk_seek(&parts->walk, piece / parts->across, &step);
    for (int64_t chunk = piece % parts->across; piece < end; piece++) {
        int64_t at = chunk * parts->piece, left = parts->walk.size - at;
        int64_t offset = step.offset[0] + at * parts->walk.stride[0];
        strand x = strand_of(in, it->in + offset * parts->size[0], parts->walk.stride[0]);
        int64_t n = left < parts->piece ? left : parts->piece;
        value = join_tallies(it->all, value, reduce_strand(it->all, &x, n));
        if (++chunk == parts->across) {
            chunk = 0;
            tn_walk_next(&parts->walk, &step);
        }
    }
    it->results[index] = value;
}

static tally reduce_one(const below *all, char *in)
{
    tally results[PARTS_MAX], value = empty_tally(all);
    const tn_walk *walk = &all->parts.walk;
    if (all->parts.pieces == 1) { /* the same as below, without its cost */
        strand x = strand_of(&all->parts.op->operand[TN_ELEMENTWISE_IN], in, walk->stride[0]);
        x.next = x.stride == 1 ? walk->size * x.size : 0;
        return join_tallies(all, value, reduce_strand(all, &x, walk->size));
    }
    part it = {all, in, results};
    const tn_host *host = all->parts.run->host;
    if (all->at_once)
        host->parallel_for(host->self, all->count, part_task, &it);
    for (int64_t i = 0; i < all->count; i++) {
        if (!all->at_once)
            part_task(&it, i);
        value = join_tallies(all, value, results[i]);
    }
    return value;
}

/* The mean of nothing is 0 / 0. */
static double finished(const below *all, double value)
{
    const tn_elementwise_op *op = TN_PARAMS(all->parts.op, elementwise);
    return op->kind == TN_REDUCE_MEAN ? value / (double)op->size : value;
}

/* Writes an element of out. */
static void write_element(const below *all, const tn_layout *out, char *to, tally sum)
{
    const strand y = strand_of(out, to, 1);
    const double value = all->is_whole ? 0 : finished(all, sum.real);
    _Alignas(64) float narrow[LANES] = {(float)value};
    if (all->is_whole)
        memcpy(to, &sum.whole, (size_t)y.size); /* little-endian: the low bytes come first */
    else if (out->dtype == TN_F64)
        write_block_f64(&y, 0, 1, &value);
    else
        write_block_f32(&y, 0, 1, narrow);
}

static void rows_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    const below *all = it->more;
    const tn_layout *out = &it->op->operand[TN_ELEMENTWISE_OUT];
    (void)first;
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = i * it->walk.stride[1] * it->size[1];
        char *in = data[1] ? data[1] + offset : NULL; /* an empty input may have no memory */
        char *to = data[0] + i * it->walk.stride[0] * it->size[0];
        write_element(all, out, to, reduce_one(all, in));
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
        const strand y = strand_of(&it->op->operand[TN_ELEMENTWISE_OUT], out, it->walk.stride[0]);
        if (all->is_whole)
            sum_columns(&y, &all->parts.walk, in, m);
        else if (y.dtype == TN_F64)
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
    *all = (below){.kind = op->kind,
                   .is_whole = !tni_cpu_is_real(in->dtype),
                   .parts = {.run = run, .op = run->op}};
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
