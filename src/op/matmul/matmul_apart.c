/* Checks that products that are computed at once do not overlap in memory: no out of one shares a
 * byte with an operand of another. */
#include "matmul.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "device/tensor/tensor.h"

#include <stdlib.h>

/* The memory of an operand: from `low` to before `high`; all of these bytes if it is dense. */
typedef struct place {
    uintptr_t low;
    uintptr_t high;
    bool dense;
} place;

/* An out. If `pitch` is not 0, it is rows of `width` bytes, `pitch` bytes apart, starting at
 * `at.low`. */
typedef struct target {
    place at;
    uintptr_t reach; /* the largest `high` of this and all previous ones */
    uintptr_t pitch;
    uintptr_t width;
    size_t product;
} target;

typedef struct targets {
    const tn_matmul_args *const *args;
    const tni_problem *const *problems;
    const char *where;
    target *target; /* those with elements, sorted by address */
    size_t count;
} targets;

static const tn_tensor *tensor_of(const tn_matmul_args *args, int32_t operand)
{
    switch (operand) {
    case TN_MATMUL_A: return args->a;
    case TN_MATMUL_B: return args->b;
    case TN_MATMUL_OUT: return args->out;
    case TN_MATMUL_BIAS: return args->bias;
    case TN_MATMUL_SCALE_A: return args->scale_a;
    default: return args->scale_b;
    }
}

/* Finds the memory of an operand, which must be present and have elements. */
static tn_status find_place(const targets *all, size_t product, int32_t operand, place *out,
                            tn_error *err)
{
    const uintptr_t first = (uintptr_t)all->problems[product]->data[operand];
    tni_layout extent = {0};
    tn_status status = tni_tensor_measure(tensor_of(all->args[product], operand), all->where,
                                          tni_matmul_class.operands[operand], &extent, err);
    *out = (place){first - (uintptr_t)-extent.low, first + (uintptr_t)extent.high, extent.dense};
    return status;
}

/* Sets pitch and width, for one matrix with contiguous rows or columns; else pitch is 0. */
static void find_rows(const tn_layout *out, target *to)
{
    const int32_t inner = out->stride[1] == 1 ? 1 : 0;
    const int64_t size = tni_dtype_bytes(out->dtype), step = out->stride[1 - inner];
    to->pitch = to->width = 0;
    if (out->rank != 2 || out->stride[inner] != 1)
        return;
    to->width = (uintptr_t)(out->shape[inner] * size);
    to->pitch = (uintptr_t)((step < 0 ? -step : step) * size);
    to->pitch = to->pitch < to->width ? 0 : to->pitch;
}

static int by_address(const void *a, const void *b)
{
    const target *x = a, *y = b;
    return (x->at.low > y->at.low) - (x->at.low < y->at.low);
}

static tn_status find_targets(targets *all, size_t count, tn_error *err)
{
    bool sorted = true;
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && !status; i++) {
        target *to = &all->target[all->count];
        if (!all->problems[i]->data[TN_MATMUL_OUT])
            continue;
        to->product = i;
        status = find_place(all, i, TN_MATMUL_OUT, &to->at, err);
        find_rows(&all->problems[i]->op.operand[TN_MATMUL_OUT], to);
        sorted = sorted && (all->count == 0 || to[-1].at.low <= to->at.low);
        all->count++;
    }
    if (!sorted && !status)
        qsort(all->target, all->count, sizeof *all->target, by_address);
    for (size_t i = 0; i < all->count; i++) {
        target *it = &all->target[i];
        it->reach = i > 0 && it[-1].reach > it->at.high ? it[-1].reach : it->at.high;
    }
    return status;
}

/* Fails with TN_INVALID_ARGUMENT if an operand of a product shares a byte with an out of another
 * one. */
static tn_status check_pair(const targets *all, size_t product, int32_t operand, const place *at,
                            const target *to, tn_error *err)
{
    const tn_tensor *x = tensor_of(all->args[product], operand), *y = all->args[to->product]->out;
    const char *name = tni_matmul_class.operands[operand];
    if (to->product == product || at->high <= to->at.low || to->at.high <= at->low ||
        (!(at->dense && to->at.dense) &&
         !tni_tensors_overlap(x, tni_dtype_bytes(x->dtype), y, tni_dtype_bytes(y->dtype))))
        return TN_OK;
    if (operand != TN_MATMUL_OUT && product < to->product)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, all->where,
                       "groups[%zu]: out shares memory with %s of groups[%zu], which is read while "
                       "it is written",
                       to->product, name, product);
    const size_t late = product > to->product ? product : to->product;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, all->where,
                   "groups[%zu]: %s shares memory with out of groups[%zu], which is written %s",
                   late, name, late == product ? to->product : product,
                   operand == TN_MATMUL_OUT ? "too" : "while it is read");
}

/* Checks the operand against the outs before index `end` whose memory may reach it. */
static tn_status check_before(const targets *all, size_t product, int32_t operand, const place *at,
                              size_t end, tn_error *err)
{
    tn_status status = TN_OK;
    while (!status && end > 0 && all->target[end - 1].reach > at->low)
        status = check_pair(all, product, operand, at, &all->target[--end], err);
    return status;
}

/* Whether `it` follows `last` in every row of one matrix, whose first columns are in `first`. */
static bool is_next_columns(const target *first, const target *last, const target *it)
{
    return it->pitch > 0 && it->pitch == first->pitch && it->at.low - last->at.low >= last->width &&
           it->at.low + it->width - first->at.low <= it->pitch;
}

/* Checks each out against the outs before it. Columns of one matrix interleave in memory, so they are
 * recognised and not checked in pairs. */
static tn_status check_targets(const targets *all, tn_error *err)
{
    const target *first = all->target;
    bool columns = true; /* all from `first` on */
    tn_status status = TN_OK;
    for (size_t i = 1; i < all->count && !status; i++) {
        const target *it = &all->target[i];
        if (it->at.low >= it[-1].reach) {
            first = it;
            columns = true;
            continue;
        }
        columns = columns && is_next_columns(first, it - 1, it);
        if (!columns)
            status = check_before(all, it->product, TN_MATMUL_OUT, &it->at, i, err);
    }
    return status;
}

/* Returns how many of the outs begin before `high`. */
static size_t count_before(const targets *all, uintptr_t high)
{
    size_t from = 0, to = all->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (all->target[middle].at.low < high)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static tn_status check_inputs(const targets *all, size_t product, tn_error *err)
{
    const uintptr_t low = all->target[0].at.low, high = all->target[all->count - 1].reach;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < TN_MATMUL_OPERANDS && !status; i++) {
        place at;
        if (i == TN_MATMUL_OUT || !all->problems[product]->data[i])
            continue;
        status = find_place(all, product, i, &at, err);
        if (!status && at.low < high && at.high > low)
            status = check_before(all, product, i, &at, count_before(all, at.high), err);
    }
    return status;
}

tn_status tni_matmul_apart(const tn_matmul_args *const *args, const tni_problem *const *problems,
                           size_t count, const char *where, tn_error *err)
{
    targets all = {.args = args, .problems = problems, .where = where};
    if (count < 2)
        return TN_OK;
    all.target = tni_alloc_zeroed(count, sizeof *all.target);
    if (!all.target)
        return tni_no_memory(err, where, "the places of the groups");
    tn_status status = find_targets(&all, count, err);
    if (!status)
        status = check_targets(&all, err);
    for (size_t i = 0; i < count && !status && all.count > 0; i++)
        status = check_inputs(&all, i, err);
    tni_release(all.target);
    return status;
}
