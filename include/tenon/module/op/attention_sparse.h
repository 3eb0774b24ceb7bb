/* attention-sparse: attention in which each block of queries sees only some blocks of keys.
 *
 * It computes what attention computes (op/attention.h) with a boolean mask in which query i sees
 * key j if block j / block_keys of the keys is listed for block i / block_queries of the queries,
 * and j is visible by position. The rules of attention about excluded keys, NaN and infinity, and
 * about queries that see no key hold here, too. Kernels visit only listed blocks, so the work is
 * proportional to their number.
 *
 * Whatever the order in memory, Q is [batch, heads, queries, size], K [batch, groups, keys, size],
 * V [batch, groups, keys, value size], OUT [batch, heads, queries, value size], LSE [batch, heads,
 * queries]; head h reads group h / (heads / groups). The last block of queries and that of keys may
 * be shorter than the others.
 *
 * The listed blocks are given in one of two ways:
 *
 *   - MASK is bool [batch, heads, query blocks, key blocks], with stride 0 where it is broadcast;
 *     true: listed.
 *   - STARTS is i32 [batch, heads, query blocks + 1], with stride 0 where it is broadcast, and
 *     BLOCKS is i32 [entries]. The blocks of keys listed for query block n are the entries from
 *     STARTS[n] up to, not including, STARTS[n + 1]: ascending numbers, each at most once.
 *
 * SIZES is i32 [batch, key blocks], with stride 0 where it is broadcast: the number of valid keys
 * of each block. Its other keys are excluded for all queries. Absent: all are valid.
 *
 * ORDER is i32 [batch, slots], with stride 0 where it is broadcast: the token of each slot. With it,
 * blocks are blocks of slots, and slot s of the queries is row ORDER[s] of Q, OUT and LSE, slot s of
 * the keys row ORDER[s] of K and V. There are as many queries as keys, block_queries is block_keys,
 * and there is no window. The first SIZES[n] slots of block n are in use, for queries and for keys;
 * without SIZES, all are. Each token is the entry of exactly one slot in use. Entries of other slots
 * are in range, too, so that a kernel may read whole blocks of keys; but nothing is written for them.
 * Absent: slots are tokens.
 *
 * A kernel that computes on the host checks these tables and fails with TN_INVALID_ARGUMENT if they
 * are wrong: module/attention_sparse.h has functions that check and read them. A kernel of a device
 * that runs later cannot fail; whatever the tables contain, it must not read outside of the
 * operands.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_ATTENTION_SPARSE_H
#define TENON_MODULE_OP_ATTENTION_SPARSE_H

#include "attention.h"

TN_BEGIN_DECLS

enum { TN_OP_ATTENTION_SPARSE = 15 };

/* The first five have the indices of attention. */
enum {
    TN_ATTENTION_SPARSE_Q = 0,
    TN_ATTENTION_SPARSE_K = 1,
    TN_ATTENTION_SPARSE_V = 2,
    TN_ATTENTION_SPARSE_OUT = 3,
    TN_ATTENTION_SPARSE_LSE = 4,
    TN_ATTENTION_SPARSE_MASK = 5,
    TN_ATTENTION_SPARSE_STARTS = 6,
    TN_ATTENTION_SPARSE_BLOCKS = 7,
    TN_ATTENTION_SPARSE_SIZES = 8,
    TN_ATTENTION_SPARSE_ORDER = 9,
    TN_ATTENTION_SPARSE_OPERANDS
};

enum {
    TN_ATTENTION_SPARSE_USES_WINDOW = 1 << 0,     /* position restricts the keys, too           */
    TN_ATTENTION_SPARSE_USES_MASK = 1 << 1,       /* MASK is present                            */
    TN_ATTENTION_SPARSE_USES_LISTS = 1 << 2,      /* STARTS and BLOCKS are present              */
    TN_ATTENTION_SPARSE_USES_SIZES = 1 << 3,      /* SIZES is present                           */
    TN_ATTENTION_SPARSE_USES_GROUPS = 1 << 4,     /* several heads share keys and values        */
    TN_ATTENTION_SPARSE_USES_LSE = 1 << 5,        /* LSE is computed                            */
    TN_ATTENTION_SPARSE_USES_VALUE_SIZE = 1 << 6, /* the sizes of values and keys differ        */
    TN_ATTENTION_SPARSE_USES_STRIDES = 1 << 7,   /* last dimension of Q, K, V, OUT not contiguous */
    TN_ATTENTION_SPARSE_USES_OUT_DTYPE = 1 << 8, /* out is f32 and the operands are 16-bit    */
    TN_ATTENTION_SPARSE_USES_ORDER = 1 << 9      /* ORDER is present                          */
};

typedef struct tn_attention_sparse_op {
    tn_attention_op at; /* softcap, dropout, seed, offset, shift, page and backend are 0 */
    int64_t block_queries, block_keys; /* at least 1                                */
    int64_t query_blocks, key_blocks;  /* queries / block_queries, ..., rounded up;
                                          with ORDER, both are of slots             */
} tn_attention_sparse_op;
TN_PARAMS_FIT(tn_attention_sparse_op);

TN_END_DECLS

#endif
