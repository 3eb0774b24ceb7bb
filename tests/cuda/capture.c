/* Streams that the program itself has the driver record, as PyTorch does for its CUDA graphs, against the stub driver: it spoils
 * a recording as the real one does, and a spoilt one does not end well. */
#include "program.h"

#include "device/stream/scratch.h"

enum { GLOBAL = 0 }; /* how strictly a recording forbids: the usual */

static cu_stream raw;
static tn_stream *stream;
static char *there; /* of the first device */

static void capture(void)
{
    come_in();
    if (!there)
        DO(tn_memory_alloc(first, 4096, "test", (void **)&there, &err));
    IN(0, assert_int_equal(cu.stream_create(&raw, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS));
    DO(tn_stream_wrap(first, raw, &stream, &err));
    IN(0, assert_int_equal(cu.graph_begin(raw, GLOBAL), CUDA_SUCCESS));
}

/* Ends the recording, which nothing has spoilt, and runs it once. */
static void end_and_run(void)
{
    cu_graph graph = NULL;
    cu_graph_exec exec = NULL;
    IN(0, assert_int_equal(cu.graph_end(raw, &graph), CUDA_SUCCESS);
       assert_int_equal(cu.graph_instantiate(&exec, graph, 0), CUDA_SUCCESS);
       assert_int_equal(cu.graph_launch(exec, raw), CUDA_SUCCESS);
       assert_int_equal(cu.graph_exec_destroy(exec) || cu.graph_destroy(graph), CUDA_SUCCESS));
    if (stream)
        DO(tn_stream_synchronize(stream, &err));
    tn_stream_release(stream);
    IN(0, assert_int_equal(cu.stream_destroy(raw), CUDA_SUCCESS));
    stream = NULL;
}

#define REFUSED(call, words)                                 \
    do {                                                     \
        memset(&err, 0, sizeof err);                         \
        assert_int_equal(call, TN_UNSUPPORTED);              \
        if (!strstr(err.message, words))                     \
            fail_msg("%s: said \"%s\"", #call, err.message); \
    } while (0)
#define REFUSED_THERE(call) REFUSED(call, "the program captures this stream of cuda:0")

static void what_is_queued_is_captured(void **state)
{
    char back[64] = "";
    (void)state;
    capture();
    memset(there, 1, 64);
    DO(tn_memory_fill(TN_ARGS(memory_fill, .device = first, .to = there, .bytes = 32, .pattern = 7,
                              .stream = stream),
                      &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to_device = first, .to = there + 32,
                              .from_device = first, .from = there, .bytes = 32, .stream = stream),
                      &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to = back, .from_device = first, .from = there,
                              .bytes = 64, .stream = stream),
                      &err));
    assert_int_equal(there[0], 1);
    end_and_run();
    for (size_t i = 0; i < sizeof back; i++)
        assert_int_equal(back[i], 7);
}

static void who_asks_or_waits_is_refused(void **state)
{
    tn_stream_guard guard = {0};
    int32_t done = 7;
    (void)state;
    capture();
    REFUSED_THERE(tn_stream_synchronize(stream, &err));
    REFUSED_THERE(tn_stream_query(stream, &done, &err));
    assert_int_equal(done, 7);
    DO(tn_stream_guard_enter(&guard, stream, &err));
    REFUSED_THERE(tn_device_synchronize(first, &err));
    tn_stream_guard_leave(&guard);
    end_and_run();
}

static void events_are_points_of_the_capture(void **state)
{
    tn_event *start = NULL, *stop = NULL;
    int32_t done = 7;
    double ms = 7;
    (void)state;
    capture();
    DO(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &start, &err));
    DO(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &stop, &err));
    DO(tn_event_record(start, stream, &err));
    DO(tn_event_record(stop, stream, &err));
    REFUSED(tn_event_query(stop, &done, &err), "a stream that the program captures");
    REFUSED(tn_event_synchronize(stop, &err), "a stream that the program captures");
    REFUSED(tn_event_elapsed_time(start, stop, &ms, &err), "a stream that the program captures");
    end_and_run();
    REFUSED(tn_event_query(stop, &done, &err), "record it again outside");
    DO(tn_event_record(stop, NULL, &err));
    DO(tn_event_query(stop, &done, &err));
    assert_int_equal(done, 1);
    tn_event_release(start);
    tn_event_release(stop);
}

static void only_streams_of_one_capture_wait_for_each_other(void **state)
{
    tn_stream *own = NULL;
    tn_event *before = NULL;
    (void)state;
    come_in();
    DO(tn_stream_create(first, NULL, &own, &err));
    DO(tn_event_create(first, NULL, &before, &err));
    DO(tn_event_record(before, own, &err));
    capture();
    REFUSED_THERE(tn_stream_wait_event(stream, before, &err));
    REFUSED_THERE(tn_stream_wait_stream(stream, own, &err));
    DO(tn_stream_wait_stream(own, stream, &err));
    memset(there, 1, 64);
    DO(tn_memory_fill(
        TN_ARGS(memory_fill, .device = first, .to = there, .bytes = 64, .stream = own), &err));
    assert_int_equal(there[0], 1);
    REFUSED_THERE(tn_stream_synchronize(own, &err));
    DO(tn_stream_wait_stream(stream, own, &err));
    end_and_run();
    assert_int_equal(there[0], 0);
    DO(tn_stream_synchronize(own, &err));
    tn_event_release(before);
    tn_stream_release(own);
}

/* What has to do with no stream, or with one that is not captured, goes on as ever. */
static void the_rest_of_the_program_goes_on(void **state)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    tn_stream *own = NULL, *far = NULL;
    tn_event *before = NULL;
    void *taken = NULL, *pinned = NULL, *there_too = NULL;
    int32_t done = 0;
    (void)state;
    come_in();
    DO(tn_stream_create(first, NULL, &own, &err));
    DO(tn_event_create(first, NULL, &before, &err));
    DO(tn_event_record(before, own, &err));
    capture();
    DO(tn_memory_alloc(first, 3 * MIB, "test", &taken, &err));
    DO(tn_memory_host_alloc(first, MIB, "test", &pinned, &err));
    DO(tn_device_memory_get(first, &memory, &err));
    DO(tn_event_query(before, &done, &err));
    DO(tn_event_synchronize(before, &err));
    DO(tn_stream_query(own, &done, &err));
    DO(tn_stream_synchronize(own, &err));
    DO(tn_stream_create(second, NULL, &far, &err));
    DO(tn_memory_alloc(second, 64, "test", &there_too, &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to_device = second, .to = there_too,
                              .from_device = first, .from = there, .bytes = 64, .stream = far),
                      &err));
    tn_memory_free(second, there_too);
    tn_stream_release(far);
    tn_memory_free(first, taken);
    tn_memory_host_free(first, pinned);
    tn_memory_trim(first);
    end_and_run();
    tn_event_release(before);
    tn_stream_release(own);
}

static void what_would_go_through_the_host_is_refused(void **state)
{
    float host[4] = {0};
    const int64_t shape[] = {4};
    tn_tensor tensor;
    tn_stream_guard guard = {0};
    tn_device *cpu = NULL;
    (void)state;
    capture();
    DO(tn_device_get("cpu:0", &cpu, &err));
    DO(tn_stream_guard_enter(&guard, stream, &err));
    REFUSED_THERE(
        tn_memory_copy(TN_ARGS(memory_copy, .to_device = cpu, .to = host, .from_device = first,
                               .from = there, .bytes = 16, .stream = tn_stream_default(cpu)),
                       &err));
    REFUSED_THERE(tn_memory_fill(TN_ARGS(memory_fill, .device = first, .to = there + 1, .bytes = 4,
                                         .pattern = 1, .pattern_bytes = 4),
                                 &err));
    DO(tn_tensor_wrap(first, there, TN_F32, shape, NULL, 1, NULL, NULL, &tensor, &err));
    REFUSED_THERE(tn_random_uniform(NULL, &tensor, &err));
    tn_tensor_release(&tensor);
    tn_stream_guard_leave(&guard);
    end_and_run();
}

static void graphs_of_tenon_are_no_part_of_it(void **state)
{
    tn_stream *own = NULL;
    tn_graph *graph = NULL;
    (void)state;
    come_in();
    DO(tn_stream_create(first, NULL, &own, &err));
    capture();
    REFUSED_THERE(tn_graph_begin(stream, &err));
    DO(tn_graph_begin(own, &err));
    DO(tn_memory_fill(
        TN_ARGS(memory_fill, .device = first, .to = there, .bytes = 64, .stream = own), &err));
    DO(tn_graph_end(own, &graph, &err));
    REFUSED_THERE(tn_graph_run(graph, stream, &err));
    end_and_run();
    DO(tn_graph_run(graph, own, &err));
    tn_graph_release(graph);
    tn_stream_release(own);
}

/* A kernel that is not planned would be chosen, compiled and tested, which runs things. */
static void kernels_must_be_at_hand(void **state)
{
    const int64_t shape[] = {16};
    tn_tensor tensor;
    (void)state;
    capture();
    DO(tn_tensor_wrap(first, there, TN_F32, shape, NULL, 1, NULL, NULL, &tensor, &err));
    assert_int_equal(tn_unary(NULL,
                              TN_ARGS(unary, .kind = TN_UNARY_EXP, .in = &tensor, .out = &tensor,
                                      .stream = stream),
                              &err),
                     TN_REFUSED);
    assert_non_null(strstr(err.message, "a graph is being recorded, but there is no plan"));
    tn_tensor_release(&tensor);
    end_and_run();
}

/* Scratch memory of a call that is captured is the graph's, and the stream's own stays what it was. */
static void scratch_memory_is_the_graphs(void **state)
{
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    tni_scratch *own = NULL, *captured = NULL;
    (void)state;
    capture();
    DO(tn_memory_stats_get(first, &before, &err));
    DO(tni_scratch_acquire(stream, MIB, "test", &captured, &err));
    assert_true(captured->captured);
    assert_non_null(captured->memory);
    DO(tn_memory_stats_get(first, &after, &err));
    assert_int_equal(after.current, before.current);
    tni_scratch_release(stream, captured);
    assert_null(atomic_load(&stream->scratch));
    end_and_run();
    DO(tni_scratch_acquire(tn_stream_default(first), MIB, "test", &own, &err));
    assert_false(own->captured);
    tni_scratch_release(tn_stream_default(first), own);
}

/* The stub's cuBLASLt computes nothing; the module asks for scratch memory all the same. */
static void products_are_captured(void **state)
{
    const int64_t shape[] = {64, 64};
    tn_tensor a, b, out;
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    (void)state;
    come_in();
    DO(tn_tensor_create(first, TN_F32, shape, 2, &a, &err));
    DO(tn_tensor_create(first, TN_F32, shape, 2, &b, &err));
    DO(tn_tensor_create(first, TN_F32, shape, 2, &out, &err));
    DO(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), &err));
    capture();
    DO(tn_memory_stats_get(first, &before, &err));
    DO(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .stream = stream), &err));
    DO(tn_memory_stats_get(first, &after, &err));
    assert_int_equal(after.current, before.current);
    assert_null(atomic_load(&stream->scratch));
    end_and_run();
    tn_tensor_release(&a);
    tn_tensor_release(&b);
    tn_tensor_release(&out);
}

/* cuDNN's stub computes as its graphs say, once the capture is run or before; which is not asked here. */
static void attention_is_captured(void **state)
{
    const int64_t shape[] = {1, 2, 64, 64};
    tn_tensor of[4];
    tn_change changes[2];
    tn_context *only = NULL;
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    (void)state;
    come_in();
    DO(tn_setting_parse("rules=require:cuda.attention.cudnn", &changes[0], &err));
    DO(tn_setting_parse("admission=never", &changes[1], &err));
    DO(tn_context_derive(NULL, changes, 2, &only, &err));
    for (int i = 0; i < 4; i++)
        DO(tn_tensor_create(first, TN_BF16, shape, 4, &of[i], &err));
    tn_attention_args args =
        *TN_ARGS(attention, .q = &of[0], .k = &of[1], .v = &of[2], .out = &of[3]);
    DO(tn_attention(only, &args, &err));
    capture();
    args.stream = stream;
    DO(tn_memory_stats_get(first, &before, &err));
    DO(tn_attention(only, &args, &err));
    DO(tn_memory_stats_get(first, &after, &err));
    assert_int_equal(after.current, before.current);
    assert_null(atomic_load(&stream->scratch));
    end_and_run();
    tn_context_release(only);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&of[i]);
}

/* Its handle goes while the capture goes on, as one that was wrapped for a single call does. */
static void a_stream_is_released_while_it_is_captured(void **state)
{
    tni_scratch *own = NULL;
    (void)state;
    come_in();
    IN(0, assert_int_equal(cu.stream_create(&raw, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS));
    DO(tn_stream_wrap(first, raw, &stream, &err));
    DO(tni_scratch_acquire(stream, MIB, "test", &own, &err));
    tni_scratch_release(stream, own);
    IN(0, assert_int_equal(cu.graph_begin(raw, GLOBAL), CUDA_SUCCESS));
    tn_stream_release(stream);
    stream = NULL;
    end_and_run();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_queued_is_captured),
        cmocka_unit_test(who_asks_or_waits_is_refused),
        cmocka_unit_test(events_are_points_of_the_capture),
        cmocka_unit_test(only_streams_of_one_capture_wait_for_each_other),
        cmocka_unit_test(the_rest_of_the_program_goes_on),
        cmocka_unit_test(what_would_go_through_the_host_is_refused),
        cmocka_unit_test(graphs_of_tenon_are_no_part_of_it),
        cmocka_unit_test(kernels_must_be_at_hand),
        cmocka_unit_test(scratch_memory_is_the_graphs),
        cmocka_unit_test(products_are_captured),
        cmocka_unit_test(attention_is_captured),
        cmocka_unit_test(a_stream_is_released_while_it_is_captured),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("TENON_ADMISSION", "never", 1); /* nothing that the stub runs is right */
    return run_suite("cuda.capture", tests);
}
