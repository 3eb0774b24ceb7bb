/* Holding a library to one thread: whoever calls it, and whatever a fork cuts off. */
#include "test.h"

#include "../../backends/cpu/vendor_threads.h"
#include "os/thread.h"

#include <sys/wait.h>
#include <unistd.h>

/* A library: its number of threads, and where it stops when it is told one. */
enum { RUNS, STOPS_BEFORE, STOPS_AFTER };
static _Atomic int number, calls, place, stopped;

static int get(const void *library)
{
    assert_true(library == (const void *)(uintptr_t)&number);
    return atomic_load(&number);
}

static void stop(int at)
{
    if (atomic_load(&place) != at)
        return;
    atomic_store(&stopped, 1);
    while (atomic_load(&place) == at)
        ;
    (void)usleep(20000);
}

static void set(const void *library, int threads)
{
    assert_true(library == (const void *)(uintptr_t)&number);
    stop(STOPS_BEFORE);
    atomic_fetch_add(&calls, 1);
    atomic_store(&number, threads);
    stop(STOPS_AFTER);
}

static tni_vendor_threads make_limit(int threads, bool shared)
{
    tni_vendor_threads limit = {.get = get, .set = set, .shared = shared};
    atomic_store(&number, threads);
    atomic_store(&calls, 0);
    tni_vendor_threads_init(&limit);
    return limit;
}

static void a_number_of_each_thread_is_changed_and_given_back(void **state)
{
    (void)state;
    tni_vendor_threads limit = make_limit(7, false);
    int before = tni_vendor_threads_enter(&limit, &number);
    assert_int_equal(number, 1);
    int inner = tni_vendor_threads_enter(&limit, &number);
    tni_vendor_threads_leave(&limit, &number, inner);
    assert_int_equal(number, 1);
    tni_vendor_threads_leave(&limit, &number, before);
    assert_int_equal(number, 7);
    assert_int_equal(calls, 2);
}

static void what_has_no_threads_is_not_told(void **state)
{
    tni_vendor_threads limit = {0};
    (void)state;
    tni_vendor_threads_init(&limit);
    tni_vendor_threads_leave(&limit, NULL, tni_vendor_threads_enter(&limit, NULL));
    for (int shared = 0; shared < 2; shared++) {
        limit = make_limit(1, shared);
        tni_vendor_threads_leave(&limit, &number, tni_vendor_threads_enter(&limit, &number));
        assert_int_equal(calls, 0);
        assert_int_equal(number, 1);
    }
}

static void a_shared_number_is_given_back_by_the_last(void **state)
{
    (void)state;
    tni_vendor_threads limit = make_limit(7, true);
    for (int i = 0; i < 3; i++) {
        int first = tni_vendor_threads_enter(&limit, &number),
            second = tni_vendor_threads_enter(&limit, &number);
        assert_int_equal(number, 1);
        tni_vendor_threads_leave(&limit, &number, first);
        assert_int_equal(number, 1);
        tni_vendor_threads_leave(&limit, &number, second);
        assert_int_equal(number, 7);
    }
    assert_int_equal(calls, 6);
    atomic_store(&number, 5); /* as the program wishes from now on */
    tni_vendor_threads_leave(&limit, &number, tni_vendor_threads_enter(&limit, &number));
    assert_int_equal(number, 5);
}

enum { THREADS = 4, TURNS = 20000 };
static tni_vendor_threads shared_limit;
static _Atomic int wrong;

static void work(void *user)
{
    (void)user;
    for (int i = 0; i < TURNS; i++) {
        int before = tni_vendor_threads_enter(&shared_limit, &number);
        if (atomic_load(&number) != 1)
            atomic_store(&wrong, 1);
        tni_vendor_threads_leave(&shared_limit, &number, before);
    }
}

static void whoever_is_inside_has_one_thread(void **state)
{
    tni_thread threads[THREADS];
    (void)state;
    shared_limit = make_limit(7, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], work, NULL, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(wrong, 0);
    assert_int_equal(number, 7);
}

/* Enters and leaves; stops on its way where `place` says, and takes a while after it was let go. */
static _Atomic int left, ends;

static void pass(void *user)
{
    (void)user;
    tni_vendor_threads_leave(&shared_limit, &number,
                             tni_vendor_threads_enter(&shared_limit, &number));
    atomic_store(&left, 1);
    while (
        !atomic_load(&ends)) /* a thread that a fork finds ended looks like a leak to a sanitizer */
        (void)usleep(1000);
}

/* Runs in fork() before the gate is closed, as it was registered later. */
static void let_go(void)
{
    atomic_store(&place, RUNS);
}

/* Forks; returns whether the child found nobody inside, and could use the library. It has a time limit: nothing may
 * wait for a thread that it does not have. */
static bool child_goes_on(void)
{
    int code = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(TEST_HANG_SECONDS);
        bool alone = atomic_load(&left) && atomic_load(&number) == 7;
        int before = tni_vendor_threads_enter(&shared_limit, &number);
        bool held = atomic_load(&number) == 1;
        tni_vendor_threads_leave(&shared_limit, &number, before);
        _exit(alone && held && atomic_load(&number) == 7 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    return code == 0;
}

static void forks_wait_until_all_left(void **state)
{
    (void)state;
    for (int at = STOPS_BEFORE; at <= STOPS_AFTER; at++) {
        tni_thread thread;
        shared_limit = make_limit(7, true);
        assert_int_equal(pthread_atfork(let_go, NULL, NULL), 0);
        atomic_store(&stopped, 0);
        atomic_store(&left, 0);
        atomic_store(&ends, 0);
        atomic_store(&place, at);
        assert_int_equal(tni_thread_create(&thread, pass, NULL, NULL), TN_OK);
        while (!atomic_load(&stopped))
            ;
        bool fine = child_goes_on();
        atomic_store(&ends, 1);
        tni_thread_join(thread);
        assert_true(fine);
        assert_int_equal(number, 7);
        assert_true(child_goes_on()); /* with nobody inside */
    }
}

static void a_thread_inside_may_fork(void **state)
{
    int code = -1;
    (void)state;
    shared_limit = make_limit(7, true);
    int before = tni_vendor_threads_enter(&shared_limit, &number);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        (void)alarm(20);
    bool held = atomic_load(&number) == 1;
    tni_vendor_threads_leave(&shared_limit, &number, before);
    held = held && atomic_load(&number) == 7;
    if (pid == 0)
        _exit(held ? 0 : 1);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    assert_true(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_of_each_thread_is_changed_and_given_back),
        cmocka_unit_test(what_has_no_threads_is_not_told),
        cmocka_unit_test(a_shared_number_is_given_back_by_the_last),
        cmocka_unit_test(whoever_is_inside_has_one_thread),
        cmocka_unit_test(forks_wait_until_all_left),
        cmocka_unit_test(a_thread_inside_may_fork),
    };
    return run_suite("unit.cpu_vendor_threads", tests);
}
