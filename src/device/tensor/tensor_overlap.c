/* Whether two layouts share a byte, or two elements of one layout share an address. Both are solved
 * by searching for a sum of steps within an interval. */
#include "tensor.h"

#include "base/checked.h"

#include <inttypes.h>

/* Steps to try before the answer is left open. */
enum { BUDGET = 1 << 12, TERMS = 2 * TN_TENSOR_NDIM_MAX };

/* A multiple of a positive step, from 0 to `count` times. */
typedef struct term {
    int64_t step;
    int64_t count;
} term;

/* Is there a sum of all terms in [low, high]? The terms are sorted, greatest step first. */
typedef struct question {
    term terms[TERMS];
    int64_t rest[TERMS + 1]; /* greatest sum of this term and those after it */
    int32_t count;
    int32_t budget;
    int64_t low;
    int64_t high;
} question;

/* Merges equal steps into one term. */
static bool add_term(question *q, int64_t step, int64_t count)
{
    int32_t at = 0;
    if (step == 0)
        return true;
    while (at < q->count && q->terms[at].step > step)
        at++;
    if (at < q->count && q->terms[at].step == step)
        return tni_add_i64(q->terms[at].count, count, &q->terms[at].count);
    memmove(&q->terms[at + 1], &q->terms[at], (size_t)(q->count - at) * sizeof q->terms[0]);
    q->terms[at] = (term){step, count};
    q->count++;
    return true;
}

/* A negative step becomes a positive one that starts from the far end; this shifts the interval. */
static bool add_step(question *q, int64_t step, int64_t count)
{
    int64_t reach;
    if (step >= 0)
        return add_term(q, step, count);
    return tni_mul_i64(-step, count, &reach) && tni_add_i64(q->low, reach, &q->low) &&
           tni_add_i64(q->high, reach, &q->high) && add_term(q, -step, count);
}

static bool sum_up(question *q)
{
    q->rest[q->count] = 0;
    for (int32_t i = q->count; i-- > 0;) {
        int64_t reach;
        if (!tni_mul_i64(q->terms[i].step, q->terms[i].count, &reach) ||
            !tni_add_i64(q->rest[i + 1], reach, &q->rest[i]))
            return false;
    }
    return true;
}

/* The sides overlap if to + (steps of to) - from - (steps of from) is in (-to_bytes, from_bytes).
 * Sets that interval; the caller adds the steps. */
static bool set_interval(question *q, const void *to_at, int64_t to_bytes, const void *from_at,
                         int64_t from_bytes)
{
    uintptr_t to = (uintptr_t)to_at, from = (uintptr_t)from_at;
    uintptr_t apart = to > from ? to - from : from - to;
    q->budget = BUDGET;
    q->count = 0;
    if (apart > INT64_MAX)
        return false;
    int64_t distance = to > from ? -(int64_t)apart : (int64_t)apart;
    return tni_add_i64(distance, 1 - to_bytes, &q->low) &&
           tni_add_i64(distance, from_bytes - 1, &q->high);
}

static bool rows_overlap(const tni_walk *walk, question *q)
{
    if (!set_interval(q, walk->to, walk->bytes, walk->from, walk->bytes))
        return false;
    for (int32_t i = 0; i < walk->ndim; i++) {
        if (!add_step(q, walk->to_step[i], walk->count[i] - 1) ||
            !add_step(q, -walk->from_step[i], walk->count[i] - 1))
            return false;
    }
    return sum_up(q);
}

/* Uses the terms from `at` on. */
static bool sum_reaches(question *q, int32_t at, int64_t low, int64_t high)
{
    if (high < 0 || low > q->rest[at])
        return false;
    if (low <= 0)
        return true;
    const term *t = &q->terms[at];
    int64_t least = low - q->rest[at + 1], most = high / t->step;
    int64_t first = least <= 0 ? 0 : (least - 1) / t->step + 1;
    int64_t last = most < t->count ? most : t->count;
    for (int64_t i = first; i <= last && q->budget > 0; i++) {
        q->budget--;
        if (sum_reaches(q, at + 1, low - i * t->step, high - i * t->step))
            return true;
    }
    return false;
}

/* The absolute value of a stride, for a dimension with more than one element: a measured layout has no
 * INT64_MIN there. A dimension with one element may have any stride, INT64_MIN too. */
static int64_t distance_of(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Whether two elements share an address that differ in dimension `first` by at least one step, and
 * in later dimensions by any number. Negative differences start from the far end, so that they
 * count from 0. */
static bool meets_itself(const int64_t *shape, const int64_t *strides, int32_t ndim, int32_t first)
{
    question q = {.budget = BUDGET};
    if (shape[first] < 2)
        return false;
    const int64_t step = distance_of(strides[first]);
    if (!add_term(&q, step, shape[first] - 2))
        return false;
    for (int32_t i = first + 1; i < ndim; i++) {
        if (shape[i] < 2)
            continue;
        const int64_t other = distance_of(strides[i]);
        int64_t reach;
        if (!tni_mul_i64(shape[i] - 1, other, &reach) || !tni_add_i64(q.low, reach, &q.low) ||
            !add_term(&q, other, 2 * (shape[i] - 1)))
            return false;
    }
    q.low -= step;
    return q.low >= 0 && sum_up(&q) && sum_reaches(&q, 0, q.low, q.low);
}

bool tni_strides_overlap(const int64_t *shape, const int64_t *strides, int32_t ndim)
{
    for (int32_t i = 0; i < ndim; i++) {
        if (meets_itself(shape, strides, ndim, i))
            return true;
    }
    return false;
}

tn_status tni_tensor_separate(const tn_tensor *tensor, const char *where, const char *name,
                              tn_error *err)
{
    for (int32_t i = 0; tensor->strides && i < tensor->ndim; i++) {
        if (tensor->strides[i] == 0 && tensor->shape[i] > 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s: dimension %d has the stride 0, so its %" PRId64
                           " elements share one address; such a tensor can only be read",
                           name, (int)i, tensor->shape[i]);
    }
    if (tensor->strides && tni_strides_overlap(tensor->shape, tensor->strides, tensor->ndim))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "%s: several elements have the same address because of its strides; such a tensor "
            "can only be read",
            name);
    return TN_OK;
}

bool tni_walk_overlaps(const tni_walk *walk)
{
    question q;
    return rows_overlap(walk, &q) && sum_reaches(&q, 0, q.low, q.high);
}

/* Adds the steps of one tensor, multiplied by `sign`. */
static bool add_tensor(question *q, const tn_tensor *tensor, int64_t size, int64_t sign)
{
    int64_t dense[TN_TENSOR_NDIM_MAX];
    const int64_t *strides = tensor->strides;
    if (!strides) {
        tni_strides_dense(tensor->shape, tensor->ndim, dense);
        strides = dense;
    }
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] > 1 && !add_step(q, sign * size * strides[i], tensor->shape[i] - 1))
            return false;
    }
    return true;
}

bool tni_tensors_overlap(const tn_tensor *a, int64_t a_size, const tn_tensor *b, int64_t b_size)
{
    question q;
    return set_interval(&q, tni_tensor_first(a), a_size, tni_tensor_first(b), b_size) &&
           add_tensor(&q, a, a_size, 1) && add_tensor(&q, b, b_size, -1) && sum_up(&q) &&
           sum_reaches(&q, 0, q.low, q.high);
}
