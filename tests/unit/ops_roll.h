/* Layouts and numbers by dice, for ops that are written and read again. */
#ifndef TENON_TEST_OPS_ROLL_H
#define TENON_TEST_OPS_ROLL_H

#include "ops_check.h"

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};

#define PICK(list) ((list)[roll(0, (int64_t)(sizeof(list) / sizeof((list)[0])) - 1)])

static inline bool is_narrow(tn_dtype dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16;
}

static inline int64_t roll_size(void)
{
    switch (roll(0, 9)) {
    case 0: return 0;
    case 1:
    case 2: return 1;
    case 3: return roll(1, 1 << 12);
    default: return roll(1, 9);
    }
}

/* Dimensions in any order, either way round, with gaps; `loose` ones may also stand still. */
static inline void roll_strides(tn_layout *layout, bool loose)
{
    int32_t order[TN_OP_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t step = roll(1, 2);
    tni_layout_dense(layout);
    if (roll(0, 2) == 0)
        return;
    for (int32_t i = layout->rank; i-- > 1;) {
        int32_t j = (int32_t)roll(0, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int32_t i = 0; i < layout->rank; i++) {
        int32_t at = order[i];
        layout->stride[at] = roll(0, 3) == 0 ? -step : step;
        step = step * (layout->shape[at] ? layout->shape[at] : 1) + roll(0, 1) * roll(0, 3);
        if (loose && roll(0, 4) == 0)
            layout->stride[at] = 0;
    }
}

static inline void roll_layout(tn_layout *out, tn_dtype dtype, const int64_t *shape, int32_t rank,
                               bool loose)
{
    tni_layout_make(out, dtype, shape, rank);
    roll_strides(out, loose);
    if (roll(0, 3) == 0)
        out->alignment = INT64_C(1) << roll(0, 6);
}

/* An operand that may be broadcast: some of its dimensions are 1, some of the first are not there. */
static inline void roll_smaller(tn_layout *out, tn_dtype dtype, const int64_t *shape, int32_t rank)
{
    int64_t own[TN_OP_RANK_MAX];
    int32_t missing = roll(0, 2) == 0 ? (int32_t)roll(0, rank) : 0;
    for (int32_t i = missing; i < rank; i++)
        own[i - missing] = roll(0, 4) == 0 ? 1 : shape[i];
    roll_layout(out, dtype, own, rank - missing, true);
}

static inline double roll_real(void)
{
    static const double some[] = {0.0, -0.0, 1, -1, 0.1, 1e-5, 1e300, 5e-324, INFINITY};
    uint64_t bits = (uint64_t)roll(0, INT32_MAX) << 33 ^ (uint64_t)roll(0, INT32_MAX);
    double any;
    memcpy(&any, &bits, sizeof any);
    return roll(0, 1) ? PICK(some) : any;
}

#endif
