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
    uint64_t members;    /* operands */
    uint64_t neighbours; /* other operands that have an index of its result */
    uint64_t summed;     /* those of them that have one that is summed */
    double cost;
    double values;    /* elements of its result */
    uint32_t from[2]; /* parts; unused for a single operand */
    bool summing; /* an operand with indices of its own, which its pair may sum with the others */
} part;

typedef struct search {
    const tni_einsum *sum;
    const tni_einsum_exact_args *how;
    size_t words;
    uint64_t *holders; /* of each index: the operands that have it */
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

/* Sets s->result to those of the indices `of` that out or another operand than the part's has, and
 * finds the part's neighbours. */
static void find_result(search *s, part *made, const uint64_t *of)
{
    const uint64_t *out = tni_einsum_set(s->sum, s->sum->terms);
    made->neighbours = made->summed = 0;
    for (size_t word = 0; word < s->words; word++) {
        uint64_t result = of[word] & out[word];
        for (uint64_t bits = of[word]; bits;) {
            const int32_t at = tni_einsum_take_index(&bits);
            const uint64_t others = s->holders[word * 64 + (size_t)at] & ~made->members;
            made->neighbours |= others;
            made->summed |= out[word] >> at & 1 ? 0 : others;
            result |= others ? UINT64_C(1) << at : 0;
        }
        s->result[word] = result;
    }
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

/* Sets s->involved to the indices of two parts. */
static void find_involved(search *s, size_t a, size_t b)
{
    const uint64_t *x = set_of(s, a), *y = set_of(s, b);
    for (size_t i = 0; i < s->words; i++)
        s->involved[i] = x[i] | y[i];
}

static bool has_all_involved(const search *s, size_t index)
{
    return memcmp(set_of(s, index), s->involved, s->words * sizeof *s->involved) == 0;
}

/* What the pair costs beside its parts. The indices that an operand alone has are counted with its
 * part; if the operand has all other indices of the pair as well, the pair is summed with them. */
static double pair_cost(const search *s, size_t a, size_t b, const uint64_t *result)
{
    if ((s->parts[a].summing && has_all_involved(s, a)) ||
        (s->parts[b].summing && has_all_involved(s, b)))
        return 0;
    uint64_t summed = 0;
    for (size_t i = 0; i < s->words; i++)
        summed |= s->involved[i] & ~result[i];
    return tni_einsum_values(s->sum, s->involved) * (summed ? 2 : 1);
}

/* A cost that a pair of two parts is not below. */
static double least_pair(const part *a, const part *b)
{
    return a->summing || b->summing ? 0 : a->values > b->values ? a->values : b->values;
}

/* Combines two parts without a common operand, if the cost is within the bound and below the least
 * cost found so far for the same operands. */
static tn_status combine(search *s, size_t a, size_t b, tn_error *err)
{
    const double before = s->parts[a].cost + s->parts[b].cost;
    const double least = before + least_pair(&s->parts[a], &s->parts[b]);
    if (least > s->bound)
        return TN_OK;
    part made = {.members = s->parts[a].members | s->parts[b].members,
                 .from = {(uint32_t)a, (uint32_t)b}};
    const size_t place = place_of(s, made.members);
    part *known = s->table[place] ? &s->parts[s->table[place] - 1] : NULL;
    if (known && least >= known->cost)
        return TN_OK;
    find_involved(s, a, b);
    if (known) {
        made.cost = before + pair_cost(s, a, b, set_of(s, s->table[place] - 1));
        made.neighbours = known->neighbours;
        made.summed = known->summed;
        made.values = known->values;
    } else {
        find_result(s, &made, s->involved);
        made.cost = before + pair_cost(s, a, b, s->result);
        made.values = tni_einsum_values(s->sum, s->result);
    }
    /* A further contraction, unless this is the last, costs at least the elements. */
    const bool last = made.members == UINT64_MAX >> (64 - s->sum->terms);
    if (made.cost + (last ? 0 : made.values) > s->bound || (known && made.cost >= known->cost))
        return TN_OK;
    if (!known)
        return add_part(s, &made, place, err);
    *known = made;
    return TN_OK;
}

/* Whether parts without a common operand are combined. */
static bool are_combined(const search *s, const part *a, const part *b)
{
    return a->neighbours & b->members || s->how->outer || !(a->summed | b->summed);
}

/* Combines all parts of `small` operands with those of `large`. */
static tn_status combine_sizes(search *s, int32_t small, int32_t large, tn_error *err)
{
    tn_status status = TN_OK;
    const size_t end = s->begin[large + 1];
    for (size_t a = s->begin[small]; a < s->begin[small + 1]; a++) {
        const uint64_t members = s->parts[a].members;
        for (size_t b = small == large ? a + 1 : s->begin[large]; b < end; b++) {
            if (s->parts[b].members & members || !are_combined(s, &s->parts[a], &s->parts[b]))
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

/* Adds the part of one operand, whose own indices are summed. */
static tn_status add_operand(search *s, int32_t term, tn_error *err)
{
    const uint64_t *set = tni_einsum_set(s->sum, term), *alone = tni_einsum_alone(s->sum, term);
    part made = {.members = UINT64_C(1) << term};
    find_result(s, &made, set);
    for (size_t i = 0; i < s->words; i++) {
        made.summing = made.summing || alone[i];
        s->result[i] = set[i] & ~alone[i];
    }
    made.cost = made.summing ? 2 * tni_einsum_values(s->sum, set) : 0;
    made.values = tni_einsum_values(s->sum, s->result);
    return add_part(s, &made, place_of(s, made.members), err);
}

/* Searches within the bound. */
static tn_status search_within(search *s, tn_error *err)
{
    const int32_t terms = s->sum->terms;
    s->count = 0;
    if (s->table)
        memset(s->table, 0, s->table_size * sizeof *s->table);
    tn_status status = s->table ? TN_OK : grow_table(s, err);
    for (int32_t term = 0; term < terms && !status; term++)
        status = add_operand(s, term, err);
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

static void find_holders(search *s)
{
    for (int32_t term = 0; term < s->sum->terms; term++) {
        for (size_t word = 0; word < s->words; word++) {
            for (uint64_t bits = tni_einsum_set(s->sum, term)[word]; bits;)
                s->holders[word * 64 + (size_t)tni_einsum_take_index(&bits)] |= UINT64_C(1) << term;
        }
    }
}

tn_status tni_einsum_exact(const tni_einsum *sum, const tni_einsum_exact_args *how,
                           tni_einsum_order *out, bool *out_found, tn_error *err)
{
    search s = {.sum = sum, .how = how, .words = (size_t)sum->words};
    tn_status status = TN_OK;
    s.holders = tni_alloc_zeroed((64 + 2) * s.words, sizeof *s.holders);
    if (s.holders) {
        s.involved = s.holders + 64 * s.words;
        s.result = s.involved + s.words;
        find_holders(&s);
        status = search_all(&s, out, out_found, err);
    } else
        status = tni_einsum_no_memory(err, "a search");
    tni_release(s.parts);
    tni_release(s.sets);
    tni_release(s.table);
    tni_release(s.holders);
    return status;
}
