/* Sample inputs for attention's tables: where sequences begin, how long they are and on which pages,
 * consistent with each other; and the seed of dropout. */
#include "attention.h"
#include "check/inputs.h"

/* One table to fill, and the source of random numbers. */
typedef struct table {
    const tn_op *op;
    const tn_layout *layout;
    unsigned char *first;
    double (*draw)(void *user);
    void *user;
} table;

bool tni_attention_is_table(const tn_op *op, int32_t operand)
{
    (void)op;
    return operand >= TN_ATTENTION_STARTS_Q && operand <= TN_ATTENTION_SEED;
}

static unsigned char *first_of(const tni_operands *operands, int32_t index)
{
    const tni_operand *block = &operands->operand[index];
    return block->host ? block->host + block->first : NULL;
}

static void store_index(const table *t, int64_t at, int64_t value)
{
    int32_t number = (int32_t)value;
    memcpy(t->first + at * (int64_t)sizeof number, &number, sizeof number);
}

/* Returns a random integer from `least` to `most`. */
static int64_t draw_between(const table *t, int64_t least, int64_t most)
{
    return least + (int64_t)(t->draw(t->user) * (double)(most - least + 1));
}

/* Fills in the starts of sequences of random lengths up to `most`, in `all` rows. They cover all rows if that is
 * possible; else the rows before the first sequence and after the last are in none. */
static void fill_starts(const table *t, int64_t all, int64_t most)
{
    int64_t count = t->layout->shape[0] - 1, spare = all - count * most;
    int64_t at = spare > 0 ? draw_between(t, 0, spare) : 0;
    store_index(t, 0, at);
    for (int64_t i = 0; i < count; i++) {
        int64_t left = all - at, others = (count - i - 1) * most;
        int64_t longest = left < most ? left : most, shortest = left - others;
        shortest = shortest < 0 ? 0 : shortest < longest ? shortest : longest;
        at += draw_between(t, shortest, longest);
        store_index(t, (i + 1) * t->layout->stride[0], at);
    }
}

/* Returns the length of sequence i of packed keys. */
static int64_t length_of(const tni_operands *operands, int64_t i)
{
    const tn_layout *layout = &operands->op->operand[TN_ATTENTION_STARTS_K];
    const unsigned char *first = first_of(operands, TN_ATTENTION_STARTS_K);
    int32_t begin, end;
    memcpy(&begin, first + i * layout->stride[0] * (int64_t)sizeof begin, sizeof begin);
    memcpy(&end, first + (i + 1) * layout->stride[0] * (int64_t)sizeof end, sizeof end);
    return end - begin;
}

/* The first sequence uses all its keys; if there are three or more, the second uses none. */
static void fill_lengths(const table *t, const tni_operands *operands)
{
    bool packed = operands->op->operand[TN_ATTENTION_STARTS_K].dtype != TN_DTYPE_NONE;
    int64_t count = t->layout->shape[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t most = packed ? length_of(operands, i) : TN_PARAMS(t->op, attention)->keys;
        int64_t some = draw_between(t, 0, most);
        store_index(t, i * t->layout->stride[0], i == 0 ? most : i == 1 && count > 2 ? 0 : some);
    }
}

/* Assigns each page once, in descending order from a random page on; if the table has more entries than
 * there are pages, starts again. */
static void fill_pages(const table *t)
{
    int64_t pool = t->op->operand[TN_ATTENTION_K].shape[0],
            next = pool > 0 ? draw_between(t, 0, pool - 1) : 0;
    for (int64_t b = 0; b < t->layout->shape[0]; b++) {
        for (int64_t i = 0; i < t->layout->shape[1]; i++) {
            store_index(t, b * t->layout->stride[0] + i * t->layout->stride[1], next);
            next = next > 0 ? next - 1 : pool - 1;
        }
    }
}

/* A seed of 64 random bits, and an offset below 2^40, so that the counter cannot overflow. */
static void fill_seed(const table *t)
{
    uint64_t seed = (uint64_t)(t->draw(t->user) * 0x1p32) << 32;
    seed |= (uint64_t)(t->draw(t->user) * 0x1p32);
    const uint64_t both[] = {seed, (uint64_t)(t->draw(t->user) * 0x1p40)};
    memcpy(t->first, both, sizeof both);
}

void tni_attention_fill_table(tni_operands *operands, int32_t index, double (*draw)(void *user),
                              void *user)
{
    const tn_op *op = operands->op;
    const table t = {.op = op,
                     .layout = &op->operand[index],
                     .first = first_of(operands, index),
                     .draw = draw,
                     .user = user};
    if (!t.first) /* the table is empty */
        return;
    switch (index) {
    case TN_ATTENTION_STARTS_Q:
        fill_starts(&t, op->operand[TN_ATTENTION_Q].shape[2], TN_PARAMS(op, attention)->queries);
        break;
    case TN_ATTENTION_STARTS_K:
        fill_starts(&t, op->operand[TN_ATTENTION_K].shape[2], TN_PARAMS(op, attention)->keys);
        break;
    case TN_ATTENTION_LENGTHS: fill_lengths(&t, operands); break;
    case TN_ATTENTION_SEED: fill_seed(&t); break;
    default: fill_pages(&t);
    }
}
