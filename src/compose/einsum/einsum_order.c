/* Orders of contraction: what they cost, and those that need no search. */
#include "einsum.h"

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
    for (size_t word = 0; word < (terms + 1) * words; word++) {
        for (uint64_t bits = sum->sets[word]; bits;)
            out->uses[word % words * 64 + (size_t)tni_einsum_take_index(&bits)]++;
    }
    return TN_OK;
}

void tni_einsum_left_release(tni_einsum_left *left)
{
    tni_release(left->uses);
    tni_release(left->sets);
    *left = (tni_einsum_left){0};
}

/* A word of the indices that `term` alone has. Results have none: they would have been summed. */
static uint64_t alone_word(const tni_einsum *sum, int32_t term, size_t word)
{
    return term < sum->terms ? tni_einsum_alone(sum, term)[word] : 0;
}

/* Whether the indices that a and b alone have are summed before the pair. */
static void choose_sums(const tni_einsum_left *left, int32_t a, int32_t b, bool out_before[2])
{
    const size_t words = (size_t)left->sum->words;
    bool any_a = false, any_b = false, a_in_b = true, b_in_a = true;
    for (size_t i = 0; i < words; i++) {
        const uint64_t of_a = alone_word(left->sum, a, i), of_b = alone_word(left->sum, b, i);
        const uint64_t x = left->sets[(size_t)a * words + i] & ~of_a;
        const uint64_t y = left->sets[(size_t)b * words + i] & ~of_b;
        any_a = any_a || of_a;
        any_b = any_b || of_b;
        a_in_b = a_in_b && !(x & ~y);
        b_in_a = b_in_a && !(y & ~x);
    }
    out_before[0] = any_a && !b_in_a;
    out_before[1] = any_b && (!a_in_b || (any_a && b_in_a));
}

tni_einsum_pair_cost tni_einsum_left_pair(tni_einsum_left *left, int32_t a, int32_t b)
{
    const tni_einsum *sum = left->sum;
    const size_t words = (size_t)sum->words;
    const uint64_t *of_a = left->sets + (size_t)a * words, *of_b = left->sets + (size_t)b * words;
    uint64_t *result = left->sets + (size_t)left->next++ * words;
    tni_einsum_pair_cost cost = {.pair = 1};
    bool before[2], summed = false;
    choose_sums(left, a, b, before);
    cost.before[0] = before[0] ? 2 * tni_einsum_values(sum, of_a) : 0;
    cost.before[1] = before[1] ? 2 * tni_einsum_values(sum, of_b) : 0;
    for (size_t word = 0; word < words; word++) {
        const uint64_t alone =
            (before[0] ? alone_word(sum, a, word) : 0) | (before[1] ? alone_word(sum, b, word) : 0);
        for (uint64_t bits = of_a[word] | of_b[word]; bits;) {
            const int32_t at = tni_einsum_take_index(&bits), index = (int32_t)word * 64 + at;
            left->uses[index] -= (int32_t)(of_a[word] >> at & 1) + (int32_t)(of_b[word] >> at & 1);
            if (left->uses[index] > 0) {
                result[word] |= UINT64_C(1) << at;
                left->uses[index]++;
            }
            if (alone >> at & 1)
                continue;
            cost.pair *= (double)sum->size[index];
            summed = summed || !(result[word] >> at & 1);
        }
    }
    cost.pair *= summed ? 2 : 1;
    return cost;
}

double tni_einsum_cost_of_one(const tni_einsum *sum)
{
    const uint64_t *set = tni_einsum_set(sum, 0), *out = tni_einsum_set(sum, 1);
    const bool summed = memcmp(set, out, (size_t)sum->words * sizeof *set) != 0;
    return tni_einsum_values(sum, set) * (summed ? 2 : 1);
}

tn_status tni_einsum_cost(const tni_einsum *sum, const tni_einsum_order *order, double *out,
                          tn_error *err)
{
    tni_einsum_left left;
    tn_status status = tni_einsum_left_init(sum, &left, err);
    if (status)
        return status;
    *out = 0;
    for (int32_t i = 0; i < order->count; i++) {
        const tni_einsum_pair_cost cost =
            tni_einsum_left_pair(&left, order->pairs[i][0], order->pairs[i][1]);
        *out += cost.before[0] + cost.before[1] + cost.pair;
    }
    tni_einsum_left_release(&left);
    return TN_OK;
}

tn_status tni_einsum_keep_cheaper(const tni_einsum *sum, const tni_einsum_order *order,
                                  tni_einsum_order *best, double *cost, tn_error *err)
{
    double found;
    const tn_status status = tni_einsum_cost(sum, order, &found, err);
    if (status || found >= *cost)
        return status;
    *cost = found;
    memcpy(best->pairs, order->pairs, (size_t)best->count * sizeof *best->pairs);
    return TN_OK;
}

void tni_einsum_order_release(tni_einsum_order *order)
{
    tni_release(order->pairs);
    *order = (tni_einsum_order){0};
}

void tni_einsum_order_from_left(tni_einsum_order *order)
{
    for (int32_t i = 0; i < order->count; i++) {
        order->pairs[i][0] = i ? order->count + i : 0;
        order->pairs[i][1] = i + 1;
    }
}

/* The terms that are left, by position. */
typedef struct positions {
    int32_t *terms;
    int32_t count;
} positions;

static int32_t take_position(positions *left, int32_t at)
{
    const int32_t term = left->terms[at];
    left->count--;
    memmove(left->terms + at, left->terms + at + 1,
            (size_t)(left->count - at) * sizeof *left->terms);
    return term;
}

/* Follows step `index` of args->path, whose pairs so far are *made. */
static tn_status follow_step(const tn_einsum_args *args, int32_t index, positions *left,
                             tni_einsum_order *order, int32_t *made, tn_error *err)
{
    const int32_t a = args->path[2 * (size_t)index], b = args->path[2 * (size_t)index + 1];
    const int32_t low = a < b ? a : b, high = a < b ? b : a;
    if (b == -1 && a >= 0 && a < left->count) { /* summed alone, which is part of its pair */
        const int32_t term = take_position(left, a);
        left->terms[left->count++] = term;
        return TN_OK;
    }
    if (low < 0 || low == high || high >= left->count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "path[%d]: expected two different positions below %d, got %d and %d",
                       (int)index, (int)left->count, (int)a, (int)b);
    order->pairs[*made][1] = take_position(left, high);
    order->pairs[*made][0] = take_position(left, low);
    left->terms[left->count++] = args->count + (*made)++;
    return TN_OK;
}

static tn_status init_positions(int32_t count, positions *out, tn_error *err)
{
    out->count = count;
    out->terms = tni_alloc((size_t)count * sizeof *out->terms);
    if (!out->terms)
        return tni_einsum_no_memory(err, "a path");
    for (int32_t i = 0; i < count; i++)
        out->terms[i] = i;
    return TN_OK;
}

tn_status tni_einsum_order_given(const tn_einsum_args *args, tni_einsum_order *order, tn_error *err)
{
    int32_t pairs = 0, made = 0;
    for (int32_t i = 0; i < args->path_count; i++)
        pairs += args->path[2 * (size_t)i + 1] != -1;
    if (pairs != order->count)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "path: expected %d pairs for %d operands, got %d", (int)order->count,
                       (int)args->count, (int)pairs);
    positions left;
    tn_status status = init_positions(args->count, &left, err);
    for (int32_t i = 0; i < args->path_count && !status; i++)
        status = follow_step(args, i, &left, order, &made, err);
    tni_release(left.terms);
    return status;
}

static int32_t position_of(const positions *left, int32_t term)
{
    int32_t at = 0;
    while (left->terms[at] != term)
        at++;
    return at;
}

/* Writes a step of one operand, or of two if `second` is not -1; its result is the term `made`. */
static void write_step(positions *left, int32_t first, int32_t second, int32_t made, int32_t *path)
{
    const int32_t a = position_of(left, first), b = second < 0 ? -1 : position_of(left, second);
    path[0] = b >= 0 && b < a ? b : a;
    path[1] = b >= 0 && b < a ? a : b;
    if (b >= 0)
        take_position(left, path[1]);
    take_position(left, path[0]);
    left->terms[left->count++] = made;
}

tn_status tni_einsum_order_write(const tni_einsum *sum, const tni_einsum_order *order,
                                 int32_t *out_path, int32_t *out_steps, double *out_cost,
                                 tn_error *err)
{
    positions at = {0};
    tni_einsum_left left = {0};
    int32_t steps = 0;
    double sum_of_costs = 0;
    tn_status status = init_positions(sum->terms, &at, err);
    if (!status)
        status = tni_einsum_left_init(sum, &left, err);
    for (int32_t i = 0; i < order->count && !status; i++) {
        const int32_t *pair = order->pairs[i], made = left.next;
        const tni_einsum_pair_cost cost = tni_einsum_left_pair(&left, pair[0], pair[1]);
        for (int32_t k = 0; k < 2; k++) {
            if (cost.before[k] > 0)
                write_step(&at, pair[k], -1, pair[k], out_path + 2 * (size_t)steps++);
        }
        write_step(&at, pair[0], pair[1], made, out_path + 2 * (size_t)steps++);
        sum_of_costs += cost.before[0] + cost.before[1] + cost.pair;
    }
    tni_einsum_left_release(&left);
    tni_release(at.terms);
    if (status)
        return status;
    *out_steps = steps;
    *out_cost = sum_of_costs;
    return TN_OK;
}
