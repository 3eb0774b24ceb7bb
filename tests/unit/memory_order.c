/* Memory in the order of streams: by a platform that has such, by one whose row ends before there was such a thing,
 * and when everything fails once, in turn. */
#include "async_platform.h"

#include "device/memory/memory.h"
#include "device/stream/epoch.h"
#include "fault/fault.h"

#include <sched.h>

enum { KIB = 1 << 10 };

static world w;
static tn_device *on;
static tn_stream *stream;
static tn_error err;

static void begin(bool ordered)
{
    async_ordering = ordered;
    async_world_make(&w, WORLD_CPU | WORLD_ACME);
    on = world_device(&w, "async:0");
    assert_int_equal(tn_stream_create(on, NULL, &stream, &err), TN_OK);
}

static void end(void)
{
    tn_stream_release(stream);
    async_world_end(&w);
}

static tn_memory_stats stats(void)
{
    tn_memory_stats now = {.struct_size = sizeof now};
    assert_int_equal(tn_memory_stats_get(on, &now, &err), TN_OK);
    return now;
}

static void *take(uint64_t bytes)
{
    void *memory = NULL;
    if (tn_memory_alloc_on(stream, bytes, "test", &memory, &err))
        fail_msg("%s: %s", err.where, err.message);
    return memory;
}

static void fill(void *memory, uint64_t bytes, uint64_t pattern)
{
    assert_int_equal(tn_memory_fill(TN_ARGS(memory_fill, .device = on, .to = memory, .bytes = bytes,
                                            .pattern = pattern, .stream = stream),
                                    &err),
                     TN_OK);
}

/* Behind a gate that is shut: whoever waited for the stream would wait for ever. */
static void the_platform_orders_it(void **state)
{
    (void)state;
    begin(true);
    async_gate *gate = async_gate_put(stream);
    void *memory = take(3000);
    assert_int_equal(stats().current, 3000);
    assert_int_equal(stats().count, 1);
    fill(memory, 3000, 7);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_OK);
    assert_int_equal(stats().current | stats().count | stats().kept, 0);
    assert_int_equal(stats().peak, 3000);
    assert_int_equal(stats().allocations, 1);
    assert_int_equal(async_held().blocks, 1); /* until the stream has come so far */
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(stats().wrong_frees, 1);
    assert_int_equal(async_calls("memory_alloc") | async_calls("memory_free"), 0);
    assert_int_equal(async_calls("stream_synchronize") | async_calls("device_synchronize"), 0);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_OK);
    assert_int_equal(async_held().blocks, 0);
    end();
}

struct freeing {
    void *memory;
    tn_status status;
    _Atomic bool done;
};

static void *free_there(void *user)
{
    struct freeing *f = user;
    f->status = tn_memory_free_on(stream, f->memory, NULL);
    f->done = true;
    return NULL;
}

/* A row that ends earlier: memory is as ever, and the stream is waited for before it goes. */
static void without_order_the_stream_is_waited_for(void **state)
{
    pthread_t thread;
    (void)state;
    begin(false);
    struct freeing f = {.memory = take(3000)};
    tni_memory_of(on)->keeps = false;
    assert_int_equal(async_calls("memory_alloc"), 1);
    async_gate *gate = async_gate_put(stream);
    fill(f.memory, 3000, 7);
    assert_int_equal(pthread_create(&thread, NULL, free_there, &f), 0);
    while (async_calls("stream_synchronize") == 0)
        sched_yield();
    assert_false(f.done);
    assert_int_equal(async_calls("memory_free"), 0);
    assert_int_equal(stats().current, 3000);
    async_gate_open(gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(f.status, TN_OK);
    assert_int_equal(stats().current, 0);
    assert_int_equal(async_calls("memory_alloc_on") | async_calls("memory_free_on"), 0);
    end();
}

/* The processor's streams are the calling thread: nothing is left to wait for. */
static void a_platform_without_streams_frees_at_once(void **state)
{
    tn_device *cpu = NULL;
    tn_stream *own = NULL;
    void *memory = NULL;
    (void)state;
    begin(true);
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK); /* the real one */
    assert_int_equal(tn_stream_create(cpu, NULL, &own, &err), TN_OK);
    assert_int_equal(tn_memory_alloc_on(own, 100, NULL, &memory, &err), TN_OK);
    memset(memory, 1, 100);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_INVALID_ARGUMENT); /* another's */
    assert_contains(err.message, "async:0: ");
    assert_int_equal(tn_memory_free_on(own, memory, &err), TN_OK);
    assert_int_equal(tn_memory_free_on(own, NULL, &err), TN_OK);
    tn_stream_release(own);
    end();
}

static void what_is_kept_makes_room_for_it(void **state)
{
    void *kept = NULL;
    (void)state;
    async_capacity = 1000 * KIB;
    begin(true);
    async_capacity = 1000 * KIB;
    tni_memory_of(on)->keeps = true;
    assert_int_equal(tn_memory_alloc(on, 32 * KIB, NULL, &kept, &err), TN_OK);
    tn_memory_free(on, kept);
    assert_int_equal(stats().kept, 32 * KIB);
    void *memory = take(990 * KIB);
    assert_int_equal(stats().kept, 0);
    void *none = NULL;
    assert_int_equal(tn_memory_alloc_on(stream, 11 * KIB, NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "11.0 KiB asked; 10.0 KiB of ");
    assert_contains(err.message, "largest users: test (990.0 KiB)");
    assert_string_equal(err.where, "tn_memory_alloc_on");
    assert_null(none);
    assert_int_equal(stats().failures, 1);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_OK);
    assert_int_equal(stats().kept, 0); /* it may be in use */
    end();
}

static void a_free_that_fails_leaves_it_held(void **state)
{
    (void)state;
    begin(true);
    void *memory = take(500);
    async_fail("memory_free_on", 1, TN_IO);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_IO);
    assert_int_equal(stats().current, 500);
    assert_int_equal(stats().count, 1);
    assert_int_equal(stats().allocations, 1);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_OK);
    assert_int_equal(stats().current | stats().count | stats().wrong_frees, 0);
    end();
    begin(false);
    memory = take(500);
    async_fail("stream_synchronize", 1, TN_IO);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_IO);
    assert_int_equal(stats().current, 500);
    assert_int_equal(tn_memory_free_on(stream, memory, &err), TN_OK);
    end();
}

static void lose(bool ordered)
{
    void *none = NULL;
    begin(ordered);
    void *a = take(500), *b = take(700);
    async_lose(0, "pulled out");
    assert_int_equal(tn_memory_free_on(stream, a, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "pulled out");
    assert_int_equal(tn_memory_free_on(stream, b, &err), TN_OK); /* it is gone */
    assert_int_equal(stats().current | stats().count | stats().wrong_frees, 0);
    assert_int_equal(tn_memory_alloc_on(stream, 1, NULL, &none, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "pulled out");
    assert_int_equal(tn_device_reset(on, &err), TN_OK);
    assert_int_equal(tn_memory_alloc_on(stream, 1, NULL, &none, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "was created before async:0 was reset");
    tn_stream_release(stream);
    assert_int_equal(tn_stream_create(on, NULL, &stream, &err), TN_OK);
    assert_int_equal(tn_memory_free_on(stream, take(100), &err), TN_OK);
    end();
}

static void a_loss_takes_it_along(void **state)
{
    (void)state;
    lose(true);
    lose(false);
}

/* Taken, filled, freed; and whatever came of it, what was taken goes. */
static tn_status live(void)
{
    tn_stream *own = NULL;
    void *memory = NULL;
    tn_error said = {0};
    tn_status status = tn_stream_create(on, NULL, &own, &said);
    if (!status)
        status = tn_memory_alloc_on(own, 900, "test", &memory, &said);
    if (!status)
        status = tn_memory_fill(
            TN_ARGS(memory_fill, .device = on, .to = memory, .bytes = 900, .stream = own), &said);
    if (!status)
        status = tn_memory_free_on(own, memory, &said);
    if (status && memory)
        (void)tn_memory_free_on(own, memory, NULL);
    if (status)
        assert_true(said.status == status && said.message[0]);
    for (int turn = 0; own && turn < 2; turn++) /* one of them may be the one that fails */
        (void)tn_stream_synchronize(own, NULL);
    tn_stream_release(own);
    return status;
}

static void fail_each(bool ordered)
{
    begin(ordered);
    tni_memory_of(on)->keeps = false;
    assert_int_equal(live(), TN_OK);
    long n = 1;
    for (bool fired = true; fired; n++) {
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, n, n % 2 == 0, 0);
        tn_status status = live();
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        assert_int_equal(fault_left(before, "an allocation", n), 0);
        assert_int_equal(stats().current | stats().count, 0);
        assert_int_equal(async_held().blocks, 0);
    }
    print_message("%ld allocations\n", n - 2);
    assert_true(n > 3);
    n = 1;
    for (bool fired = true; fired; n++) {
        async_fail(NULL, n, TN_IO);
        tn_status status = live();
        fired = async_heal();
        assert_true(status == TN_OK || (fired && status == TN_IO));
        assert_int_equal(stats().current | stats().count, 0);
        assert_int_equal(async_held().blocks, 0);
    }
    assert_true(n > 4);
    end();
}

static void each_step_may_fail(void **state)
{
    (void)state;
    fail_each(true);
    fail_each(false);
}

/* Threads on streams of their own: every byte is counted, and nothing is left. */
static void *churn(void *user)
{
    tn_stream *own = NULL;
    tn_status status = tn_stream_create(on, NULL, &own, NULL);
    for (uint64_t i = 0; i < 200 && !status; i++) {
        void *memory = NULL;
        status = tn_memory_alloc_on(own, 64 + i * 37 % 5000, "churn", &memory, NULL);
        if (!status)
            status = tn_memory_fill(TN_ARGS(memory_fill, .device = on, .to = memory, .bytes = 64,
                                            .pattern = i, .stream = own),
                                    NULL);
        if (!status && i % 3)
            status = tn_memory_free_on(own, memory, NULL);
        else if (!status && !(status = tn_stream_synchronize(own, NULL)))
            tn_memory_free(on, memory);
    }
    tn_stream_release(own);
    *(tn_status *)user = status;
    return NULL;
}

static void threads_take_and_give(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        pthread_t threads[4];
        tn_status statuses[4];
        begin(ordered);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, churn, &statuses[i]), 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(statuses[i], TN_OK);
        }
        assert_int_equal(stats().current | stats().count | stats().wrong_frees, 0);
        assert_int_equal(stats().allocations, 4 * 200);
        tn_memory_trim(on);
        assert_int_equal(tn_device_synchronize(on, &err), TN_OK);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_platform_orders_it),
        cmocka_unit_test(without_order_the_stream_is_waited_for),
        cmocka_unit_test(a_platform_without_streams_frees_at_once),
        cmocka_unit_test(what_is_kept_makes_room_for_it),
        cmocka_unit_test(a_free_that_fails_leaves_it_held),
        cmocka_unit_test(a_loss_takes_it_along),
        cmocka_unit_test(each_step_may_fail),
        cmocka_unit_test(threads_take_and_give),
    };
    fault_memory_install();
    return run_suite("unit.memory_order", tests);
}
