/* Helpers for authors of attention-sparse kernels that can read the tables in memory: which blocks
 * of keys are listed, how many of their keys are valid, and which token a slot has.
 *
 *     if (tn_attention_sparse_check(run, err))
 *         return TN_INVALID_ARGUMENT;
 *     tn_sparse_row row;
 *     tn_attention_sparse_row(run, b, h, n, &row);
 *     for (int64_t block; (block = tn_attention_sparse_next(&row)) >= 0;) {
 *         int64_t keys = tn_attention_sparse_size(run, b, block);
 *         ...
 *
 * Thread-safety: functions of their arguments only; callable from any thread. */
#ifndef TENON_MODULE_ATTENTION_SPARSE_H
#define TENON_MODULE_ATTENTION_SPARSE_H

#include "attention.h"
#include "op/attention_sparse.h"

TN_BEGIN_DECLS

/* The listed blocks of keys of a block of queries, from `at` up to `end`: entries of BLOCKS, or
 * bools of MASK. */
typedef struct tn_sparse_row {
    const char *first; /* of entry or bool 0 */
    int64_t step;      /* bytes */
    int64_t at, end;
    int64_t listed; /* 1: entries of BLOCKS */
} tn_sparse_row;

/* Address of an element of a table of up to three dimensions. */
static inline const char *tn_sparse_address_(const tn_run *run, int32_t operand, int64_t size,
                                             int64_t i, int64_t j, int64_t k)
{
    const int64_t *stride = run->op->operand[operand].stride;
    int64_t at = i * stride[0];
    at += run->op->operand[operand].rank > 1 ? j * stride[1] : 0;
    at += run->op->operand[operand].rank > 2 ? k * stride[2] : 0;
    return (const char *)tn_operand(run, operand) + at * size;
}

static inline int64_t tn_sparse_number_(const char *from)
{
    int32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Reads which blocks are listed for block n of the queries of head h. */
static inline void tn_attention_sparse_row(const tn_run *run, int64_t b, int64_t h, int64_t n,
                                           tn_sparse_row *out)
{
    const tn_layout *mask = &run->op->operand[TN_ATTENTION_SPARSE_MASK];
    const int64_t key_blocks = TN_PARAMS(run->op, attention_sparse)->key_blocks;
    if (mask->dtype != TN_DTYPE_NONE) {
        const tn_sparse_row none = {NULL, 0, 0, 0, 0};
        *out = none;
        if (key_blocks == 0) /* a mask without elements may have no memory */
            return;
        const tn_sparse_row row = {tn_sparse_address_(run, TN_ATTENTION_SPARSE_MASK, 1, b, h, n),
                                   mask->stride[3], 0, key_blocks, 0};
        *out = row;
        return;
    }
    const tn_sparse_row row = {
        (const char *)tn_operand(run, TN_ATTENTION_SPARSE_BLOCKS),
        run->op->operand[TN_ATTENTION_SPARSE_BLOCKS].stride[0] * 4,
        tn_sparse_number_(tn_sparse_address_(run, TN_ATTENTION_SPARSE_STARTS, 4, b, h, n)),
        tn_sparse_number_(tn_sparse_address_(run, TN_ATTENTION_SPARSE_STARTS, 4, b, h, n + 1)), 1};
    *out = row;
}

/* Returns the next listed block in ascending order, or -1 after the last one. */
static inline int64_t tn_attention_sparse_next(tn_sparse_row *row)
{
    while (row->at < row->end) {
        const int64_t at = row->at++;
        if (row->listed)
            return tn_sparse_number_(row->first + at * row->step);
        if (row->first[at * row->step])
            return at;
    }
    return -1;
}

/* Returns the number of slots of the keys, which is that of the queries, too, if ORDER is present.
 * Without ORDER, slots are keys. */
static inline int64_t tn_attention_sparse_slots(const tn_op *op)
{
    const tn_layout *order = &op->operand[TN_ATTENTION_SPARSE_ORDER];
    return order->dtype == TN_DTYPE_NONE ? TN_PARAMS(op, attention_sparse)->at.keys
                                         : order->shape[1];
}

/* Returns the token of a slot. */
static inline int64_t tn_attention_sparse_token(const tn_run *run, int64_t b, int64_t slot)
{
    if (run->op->operand[TN_ATTENTION_SPARSE_ORDER].dtype == TN_DTYPE_NONE)
        return slot;
    return tn_sparse_number_(tn_sparse_address_(run, TN_ATTENTION_SPARSE_ORDER, 4, b, slot, 0));
}

/* Returns the number of valid keys of a block, or of its slots in use; they are its first ones. */
static inline int64_t tn_attention_sparse_size(const tn_run *run, int64_t b, int64_t block)
{
    const tn_attention_sparse_op *op = TN_PARAMS(run->op, attention_sparse);
    const int64_t left = tn_attention_sparse_slots(run->op) - block * op->block_keys;
    if (run->op->operand[TN_ATTENTION_SPARSE_SIZES].dtype != TN_DTYPE_NONE)
        return tn_sparse_number_(
            tn_sparse_address_(run, TN_ATTENTION_SPARSE_SIZES, 4, b, block, 0));
    return left < op->block_keys ? left : op->block_keys;
}

static inline tn_status tn_sparse_check_lists_(const tn_run *run, int64_t b, int64_t h,
                                               tn_error *err)
{
    const tn_attention_sparse_op *op = TN_PARAMS(run->op, attention_sparse);
    const int64_t entries = run->op->operand[TN_ATTENTION_SPARSE_BLOCKS].shape[0];
    for (int64_t n = 0; n < op->query_blocks; n++) {
        tn_sparse_row row;
        int64_t before = -1;
        tn_attention_sparse_row(run, b, h, n, &row);
        if (row.at < 0 || row.end < row.at || row.end > entries)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                           "starts[%lld][%lld][%lld]: expected ascending numbers from 0 to the "
                           "%lld entries of blocks, got %lld and then %lld",
                           (long long)b, (long long)h, (long long)n, (long long)entries,
                           (long long)row.at, (long long)row.end);
        for (int64_t i = row.at; i < row.end; i++) {
            const int64_t block = tn_attention_sparse_next(&row);
            if (block <= before || block >= op->key_blocks)
                return tn_fail(
                    err, TN_INVALID_ARGUMENT, 0, run->row->name,
                    "blocks[%lld]: expected at least %lld and below %lld, got %lld; "
                    "list the blocks of keys of each block of queries in ascending order",
                    (long long)i, (long long)before + 1, (long long)op->key_blocks,
                    (long long)block);
            before = block;
        }
    }
    return TN_OK;
}

static inline tn_status tn_sparse_check_sizes_(const tn_run *run, int64_t b, tn_error *err)
{
    const tn_attention_sparse_op *op = TN_PARAMS(run->op, attention_sparse);
    for (int64_t n = 0; n < op->key_blocks; n++) {
        const int64_t left = tn_attention_sparse_slots(run->op) - n * op->block_keys;
        const int64_t most = left < op->block_keys ? left : op->block_keys;
        const int64_t size = tn_attention_sparse_size(run, b, n);
        if (size < 0 || size > most)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                           "block_sizes[%lld][%lld]: expected 0 to %lld keys, got %lld",
                           (long long)b, (long long)n, (long long)most, (long long)size);
    }
    return TN_OK;
}

/* The distinct indices of a dimension: 1 if it is broadcast. */
static inline int64_t tn_sparse_distinct_(const tn_layout *layout, int32_t d)
{
    return layout->stride[d] == 0 && layout->shape[d] > 1 ? 1 : layout->shape[d];
}

/* Bytes of the memory that tn_attention_sparse_check_order needs. */
static inline uint64_t tn_attention_sparse_marks(const tn_op *op)
{
    return (uint64_t)TN_PARAMS(op, attention_sparse)->at.keys / 8 + 1;
}

static inline tn_status tn_sparse_check_order_(const tn_run *run, int64_t b, uint8_t *marks,
                                               tn_error *err)
{
    const tn_attention_sparse_op *op = TN_PARAMS(run->op, attention_sparse);
    const int64_t slots = tn_attention_sparse_slots(run->op), tokens = op->at.keys;
    int64_t used = 0;
    for (int64_t slot = 0; slot < slots; slot++) {
        const int64_t token = tn_attention_sparse_token(run, b, slot),
                      block = slot / op->block_keys;
        if (token < 0 || token >= tokens)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                           "order[%lld][%lld]: expected 0 to %lld, a token, got %lld", (long long)b,
                           (long long)slot, (long long)tokens - 1, (long long)token);
        if (slot - block * op->block_keys >= tn_attention_sparse_size(run, b, block))
            continue;
        if (marks[token / 8] >> token % 8 & 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                           "order[%lld][%lld]: expected each token once, got token %lld again",
                           (long long)b, (long long)slot, (long long)token);
        marks[token / 8] = (uint8_t)(marks[token / 8] | 1 << token % 8);
        used++;
    }
    if (used != tokens)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                       "block_sizes[%lld]: expected %lld slots in use, one for each token of q, "
                       "got %lld",
                       (long long)b, (long long)tokens, (long long)used);
    return TN_OK;
}

/* Checks ORDER, if it is present, after tn_attention_sparse_check. `marks` is memory of
 * tn_attention_sparse_marks bytes, whose contents are overwritten. */
static inline tn_status tn_attention_sparse_check_order(const tn_run *run, void *marks,
                                                        tn_error *err)
{
    const tn_layout *order = &run->op->operand[TN_ATTENTION_SPARSE_ORDER];
    const tn_layout *sizes = &run->op->operand[TN_ATTENTION_SPARSE_SIZES];
    tn_status status = TN_OK;
    if (order->dtype == TN_DTYPE_NONE)
        return TN_OK;
    int64_t batch = tn_sparse_distinct_(order, 0);
    if (sizes->dtype != TN_DTYPE_NONE && tn_sparse_distinct_(sizes, 0) > batch)
        batch = tn_sparse_distinct_(sizes, 0);
    for (int64_t b = 0; b < batch && !status; b++) {
        memset(marks, 0, (size_t)tn_attention_sparse_marks(run->op));
        status = tn_sparse_check_order_(run, b, (uint8_t *)marks, err);
    }
    return status;
}

/* Checks the other tables of a run. If this succeeds, what the functions above return is in range,
 * except for tokens. */
static inline tn_status tn_attention_sparse_check(const tn_run *run, tn_error *err)
{
    const tn_layout *starts = &run->op->operand[TN_ATTENTION_SPARSE_STARTS];
    const tn_layout *sizes = &run->op->operand[TN_ATTENTION_SPARSE_SIZES];
    tn_status status = TN_OK;
    if (starts->dtype != TN_DTYPE_NONE) {
        const int64_t heads = tn_sparse_distinct_(starts, 1);
        const int64_t rows = tn_sparse_distinct_(starts, 0) * heads;
        for (int64_t n = 0; n < rows && !status; n++)
            status = tn_sparse_check_lists_(run, n / heads, n % heads, err);
    }
    if (sizes->dtype != TN_DTYPE_NONE) {
        for (int64_t b = 0; b < tn_sparse_distinct_(sizes, 0) && !status; b++)
            status = tn_sparse_check_sizes_(run, b, err);
    }
    return status;
}

TN_END_DECLS

#endif
