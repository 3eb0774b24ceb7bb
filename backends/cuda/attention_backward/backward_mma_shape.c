/* Which variants of the kernel for gradients on tensor cores compute a problem, how it is split, and what it supports. */
#include "../attention/decode_schedule.h"
#include "attention_backward_cuda.h"
#include "backward_mma.h"
#include "tenon/module/op/attention_backward.h"

#include <math.h>

enum { STEP = 16, SIZE_MOST = 256, SIZE_TOGETHER = 128, SIZE_SMALL = 64 };

int cuda_backward_side(const backward_variant *variant)
{
    return STEP * variant->warps;
}

unsigned cuda_backward_threads(const backward_variant *variant)
{
    return 32u * (unsigned)variant->warps;
}

unsigned cuda_backward_shared(const backward_variant *variant)
{
    return (unsigned)backward_shared_bytes(cuda_backward_side(variant), variant->width,
                                           decode_pitch(variant->size),
                                           decode_pitch(variant->values));
}

static int64_t greater_size(const tn_op *op)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    return at->size > at->value_size ? at->size : at->value_size;
}

/* The sums of dK and dV of great heads have no room in a thread's registers together. */
bool cuda_backward_has(const tn_op *op, backward_part part)
{
    const bool together = greater_size(op) <= SIZE_TOGETHER;
    return part == BACKWARD_DQ || together == (part == BACKWARD_DK_DV);
}

void cuda_backward_variant_of(const tn_op *op, backward_part part, backward_variant *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t greater = greater_size(op);
    *out = (backward_variant){.part = part,
                              .size = (int)cuda_round_up(at->size, STEP),
                              .values = (int)cuda_round_up(at->value_size, STEP),
                              .warps = greater <= SIZE_TOGETHER ? 4 : 8,
                              .width = greater <= SIZE_TOGETHER ? 64 : 32,
                              .held = part == BACKWARD_DQ && greater <= SIZE_TOGETHER,
                              .resident = greater <= SIZE_SMALL      ? 3
                                          : greater <= SIZE_TOGETHER ? 2
                                                                     : 1};
}

void cuda_backward_shape_of(const tn_op *op, backward_shape *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t ratio = at->groups > 0 ? at->heads / at->groups : 0;
    backward_variant variant; /* all of them have as many own rows */
    cuda_backward_variant_of(op, BACKWARD_DQ, &variant);
    const int side = cuda_backward_side(&variant);
    *out = (backward_shape){.lots = at->batch * at->groups,
                            .row_blocks = cuda_tiles_along(at->queries * ratio, side),
                            .key_blocks = cuda_tiles_along(at->keys, side),
                            .padded_rows = cuda_round_up(at->queries * ratio, side)};
}

uint64_t cuda_backward_workspace(const tn_kernel_row *row, const tn_query *query)
{
    backward_shape shape;
    (void)row;
    cuda_backward_shape_of(query->op, &shape);
    return (uint64_t)shape.lots * (uint64_t)shape.padded_rows * BACKWARD_STATE;
}

tn_status cuda_gradients_admit_operands(const tn_op *op, cuda_admit_operand *admit, tn_refusal *why)
{
    static const struct {
        int32_t operand;
        const char *name;
    } copied[] = {{TN_ATTENTION_BACKWARD_Q, "q"},
                  {TN_ATTENTION_BACKWARD_K, "k"},
                  {TN_ATTENTION_BACKWARD_V, "v"},
                  {TN_ATTENTION_BACKWARD_DOUT, "dout"}};
    tn_status status = TN_OK;
    for (size_t i = 0; !status && i < sizeof copied / sizeof copied[0]; i++)
        status = admit(op, copied[i].operand, copied[i].name, why);
    return status;
}

static tn_status admit_blocks(const tn_op *op, tn_refusal *why)
{
    enum { MOST = 1 << 30 };
    const tn_attention_op *at = TN_PARAMS(op, attention);
    if (at->batch < 1 || at->heads < 1 || at->queries < 1 || at->keys < 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "elements", 1, 0, "the problem is empty");
    const cuda_count shift = {"shift", at->shift < 0 ? -(at->shift + 1) : at->shift};
    tn_status status = cuda_attention_admit_counts(op, why);
    if (!status)
        status = cuda_admit_counts(&shift, 1, MOST, "shift positions less", why);
    if (status)
        return status;
    backward_shape shape;
    cuda_backward_shape_of(op, &shape);
    const int64_t most = shape.row_blocks > shape.key_blocks ? shape.row_blocks : shape.key_blocks;
    const double blocks = (double)shape.lots * (double)most;
    return blocks <= MOST ? TN_OK
                          : cuda_refuse(why, TN_REFUSE_SHAPE, "blocks", MOST, (int64_t)blocks,
                                        "split queries or the batch");
}

tn_status cuda_backward_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    backward_variant variant;
    (void)row;
    cuda_backward_variant_of(query->op, BACKWARD_DQ, &variant);
    tn_status status = cuda_attention_admit_ampere(query, why);
    if (!status)
        status = cuda_attention_admit_chunks(query->op, SIZE_MOST, why);
    if (!status)
        status = cuda_attention_admit_shared(query, cuda_backward_shared(&variant), why);
    if (!status)
        status = admit_blocks(query->op, why);
    if (!status)
        status = cuda_gradients_admit_operands(query->op, cuda_attention_admit_rows, why);
    if (!status)
        status = cuda_attention_admit_numbers(query->op, why);
    return status ? status : cuda_admit_alignment(query, why);
}

/* Microseconds that a multiprocessor takes for a tile of both sides: for products, and for each score. */
static double tile_us(const backward_variant *variant)
{
    static const double flops_per_us = 2.6e6, score_us = 7.2e-5;
    const bool of_values = variant->part == BACKWARD_DK_DV || variant->part == BACKWARD_DV;
    const int scores = variant->size + (variant->part == BACKWARD_DV ? 0 : variant->values);
    const int sums =
        (variant->part == BACKWARD_DV ? 0 : variant->size) + (of_values ? variant->values : 0);
    const double pairs = (double)cuda_backward_side(variant) * variant->width;
    return pairs * (2.0 * (scores + sums) / flops_per_us + score_us);
}

/* Microseconds of a kernel, from the time to start a block, the tiles that bounds by position add for each block, and the factor
 * for masks, softcaps and dropout. These and the constants of tile_us were fitted to times on an H200
 * (docs/kernels/backward-attention.md), which they give within 3 %. Heads above 128 elements, masks, softcaps, dropout and few
 * blocks were not measured. */
static double kernel_us(const tn_query *query, const backward_shape *shape, backward_part part)
{
    enum { PROCESSORS = 132 };
    static const double block_us = 3, bounded_tiles = 2.5, guarded = 2;
    const tn_attention_op *at = TN_PARAMS(query->op, attention);
    const int64_t found = query->device ? query->device->multi_processor_count : 0;
    const double processors = (double)(found > 0 ? found : PROCESSORS);
    backward_variant variant;
    cuda_backward_variant_of(query->op, part, &variant);
    const bool of_rows = part == BACKWARD_DQ;
    const double rows = (double)at->queries * (double)at->heads / (double)at->groups;
    const double blocks =
        (double)shape->lots * (double)(of_rows ? shape->row_blocks : shape->key_blocks);
    const double keys = cuda_attention_keys_seen(at); /* per row */
    double tiles = ceil((of_rows ? keys : rows * keys / (double)at->keys) / variant.width);
    tiles += at->left >= 0 || at->right >= 0 ? bounded_tiles : 0;
    if (query->op->uses & (TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |
                           TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_DROPOUT))
        tiles *= guarded;
    /* A block alone has half of a multiprocessor's speed if there is room for more. */
    const double room = variant.resident, needed = ceil(blocks / processors) + 1;
    const double beside = needed < room ? needed : room;
    const double turns = blocks / (processors * room);
    return (turns < 1 ? 1 : turns) * (block_us + beside * tiles * tile_us(&variant));
}

double cuda_backward_cost(const tn_kernel_row *row, const tn_query *query)
{
    backward_shape shape;
    double sum = row->overhead_us;
    if (cuda_attention_admit_chunks(query->op, SIZE_MOST, NULL) || admit_blocks(query->op, NULL))
        return 0; /* costs are asked for before `admit` */
    cuda_backward_shape_of(query->op, &shape);
    for (int part = 0; part < BACKWARD_PARTS; part++) {
        if (cuda_backward_has(query->op, (backward_part)part))
            sum += kernel_us(query, &shape, (backward_part)part);
    }
    return sum;
}
