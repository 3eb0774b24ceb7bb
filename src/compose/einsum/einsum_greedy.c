/* Greedy search for an order of contraction: first equal sets of indices, then the pairs that save
 * most memory, then outer products from the smallest. */
#include "einsum.h"

#include <math.h>
#include <string.h>

enum { CHOICES = 8 }; /* of a random search */

/* A pair that may be contracted; obsolete once one of its terms is. */
typedef struct candidate {
    double cost;
    int32_t high, low; /* terms */
} candidate;

/* An occurrence of an index in a term that is left: a node of the index's list. */
typedef struct node {
    int32_t term;
    int32_t next; /* -1: none */
} node;

typedef struct search {
    const tni_einsum *sum;
    size_t words;
    uint64_t *sets;    /* [2 * terms]: of the terms, results included */
    double *footprint; /* [2 * terms]: elements of the terms */
    bool *left;        /* [2 * terms]: not contracted yet */
    int32_t *seen;     /* [2 * terms]: the last term whose neighbour this one was found to be */
    uint64_t *kept;    /* indices of out, and those of every operand */
    uint64_t *twice;   /* indices that two, or three, terms that are left have; except `kept` */
    uint64_t *thrice;
    uint64_t *room;
    int32_t *uses; /* of each index among the terms that are left */
    int32_t *head; /* of each index's list of terms that are left; -1: none. Without `kept` */
    node *nodes;
    int32_t free;   /* list of free nodes */
    int32_t *table; /* of terms by their sets: 1 + the term, 0 for a free place */
    size_t table_size;
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

/* The place in the table of the term that is left and has this set, or of a free place for it.
 * Entries of contracted terms stay. */
static size_t place_of(const search *s, const uint64_t *set)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < s->words; i++)
        hash = (hash ^ set[i]) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
    size_t at = (size_t)(hash >> 32) & (s->table_size - 1);
    for (; s->table[at]; at = (at + 1) & (s->table_size - 1)) {
        const int32_t term = s->table[at] - 1;
        if (s->left[term] && memcmp(set_of(s, term), set, s->words * sizeof *set) == 0)
            break;
    }
    return at;
}

/* The term that is left and has this set; -1 if there is none. */
static int32_t find_equal(const search *s, const uint64_t *set)
{
    return s->table[place_of(s, set)] - 1;
}

/* Adds a term to those that are left; there must be none with its set. */
static void add_term(search *s, int32_t term)
{
    s->table[place_of(s, set_of(s, term))] = term + 1;
    s->left[term] = true;
}

static void count_use(search *s, size_t word, int32_t at, int32_t change)
{
    const uint64_t bit = UINT64_C(1) << at;
    const int32_t uses = s->uses[word * 64 + (size_t)at] += change;
    s->twice[word] = uses >= 2 ? s->twice[word] | bit : s->twice[word] & ~bit;
    s->thrice[word] = uses >= 3 ? s->thrice[word] | bit : s->thrice[word] & ~bit;
}

/* Adds a term to the lists of its indices. */
static void list_term(search *s, int32_t term)
{
    for (size_t word = 0; word < s->words; word++) {
        for (uint64_t bits = set_of(s, term)[word] & ~s->kept[word]; bits;) {
            const int32_t at = tni_einsum_take_index(&bits), made = s->free;
            int32_t *head = &s->head[word * 64 + (size_t)at];
            s->free = s->nodes[made].next;
            s->nodes[made] = (node){term, *head};
            *head = made;
            count_use(s, word, at, 1);
        }
    }
}

static void unlist_term(search *s, int32_t term)
{
    for (size_t word = 0; word < s->words; word++) {
        for (uint64_t bits = set_of(s, term)[word] & ~s->kept[word]; bits;) {
            const int32_t at = tni_einsum_take_index(&bits);
            int32_t *link = &s->head[word * 64 + (size_t)at];
            while (s->nodes[*link].term != term)
                link = &s->nodes[*link].next;
            const int32_t gone = *link;
            *link = s->nodes[gone].next;
            s->nodes[gone].next = s->free;
            s->free = gone;
            count_use(s, word, at, -1);
        }
    }
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

/* Writes the pair that makes the next term, which is returned. */
static int32_t write_pair(search *s, int32_t a, int32_t b)
{
    int32_t *pair = s->order->pairs[s->next - s->sum->terms];
    pair[0] = a < b ? a : b;
    pair[1] = a < b ? b : a;
    s->left[a] = s->left[b] = false;
    return s->next++;
}

/* Makes the next term from two terms with the same set. */
static int32_t merge(search *s, int32_t a, int32_t b)
{
    const int32_t made = write_pair(s, a, b);
    memcpy(set_of(s, made), set_of(s, a), s->words * sizeof *s->sets);
    s->footprint[made] = s->footprint[a];
    return made;
}

/* Makes the next term from two that are left, and merges it with the term that has the same set.
 * Returns the result. */
static int32_t contract(search *s, int32_t a, int32_t b)
{
    uint64_t *set = set_of(s, s->next);
    combine(s, a, b, set);
    int32_t made = write_pair(s, a, b);
    unlist_term(s, a);
    unlist_term(s, b);
    const int32_t equal = find_equal(s, set);
    s->footprint[made] = tni_einsum_values(s->sum, set);
    if (equal >= 0) {
        unlist_term(s, equal);
        made = merge(s, equal, made);
    }
    add_term(s, made);
    list_term(s, made);
    return made;
}

static candidate cost_pair(search *s, int32_t a, int32_t b)
{
    combine(s, a, b, s->room);
    candidate pair = {.high = a > b ? a : b, .low = a > b ? b : a};
    pair.cost = tni_einsum_values(s->sum, s->room) - s->footprint[a] - s->footprint[b];
    if (s->temperature > 0) /* a normal number of mean 1, from two uniform ones */
        pair.cost *= 1 + 0.01 * sqrt(-2 * log(draw(s))) * cos(6.283185307179586 * draw(s));
    return pair;
}

/* Costs the pair of a term with another one, and keeps the best in *best, whose `low` is -1 at first.
 * A random search pushes all pairs instead. */
static tn_status consider(search *s, int32_t term, int32_t other, candidate *best, tn_error *err)
{
    const candidate pair = cost_pair(s, term, other);
    if (s->temperature > 0)
        return push(s, pair, err);
    if (best->low < 0 || is_before(&pair, best))
        *best = pair;
    return TN_OK;
}

/* Pushes the best pair of a term with another one that shares an index. */
static tn_status push_best(search *s, int32_t term, tn_error *err)
{
    candidate best = {.low = -1};
    s->seen[term] = term;
    for (size_t word = 0; word < s->words; word++) {
        for (uint64_t bits = set_of(s, term)[word] & ~s->kept[word]; bits;) {
            const size_t index = word * 64 + (size_t)tni_einsum_take_index(&bits);
            for (int32_t at = s->head[index]; at >= 0; at = s->nodes[at].next) {
                const int32_t other = s->nodes[at].term;
                if (s->seen[other] == term)
                    continue;
                s->seen[other] = term;
                const tn_status status = consider(s, term, other, &best, err);
                if (status)
                    return status;
            }
        }
    }
    return best.low < 0 ? TN_OK : push(s, best, err);
}

/* Pushes, for each index and each term that has it, the best pair with a later such term. */
static tn_status push_first(search *s, tn_error *err)
{
    for (int32_t index = 0; index < s->sum->indices; index++) {
        for (int32_t at = s->head[index]; at >= 0; at = s->nodes[at].next) {
            candidate best = {.low = -1};
            tn_status status = TN_OK;
            for (int32_t after = s->nodes[at].next; after >= 0 && !status;
                 after = s->nodes[after].next)
                status = consider(s, s->nodes[at].term, s->nodes[after].term, &best, err);
            if (!status && best.low >= 0)
                status = push(s, best, err);
            if (status)
                return status;
        }
    }
    return TN_OK;
}

/* Returns the term if it remains, otherwise a remaining term with the same indices, which has the
 * same costs. Returns -1 if no such term remains. */
static int32_t find_left(const search *s, int32_t term)
{
    return s->left[term] ? term : find_equal(s, set_of(s, term));
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
    if (count == 1)
        *out = best[0];
    if (count <= 1)
        return TN_OK;
    for (int32_t i = 0; i < count; i++) {
        const double scale = s->temperature * fmax(1, fabs(best[0].cost));
        weight[i] = exp(-(best[i].cost - best[0].cost) / scale);
        total += weight[i];
    }
    for (double at = draw(s) * total; chosen < count - 1; chosen++) {
        at -= weight[chosen];
        if (at < 0)
            break;
    }
    for (int32_t i = 0; i < count && !status; i++) {
        if (i != chosen)
            status = push(s, best[i], err);
    }
    *out = best[chosen];
    return status;
}

/* Elements of a term, of which only `kept` indices remain. */
static double kept_values(const search *s, int32_t term)
{
    for (size_t i = 0; i < s->words; i++)
        s->room[i] = set_of(s, term)[i] & s->kept[i];
    return tni_einsum_values(s->sum, s->room);
}

/* Multiplies the remaining terms, always the two smallest. */
static tn_status multiply_rest(search *s, tn_error *err)
{
    tn_status status = TN_OK;
    s->heap_count = 0;
    for (int32_t term = 0; term < s->next && !status; term++) {
        if (s->left[term])
            status = push(s, (candidate){kept_values(s, term), term, 0}, err);
    }
    while (s->heap_count > 1 && !status) {
        const int32_t a = pop(s).high, b = pop(s).high;
        combine(s, a, b, set_of(s, s->next));
        const int32_t made = write_pair(s, a, b);
        status = push(s, (candidate){kept_values(s, made), made, 0}, err);
    }
    return status;
}

static tn_status run_search(search *s, tn_error *err)
{
    bool found = true;
    candidate pair;
    for (int32_t term = 0; term < s->sum->terms; term++) {
        const int32_t equal = find_equal(s, set_of(s, term));
        add_term(s, equal >= 0 ? merge(s, equal, term) : term);
    }
    for (int32_t term = s->next; term-- > 0;) { /* so that the lists are in ascending order */
        if (s->left[term])
            list_term(s, term);
    }
    tn_status status = push_first(s, err);
    while (!status && found) {
        status = choose(s, &pair, &found, err);
        if (!status && found)
            status = push_best(s, contract(s, pair.low, pair.high), err);
    }
    return status ? status : multiply_rest(s, err);
}

static size_t count_occurrences(const tni_einsum *sum)
{
    size_t count = 0;
    for (int32_t term = 0; term < sum->terms; term++)
        count += (size_t)sum->ndim[term];
    return count;
}

static tn_status alloc_search(search *s, tn_error *err)
{
    const size_t terms = 2 * (size_t)s->sum->terms, indices = s->words * 64;
    const size_t nodes = count_occurrences(s->sum);
    for (s->table_size = 16; s->table_size < 2 * terms;)
        s->table_size *= 2;
    s->sets = tni_alloc_zeroed((terms + 4) * s->words, sizeof *s->sets);
    s->footprint = tni_alloc_zeroed(terms, sizeof *s->footprint);
    s->left = tni_alloc_zeroed(terms, sizeof *s->left);
    s->seen = tni_alloc_zeroed(terms, sizeof *s->seen);
    s->uses = tni_alloc_zeroed(indices, sizeof *s->uses);
    s->head = tni_alloc(indices * sizeof *s->head);
    s->nodes = tni_alloc(nodes * sizeof *s->nodes);
    s->table = tni_alloc_zeroed(s->table_size, sizeof *s->table);
    if (!s->sets || !s->footprint || !s->left || !s->seen || !s->uses || !s->head || !s->nodes ||
        !s->table)
        return tni_einsum_no_memory(err, "a search");
    memset(s->head, 0xFF, indices * sizeof *s->head);
    for (size_t i = 0; i < nodes; i++)
        s->nodes[i].next = (int32_t)i + 1;
    return TN_OK;
}

static void init_sets(search *s)
{
    const tni_einsum *sum = s->sum;
    const size_t terms = 2 * (size_t)sum->terms, bytes = s->words * sizeof *s->sets;
    s->kept = s->sets + terms * s->words;
    s->twice = s->kept + s->words;
    s->thrice = s->twice + s->words;
    s->room = s->thrice + s->words;
    memcpy(s->sets, sum->sets, (size_t)sum->terms * bytes);
    memcpy(s->kept, tni_einsum_set(sum, 0), bytes);
    for (int32_t term = 1; term < sum->terms; term++) {
        for (size_t i = 0; i < s->words; i++)
            s->kept[i] &= set_of(s, term)[i];
    }
    for (size_t i = 0; i < s->words; i++)
        s->kept[i] |= tni_einsum_set(sum, sum->terms)[i];
    for (int32_t term = 0; term < sum->terms; term++)
        s->footprint[term] = tni_einsum_values(sum, set_of(s, term));
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
    tn_status status = alloc_search(&s, err);
    if (!status) {
        init_sets(&s);
        status = run_search(&s, err);
    }
    tni_release(s.sets);
    tni_release(s.footprint);
    tni_release(s.left);
    tni_release(s.seen);
    tni_release(s.uses);
    tni_release(s.head);
    tni_release(s.nodes);
    tni_release(s.table);
    tni_release(s.heap);
    return status;
}
