/* Filling memory with a pattern. */
#include "block.h"
#include "suite.h"

static bool patterns(trial *t)
{
    for (uint32_t size = 1; size <= 8; size *= 2) {
        for (int turn = 0; turn < 8; turn++) {
            block b;
            size_t words = 1 + trial_below(t, turn < 6 ? 70 : 40000);
            size_t at = turn % 2 ? size * trial_below(t, 9) : 0;
            if (!block_make(t, t->device, at + words * size + 16, &b) ||
                !block_fill(t, &b, at, words * size, trial_bits(t), size, NULL) ||
                !block_check(t, &b, "filled memory"))
                return false;
        }
    }
    return true;
}

/* Patterns at addresses that are not a multiple of their size. */
static bool odd_places(trial *t)
{
    for (uint32_t size = 2; size <= 8; size *= 2) {
        block b;
        size_t words = 1 + trial_below(t, 3000), at = 1 + size * trial_below(t, 9);
        if (!block_make(t, t->device, at + words * size + 16, &b) ||
            !block_fill(t, &b, at, words * size, trial_bits(t), size, NULL) ||
            !block_check(t, &b, "filled memory"))
            return false;
    }
    return true;
}

static bool large(trial *t)
{
    enum { BYTES = (9 << 20) + 8 };
    block b;
    return block_make(t, t->device, BYTES, &b) &&
           block_fill(t, &b, 0, BYTES, trial_bits(t), 8, NULL) &&
           block_check(t, &b, "filled memory");
}

static bool host(trial *t)
{
    block b;
    return block_make(t, NULL, 1000, &b) && block_fill(t, &b, 8, 800, trial_bits(t), 4, NULL) &&
           block_check(t, &b, "filled memory");
}

static bool refusals(trial *t)
{
    block b;
    return block_make(t, t->device, 100, &b) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .to = b.at, .bytes = 10,
                                          .pattern_bytes = 4),
                                  &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .to = b.at, .bytes = 12,
                                          .pattern_bytes = 3),
                                  &t->err)) &&
           REFUSES(
               t, TN_INVALID_ARGUMENT,
               tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .bytes = 12), &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_fill(NULL, &t->err)) &&
           DO(t, tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .to = b.at), &t->err)) &&
           block_check(t, &b, "memory outside the fill");
}

const suite_case cases_fill[] = {
    {"fill.patterns", "patterns of 1, 2, 4 and 8 bytes fill exactly the given range", patterns, 0},
    {"fill.odd-places", "fills are exact at every alignment", odd_places, 0},
    {"fill.large", "large fills are exact", large, 0},
    {"fill.host", "fills of host memory are exact", host, 0},
    {"fill.refusals",
     "a partial pattern, another pattern size and NULL are errors; 0 bytes do nothing", refusals,
     0},
    {0},
};
