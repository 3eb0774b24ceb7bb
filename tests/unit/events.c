/* Events: recorded and waited for, timed, and seen by other processes. */
#include "async_platform.h"

#include "device/stream/epoch.h"
#include "device/stream/event.h"
#include "os/clock.h"

#include <sys/wait.h>
#include <unistd.h>

static world w;

static tn_device *device(const char *name)
{
    return world_device(&w, name);
}

static tn_event *made_on(const char *name, const tn_event_args *args)
{
    tn_event *event = NULL;
    tn_error err = {0};
    if (tn_event_create(device(name), args, &event, &err))
        fail_msg("%s", err.message);
    return event;
}

static int32_t is_done(tn_event *event)
{
    int32_t done = -1;
    tn_error err = {0};
    if (tn_event_query(event, &done, &err))
        fail_msg("%s", err.message);
    return done;
}

static void record(tn_event *event, tn_stream *stream)
{
    tn_error err = {0};
    if (tn_event_record(event, stream, &err))
        fail_msg("%s", err.message);
}

static const tn_event_args timing = {.struct_size = sizeof timing, .enable_timing = 1};
static const tn_event_args shared = {
    .struct_size = sizeof shared, .enable_timing = 1, .interprocess = 1};

/* Skips the test where the system lets processes share no memory. */
static void need_sharing(void)
{
    tn_event *event = NULL;
    tn_error err = {0};
    tn_status status = tn_event_create(device("cpu:0"), &shared, &event, &err);
    if (status == TN_UNSUPPORTED)
        skip_because("%s", err.message);
    tn_event_release(event);
}

static void flags_reach_the_platform(void **state)
{
    tn_event_args args = {.struct_size = sizeof args};
    (void)state;
    for (uint32_t flags = 0; flags <= TN_EVENT_FLAGS; flags++) {
        args.enable_timing = flags & TN_EVENT_TIMING ? 1 : 0;
        args.blocking = flags & TN_EVENT_BLOCKING ? 1 : 0;
        args.interprocess = flags & TN_EVENT_INTERPROCESS ? 1 : 0;
        tn_event *event = made_on("async:1", &args);
        assert_int_equal(async_last_flags, flags);
        assert_ptr_equal(tn_event_device(event), device("async:1"));
        tn_event_release(event);
        args.interprocess = 0;
        tn_event_release(made_on("cpu:0", &args));
    }
    tn_event_release(made_on("async:0", NULL));
    assert_int_equal(async_last_flags, 0);
    assert_true(async_holds_nothing());
}

static void wrong_arguments_are_refused(void **state)
{
    static const struct {
        tn_event_args args;
        const char *words;
    } odd[] = {{{.enable_timing = 7}, "args->enable_timing: expected 0 or 1, got 7"},
               {{.blocking = -3}, "args->blocking: expected 0 or 1, got -3"},
               {{.interprocess = 99}, "args->interprocess: expected 0 or 1, got 99"},
               {{.reserved = 5}, "args->reserved: expected 0, got 5"}};
    tn_event_args small = {.struct_size = TN_UP_TO(tn_event_args, blocking)};
    tn_event *event = NULL, *made = made_on("cpu:0", NULL);
    tn_event_handle handle = {{0}};
    int32_t done = 77;
    tn_error err;
    (void)state;
    assert_int_equal(tn_event_create(device("cpu:0"), NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_create(device("cpu:0"), &small, &event, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        tn_event_args args = odd[i].args;
        args.struct_size = sizeof args;
        assert_int_equal(tn_event_create(device("cpu:0"), &args, &event, &err),
                         TN_INVALID_ARGUMENT);
        assert_string_equal(err.message, odd[i].words);
    }
    assert_int_equal(tn_event_record(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the event is NULL");
    assert_int_equal(tn_event_wait(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_query(NULL, &done, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_query(made, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_synchronize(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_export(NULL, &handle, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_export(made, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_export(made, &handle, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "without interprocess");
    assert_int_equal(tn_event_import(device("cpu:0"), NULL, &event, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_event_import(device("cpu:0"), &handle, NULL, &err), TN_INVALID_ARGUMENT);
    assert_true(!event && done == 77 && handle.bytes[0] == 0);
    assert_null(tn_event_device(NULL));
    tn_event_release(NULL);
    tn_event_release(made);
}

/* What a module leaves out is not done, and what is no number is no time. */
static void answers_that_make_no_sense_are_none(void **state)
{
    tn_event *event = made_on("async:1", &timing);
    double ms = 7;
    int32_t done = 7;
    tn_error err;
    (void)state;
    assert_int_equal(tn_event_record(event, NULL, &err), TN_OK);
    assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
    async_fail("event_query", 1, TN_OK);
    assert_int_equal(tn_event_query(event, &done, &err), TN_OK);
    assert_int_equal(done, 0);
    async_fail("stream_query", 1, TN_OK);
    done = 7;
    assert_int_equal(tn_stream_query(tn_stream_default(device("async:1")), &done, &err), TN_OK);
    assert_int_equal(done, 0);
    async_timeless = true;
    assert_int_equal(tn_event_elapsed_time(event, event, &ms, &err), TN_INTERNAL);
    assert_string_equal(err.message, "async:1 returned an elapsed time that is not a number");
    assert_true(ms == 7);
    async_timeless = false;
    tn_event_release(event);
}

static void never_recorded_holds_nothing_up(void **state)
{
    static const char *const names[] = {"cpu:0", "acme:1", "async:0"};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_event *event = made_on(names[i], NULL);
        long before = async_calls(NULL);
        assert_int_equal(is_done(event), 1);
        assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
        assert_int_equal(tn_event_wait(event, NULL, &err), TN_OK);
        assert_int_equal(async_calls(NULL), before); /* no module was asked */
        tn_event_release(event);
    }
}

static void latest_record_counts(void **state)
{
    tn_error err;
    tn_stream *a = NULL, *b = NULL;
    (void)state;
    assert_int_equal(tn_stream_create(device("async:0"), NULL, &a, &err), TN_OK);
    assert_int_equal(tn_stream_create(device("async:0"), NULL, &b, &err), TN_OK);
    tn_event *event = made_on("async:0", NULL);
    record(event, a);
    assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
    assert_int_equal(is_done(event), 1);
    async_gate *gate = async_gate_put(a), *other = async_gate_put(b);
    record(event, a);
    assert_int_equal(is_done(event), 0);
    record(event, b);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(a, &err), TN_OK);
    assert_int_equal(is_done(event), 0);
    async_gate_open(other);
    assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
    assert_int_equal(is_done(event), 1);
    gate = async_gate_put(a); /* released with its record still to come */
    record(event, a);
    tn_event_release(event);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(a, &err), TN_OK);
    tn_stream_release(a);
    tn_stream_release(b);
    assert_true(async_holds_nothing());
}

static void null_stream_is_the_current_one(void **state)
{
    tn_error err;
    tn_stream *a = NULL, *b = NULL;
    tn_device *one = device("async:1");
    (void)state;
    assert_int_equal(tn_stream_create(one, NULL, &a, &err), TN_OK);
    assert_int_equal(tn_stream_create(one, NULL, &b, &err), TN_OK);
    tn_event *event = made_on("async:1", NULL), *other = made_on("async:1", NULL);
    async_gate *gate = async_gate_put(a);
    record(event, NULL); /* on the default stream */
    assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
    assert_int_equal(tn_stream_set(a, &err), TN_OK);
    record(event, NULL);
    assert_int_equal(is_done(event), 0);
    assert_int_equal(tn_stream_set(b, &err), TN_OK);
    assert_int_equal(tn_event_wait(event, NULL, &err), TN_OK); /* b waits, the default one not */
    assert_int_equal(tn_stream_synchronize(tn_stream_default(one), &err), TN_OK);
    record(other, NULL);
    assert_int_equal(is_done(other), 0);
    async_gate_open(gate);
    assert_int_equal(tn_event_synchronize(other, &err), TN_OK);
    assert_int_equal(is_done(event), 1);
    assert_int_equal(tn_stream_set(tn_stream_default(one), &err), TN_OK);
    tn_event_release(event);
    tn_event_release(other);
    tn_stream_release(a);
    tn_stream_release(b);
    assert_true(async_holds_nothing());
}

static void stream_of_another_device_is_refused(void **state)
{
    tn_error err;
    (void)state;
    tn_event *event = made_on("async:0", NULL), *host = made_on("cpu:0", NULL);
    assert_int_equal(tn_event_record(event, tn_stream_default(device("async:1")), &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the stream belongs to async:1, not to async:0");
    assert_int_equal(tn_event_record(host, tn_stream_default(device("async:0")), &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the stream belongs to async:0, not to cpu:0");
    assert_int_equal(async_calls("event_record"), 0);
    tn_event_release(event);
    tn_event_release(host);
}

static void check_time(const char *name)
{
    tn_error err;
    double ms = -1, back = -1;
    tn_event *start = made_on(name, &timing), *stop = made_on(name, &timing);
    int64_t before = tni_clock_ns();
    record(start, NULL);
    assert_int_equal(tn_event_synchronize(start, &err), TN_OK);
    tni_clock_sleep_ns(2000000);
    record(stop, NULL);
    assert_int_equal(tn_event_synchronize(stop, &err), TN_OK);
    double most = (double)(tni_clock_ns() - before) / 1e6;
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_int_equal(tn_event_elapsed_time(stop, start, &back, &err), TN_OK);
    assert_true(ms >= 2 && ms <= most && back == -ms);
    assert_int_equal(tn_event_elapsed_time(start, start, &ms, &err), TN_OK);
    assert_true(ms == 0);
    record(start, NULL); /* again: now it is the later one */
    assert_int_equal(tn_event_synchronize(start, &err), TN_OK);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_true(ms <= 0);
    tn_event_release(start);
    tn_event_release(stop);
}

static void time_is_in_milliseconds(void **state)
{
    (void)state;
    check_time("cpu:0");
    check_time("acme:2");
    check_time("async:1");
}

/* Events that break one rule break all later ones as well, so that the order shows. */
static void time_is_checked_in_order(void **state)
{
    tn_error err;
    double ms = 77;
    tn_stream *a = NULL;
    (void)state;
    assert_int_equal(tn_stream_create(device("async:0"), NULL, &a, &err), TN_OK);
    tn_event *plain = made_on("async:0", NULL), *elsewhere = made_on("async:1", NULL),
             *host = made_on("cpu:0", NULL), *start = made_on("async:0", &timing),
             *stop = made_on("async:0", &timing);
    async_gate *gate = async_gate_put(a);
    record(plain, a);
    const struct {
        tn_event *start, *stop;
        tn_status status;
        const char *message;
    } rows[] = {
        {NULL, plain, TN_INVALID_ARGUMENT, "start is NULL"},
        {plain, NULL, TN_INVALID_ARGUMENT, "stop is NULL"},
        {plain, elsewhere, TN_INCOMPATIBLE, "the events belong to async:0 and async:1"},
        {host, plain, TN_INCOMPATIBLE, "the events belong to cpu:0 and async:0"},
        {plain, start, TN_UNSUPPORTED, "start was created without enable_timing"},
        {start, plain, TN_UNSUPPORTED, "stop was created without enable_timing"},
        {start, stop, TN_NOT_FOUND, "start was never recorded"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tn_event_elapsed_time(rows[i].start, rows[i].stop, &ms, &err),
                         rows[i].status);
        assert_contains(err.message, rows[i].message);
    }
    assert_int_equal(tn_event_elapsed_time(start, stop, NULL, &err), TN_INVALID_ARGUMENT);
    record(start, a);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_NOT_FOUND);
    assert_contains(err.message, "stop was never recorded");
    record(stop, NULL);
    assert_int_equal(tn_event_synchronize(stop, &err), TN_OK);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_NOT_READY);
    assert_contains(err.message, "start is recorded on async:0, but its stream has not reached it");
    assert_int_equal(tn_event_elapsed_time(stop, start, &ms, &err), TN_NOT_READY);
    assert_true(ms == 77);
    async_gate_open(gate);
    assert_int_equal(tn_event_synchronize(start, &err), TN_OK);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_OK);
    assert_true(ms <= 0); /* recorded later, but it came first */
    tn_event *const all[] = {plain, elsewhere, host, start, stop};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_event_release(all[i]);
    tn_stream_release(a);
    assert_true(async_holds_nothing());
}

static void open_later(void *gate)
{
    async_gate_open(gate);
}

static void across_platforms_the_host_waits(void **state)
{
    tn_error err;
    tni_thread thread;
    tn_stream *a = NULL;
    (void)state;
    assert_int_equal(tn_stream_create(device("async:0"), NULL, &a, &err), TN_OK);
    tn_event *event = made_on("async:0", NULL), *host = made_on("cpu:0", NULL);
    async_gate *gate = async_gate_put(a);
    record(event, a);
    record(host, NULL);
    assert_int_equal(tn_stream_wait_event(a, host, &err), TN_OK); /* done at once */
    assert_int_equal(tni_thread_create(&thread, open_later, gate, &err), TN_OK);
    assert_int_equal(tn_event_wait(event, tn_stream_default(device("cpu:0")), &err), TN_OK);
    assert_int_equal(is_done(event), 1);
    tni_thread_join(thread);
    tn_event_release(event);
    tn_event_release(host);
    tn_stream_release(a);
    assert_true(async_holds_nothing());
}

static void lost_device_hangs_no_one(void **state)
{
    world lost;
    tn_error err;
    tn_stream *a = NULL;
    tn_event *start = NULL, *stop = NULL, *made = NULL;
    int32_t done = 77;
    double ms = 77;
    (void)state;
    async_world_make(&lost, WORLD_CPU);
    tn_device *zero = world_device(&lost, "async:0");
    if (tn_stream_create(zero, NULL, &a, &err) || tn_event_create(zero, &timing, &start, &err) ||
        tn_event_create(zero, &timing, &stop, &err))
        fail_msg("%s", err.message);
    async_gate *gate = async_gate_put(a);
    record(start, a);
    record(stop, a);
    async_lose(0, "the board burns");
    const tn_status got[] = {
        tn_event_synchronize(start, &err),
        tn_event_query(start, &done, &err),
        tn_event_record(start, NULL, &err),
        tn_event_wait(start, tn_stream_default(world_device(&lost, "async:1")), &err),
        tn_event_elapsed_time(start, stop, &ms, &err),
        tn_event_create(zero, NULL, &made, &err),
    };
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
        assert_int_equal(got[i], TN_DEVICE_LOST);
    assert_contains(err.message, "async:0 was lost at event_synchronize: the board burns");
    assert_true(done == 77 && ms == 77 && !made);
    long before = async_calls("event_destroy");
    tn_event_release(stop);
    async_gate_open(gate);
    assert_int_equal(tn_device_reset(zero, &err), TN_OK);
    tni_device_epoch_next(zero);
    assert_int_equal(tn_event_synchronize(start, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "this event was created before async:0 was reset");
    tn_event_release(start);
    assert_int_equal(async_calls("event_destroy"), before);
    tn_stream_release(a);
    assert_int_equal(tn_event_create(zero, &timing, &start, &err), TN_OK);
    record(start, NULL);
    assert_int_equal(tn_event_synchronize(start, &err), TN_OK);
    tn_event_release(start);
    assert_true(async_holds_nothing());
    async_world_end(&lost);
}

static void platform_shares_its_own_or_says_why_not(void **state)
{
    tn_error err;
    tn_event_handle handle = {{0}};
    tn_event *other = NULL;
    (void)state;
    tn_event *event = made_on("async:0", &shared);
    assert_int_equal(tn_event_export(event, &handle, &err), TN_UNSUPPORTED);
    assert_string_equal(err.message, "async:0: no event leaves this process");
    assert_int_equal(handle.bytes[8], 0);
    assert_int_equal(tn_event_import(device("async:0"), &handle, &other, &err), TN_UNSUPPORTED);
    async_sharing = true;
    assert_int_equal(tn_event_export(event, &handle, &err), TN_OK);
    assert_int_equal(tn_event_import(device("async:1"), &handle, &other, &err), TN_NOT_FOUND);
    assert_null(other);
    assert_int_equal(tn_event_import(device("async:0"), &handle, &other, &err), TN_OK);
    async_gate *gate = async_gate_put(tn_stream_default(device("async:0")));
    record(other, NULL);
    assert_int_equal(is_done(event), 0); /* though this handle never saw a record */
    async_gate_open(gate);
    assert_int_equal(tn_event_synchronize(event, &err), TN_OK);
    tn_event_release(event);
    assert_int_equal(is_done(other), 1);
    tn_event_release(other);
    async_sharing = false;
    assert_true(async_holds_nothing());
}

static tn_event_handle exported(tn_event *event)
{
    tn_event_handle handle = {{0}};
    tn_error err = {0};
    if (tn_event_export(event, &handle, &err))
        fail_msg("%s", err.message);
    return handle;
}

/* In the child: sees the parent's record, makes the parent see its own. */
static bool child_records(const tn_event_handle *handle, tn_event *inherited)
{
    tn_event *event = NULL;
    bool right = tn_event_import(device("cpu:0"), handle, &event, NULL) == TN_OK;
    tn_event *mine = NULL;
    double ms = 0;
    right = right && atomic_load(&event->mark->recorded) == 1;
    right = right && tn_event_create(device("cpu:0"), &timing, &mine, NULL) == TN_OK;
    right = right && tn_event_record(mine, NULL, NULL) == TN_OK;
    right = right && tn_event_elapsed_time(event, mine, &ms, NULL) == TN_OK && ms > 0;
    right = right && tn_event_record(event, NULL, NULL) == TN_OK;
    tn_event_release(mine);
    tn_event_release(event);
    tn_event_release(inherited); /* a child takes no name away */
    return right;
}

static void processes_see_each_others_records(void **state)
{
    int status = -1;
    tn_error err;
    double ms = 0;
    tn_event *copy = NULL;
    (void)state;
    need_sharing();
    tn_event *event = made_on("cpu:0", &shared), *first = made_on("cpu:0", &timing);
    const tn_event_handle handle = exported(event);
    record(event, NULL);
    record(first, NULL);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_records(&handle, event) ? 0 : 1);
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&event->mark->recorded), 2);
    assert_int_equal(tn_event_elapsed_time(first, event, &ms, &err), TN_OK);
    assert_true(ms > 0); /* the child's record is later than ours */
    assert_int_equal(tn_event_import(device("cpu:0"), &handle, &copy, &err), TN_OK);
    assert_memory_equal(exported(copy).bytes, handle.bytes, sizeof handle.bytes);
    tn_event_release(event); /* the creator goes, and with it the name */
    assert_int_equal(is_done(copy), 1);
    record(copy, NULL);
    assert_int_equal(tn_event_import(device("cpu:0"), &handle, &event, &err), TN_NOT_FOUND);
    assert_contains(err.message, "its creator released it");
    tn_event_release(copy);
    tn_event_release(first);
}

static void garbled_handle_is_refused(void **state)
{
    tn_error err;
    tn_event *other = NULL;
    (void)state;
    need_sharing();
    tn_event *event = made_on("acme:1", &shared);
    const tn_event_handle handle = exported(event);
    for (size_t i = 0; i < sizeof handle.bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            tn_event_handle wrong = handle;
            wrong.bytes[i] ^= (unsigned char)(1 << bit);
            assert_int_equal(tn_event_import(device("acme:1"), &wrong, &other, &err), TN_CORRUPT);
            assert_null(other);
        }
    }
    assert_contains(err.message, "expected a handle from tn_event_export");
    assert_int_equal(tn_event_import(device("acme:0"), &handle, &other, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "another device than acme:0");
    assert_null(other);
    tn_event_release(event);
}

static void memory_that_holds_no_event_is_refused(void **state)
{
    tn_error err;
    tn_event *other = NULL;
    (void)state;
    need_sharing();
    tn_event *event = made_on("cpu:0", &shared);
    const tn_event_handle handle = exported(event);
    unsigned char *page = tni_shared_memory(event->shared);
    page[0] ^= 1;
    assert_int_equal(tn_event_import(device("cpu:0"), &handle, &other, &err), TN_CORRUPT);
    assert_contains(err.message, "does not contain an event");
    page[0] ^= 1;
    page[16] = 0xFF; /* flags that there are none of */
    assert_int_equal(tn_event_import(device("cpu:0"), &handle, &other, &err), TN_CORRUPT);
    assert_null(other);
    tn_event_release(event);
}

static tn_platform_row mute; /* the same without export and import */

static tn_status mute_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row *const rows[] = {&mute, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "mute",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void platform_that_shares_none_says_so(void **state)
{
    tni_call call;
    tn_error err = {0};
    tn_event *event = NULL;
    tn_event_handle handle = {{0}};
    tn_registration *registration = NULL;
    (void)state;
    assert_int_equal(tni_device_open(device("async:0"), "test", &call, &err), TN_OK);
    mute = *call.row;
    mute.name = "mute";
    mute.event_export = NULL;
    mute.event_import = NULL;
    if (tni_platforms_register(w.set, mute_entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tn_event_create(device("mute:0"), &shared, &event, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "platform mute cannot share events with other processes");
    assert_int_equal(tn_event_import(device("mute:0"), &handle, &event, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "platform mute cannot open events of other processes");
    assert_null(event);
    event = made_on("mute:0", &timing);
    record(event, NULL);
    tn_event_release(event);
    tn_registration_release(registration);
    assert_true(async_holds_nothing());
}

/* A module may write its answer and then fail. */
static void failing_answers_change_nothing(void **state)
{
    tn_event *start = made_on("async:0", &timing), *stop = made_on("async:0", &timing);
    tn_stream *stream = tn_stream_default(device("async:0"));
    int32_t done = 77;
    double ms = 77;
    tn_error err = {0};
    (void)state;
    record(start, stream);
    record(stop, stream);
    assert_int_equal(tn_stream_synchronize(stream, &err), TN_OK);
    async_fail("event_query", 1, TN_IO);
    assert_int_equal(tn_event_query(start, &done, &err), TN_IO);
    assert_string_equal(err.message, "async:0: fails on request");
    async_fail("stream_query", 1, TN_IO);
    assert_int_equal(tn_stream_query(stream, &done, &err), TN_IO);
    async_fail("event_elapsed", 1, TN_IO);
    assert_int_equal(tn_event_elapsed_time(start, stop, &ms, &err), TN_IO);
    assert_true(done == 77 && ms == 77);
    assert_int_equal(tn_event_query(start, &done, &err), TN_OK);
    assert_int_equal(done, 1);
    tn_event_release(start);
    tn_event_release(stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_reach_the_platform),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(never_recorded_holds_nothing_up),
        cmocka_unit_test(stream_of_another_device_is_refused),
        cmocka_unit_test(latest_record_counts),
        cmocka_unit_test(null_stream_is_the_current_one),
        cmocka_unit_test(time_is_in_milliseconds),
        cmocka_unit_test(time_is_checked_in_order),
        cmocka_unit_test(across_platforms_the_host_waits),
        cmocka_unit_test(lost_device_hangs_no_one),
        cmocka_unit_test(platform_shares_its_own_or_says_why_not),
        cmocka_unit_test(processes_see_each_others_records),
        cmocka_unit_test(garbled_handle_is_refused),
        cmocka_unit_test(memory_that_holds_no_event_is_refused),
        cmocka_unit_test(platform_that_shares_none_says_so),
        cmocka_unit_test(failing_answers_change_nothing),
        cmocka_unit_test(answers_that_make_no_sense_are_none),
    };
    async_world_make(&w, WORLD_ALL);
    int failed = run_suite("unit.events", tests);
    async_world_end(&w);
    return failed;
}
