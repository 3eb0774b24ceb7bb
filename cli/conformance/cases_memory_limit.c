/* Memory that is refused, and the message for it. */
#include "suite.h"

enum { MIB = 1 << 20 };

static bool read_stats(trial *t, tn_memory_stats *out)
{
    *out = (tn_memory_stats){.struct_size = sizeof *out};
    return DO(t, tn_memory_stats_get(t->device, out, &t->err));
}

static void lift_limit(void *owner, void *what)
{
    (void)what;
    (void)tn_memory_limit_set(owner, 0, NULL);
}

/* Sets a limit `above` bytes above current use, for the duration of the case. */
static bool set_limit(trial *t, int64_t above)
{
    tn_memory_stats now;
    return read_stats(t, &now) &&
           DO(t, tn_memory_limit_set(t->device, now.current + above, &t->err)) &&
           trial_keep(t, lift_limit, t->device, NULL);
}

static bool limit(trial *t)
{
    tn_memory_stats before, after;
    void *held = NULL, *refused = NULL;
    return set_limit(t, MIB) && read_stats(t, &before) &&
           EQUAL(t, before.limit, before.current + MIB) &&
           trial_memory(t, t->device, MIB / 2, &held) &&
           REFUSES(t, TN_OUT_OF_MEMORY,
                   tn_memory_alloc(t->device, MIB / 2 + 1, NULL, &refused, &t->err)) &&
           SAME(t, refused, NULL) && read_stats(t, &after) &&
           EQUAL(t, after.failures, before.failures + 1) &&
           EQUAL(t, after.current, before.current + MIB / 2) &&
           trial_memory(t, t->device, MIB / 2, &held) &&
           DO(t, tn_memory_limit_set(t->device, 0, &t->err)) &&
           trial_memory(t, t->device, MIB, &held) && read_stats(t, &after) &&
           EQUAL(t, after.limit, 0);
}

/* Memory allocated before a limit is set remains valid. */
static bool limit_below(trial *t)
{
    tn_memory_stats now;
    void *held = NULL, *refused = NULL;
    return trial_memory(t, t->device, MIB, &held) &&
           DO(t, tn_memory_limit_set(t->device, 1, &t->err)) &&
           trial_keep(t, lift_limit, t->device, NULL) &&
           REFUSES(t, TN_OUT_OF_MEMORY, tn_memory_alloc(t->device, 2, NULL, &refused, &t->err)) &&
           read_stats(t, &now) && HOLDS(t, now.current >= MIB);
}

static bool limit_refusals(trial *t)
{
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_limit_set(t->device, -1, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_limit_set(NULL, 1, &t->err));
}

static bool huge(trial *t)
{
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, (uint64_t)INT64_MAX, UINT64_C(1) << 62};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory = NULL;
        if (!REFUSES(t, TN_OUT_OF_MEMORY,
                     tn_memory_alloc(t->device, sizes[i], NULL, &memory, &t->err)) ||
            !SAME(t, memory, NULL) ||
            !REFUSES(t, TN_OUT_OF_MEMORY,
                     tn_memory_host_alloc(t->device, sizes[i], NULL, &memory, &t->err)) ||
            !SAME(t, memory, NULL))
            return false;
    }
    return true;
}

static void release_memory(void *owner, void *what)
{
    tn_memory_free(owner, what);
}

static bool message(trial *t)
{
    void *held = NULL, *refused = NULL;
    return set_limit(t, 48 * MIB) &&
           DO(t, tn_memory_alloc(t->device, 16 * MIB, "conformance-hoard", &held, &t->err)) &&
           trial_keep(t, release_memory, t->device, held) &&
           REFUSES(t, TN_OUT_OF_MEMORY,
                   tn_memory_alloc(t->device, 40 * MIB, NULL, &refused, &t->err)) &&
           trial_says(t, tn_device_id(t->device)) && trial_says(t, "40.0 MiB asked") &&
           trial_says(t, "free") && trial_says(t, "limit") && trial_says(t, "conformance-hoard");
}

const suite_case cases_memory_limit[] = {
    {"memory.limit", "an allocation above the limit fails and is counted", limit, 0},
    {"memory.limit.below",
     "a limit below the allocated amount rejects new allocations and frees nothing", limit_below,
     0},
    {"memory.limit.refusals", "a negative limit is an error", limit_refusals, 0},
    {"memory.huge", "a huge request gives out-of-memory and has no other effect", huge, 0},
    {"memory.oom-message",
     "the out-of-memory message states the requested and free bytes and the largest users", message,
     0},
    {0},
};
