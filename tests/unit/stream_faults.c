/* Streams and events when everything fails once, in turn: allocations, calls of the module. */
#include "async_platform.h"

#include "device/stream/epoch.h"
#include "fault/fault.h"

static world w;

/* What one life of a stream needs; released whatever came of it. */
struct things {
    tn_stream *a, *b, *wrapped;
    tn_event *start, *stop, *shared, *copy;
    tn_stream_guard guard;
};

static tn_status make(struct things *t, tn_device *on, tn_error *err)
{
    const tn_event_args timing = {.struct_size = sizeof timing, .enable_timing = 1};
    const tn_event_args shared = {.struct_size = sizeof shared, .interprocess = 1};
    tn_event_handle handle;
    tn_status status;
    (void)((status = tn_stream_create(on, NULL, &t->a, err)) ||
           (status = tn_stream_create(on, NULL, &t->b, err)) ||
           (status = tn_event_create(on, &timing, &t->start, err)) ||
           (status = tn_event_create(on, &timing, &t->stop, err)) ||
           (status = tn_event_create(on, &shared, &t->shared, err)) ||
           (status = tn_event_export(t->shared, &handle, err)) ||
           (status = tn_event_import(on, &handle, &t->copy, err)));
    if (!status && tn_stream_raw(t->a))
        status = tn_stream_wrap(on, t->a->native, &t->wrapped, err);
    return status;
}

static tn_status use(struct things *t, tn_device *on, tn_error *err)
{
    int32_t done;
    double ms;
    tn_status status;
    (void)((status = tn_device_set(tn_device_platform(on), tn_device_index(on), err)) ||
           (status = tn_stream_guard_enter(&t->guard, t->a, err)) ||
           (status = tn_stream_set(t->b, err)) || (status = tn_event_record(t->start, NULL, err)) ||
           (status = tn_event_record(t->copy, NULL, err)) ||
           (status = tn_event_wait(t->shared, t->b, err)) ||
           (status = tn_event_wait(t->start, tn_stream_default(on), err)) ||
           (status = tn_stream_wait_stream(t->b, t->a, err)) ||
           (status = tn_stream_query(t->b, &done, err)) ||
           (status = tn_event_record(t->stop, t->b, err)) ||
           (status = tn_event_synchronize(t->stop, err)) ||
           (status = tn_event_query(t->stop, &done, err)) ||
           (status = tn_event_elapsed_time(t->start, t->stop, &ms, err)) ||
           (status = tn_stream_synchronize(t->b, err)) ||
           (status = tn_device_synchronize(on, err)));
    return status;
}

enum { SAID_NOTHING = -1 }; /* a status: it failed without a word */

static tn_status live(tn_device *on)
{
    struct things t = {0};
    tn_error err = {0};
    tn_status status = make(&t, on, &err);
    if (!status)
        status = use(&t, on, &err);
    if (status && (err.status != status || !err.message[0]))
        status = SAID_NOTHING;
    tn_stream_guard_leave(&t.guard);
    tn_event_release(t.copy);
    tn_event_release(t.shared);
    tn_event_release(t.stop);
    tn_event_release(t.start);
    tn_stream_release(t.wrapped);
    tn_stream_release(t.b);
    tn_stream_release(t.a);
    return status;
}

/* On a thread of its own, which begins without anything current and lets go of everything. Not one
 * of the library's, as those need memory. */
struct life {
    tn_device *on;
    tn_status status;
};

static void *live_there(void *user)
{
    struct life *life = user;
    life->status = live(life->on);
    return NULL;
}

static tn_status live_apart(tn_device *on)
{
    pthread_t thread;
    struct life life = {.on = on};
    assert_int_equal(pthread_create(&thread, NULL, live_there, &life), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return life.status;
}

static bool can_share(tn_device *on)
{
    tn_event *event = NULL;
    tn_error err = {0};
    tn_status status = tn_event_create(on, TN_ARGS(event, .interprocess = 1), &event, &err);
    if (status)
        print_message("%s\n", err.message);
    tn_event_release(event);
    return status == TN_OK;
}

static void every_allocation_may_fail(void **state)
{
    static const char *const names[] = {"async:1", "cpu:0", "acme:2"};
    (void)state;
    async_sharing = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_device *on = world_device(&w, names[i]);
        bool fired = can_share(on);
        long n = 1;
        for (; fired; n++) {
            assert_int_equal(live_apart(on), TN_OK);
            struct fault_state before = fault_look();
            fault_arm(&fault_memory, n, n % 2 == 0, 0);
            tn_status status = live_apart(on);
            fired = fault_end(&fault_memory);
            assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
            assert_int_equal(fault_left(before, names[i], n), 0);
            assert_true(async_holds_nothing());
        }
        print_message("%s: %ld allocations\n", names[i], n - 2);
    }
}

static void every_call_of_the_module_may_fail(void **state)
{
    static const struct {
        tn_status given, expected;
    } ways[] = {{TN_IO, TN_IO}, {TN_OUT_OF_MEMORY, TN_OUT_OF_MEMORY}, {4711, TN_INTERNAL}};
    tn_device *on = world_device(&w, "async:1");
    (void)state;
    async_sharing = true;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int kept = 0;
        bool fired = true;
        long n = 1;
        for (; fired; n++) {
            struct fault_state before = fault_look();
            async_fail(NULL, n, ways[i].given);
            tn_status status = live_apart(on);
            fired = async_heal();
            if (status)
                assert_int_equal(status, ways[i].expected);
            kept += fired && !status;
            assert_int_equal(fault_left(before, "a call", n), 0);
            assert_true(async_holds_nothing());
            assert_int_equal(live_apart(on), TN_OK);
        }
        assert_true(n > 20);
        assert_int_equal(kept, 1); /* leaving a guard never fails */
    }
}

/* A module that says it did what it did not do: what it gave is not there, what it timed is not
 * ready, but nothing is left behind and nothing hangs. */
static void module_may_lie(void **state)
{
    tn_device *on = world_device(&w, "async:1");
    tn_error err;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    bool fired = true;
    (void)state;
    async_sharing = true;
    async_fail("stream_create", 1, TN_OK);
    assert_int_equal(tn_stream_create(on, NULL, &stream, &err), TN_INTERNAL);
    assert_string_equal(err.message, "async:1 created a stream but returned none");
    async_fail("event_create", 1, TN_OK);
    assert_int_equal(tn_event_create(on, NULL, &event, &err), TN_INTERNAL);
    assert_string_equal(err.message, "async:1 created an event but returned none");
    assert_true(!stream && !event);
    for (long n = 1; fired; n++) {
        struct fault_state before = fault_look();
        async_fail(NULL, n, TN_OK);
        assert_int_not_equal(live_apart(on), SAID_NOTHING);
        fired = async_heal();
        assert_int_equal(fault_left(before, "a lie", n), 0);
        assert_true(async_holds_nothing());
    }
}

/* What is lost stays lost until it is reset, and then all is well. */
static void device_may_be_lost_at_any_call(void **state)
{
    tn_device *on = world_device(&w, "async:0");
    tn_error err;
    bool fired = true;
    (void)state;
    async_sharing = true;
    for (long n = 1; fired; n++) {
        struct fault_state before = fault_look();
        async_fail(NULL, n, TN_DEVICE_LOST);
        tn_status status = live_apart(on);
        fired = async_heal();
        assert_int_equal(tn_device_health(on, &err), fired ? TN_DEVICE_LOST : TN_OK);
        if (fired && status) {
            assert_int_equal(status, TN_DEVICE_LOST);
            assert_contains(err.message, "fails on request");
            assert_int_equal(live_apart(on), TN_DEVICE_LOST);
        }
        assert_int_equal(tn_device_reset(on, &err), TN_OK);
        tni_device_epoch_next(on);
        assert_int_equal(fault_left(before, "a loss", n), 0);
        assert_true(async_holds_nothing());
        assert_int_equal(live_apart(on), TN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_of_the_module_may_fail),
        cmocka_unit_test(module_may_lie),
        cmocka_unit_test(device_may_be_lost_at_any_call),
    };
    fault_memory_install();
    async_world_make(&w, WORLD_ALL);
    int failed = run_suite("unit.stream_faults", tests);
    async_world_end(&w);
    return failed;
}
