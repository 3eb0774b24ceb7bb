/* Ops of attention by dice, and what they are by definition: loops in long double that know nothing of the
 * kernels. Dropout's numbers are those of tn_random_fill_uniform. */
#ifndef TENON_TEST_KERNELS_ATTENTION_MAKE_H
#define TENON_TEST_KERNELS_ATTENTION_MAKE_H

#include "tenon/module/attention.h"
#include "tenon/module/op/attention_backward.h"
#include "tenon/parallel.h"
#include "tenon/random.h"

#include "make.h"

#include <stdbool.h>

/* Starts from the seed of this run (test_seed). */
static inline void dice_begin(void)
{
    dice_state = test_seed();
}

/* The same numbers in every run, where it is the greatest of some errors that counts: that of two ways to compute a
 * row differs by chance, the more the fewer rows there are. Gives the state to go on with after that test. */
static inline uint64_t dice_hold(void)
{
    const uint64_t before = dice_state;
    dice_state = UINT64_C(88172645463325252);
    return before;
}

/* An op with its operands; those that are absent have no memory. */
typedef struct call {
    tn_op op;
    operand o[TN_OP_OPERANDS_MAX];
} call;

/* One head of one sequence: where it lies, from the tables alone. */
typedef struct head {
    int64_t b, h, g;
    int64_t batch, first_query, first_key, queries, keys;
} head;

static inline bool has(const call *c, int32_t which)
{
    return c->op.kind == TN_OP_ATTENTION || which < TN_ATTENTION_BACKWARD_DOUT
               ? c->o[which].layout.dtype != 0
               : false;
}

static inline void call_drop(call *c)
{
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        drop(&c->o[i]);
}

static inline tn_status call_run(call *c, int32_t threads, tn_error *err)
{
    const operand *operands[TN_OP_OPERANDS_MAX];
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        operands[i] = c->o[i].layout.dtype ? &c->o[i] : NULL;
    return compute_or_not(&c->op, operands, threads, err);
}

/* Moves the seed and offset of the parameters to SEED, and leaves others in their place. */
static inline void put_seed_in_memory(call *c)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c->op, attention);
    const uint64_t numbers[] = {at->seed, at->offset};
    c->o[TN_ATTENTION_SEED] = make(TN_I64, 1, (const int64_t[]){2}, DENSE);
    memcpy(c->o[TN_ATTENTION_SEED].first, numbers, sizeof numbers);
    at->seed += 1;
    at->offset += 1;
}

static inline void call_compute(call *c, int32_t threads)
{
    tn_error err;
    if (call_run(c, threads, &err))
        fail_msg("%s", err.message);
}

/* An op of attention without options: dense, all keys seen. */
static inline call call_of(tn_dtype dtype, int64_t batch, int64_t heads, int64_t groups,
                           int64_t queries, int64_t keys, int64_t size, int64_t value_size)
{
    call c = {.op = {.struct_size = sizeof c.op,
                     .kind = TN_OP_ATTENTION,
                     .count = TN_ATTENTION_OPERANDS}};
    *TN_PARAMS_MUTABLE(&c.op, attention) = (tn_attention_op){.batch = batch,
                                                             .heads = heads,
                                                             .groups = groups,
                                                             .queries = queries,
                                                             .keys = keys,
                                                             .size = size,
                                                             .value_size = value_size,
                                                             .left = -1,
                                                             .right = -1,
                                                             .scale = 0.5};
    const int64_t q[] = {batch, heads, queries, size}, k[] = {batch, groups, keys, size};
    const int64_t v[] = {batch, groups, keys, value_size};
    const int64_t out[] = {batch, heads, queries, value_size};
    c.o[TN_ATTENTION_Q] = make_random(dtype, 4, q, DENSE);
    c.o[TN_ATTENTION_K] = make_random(dtype, 4, k, DENSE);
    c.o[TN_ATTENTION_V] = make_random(dtype, 4, v, DENSE);
    c.o[TN_ATTENTION_OUT] = make_poisoned(dtype, 4, out, DENSE);
    c.o[TN_ATTENTION_LSE] = make_poisoned(dtype == TN_F64 ? TN_F64 : TN_F32, 3, out, DENSE);
    return c;
}

/* Another layout of the same shape in the place of an operand. */
static inline void call_lay(call *c, int32_t index, int kind)
{
    const tn_layout old = c->o[index].layout;
    bool written = index == TN_ATTENTION_OUT || index == TN_ATTENTION_LSE;
    drop(&c->o[index]);
    c->o[index] = written ? make_poisoned(old.dtype, old.rank, old.shape, kind)
                          : make_random(old.dtype, old.rank, old.shape, kind);
}

static inline void put_i32(operand *table, int64_t index, int64_t value)
{
    int32_t number = (int32_t)value;
    memcpy(element_at(table, index), &number, sizeof number);
}

static inline int64_t get_i32(const operand *table, int64_t index)
{
    return (int64_t)load(TN_I32, element_at(table, index), 0);
}

static inline void put_number(operand *o, int64_t index, double value)
{
    char *at = element_at(o, index);
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (o->layout.dtype == TN_F64)
        memcpy(at, &value, sizeof value);
    else if (o->layout.dtype == TN_F32)
        memcpy(at, &narrow, sizeof narrow);
    else if (o->layout.dtype == TN_BF16)
        store_bits(at, 2, bits >> 16);
    else if (is_inf(value)) /* of f16, and a NaN; others are not asked for */
        store_bits(at, 2, value < 0 ? 0xFC00 : 0x7C00);
    else
        store_bits(at, 2, 0x7E00);
}

static inline head head_of(const call *c, int64_t b, int64_t h)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    head it = {.b = b,
               .h = h,
               .g = h * at->groups / at->heads,
               .batch = b,
               .queries = at->queries,
               .keys = at->keys};
    if (has(c, TN_ATTENTION_STARTS_Q)) {
        it.batch = 0;
        it.first_query = get_i32(&c->o[TN_ATTENTION_STARTS_Q], b);
        it.queries = get_i32(&c->o[TN_ATTENTION_STARTS_Q], b + 1) - it.first_query;
    }
    if (has(c, TN_ATTENTION_STARTS_K)) {
        it.first_key = get_i32(&c->o[TN_ATTENTION_STARTS_K], b);
        it.keys = get_i32(&c->o[TN_ATTENTION_STARTS_K], b + 1) - it.first_key;
    }
    if (has(c, TN_ATTENTION_LENGTHS))
        it.keys = get_i32(&c->o[TN_ATTENTION_LENGTHS], b);
    return it;
}

/* Element d of query i's row, and of key j's. */
static inline int64_t query_index(const call *c, int32_t which, const head *at, int64_t i,
                                  int64_t d)
{
    const int64_t *shape = c->o[which].layout.shape;
    return ((at->batch * shape[1] + at->h) * shape[2] + at->first_query + i) *
               (c->o[which].layout.rank == 4 ? shape[3] : 1) +
           d;
}

static inline int64_t key_index(const call *c, int32_t which, const head *at, int64_t j, int64_t d)
{
    const int64_t *shape = c->o[which].layout.shape, page = TN_PARAMS(&c->op, attention)->page;
    int64_t batch = at->batch, row = at->first_key + j;
    if (page) {
        batch = get_i32(&c->o[TN_ATTENTION_PAGES],
                        at->b * c->o[TN_ATTENTION_PAGES].layout.shape[1] + j / page);
        row = j % page;
    }
    return ((batch * shape[1] + at->g) * shape[2] + row) * shape[3] + d;
}

static inline long double query_value(const call *c, int32_t which, const head *at, int64_t i,
                                      int64_t d)
{
    return value_at(&c->o[which], query_index(c, which, at, i, d), 0);
}

static inline long double key_value(const call *c, int32_t which, const head *at, int64_t j,
                                    int64_t d)
{
    return value_at(&c->o[which], key_index(c, which, at, j, d), 0);
}

/* By the words of module/op.h. */
static inline bool place_is_seen(const tn_attention_op *at, int64_t i, int64_t j, int64_t queries,
                                 int64_t keys)
{
    int64_t d = i + at->shift;
    if (at->corner == TN_CORNER_BOTTOM_RIGHT)
        d += keys - queries;
    return j >= 0 && j < keys && (at->right == -1 || j <= d + at->right) &&
           (at->left == -1 || j >= d - at->left);
}

static inline long double mask_value(const call *c, const head *at, int64_t i, int64_t j)
{
    const int64_t *shape = c->o[TN_ATTENTION_MASK].layout.shape;
    return value_at(&c->o[TN_ATTENTION_MASK],
                    ((at->b * shape[1] + at->h) * shape[2] + i) * shape[3] + j, 0);
}

static inline bool is_seen(const call *c, const head *at, int64_t i, int64_t j)
{
    if (!place_is_seen(TN_PARAMS(&c->op, attention), i, j, at->queries, at->keys))
        return false;
    if (!has(c, TN_ATTENTION_MASK))
        return true;
    long double value = mask_value(c, at, i, j);
    return c->o[TN_ATTENTION_MASK].layout.dtype == TN_BOOL ? value != 0
                                                           : value != -(long double)INFINITY;
}

/* A score; the product before softcap and mask, and what that would be if no term of it were below 0, by which its
 * roundings go. */
typedef struct score_parts {
    long double value, product, terms;
} score_parts;

/* That of a pair, whose rows are given in doubles. */
static inline score_parts score_of(const call *c, const head *at, int64_t i, int64_t j,
                                   const double *q, const double *k)
{
    const tn_attention_op *op = TN_PARAMS(&c->op, attention);
    const long double scale = op->scale, cap = op->softcap;
    score_parts of = {0, 0, 0};
    for (int64_t d = 0; d < op->size; d++) {
        const long double term = (long double)q[d] * k[d];
        of.product += term;
        of.terms += fabsl(term);
    }
    of.product *= scale;
    of.terms *= fabsl(scale);
    of.value = cap > 0 ? cap * tanhl(of.product / cap) : of.product;
    if (has(c, TN_ATTENTION_MASK) && c->o[TN_ATTENTION_MASK].layout.dtype != TN_BOOL)
        of.value += mask_value(c, at, i, j);
    return of;
}

/* What dropout multiplies weights by: numbers of all places, or NULL without dropout. */
static inline float *dropout_numbers(const tn_attention_op *at)
{
    int64_t count = at->batch * at->heads * at->queries * at->keys;
    float *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    tn_generator_state state = {
        .struct_size = sizeof state, .seed = at->seed, .offset = at->offset};
    tn_generator *generator;
    assert_non_null(numbers);
    assert_int_equal(tn_generator_create(at->seed, &generator, NULL), TN_OK);
    assert_int_equal(tn_generator_state_set(generator, &state, NULL), TN_OK);
    assert_int_equal(tn_random_fill_uniform(generator, TN_F32, numbers, count, NULL), TN_OK);
    tn_generator_release(generator);
    return numbers;
}

static inline long double kept(const tn_attention_op *at, const float *numbers, const head *in,
                               int64_t i, int64_t j)
{
    int64_t place = ((in->b * at->heads + in->h) * at->queries + i) * at->keys + j;
    return (double)numbers[place] >= at->dropout ? 1 / (1 - (long double)at->dropout) : 0;
}

/* Options by dice: windows, masks, numbers. */
static inline void roll_window(tn_attention_op *at)
{
    if (dice(3) == 0)
        return;
    at->left = (int64_t)dice(8) - 1;
    at->right = (int64_t)dice(8) - 1;
    at->shift = dice(3) ? 0 : (int64_t)dice(9) - 4;
    at->corner = (int32_t)dice(2);
}

static inline void roll_mask(call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    const tn_dtype q = c->o[TN_ATTENTION_Q].layout.dtype;
    const tn_dtype dtypes[] = {TN_BOOL, q, TN_F32};
    operand *mask = &c->o[TN_ATTENTION_MASK];
    if (dice(2) == 0)
        return;
    *mask = make_random(dtypes[dice(3)], 4, shape, (int)dice(LAYOUTS));
    for (int64_t i = 0; i < elements_of(&mask->layout) && mask->layout.dtype != TN_BOOL; i++) {
        if (dice(4) == 0)
            put_number(mask, i, -(double)INFINITY);
    }
}

/* What queries see: all, causal from either corner, a window, and what masks of two kinds let them. */
enum { MASKS = 6 };
static inline void put_mask(call *c, int which)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c->op, attention);
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    at->right = which == 0 || which > 3 ? -1 : which == 3 ? 17 : 0;
    at->left = which == 3 ? 40 : -1;
    at->corner = which == 2 ? TN_CORNER_BOTTOM_RIGHT : TN_CORNER_TOP_LEFT;
    if (which > 3)
        c->o[TN_ATTENTION_MASK] = make_random(which == 4 ? TN_BOOL : TN_F32, 4, shape, DENSE);
}

static inline void roll_numbers(tn_attention_op *at)
{
    at->scale = dice(3) ? 1 / sqrt((double)at->size) : (double)dice(5) - 2;
    at->softcap = dice(3) ? 0 : 0.5 + (double)dice(4);
    at->dropout = dice(3) ? 0 : (double)dice(9) / 10;
    at->seed = dice(UINT64_C(1) << 40) << 24;
    at->offset = dice(2) ? dice(100) : UINT64_MAX - dice(3);
}

/* Sequences one behind the other, with some of both sides that no one has. */
static inline void roll_packed(call *c, bool paged)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c->op, attention);
    const int64_t starts[] = {at->batch + 1};
    int64_t q = (int64_t)dice(3), k = (int64_t)dice(3);
    operand *of_q = &c->o[TN_ATTENTION_STARTS_Q], *of_k = &c->o[TN_ATTENTION_STARTS_K];
    *of_q = make(TN_I32, 1, starts, SPREAD);
    if (!paged)
        *of_k = make(TN_I32, 1, starts, OFF_BY_ONE);
    put_i32(of_q, 0, q);
    for (int64_t b = 1; b <= at->batch; b++)
        put_i32(of_q, b, q += (int64_t)dice((uint64_t)at->queries + 1));
    for (int64_t b = 0; b <= at->batch && !paged; b++)
        put_i32(of_k, b, k += b ? (int64_t)dice((uint64_t)at->keys + 1) : 0);
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++) {
        bool of_keys = o == TN_ATTENTION_K || o == TN_ATTENTION_V;
        if (!c->o[o].memory || (of_keys && paged))
            continue;
        c->o[o].layout.shape[0] = 1;
        c->o[o].layout.shape[2] = (of_keys ? k : q) + (int64_t)dice(3) + 1;
    }
}

/* K and V in pages, more of them than are named. */
static inline void roll_pages(call *c)
{
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c->op, attention);
    const int64_t each = 1 + (int64_t)dice(4), pool = at->batch * each + 2;
    const int64_t shape[] = {at->batch, each};
    operand *pages = &c->o[TN_ATTENTION_PAGES];
    at->page = 1 + (int64_t)dice(7);
    at->keys = each * at->page;
    *pages = make(TN_I32, 2, shape, TURNED);
    for (int64_t n = 0; n < at->batch * each; n++)
        put_i32(pages, n, (n * 7 + 3) % pool);
    for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
        c->o[o].layout.shape[0] = pool;
        c->o[o].layout.shape[2] = at->page;
    }
}

static inline void roll_lengths(call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    operand *lengths = &c->o[TN_ATTENTION_LENGTHS];
    *lengths = make(TN_I32, 1, &at->batch, OFF_BY_ONE);
    for (int64_t b = 0; b < at->batch; b++) {
        int64_t most = at->keys;
        if (has(c, TN_ATTENTION_STARTS_K))
            most = get_i32(&c->o[TN_ATTENTION_STARTS_K], b + 1) -
                   get_i32(&c->o[TN_ATTENTION_STARTS_K], b);
        put_i32(lengths, b, (int64_t)dice((uint64_t)most + 1));
    }
}

/* As it was made. */
static inline void assert_untouched(const call *c)
{
    for (int64_t e = 0; e < elements_of(&c->o[TN_ATTENTION_OUT].layout); e++)
        assert_true(is_nan(value_at(&c->o[TN_ATTENTION_OUT], e, 0)));
}

#endif
