/* Calls of attention whose K and V hold NaNs and infinities, at keys that rows see and at keys that they do not. */
#ifndef TENON_TEST_KERNELS_NONFINITE_MAKE_H
#define TENON_TEST_KERNELS_NONFINITE_MAKE_H

#include "cpu_attention_make.h"

static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

enum { MOST_KEYS = 600 };

/* Everything that excludes a key: its place (MASKS of attention_make.h has the list), the length of its sequence, a
 * mask. `way` is one of WAYS. */
enum { WAYS = 2 * MASKS };
static inline call excluding_call(tn_dtype dtype, int64_t batch, int64_t queries, int64_t keys,
                                  int way)
{
    const bool whole = dice(2); /* whole vectors lie in place */
    call c = call_of(dtype, batch, 2, 1 + (int64_t)dice(2), queries, keys, whole ? 16 : 17,
                     whole ? 32 : 33);
    operand *mask = &c.o[TN_ATTENTION_MASK];
    put_mask(&c, way % MASKS);
    if (way % MASKS == 3) {
        TN_PARAMS_MUTABLE(&c.op, attention)->left = (int64_t)dice(20);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = (int64_t)dice(9);
    }
    for (int64_t e = 0; mask->layout.dtype == TN_F32 && e < elements_of(&mask->layout); e++) {
        if (dice(3) == 0)
            put_number(mask, e, -(double)INFINITY);
    }
    TN_PARAMS_MUTABLE(&c.op, attention)->scale = 0.25;
    if (way >= MASKS && c.op.kind == TN_OP_ATTENTION)
        roll_lengths(&c);
    return c;
}

/* What a test puts where numbers were. */
typedef struct oddity {
    double value;
    int64_t keys; /* how many have it */
    bool in_k, in_v;
} oddity;

static inline oddity roll_oddity(void)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const int where = 1 + (int)dice(3);
    return (oddity){values[dice(3)], 1 + (int64_t)dice(3), where & 1, where & 2};
}

/* Puts it in rows of K and V of every sequence and group: in one element of a row, or in all. */
static inline void put_oddity(call *c, const oddity *odd)
{
    for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
        const int64_t *shape = c->o[o].layout.shape;
        for (int64_t n = 0; n < shape[0] * shape[1] * odd->keys; n++) {
            const int64_t group = n % (shape[0] * shape[1]), whole = (int64_t)dice(2);
            const int64_t key = (int64_t)dice((uint64_t)shape[2]);
            const int64_t element = (int64_t)dice((uint64_t)shape[3]);
            for (int64_t e = 0; e < shape[3]; e++) {
                if ((o == TN_ATTENTION_K ? odd->in_k : odd->in_v) && (whole || e == element))
                    put_number(&c->o[o], (group * shape[2] + key) * shape[3] + e, odd->value);
            }
        }
    }
}

static inline bool is_number(long double x)
{
    return !is_nan(x) && !is_inf(x);
}

/* The same call with 0 in the place of what is no number, in memory of its own. */
static inline call cleaned(const call *c, const int32_t *operands, int count)
{
    call clean = *c;
    for (int n = 0; n < count; n++) {
        const tn_layout like = c->o[operands[n]].layout;
        operand *o = &clean.o[operands[n]];
        *o = make(like.dtype, like.rank, like.shape, DENSE);
        for (int64_t e = 0; e < elements_of(&like); e++) {
            if (is_number(value_at(&c->o[operands[n]], e, 0)))
                memcpy(element_at(o, e), element_at(&c->o[operands[n]], e),
                       (size_t)bytes_of(like.dtype));
            else
                memset(element_at(o, e), 0, (size_t)bytes_of(like.dtype));
        }
    }
    return clean;
}

/* Whether two results are of one kind: both NaN, the same infinity, or numbers. */
static inline bool same_kind(long double x, long double y)
{
    return is_nan(y) ? is_nan(x) : is_inf(y) ? x == y : is_number(x);
}

/* Weights that are kept in 16 bits may be 0 where those of the reference are not, so that an infinity becomes a NaN. */
static inline void assert_kinds(const operand *found, const operand *want, int32_t which,
                                const tn_kernel_row *row)
{
    const bool narrow = row->numerics & TN_NUM_REDUCED_REDUCTION;
    for (int64_t e = 0; e < elements_of(&want->layout); e++) {
        const long double x = value_at(found, e, 0), y = value_at(want, e, 0);
        if (!same_kind(x, y) && !(narrow && is_inf(y) && is_nan(x)))
            fail_msg("%s: operand %d, element %lld: %Lg where the reference has %Lg", row->name,
                     which, (long long)e, x, y);
    }
}

#endif
