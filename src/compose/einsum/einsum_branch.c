/* Search in depth for an order of contraction: of each partial order, the pairs that save most memory
 * are tried first, and orders that are far behind the best one at the same depth are given up. */
#include "einsum.h"

#include <math.h>
#include <string.h>

/* A partial order is given up if it costs this many times what the best one did at its depth. */
enum { BEHIND_MOST = 4 };

/* A pair that may be contracted next. */
typedef struct candidate {
    double saving; /* elements of the result less those of the terms */
    double cost;   /* of the partial order with it */
    double largest;
    int32_t low, high; /* terms */
} candidate;

/* The candidates of a partial order, best first. */
typedef struct level {
    candidate *list;
    size_t count, room, at;
    double cost, largest; /* of the partial order */
} level;

typedef struct search {
    const tni_einsum *sum;
    size_t words;
    int32_t branches;
    uint64_t *sets;                  /* [2 * terms]: of the terms, results included */
    double *values;                  /* [2 * terms]: their elements */
    bool *left;                      /* [2 * terms]: not contracted yet */
    uint64_t *once, *twice, *thrice; /* indices that as many terms that are left, or out, have */
    uint64_t *room;
    double *progress; /* [terms]: the least cost of partial orders of as many pairs */
    level *levels;    /* [terms]: of partial orders of as many pairs */
    int32_t (*pairs)[2];
    double best, best_largest;
    double visits, visits_most;
    tni_einsum_order *order;
} search;

static uint64_t *set_of(const search *s, int32_t term)
{
    return s->sets + (size_t)term * s->words;
}

/* Counts how many of the terms below `end` that are left, and out, have each index. */
static void count_uses(search *s, int32_t end)
{
    const uint64_t *out = tni_einsum_set(s->sum, s->sum->terms);
    memcpy(s->once, out, s->words * sizeof *out);
    memset(s->twice, 0, s->words * sizeof *out);
    memset(s->thrice, 0, s->words * sizeof *out);
    for (int32_t term = 0; term < end; term++) {
        const uint64_t *set = set_of(s, term);
        for (size_t i = 0; i < s->words && s->left[term]; i++) {
            s->thrice[i] |= s->twice[i] & set[i];
            s->twice[i] |= s->once[i] & set[i];
            s->once[i] |= set[i];
        }
    }
}

/* Sets `out` to the indices of the result of two terms, and returns the cost of the pair. */
static double combine(const search *s, int32_t a, int32_t b, uint64_t *out)
{
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    bool summed = false;
    for (size_t i = 0; i < s->words; i++) {
        const uint64_t either = x[i] | y[i], both = x[i] & y[i];
        out[i] = (both & s->thrice[i]) | (either & ~both & s->twice[i]);
        s->room[i] = either;
        summed = summed || either != out[i];
    }
    return tni_einsum_values(s->sum, s->room) * (summed ? 2 : 1);
}

static bool share(const search *s, int32_t a, int32_t b)
{
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    for (size_t i = 0; i < s->words; i++) {
        if (x[i] & y[i])
            return true;
    }
    return false;
}

static bool is_before(const candidate *a, const candidate *b)
{
    if (a->saving != b->saving)
        return a->saving < b->saving;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    if (a->largest != b->largest)
        return a->largest < b->largest;
    return a->low != b->low ? a->low < b->low : a->high < b->high;
}

/* Inserts a candidate into a level's list, which keeps only as many as are tried. */
static tn_status insert(const search *s, level *to, const candidate *made, tn_error *err)
{
    void *list = to->list;
    size_t at = to->count;
    if (s->branches && to->count == (size_t)s->branches) {
        if (!is_before(made, &to->list[--at]))
            return TN_OK;
    } else if (!tni_array_reserve(&list, &to->room, at, at + 1, sizeof *made))
        return tni_einsum_no_memory(err, "the pairs of a search");
    else
        to->count++;
    to->list = list;
    for (; at && is_before(made, &to->list[at - 1]); at--)
        to->list[at] = to->list[at - 1];
    to->list[at] = *made;
    return TN_OK;
}

/* Adds a pair to the candidates, unless its order is worse than the best or far behind. */
static tn_status assess(search *s, int32_t depth, int32_t a, int32_t b, tn_error *err)
{
    level *at = &s->levels[depth];
    uint64_t *result = set_of(s, s->sum->terms + depth);
    candidate made = {.low = a, .high = b};
    made.cost = at->cost + combine(s, a, b, result);
    const double values = tni_einsum_values(s->sum, result);
    made.largest = fmax(at->largest, values);
    made.saving = values - s->values[a] - s->values[b];
    s->visits++;
    if (made.cost > s->best || (made.cost == s->best && made.largest >= s->best_largest))
        return TN_OK;
    if (made.cost < s->progress[depth])
        s->progress[depth] = made.cost;
    else if (made.cost > BEHIND_MOST * s->progress[depth])
        return TN_OK;
    return insert(s, at, &made, err);
}

/* Lists the candidates of a partial order: pairs with a common index, or all if there are none. */
static tn_status list_candidates(search *s, int32_t depth, tn_error *err)
{
    const int32_t end = s->sum->terms + depth;
    level *to = &s->levels[depth];
    tn_status status = TN_OK;
    to->count = to->at = 0;
    count_uses(s, end);
    for (int32_t outer = 0; outer < 2 && !to->count && !status; outer++) {
        for (int32_t a = 0; a < end; a++) {
            for (int32_t b = a + 1; b < end && s->left[a] && !status; b++) {
                if (s->left[b] && (outer || share(s, a, b)))
                    status = assess(s, depth, a, b, err);
            }
        }
    }
    return status;
}

/* Contracts the next candidate of a partial order; returns false if there is none. */
static bool enter_next(search *s, int32_t depth)
{
    level *from = &s->levels[depth], *to = &s->levels[depth + 1];
    const int32_t made = s->sum->terms + depth;
    if (from->at == from->count || s->visits > s->visits_most)
        return false;
    const candidate *pair = &from->list[from->at++];
    count_uses(s, made);
    combine(s, pair->low, pair->high, set_of(s, made));
    s->values[made] = tni_einsum_values(s->sum, set_of(s, made));
    s->left[pair->low] = s->left[pair->high] = false;
    s->left[made] = true;
    s->pairs[depth][0] = pair->low;
    s->pairs[depth][1] = pair->high;
    to->cost = pair->cost;
    to->largest = pair->largest;
    return true;
}

/* Takes the last contraction of a partial order back. */
static void leave(search *s, int32_t depth)
{
    s->left[s->sum->terms + depth] = false;
    s->left[s->pairs[depth][0]] = s->left[s->pairs[depth][1]] = true;
}

/* Searches all partial orders. The first complete one is found whatever the limit is. */
static tn_status run_search(search *s, tn_error *err)
{
    const int32_t last = s->order->count;
    const double most = s->visits_most;
    int32_t depth = 0;
    s->visits_most = INFINITY;
    tn_status status = list_candidates(s, 0, err);
    while (!status && depth >= 0) {
        if (!enter_next(s, depth)) {
            if (--depth >= 0)
                leave(s, depth);
            continue;
        }
        const level *of = &s->levels[++depth];
        if (depth < last) {
            status = list_candidates(s, depth, err);
            continue;
        }
        if (of->cost < s->best || (of->cost == s->best && of->largest < s->best_largest)) {
            s->best = of->cost;
            s->best_largest = of->largest;
            memcpy(s->order->pairs, s->pairs, (size_t)last * sizeof *s->pairs);
        }
        s->visits_most = most;
        leave(s, --depth);
    }
    return status;
}

static tn_status init_search(search *s, tn_error *err)
{
    const size_t count = (size_t)s->sum->terms, terms = 2 * count;
    s->sets = tni_alloc_zeroed((terms + 4) * s->words, sizeof *s->sets);
    s->values = tni_alloc_zeroed(terms, sizeof *s->values);
    s->left = tni_alloc_zeroed(terms, sizeof *s->left);
    s->progress = tni_alloc_zeroed(count, sizeof *s->progress);
    s->levels = tni_alloc_zeroed(count, sizeof *s->levels);
    s->pairs = tni_alloc_zeroed(count, sizeof *s->pairs);
    if (!s->sets || !s->values || !s->left || !s->progress || !s->levels || !s->pairs)
        return tni_einsum_no_memory(err, "a search");
    s->once = s->sets + terms * s->words;
    s->twice = s->once + s->words;
    s->thrice = s->twice + s->words;
    s->room = s->thrice + s->words;
    memcpy(s->sets, s->sum->sets, count * s->words * sizeof *s->sets);
    for (size_t i = 0; i < count; i++) {
        s->values[i] = tni_einsum_values(s->sum, set_of(s, (int32_t)i));
        s->left[i] = true;
        s->progress[i] = INFINITY;
    }
    return TN_OK;
}

tn_status tni_einsum_branch(const tni_einsum *sum, int32_t branches, double visits,
                            tni_einsum_order *out, tn_error *err)
{
    search s = {.sum = sum,
                .words = (size_t)sum->words,
                .branches = branches,
                .visits_most = visits,
                .best = INFINITY,
                .best_largest = INFINITY,
                .order = out};
    tn_status status = init_search(&s, err);
    if (!status)
        status = run_search(&s, err);
    for (int32_t i = 0; i < sum->terms && s.levels; i++)
        tni_release(s.levels[i].list);
    tni_release(s.sets);
    tni_release(s.values);
    tni_release(s.left);
    tni_release(s.progress);
    tni_release(s.levels);
    tni_release(s.pairs);
    return status;
}
