/* Strategies: which search finds the order of contraction. */
#include "einsum.h"

#include "base/words.h"
#include "os/clock.h"
#include "settings/context.h"

#include <string.h>

static const char where[] = "tn_einsum";

/* Searches greedily; *out_cost is the cost. */
static tn_status search_greedily(const tni_einsum *sum, tni_einsum_order *order, double *out_cost,
                                 tn_error *err)
{
    const tn_status status = tni_einsum_greedy(sum, 0, 0, order, err);
    return status ? status : tni_einsum_cost(sum, order, out_cost, err);
}

/* Limits of exhaustive searches, in pairs of partial orders to visit and partial orders to keep. */
typedef struct effort {
    double visits;
    size_t entries;
} effort;
static const effort quick = {2e4, 1 << 13}, thorough = {6e6, 1 << 17}, unlimited = {1e300, 1 << 22};

/* Searches exhaustively for a lower cost than `cost`, that of the order. *out_found is whether the
 * search was completed. */
static tn_status search_exactly(const tni_einsum *sum, bool outer, effort limits, double cost,
                                tni_einsum_order *order, bool *out_found, tn_error *err)
{
    const tni_einsum_exact_args how = {
        .outer = outer, .most = cost, .visits = limits.visits, .entries = limits.entries};
    *out_found = false;
    return sum->terms <= 64 ? tni_einsum_exact(sum, &how, order, out_found, err) : TN_OK;
}

/* Whether all orders can be searched in little time. */
static bool has_few_orders(const tni_einsum *sum)
{
    return sum->terms <= TNI_EINSUM_SUBSETS && sum->words == 1;
}

/* Searches greedily, then all orders if these are few, else as `dp` if that is quick. *out_best is
 * whether no order costs less. */
static tn_status search_first(const tni_einsum *sum, tni_einsum_order *order, double *out_cost,
                              bool *out_best, tn_error *err)
{
    bool found;
    tn_status status = search_greedily(sum, order, out_cost, err);
    *out_best = has_few_orders(sum);
    if (!status && *out_best)
        status = tni_einsum_subsets(sum, *out_cost, order, err);
    else if (!status)
        status = search_exactly(sum, false, quick, *out_cost, order, &found, err);
    return status ? status : tni_einsum_cost(sum, order, out_cost, err);
}

/* Repeats the greedy search with random choices, until there are `repeats` searches or args->search_ns
 * have passed, and keeps the best order. */
static tn_status search_randomly(const tn_einsum_args *args, const tni_einsum *sum, int32_t repeats,
                                 tni_einsum_order *order, tn_error *err)
{
    const int64_t start = args->search_ns ? tni_clock_ns() : 0;
    double best;
    bool done = false;
    tni_einsum_order tried = {.count = order->count};
    tried.pairs = tni_alloc_zeroed((size_t)order->count + 1, sizeof *tried.pairs);
    tn_status status = tried.pairs ? TN_OK : tni_einsum_no_memory(err, "an order");
    if (!status)
        status = search_first(sum, order, &best, &done, err);
    for (uint64_t i = 1; !status && !done; i++) {
        if (args->search_ns ? (uint64_t)(tni_clock_ns() - start) >= args->search_ns
                            : i >= (uint64_t)repeats)
            break;
        status = tni_einsum_greedy(sum, 1, args->seed * UINT64_C(1000003) + i, &tried, err);
        if (!status)
            status = tni_einsum_keep_cheaper(sum, &tried, order, &best, err);
    }
    tni_einsum_order_release(&tried);
    return status;
}

enum { BRANCH_OPERANDS = 256, BRANCH_AUTO = 16 };

/* Searches in depth, unless the first search finds a cheaper order. */
static tn_status search_branches(const tni_einsum *sum, int32_t branches, tni_einsum_order *order,
                                 tn_error *err)
{
    double cost = 0;
    bool done = false;
    tni_einsum_order tried = {.count = order->count};
    if (sum->terms > BRANCH_OPERANDS)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "strategy %s: expected at most %d operands, got %d; use auto or greedy",
                       order->strategy, BRANCH_OPERANDS, (int)sum->terms);
    tried.pairs = tni_alloc_zeroed((size_t)order->count + 1, sizeof *tried.pairs);
    tn_status status = tried.pairs ? TN_OK : tni_einsum_no_memory(err, "an order");
    if (!status)
        status = search_first(sum, order, &cost, &done, err);
    if (!status && !done) {
        memcpy(tried.pairs, order->pairs, (size_t)order->count * sizeof *order->pairs);
        status = tni_einsum_branch(sum, branches, 2e7, &tried, err);
    }
    if (!status && !done)
        status = tni_einsum_keep_cheaper(sum, &tried, order, &cost, err);
    tni_einsum_order_release(&tried);
    return status;
}

/* The best search that ends within its limits; `repeats` random searches if none does. An order without
 * outer products makes the search with them shorter. */
static tn_status search_adaptively(const tn_einsum_args *args, const tni_einsum *sum, effort limits,
                                   int32_t repeats, tni_einsum_order *order, tn_error *err)
{
    bool found = false, best = false;
    double cost;
    tn_status status = search_greedily(sum, order, &cost, err);
    if (!status && has_few_orders(sum)) {
        order->strategy = "optimal";
        return tni_einsum_subsets(sum, cost, order, err);
    }
    if (!status)
        status = search_exactly(sum, false, limits, cost, order, &found, err);
    if (!status && found) {
        status = tni_einsum_cost(sum, order, &cost, err);
        if (!status)
            status = search_exactly(sum, true, limits, cost, order, &best, err);
        order->strategy = best ? "optimal" : "dp";
    }
    if (status || found)
        return status;
    if (repeats > 1) {
        order->strategy = "random-greedy";
        return search_randomly(args, sum, repeats, order, err);
    }
    if (sum->terms <= BRANCH_AUTO) {
        order->strategy = "branch-1";
        return search_branches(sum, 1, order, err);
    }
    order->strategy = "greedy";
    return TN_OK;
}

static tn_status search_wholly(const tni_einsum *sum, bool outer, tni_einsum_order *order,
                               tn_error *err)
{
    bool found = false;
    double cost;
    tn_status status = search_greedily(sum, order, &cost, err);
    if (!status && has_few_orders(sum))
        return tni_einsum_subsets(sum, cost, order, err);
    if (!status)
        status = search_exactly(sum, outer, unlimited, cost, order, &found, err);
    if (status || found)
        return status;
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "strategy %s: %d operands have too many orders to search (at most 64 operands, "
                   "and %zu partial orders); use auto or greedy",
                   order->strategy, (int)sum->terms, unlimited.entries);
}

enum {
    FROM_LEFT,
    AUTO,
    GREEDY,
    OPTIMAL,
    DP,
    BRANCH_1,
    BRANCH_2,
    BRANCH_ALL,
    RANDOM_GREEDY,
    RANDOM_GREEDY_128,
    AUTO_HQ,
    STRATEGIES
};
static const char *const strategies[STRATEGIES] = {[FROM_LEFT] = "left",
                                                   [AUTO] = "auto",
                                                   [GREEDY] = "greedy",
                                                   [OPTIMAL] = "optimal",
                                                   [DP] = "dp",
                                                   [BRANCH_1] = "branch-1",
                                                   [BRANCH_2] = "branch-2",
                                                   [BRANCH_ALL] = "branch-all",
                                                   [RANDOM_GREEDY] = "random-greedy",
                                                   [RANDOM_GREEDY_128] = "random-greedy-128",
                                                   [AUTO_HQ] = "auto-hq"};

tn_status tni_einsum_choose_strategy(const tn_context *context, const tn_einsum_args *args,
                                     int32_t *out, tn_error *err)
{
    static const int32_t of_setting[] = {
        [TN_EINSUM_AUTO] = AUTO, [TN_EINSUM_GREEDY] = GREEDY, [TN_EINSUM_OPTIMAL] = OPTIMAL};
    char list[160], hint[TNI_HINT];
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

static tn_status search_by(int32_t strategy, const tn_einsum_args *args, const tni_einsum *sum,
                           tni_einsum_order *out, tn_error *err)
{
    out->strategy = strategies[strategy];
    switch (strategy) {
    case GREEDY: return tni_einsum_greedy(sum, 0, 0, out, err);
    case OPTIMAL: return search_wholly(sum, true, out, err);
    case DP: return search_wholly(sum, false, out, err);
    case BRANCH_1: return search_branches(sum, 1, out, err);
    case BRANCH_2: return search_branches(sum, 2, out, err);
    case BRANCH_ALL: return search_branches(sum, 0, out, err);
    case RANDOM_GREEDY: return search_randomly(args, sum, 32, out, err);
    case RANDOM_GREEDY_128: return search_randomly(args, sum, 128, out, err);
    case AUTO: return search_adaptively(args, sum, quick, 1, out, err);
    case AUTO_HQ: return search_adaptively(args, sum, thorough, 128, out, err);
    default: tni_einsum_order_from_left(out); return TN_OK;
    }
}

tn_status tni_einsum_search(const tn_einsum_args *args, int32_t strategy, const tni_einsum *sum,
                            tni_einsum_order *out, tn_error *err)
{
    tn_status status = TN_OK;
    *out = (tni_einsum_order){.count = sum->terms - 1};
    out->pairs = tni_alloc_zeroed((size_t)sum->terms, sizeof *out->pairs);
    if (!out->pairs)
        return tni_einsum_no_memory(err, "an order");
    if (args->path) {
        out->strategy = "given";
        status = tni_einsum_order_given(args, out, err);
    } else if (sum->terms <= 2 || sum->empty)
        status = search_by(FROM_LEFT, args, sum, out, err);
    else
        status = search_by(strategy, args, sum, out, err);
    if (status)
        tni_einsum_order_release(out);
    return status;
}
