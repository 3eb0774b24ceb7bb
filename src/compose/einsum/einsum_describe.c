/* The texts, costs and sizes of an explanation: the equation of each step, and the equation that
 * remains. */
#include "einsum.h"

#include <string.h>

char *tni_einsum_write(const tni_einsum *sum)
{
    tni_buffer text = {0};
    for (int32_t term = 0; term <= sum->terms; term++) {
        tni_buffer_add(&text, term == sum->terms ? "->" : term ? "," : "");
        tni_einsum_write_axes(sum, term, &text);
    }
    return tni_buffer_detach(&text);
}

/* The terms that are left: for their cost, with the indices of more than one value; for their
 * equations, with all indices. */
typedef struct terms_left {
    tni_einsum_left cost, text;
    tni_einsum whole; /* the sets of `text`, otherwise as the einsum */
    int32_t *at;      /* the terms by position */
    int32_t count;    /* terms that are left */
    char **texts;     /* [2 * terms]: the labels of each term; NULL if it is not yet made */
    char *out;        /* the labels of out */
} terms_left;

static char *axes_text(const tni_einsum *sum, int32_t term)
{
    tni_buffer text = {0};
    tni_einsum_write_axes(sum, term, &text);
    return tni_buffer_detach(&text);
}

static uint64_t *text_set(const terms_left *of, int32_t term)
{
    return of->text.sets + (size_t)term * (size_t)of->whole.words;
}

/* Writes the labels of a term anew. */
static tn_status write_text(terms_left *of, int32_t term, tn_error *err)
{
    tni_buffer text = {0};
    tni_einsum_write_set(&of->whole, text_set(of, term), &text);
    tni_release(of->texts[term]);
    of->texts[term] = tni_buffer_detach(&text);
    return of->texts[term] ? TN_OK : tni_einsum_no_memory(err, "an explanation");
}

static tn_status init_terms(const tni_einsum *sum, terms_left *out, tn_error *err)
{
    const size_t terms = (size_t)sum->terms + 1;
    *out = (terms_left){.whole = *sum, .count = sum->terms};
    out->at = tni_alloc_zeroed(terms, sizeof *out->at);
    out->texts = tni_alloc_zeroed(2 * terms, sizeof *out->texts);
    out->out = axes_text(sum, sum->terms);
    out->whole.sets = tni_alloc_zeroed(terms * (size_t)sum->words, sizeof *sum->sets);
    if (!out->at || !out->texts || !out->out || !out->whole.sets)
        return tni_einsum_no_memory(err, "an explanation");
    for (int32_t i = 0; i < sum->terms; i++) {
        out->at[i] = i;
        if (!(out->texts[i] = axes_text(sum, i)))
            return tni_einsum_no_memory(err, "an explanation");
    }
    tni_einsum_make_sets(&out->whole);
    const tn_status status = tni_einsum_left_init(sum, &out->cost, err);
    return status ? status : tni_einsum_left_init(&out->whole, &out->text, err);
}

static void release_terms(terms_left *of)
{
    tni_einsum_left_release(&of->cost);
    tni_einsum_left_release(&of->text);
    for (int32_t i = 0; i < 2 * of->whole.terms && of->texts; i++)
        tni_release(of->texts[i]);
    tni_release(of->texts);
    tni_release(of->out);
    tni_release(of->whole.sets);
    tni_release(of->at);
}

/* Removes a term from the positions, and returns which it had. */
static int32_t take_term(terms_left *of, int32_t term)
{
    int32_t at = 0;
    while (of->at[at] != term)
        at++;
    of->count--;
    memmove(of->at + at, of->at + at + 1, (size_t)(of->count - at) * sizeof *of->at);
    return at;
}

/* Writes the equation that is left. */
static char *write_remaining(const terms_left *of)
{
    tni_buffer text = {0};
    for (int32_t i = 0; i < of->count; i++) {
        tni_buffer_add(&text, i ? "," : "");
        tni_buffer_add(&text, of->texts[of->at[i]]);
    }
    tni_buffer_add(&text, "->");
    tni_buffer_add(&text, of->out);
    return tni_buffer_detach(&text);
}

static tn_status end_step(const terms_left *of, tni_buffer *equation, tni_einsum_path_step *to,
                          tn_error *err)
{
    to->equation = tni_buffer_detach(equation);
    to->remaining = write_remaining(of);
    return to->equation && to->remaining ? TN_OK : tni_einsum_no_memory(err, "an explanation");
}

/* Describes the sum, before its pair, of the labels that an operand alone has. */
static tn_status describe_sum(terms_left *of, int32_t term, double cost, tni_einsum_path_step *to,
                              tn_error *err)
{
    const tni_einsum *sum = of->cost.sum;
    uint64_t *set = text_set(of, term), *alone = tni_einsum_alone(sum, term);
    tni_buffer equation = {0};
    to->face.cost = cost;
    to->face.second = -1;
    to->face.first = take_term(of, term);
    of->at[of->count++] = term;
    to->face.elements = tni_einsum_values(sum, tni_einsum_set(sum, term));
    for (size_t word = 0; word < (size_t)sum->words; word++) {
        for (uint64_t bits = alone[word]; bits;) {
            const size_t index = word * 64 + (size_t)tni_einsum_take_index(&bits);
            of->text.uses[index]--;
            to->face.elements /= (double)sum->size[index];
        }
        set[word] &= ~alone[word];
    }
    tni_buffer_add(&equation, of->texts[term]);
    tni_buffer_add(&equation, "->");
    const tn_status status = write_text(of, term, err);
    tni_buffer_add(&equation, status ? "" : of->texts[term]);
    const tn_status ended = end_step(of, &equation, to, err);
    return status ? status : ended;
}

/* Contracts the texts of a pair. A label that is summed here, because it has one value in every term
 * that is left, is removed from the result's equation. */
static void contract_texts(terms_left *of, const int32_t *pair)
{
    const tni_einsum_left *cost = &of->cost;
    const size_t words = (size_t)cost->sum->words;
    const size_t a = (size_t)pair[0] * words, b = (size_t)pair[1] * words;
    const size_t made = (size_t)of->text.next * words;
    tni_einsum_left_pair(&of->text, pair[0], pair[1]);
    for (size_t word = 0; word < words; word++) {
        uint64_t bits = (cost->sets[a + word] | cost->sets[b + word]) & ~cost->sets[made + word] &
                        of->text.sets[made + word];
        of->text.sets[made + word] &= ~bits;
        while (bits)
            of->text.uses[word * 64 + (size_t)tni_einsum_take_index(&bits)]--;
    }
}

/* Describes a pair of terms, and contracts their texts; `made` is their result. */
static tn_status describe_pair(terms_left *of, const int32_t *pair, int32_t made, double cost,
                               tni_einsum_path_step *to, tn_error *err)
{
    const tni_einsum *sum = of->cost.sum;
    const int32_t at[] = {take_term(of, pair[0]), take_term(of, pair[1])};
    const int32_t second = at[1] + (at[1] >= at[0]); /* before the first was removed */
    const bool swapped = second < at[0];
    tni_buffer equation = {0};
    to->face.cost = cost;
    to->face.elements = tni_einsum_values(sum, of->cost.sets + (size_t)made * (size_t)sum->words);
    to->face.first = swapped ? second : at[0];
    to->face.second = swapped ? at[0] : second;
    contract_texts(of, pair);
    tn_status status = write_text(of, made, err);
    if (!status && !of->count) { /* the last pair makes out, in its order */
        tni_release(of->texts[made]);
        of->texts[made] = tni_text_copy(of->out);
        status = of->texts[made] ? TN_OK : tni_einsum_no_memory(err, "an explanation");
    }
    if (status)
        return status;
    of->at[of->count++] = made;
    tni_buffer_add(&equation, of->texts[pair[swapped]]);
    tni_buffer_add(&equation, ",");
    tni_buffer_add(&equation, of->texts[pair[!swapped]]);
    tni_buffer_add(&equation, "->");
    tni_buffer_add(&equation, of->texts[made]);
    return end_step(of, &equation, to, err);
}

/* Describes the step of an equation of one operand. */
static tn_status describe_only(const tni_einsum *sum, tni_einsum_path_step *to, tn_error *err)
{
    to->face.second = -1;
    to->face.elements = tni_einsum_values(sum, tni_einsum_set(sum, 1));
    to->face.cost = tni_einsum_cost_of_one(sum);
    to->equation = tni_einsum_write(sum);
    to->remaining = tni_text_copy("");
    return to->equation && to->remaining ? TN_OK : tni_einsum_no_memory(err, "an explanation");
}

tn_status tni_einsum_describe(const tni_einsum *sum, const tni_einsum_order *order,
                              tni_einsum_path_step *steps, size_t *out_count, tn_error *err)
{
    terms_left of;
    tn_status status = init_terms(sum, &of, err);
    *out_count = 0;
    if (!status && sum->terms == 1)
        status = describe_only(sum, &steps[(*out_count)++], err);
    for (int32_t i = 0; i < order->count && !status; i++) {
        const int32_t *pair = order->pairs[i], made = of.cost.next;
        const tni_einsum_pair_cost cost = tni_einsum_left_pair(&of.cost, pair[0], pair[1]);
        for (int32_t k = 0; k < 2 && !status; k++) {
            if (cost.before[k] > 0)
                status = describe_sum(&of, pair[k], cost.before[k], &steps[(*out_count)++], err);
        }
        if (!status)
            status = describe_pair(&of, pair, made, cost.pair, &steps[(*out_count)++], err);
    }
    release_terms(&of);
    return status;
}
