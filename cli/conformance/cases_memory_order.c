/* Stream-ordered memory: allocated, used and freed in the order of queued work, without waiting. */
#include "block.h"
#include "suite.h"

enum { BIG = 4 << 20, PART = 256 << 10, STEPS = 12, OFTEN = 8 };

static bool read_stats(trial *t, tn_memory_stats *out)
{
    *out = (tn_memory_stats){.struct_size = sizeof *out};
    return DO(t, tn_memory_stats_get(t->device, out, &t->err));
}

static bool fill(trial *t, void *to, uint64_t pattern, tn_stream *stream)
{
    return DO(t, tn_memory_fill(TN_ARGS(memory_fill, .device = t->device, .to = to, .bytes = PART,
                                        .pattern = pattern, .pattern_bytes = 8, .stream = stream),
                                &t->err));
}

/* Copies `from` to a part of `to`, and puts the pattern expected there into the mirror. */
static bool copy_part(trial *t, const void *from, uint64_t pattern, const block *to, size_t part,
                      tn_stream *stream)
{
    pattern_put(to->mirror + part * PART, PART, pattern, 8);
    return DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device,
                                        .to = to->at + part * PART, .from_device = t->device,
                                        .from = from, .bytes = PART, .stream = stream),
                                &t->err));
}

static bool alloc_part(trial *t, tn_stream *stream, void **out)
{
    return DO(t, tn_memory_alloc_on(stream, PART, "conformance", out, &t->err)) &&
           HOLDS(t, *out && (uintptr_t)*out % 64 == 0);
}

/* Each step has its own memory while it is in progress. */
static bool order(trial *t)
{
    block taken;
    tn_stream *stream = NULL;
    if (!block_make(t, t->device, STEPS * PART, &taken) || !trial_stream(t, t->device, &stream))
        return false;
    for (size_t i = 0; i < STEPS; i++) {
        const uint64_t pattern = trial_bits(t);
        void *memory = NULL;
        if (!alloc_part(t, stream, &memory) || !fill(t, memory, pattern, stream) ||
            !copy_part(t, memory, pattern, &taken, i, stream) ||
            !DO(t, tn_memory_free_on(stream, memory, &t->err)))
            return false;
    }
    return DO(t, tn_stream_synchronize(stream, &t->err)) &&
           block_check(t, &taken, "data read from stream-ordered memory");
}

/* Memory freed on one stream is not reused on another while the first still uses it. */
static bool streams(trial *t)
{
    block work, taken;
    tn_stream *first = NULL, *second = NULL;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, t->device, STEPS * PART, &taken) ||
        !trial_stream(t, t->device, &first) || !trial_stream(t, t->device, &second))
        return false;
    for (size_t i = 0; i < STEPS; i++) {
        const uint64_t pattern = trial_bits(t);
        void *one = NULL, *other = NULL;
        bool held = alloc_part(t, first, &one) && fill(t, one, pattern, first) &&
                    block_fill_often(t, &work, OFTEN, first) &&
                    copy_part(t, one, pattern, &taken, i, first) &&
                    DO(t, tn_memory_free_on(first, one, &t->err)) && alloc_part(t, second, &other);
        for (int turn = 0; turn < OFTEN && held; turn++)
            held = fill(t, other, ~pattern, second);
        if (!held || !DO(t, tn_memory_free_on(second, other, &t->err)))
            return false;
    }
    return DO(t, tn_device_synchronize(t->device, &t->err)) &&
           block_check(t, &taken, "data read by the first stream");
}

static bool join(trial *t, tn_stream *first, tn_stream *second)
{
    tn_event *event = NULL;
    return trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, first, &t->err)) &&
           DO(t, tn_stream_wait_event(second, event, &t->err));
}

/* Another stream uses the memory, ordered by events, and the first one frees it. */
static bool events(trial *t)
{
    block taken;
    tn_stream *first = NULL, *second = NULL;
    void *memory = NULL;
    const uint64_t pattern = trial_bits(t);
    return block_make(t, t->device, PART, &taken) && trial_stream(t, t->device, &first) &&
           trial_stream(t, t->device, &second) && alloc_part(t, first, &memory) &&
           join(t, first, second) && fill(t, memory, pattern, second) &&
           copy_part(t, memory, pattern, &taken, 0, second) && join(t, second, first) &&
           DO(t, tn_memory_free_on(first, memory, &t->err)) &&
           DO(t, tn_stream_synchronize(first, &t->err)) &&
           block_check(t, &taken, "data read by the other stream");
}

/* Memory of either allocation function can be freed by either free function, also on the default
 * stream. Freeing NULL does nothing. */
static bool either(trial *t)
{
    tn_memory_stats before, during, after;
    tn_stream *stream = NULL;
    void *a = NULL, *b = NULL, *c = NULL;
    if (!trial_stream(t, t->device, &stream) || !read_stats(t, &before) ||
        !alloc_part(t, stream, &a) ||
        !DO(t, tn_memory_alloc(t->device, PART, "conformance", &b, &t->err)) ||
        !alloc_part(t, tn_stream_default(t->device), &c) || !read_stats(t, &during) ||
        !EQUAL(t, during.current, before.current + 3 * PART) ||
        !EQUAL(t, during.count, before.count + 3) ||
        !EQUAL(t, during.allocations, before.allocations + 3) ||
        !HOLDS(t, during.peak >= during.current) || !DO(t, tn_stream_synchronize(stream, &t->err)))
        return false;
    tn_memory_free(t->device, a);
    return DO(t, tn_memory_free_on(stream, b, &t->err)) &&
           DO(t, tn_memory_free_on(tn_stream_default(t->device), c, &t->err)) &&
           DO(t, tn_memory_free_on(stream, NULL, &t->err)) && read_stats(t, &after) &&
           EQUAL(t, after.current, before.current) && EQUAL(t, after.count, before.count) &&
           EQUAL(t, after.wrong_frees, before.wrong_frees);
}

static bool wrong(trial *t)
{
    tn_memory_stats before, after;
    tn_stream *stream = NULL;
    void *held = NULL, *gone = NULL;
    char own[64];
    if (!trial_stream(t, t->device, &stream) || !trial_memory(t, t->device, 1000, &held) ||
        !alloc_part(t, stream, &gone) || !DO(t, tn_memory_free_on(stream, gone, &t->err)) ||
        !read_stats(t, &before))
        return false;
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_free_on(stream, gone, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_free_on(stream, own, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_free_on(stream, (char *)held + 64, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_alloc_on(stream, 1, NULL, NULL, &t->err)) &&
           read_stats(t, &after) && EQUAL(t, after.wrong_frees, before.wrong_frees + 3) &&
           EQUAL(t, after.current, before.current) && EQUAL(t, after.count, before.count);
}

static void lift_limit(void *owner, void *what)
{
    (void)what;
    (void)tn_memory_limit_set(owner, 0, NULL);
}

static bool limit(trial *t)
{
    tn_memory_stats before, after;
    tn_stream *stream = NULL;
    void *memory = NULL, *refused = NULL;
    return trial_stream(t, t->device, &stream) && read_stats(t, &before) &&
           DO(t, tn_memory_limit_set(t->device, before.current + PART, &t->err)) &&
           trial_keep(t, lift_limit, t->device, NULL) && alloc_part(t, stream, &memory) &&
           REFUSES(t, TN_OUT_OF_MEMORY,
                   tn_memory_alloc_on(stream, 1, "conformance", &refused, &t->err)) &&
           SAME(t, refused, NULL) && trial_says(t, "limit") && read_stats(t, &after) &&
           EQUAL(t, after.failures, before.failures + 1) &&
           DO(t, tn_memory_free_on(stream, memory, &t->err)) && alloc_part(t, stream, &memory) &&
           DO(t, tn_memory_free_on(stream, memory, &t->err));
}

static void end_recording(void *owner, void *what)
{
    (void)what;
    tn_graph_cancel(owner);
}

/* Refused while recording; the recording continues. */
static bool recorded(trial *t)
{
    tn_stream *stream = NULL;
    tn_graph *graph = NULL;
    void *memory = NULL, *refused = NULL;
    if (!trial_stream(t, t->device, &stream) || !alloc_part(t, stream, &memory) ||
        !DO(t, tn_graph_begin(stream, &t->err)) || !trial_keep(t, end_recording, stream, NULL))
        return false;
    bool held =
        REFUSES(t, TN_UNSUPPORTED, tn_memory_alloc_on(stream, 1000, NULL, &refused, &t->err)) &&
        SAME(t, refused, NULL) &&
        REFUSES(t, TN_UNSUPPORTED, tn_memory_free_on(stream, memory, &t->err)) &&
        DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = memory,
                                     .from_device = t->device, .from = (char *)memory + PART / 2,
                                     .bytes = PART / 2, .stream = stream),
                             &t->err)) &&
        DO(t, tn_graph_end(stream, &graph, &t->err));
    tn_graph_release(graph);
    return held && DO(t, tn_memory_free_on(stream, memory, &t->err));
}

const suite_case cases_memory_order[] = {
    {"memory.order",
     "work queued between an allocation and a free on its stream can use the memory", order, 0},
    {"memory.order.streams",
     "memory that a stream freed but still uses is not given to another stream", streams, 0},
    {"memory.order.events", "another stream can use the memory when ordered by events", events, 0},
    {"memory.order.either", "either free accepts memory of either allocation, and all is counted",
     either, 0},
    {"memory.order.wrong-free", "a double or foreign free is an error and is counted", wrong, 0},
    {"memory.order.limit", "a limit applies, and freed memory can be allocated again", limit, 0},
    {"memory.order.recorded", "both are errors on a recording stream, and recording continues",
     recorded, 0},
    {0},
};
