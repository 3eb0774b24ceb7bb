/* Eight threads at once, over streams, events and devices; and children that are forked meanwhile. */
#include "async_platform.h"

#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, STREAMS = 6 };

static world w;
static _Atomic int wrong_turns; /* a thread that is not the test's cannot fail it */

/* What all threads use together. */
static struct {
    tn_device *devices[3];
    tn_stream *streams[STREAMS];
    tn_event *events[STREAMS]; /* one for each stream's device */
    tn_event *host;
} common;

static void expect(bool right)
{
    wrong_turns += !right;
}

static void common_make(void)
{
    static const char *const names[] = {"async:0", "async:1", "cpu:0"};
    for (size_t i = 0; i < 3; i++)
        common.devices[i] = world_device(&w, names[i]);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(tn_stream_create(common.devices[i % 3], NULL, &common.streams[i], NULL),
                         TN_OK);
        assert_int_equal(tn_event_create(common.devices[i % 3], TN_ARGS(event, .enable_timing = 1),
                                         &common.events[i], NULL),
                         TN_OK);
    }
    assert_int_equal(tn_event_create(common.devices[2], NULL, &common.host, NULL), TN_OK);
}

static void common_release(void)
{
    for (size_t i = 0; i < STREAMS; i++) {
        tn_stream_release(common.streams[i]);
        tn_event_release(common.events[i]);
    }
    tn_event_release(common.host);
}

static uint64_t throw_dice(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return *dice >> 33;
}

/* A number goes through two streams that only this thread has, one behind the other. */
static void pass_on(tn_device *on, tn_device *other)
{
    tn_stream *a = NULL, *b = NULL;
    tn_stream_guard guard = {0};
    tn_event *event = NULL;
    int32_t done = -1;
    expect(tn_stream_create(on, NULL, &a, NULL) == TN_OK);
    expect(tn_stream_create(other, NULL, &b, NULL) == TN_OK);
    expect(tn_event_create(on, NULL, &event, NULL) == TN_OK);
    expect(tn_stream_guard_enter(&guard, a, NULL) == TN_OK);
    expect(tn_stream_current(on) == a && tn_device_current(on->platform) == on->index);
    expect(tn_event_record(event, NULL, NULL) == TN_OK);
    expect(tn_stream_wait_event(b, event, NULL) == TN_OK);
    expect(tn_stream_wait_stream(b, a, NULL) == TN_OK);
    tn_stream_release(a); /* the guard's thread has it */
    expect(tn_stream_synchronize(b, NULL) == TN_OK);
    expect(tn_event_query(event, &done, NULL) == TN_OK && done == 1);
    tn_stream_guard_leave(&guard);
    tn_event_release(event);
    tn_stream_release(b);
}

/* What all do to what they share: any order is right, as long as nothing breaks. */
static void share(uint64_t dice)
{
    size_t i = dice % STREAMS, j = dice / STREAMS % STREAMS;
    int32_t done;
    double ms;
    expect(tn_event_record(common.events[i], common.streams[i], NULL) == TN_OK);
    expect(tn_stream_wait_event(common.streams[j], common.events[i], NULL) == TN_OK);
    expect(tn_event_query(common.events[j], &done, NULL) == TN_OK);
    expect(tn_event_record(common.host, NULL, NULL) == TN_OK);
    (void)tn_event_elapsed_time(common.events[i], common.events[j], &ms, NULL);
    expect(tn_stream_set(common.streams[j], NULL) == TN_OK);
    expect(tn_stream_current(common.devices[j % 3]) == common.streams[j]);
    if (dice % 7 == 0)
        expect(tn_event_synchronize(common.events[i], NULL) == TN_OK);
    if (dice % 11 == 0)
        expect(tn_device_synchronize(common.devices[i % 3], NULL) == TN_OK);
}

static void live(void *user)
{
    uint64_t dice = *(uint64_t *)user;
    for (int i = 0; i < (test_reduced() ? 40 : 200); i++) {
        uint64_t thrown = throw_dice(&dice);
        tn_device *on = common.devices[thrown % 3], *other = common.devices[thrown / 3 % 3];
        expect(tn_device_set(on->platform, on->index, NULL) == TN_OK);
        pass_on(on, other);
        expect(tn_device_current(on->platform) == on->index);
        share(throw_dice(&dice));
    }
}

static void eight_threads_at_once(void **state)
{
    tni_thread threads[THREADS];
    uint64_t dice[THREADS];
    tn_error err = {0};
    (void)state;
    common_make();
    int64_t blocks = tn_allocator_blocks();
    for (uint64_t i = 0; i < THREADS; i++) {
        dice[i] = 1 + i;
        assert_int_equal(tni_thread_create(&threads[i], live, &dice[i], &err), TN_OK);
    }
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(wrong_turns, 0);
    assert_int_equal(tn_allocator_blocks(), blocks); /* their current streams are let go */
    common_release();
    assert_true(async_holds_nothing());
}

/* A child has its thread's current things, and can go on with those of platforms without streams. */
static bool child_goes_on(tn_stream *mine, tn_stream_guard *guard)
{
    tn_device *host = tn_stream_device(mine);
    tn_stream *other = NULL;
    tn_event *event = NULL;
    tn_stream_guard inner = {0};
    int32_t done = -1;
    bool right = tn_stream_current(host) == mine;
    right = right && tn_stream_create(host, NULL, &other, NULL) == TN_OK;
    right = right && tn_stream_guard_enter(&inner, other, NULL) == TN_OK;
    right = right && tn_event_create(host, NULL, &event, NULL) == TN_OK;
    right = right && tn_event_record(event, NULL, NULL) == TN_OK;
    right = right && tn_stream_wait_event(mine, event, NULL) == TN_OK;
    right = right && tn_stream_query(mine, &done, NULL) == TN_OK && done == 1;
    right = right && tn_stream_synchronize(other, NULL) == TN_OK;
    tn_stream_guard_leave(&inner);
    right = right && tn_stream_current(host) == mine;
    tn_stream_guard_leave(guard);
    tn_event_release(event);
    tn_stream_release(other);
    return right && tn_stream_current(host) == tn_stream_default(host);
}

struct forker {
    _Atomic bool stop;
    tn_device *host;
};

static void keep_busy(void *user)
{
    struct forker *forker = user;
    while (!forker->stop) {
        tn_stream *stream = NULL;
        expect(tn_stream_create(forker->host, NULL, &stream, NULL) == TN_OK);
        expect(tn_stream_set(stream, NULL) == TN_OK);
        tn_stream_release(stream);
    }
}

static void child_goes_on_whatever_others_did(void **state)
{
    tni_thread thread;
    struct forker forker = {.host = world_device(&w, "cpu:0")};
    tn_stream *mine = NULL;
    tn_stream_guard guard = {0};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_stream_create(forker.host, NULL, &mine, &err), TN_OK);
    assert_int_equal(tn_stream_guard_enter(&guard, mine, &err), TN_OK);
    assert_int_equal(tni_thread_create(&thread, keep_busy, &forker, &err), TN_OK);
    for (int round = 0; round < 20; round++) {
        int status = -1;
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(child_goes_on(mine, &guard) ? 0 : 1);
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
    }
    forker.stop = true;
    tni_thread_join(thread);
    assert_int_equal(wrong_turns, 0);
    assert_ptr_equal(tn_stream_current(forker.host), mine); /* a child changes nothing here */
    tn_stream_guard_leave(&guard);
    tn_stream_release(mine);
}

struct ending {
    tni_thread_end end; /* first: it is what `run` is given */
    int ran;
};

static void note_end(tni_thread_end *end)
{
    ((struct ending *)end)->ran++;
}

static void end_soon(void *user)
{
    struct ending *endings = user;
    for (int i = 0; i < 4; i++) {
        endings[i].end.run = note_end;
        expect(tni_thread_end_add(&endings[i].end));
    }
    tni_thread_end_remove(&endings[3].end); /* the latest, and one between */
    tni_thread_end_remove(&endings[1].end);
    tni_thread_end_remove(&endings[1].end); /* no longer there: nothing */
}

static void what_is_to_be_done_at_the_end_is_done_once(void **state)
{
    struct ending endings[4] = {{{0}, 0}};
    tni_thread thread;
    (void)state;
    assert_int_equal(tni_thread_create(&thread, end_soon, endings, NULL), TN_OK);
    tni_thread_join(thread);
    assert_int_equal(wrong_turns, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(endings[i].ran, i % 2 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_at_once),
        cmocka_unit_test(what_is_to_be_done_at_the_end_is_done_once),
        cmocka_unit_test(child_goes_on_whatever_others_did),
    };
    async_world_make(&w, WORLD_CPU);
    int failed = run_suite("unit.stream_threads", tests);
    async_world_end(&w);
    return failed;
}
