/* Orders of contraction: their cost, and which search finds them. */
#include "einsum.h"

#include "base/alloc.h"
#include "base/words.h"
#include "settings/context.h"

#include <string.h>

static const char where[] = "tn_einsum";

tn_status tni_einsum_left_init(const tni_einsum *sum, tni_einsum_left *out, tn_error *err)
{
    const size_t words = (size_t)sum->words, terms = (size_t)sum->terms;
    *out = (tni_einsum_left){.sum = sum, .next = sum->terms};
    out->uses = tni_alloc_zeroed((size_t)sum->indices + 1, sizeof *out->uses);
    out->sets = tni_alloc_zeroed(2 * terms * words, sizeof *out->sets);
    if (!out->uses || !out->sets) {
        tni_einsum_left_release(out);
        return tni_einsum_no_memory(err, "the operands that are left");
    }
    memcpy(out->sets, sum->sets, terms * words * sizeof *out->sets);
    for (int32_t term = 0; term <= sum->terms; term++) {
        const uint64_t *set = tni_einsum_set(sum, term);
        for (int32_t i = 0; i < sum->indices; i++)
            out->uses[i] += (int32_t)(set[i / 64] >> i % 64 & 1);
    }
    return TN_OK;
}

void tni_einsum_left_release(tni_einsum_left *left)
{
    tni_release(left->uses);
    tni_release(left->sets);
    *left = (tni_einsum_left){0};
}

double tni_einsum_left_pair(tni_einsum_left *left, int32_t a, int32_t b)
{
    const tni_einsum *sum = left->sum;
    const size_t words = (size_t)sum->words;
    const uint64_t *of_a = left->sets + (size_t)a * words, *of_b = left->sets + (size_t)b * words;
    uint64_t *result = left->sets + (size_t)left->next++ * words;
    double values = 1;
    bool summed = false;
    for (int32_t i = 0; i < sum->indices; i++) {
        const uint64_t bit = UINT64_C(1) << i % 64;
        const int32_t in_a = (of_a[i / 64] & bit) != 0, in_b = (of_b[i / 64] & bit) != 0;
        if (!in_a && !in_b)
            continue;
        values *= (double)sum->size[i];
        left->uses[i] -= in_a + in_b;
        if (left->uses[i] > 0) {
            result[i / 64] |= bit;
            left->uses[i]++;
        } else
            summed = true;
    }
    return summed ? 2 * values : values;
}

tn_status tni_einsum_cost(const tni_einsum *sum, const tni_einsum_order *order, double *out,
                          tn_error *err)
{
    tni_einsum_left left;
    tn_status status = tni_einsum_left_init(sum, &left, err);
    if (status)
        return status;
    *out = 0;
    for (int32_t i = 0; i < order->count; i++)
        *out += tni_einsum_left_pair(&left, order->pairs[i][0], order->pairs[i][1]);
    tni_einsum_left_release(&left);
    return TN_OK;
}

void tni_einsum_order_release(tni_einsum_order *order)
{
    tni_release(order->pairs);
    *order = (tni_einsum_order){0};
}

static void order_from_left(tni_einsum_order *order)
{
    for (int32_t i = 0; i < order->count; i++) {
        order->pairs[i][0] = i ? order->count + i : 0;
        order->pairs[i][1] = i + 1;
    }
}

/* Converts args->path, whose positions count the terms that are left. */
static tn_status order_given(const tn_einsum_args *args, tni_einsum_order *order, tn_error *err)
{
    if (args->path_count != order->count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "path_count: expected %d pairs for %d operands, got %d", (int)order->count,
                       (int)args->count, (int)args->path_count);
    int32_t count = args->count, *left = tni_alloc((size_t)count * sizeof *left);
    tn_status status = TN_OK;
    if (!left)
        return tni_einsum_no_memory(err, "a path");
    for (int32_t i = 0; i < count && !status; i++)
        left[i] = i;
    for (int32_t i = 0; i < order->count && !status; i++, count--) {
        int32_t a = args->path[2 * (size_t)i], b = args->path[2 * (size_t)i + 1];
        const int32_t low = a < b ? a : b, high = a < b ? b : a;
        if (low < 0 || low == high || high >= count) {
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                             "path[%d]: expected two different positions below %d, got %d and %d",
                             (int)i, (int)count, (int)a, (int)b);
            break;
        }
        order->pairs[i][0] = left[low];
        order->pairs[i][1] = left[high];
        memmove(left + high, left + high + 1, (size_t)(count - high - 1) * sizeof *left);
        memmove(left + low, left + low + 1, (size_t)(count - low - 2) * sizeof *left);
        left[count - 2] = args->count + i;
    }
    tni_release(left);
    return status;
}

static tn_status copy_if_cheaper(const tni_einsum *sum, const tni_einsum_order *from,
                                 tni_einsum_order *to, double *best, tn_error *err)
{
    double cost;
    const tn_status status = tni_einsum_cost(sum, from, &cost, err);
    if (status || cost >= *best)
        return status;
    *best = cost;
    memcpy(to->pairs, from->pairs, (size_t)to->count * sizeof *to->pairs);
    return TN_OK;
}

/* Repeats the greedy search with random choices, and keeps the best order. */
static tn_status search_randomly(const tni_einsum *sum, int32_t repeats, uint64_t seed,
                                 tni_einsum_order *order, tn_error *err)
{
    double best;
    tni_einsum_order tried = {.count = order->count};
    tried.pairs = tni_alloc_zeroed((size_t)order->count + 1, sizeof *tried.pairs);
    tn_status status = tried.pairs ? TN_OK : tni_einsum_no_memory(err, "an order");
    if (!status)
        status = tni_einsum_greedy(sum, 0, 0, order, err);
    if (!status)
        status = tni_einsum_cost(sum, order, &best, err);
    for (int32_t i = 1; i < repeats && !status; i++) {
        status = tni_einsum_greedy(sum, 1, seed * UINT64_C(1000003) + (uint64_t)i, &tried, err);
        if (!status)
            status = copy_if_cheaper(sum, &tried, order, &best, err);
    }
    tni_einsum_order_release(&tried);
    return status;
}

/* Limits of exhaustive searches, in pairs of partial orders to visit and partial orders to keep. */
typedef struct effort {
    double visits;
    size_t entries;
} effort;
static const effort quick = {6e4, 1 << 13}, thorough = {6e6, 1 << 17}, unlimited = {1e300, 1 << 22};

/* Searches greedily, then exhaustively for a lower cost. *out_found is whether the exhaustive
 * search was completed. */
static tn_status search_exactly(const tni_einsum *sum, bool outer, effort limits,
                                tni_einsum_order *order, bool *out_found, tn_error *err)
{
    tni_einsum_exact_args how = {
        .outer = outer, .visits = limits.visits, .entries = limits.entries};
    *out_found = sum->terms <= 2;
    tn_status status = tni_einsum_greedy(sum, 0, 0, order, err);
    if (!status)
        status = tni_einsum_cost(sum, order, &how.most, err);
    if (!status && !*out_found && sum->terms <= 64)
        status = tni_einsum_exact(sum, &how, order, out_found, err);
    return status;
}

/* The best search that ends within its limits; `repeats` random searches if none does. */
static tn_status search_adaptively(const tni_einsum *sum, effort limits, int32_t repeats,
                                   uint64_t seed, tni_einsum_order *order, tn_error *err)
{
    bool found;
    order->strategy = "optimal";
    tn_status status = search_exactly(sum, true, limits, order, &found, err);
    if (!status && !found) {
        order->strategy = "dp";
        status = search_exactly(sum, false, limits, order, &found, err);
    }
    if (!status && !found) {
        order->strategy = repeats > 1 ? "random-greedy" : "greedy";
        status = search_randomly(sum, repeats, seed, order, err);
    }
    return status;
}

static tn_status search_wholly(const tni_einsum *sum, bool outer, tni_einsum_order *order,
                               tn_error *err)
{
    bool found;
    const tn_status status = search_exactly(sum, outer, unlimited, order, &found, err);
    if (status || found)
        return status;
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "strategy %s: %d operands have too many orders to search (at most 64 operands, "
                   "and %zu partial orders); use auto or greedy",
                   order->strategy, (int)sum->terms, unlimited.entries);
}

enum { FROM_LEFT, AUTO, GREEDY, OPTIMAL, DP, RANDOM_GREEDY, AUTO_HQ, STRATEGIES };
static const char *const strategies[STRATEGIES] = {
    [FROM_LEFT] = "left",  [AUTO] = "auto", [GREEDY] = "greedy",
    [OPTIMAL] = "optimal", [DP] = "dp",     [RANDOM_GREEDY] = "random-greedy",
    [AUTO_HQ] = "auto-hq"};

static tn_status choose_strategy(const tn_context *context, const tn_einsum_args *args,
                                 int32_t *out, tn_error *err)
{
    static const int32_t of_setting[] = {
        [TN_EINSUM_AUTO] = AUTO, [TN_EINSUM_GREEDY] = GREEDY, [TN_EINSUM_OPTIMAL] = OPTIMAL};
    char list[96], hint[TNI_HINT];
    if (!args->strategy) {
        *out = !tn_get_opt_einsum_enabled(context)
                   ? FROM_LEFT
                   : of_setting[tn_get_opt_einsum_strategy(context)];
        return TN_OK;
    }
    for (*out = 0; *out < STRATEGIES; ++*out) {
        if (strcmp(args->strategy, strategies[*out]) == 0)
            return TN_OK;
    }
    tni_words_join(strategies, STRATEGIES, list, sizeof list);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "strategy: expected one of %s, got \"%.40s\"%s", list, args->strategy,
                   tni_words_hint(tni_words_nearest(args->strategy, strategies, STRATEGIES), hint));
}

static tn_status search_by(int32_t strategy, uint64_t seed, const tni_einsum *sum,
                           tni_einsum_order *out, tn_error *err)
{
    out->strategy = strategies[strategy];
    switch (strategy) {
    case GREEDY: return tni_einsum_greedy(sum, 0, 0, out, err);
    case OPTIMAL: return search_wholly(sum, true, out, err);
    case DP: return search_wholly(sum, false, out, err);
    case RANDOM_GREEDY: return search_randomly(sum, 32, seed, out, err);
    case AUTO: return search_adaptively(sum, quick, 1, 0, out, err);
    case AUTO_HQ: return search_adaptively(sum, thorough, 128, seed, out, err);
    default: order_from_left(out); return TN_OK;
    }
}

tn_status tni_einsum_search(const tn_context *context, const tn_einsum_args *args,
                            const tni_einsum *sum, tni_einsum_order *out, tn_error *err)
{
    int32_t strategy;
    *out = (tni_einsum_order){.count = sum->terms - 1};
    tn_status status = choose_strategy(context, args, &strategy, err);
    if (status)
        return status;
    out->pairs = tni_alloc_zeroed((size_t)sum->terms, sizeof *out->pairs);
    if (!out->pairs)
        return tni_einsum_no_memory(err, "an order");
    if (args->path) {
        out->strategy = "given";
        status = order_given(args, out, err);
    } else if (sum->terms <= 2 || sum->empty)
        status = search_by(FROM_LEFT, 0, sum, out, err);
    else
        status = search_by(strategy, args->seed, sum, out, err);
    if (status)
        tni_einsum_order_release(out);
    return status;
}
