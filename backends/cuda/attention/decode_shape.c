/* Which variant of the kernel for decoding computes a problem, how its keys are split, what it supports and what it costs. */
#include "attention_cuda.h"
#include "decode.h"

#include <math.h>

enum { STEP = 16, SIZE_MOST = 256, SIZE_TWO = 128, PROCESSORS = 132, RESIDENT = 2 };

static int64_t heads_per_group(const tn_attention_op *at)
{
    return at->groups > 0 ? at->heads / at->groups : 0;
}

static int greater_size(const decode_variant *variant)
{
    return variant->size > variant->values ? variant->size : variant->values;
}

int cuda_decode_rows(const decode_variant *variant)
{
    return DECODE_ROWS * variant->tiles;
}

static int slot_bytes(const decode_variant *variant)
{
    return DECODE_KEYS * decode_pitch(greater_size(variant));
}

static int query_bytes(const decode_variant *variant)
{
    return cuda_decode_rows(variant) * decode_pitch(greater_size(variant));
}

unsigned cuda_decode_shared(const decode_variant *variant)
{
    const int slots = DECODE_WARPS * variant->slots * slot_bytes(variant) + query_bytes(variant);
    const int sums = DECODE_WARPS * (variant->values + DECODE_BESIDE + 2) * (int)sizeof(float);
    const int joined = cuda_decode_rows(variant) * (sums + DECODE_ENDING);
    return (unsigned)(slots > joined ? slots : joined);
}

/* Two blocks have room on a multiprocessor of capability 8.0 or 9.0, and one on those of 8.6 up to head size 192. More
 * slots would have room, but were slower on an H200 (docs/kernels/decode-attention.md). */
static int slots_of(const decode_variant *variant)
{
    enum { ROOM = 64 << 10, LEAST = 3, MOST = 12 };
    const int slots = (ROOM - query_bytes(variant)) / (DECODE_WARPS * slot_bytes(variant));
    return slots < LEAST ? LEAST : slots > MOST ? MOST : slots;
}

void cuda_decode_variant_of(const tn_op *op, decode_variant *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    *out = (decode_variant){.size = (int)cuda_round_up(at->size, STEP),
                            .values = (int)cuda_round_up(at->value_size, STEP),
                            .tiles = 1};
    if (at->queries * heads_per_group(at) > DECODE_ROWS && greater_size(out) <= SIZE_TWO)
        out->tiles = 2;
    out->slots = slots_of(out);
}

/* Returns into how many parts to split the keys of `all` blocks, so that at least NEARLY all of the blocks that are
 * resident at once work until the end: the fewest, or else those that come nearest. */
static int64_t parts_of(int64_t all, int64_t resident, int64_t most)
{
    enum { TURNS = 4 };
    static const double nearly = 0.95;
    int64_t best = 1;
    double most_busy = 0;
    for (int64_t turns = 1; turns <= TURNS && most_busy < nearly; turns++) {
        const int64_t room = turns * resident / all, parts = room < most ? room : most;
        const double busy = (double)(parts * all) / (double)(turns * resident);
        if (parts > 0 && busy > most_busy) {
            most_busy = busy;
            best = parts;
        }
        if (parts == most)
            break;
    }
    return best;
}

void cuda_decode_shape_of(const tn_op *op, int64_t processors, decode_shape *out)
{
    enum { PART_LEAST = 2 * DECODE_TURN, WHOLE_MOST = 4 * DECODE_TURN };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t resident = RESIDENT * (processors > 0 ? processors : PROCESSORS);
    decode_variant variant;
    cuda_decode_variant_of(op, &variant);
    *out = (decode_shape){.lots = at->batch * at->groups,
                          .rows = at->queries * heads_per_group(at),
                          .parts = 1,
                          .part = at->keys};
    out->blocks = cuda_tiles_along(out->rows, cuda_decode_rows(&variant));
    const int64_t all = out->lots * out->blocks, most = cuda_tiles_along(at->keys, PART_LEAST);
    if (all < 1 || at->keys <= WHOLE_MOST)
        return;
    const int64_t part =
        cuda_round_up(cuda_tiles_along(at->keys, parts_of(all, resident, most)), DECODE_TURN);
    if (part < at->keys) {
        out->part = part;
        out->parts = cuda_tiles_along(at->keys, part);
    }
}

uint64_t cuda_decode_partial(const tn_op *op, const decode_shape *shape)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const uint64_t parts = (uint64_t)(shape->lots * shape->rows * shape->parts);
    return shape->parts > 1 ? parts * (uint64_t)(at->value_size + 2) * sizeof(float) : 0;
}

static int64_t processors_of(const tn_query *query)
{
    return query->device ? query->device->multi_processor_count : 0;
}

uint64_t cuda_decode_workspace(const tn_kernel_row *row, const tn_query *query)
{
    decode_shape shape;
    (void)row;
    cuda_decode_shape_of(query->op, processors_of(query), &shape);
    return cuda_decode_partial(query->op, &shape);
}

static tn_status admit_blocks(const tn_query *query, tn_refusal *why)
{
    enum { MOST = 1 << 30 };
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    if (at->batch < 1 || at->heads < 1 || at->queries < 1 || at->keys < 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "elements", 1, 0, "the problem is empty");
    tn_status status = cuda_attention_admit_counts(query->op, why);
    if (status)
        return status;
    decode_shape shape;
    cuda_decode_shape_of(query->op, processors_of(query), &shape);
    const double blocks = (double)shape.lots *
                          (double)(shape.parts > 1 ? shape.rows : shape.blocks) *
                          (double)shape.parts;
    return blocks <= MOST ? TN_OK
                          : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", MOST, (int64_t)blocks,
                                        "split queries or the batch");
}

tn_status cuda_decode_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    decode_variant variant;
    (void)row;
    cuda_decode_variant_of(query->op, &variant);
    tn_status status = cuda_attention_admit_ampere(query, why);
    if (!status)
        status = cuda_attention_admit_chunks(query->op, SIZE_MOST, why);
    if (!status)
        status = cuda_attention_admit_shared(query, cuda_decode_shared(&variant), why);
    if (!status)
        status = admit_blocks(query, why);
    if (!status)
        status = cuda_attention_admit_rows(query->op, TN_ATTENTION_K, "k", why);
    if (!status)
        status = cuda_attention_admit_rows(query->op, TN_ATTENTION_V, "v", why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

/* The time of a turn of 64 keys in microseconds: two blocks on each multiprocessor of an H200, operands in time.
 * The factor of bool masks was measured; additive masks are assumed to be the same, and that of a softcap is an estimate. */
static double turn_us(const tn_op *op, const decode_variant *variant)
{
    enum { MASK = 4, SOFTCAP = 2 };
    const double size = greater_size(variant) / (double)SIZE_TWO;
    const double plain = variant->tiles == 1 ? 0.4 + 0.4 * size : 0.9 + 1.1 * size;
    const bool masked = op->uses & (TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE);
    return plain * (masked ? MASK : op->uses & TN_ATTENTION_USES_SOFTCAP ? SOFTCAP : 1);
}

/* Each block of rows reads all its keys; the rate of memory is assumed for all of these reads. The figures give
 * the times of docs/kernels/decode-attention.md within 13 %. */
double cuda_decode_cost(const tn_kernel_row *row, const tn_query *query)
{
    static const double reached = 0.82, join_us = 3.4, join_bytes_per_us = 6e5;
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const double bandwidth = query->device ? (double)query->device->memory_bandwidth / 1e6 : 0;
    const double rate = bandwidth > 0 ? bandwidth * reached : row->bytes_per_us;
    const int64_t found = processors_of(query);
    decode_variant variant;
    decode_shape shape;
    if (cuda_attention_admit_chunks(query->op, SIZE_MOST, NULL) || admit_blocks(query, NULL))
        return 0; /* costs are asked for before `admit` */
    cuda_decode_variant_of(query->op, &variant);
    cuda_decode_shape_of(query->op, found, &shape);
    const double start_us = variant.tiles == 1 ? 3.4 : 5;
    const double blocks = (double)shape.lots * (double)shape.blocks * (double)shape.parts;
    const double resident = RESIDENT * (double)(found > 0 ? found : PROCESSORS);
    const double keys = cuda_attention_keys_seen(at) / (double)shape.parts;
    const double compute = ceil(blocks / resident) *
                           (start_us + ceil(keys / DECODE_TURN) * turn_us(query->op, &variant));
    const double each = keys * (double)(at->size + at->value_size) * sizeof(uint16_t);
    const double move = start_us + blocks * each / rate;
    const double partial = (double)cuda_decode_partial(query->op, &shape);
    const double join = shape.parts > 1 ? join_us + partial / join_bytes_per_us : 0;
    return row->overhead_us + join + (compute > move ? compute : move);
}
