/* The texts, costs and sizes of an explanation: the equation of each step, and the equation that remains. */
#include "einsum.h"

#include <string.h>

static void write_axes(const tni_einsum *sum, int32_t term, tni_buffer *to)
{
    uint64_t *one = tni_alloc_zeroed((size_t)sum->words, sizeof *one);
    to->failed = to->failed || !one;
    for (int32_t dim = 0; dim < sum->ndim[term] && one; dim++) {
        const int32_t index = sum->axes[term][dim];
        one[index / 64] = UINT64_C(1) << index % 64;
        tni_einsum_write_set(sum, one, to);
        one[index / 64] = 0;
    }
    tni_release(one);
}

/* Writes an operand or out as the equation has it, and a result as its indices. */
static void write_term(const tni_einsum_left *left, int32_t term, tni_buffer *to)
{
    if (term <= left->sum->terms)
        write_axes(left->sum, term, to);
    else
        tni_einsum_write_set(left->sum, left->sets + (size_t)(term - 1) * (size_t)left->sum->words,
                             to);
}

char *tni_einsum_write(const tni_einsum *sum)
{
    tni_buffer text = {0};
    for (int32_t term = 0; term <= sum->terms; term++) {
        tni_buffer_add(&text, term == sum->terms ? "->" : term ? "," : "");
        write_axes(sum, term, &text);
    }
    return tni_buffer_detach(&text);
}

/* Terms are numbered without out, which is term `terms` of the einsum. */
static int32_t written(const tni_einsum *sum, int32_t term)
{
    return term < sum->terms ? term : term + 1;
}

/* The terms that are left: for their cost, with the indices of more than one value; for their
 * equations, with all indices. */
typedef struct terms_left {
    tni_einsum_left cost, text;
    tni_einsum whole; /* the sets of `text`, otherwise as the einsum */
    int32_t *at;      /* the terms by position */
} terms_left;

static tn_status init_terms(const tni_einsum *sum, terms_left *out, tn_error *err)
{
    const size_t terms = (size_t)sum->terms + 1;
    *out = (terms_left){.whole = *sum};
    out->at = tni_alloc_zeroed(terms, sizeof *out->at);
    out->whole.sets = tni_alloc_zeroed(terms * (size_t)sum->words, sizeof *sum->sets);
    if (!out->at || !out->whole.sets)
        return tni_einsum_no_memory(err, "an explanation");
    for (int32_t i = 0; i < sum->terms; i++)
        out->at[i] = i;
    tni_einsum_make_sets(&out->whole);
    const tn_status status = tni_einsum_left_init(sum, &out->cost, err);
    return status ? status : tni_einsum_left_init(&out->whole, &out->text, err);
}

static void release_terms(terms_left *left)
{
    tni_einsum_left_release(&left->cost);
    tni_einsum_left_release(&left->text);
    tni_release(left->whole.sets);
    tni_release(left->at);
}

/* Contracts a pair; returns its cost. A label that is summed here, because it has one value in every
 * term that is left, is removed from the result's equation. */
static double contract_terms(terms_left *of, const int32_t *pair)
{
    const tni_einsum_left *cost = &of->cost;
    const size_t words = (size_t)cost->sum->words;
    const size_t a = (size_t)pair[0] * words, b = (size_t)pair[1] * words;
    const size_t made = (size_t)cost->next * words;
    const double found = tni_einsum_left_pair(&of->cost, pair[0], pair[1]);
    tni_einsum_left_pair(&of->text, pair[0], pair[1]);
    for (int32_t i = 0; i < cost->sum->indices; i++) {
        const size_t word = (size_t)(i / 64);
        const uint64_t bit = UINT64_C(1) << i % 64;
        const uint64_t summed =
            (cost->sets[a + word] | cost->sets[b + word]) & ~cost->sets[made + word];
        if (!(summed & of->text.sets[made + word] & bit))
            continue;
        of->text.sets[made + word] &= ~bit;
        of->text.uses[i]--;
    }
    return found;
}

/* Describes the pair `index`, and contracts it. */
static tn_status describe_pair(const tni_einsum *sum, const tni_einsum_order *order, terms_left *of,
                               int32_t index, tni_einsum_path_step *to, tn_error *err)
{
    const tni_einsum_left *left = &of->text;
    const int32_t *pair = order->pairs[index], made = left->next;
    int32_t *at = of->at;
    const int32_t count = sum->terms - index;
    int32_t kept = 0, terms[2] = {0};
    tni_buffer equation = {0}, remaining = {0};
    to->face.cost = contract_terms(of, pair);
    to->face.elements = tni_einsum_values(sum, of->cost.sets + (size_t)made * (size_t)sum->words);
    for (int32_t i = 0; i < count; i++) {
        const int32_t found = i - kept; /* of the pair */
        if (at[i] != pair[0] && at[i] != pair[1]) {
            at[kept++] = at[i];
            continue;
        }
        *(found ? &to->face.second : &to->face.first) = i;
        terms[found] = at[i];
    }
    at[kept++] = made;
    const bool last = index == order->count - 1;
    write_term(left, written(sum, terms[0]), &equation);
    tni_buffer_add(&equation, ",");
    write_term(left, written(sum, terms[1]), &equation);
    tni_buffer_add(&equation, "->");
    write_term(left, last ? sum->terms : written(sum, made), &equation);
    for (int32_t i = 0; i < kept; i++) {
        tni_buffer_add(&remaining, i ? "," : "");
        write_term(left, last ? sum->terms : written(sum, at[i]), &remaining);
    }
    tni_buffer_add(&remaining, "->");
    write_axes(sum, sum->terms, &remaining);
    to->equation = tni_buffer_detach(&equation);
    to->remaining = tni_buffer_detach(&remaining);
    return to->equation && to->remaining ? TN_OK : tni_einsum_no_memory(err, "an explanation");
}

/* Describes the step of an equation of one operand. */
static tn_status describe_only(const tni_einsum *sum, tni_einsum_path_step *to, tn_error *err)
{
    const uint64_t *set = tni_einsum_set(sum, 0), *out = tni_einsum_set(sum, 1);
    to->face.second = -1;
    to->face.elements = tni_einsum_values(sum, out);
    to->face.cost = tni_einsum_values(sum, set);
    if (memcmp(set, out, (size_t)sum->words * sizeof *set) != 0)
        to->face.cost *= 2;
    to->equation = tni_einsum_write(sum);
    to->remaining = tni_text_copy("");
    return to->equation && to->remaining ? TN_OK : tni_einsum_no_memory(err, "an explanation");
}

tn_status tni_einsum_describe(const tni_einsum *sum, const tni_einsum_order *order,
                              tni_einsum_path_step *steps, tn_error *err)
{
    terms_left left;
    tn_status status = init_terms(sum, &left, err);
    if (!status && sum->terms == 1)
        status = describe_only(sum, &steps[0], err);
    for (int32_t i = 0; i < order->count && !status; i++)
        status = describe_pair(sum, order, &left, i, &steps[i], err);
    release_terms(&left);
    return status;
}
