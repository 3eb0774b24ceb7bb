/* Pools: every index once, whoever calls and whatever fails. */
#include "loops.h"

#include "tenon/alloc.h"
#include "tenon/log.h"

#include <errno.h>
#include <float.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#if !defined(_WIN32)
#include "os/sys.h"

#include <sched.h>
#include <signal.h>
#endif

static void every_index_runs_once(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, 100003};
    static const int32_t threads[] = {1, 2, 3, 8};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        tni_pool *pool = pool_of(threads[t]);
        for (int round = 0; round < 3; round++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
                assert_true(loop_is_right(pool, counts[c]));
        assert_int_equal(tni_pool_threads(pool), threads[t]);
        tni_pool_destroy(pool);
    }
}

static void never(void *user, int64_t index)
{
    (void)index;
    atomic_store((_Atomic int *)user, 1);
}

static void no_indices_is_no_loop(void **state)
{
    _Atomic int ran = 0;
    tni_pool *pool = pool_of(2);
    (void)state;
    tni_pool_run(pool, 0, never, &ran);
    tni_pool_run(pool, -5, never, &ran);
    tni_pool_run(pool, INT64_MIN, never, &ran);
    tn_parallel_for(0, never, &ran);
    tn_parallel_for(-1, never, &ran);
    assert_int_equal(atomic_load(&ran), 0);
    tni_pool_destroy(pool);
}

struct uneven {
    struct marks marks;
    _Atomic int64_t done;
};

/* Index 0 ends when half of the others have: only what is handed out with it may have to wait. */
static void first_waits(void *user, int64_t index)
{
    struct uneven *uneven = user;
    mark(&uneven->marks, index);
    while (index == 0 && atomic_load(&uneven->done) < uneven->marks.count / 2)
        tni_clock_sleep_ns(1000);
    atomic_fetch_add(&uneven->done, 1);
}

static void long_tasks_do_not_hold_up_short_ones(void **state)
{
    (void)state;
    for (int32_t threads = 2; threads <= 8; threads += 3) {
        tni_pool *pool = pool_of(threads);
        struct uneven uneven = {.marks = marks_of(999)};
        tni_pool_run(pool, 999, first_waits, &uneven);
        assert_true(each_once(&uneven.marks));
        marks_release(&uneven.marks);
        tni_pool_destroy(pool);
    }
}

static void all_threads_come_awake_or_asleep(void **state)
{
    static const int32_t threads[] = {2, 3, 8};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        tni_pool *pool = pool_of(threads[t]);
        for (int round = 0; round < 40; round++) {
            if (round % 4 == 0) /* long enough for some to sleep and others not */
                tni_clock_sleep_ns(INT64_C(20000) * round);
            assert_threads_come(pool, threads[t]);
        }
        for (int fewer = 2; fewer <= threads[t]; fewer++) {
            tni_clock_sleep_ns(200000);
            assert_threads_come(pool, fewer);
        }
        tni_pool_destroy(pool);
    }
}

static void loops_in_tasks_are_serial(void **state)
{
    tni_pool *one = pool_of(3), *other = pool_of(2);
    (void)state;
    assert_nested(one, one);
    assert_nested(one, other);
    assert_nested(one, NULL);
    assert_nested(NULL, one);
    tni_pool_destroy(one);
    tni_pool_destroy(other);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void eight_threads_call_at_once(void **state)
{
    struct caller callers[CALLERS];
    (void)state;
    for (int32_t threads = 2; threads <= 4; threads += 2) {
        tni_pool *pool = pool_of(threads);
        callers_start(callers, pool);
        callers_end(callers);
        tni_pool_destroy(pool);
    }
}

static void occupied_pool_leaves_the_caller_alone(void **state)
{
    struct stay stay = {.pool = pool_of(2)};
    struct nest nest = {.marks = marks_of(INNER)};
    struct nested nested = {&nest, tni_thread_id(), 0};
    (void)state;
    stay_begin(&stay);
    tni_pool_run(stay.pool, INNER, inner_task, &nested);
    assert_true(each_once(&nest.marks));
    assert_int_equal(atomic_load(&nest.strayed), 0);
    stay_end(&stay);
    marks_release(&nest.marks);
    tni_pool_destroy(stay.pool);
}

/* Tasks that look at the thread they run on, with one on every thread. */
struct look {
    struct meeting meeting;
    _Atomic int wrong;
    bool flushes;
};

#if defined(__SSE__)
#define HAS_FLOAT_MODE 1

static void flush_denormals(bool on)
{
    _mm_setcsr(on ? _mm_getcsr() | 0x8000u : _mm_getcsr() & ~0x8000u);
}

#elif defined(__aarch64__)
#define HAS_FLOAT_MODE 1

static void flush_denormals(bool on)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    mode = on ? mode | 1u << 24 : mode & ~(UINT64_C(1) << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#else
#define HAS_FLOAT_MODE 0

static void flush_denormals(bool on)
{
    (void)on;
}

#endif

static void look_at_denormals(void *user, int64_t index)
{
    struct look *look = user;
    volatile double least = DBL_MIN;
    meet(&look->meeting, index);
    if ((least / 2 == 0) != look->flushes)
        atomic_store(&look->wrong, 1);
}

static void tasks_have_the_callers_floating_point_mode(void **state)
{
    (void)state;
    if (!HAS_FLOAT_MODE)
        skip_because("this processor's mode is not one register that the pool copies");
    tni_pool *pool = pool_of(3);
    for (int round = 0; round < 4; round++) {
        struct look look = {.meeting = {.expected = 3}, .flushes = round % 2 == 1};
        flush_denormals(look.flushes);
        tni_pool_run(pool, 3, look_at_denormals, &look);
        flush_denormals(false);
        assert_int_equal(atomic_load(&look.wrong), 0);
    }
    tni_pool_destroy(pool);
}

static void bad_sizes_are_refused(void **state)
{
    tni_pool *pool = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tni_pool_create(0, &pool, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "threads: expected 1 to 1024, got 0");
    assert_int_equal(tni_pool_create(1025, &pool, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "got 1025");
    assert_null(pool);
    tni_pool_destroy(NULL);
}

static void pools_come_and_go(void **state)
{
    int rounds = test_reduced() ? 200 : 3000;
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    for (int i = 0; i < rounds; i++) {
        tni_pool *one = pool_of(1 + i % 4), *two = pool_of(2);
        if (i % 3 != 0)
            assert_true(loop_is_right(one, 20));
        if (i % 2 != 0)
            tni_clock_sleep_ns(i % 128 * 1000);
        tni_pool_destroy(i % 5 ? one : two);
        tni_pool_destroy(i % 5 ? two : one);
    }
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static void tell_id(void *user)
{
    *(uint64_t *)user = tni_thread_id();
}

/* Threads that end as soon as they sleep: every loop still has all of its threads, whenever they ended. */
static void ended_threads_are_started_again(void **state)
{
    tni_pool *pool = pool_of(3);
    (void)state;
    tni_pool_idle_set(pool, 1);
    for (int i = 0; i < (test_reduced() ? 100 : 1000); i++) {
        assert_threads_come(pool, 3);
        assert_int_equal(tni_pool_threads(pool), 3);
        if (i % 2)
            tni_clock_sleep_ns(i % 200 * 1000);
    }
    tni_pool_destroy(pool);
    for (int i = 0; i < 100; i++) { /* destroyed while they end */
        pool = pool_of(3);
        tni_pool_idle_set(pool, 1);
        assert_true(loop_is_right(pool, 100));
        tni_clock_sleep_ns(i * 1000);
        tni_pool_destroy(pool);
    }
    assert_int_equal(tn_allocator_blocks(), 0);
}

static void threads_have_numbers_of_their_own(void **state)
{
    tni_thread thread;
    uint64_t other = 0;
    (void)state;
    assert_int_equal(tni_thread_create(&thread, tell_id, &other, NULL), TN_OK);
    tni_thread_join(thread);
    assert_int_not_equal(other, 0);
    assert_int_not_equal(other, tni_thread_id());
    assert_int_equal(tni_thread_id(), tni_thread_id());
    assert_true(tni_thread_processors() >= 1);
}

#if defined(__linux__)

static void processors_are_those_allowed(void **state)
{
    cpu_set_t before, one;
    size_t first = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(tni_thread_processors(), CPU_COUNT(&before));
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(tni_thread_processors(), 1);
    tni_pool *pool = pool_of(4); /* more threads than processors: nobody spins, all come */
    for (int round = 0; round < 20; round++)
        assert_threads_come(pool, 4);
    tni_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

#endif
#if !defined(_WIN32)

static void look_at_signals(void *user, int64_t index)
{
    static const int blocked[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF};
    struct look *look = user;
    sigset_t mask;
    meet(&look->meeting, index);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    bool guest = sigismember(&mask, SIGHUP) == 0;
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        if ((sigismember(&mask, blocked[i]) == 1) == guest)
            atomic_store(&look->wrong, 1);
    if (sigismember(&mask, SIGSEGV) == 1)
        atomic_store(&look->wrong, 1);
    atomic_fetch_add(&look->meeting.come, guest ? 100 : 10);
}

static void workers_leave_signals_to_the_program(void **state)
{
    struct look look = {.meeting = {.expected = 2}};
    tni_pool *pool = pool_of(2);
    (void)state;
    tni_pool_run(pool, 2, look_at_signals, &look);
    assert_int_equal(atomic_load(&look.wrong), 0);
    assert_int_equal(atomic_load(&look.meeting.come), 2 + 100 + 10); /* a guest and a worker */
    tni_pool_destroy(pool);
}

/* Threads that the system does not give: the first `threads_given` calls succeed. */
static int threads_given, thread_error;

static bool refuse_threads(const char *call)
{
    if (strcmp(call, "pthread_create") != 0 || threads_given-- > 0)
        return false;
    errno = thread_error;
    return true;
}

static void hear(void *user, int32_t level, const char *text)
{
    (void)snprintf(user, 200, "%s: %s", tn_log_level_name(level), text);
}

static void loops_survive_want_of_threads(void **state)
{
    char heard[200] = "";
    tn_log_sink sink = {sizeof sink, hear, heard, TN_LOG_WARNING, 0};
    (void)state;
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    for (int given = 0; given < 4; given++) {
        tni_pool *pool = pool_of(5);
        threads_given = given;
        thread_error = given % 2 ? EAGAIN : ENOMEM;
        tni_sys_fault_set(refuse_threads);
        assert_true(loop_is_right(pool, 1000));
        tni_sys_fault_set(NULL);
        assert_int_equal(tni_pool_threads(pool), given + 1);
        assert_contains(heard, "warning: loops run on ");
        assert_contains(heard, " of 5 threads: the system could not create a thread (error ");
        assert_true(loop_is_right(pool, 1000)); /* does not ask again */
        assert_int_equal(tni_pool_threads(pool), given + 1);
        tni_pool_destroy(pool);
    }
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
}

static void refused_threads_have_words(void **state)
{
    tni_thread thread;
    tn_error err;
    (void)state;
    tni_sys_fault_set(refuse_threads);
    threads_given = 0;
    thread_error = EAGAIN;
    assert_int_equal(tni_thread_create(&thread, call_loops, NULL, &err), TN_BUSY);
    assert_int_equal(err.native_code, EAGAIN);
    thread_error = ENOMEM;
    assert_int_equal(tni_thread_create(&thread, call_loops, NULL, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(err.native_code, ENOMEM);
    tni_sys_fault_set(NULL);
    assert_int_equal(tn_allocator_blocks(), 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once),
        cmocka_unit_test(no_indices_is_no_loop),
        cmocka_unit_test(long_tasks_do_not_hold_up_short_ones),
        cmocka_unit_test(all_threads_come_awake_or_asleep),
        cmocka_unit_test(loops_in_tasks_are_serial),
        cmocka_unit_test(eight_threads_call_at_once),
        cmocka_unit_test(occupied_pool_leaves_the_caller_alone),
        cmocka_unit_test(tasks_have_the_callers_floating_point_mode),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(ended_threads_are_started_again),
        cmocka_unit_test(threads_have_numbers_of_their_own),
#if defined(__linux__)
        cmocka_unit_test(processors_are_those_allowed),
#endif
#if !defined(_WIN32)
        cmocka_unit_test(workers_leave_signals_to_the_program),
        cmocka_unit_test(loops_survive_want_of_threads),
        cmocka_unit_test(refused_threads_have_words),
#endif
    };
    return run_suite("unit.pool", tests);
}
