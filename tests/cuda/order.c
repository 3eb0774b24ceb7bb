/* Memory in the order of streams against the stub driver: which calls it takes, on which stream, and that none of
 * them waits; want of memory, faults, captures, and a driver without pools. */
#include "program.h"

#include "device/stream/stream.h"

#include <stdatomic.h>
#include <stdbool.h>

static char path[SCRATCH_PATH + 16], lose[SCRATCH_PATH + 16];
static const _Atomic(cu_stream) *taken_on, *freed_on;
static tn_stream *stream;

static void begin(void)
{
    come_in();
    if (stream)
        return;
    bind("stub_taken_on", &taken_on);
    bind("stub_freed_on", &freed_on);
    DO(tn_stream_create(first, NULL, &stream, &err));
}

static void forget_calls(void)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* The calls since, but for those that find the context. */
static const char *calls(void)
{
    static char text[4096];
    char line[128];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "cuCtx", 5) == 0 || strncmp(line, "cuThread", 8) == 0)
            continue;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", line);
    }
    fclose(file);
    return text;
}

static tn_memory_stats stats(void)
{
    tn_memory_stats now = {.struct_size = sizeof now};
    DO(tn_memory_stats_get(first, &now, &err));
    return now;
}

static void *take(uint64_t bytes)
{
    void *memory = NULL;
    DO(tn_memory_alloc_on(stream, bytes, "test", &memory, &err));
    return memory;
}

static void the_callers_stream_orders_it_and_nothing_waits(void **state)
{
    (void)state;
    begin();
    tn_memory_trim(first);
    const tn_memory_stats before = stats();
    forget_calls();
    void *memory = take(5000);
    assert_ptr_equal(atomic_load(taken_on), stream->native);
    DO(tn_memory_fill(TN_ARGS(memory_fill, .device = first, .to = memory, .bytes = 5000,
                              .pattern_bytes = 4, .stream = stream),
                      &err));
    assert_int_equal(stats().current, before.current + 5000);
    DO(tn_memory_free_on(stream, memory, &err));
    assert_ptr_equal(atomic_load(freed_on), stream->native);
    assert_string_equal(calls(), "cuMemAllocFromPoolAsync cuMemsetD32Async cuMemFreeAsync");
    assert_int_equal(stats().current, before.current);
    assert_int_equal(stats().allocations, before.allocations + 1);
    assert_int_equal(stats().kept, 0);
}

/* The default stream is one, too; and what was taken at once can be freed in order. */
static void any_stream_and_any_memory_will_do(void **state)
{
    void *memory = NULL;
    (void)state;
    begin();
    DO(tn_memory_alloc_on(tn_stream_default(first), 3000, NULL, &memory, &err));
    assert_null(atomic_load(taken_on));
    DO(tn_memory_free_on(stream, memory, &err));
    assert_ptr_equal(atomic_load(freed_on), stream->native);
    DO(tn_memory_alloc(first, 3000, NULL, &memory, &err));
    DO(tn_memory_free_on(tn_stream_default(first), memory, &err));
    assert_null(atomic_load(freed_on));
    memory = take(3000);
    DO(tn_stream_synchronize(stream, &err));
    forget_calls();
    tn_memory_free(first, memory);
    assert_string_equal(calls(), "cuMemFreeAsync"); /* and is not kept */
    assert_ptr_not_equal(atomic_load(freed_on), stream->native);
}

/* The stub's pool keeps what was freed for requests of the same size: only trimming makes room. */
static void want_of_memory_waits_trims_and_asks_once_more(void **state)
{
    void *none = NULL;
    (void)state;
    begin();
    tn_memory_trim(first);
    DO(tn_memory_free_on(stream, take(UINT64_C(200) * MIB), &err));
    const tn_memory_stats before = stats();
    forget_calls();
    void *memory = take(UINT64_C(201) * MIB);
    assert_string_equal(calls(), "cuMemAllocFromPoolAsync cuStreamSynchronize cuStreamSynchronize "
                                 "cuMemPoolTrimTo cuMemAllocFromPoolAsync");
    assert_ptr_equal(atomic_load(taken_on), stream->native);
    assert_int_equal(tn_memory_alloc_on(stream, UINT64_C(100) * MIB, NULL, &none, &err),
                     TN_OUT_OF_MEMORY);
    assert_non_null(strstr(err.message, "CUDA_ERROR_OUT_OF_MEMORY"));
    assert_null(none);
    assert_int_equal(stats().failures, before.failures + 1);
    DO(tn_memory_free_on(stream, memory, &err));
    tn_memory_trim(first);
}

/* Where something else is captured it is as ever; on the stream itself it is refused, and spoils nothing. */
static void captures_are_not_spoilt(void **state)
{
    enum { GLOBAL = 0 };
    void *none = NULL;
    cu_graph graph = NULL;
    tn_stream *other = NULL;
    (void)state;
    begin();
    cu_stream raw = (cu_stream)tn_stream_raw(stream);
    DO(tn_stream_create(first, NULL, &other, &err));
    void *memory = take(1000);
    IN(0, assert_int_equal(cu.graph_begin(raw, GLOBAL), CUDA_SUCCESS));
    assert_int_equal(tn_memory_alloc_on(stream, 1000, NULL, &none, &err), TN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the program captures this stream of cuda:0"));
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_UNSUPPORTED);
    DO(tn_memory_alloc_on(other, 1000, NULL, &none, &err));
    DO(tn_memory_free_on(other, none, &err));
    IN(0, assert_int_equal(cu.graph_end(raw, &graph), CUDA_SUCCESS);
       assert_int_equal(cu.graph_destroy(graph), CUDA_SUCCESS));
    DO(tn_memory_free_on(stream, memory, &err));
    tn_stream_release(other);
}

/* A handle that is no stream of the context's: the memory stays held. */
static void a_free_that_the_driver_refuses_leaves_it_held(void **state)
{
    cu_stream foreign = NULL;
    tn_stream *wrapped = NULL;
    (void)state;
    begin();
    DO(tn_device_synchronize(second, &err));
    IN(1, assert_int_equal(cu.stream_create(&foreign, 0, 0), CUDA_SUCCESS));
    DO(tn_stream_wrap(first, foreign, &wrapped, &err));
    void *memory = take(777);
    const tn_memory_stats before = stats();
    assert_int_not_equal(tn_memory_free_on(wrapped, memory, &err), TN_OK);
    assert_int_equal(err.native_code, CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(stats().current, before.current);
    assert_int_equal(stats().count, before.count);
    DO(tn_memory_free_on(stream, memory, &err));
    tn_stream_release(wrapped);
    IN(1, assert_int_equal(cu.stream_destroy(foreign), CUDA_SUCCESS));
}

static void a_fault_is_heard_of_here_too(void **state)
{
    void *none = NULL;
    (void)state;
    begin();
    void *a = take(1000), *b = take(2000);
    FILE *file = fopen(lose, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(tn_memory_free_on(stream, a, &err), TN_DEVICE_LOST);
    assert_int_equal(err.native_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    DO(tn_memory_free_on(stream, b, &err));
    assert_int_equal(tn_memory_alloc_on(stream, 1000, NULL, &none, &err), TN_DEVICE_LOST);
    assert_non_null(strstr(err.message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    DO(tn_device_reset(first, &err));
    tn_stream_release(stream);
    stream = NULL;
    begin();
    DO(tn_memory_free_on(stream, take(1000), &err));
}

static void without_pools_freeing_waits(void **state)
{
    (void)state;
    begin();
    forget_calls();
    void *memory = take(5000);
    DO(tn_memory_free_on(stream, memory, &err));
    assert_string_equal(calls(), "cuMemAlloc_v2 cuStreamSynchronize cuMemFree_v2");
}

int main(int argc, char **argv)
{
    char folder[SCRATCH_PATH];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_stream_orders_it_and_nothing_waits),
        cmocka_unit_test(any_stream_and_any_memory_will_do),
        cmocka_unit_test(want_of_memory_waits_trims_and_asks_once_more),
        cmocka_unit_test(captures_are_not_spoilt),
        cmocka_unit_test(a_free_that_the_driver_refuses_leaves_it_held),
        cmocka_unit_test(a_fault_is_heard_of_here_too),
    };
    const struct CMUnitTest poolless[] = {
        cmocka_unit_test(without_pools_freeing_waits),
    };
    const bool has_pools = argc < 2;
    (void)argv;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(lose, sizeof lose, "%s/lose", folder);
    setenv("STUB_LOG", path, 1);
    setenv("STUB_LOSE", lose, 1);
    setenv("STUB_POOLS", has_pools ? "1" : "0", 1);
    int failed =
        has_pools ? run_suite("cuda.order", tests) : run_suite("cuda.order_poolless", poolless);
    scratch_remove(folder);
    return failed;
}
