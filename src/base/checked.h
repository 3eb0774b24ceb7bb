/* Arithmetic with overflow checks. Each function returns true and sets *out, or returns false and
 * leaves it unchanged. Small factors are multiplied without a division, which would dominate the
 * cost. */
#ifndef TNI_BASE_CHECKED_H
#define TNI_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tni_add_size(size_t a, size_t b, size_t *out)
{
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}

static inline bool tni_mul_size(size_t a, size_t b, size_t *out)
{
    const size_t half = (size_t)1 << (sizeof a * 4); /* smaller factors cannot overflow */
    if ((a >= half || b >= half) && a != 0 && b > SIZE_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static inline bool tni_add_i64(int64_t a, int64_t b, int64_t *out)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b))
        return false;
    *out = a + b;
    return true;
}

static inline bool tni_mul_i64(int64_t a, int64_t b, int64_t *out)
{
#if defined(__GNUC__) && !defined(__clang_analyzer__) /* the analyzer does not know the built-in */
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
#else
    bool small = a >= INT32_MIN && a <= INT32_MAX && b >= INT32_MIN && b <= INT32_MAX;
    if (!small && a != 0 && b != 0) {
        if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN))
            return false;
        if (a != -1 && b != -1 && (a > 0) == (b > 0) &&
            (a > 0 ? a > INT64_MAX / b : a < INT64_MAX / b))
            return false;
        if ((a > 0) != (b > 0) && a != -1 && b != -1 &&
            (a > 0 ? b < INT64_MIN / a : a < INT64_MIN / b))
            return false;
    }
    *out = a * b;
#endif
    return true;
}

/* Rounds `size` up to a multiple of `align`, a power of two. */
static inline bool tni_align_size(size_t size, size_t align, size_t *out)
{
    size_t sum;
    if (!tni_add_size(size, align - 1, &sum))
        return false;
    *out = sum & ~(align - 1);
    return true;
}

#endif
