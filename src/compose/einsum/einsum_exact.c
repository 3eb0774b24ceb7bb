/* Exhaustive search for the order of contraction of least cost: partial orders of 1, 2, ... operands
 * from pairs of smaller ones. The bound on the cost grows from a low one, so that few partial orders
 * are kept; an order within a bound has no part beyond it, so the first order that is found is the
 * best. */
#include "einsum.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* The best order found for a set of operands. */
typedef struct part {
    uint64_t members; /* operands */
    double cost;
    double values;    /* elements of its result */
    uint32_t from[2]; /* parts; unused for a single operand */
    bool closed;      /* no other operand has an index of it */
} part;

typedef struct search {
    const tni_einsum *sum;
    const tni_einsum_exact_args *how;
    size_t words;
    double bound;
    double visits;
    part *parts;
    uint64_t *sets; /* [room]: indices of the parts' results */
    size_t count, room, sets_room;
    uint32_t *table; /* of parts by members: 1 + index, 0 for a free place */
    size_t table_size;
    size_t begin[66];   /* parts of k operands are begin[k] to begin[k + 1] - 1 */
    uint64_t *involved; /* of the pair that is visited; and the result of its operands */
    uint64_t *result;
    bool exceeded; /* a limit */
} search;

static uint64_t *set_of(const search *s, size_t index)
{
    return s->sets + index * s->words;
}

static size_t place_of(const search *s, uint64_t members)
{
    size_t at = (size_t)(members * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (s->table_size - 1);
    while (s->table[at] && s->parts && s->parts[s->table[at] - 1].members != members)
        at = (at + 1) & (s->table_size - 1);
    return at;
}

static tn_status grow_table(search *s, tn_error *err)
{
    const size_t size = s->table_size ? 2 * s->table_size : 256;
    uint32_t *table = tni_alloc_zeroed(size, sizeof *table);
    if (!table)
        return tni_einsum_no_memory(err, "partial orders");
    tni_release(s->table);
    s->table = table;
    s->table_size = size;
    for (size_t i = 0; i < s->count; i++)
        s->table[place_of(s, s->parts[i].members)] = (uint32_t)i + 1;
    return TN_OK;
}

/* Sets s->result to the indices that `members` share with out or with another operand. Returns
 * whether no other operand has one of them. */
static bool find_result(search *s, uint64_t members)
{
    const tni_einsum *sum = s->sum;
    bool closed = true;
    for (size_t i = 0; i < s->words; i++) {
        uint64_t inside = 0, outside = 0;
        for (int32_t term = 0; term < sum->terms; term++)
            *(members >> term & 1 ? &inside : &outside) |= tni_einsum_set(sum, term)[i];
        s->result[i] = inside & (outside | tni_einsum_set(sum, sum->terms)[i]);
        closed = closed && !(inside & outside);
    }
    return closed;
}

/* Adds a part, whose result's indices are s->result. */
static tn_status add_part(search *s, const part *made, size_t place, tn_error *err)
{
    void *parts = s->parts, *sets = s->sets;
    if (s->count >= s->how->entries) {
        s->exceeded = true;
        return TN_OK;
    }
    if (!tni_array_reserve(&parts, &s->room, s->count, s->count + 1, sizeof *made) || !parts)
        return tni_einsum_no_memory(err, "partial orders");
    s->parts = parts;
    if (!tni_array_reserve(&sets, &s->sets_room, s->count, s->count + 1,
                           s->words * sizeof *s->sets))
        return tni_einsum_no_memory(err, "partial orders");
    s->sets = sets;
    s->parts[s->count] = *made;
    memcpy(set_of(s, s->count), s->result, s->words * sizeof *s->sets);
    s->table[place] = (uint32_t)++s->count;
    return 2 * s->count > s->table_size ? grow_table(s, err) : TN_OK;
}

/* Combines two parts without a common operand, if the cost is within the bound and below the least
 * cost found so far for the same operands. */
static tn_status combine(search *s, size_t a, size_t b, tn_error *err)
{
    const double before = s->parts[a].cost + s->parts[b].cost;
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    uint64_t both = 0, more = 0;
    part made = {.members = s->parts[a].members | s->parts[b].members,
                 .from = {(uint32_t)a, (uint32_t)b}};
    const size_t place = place_of(s, made.members);
    part *known = s->table[place] ? &s->parts[s->table[place] - 1] : NULL;
    if (before >= (known ? known->cost : s->bound))
        return TN_OK;
    for (size_t i = 0; i < s->words; i++) {
        both |= x[i] & y[i];
        s->involved[i] = x[i] | y[i];
    }
    if (!both && !s->how->outer && !(s->parts[a].closed && s->parts[b].closed))
        return TN_OK;
    made.cost = before + tni_einsum_values(s->sum, s->involved);
    if (made.cost > s->bound || (known && made.cost >= known->cost))
        return TN_OK;
    const uint64_t *result = known ? set_of(s, s->table[place] - 1) : s->result;
    made.closed = known ? known->closed : find_result(s, made.members);
    made.values = known ? known->values : tni_einsum_values(s->sum, s->result);
    for (size_t i = 0; i < s->words; i++)
        more |= s->involved[i] & ~result[i];
    made.cost += more ? made.cost - before : 0;
    /* A further contraction, unless this is the last, costs at least the elements. */
    const bool last = made.members == UINT64_MAX >> (64 - s->sum->terms);
    if (made.cost + (last ? 0 : made.values) > s->bound)
        return TN_OK;
    if (!known)
        return add_part(s, &made, place, err);
    if (made.cost < known->cost)
        *known = made;
    return TN_OK;
}

/* Combines all parts of `small` operands with those of `large`. */
static tn_status combine_sizes(search *s, int32_t small, int32_t large, tn_error *err)
{
    tn_status status = TN_OK;
    const size_t end = s->begin[large + 1];
    for (size_t a = s->begin[small]; a < s->begin[small + 1]; a++) {
        const uint64_t members = s->parts[a].members;
        for (size_t b = small == large ? a + 1 : s->begin[large]; b < end; b++) {
            if (s->parts[b].members & members)
                continue;
            status = combine(s, a, b, err);
            if (status || s->exceeded)
                return status;
        }
        s->visits += (double)(end - s->begin[large]);
        s->exceeded = s->visits > s->how->visits;
        if (s->exceeded)
            return TN_OK;
    }
    return TN_OK;
}

/* Searches within the bound. */
static tn_status search_within(search *s, tn_error *err)
{
    const int32_t terms = s->sum->terms;
    tn_status status = TN_OK;
    s->count = 0;
    if (s->table)
        memset(s->table, 0, s->table_size * sizeof *s->table);
    for (int32_t term = 0; term < terms && !status; term++) {
        part one = {.members = UINT64_C(1) << term};
        one.closed = find_result(s, one.members);
        memcpy(s->result, tni_einsum_set(s->sum, term), s->words * sizeof *s->result);
        one.values = tni_einsum_values(s->sum, s->result);
        status = s->table ? TN_OK : grow_table(s, err);
        if (!status)
            status = add_part(s, &one, place_of(s, one.members), err);
    }
    s->begin[1] = 0;
    s->begin[2] = s->count;
    for (int32_t size = 2; size <= terms && !status && !s->exceeded; size++) {
        for (int32_t small = 1; 2 * small <= size && !status && !s->exceeded; small++)
            status = combine_sizes(s, small, size - small, err);
        s->begin[size + 1] = s->count;
    }
    return status;
}

/* Writes the pairs of a part after those of the parts that it is made from; returns its term. */
static int32_t write_pairs(const search *s, size_t index, int32_t *used, tni_einsum_order *out)
{
    const part *of = &s->parts[index];
    if (!(of->members & (of->members - 1)))
        return (int32_t)index;
    const int32_t a = write_pairs(s, of->from[0], used, out);
    const int32_t b = write_pairs(s, of->from[1], used, out);
    out->pairs[*used][0] = a < b ? a : b;
    out->pairs[*used][1] = a < b ? b : a;
    return s->sum->terms + (*used)++;
}

/* A cost that no order is below: each operand and out are part of a contraction. */
static double least_cost(const tni_einsum *sum)
{
    double least = 1;
    for (int32_t term = 0; term <= sum->terms; term++)
        least = fmax(least, tni_einsum_values(sum, tni_einsum_set(sum, term)));
    return least;
}

static tn_status search_all(search *s, tni_einsum_order *out, bool *out_found, tn_error *err)
{
    const int32_t terms = s->sum->terms;
    int32_t used = 0;
    tn_status status = TN_OK;
    *out_found = false;
    for (s->bound = 2 * least_cost(s->sum); !status && !s->exceeded && !*out_found; s->bound *= 8) {
        const bool most = s->bound >= s->how->most;
        s->bound = most ? s->how->most : s->bound;
        status = search_within(s, err);
        const bool found = !status && !s->exceeded && s->begin[terms] < s->begin[terms + 1];
        if (found && s->parts)
            write_pairs(s, s->begin[terms], &used, out);
        *out_found = found || (most && !status && !s->exceeded);
    }
    return status;
}

tn_status tni_einsum_exact(const tni_einsum *sum, const tni_einsum_exact_args *how,
                           tni_einsum_order *out, bool *out_found, tn_error *err)
{
    search s = {.sum = sum, .how = how, .words = (size_t)sum->words};
    s.involved = tni_alloc_zeroed(2 * s.words, sizeof *s.involved);
    s.result = s.involved ? s.involved + s.words : NULL;
    tn_status status =
        s.involved ? search_all(&s, out, out_found, err) : tni_einsum_no_memory(err, "a search");
    tni_release(s.parts);
    tni_release(s.sets);
    tni_release(s.table);
    tni_release(s.involved);
    return status;
}
