/* How gradients of attention on Hopper are split, what the kernels support, and what they cost. */
#include "attention_backward_cuda.h"
#include "backward_hopper.h"
#include "tenon/module/op/attention_backward.h"

#include <math.h>

enum { SMALL = 64, GREAT = 128, STAGES = 4, ROW_BYTES = sizeof(uint16_t), PROCESSORS = 132 };

unsigned cuda_backward_hopper_threads(backward_hopper_part part)
{
    return part == BACKWARD_HOPPER_STATES ? 256 : 128 * 3;
}

/* As laid out in the kernels, which check it. */
unsigned cuda_backward_hopper_shared(const tn_op *op, backward_hopper_part part)
{
    enum { STATES = 2 * SLOPE_TILE * sizeof(float), BARRIER = sizeof(uint64_t) };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const unsigned x = SLOPE_TILE * ROW_BYTES * (unsigned)at->size;
    const unsigned y = SLOPE_TILE * ROW_BYTES * (unsigned)at->value_size;
    switch (part) {
    case BACKWARD_HOPPER_KEYS:
        return SLOPE_BLOCK_TILES * (x + y) + STAGES * (x + y + STATES) + BARRIER * (1 + 2 * STAGES);
    case BACKWARD_HOPPER_QUERIES:
        return STAGES * (SLOPE_ROW_TILES * SLOPE_TILE_BYTES + x) + BARRIER * 2 * STAGES;
    case BACKWARD_HOPPER_STATES:
    case BACKWARD_HOPPER_PARTS: break;
    }
    return 0;
}

static int64_t at_most(int64_t x, int64_t most)
{
    return x < most ? x : most;
}

static int64_t at_least(int64_t x, int64_t least)
{
    return x > least ? x : least;
}

/* A section's slopes fill at most SLOPES bytes, unless it needs more to have a block of keys for each multiprocessor of an
 * H200. */
void cuda_backward_hopper_shape_of(const tn_op *op, backward_hopper_shape *out)
{
    enum { ALIGNMENT = 256 };
    static const int64_t slopes = INT64_C(2) << 30;
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t ratio = at->groups > 0 ? at->heads / at->groups : 0;
    const int64_t tiles = cuda_tiles_along(at->queries, SLOPE_TILE);
    const int64_t row_blocks = cuda_tiles_along(tiles, SLOPE_ROW_TILES);
    const int64_t blocks = cuda_tiles_along(at->keys, (int64_t)SLOPE_TILE * SLOPE_BLOCK_TILES);
    const int64_t block_bytes =
        at_least(ratio * tiles * SLOPE_BLOCK_TILES * SLOPE_TILE_BYTES, SLOPE_TILE_BYTES);
    const int64_t fit = at_least(slopes / block_bytes, at_most(blocks, PROCESSORS));
    *out = (backward_hopper_shape){.all_lots = at->batch * at->groups,
                                   .all_blocks = blocks,
                                   .tiles = tiles,
                                   .row_blocks = row_blocks};
    const int64_t parts = cuda_tiles_along(blocks, at_least(fit, 1));
    out->blocks = cuda_tiles_along(blocks, at_least(parts, 1));
    out->lots = parts > 1 ? 1 : at_least(at_most(fit / at_least(blocks, 1), out->all_lots), 1);
    out->states_bytes = (uint64_t)cuda_round_up(
        out->all_lots * ratio * tiles * SLOPE_TILE * (int64_t)sizeof(float), ALIGNMENT);
    out->slopes_bytes = (uint64_t)(out->lots * out->blocks * block_bytes);
    out->partial_bytes = parts > 1 ? (uint64_t)(out->lots * ratio * row_blocks * SLOPE_ROW_TILES *
                                                SLOPE_TILE * at->size * (int64_t)sizeof(float))
                                   : 0;
}

int64_t cuda_backward_hopper_sections(const backward_hopper_shape *shape)
{
    return cuda_tiles_along(shape->all_lots, shape->lots) *
           cuda_tiles_along(shape->all_blocks, shape->blocks);
}

backward_hopper_section cuda_backward_hopper_section(const backward_hopper_shape *shape,
                                                     int64_t number)
{
    const int64_t parts = cuda_tiles_along(shape->all_blocks, shape->blocks);
    backward_hopper_section to = {.lot = number / parts * shape->lots,
                                  .block = number % parts * shape->blocks};
    to.lots = at_most(shape->lots, shape->all_lots - to.lot);
    to.blocks = at_most(shape->blocks, shape->all_blocks - to.block);
    return to;
}

uint64_t cuda_backward_hopper_workspace(const tn_kernel_row *row, const tn_query *query)
{
    backward_hopper_shape shape;
    (void)row;
    cuda_backward_hopper_shape_of(query->op, &shape);
    return 2 * shape.states_bytes + shape.slopes_bytes + shape.partial_bytes;
}

static tn_status admit_size(int64_t size, const char *name, tn_refusal *why)
{
    return size == SMALL || size == GREAT
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_SHAPE, name, size < SMALL ? SMALL : GREAT, size,
                             "the kernel is for heads of 64 and 128 elements");
}

static tn_status admit_sizes(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_status status = admit_size(at->size, "head size", why);
    return status ? status : admit_size(at->value_size, "value size", why);
}

/* The kernels add up to three positions, and number tiles, in 32 bits. */
static tn_status admit_counts(const tn_op *op, tn_refusal *why)
{
    enum { MOST = 1 << 27, BLOCKS = 1 << 30 };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const cuda_count counts[] = {{"batch", at->batch},
                                 {"heads", at->heads},
                                 {"queries", at->queries},
                                 {"keys", at->keys},
                                 {"shift", at->shift < 0 ? -(at->shift + 1) : at->shift}};
    if (at->batch < 1 || at->heads < 1 || at->queries < 1 || at->keys < 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "elements", 1, 0, "the problem is empty");
    tn_status status =
        cuda_admit_counts(counts, sizeof counts / sizeof counts[0], MOST, "split it", why);
    const int64_t longest = at_least(at->queries, at->keys);
    const double blocks =
        (double)at->batch * (double)at->heads * (double)cuda_tiles_along(longest, SLOPE_TILE / 2);
    return status || blocks <= BLOCKS ? status
                                      : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", BLOCKS,
                                                    (int64_t)blocks, "split the batch");
}

tn_status cuda_backward_hopper_admit(const tn_kernel_row *row, const tn_query *query,
                                     tn_refusal *why)
{
    (void)row;
    tn_status status = cuda_hopper_admit_device(query, why);
    if (!status)
        status = admit_sizes(query->op, why);
    if (!status)
        status = admit_counts(query->op, why);
    if (!status)
        status = cuda_gradients_admit_operands(query->op, cuda_hopper_admit_operand, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

/* How many times each multiprocessor computes a block of keys. Blocks of dense problems end at the same time, so the last ones
 * leave multiprocessors idle. */
static double turns_of(const tn_attention_op *at, const backward_hopper_shape *shape,
                       double processors)
{
    const double sections = (double)cuda_backward_hopper_sections(shape);
    const double turns =
        (double)shape->all_lots * (double)shape->all_blocks / sections / processors;
    const bool is_bounded = at->left >= 0 || at->right >= 0;
    return sections * (turns < 1 ? 1 : is_bounded ? turns : ceil(turns));
}

/* Microseconds, by counting operations and bytes (docs/kernels/backward-attention.md). The kernel for keys is bound by the tensor
 * cores, at `rate` operations per microsecond of a multiprocessor of an H200, measured; the others by memory. */
double cuda_backward_hopper_cost(const tn_kernel_row *row, const tn_query *query)
{
    static const double rate_small = 3.6e6, rate_great = 4.3e6, block_us = 5, launch_us = 4;
    static const double bounded_keys = 128; /* that are computed beside those seen */
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    backward_hopper_shape shape;
    if (admit_sizes(query->op, NULL) || admit_counts(query->op, NULL))
        return 0; /* costs are asked for before `admit` */
    cuda_backward_hopper_shape_of(query->op, &shape);
    const double sizes = (double)(at->size + at->value_size);
    const double rows = (double)at->batch * (double)at->heads * (double)at->queries;
    const double seen =
        cuda_attention_keys_seen(at) + (at->left >= 0 || at->right >= 0 ? bounded_keys : 0);
    const double blocks = (double)shape.all_lots * (double)shape.all_blocks;
    const double rate = sizes > GREAT ? rate_great : rate_small;
    const double each = block_us + rows * seen / blocks * 4 * sizes / rate;
    const double bytes = rows * (seen + 2 * sizes) * ROW_BYTES;
    const double us = each * turns_of(at, &shape, (double)(found > 0 ? found : PROCESSORS)) +
                      bytes / row->bytes_per_us;
    return row->overhead_us + 2 * launch_us * (double)cuda_backward_hopper_sections(&shape) + us;
}
