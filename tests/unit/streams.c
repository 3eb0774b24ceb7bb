/* Streams: whose they are, which is current, and that work on them keeps its order. */
#include "async_platform.h"

#include "device/stream/epoch.h"

static world w;

static tn_device *device(const char *name)
{
    return world_device(&w, name);
}

static tn_stream *made_on(const char *name)
{
    tn_stream *stream = NULL;
    tn_error err = {0};
    if (tn_stream_create(device(name), NULL, &stream, &err))
        fail_msg("%s", err.message);
    return stream;
}

static int32_t is_done(tn_stream *stream)
{
    int32_t done = -1;
    tn_error err = {0};
    if (tn_stream_query(stream, &done, &err))
        fail_msg("%s", err.message);
    return done;
}

/* Queues a copy of one number on the stream. */
static void queue_copy(tn_stream *stream, int *to, const int *from)
{
    tni_call call;
    tn_error err = {0};
    if (tni_device_open(stream->device, "test", &call, &err))
        fail_msg("%s", err.message);
    const tn_copy_job job = {.struct_size = sizeof job,
                             .to = to,
                             .from = from,
                             .bytes = sizeof *to,
                             .to_device = call.device,
                             .from_device = call.device,
                             .stream = stream->native,
                             .rows = 1,
                             .to_pitch = sizeof *to,
                             .from_pitch = sizeof *to};
    if (call.row->copy(call.self, &job, &err))
        fail_msg("%s", err.message);
}

static void every_device_has_a_default_one(void **state)
{
    static const char *const names[] = {"cpu:0", "acme:2", "async:0", "async:1"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_stream *stream = tn_stream_default(device(names[i]));
        assert_non_null(stream);
        assert_ptr_equal(stream, tn_stream_current(device(names[i])));
        assert_ptr_equal(tn_stream_device(stream), device(names[i]));
        assert_int_equal(tn_stream_raw(stream), 0);
        assert_int_equal(tn_stream_raw_current(device(names[i])), 0);
        assert_int_equal(tn_stream_priority(stream), TN_PRIORITY_DEFAULT);
        assert_int_equal(is_done(stream), 1);
        assert_int_equal(tn_stream_synchronize(stream, NULL), TN_OK);
        tn_stream_release(stream); /* it is the device's: nothing */
        assert_int_equal(is_done(stream), 1);
    }
}

static void created_ones_have_a_priority(void **state)
{
    static const int32_t rows[][2] = {{0, 0}, {1, 1}, {-1, -1}, {9, 1}, {INT32_MIN, -1}};
    tn_stream *stream = NULL;
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tn_stream_create(device("async:1"),
                                          TN_ARGS(stream, .priority = rows[i][0]), &stream, &err),
                         TN_OK);
        assert_int_equal(tn_stream_priority(stream), rows[i][1]);
        assert_int_equal(async_last_priority, rows[i][1]);
        assert_int_equal(tn_stream_raw(stream), (uintptr_t)stream->native);
        assert_int_not_equal(tn_stream_raw(stream), 0);
        assert_ptr_equal(tn_stream_device(stream), device("async:1"));
        tn_stream_release(stream);
        assert_int_equal(tn_stream_create(device("cpu:0"), TN_ARGS(stream, .priority = rows[i][0]),
                                          &stream, &err),
                         TN_OK);
        assert_int_equal(tn_stream_priority(stream), rows[i][1]);
        assert_int_equal(tn_stream_raw(stream), 0);
        assert_int_equal(is_done(stream), 1);
        assert_int_equal(tn_stream_synchronize(stream, &err), TN_OK);
        tn_stream_release(stream);
    }
    assert_true(async_holds_nothing());
}

static void leave(void *guard)
{
    tn_stream_guard_leave(guard);
}

/* A guard that another thread leaves stays entered, and changes nothing there. */
static void guard_is_its_threads(void **state)
{
    tni_thread thread;
    tn_stream_guard guard = {0};
    tn_stream *stream = NULL;
    tn_error err;
    (void)state;
    tn_device *host = world_device(&w, "cpu:0");
    assert_int_equal(tn_stream_create(host, NULL, &stream, &err), TN_OK);
    assert_int_equal(tn_stream_guard_enter(&guard, stream, &err), TN_OK);
    assert_int_equal(tni_thread_create(&thread, leave, &guard, &err), TN_OK);
    tni_thread_join(thread);
    assert_int_not_equal(guard.device.entered, 0);
    assert_ptr_equal(tn_stream_current(host), stream);
    tn_stream_guard_leave(&guard);
    assert_int_equal(guard.device.entered, 0);
    assert_ptr_equal(tn_stream_current(host), tn_stream_default(host));
    tn_stream_release(stream);
}

static void wrong_arguments_are_refused(void **state)
{
    tn_stream *stream = NULL;
    tn_stream_args small = {.struct_size = sizeof(size_t)};
    tn_error err;
    int32_t done = 77;
    (void)state;
    assert_int_equal(tn_stream_create(device("cpu:0"), NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out is NULL");
    assert_int_equal(tn_stream_create(device("cpu:0"), &small, &stream, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size");
    assert_int_equal(
        tn_stream_create(device("cpu:0"), TN_ARGS(stream, .reserved = 7), &stream, &err),
        TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "args->reserved: expected 0, got 7");
    assert_int_equal(tn_stream_wrap(device("async:0"), &small, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_set(NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "tn_stream_default returns the default stream of a device");
    assert_int_equal(tn_stream_query(NULL, &done, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_query(tn_stream_default(device("cpu:0")), NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_synchronize(NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the stream is NULL");
    assert_int_equal(tn_stream_wait_event(tn_stream_default(device("cpu:0")), NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the event is NULL");
    assert_int_equal(tn_stream_wait_event(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_wait_stream(NULL, tn_stream_default(device("cpu:0")), &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_wait_stream(tn_stream_default(device("cpu:0")), NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_stream_guard_enter(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_true(!stream && done == 77);
    assert_null(tn_stream_default(NULL));
    assert_null(tn_stream_current(NULL));
    assert_null(tn_stream_device(NULL));
    assert_int_equal(tn_stream_raw(NULL), 0);
    assert_int_equal(tn_stream_raw_current(NULL), 0);
    assert_int_equal(tn_stream_priority(NULL), 0);
    tn_stream_release(NULL);
    tn_stream_guard_leave(NULL);
}

static void stream_of_the_vendors_stays_the_vendors(void **state)
{
    tn_stream *own = made_on("async:0"), *wrapped = NULL;
    tn_error err;
    (void)state;
    void *raw = (void *)tn_stream_raw(own);
    assert_int_equal(tn_stream_wrap(device("async:0"), raw, &wrapped, &err), TN_OK);
    assert_int_equal(tn_stream_raw(wrapped), (uintptr_t)raw);
    async_gate *gate = async_gate_put(own);
    assert_int_equal(is_done(wrapped), 0);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(wrapped, &err), TN_OK);
    long before = async_calls("stream_destroy");
    tn_stream_release(wrapped);
    assert_int_equal(async_calls("stream_destroy"), before);
    assert_int_equal(is_done(own), 1);
    tn_stream_release(own);
    assert_int_equal(tn_stream_wrap(device("async:0"), NULL, &wrapped, &err), TN_OK);
    assert_int_equal(tn_stream_raw(wrapped), 0); /* the vendor's default */
    assert_int_equal(is_done(wrapped), 1);
    tn_stream_release(wrapped);
    wrapped = NULL;
    assert_int_equal(tn_stream_wrap(device("cpu:0"), raw, &wrapped, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "platform cpu has no streams of its own");
    assert_null(wrapped);
    assert_true(async_holds_nothing());
}

static void current_one_is_held(void **state)
{
    tn_error err;
    tn_device *one = device("async:1");
    (void)state;
    tn_stream *a = made_on("async:1"), *b = made_on("async:1");
    assert_int_equal(tn_stream_set(a, &err), TN_OK);
    assert_ptr_equal(tn_stream_current(one), a);
    assert_int_equal(tn_stream_raw_current(one), tn_stream_raw(a));
    assert_ptr_equal(tn_stream_current(device("async:0")), tn_stream_default(device("async:0")));
    assert_int_equal(tn_device_current(one->platform), 0); /* no device was changed */
    tn_stream_release(a);
    assert_int_equal(async_held().streams, 2);
    assert_int_equal(is_done(tn_stream_current(one)), 1);
    assert_int_equal(tn_stream_set(a, &err), TN_OK); /* the same again */
    assert_int_equal(async_held().streams, 2);
    assert_int_equal(tn_stream_set(b, &err), TN_OK);
    assert_int_equal(async_held().streams, 1);
    assert_int_equal(tn_stream_set(tn_stream_default(one), &err), TN_OK);
    assert_int_equal(async_held().streams, 1); /* its creator has it */
    assert_ptr_equal(tn_stream_current(one), tn_stream_default(one));
    tn_stream_release(b);
    assert_true(async_holds_nothing());
}

static void guards_restore_stream_and_device(void **state)
{
    tn_error err;
    tn_stream_guard outer = {0}, inner = {0}, none = {0};
    tn_device *zero = device("async:0"), *one = device("async:1");
    (void)state;
    tn_stream *a = made_on("async:1"), *b = made_on("async:0"), *c = made_on("async:1");
    assert_int_equal(tn_stream_set(c, &err), TN_OK);
    tn_stream_release(c); /* only this thread has it now */
    assert_int_equal(tn_stream_guard_enter(&outer, a, &err), TN_OK);
    assert_ptr_equal(tn_stream_current(one), a);
    assert_int_equal(tn_device_current(one->platform), 1);
    assert_int_equal(tn_stream_guard_enter(&outer, b, &err), TN_BUSY);
    assert_int_equal(tn_stream_guard_enter(&none, NULL, &err), TN_OK);
    assert_int_equal(tn_stream_guard_enter(&none, NULL, &err), TN_BUSY);
    assert_int_equal(tn_stream_guard_enter(&inner, b, &err), TN_OK);
    assert_ptr_equal(tn_stream_current(zero), b);
    assert_ptr_equal(tn_stream_current(one), a);
    assert_int_equal(tn_device_current(one->platform), 0);
    tn_stream_release(b); /* the thread still has it */
    assert_int_equal(tn_stream_set(tn_stream_default(one), &err), TN_OK);
    tn_stream_guard_leave(&inner);
    assert_ptr_equal(tn_stream_current(zero), tn_stream_default(zero));
    assert_int_equal(tn_device_current(one->platform), 1);
    tn_stream_guard_leave(&none);
    assert_int_equal(tn_device_current(one->platform), 1);
    tn_stream_guard_leave(&outer);
    assert_ptr_equal(tn_stream_current(one), c); /* held by the guard all the while */
    assert_int_equal(is_done(c), 1);
    assert_int_equal(tn_device_current(one->platform), 0);
    tn_stream_guard_leave(&outer); /* not entered: nothing */
    tn_stream_release(a);
    assert_int_equal(async_held().streams, 1);
    assert_int_equal(tn_stream_set(tn_stream_default(one), &err), TN_OK);
    assert_true(async_holds_nothing());
}

static void guard_that_is_not_entered_changes_nothing(void **state)
{
    tn_error err;
    tn_stream_guard guard = {0};
    tn_device *one = device("async:1");
    (void)state;
    tn_stream *a = made_on("async:1");
    async_fail("device_activate", 1, TN_IO);
    assert_int_equal(tn_stream_guard_enter(&guard, a, &err), TN_IO);
    assert_null(guard.previous);
    tn_stream_guard_leave(&guard);
    assert_ptr_equal(tn_stream_current(one), tn_stream_default(one));
    assert_int_equal(tn_device_current(one->platform), 0);
    tn_stream_release(a);
    assert_true(async_holds_nothing());
}

static _Atomic int wrong_turns; /* a thread that is not the test's cannot fail it */

static void use_another(void *user)
{
    tn_stream *stream = user;
    tn_device *on = tn_stream_device(stream);
    wrong_turns += tn_stream_current(on) != tn_stream_default(on); /* not the other thread's */
    wrong_turns += tn_stream_set(stream, NULL) != TN_OK;
    tn_stream_release(stream);
    wrong_turns += tn_stream_current(on) != stream;
}

static void end_of_a_thread_lets_go(void **state)
{
    tni_thread thread;
    tn_error err;
    (void)state;
    tn_stream *mine = made_on("async:0");
    assert_int_equal(tn_stream_set(mine, &err), TN_OK);
    int64_t blocks = tn_allocator_blocks();
    static const char *const names[] = {"async:0", "cpu:0"};
    for (size_t i = 0; i < 2; i++) {
        tn_stream *stream = made_on(names[i]);
        assert_int_equal(tni_thread_create(&thread, use_another, stream, &err), TN_OK);
        tni_thread_join(thread);
        assert_int_equal(wrong_turns, 0);
        assert_int_equal(async_held().streams, 1);
        assert_int_equal(tn_allocator_blocks(), blocks);
    }
    assert_ptr_equal(tn_stream_current(device("async:0")), mine);
    assert_int_equal(tn_stream_set(tn_stream_default(device("async:0")), &err), TN_OK);
    tn_stream_release(mine);
    assert_true(async_holds_nothing());
}

static void work_keeps_its_order(void **state)
{
    tn_error err;
    int one = 1, two = 2, cell = 0, other = 0;
    (void)state;
    tn_stream *a = made_on("async:0"), *b = made_on("async:0");
    async_gate *gate = async_gate_put(a);
    queue_copy(a, &cell, &one);
    queue_copy(a, &cell, &two);
    assert_int_equal(is_done(a), 0);
    queue_copy(b, &other, &one); /* streams do not wait for each other by themselves */
    assert_int_equal(tn_stream_synchronize(b, &err), TN_OK);
    assert_int_equal(other, 1);
    assert_int_equal(is_done(a), 0);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(a, &err), TN_OK);
    assert_int_equal(cell, 2);
    assert_int_equal(is_done(a), 1);
    gate = async_gate_put(a); /* releasing lets the work end */
    queue_copy(a, &cell, &one);
    tn_stream_release(a);
    async_gate_open(gate);
    assert_int_equal(tn_device_synchronize(device("async:0"), &err), TN_OK);
    assert_int_equal(cell, 1);
    tn_stream_release(b);
}

static void stream_waits_for_an_event(void **state)
{
    static const char *const names[] = {"async:0", "async:1"}; /* the same device, and another */
    tn_error err;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int one = 1, two = 2, cell = 0, seen = 0, after = 0;
        tn_event *event = NULL;
        tn_stream *a = made_on("async:0"), *b = made_on(names[i]);
        assert_int_equal(tn_event_create(device("async:0"), NULL, &event, &err), TN_OK);
        assert_int_equal(tn_stream_wait_event(b, event, &err), TN_OK); /* never recorded */
        async_gate *gate = async_gate_put(a);
        queue_copy(a, &cell, &one);
        assert_int_equal(tn_event_record(event, a, &err), TN_OK);
        assert_int_equal(tn_stream_synchronize(b, &err), TN_OK);
        assert_int_equal(tn_stream_wait_event(b, event, &err), TN_OK);
        queue_copy(b, &seen, &cell);
        async_gate *later = async_gate_put(a);
        queue_copy(a, &after, &two);
        assert_int_equal(tn_event_record(event, a, &err), TN_OK); /* later than the wait */
        assert_int_equal(is_done(b), 0);
        async_gate_open(gate);
        assert_int_equal(tn_stream_synchronize(b, &err), TN_OK);
        assert_int_equal(seen, 1);
        assert_int_equal(is_done(a), 0);
        async_gate_open(later);
        assert_int_equal(tn_stream_synchronize(a, &err), TN_OK);
        assert_int_equal(after, 2);
        tn_event_release(event);
        tn_stream_release(a);
        tn_stream_release(b);
    }
    assert_true(async_holds_nothing());
}

static void stream_waits_for_a_stream(void **state)
{
    tn_error err;
    int one = 1, cell = 0, seen = 0;
    (void)state;
    tn_stream *a = made_on("async:0"), *b = made_on("async:1");
    async_gate *gate = async_gate_put(a);
    queue_copy(a, &cell, &one);
    assert_int_equal(tn_stream_wait_stream(b, a, &err), TN_OK);
    assert_int_equal(async_held().events, 0); /* its event is given back already */
    long before = async_calls(NULL);
    assert_int_equal(tn_stream_wait_stream(a, a, &err), TN_OK); /* nothing to wait for */
    assert_int_equal(async_calls(NULL), before);
    queue_copy(b, &seen, &cell);
    async_gate *later = async_gate_put(a); /* what comes later is not waited for */
    assert_int_equal(is_done(b), 0);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(b, &err), TN_OK);
    assert_int_equal(seen, 1);
    assert_int_equal(is_done(a), 0);
    async_gate_open(later);
    tn_stream *host = tn_stream_default(device("cpu:0"));
    assert_int_equal(tn_stream_wait_stream(a, host, &err), TN_OK); /* it is done at once */
    assert_int_equal(tn_stream_synchronize(a, &err), TN_OK);
    tn_stream_release(a);
    tn_stream_release(b);
    assert_true(async_holds_nothing());
}

static void open_later(void *gate)
{
    async_gate_open(gate);
}

static void across_platforms_the_host_waits(void **state)
{
    tn_error err;
    int one = 1, cell = 0;
    tni_thread thread;
    (void)state;
    tn_stream *a = made_on("async:0"), *host = made_on("cpu:0");
    async_gate *gate = async_gate_put(a);
    queue_copy(a, &cell, &one);
    assert_int_equal(tni_thread_create(&thread, open_later, gate, &err), TN_OK);
    assert_int_equal(tn_stream_wait_stream(host, a, &err), TN_OK);
    assert_int_equal(cell, 1); /* the call has waited */
    tni_thread_join(thread);
    tn_stream_release(a);
    tn_stream_release(host);
    assert_true(async_holds_nothing());
}

static void check_lost(tn_stream *stream, tn_stream *well)
{
    tn_error err;
    int32_t done = 77;
    tn_stream *made = NULL;
    const tn_status got[] = {
        tn_stream_query(stream, &done, &err),
        tn_stream_synchronize(stream, &err),
        tn_stream_wait_stream(stream, well, &err),
        tn_stream_wait_stream(well, stream, &err),
    };
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
        assert_int_equal(got[i], TN_DEVICE_LOST);
    assert_int_equal(tn_stream_create(stream->device, NULL, &made, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "async:0 was lost at");
    assert_contains(err.message, "the board burns");
    assert_int_equal(tn_stream_wrap(stream->device, NULL, &made, &err), TN_DEVICE_LOST);
    assert_true(done == 77 && !made);
}

static void lost_device_hangs_no_one(void **state)
{
    world lost;
    tn_error err;
    tn_stream *a = NULL, *b = NULL, *spare = NULL;
    (void)state;
    async_world_make(&lost, WORLD_CPU);
    tn_device *zero = world_device(&lost, "async:0"), *one = world_device(&lost, "async:1");
    if (tn_stream_create(zero, NULL, &a, &err) || tn_stream_create(one, NULL, &b, &err) ||
        tn_stream_create(zero, NULL, &spare, &err))
        fail_msg("%s", err.message);
    async_gate *gate = async_gate_put(a);
    assert_int_equal(tn_stream_wait_stream(b, a, &err), TN_OK);
    assert_int_equal(tn_stream_set(spare, &err), TN_OK);
    async_lose(0, "the board burns");
    assert_int_equal(tn_stream_synchronize(a, &err), TN_DEVICE_LOST);
    assert_int_equal(err.native_code, 99);
    assert_int_equal(tn_stream_synchronize(b, &err), TN_OK); /* what it waited for cannot come */
    check_lost(a, b);
    check_lost(tn_stream_default(zero), b);
    assert_int_equal(tn_stream_set(tn_stream_default(zero), &err), TN_OK);
    long before = async_calls("stream_destroy");
    tn_stream_release(spare);
    assert_int_equal(async_calls("stream_destroy"), before);
    async_gate_open(gate);
    assert_int_equal(tn_device_reset(zero, &err), TN_OK);
    tni_device_epoch_next(zero);
    assert_int_equal(tn_stream_synchronize(tn_stream_default(zero), &err), TN_OK);
    assert_int_equal(tn_stream_synchronize(a, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "this stream was created before async:0 was reset");
    assert_int_equal(tn_stream_set(a, &err), TN_DEVICE_LOST);
    tn_stream_release(a); /* of what is given up, the module hears no more */
    tn_stream_release(b);
    assert_true(async_holds_nothing());
    async_world_end(&lost);
}

static void reset_leaves_the_default_one_current(void **state)
{
    world lost;
    tn_error err;
    tn_stream *a = NULL, *b = NULL;
    tn_stream_guard guard = {0};
    (void)state;
    async_world_make(&lost, WORLD_CPU);
    tn_device *one = world_device(&lost, "async:1");
    assert_int_equal(tn_stream_create(one, NULL, &a, &err), TN_OK);
    assert_int_equal(tn_stream_set(a, &err), TN_OK);
    assert_int_equal(tn_stream_guard_enter(&guard, a, &err), TN_OK);
    assert_int_equal(tn_device_reset(one, &err), TN_OK);
    tni_device_epoch_next(one);
    assert_ptr_equal(tn_stream_current(one), tn_stream_default(one));
    tn_stream_guard_leave(&guard);
    assert_ptr_equal(tn_stream_current(one), tn_stream_default(one));
    assert_int_equal(tn_stream_create(one, NULL, &b, &err), TN_OK);
    assert_int_equal(tn_stream_set(b, &err), TN_OK);
    tn_stream_release(b);
    assert_int_equal(tn_stream_guard_enter(&guard, a, &err), TN_DEVICE_LOST);
    assert_int_equal(guard.device.entered, 0);
    assert_int_equal(tn_device_current(one->platform), 0);
    assert_ptr_equal(tn_stream_current(one), b);
    assert_int_equal(tn_stream_set(tn_stream_default(one), &err), TN_OK);
    assert_true(async_holds_nothing()); /* and nobody holds b */
    tn_stream_release(a);
    async_world_end(&lost);
}

static void outlive_a_world(void *user)
{
    world brief;
    tn_stream *stream = NULL;
    (void)user;
    async_world_make(&brief, WORLD_CPU);
    int64_t blocks = tn_allocator_blocks();
    wrong_turns += tn_stream_create(world_device(&brief, "async:1"), NULL, &stream, NULL) != TN_OK;
    wrong_turns += tn_stream_set(stream, NULL) != TN_OK;
    tn_stream_release(stream);
    tni_stream_standard_destroy(NULL);
    async_world_end(&brief); /* with the device goes what was current on it */
    wrong_turns += tn_allocator_blocks() >= blocks;
}

static void thread_may_outlive_its_devices(void **state)
{
    tni_thread thread;
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    assert_int_equal(tni_thread_create(&thread, outlive_a_world, NULL, NULL), TN_OK);
    tni_thread_join(thread);
    assert_int_equal(wrong_turns, 0);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static void null_device_is_the_current_one(void **state)
{
    tn_registration *registration = NULL;
    tn_stream *stream = NULL;
    const tn_platform *async = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_platform_select("cpu", &err), TN_OK);
    assert_int_equal(tn_stream_create(NULL, NULL, &stream, &err), TN_OK);
    assert_string_equal(tn_device_id(tn_stream_device(stream)), "cpu:0");
    tn_stream_release(stream);
    if (tn_module_register(async_builtin().entry, 0, &registration, &err) ||
        tn_platform_select("async", &err) || tn_platform_get("async", &async, &err) ||
        tn_device_set(async, 1, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tn_stream_create(NULL, NULL, &stream, &err), TN_OK);
    assert_string_equal(tn_device_id(tn_stream_device(stream)), "async:1");
    assert_int_equal(tn_stream_set(stream, &err), TN_OK);
    tn_registration_release(registration);
    int32_t done = -1;
    assert_int_equal(tn_stream_query(stream, &done, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "async:1 no longer exists");
    long before = async_calls("stream_destroy");
    assert_int_equal(tn_stream_set(tn_stream_default(stream->device), &err), TN_OK);
    tn_stream_release(stream); /* a module that was taken back gets its own back */
    assert_int_equal(async_calls("stream_destroy"), before + 1);
    assert_int_equal(tn_platform_select("cpu", &err), TN_OK);
    async_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_has_a_default_one),
        cmocka_unit_test(created_ones_have_a_priority),
        cmocka_unit_test(guard_is_its_threads),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(stream_of_the_vendors_stays_the_vendors),
        cmocka_unit_test(current_one_is_held),
        cmocka_unit_test(guards_restore_stream_and_device),
        cmocka_unit_test(guard_that_is_not_entered_changes_nothing),
        cmocka_unit_test(end_of_a_thread_lets_go),
        cmocka_unit_test(work_keeps_its_order),
        cmocka_unit_test(stream_waits_for_an_event),
        cmocka_unit_test(stream_waits_for_a_stream),
        cmocka_unit_test(across_platforms_the_host_waits),
        cmocka_unit_test(lost_device_hangs_no_one),
        cmocka_unit_test(reset_leaves_the_default_one_current),
        cmocka_unit_test(thread_may_outlive_its_devices),
        cmocka_unit_test(null_device_is_the_current_one),
    };
    async_world_make(&w, WORLD_ALL);
    int failed = run_suite("unit.streams", tests);
    async_world_end(&w);
    return failed;
}
