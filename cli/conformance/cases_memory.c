/* Memory: allocated, freed, counted. */
#include "block.h"
#include "host.h"
#include "suite.h"

static bool read_stats(trial *t, tn_memory_stats *out)
{
    *out = (tn_memory_stats){.struct_size = sizeof *out};
    return DO(t, tn_memory_stats_get(t->device, out, &t->err));
}

/* Sizes around powers of two, and irregular ones. */
static const size_t odd_sizes[] = {1,     2,     3,     7,      8,       63,           64,
                                   65,    255,   257,   511,    4095,    4096,         4097,
                                   10007, 65535, 65537, 100003, 1 << 20, (1 << 20) + 1};
enum { ODD_SIZES = sizeof odd_sizes / sizeof odd_sizes[0] };

static bool alloc_free(trial *t)
{
    tn_memory_stats before, after;
    if (!read_stats(t, &before))
        return false;
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < ODD_SIZES; i++) {
            void *memory = NULL;
            if (!DO(t, tn_memory_alloc(t->device, odd_sizes[i], NULL, &memory, &t->err)) ||
                !HOLDS(t, memory != NULL))
                return false;
            tn_memory_free(t->device, memory);
        }
    }
    tn_memory_free(t->device, NULL);
    return read_stats(t, &after) && EQUAL(t, after.current, before.current) &&
           EQUAL(t, after.count, before.count) && EQUAL(t, after.wrong_frees, before.wrong_frees);
}

static bool zero(trial *t)
{
    tn_memory_stats before, after;
    void *a = NULL, *b = NULL;
    if (!read_stats(t, &before) ||
        !DO(t, tn_memory_alloc(t->device, 0, "conformance", &a, &t->err)))
        return false;
    bool held = HOLDS(t, a != NULL) &&
                DO(t, tn_memory_alloc(t->device, 0, "conformance", &b, &t->err)) &&
                HOLDS(t, a != b);
    tn_memory_free(t->device, a);
    tn_memory_free(t->device, b);
    return held && read_stats(t, &after) && EQUAL(t, after.current, before.current) &&
           EQUAL(t, after.count, before.count) && EQUAL(t, after.wrong_frees, before.wrong_frees);
}

static bool alignment(trial *t)
{
    for (size_t i = 0; i < 200; i++) {
        void *memory = NULL;
        size_t bytes = i < ODD_SIZES ? odd_sizes[i] : 1 + trial_below(t, 100000);
        if (!trial_memory(t, t->device, bytes, &memory))
            return false;
        if ((uintptr_t)memory % 64 != 0)
            return trial_fail(t, "%zu bytes are at %p, which is not aligned to 64", bytes, memory);
    }
    return true;
}

/* Many blocks at once: writing to one changes no other. */
static bool distinct(trial *t)
{
    enum { MANY = 40 };
    block blocks[MANY];
    for (size_t i = 0; i < MANY; i++) {
        if (!block_make(t, t->device, odd_sizes[i % (ODD_SIZES - 3)], &blocks[i]))
            return false;
    }
    for (size_t i = 0; i < MANY; i++) {
        if (!block_fill(t, &blocks[i], 0, blocks[i].bytes, trial_bits(t), 1, NULL))
            return false;
    }
    for (size_t i = 0; i < MANY; i++) {
        if (!block_check(t, &blocks[i], "one of many blocks"))
            return false;
    }
    return true;
}

/* Blocks that are freed and allocated in random order keep their contents until freed. */
static bool churn(trial *t)
{
    enum { SLOTS = 16, TURNS = 200 };
    struct {
        void *at;
        size_t bytes;
        unsigned char seed;
    } slots[SLOTS] = {{0}};
    bool held = true;
    unsigned char *expected = NULL, *found = NULL;
    if (!trial_host(t, 4096, (void **)&expected) || !trial_host(t, 4096, (void **)&found))
        return false;
    for (int turn = 0; turn < TURNS && held; turn++) {
        size_t i = trial_below(t, SLOTS);
        if (slots[i].at) {
            memset(expected, slots[i].seed, slots[i].bytes);
            held = DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to = found, .from_device = t->device,
                                                .from = slots[i].at, .bytes = slots[i].bytes),
                                        &t->err)) &&
                   DO(t, tn_device_synchronize(t->device, &t->err)) &&
                   bytes_match(t, found, expected, slots[i].bytes, "contents of a block");
            tn_memory_free(t->device, slots[i].at);
            slots[i].at = NULL;
            continue;
        }
        slots[i].bytes = 1 + trial_below(t, 4096);
        slots[i].seed = (unsigned char)trial_bits(t);
        held = DO(t, tn_memory_alloc(t->device, slots[i].bytes, NULL, &slots[i].at, &t->err)) &&
               DO(t, tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .to = slots[i].at,
                                            .bytes = slots[i].bytes, .pattern = slots[i].seed),
                                    &t->err)) &&
               DO(t, tn_device_synchronize(t->device, &t->err));
    }
    for (size_t i = 0; i < SLOTS; i++)
        tn_memory_free(t->device, slots[i].at);
    return held;
}

static bool wrong_free(trial *t)
{
    tn_memory_stats before, after;
    void *held = NULL, *gone = NULL;
    char own[64];
    if (!trial_memory(t, t->device, 1000, &held) ||
        !DO(t, tn_memory_alloc(t->device, 3000, NULL, &gone, &t->err)))
        return false;
    tn_memory_free(t->device, gone);
    if (!read_stats(t, &before))
        return false;
    tn_memory_free(t->device, gone);              /* double free */
    tn_memory_free(t->device, own);               /* host memory */
    tn_memory_free(t->device, (char *)held + 64); /* inside a block */
    return read_stats(t, &after) && EQUAL(t, after.wrong_frees, before.wrong_frees + 3) &&
           EQUAL(t, after.current, before.current) && EQUAL(t, after.count, before.count);
}

static bool other_devices(trial *t)
{
    tn_memory_stats before, after;
    void *held = NULL;
    if (!trial_memory(t, t->second, 1000, &held) || !read_stats(t, &before))
        return false;
    tn_memory_free(t->device, held);
    return read_stats(t, &after) && EQUAL(t, after.wrong_frees, before.wrong_frees + 1);
}

static bool stats(trial *t)
{
    tn_memory_stats before, during, after;
    void *a = NULL, *b = NULL;
    if (!read_stats(t, &before) ||
        !DO(t, tn_memory_alloc(t->device, 1001, "conformance", &a, &t->err)))
        return false;
    tn_status status = tn_memory_alloc(t->device, 70007, "conformance", &b, &t->err);
    bool held = DO(t, status) && read_stats(t, &during) &&
                EQUAL(t, during.current, before.current + 1001 + 70007) &&
                EQUAL(t, during.count, before.count + 2) &&
                EQUAL(t, during.allocations, before.allocations + 2) &&
                HOLDS(t, during.peak >= during.current);
    tn_memory_free(t->device, a);
    tn_memory_free(t->device, b);
    return held && read_stats(t, &after) && EQUAL(t, after.current, before.current) &&
           EQUAL(t, after.count, before.count) &&
           EQUAL(t, after.allocations, before.allocations + 2) && HOLDS(t, after.kept >= 0);
}

static bool stats_refusals(trial *t)
{
    tn_memory_stats small = {.struct_size = sizeof(size_t)};
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_stats_get(t->device, &small, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_stats_get(t->device, NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_alloc(t->device, 1, NULL, NULL, &t->err));
}

static bool peak(trial *t)
{
    tn_memory_stats before, high, later, reset;
    void *memory = NULL;
    tn_memory_peak_reset(t->device);
    if (!read_stats(t, &before) || !EQUAL(t, before.peak, before.current) ||
        !DO(t, tn_memory_alloc(t->device, 50021, NULL, &memory, &t->err)))
        return false;
    bool held = read_stats(t, &high) && EQUAL(t, high.peak, before.current + 50021);
    tn_memory_free(t->device, memory);
    held = held && read_stats(t, &later) && EQUAL(t, later.peak, before.current + 50021) &&
           EQUAL(t, later.current, before.current);
    tn_memory_peak_reset(t->device);
    return held && read_stats(t, &reset) && EQUAL(t, reset.peak, reset.current);
}

static bool trim(trial *t)
{
    tn_memory_stats after;
    void *memory = NULL;
    if (!DO(t, tn_memory_alloc(t->device, 12345, NULL, &memory, &t->err)))
        return false;
    tn_memory_free(t->device, memory);
    tn_memory_trim(t->device);
    return read_stats(t, &after) && EQUAL(t, after.kept, 0) &&
           DO(t, tn_memory_alloc(t->device, 12345, NULL, &memory, &t->err)) &&
           (tn_memory_free(t->device, memory), true);
}

typedef struct crowd {
    tn_device *device;
    tn_status statuses[4];
} crowd;

static void alloc_and_free(void *user, size_t index)
{
    crowd *c = user;
    tn_status status = TN_OK;
    for (size_t i = 0; i < 300 && !status; i++) {
        void *memory = NULL;
        status = tn_memory_alloc(c->device, 1 + (i * 37 + index * 101) % 9000, NULL, &memory, NULL);
        tn_memory_free(c->device, memory);
    }
    c->statuses[index] = status;
}

static bool threads(trial *t)
{
    crowd c = {.device = t->device};
    tn_memory_stats before, after;
    if (!read_stats(t, &before))
        return false;
    if (!host_run_together(4, alloc_and_free, &c))
        return trial_fail(t, "the system could not create a thread");
    for (size_t i = 0; i < 4; i++) {
        if (!EQUAL(t, c.statuses[i], TN_OK))
            return false;
    }
    return read_stats(t, &after) && EQUAL(t, after.current, before.current) &&
           EQUAL(t, after.count, before.count) &&
           EQUAL(t, after.allocations, before.allocations + 4 * 300);
}

/* Host memory, pinned or not: written here, copied to the device and back. */
static bool pinned(trial *t)
{
    enum { BYTES = 100003 };
    tn_memory_stats before, during, after;
    void *memory = NULL;
    block there;
    if (!read_stats(t, &before) || !block_make(t, t->device, BYTES, &there) ||
        !DO(t, tn_memory_host_alloc(t->device, BYTES, "conformance", &memory, &t->err)))
        return false;
    trial_bytes(t, memory, BYTES);
    memcpy(there.mirror, memory, BYTES);
    bool held = read_stats(t, &during) && EQUAL(t, during.host, before.host + BYTES) &&
                DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = there.at,
                                             .from = memory, .bytes = BYTES),
                                     &t->err)) &&
                block_check(t, &there, "data copied from pinned memory");
    if (held)
        memset(memory, 0xA5, BYTES);
    held = held &&
           DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to = memory, .from_device = t->device,
                                        .from = there.at, .bytes = BYTES),
                                &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           bytes_match(t, memory, there.mirror, BYTES, "data copied to pinned memory");
    tn_memory_host_free(t->device, memory);
    tn_memory_host_free(t->device, NULL);
    return held && read_stats(t, &after) && EQUAL(t, after.host, before.host) &&
           EQUAL(t, after.wrong_frees, before.wrong_frees);
}

const suite_case cases_memory[] = {
    {"memory.alloc-free", "memory of every size can be allocated, freed and allocated again",
     alloc_free, 0},
    {"memory.zero", "0 bytes give a unique pointer that can be freed", zero, 0},
    {"memory.alignment", "memory is aligned to 64 bytes", alignment, 0},
    {"memory.distinct", "no two allocations share a byte", distinct, 0},
    {"memory.churn", "an allocation keeps its contents while others are allocated and freed", churn,
     0},
    {"memory.wrong-free", "a double or foreign free is counted and changes nothing", wrong_free, 0},
    {"memory.other-device", "a device does not free another device's memory", other_devices,
     NEED_TWO_DEVICES},
    {"memory.stats", "allocated memory is counted to the byte", stats, 0},
    {"memory.stats.refusals", "NULL and structs that are too small are errors", stats_refusals, 0},
    {"memory.peak", "the peak stays until the program resets it", peak, 0},
    {"memory.trim", "trimming releases cached memory", trim, 0},
    {"memory.threads", "several threads may allocate and free at once", threads, 0},
    {"pinned", "pinned host memory is counted and can be copied from and to", pinned, 0},
    {0},
};
