/* Graphs of operators, on the processor: what is recorded, what must be at hand, what is refused. */
#include "test.h"

#include "tenon/tenon.h"

#include <math.h>

enum { SIDE = 33 };

static tn_device *cpu;
static tn_stream *stream;
static tn_tensor a, b, product, rows;

static void must(tn_status status, const tn_error *err)
{
    if (status)
        fail_msg("%s: %s", err->where, err->message);
}

static int begin(void **state)
{
    const int64_t shape[] = {SIDE, SIDE};
    tn_tensor *all[] = {&a, &b, &product, &rows};
    tn_error err;
    (void)state;
    must(tn_device_get("cpu:0", &cpu, &err), &err);
    must(tn_stream_create(cpu, NULL, &stream, &err), &err);
    for (size_t i = 0; i < 4; i++) {
        must(tn_tensor_create(cpu, TN_F32, shape, 2, all[i], &err), &err);
        must(tn_random_normal(NULL, all[i], &err), &err);
    }
    return 0;
}

static int end(void **state)
{
    tn_tensor *all[] = {&a, &b, &product, &rows};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        tn_tensor_release(all[i]);
    tn_stream_release(stream);
    return 0;
}

static tn_status multiply(tn_stream *on, tn_error *err)
{
    return tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &product, .stream = on), err);
}

static tn_status soften(tn_stream *on, tn_error *err)
{
    return tn_softmax(NULL, TN_ARGS(softmax, .in = &product, .out = &rows, .stream = on), err);
}

static void keep(float out[SIDE * SIDE])
{
    memcpy(out, rows.data, sizeof(float) * SIDE * SIDE);
}

/* Bit for bit what the calls themselves give, on new inputs, also when the cache has forgotten the plans. */
static void runs_are_the_calls(void **state)
{
    static float expected[SIDE * SIDE];
    tn_graph_info info = {.struct_size = sizeof info};
    tn_graph *graph = NULL;
    tn_error err;
    (void)state;
    must(multiply(NULL, &err), &err);
    must(soften(NULL, &err), &err);
    must(tn_graph_begin(stream, &err), &err);
    must(multiply(stream, &err), &err);
    must(soften(stream, &err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    must(tn_graph_info_get(graph, &info, &err), &err);
    assert_int_equal(info.steps, 2);
    for (int turn = 0; turn < 3; turn++) {
        must(tn_random_normal(NULL, &a, &err), &err);
        must(multiply(NULL, &err), &err);
        must(soften(NULL, &err), &err);
        keep(expected);
        memset(rows.data, 0xA5, sizeof expected);
        memset(product.data, 0xA5, sizeof expected);
        if (turn == 2)
            tn_plan_cache_clear(NULL, TN_OP_NONE);
        must(tn_graph_run(graph, stream, &err), &err);
        assert_memory_equal(rows.data, expected, sizeof expected);
    }
    tn_graph_release(graph);
}

/* Numbers of a call are the recording's, not those of a later call that has its plan. */
static void numbers_are_of_the_recording(void **state)
{
    tn_graph *graph = NULL;
    tn_error err;
    (void)state;
    must(tn_fill(NULL, TN_ARGS(fill, .out = &rows, .value = 1), &err), &err);
    must(tn_graph_begin(stream, &err), &err);
    must(tn_fill(NULL, TN_ARGS(fill, .out = &rows, .value = 2, .stream = stream), &err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    must(tn_fill(NULL, TN_ARGS(fill, .out = &rows, .value = 3), &err), &err);
    assert_true(*(float *)rows.data == 3);
    must(tn_graph_run(graph, NULL, &err), &err);
    assert_true(*(float *)rows.data == 2);
    tn_graph_release(graph);
}

static void what_has_no_plan_is_refused(void **state)
{
    tn_graph *graph = NULL;
    tn_graph_info info = {.struct_size = sizeof info};
    tn_error err;
    (void)state;
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    must(tn_graph_begin(stream, &err), &err);
    assert_int_equal(multiply(stream, &err), TN_REFUSED);
    assert_contains(err.message, "there is no plan for matmul:f32");
    assert_contains(err.message, "tn_prepare");
    must(multiply(NULL, &err), &err); /* on another stream it runs, and makes the plan */
    must(multiply(stream, &err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    must(tn_graph_info_get(graph, &info, &err), &err);
    assert_int_equal(info.steps, 1);
    tn_graph_release(graph);
}

static void what_would_differ_is_refused(void **state)
{
    tn_error err;
    (void)state;
    must(tn_graph_begin(stream, &err), &err);
    must(tn_stream_set(stream, &err), &err);
    assert_int_equal(tn_random_uniform(NULL, &a, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "same random numbers");
    must(tn_stream_set(tn_stream_default(cpu), &err), &err);
    must(tn_random_uniform(NULL, &a, &err), &err);
    tn_graph_cancel(stream);
}

static void empty_graphs_run(void **state)
{
    tn_graph *graph = NULL;
    tn_error err;
    (void)state;
    must(tn_graph_begin(stream, &err), &err);
    must(tn_graph_end(stream, &graph, &err), &err);
    must(tn_graph_run(graph, stream, &err), &err);
    assert_ptr_equal(tn_graph_device(graph), cpu);
    tn_graph_release(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_are_the_calls, begin, end),
        cmocka_unit_test_setup_teardown(numbers_are_of_the_recording, begin, end),
        cmocka_unit_test_setup_teardown(what_has_no_plan_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(what_would_differ_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(empty_graphs_run, begin, end),
    };
    return run_suite("unit.graph_ops", tests);
}
