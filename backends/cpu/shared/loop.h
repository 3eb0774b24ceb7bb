/* The loop of an op over its elements or rows, on the host's threads if there is enough work. */
#ifndef TENON_BACKENDS_CPU_LOOP_H
#define TENON_BACKENDS_CPU_LOOP_H

#include "block.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/module/walk.h"

enum { PIECE = 16384, TASK = 65536 }; /* elements of a call, of a task */
enum { STREAM_BYTES = 32 << 20 };     /* output too large to stay in any cache */
enum { PARALLEL_BYTES = 256 * 1024 }; /* below, one thread is faster */
enum { FETCH_BYTES = 128 * 1024 };    /* maximum size of a row that is prefetched */

struct loop;

/* Computes `n` items from number `at` of its step on: those of operand i begin at data[i] and are
 * walk.stride[i] apart. */
typedef void loop_body(const struct loop *loop, char *const *data, int64_t at, int64_t n);

typedef struct loop {
    const tn_run *run;
    const tn_op *op;
    loop_body *body;
    tn_walk walk; /* over items: operands[0] first */
    char *base[TN_OP_OPERANDS_MAX];
    int32_t size[TN_OP_OPERANDS_MAX]; /* bytes of an element */
    int64_t weight;                   /* elements of an item */
    int64_t piece;                    /* maximum items of a call; does not depend on threads */
    int64_t across;                   /* pieces of a step */
    int64_t group;                    /* pieces of a task */
    int64_t pieces;
    bool stream;      /* out is large: non-temporal stores */
    const void *more; /* data of the body */
} loop;

static inline void loop_task(void *user, int64_t index)
{
    const loop *it = user;
    char *data[TN_OP_OPERANDS_MAX];
    int64_t piece = index * it->group, end = piece + it->group;
    tn_step step;
    end = end < it->pieces ? end : it->pieces;
    tn_walk_seek(&it->walk, piece / it->across, &step);
    for (int64_t chunk = piece % it->across; piece < end; piece++) {
        int64_t at = chunk * it->piece, left = it->walk.size - at;
        for (int32_t i = 0; i < it->walk.count; i++) { /* an absent operand has no base */
            int64_t offset = (step.offset[i] + at * it->walk.stride[i]) * it->size[i];
            data[i] = it->base[i] ? it->base[i] + offset : NULL;
        }
        it->body(it, data, at, left < it->piece ? left : it->piece);
        if (++chunk == it->across) {
            chunk = 0;
            tn_walk_next(&it->walk, &step);
        }
    }
    if (it->stream)
        stream_end();
}

/* A row of out, or a part of one, starting at `data`. */
INLINE strand strand_out(const loop *it, char *data, int64_t stride)
{
    strand s = strand_of(&it->op->operand[TN_ELEMENTWISE_OUT], data, stride);
    s.stream = it->stream && stride == 1;
    return s;
}

/* A row of in; the next row, `next` bytes further, is prefetched. */
INLINE strand strand_row(const tn_layout *in, char *data, int64_t size, int64_t next)
{
    strand s = strand_of(in, data, in->stride[in->rank - 1]);
    s.next = s.stride == 1 && size * s.size <= FETCH_BYTES ? next : 0;
    return s;
}

/* A part of an operand that is computed in blocks. */
INLINE strand strand_in(const loop *it, const tn_layout *layout, char *data, int64_t stride)
{
    strand s = strand_of(layout, data, stride);
    s.next = it->stream && stride == 1 ? BLOCK * s.size : 0;
    return s;
}

/* Splits the walk: an item is `weight` elements, and a call gets at least `least` items. */
static inline void loop_cut(loop *it, int64_t weight, int64_t least)
{
    it->weight = weight > 0 ? weight : 1;
    it->piece = PIECE / it->weight > least ? PIECE / it->weight : least;
    it->across = (it->walk.size + it->piece - 1) / it->piece;
    it->pieces = it->walk.steps * it->across;
    int64_t length = it->walk.size < it->piece ? it->walk.size : it->piece;
    length = length * it->weight > 0 ? length * it->weight : 1;
    it->group = TASK / length > 0 ? TASK / length : 1;
}

/* Prepares a loop over the dimensions before the last `kept` ones of the given operands. */
static inline void loop_prepare(loop *it, const tn_run *run, const int32_t *operands, int32_t count,
                                int32_t kept, int64_t weight)
{
    const tn_op *op = run->op;
    it->run = run;
    it->op = op;
    tn_walk_over(&it->walk, op, operands, count, 0, op->operand[operands[0]].rank - kept);
    for (int32_t i = 0; i < count; i++) {
        it->base[i] = tn_operand(run, operands[i]);
        it->size[i] = (int32_t)(op->operand[operands[i]].dtype >> 8 & 255) / 8;
    }
    loop_cut(it, weight, 1);
}

static inline void loop_run(loop *it)
{
    int64_t tasks = (it->pieces + it->group - 1) / it->group;
    int64_t bytes = it->walk.steps * it->walk.size * it->weight * it->size[0];
    const tn_host *host = it->run->host;
    it->stream = bytes >= STREAM_BYTES && !(it->op->uses & TN_ELEMENTWISE_USES_IN_PLACE);
    if (tasks > 1 && it->run->threads > 1 && bytes >= PARALLEL_BYTES) {
        host->parallel_for(host->self, tasks, loop_task, it);
        return;
    }
    it->group = it->pieces;
    if (it->pieces > 0)
        loop_task(it, 0);
}

/* Begins the definition of the function that a template exports, tni_cpu_<op>_<isa>; the build
 * defines ISA. */
#define ISA_KERNEL_(op, isa)                                          \
    tn_status tni_cpu_##op##_##isa(const tn_run *run, tn_error *err); \
    tn_status tni_cpu_##op##_##isa(const tn_run *run, tn_error *err)
#define ISA_KERNEL__(op, isa) ISA_KERNEL_(op, isa)
#define ISA_KERNEL(op)        ISA_KERNEL__(op, ISA)

#endif
