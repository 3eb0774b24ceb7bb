/* Recording and running a graph when the n-th allocation fails: the call that meets it says so, a recording can
 * be given up at any point, and nothing is left behind. */
#include "fault.h"

#include "device/graph/graph.h"
#include "tenon/tenon.h"

enum { SIDE = 8 };

static tn_device *cpu;
static tn_tensor a, out;
static unsigned char from[256], to[256];

static tn_status queue(tn_stream *stream, tn_error *err)
{
    tn_status status = tn_binary(NULL,
                                 TN_ARGS(binary, .in = &a, .other = &a, .out = &out,
                                         .kind = TN_BINARY_ADD, .stream = stream),
                                 err);
    if (!status)
        status = tn_memory_copy(TN_ARGS(memory_copy, .to_device = cpu, .to = to, .from_device = cpu,
                                        .from = from, .bytes = sizeof to, .stream = stream),
                                err);
    if (!status)
        status = tn_memory_fill(TN_ARGS(memory_fill, .device = cpu, .to = to, .bytes = 16,
                                        .pattern = 7, .stream = stream),
                                err);
    return status;
}

static tn_status record_and_run(tn_error *err)
{
    tn_graph *graph = NULL;
    tn_stream *stream = NULL;
    void *scratch = NULL;
    tn_status status = tn_stream_create(cpu, NULL, &stream, err);
    if (!status)
        status = tn_graph_begin(stream, err);
    if (!status)
        status = queue(stream, err);
    if (!status)
        status = tni_graph_scratch(tni_graph_of(stream), 1000, "test", &scratch, err);
    if (!status)
        status = tn_graph_end(stream, &graph, err);
    if (!status)
        status = tn_graph_run(graph, stream, err);
    if (!status && (to[0] != 7 || to[100] != 100 || *(float *)out.data != 4))
        fail_msg("the graph has not done its work");
    tn_graph_cancel(stream);
    assert_false(tni_graph_any());
    tn_graph_release(graph);
    tn_stream_release(stream);
    return status;
}

static bool survive(long n)
{
    tn_error err = {0};
    int64_t before = tn_allocator_blocks();
    memset(to, 0, sizeof to);
    fault_arm(&fault_memory, n, false, 0);
    tn_status status = record_and_run(&err);
    bool fired = fault_end(&fault_memory);
    if (status) {
        assert_true(fired);
        assert_int_equal(status, TN_OUT_OF_MEMORY);
        assert_int_not_equal(err.message[0], '\0');
    }
    tn_memory_trim(cpu);
    assert_int_equal(tn_allocator_blocks(), before);
    return fired;
}

static void every_allocation_may_fail(void **state)
{
    const int64_t shape[] = {SIDE, SIDE};
    tn_error err;
    long n = 1;
    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)i;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    assert_int_equal(tn_tensor_create(cpu, TN_F32, shape, 2, &a, &err), TN_OK);
    assert_int_equal(tn_tensor_create(cpu, TN_F32, shape, 2, &out, &err), TN_OK);
    assert_int_equal(tn_fill(NULL, TN_ARGS(fill, .out = &a, .value = 2), &err), TN_OK);
    for (int i = 0; i < 3; i++) /* what is made once is there, and plans are at hand */
        assert_int_equal(queue(NULL, &err), TN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(record_and_run(&err), TN_OK);
    tn_memory_trim(cpu);
    while (survive(n))
        n++;
    assert_true(n > 5);
    tn_tensor_release(&a);
    tn_tensor_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    fault_memory_install();
    return run_suite("fault.graphs", tests);
}
