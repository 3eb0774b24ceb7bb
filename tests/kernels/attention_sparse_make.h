/* Random calls of attention-sparse, and which pairs their tables let see each other. */
#ifndef TENON_TEST_KERNELS_ATTENTION_SPARSE_MAKE_H
#define TENON_TEST_KERNELS_ATTENTION_SPARSE_MAKE_H

#include "tenon/module/attention_sparse.h"

#include "cpu_attention_make.h"

static const tn_dtype all[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

static inline tn_attention_sparse_op *sparse_of(call *c)
{
    return TN_PARAMS_MUTABLE(&c->op, attention_sparse);
}

static inline int64_t blocks_of(int64_t length, int64_t size)
{
    return (length + size - 1) / size;
}

static inline bool is_listed(const call *c, int64_t b, int64_t h, int64_t n, int64_t block)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const operand *mask = &c->o[TN_ATTENTION_SPARSE_MASK];
    const int64_t row = (b * op->at.heads + h) * op->query_blocks + n;
    if (mask->layout.dtype)
        return value_at(mask, row * op->key_blocks + block, 0) != 0;
    const int64_t at = (b * op->at.heads + h) * (op->query_blocks + 1) + n;
    const int64_t end = get_i32(&c->o[TN_ATTENTION_SPARSE_STARTS], at + 1);
    for (int64_t i = get_i32(&c->o[TN_ATTENTION_SPARSE_STARTS], at); i < end; i++) {
        if (get_i32(&c->o[TN_ATTENTION_SPARSE_BLOCKS], i) == block)
            return true;
    }
    return false;
}

/* The slot in use whose token is i; without an order, i. */
static inline int64_t slot_of(const call *c, int64_t b, int64_t i)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const operand *order = &c->o[TN_ATTENTION_SPARSE_ORDER];
    const operand *sizes = &c->o[TN_ATTENTION_SPARSE_SIZES];
    const int64_t slots = order->layout.dtype ? order->layout.shape[1] : 0;
    for (int64_t slot = 0; slot < slots; slot++) {
        const int64_t block = b * op->key_blocks + slot / op->block_keys;
        const bool used = !sizes->layout.dtype || slot % op->block_keys < get_i32(sizes, block);
        if (used && get_i32(order, b * slots + slot) == i)
            return slot;
    }
    return i;
}

static inline bool sees(const call *c, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const operand *sizes = &c->o[TN_ATTENTION_SPARSE_SIZES];
    const int64_t slot = slot_of(c, b, j), block = slot / op->block_keys;
    if (sizes->layout.dtype && slot % op->block_keys >= get_i32(sizes, b * op->key_blocks + block))
        return false;
    return place_is_seen(&op->at, i, j, op->at.queries, op->at.keys) &&
           is_listed(c, b, h, slot_of(c, b, i) / op->block_queries, block);
}

/* Lists with the blocks of a random mask. */
static inline void put_lists(call *c)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const int64_t shape[] = {op->at.batch, op->at.heads, op->query_blocks + 1};
    const int64_t lists = op->at.batch * op->at.heads * op->query_blocks;
    const int64_t entries = lists * op->key_blocks + 3;
    operand *starts = &c->o[TN_ATTENTION_SPARSE_STARTS];
    operand *blocks = &c->o[TN_ATTENTION_SPARSE_BLOCKS];
    int64_t at = 0;
    *starts = make(TN_I32, 3, shape, DENSE);
    *blocks = make(TN_I32, 1, &entries, OFF_BY_ONE);
    for (int64_t i = 0; i < entries; i++)
        put_i32(blocks, i, -7);
    for (int64_t r = 0; r < lists; r++) {
        const int64_t index = r / op->query_blocks * (op->query_blocks + 1) + r % op->query_blocks;
        const uint64_t one_of = 1 + dice(4);
        put_i32(starts, index, at);
        for (int64_t n = 0; n < op->key_blocks; n++) {
            if (dice(one_of) == 0)
                put_i32(blocks, at++, n);
        }
        put_i32(starts, index + 1, at);
    }
}

static inline void put_sizes(call *c)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const int64_t shape[] = {op->at.batch, op->key_blocks};
    operand *sizes = &c->o[TN_ATTENTION_SPARSE_SIZES];
    *sizes = make(TN_I32, 2, shape, SPREAD);
    for (int64_t i = 0; i < op->at.batch * op->key_blocks; i++) {
        const int64_t left = op->at.keys - i % op->key_blocks * op->block_keys;
        const int64_t most = left < op->block_keys ? left : op->block_keys;
        put_i32(sizes, i, dice(2) ? most : (int64_t)dice((uint64_t)most + 1));
    }
}

static inline call roll_sparse(tn_dtype dtype, int64_t most)
{
    const int64_t groups = 1 + (int64_t)dice(2), heads = groups * (1 + (int64_t)dice(3));
    const int64_t size = roll_size(most < 150 ? 130 : 40);
    call c = call_of(dtype, 1 + (int64_t)dice(2), heads, groups, roll_size(most), roll_size(most),
                     size, dice(3) ? size : roll_size(130));
    const tn_attention_op at = *TN_PARAMS(&c.op, attention);
    c.op.kind = TN_OP_ATTENTION_SPARSE;
    c.op.count = TN_ATTENTION_SPARSE_OPERANDS;
    *sparse_of(&c) = (tn_attention_sparse_op){.at = at};
    sparse_of(&c)->at.scale = dice(3) ? 1 / sqrt((double)size) : (double)dice(5) - 2;
    roll_wide_window(&sparse_of(&c)->at);
    sparse_of(&c)->at.shift = 0;
    sparse_of(&c)->block_queries = roll_size(at.queries + 20);
    sparse_of(&c)->block_keys = roll_size(at.keys + 20);
    sparse_of(&c)->query_blocks = blocks_of(at.queries, sparse_of(&c)->block_queries);
    sparse_of(&c)->key_blocks = blocks_of(at.keys, sparse_of(&c)->block_keys);
    const int64_t shape[] = {at.batch, heads, sparse_of(&c)->query_blocks,
                             sparse_of(&c)->key_blocks};
    if (dice(2))
        c.o[TN_ATTENTION_SPARSE_MASK] = make_random(TN_BOOL, 4, shape, (int)dice(REPEATED));
    else
        put_lists(&c);
    if (dice(3) == 0)
        put_sizes(&c);
    for (int32_t o = TN_ATTENTION_SPARSE_Q; o <= TN_ATTENTION_SPARSE_V; o++)
        call_lay(&c, o, dice(2) ? DENSE : (int)dice(LAYOUTS));
    return c;
}

#endif
