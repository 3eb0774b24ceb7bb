/* Exhaustive search for the order of contraction of least cost for few operands: the best order of each
 * set of operands, from the best orders of all pairs of its parts. */
#include "einsum.h"

#include <math.h>

enum { BITS = 8, TABLES = 64 / BITS };

typedef struct search {
    const tni_einsum *sum;
    double (*values)[1 << BITS]; /* of sets of indices, by the bits of each byte */
    int32_t tables;
    uint64_t *sets;   /* of each set of operands: first all indices, then those of its result */
    double *costs;    /* of its best order; INFINITY if that costs too much */
    uint16_t *parts;  /* one of the two parts that it is made from */
    uint16_t *listed; /* parts of a set that may be tried */
    uint16_t *known;  /* sets that have an order, by their lowest operand */
    size_t known_begin[TNI_EINSUM_SUBSETS], known_end[TNI_EINSUM_SUBSETS];
    uint64_t out;
    uint32_t summing; /* operands with indices of their own, which a pair may sum with the others */
    uint32_t all;
    double most;
} search;

static double values_of(const search *s, uint64_t set)
{
    double values = s->values[0][set & 0xFF];
    for (int32_t i = 1; i < s->tables; i++)
        values *= s->values[i][set >> (BITS * i) & 0xFF];
    return values;
}

static void init_values(search *s)
{
    const tni_einsum *sum = s->sum;
    for (int32_t i = 0; i < s->tables; i++) {
        s->values[i][0] = 1;
        for (int32_t bits = 1; bits < 1 << BITS; bits++) {
            const int32_t index = BITS * i + __builtin_ctz((unsigned)bits);
            s->values[i][bits] = s->values[i][bits & (bits - 1)] *
                                 (index < sum->indices ? (double)sum->size[index] : 1);
        }
    }
}

/* Finds the indices of the result of each set of operands. The indices that an operand alone has are
 * summed before. */
static void init_sets(search *s)
{
    for (int32_t term = 0; term < s->sum->terms; term++) {
        const uint64_t alone = tni_einsum_alone(s->sum, term)[0];
        s->sets[1U << term] = tni_einsum_set(s->sum, term)[0] & ~alone;
        s->summing |= alone ? 1U << term : 0;
    }
    s->sets[0] = 0;
    for (uint32_t members = 1; members <= s->all; members++)
        s->sets[members] = s->sets[members & (members - 1)] | s->sets[members & -members];
    for (uint32_t members = 1; members < s->all - members; members++) {
        const uint64_t of = s->sets[members], others = s->sets[s->all ^ members];
        s->sets[members] = of & (others | s->out);
        s->sets[s->all ^ members] = others & (of | s->out);
    }
    s->sets[s->all] &= s->out;
}

/* Returns a lower bound of the cost of all pairs after the result of `members`. What is summed needs twice its
 * elements: in one pair, or in one that multiplies and one that sums. A pair that an operand sums with
 * its own indices costs nothing beside the operand. */
static double least_after(const search *s, uint32_t members, double values)
{
    const uint64_t set = s->sets[members];
    if (members == s->all)
        return 0;
    for (uint32_t bits = s->summing & ~members; bits; bits &= bits - 1) {
        if (!(set & ~s->sets[bits & -bits]))
            return 0;
    }
    return set & ~s->out ? 2 * values : values;
}

static bool is_single(uint32_t members)
{
    return !(members & (members - 1));
}

/* Whether a part is an operand that sums the indices of a pair with its own. */
static bool sums_pair(const search *s, uint32_t part, uint64_t involved)
{
    return is_single(part) && s->summing & part && s->sets[part] == involved;
}

/* What the pair costs beside its parts. */
static double pair_cost(const search *s, uint32_t a, uint32_t b)
{
    const uint64_t involved = s->sets[a] | s->sets[b];
    if (sums_pair(s, a, involved) || sums_pair(s, b, involved))
        return 0;
    return values_of(s, involved) * (involved & ~s->sets[a | b] ? 2 : 1);
}

/* The search for the best order of a set of operands. */
typedef struct target {
    uint32_t members;
    double least; /* of the last pair */
    double limit; /* of the cost without `least` */
} target;

/* Keeps the order that has `a` as a part, if it costs less. */
static inline void try_part(search *s, target *of, uint32_t a)
{
    const uint32_t b = of->members ^ a;
    const double before = s->costs[a] + s->costs[b];
    if (before >= of->limit)
        return;
    const double cost = before + pair_cost(s, a, b);
    if (cost - of->least < of->limit) {
        of->limit = cost - of->least;
        s->costs[of->members] = cost;
        s->parts[of->members] = (uint16_t)a;
    }
}

static void add_known(search *s, uint32_t members)
{
    s->known[s->known_end[__builtin_ctz(members)]++] = (uint16_t)members;
}

/* Lists the parts of `members` that have its lowest operand: all, or the known ones, if these are fewer. */
static size_t list_parts(search *s, uint32_t members)
{
    const uint32_t low = members & -members, rest = members ^ low;
    const size_t begin = s->known_begin[__builtin_ctz(low)];
    const size_t end = s->known_end[__builtin_ctz(low)];
    size_t count = 0;
    if (end - begin < (size_t)1 << (__builtin_popcount(members) - 1)) {
        for (size_t i = begin; i < end; i++) {
            s->listed[count] = s->known[i];
            count += !(s->known[i] & ~members);
        }
        return count;
    }
    for (uint32_t more = (rest - 1) & rest; more; more = (more - 1) & rest)
        s->listed[count++] = (uint16_t)(low | more);
    s->listed[count++] = (uint16_t)low;
    return count;
}

/* Finds the best order of a set of operands, if there is one that costs less than the limit. Parts are
 * filtered without branches, because processors could not predict them. */
static void search_set(search *s, uint32_t members)
{
    const double values = values_of(s, s->sets[members]);
    target of = {.members = members, .least = s->summing & members ? 0 : values};
    of.limit = s->most - least_after(s, members, values) - of.least;
    s->costs[members] = INFINITY;
    if (of.limit <= 0)
        return;
    const size_t listed = list_parts(s, members);
    size_t cheap = 0;
    for (size_t i = 0; i < listed; i++) {
        const uint16_t part = s->listed[i];
        s->listed[cheap] = part;
        cheap += s->costs[part] + s->costs[members ^ part] < of.limit;
    }
    for (size_t i = 0; i < cheap; i++)
        try_part(s, &of, s->listed[i]);
    if (s->costs[members] < INFINITY)
        add_known(s, members);
}

static void search_all(search *s)
{
    for (uint32_t members = 1; members <= s->all; members++) {
        if (!is_single(members)) {
            search_set(s, members);
            continue;
        }
        const int32_t term = __builtin_ctz(members);
        s->costs[members] =
            s->summing & members ? 2 * values_of(s, tni_einsum_set(s->sum, term)[0]) : 0;
        add_known(s, members);
    }
}

/* Writes the pairs of a set after those of its parts; returns its term. */
static int32_t write_pairs(const search *s, uint32_t members, int32_t *used, tni_einsum_order *out)
{
    if (is_single(members))
        return __builtin_ctz(members);
    const uint32_t part = s->parts[members];
    const int32_t a = write_pairs(s, part, used, out);
    const int32_t b = write_pairs(s, members ^ part, used, out);
    out->pairs[*used][0] = a < b ? a : b;
    out->pairs[*used][1] = a < b ? b : a;
    return s->sum->terms + (*used)++;
}

tn_status tni_einsum_subsets(const tni_einsum *sum, double most, tni_einsum_order *out,
                             tn_error *err)
{
    const size_t count = (size_t)1 << sum->terms;
    search s = {.sum = sum,
                .tables = (sum->indices + BITS - 1) / BITS,
                .out = tni_einsum_set(sum, sum->terms)[0],
                .all = (uint32_t)count - 1,
                .most = most};
    int32_t used = 0;
    s.tables = s.tables ? s.tables : 1;
    s.values = tni_alloc((size_t)s.tables * sizeof *s.values);
    s.sets = tni_alloc(count * (sizeof *s.sets + sizeof *s.costs + sizeof *s.parts +
                                sizeof *s.known + sizeof *s.listed));
    if (s.values && s.sets) {
        s.costs = (double *)(s.sets + count);
        s.parts = (uint16_t *)(s.costs + count);
        s.known = s.parts + count;
        s.listed = s.known + count;
        for (int32_t term = 0; term < sum->terms; term++) /* half the sets have operand 0, ... */
            s.known_begin[term] = s.known_end[term] = count - (count >> term);
        init_values(&s);
        init_sets(&s);
        search_all(&s);
        if (s.costs[s.all] < INFINITY)
            write_pairs(&s, s.all, &used, out);
    }
    const tn_status status = s.values && s.sets ? TN_OK : tni_einsum_no_memory(err, "a search");
    tni_release(s.values);
    tni_release(s.sets);
    return status;
}
