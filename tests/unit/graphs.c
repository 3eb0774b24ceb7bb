/* Graphs on streams that are threads, as lists of calls: their order, their memory, faults in the middle,
 * lost devices, and want of memory. */
#include "async_platform.h"

#include "device/graph/graph.h"

#include <unistd.h>

enum { COUNT = 64 };

static world w;
static tn_device *device;
static tn_stream *stream, *other;
static int *from, *to;

static void must(tn_status status, const tn_error *err)
{
    if (status)
        fail_msg("%s: %s", err->where, err->message);
}

static int begin(void **state)
{
    tn_error err = {0};
    void *memory = NULL;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    device = world_device(&w, "async:0");
    must(tn_stream_create(device, NULL, &stream, &err), &err);
    must(tn_stream_create(device, NULL, &other, &err), &err);
    must(tn_memory_alloc(device, COUNT * sizeof *from, NULL, &memory, &err), &err);
    from = memory;
    must(tn_memory_alloc(device, COUNT * sizeof *to, NULL, &memory, &err), &err);
    to = memory;
    for (int i = 0; i < COUNT; i++) {
        from[i] = i;
        to[i] = -1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    tn_memory_free(device, from);
    tn_memory_free(device, to);
    tn_stream_release(stream);
    tn_stream_release(other);
    tn_memory_trim(device);
    async_world_end(&w);
    return 0;
}

static tn_status copy(tn_error *err)
{
    return tn_memory_copy(TN_ARGS(memory_copy, .to_device = device, .to = to, .from_device = device,
                                  .from = from, .bytes = COUNT * sizeof *to, .stream = stream),
                          err);
}

static tn_graph *recorded(void)
{
    tn_graph *graph = NULL;
    tn_error err = {0};
    must(tn_graph_begin(stream, &err), &err);
    must(copy(&err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    assert_int_equal(to[0], -1);
    return graph;
}

static void a_run_on_another_stream_waits_for_the_last(void **state)
{
    tn_error err = {0};
    tn_graph *graph = recorded();
    (void)state;
    async_gate *gate = async_gate_put(stream);
    must(tn_graph_run(graph, stream, &err), &err);
    must(tn_graph_run(graph, other, &err), &err);
    int32_t done = 1;
    (void)usleep(20000); /* for a run that does not wait to show */
    must(tn_stream_query(other, &done, &err), &err);
    assert_int_equal(done, 0);
    assert_int_equal(to[0], -1);
    async_gate_open(gate);
    must(tn_stream_synchronize(other, &err), &err);
    assert_int_equal(to[COUNT - 1], COUNT - 1);
    tn_graph_release(graph);
}

static void open_later(void *gate)
{
    (void)usleep(20000);
    async_gate_open(gate);
}

static void a_release_waits_for_the_run(void **state)
{
    tn_error err = {0};
    tn_graph *graph = recorded();
    (void)state;
    async_gate *gate = async_gate_put(stream);
    tni_thread thread;
    must(tn_graph_run(graph, stream, &err), &err);
    must(tni_thread_create(&thread, open_later, gate, &err), &err);
    tn_graph_release(graph);
    assert_int_equal(to[COUNT - 1], COUNT - 1);
    tni_thread_join(thread);
}

static void a_step_that_fails_ends_the_run(void **state)
{
    tn_error err = {0};
    tn_graph_info info = {.struct_size = sizeof info};
    tn_graph *graph = NULL;
    (void)state;
    must(tn_graph_begin(stream, &err), &err);
    for (int i = 0; i < 3; i++)
        must(copy(&err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    long before = async_calls("copy");
    async_fail("copy", 2, TN_BUSY);
    assert_int_equal(tn_graph_run(graph, stream, &err), TN_BUSY);
    assert_true(async_heal());
    assert_int_equal(async_calls("copy") - before, 2);
    must(tn_graph_run(graph, stream, &err), &err);
    must(tn_graph_info_get(graph, &info, &err), &err);
    assert_int_equal(info.steps, 3);
    assert_int_equal(info.runs, 1);
    assert_int_equal(info.native, 0);
    tn_graph_release(graph);
}

static void a_graph_of_an_earlier_life_is_gone(void **state)
{
    tn_error err = {0};
    tn_graph *graph = recorded(), *none = NULL;
    (void)state;
    must(tn_graph_begin(other, &err), &err);
    async_lose(0, "it fell");
    assert_int_equal(tn_graph_run(graph, stream, &err), TN_DEVICE_LOST);
    must(tn_device_reset(device, &err), &err);
    assert_int_equal(tn_graph_run(graph, NULL, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "graph was created before");
    tn_graph_release(graph);
    must(tn_graph_end(other, &none, &err), &err); /* of no step: it needs nothing of the device */
    assert_int_equal(tn_graph_run(none, NULL, &err), TN_DEVICE_LOST);
    tn_graph_release(none);
}

static void a_stream_that_is_released_gives_its_recording_up(void **state)
{
    tn_error err = {0};
    (void)state;
    must(tn_graph_begin(stream, &err), &err);
    must(copy(&err), &err);
    assert_true(tni_graph_any());
    tn_stream_release(stream);
    assert_false(tni_graph_any());
    stream = NULL;
    assert_int_equal(to[0], -1);
}

static void memory_of_a_graph_grows_and_goes_with_it(void **state)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    tn_error err = {0};
    tn_graph *graph = NULL;
    tn_graph_info info = {.struct_size = sizeof info};
    void *first = NULL, *again = NULL, *larger = NULL;
    (void)state;
    must(tn_memory_stats_get(device, &stats, &err), &err);
    const int64_t before = stats.current;
    must(tn_graph_begin(stream, &err), &err);
    tn_graph *recording = tni_graph_of(stream);
    must(tni_graph_scratch(recording, 1000, "test", &first, &err), &err);
    must(tni_graph_scratch(recording, 900, "test", &again, &err), &err);
    must(tni_graph_scratch(recording, 5000, "test", &larger, &err), &err);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, larger);
    must(tn_graph_end(stream, &graph, &err), &err);
    must(tn_graph_info_get(graph, &info, &err), &err);
    assert_int_equal(info.arena_bytes, 6000);
    must(tn_memory_stats_get(device, &stats, &err), &err);
    assert_int_equal(stats.current - before, 6000);
    tn_graph_release(graph);
    must(tn_memory_stats_get(device, &stats, &err), &err);
    assert_int_equal(stats.current, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_on_another_stream_waits_for_the_last, begin, end),
        cmocka_unit_test_setup_teardown(a_release_waits_for_the_run, begin, end),
        cmocka_unit_test_setup_teardown(a_step_that_fails_ends_the_run, begin, end),
        cmocka_unit_test_setup_teardown(a_graph_of_an_earlier_life_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(a_stream_that_is_released_gives_its_recording_up, begin,
                                        end),
        cmocka_unit_test_setup_teardown(memory_of_a_graph_grows_and_goes_with_it, begin, end),
    };
    return run_suite("unit.graphs", tests);
}
