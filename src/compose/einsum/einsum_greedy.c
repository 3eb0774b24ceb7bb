/* Greedy search for an order of contraction: first equal sets of indices, then the pairs that save
 * most memory, then outer products from the smallest. */
#include "einsum.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { CHOICES = 8 }; /* of a random search */

/* A pair that may be contracted; obsolete once one of its terms is. */
typedef struct candidate {
    double cost;
    int32_t high, low; /* terms */
} candidate;

typedef struct search {
    const tni_einsum *sum;
    size_t words;
    uint64_t *sets;    /* [2 * terms]: of the terms, results included */
    double *footprint; /* [2 * terms]: elements of the terms */
    bool *left;        /* [2 * terms]: not contracted yet */
    uint64_t *kept;    /* indices of out, and those of every operand */
    uint64_t *twice;   /* indices that two, or three, terms that are left have; except `kept` */
    uint64_t *thrice;
    int32_t *uses; /* of each index among the terms that are left */
    candidate *heap;
    size_t heap_count, heap_room;
    int32_t next; /* the term that the next result is */
    double temperature;
    uint64_t random;
    tni_einsum_order *order;
} search;

static uint64_t *set_of(const search *s, int32_t term)
{
    return s->sets + (size_t)term * s->words;
}

/* A number from 0 to 1, both excluded (xorshift64*). */
static double draw(search *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return ((double)(s->random * UINT64_C(2685821657736338717) >> 11) + 0.5) * 0x1p-53;
}

static bool is_before(const candidate *a, const candidate *b)
{
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->high != b->high ? a->high < b->high : a->low < b->low;
}

static tn_status push(search *s, candidate pair, tn_error *err)
{
    void *heap = s->heap;
    if (!tni_array_reserve(&heap, &s->heap_room, s->heap_count, s->heap_count + 1, sizeof pair))
        return tni_einsum_no_memory(err, "the pairs of a search");
    s->heap = heap;
    size_t at = s->heap_count++;
    for (; at && is_before(&pair, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = pair;
    return TN_OK;
}

static candidate pop(search *s)
{
    const candidate best = s->heap[0], last = s->heap[--s->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < s->heap_count; child = 2 * at + 1) {
        if (child + 1 < s->heap_count && is_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!is_before(&s->heap[child], &last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return best;
}

/* The indices of the result of two terms. */
static void combine(const search *s, int32_t a, int32_t b, uint64_t *out)
{
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    for (size_t i = 0; i < s->words; i++) {
        const uint64_t either = x[i] | y[i], both = x[i] & y[i];
        out[i] = (either & s->kept[i]) | (both & s->thrice[i]) | (either & ~both & s->twice[i]);
    }
}

/* Adds `change` to the number of remaining terms that have each of the term's indices. */
static void count_uses(search *s, int32_t term, int32_t change)
{
    const uint64_t *set = set_of(s, term);
    for (int32_t i = 0; i < s->sum->indices; i++) {
        const uint64_t bit = UINT64_C(1) << i % 64;
        if (!(set[i / 64] & bit & ~s->kept[i / 64]))
            continue;
        s->uses[i] += change;
        s->twice[i / 64] = s->uses[i] >= 2 ? s->twice[i / 64] | bit : s->twice[i / 64] & ~bit;
        s->thrice[i / 64] = s->uses[i] >= 3 ? s->thrice[i / 64] | bit : s->thrice[i / 64] & ~bit;
    }
    s->left[term] = change > 0;
}

/* Makes the next term from two that are left. */
static int32_t contract(search *s, int32_t a, int32_t b)
{
    const int32_t made = s->next++;
    int32_t *pair = s->order->pairs[made - s->sum->terms];
    combine(s, a, b, set_of(s, made));
    pair[0] = a < b ? a : b;
    pair[1] = a < b ? b : a;
    count_uses(s, a, -1);
    count_uses(s, b, -1);
    count_uses(s, made, 1);
    s->footprint[made] = tni_einsum_values(s->sum, set_of(s, made));
    return made;
}

/* Contracts a remaining term with all terms that have the same indices. Returns the result. */
static int32_t merge_equal(search *s, int32_t term)
{
    const size_t bytes = s->words * sizeof *s->sets;
    for (int32_t other = 0; other < term; other++) {
        if (s->left[other] && memcmp(set_of(s, other), set_of(s, term), bytes) == 0) {
            const int32_t made = s->next++;
            int32_t *pair = s->order->pairs[made - s->sum->terms];
            pair[0] = other, pair[1] = term;
            memcpy(set_of(s, made), set_of(s, term), bytes);
            count_uses(s, other, -1);
            count_uses(s, term, -1);
            count_uses(s, made, 1);
            s->footprint[made] = s->footprint[term];
            return merge_equal(s, made);
        }
    }
    return term;
}

static bool share(const search *s, int32_t a, int32_t b)
{
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    for (size_t i = 0; i < s->words; i++) {
        if (x[i] & y[i] & ~s->kept[i])
            return true;
    }
    return false;
}

/* Costs a pair; `room` has `words` words. */
static candidate cost_pair(search *s, int32_t a, int32_t b, uint64_t *room)
{
    combine(s, a, b, room);
    candidate pair = {.high = a > b ? a : b, .low = a > b ? b : a};
    pair.cost = tni_einsum_values(s->sum, room) - s->footprint[a] - s->footprint[b];
    if (s->temperature > 0) /* a normal number of mean 1, from two uniform ones */
        pair.cost *= 1 + 0.01 * sqrt(-2 * log(draw(s))) * cos(6.283185307179586 * draw(s));
    return pair;
}

/* Pushes the best pair of `term` with another term that has `index` (-1: that shares an index).
 * With `after`, only later terms are tried. A random search pushes all pairs. */
static tn_status push_best(search *s, int32_t term, int32_t index, bool after, uint64_t *room,
                           tn_error *err)
{
    candidate best = {.low = -1};
    tn_status status = TN_OK;
    for (int32_t other = after ? term + 1 : 0; other < s->next && !status; other++) {
        if (!s->left[other] || other == term)
            continue;
        if (index < 0 ? !share(s, term, other) : !(set_of(s, other)[index / 64] >> index % 64 & 1))
            continue;
        const candidate pair = cost_pair(s, term, other, room);
        if (s->temperature > 0)
            status = push(s, pair, err);
        else if (best.low < 0 || is_before(&pair, &best))
            best = pair;
    }
    return status || best.low < 0 ? status : push(s, best, err);
}

static tn_status push_first(search *s, uint64_t *room, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t index = 0; index < s->sum->indices; index++) {
        if (!(s->twice[index / 64] >> index % 64 & 1))
            continue;
        for (int32_t term = 0; term < s->next && !status; term++) {
            if (s->left[term] && set_of(s, term)[index / 64] >> index % 64 & 1)
                status = push_best(s, term, index, true, room, err);
        }
    }
    return status;
}

/* Returns the term if it remains, otherwise a remaining term with the same indices, which has the
 * same costs. Returns -1 if no such term remains. */
static int32_t find_left(const search *s, int32_t term)
{
    const size_t bytes = s->words * sizeof *s->sets;
    if (s->left[term])
        return term;
    for (int32_t other = s->next; other-- > 0;) {
        if (s->left[other] && memcmp(set_of(s, other), set_of(s, term), bytes) == 0)
            return other;
    }
    return -1;
}

/* Pops the best pair whose terms remain. A random search pops one of the best pairs; better pairs
 * are more likely. *out_found is false if no pair remains. */
static tn_status choose(search *s, candidate *out, bool *out_found, tn_error *err)
{
    candidate best[CHOICES];
    double weight[CHOICES], total = 0;
    int32_t count = 0, chosen = 0;
    tn_status status = TN_OK;
    while (s->heap_count && count < (s->temperature > 0 ? CHOICES : 1)) {
        const candidate pair = pop(s);
        const int32_t a = find_left(s, pair.high), b = find_left(s, pair.low);
        best[count] = (candidate){pair.cost, a > b ? a : b, a > b ? b : a};
        count += a >= 0 && b >= 0 && a != b;
    }
    *out_found = count > 0;
    for (int32_t i = 0; i < count; i++) {
        const double scale = s->temperature * fmax(1, fabs(best[0].cost));
        weight[i] = scale > 0 ? exp(-(best[i].cost - best[0].cost) / scale) : 1;
        total += weight[i];
    }
    for (double at = count > 1 ? draw(s) * total : 0; chosen < count - 1; chosen++) {
        at -= weight[chosen];
        if (at < 0)
            break;
    }
    for (int32_t i = 0; i < count && !status; i++) {
        if (i != chosen)
            status = push(s, best[i], err);
    }
    if (count)
        *out = best[chosen];
    return status;
}

/* Multiplies the remaining terms, always the two smallest. */
static void multiply_rest(search *s, uint64_t *room)
{
    while (s->next < 2 * s->sum->terms - 1) {
        int32_t least[2] = {-1, -1};
        double sizes[2] = {0, 0};
        for (int32_t term = 0; term < s->next; term++) {
            if (!s->left[term])
                continue;
            for (size_t i = 0; i < s->words; i++)
                room[i] = set_of(s, term)[i] & s->kept[i];
            const double size = tni_einsum_values(s->sum, room);
            if (least[0] < 0 || size < sizes[0]) {
                least[1] = least[0], sizes[1] = sizes[0];
                least[0] = term, sizes[0] = size;
            } else if (least[1] < 0 || size < sizes[1])
                least[1] = term, sizes[1] = size;
        }
        contract(s, least[0], least[1]);
    }
}

static tn_status run_search(search *s, uint64_t *room, tn_error *err)
{
    bool found = true;
    candidate pair;
    for (int32_t term = 0; term < s->sum->terms; term++) {
        if (s->left[term])
            merge_equal(s, term);
    }
    tn_status status = push_first(s, room, err);
    while (!status && found) {
        status = choose(s, &pair, &found, err);
        if (status || !found)
            break;
        const int32_t made = merge_equal(s, contract(s, pair.low, pair.high));
        status = push_best(s, made, -1, false, room, err);
    }
    if (!status)
        multiply_rest(s, room);
    return status;
}

static tn_status init_search(search *s, tn_error *err)
{
    const tni_einsum *sum = s->sum;
    const size_t terms = 2 * (size_t)sum->terms, bytes = s->words * sizeof *s->sets;
    s->sets = tni_alloc_zeroed((terms + 4) * s->words, sizeof *s->sets);
    s->footprint = tni_alloc_zeroed(terms, sizeof *s->footprint);
    s->left = tni_alloc_zeroed(terms, sizeof *s->left);
    s->uses = tni_alloc_zeroed((size_t)sum->indices + 1, sizeof *s->uses);
    if (!s->sets || !s->footprint || !s->left || !s->uses)
        return tni_einsum_no_memory(err, "a search");
    s->kept = s->sets + terms * s->words;
    s->twice = s->kept + s->words;
    s->thrice = s->twice + s->words;
    memcpy(s->sets, sum->sets, (size_t)sum->terms * bytes);
    memcpy(s->kept, tni_einsum_set(sum, 0), bytes);
    for (int32_t term = 1; term < sum->terms; term++) {
        for (size_t i = 0; i < s->words; i++)
            s->kept[i] &= set_of(s, term)[i];
    }
    for (size_t i = 0; i < s->words; i++)
        s->kept[i] |= tni_einsum_set(sum, sum->terms)[i];
    for (int32_t term = 0; term < sum->terms; term++) {
        count_uses(s, term, 1);
        s->footprint[term] = tni_einsum_values(sum, set_of(s, term));
    }
    return TN_OK;
}

tn_status tni_einsum_greedy(const tni_einsum *sum, double temperature, uint64_t seed,
                            tni_einsum_order *out, tn_error *err)
{
    search s = {.sum = sum,
                .words = (size_t)sum->words,
                .next = sum->terms,
                .temperature = temperature,
                .random = seed * UINT64_C(0x9E3779B97F4A7C15) | 1,
                .order = out};
    tn_status status = init_search(&s, err);
    if (!status)
        status = run_search(&s, s.thrice + s.words, err);
    tni_release(s.sets);
    tni_release(s.footprint);
    tni_release(s.left);
    tni_release(s.uses);
    tni_release(s.heap);
    return status;
}
