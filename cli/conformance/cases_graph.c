/* Graphs: calls that are recorded once and run repeatedly. The recorded calls are copies, which
 * every platform supports. */
#include "block.h"
#include "host.h"
#include "suite.h"

enum { BYTES = 100003, RUNS = 5 };

/* first -> second -> third; each step is one copy. */
typedef struct chain {
    block first, second, third;
    tn_stream *stream;
} chain;

static bool chain_make(trial *t, chain *out)
{
    return block_make(t, t->device, BYTES, &out->first) &&
           block_make(t, t->device, BYTES, &out->second) &&
           block_make(t, t->device, BYTES, &out->third) && trial_stream(t, t->device, &out->stream);
}

static tn_status copy(trial *t, const block *from, const block *to, tn_stream *stream)
{
    return tn_memory_copy(TN_ARGS(memory_copy, .to_device = to->device, .to = to->at,
                                  .from_device = from->device, .from = from->at, .bytes = BYTES,
                                  .stream = stream),
                          &t->err);
}

static void release_graph(void *owner, void *what)
{
    (void)owner;
    tn_graph_release(what);
}

/* Records the chain's copies; does not change the mirrors. */
static bool chain_record(trial *t, const chain *c, tn_graph **out)
{
    return DO(t, tn_graph_begin(c->stream, &t->err)) &&
           EQUAL(t, tn_graph_is_recording(c->stream), 1) &&
           DO(t, copy(t, &c->first, &c->second, c->stream)) &&
           DO(t, copy(t, &c->second, &c->third, c->stream)) &&
           DO(t, tn_graph_end(c->stream, out, &t->err)) &&
           EQUAL(t, tn_graph_is_recording(c->stream), 0) &&
           trial_keep(t, release_graph, NULL, *out);
}

/* Applies the effect of a run to the mirrors. */
static void chain_mirror(const chain *c)
{
    memcpy(c->second.mirror, c->first.mirror, BYTES);
    memcpy(c->third.mirror, c->first.mirror, BYTES);
}

static bool chain_check(trial *t, const chain *c, const char *when)
{
    return block_check(t, &c->first, when) && block_check(t, &c->second, when) &&
           block_check(t, &c->third, when);
}

static bool nothing_runs(trial *t)
{
    tn_graph *graph = NULL;
    chain c;
    return chain_make(t, &c) && chain_record(t, &c, &graph) &&
           chain_check(t, &c, "data after recording a graph, which runs nothing");
}

/* Each run reads the contents at the time of the run. */
static bool runs(trial *t)
{
    tn_graph *graph = NULL;
    chain c;
    if (!chain_make(t, &c) || !chain_record(t, &c, &graph))
        return false;
    for (int i = 0; i < RUNS; i++) {
        if (!block_fill(t, &c.first, 0, BYTES, trial_bits(t), 1, c.stream) ||
            !DO(t, tn_graph_run(graph, c.stream, &t->err)) ||
            !DO(t, tn_stream_synchronize(c.stream, &t->err)))
            return false;
        chain_mirror(&c);
        if (!chain_check(t, &c, "data after a run of the graph"))
            return false;
    }
    return true;
}

static bool on_other_streams(trial *t)
{
    tn_graph *graph = NULL;
    tn_stream *other = NULL;
    chain c;
    if (!chain_make(t, &c) || !chain_record(t, &c, &graph) || !trial_stream(t, t->device, &other))
        return false;
    for (int i = 0; i < RUNS; i++) {
        if (!DO(t, tn_graph_run(graph, i % 2 ? c.stream : other, &t->err)))
            return false;
    }
    chain_mirror(&c);
    return DO(t, tn_stream_set(other, &t->err)) && DO(t, tn_graph_run(graph, NULL, &t->err)) &&
           DO(t, tn_stream_set(tn_stream_default(t->device), &t->err)) &&
           DO(t, tn_stream_synchronize(other, &t->err)) &&
           DO(t, tn_stream_synchronize(c.stream, &t->err)) &&
           chain_check(t, &c, "data after runs on two streams");
}

/* A refused call does not damage the recording. */
static bool refusals(trial *t)
{
    tn_graph *graph = NULL, *none = NULL;
    tn_stream *other = NULL;
    tn_event *event = NULL;
    int32_t done = 77;
    chain c;
    return chain_make(t, &c) && trial_stream(t, t->device, &other) &&
           trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, other, &t->err)) &&
           DO(t, tn_graph_begin(c.stream, &t->err)) &&
           REFUSES(t, TN_BUSY, tn_graph_begin(c.stream, &t->err)) &&
           DO(t, copy(t, &c.first, &c.second, c.stream)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_stream_synchronize(c.stream, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_stream_query(c.stream, &done, &t->err)) &&
           EQUAL(t, done, 77) &&
           REFUSES(t, TN_UNSUPPORTED, tn_event_record(event, c.stream, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_stream_wait_event(c.stream, event, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_stream_wait_stream(other, c.stream, &t->err)) &&
           DO(t, copy(t, &c.second, &c.third, c.stream)) &&
           DO(t, tn_graph_end(c.stream, &graph, &t->err)) &&
           trial_keep(t, release_graph, NULL, graph) &&
           REFUSES(t, TN_NOT_FOUND, tn_graph_end(c.stream, &none, &t->err)) &&
           SAME(t, none, NULL) && DO(t, tn_graph_run(graph, c.stream, &t->err)) &&
           DO(t, tn_stream_synchronize(c.stream, &t->err)) &&
           (chain_mirror(&c), chain_check(t, &c, "data after a run of the graph"));
}

static bool wrong_arguments(trial *t)
{
    tn_graph *graph = NULL;
    tn_stream *stream = NULL;
    tn_graph_info info = {0};
    tn_graph_release(NULL);
    tn_graph_cancel(NULL);
    return trial_stream(t, t->device, &stream) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_begin(NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_end(NULL, &graph, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_end(stream, NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_run(NULL, stream, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_info_get(NULL, &info, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_graph_begin(tn_stream_default(t->device), &t->err));
}

/* A graph of one device cannot run on a stream of another. */
static bool of_one_device(trial *t)
{
    tn_graph *graph = NULL;
    tn_stream *other = NULL;
    block far;
    chain c;
    return chain_make(t, &c) && trial_stream(t, t->second, &other) &&
           block_make(t, t->second, BYTES, &far) && chain_record(t, &c, &graph) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_graph_run(graph, other, &t->err)) &&
           DO(t, tn_graph_begin(c.stream, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, copy(t, &far, &c.first, c.stream)) &&
           (tn_graph_cancel(c.stream), true);
}

typedef struct intruder {
    trial *t;
    const chain *c;
    tn_error err;
    tn_status status;
} intruder;

static void copy_from_thread(void *user, size_t index)
{
    intruder *i = user;
    (void)index;
    i->status =
        tn_memory_copy(TN_ARGS(memory_copy, .to_device = i->c->third.device, .to = i->c->third.at,
                               .from_device = i->c->first.device, .from = i->c->first.at,
                               .bytes = BYTES, .stream = i->c->stream),
                       &i->err);
}

static bool of_one_thread(trial *t)
{
    chain c;
    intruder i = {.t = t, .c = &c};
    if (!chain_make(t, &c) || !DO(t, tn_graph_begin(c.stream, &t->err)))
        return false;
    if (!host_run_together(1, copy_from_thread, &i))
        return trial_fail(t, "the system could not create a thread");
    tn_graph_cancel(c.stream);
    return EQUAL(t, i.status, TN_BUSY) &&
           chain_check(t, &c, "data after another thread's copy was refused");
}

/* A cancelled recording leaves the stream as it was before. */
static bool cancelled(trial *t)
{
    chain c;
    return chain_make(t, &c) && DO(t, tn_graph_begin(c.stream, &t->err)) &&
           DO(t, copy(t, &c.first, &c.second, c.stream)) &&
           (tn_graph_cancel(c.stream), EQUAL(t, tn_graph_is_recording(c.stream), 0)) &&
           block_copy(t, &c.first, 0, &c.third, 0, BYTES, c.stream) &&
           DO(t, tn_stream_synchronize(c.stream, &t->err)) &&
           chain_check(t, &c, "data after a recording was cancelled");
}

/* The graph is released while its run may be in progress. */
static bool released_early(trial *t)
{
    tn_graph *graph = NULL;
    chain c;
    if (!chain_make(t, &c) || !DO(t, tn_graph_begin(c.stream, &t->err)) ||
        !DO(t, copy(t, &c.first, &c.second, c.stream)) ||
        !DO(t, copy(t, &c.second, &c.third, c.stream)) ||
        !DO(t, tn_graph_end(c.stream, &graph, &t->err)))
        return false;
    tn_status status = tn_graph_run(graph, c.stream, &t->err);
    tn_graph_release(graph);
    chain_mirror(&c);
    return DO(t, status) && DO(t, tn_stream_synchronize(c.stream, &t->err)) &&
           chain_check(t, &c, "data after a run whose graph was released");
}

static bool information(trial *t)
{
    tn_graph *graph = NULL;
    tn_graph_info info = {.struct_size = sizeof info};
    chain c;
    return chain_make(t, &c) && chain_record(t, &c, &graph) &&
           SAME(t, tn_graph_device(graph), t->device) &&
           DO(t, tn_graph_run(graph, c.stream, &t->err)) &&
           DO(t, tn_stream_synchronize(c.stream, &t->err)) &&
           DO(t, tn_graph_info_get(graph, &info, &t->err)) && EQUAL(t, info.steps, 2) &&
           EQUAL(t, info.runs, 1) && EQUAL(t, info.arena_bytes, 0);
}

const suite_case cases_graph[] = {
    {"graph.records", "recorded work does not run during recording", nothing_runs, 0},
    {"graph.runs", "each run of a graph repeats the recorded work on the current data", runs, 0},
    {"graph.streams", "a graph runs on any stream of its device", on_other_streams, 0},
    {"graph.refusals", "calls that cannot be recorded are errors, and recording continues",
     refusals, 0},
    {"graph.arguments", "invalid arguments and default streams are errors", wrong_arguments, 0},
    {"graph.device", "a graph belongs to one device", of_one_device, NEED_TWO_DEVICES},
    {"graph.thread", "a recording belongs to one thread", of_one_thread, 0},
    {"graph.cancel", "a cancelled recording has no effect", cancelled, 0},
    {"graph.release", "a graph can be released as soon as its run is queued", released_early, 0},
    {"graph.info", "a graph reports its device and contents", information, 0},
    {0},
};
