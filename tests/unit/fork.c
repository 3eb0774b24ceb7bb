/* Children of processes with pools: each has its own at once, whenever the fork came. */
#include "loops.h"

#include "os/fork.h"
#include "os/sys.h"
#include "tenon/module/module.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that hangs is ended by its alarm, and its parent sees that. */
static pid_t fork_watched(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t alarms;
        sigemptyset(&alarms);
        sigaddset(&alarms, SIGALRM);
        (void)pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
        (void)alarm(TEST_HANG_SECONDS);
    }
    return pid;
}

static int ended_well(pid_t pid)
{
    int status = -1;
    return pid > 0 && tni_sys_waitpid(pid, &status, 0) == pid && status == 0;
}

#if TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD
enum { CHILDREN_MAY_START_THREADS = 0 }; /* the sanitizer forbids it to children of many threads */
#else
enum { CHILDREN_MAY_START_THREADS = 1 };
#endif

/* In the child: loops with all threads, as if nothing had been. */
static int child_is_right(void)
{
    struct meeting meeting = {.expected = 3};
    if (!CHILDREN_MAY_START_THREADS)
        return 1;
    tn_parallel_for(3, meet, &meeting);
    return loop_is_right(NULL, 1000) && tn_parallel_threads() == 3 &&
           tn_parallel_threads_set(2, NULL) == TN_OK && loop_is_right(NULL, 1000);
}

static void child_of_an_idle_pool_has_its_own(void **state)
{
    tni_pool *other = pool_of(3);
    unsigned generation = tni_fork_generation();
    (void)state;
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    assert_true(loop_is_right(other, 100));
    for (int round = 0; round < 20; round++) { /* the first finds a pool without threads */
        pid_t pid = fork_watched();
        if (pid == 0) {
            bool right = tni_fork_generation() == generation + 1 && child_is_right();
            _exit(right && (!CHILDREN_MAY_START_THREADS || loop_is_right(other, 100)) ? 0 : 1);
        }
        assert_true(loop_is_right(NULL, 2)); /* the next fork may find threads half-way in */
        assert_true(ended_well(pid));
    }
    assert_int_equal(tni_fork_generation(), generation);
    tni_pool_destroy(other);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void child_of_a_busy_pool_has_its_own(void **state)
{
    struct stay stay = {0};
    (void)state;
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    stay_begin(&stay);
    pid_t pid = fork_watched();
    if (pid == 0)
        _exit(child_is_right() ? 0 : 1);
    assert_true(ended_well(pid));
    stay_end(&stay);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

static void children_of_a_working_pool_have_their_own(void **state)
{
    struct caller callers[CALLERS];
    (void)state;
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    callers_start(callers, NULL);
    for (int round = 0; round < (test_reduced() ? 5 : 50); round++) {
        pid_t pid = fork_watched();
        if (pid == 0)
            _exit(child_is_right() ? 0 : 1);
        assert_true(ended_well(pid));
    }
    callers_end(callers);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

/* Hooks that write down when they run. */
static char order[16];

static void note(char step)
{
    size_t length = strlen(order);
    if (length + 1 < sizeof order)
        order[length] = step;
}

// clang-format off
static void one_before(void) { note('a'); }
static void one_parent(void) { note('b'); }
static void one_child(void) { note('c'); }
static void two_before(void) { note('A'); }
static void two_parent(void) { note('B'); }
static void two_child(void) { note('C'); }
// clang-format on

static void hooks_run_once_and_in_order(void **state)
{
    static const tni_fork_hook one = {one_before, one_parent, one_child};
    static const tni_fork_hook two = {two_before, two_parent, two_child};
    static const tni_fork_hook nothing = {NULL, NULL, NULL};
    (void)state;
    tni_fork_watch(&one);
    tni_fork_watch(&nothing);
    tni_fork_watch(&two);
    tni_fork_watch(&one);
    order[0] = '\0';
    pid_t pid = fork_watched();
    if (pid == 0)
        _exit(strcmp(order, "AacC") == 0 ? 0 : 1);
    assert_string_equal(order, "AabB");
    assert_true(ended_well(pid));
}

/* Forks inside a task of the loop's caller, or of a worker. */
struct family {
    struct meeting meeting;
    uint64_t caller;
    bool by_worker;
    bool stays;             /* the child ends inside its task */
    _Atomic int ended_well; /* children */
    bool is_child;
};

static void end_now(void)
{
    _exit(0);
}

static void fork_in_task(void *user, int64_t index)
{
    struct family *family = user;
    meet(&family->meeting, index);
    if ((tni_thread_id() != family->caller) != family->by_worker)
        return;
    pid_t pid = fork_watched();
    if (pid != 0) {
        atomic_fetch_add(&family->ended_well, ended_well(pid));
        return;
    }
    family->is_child = true;
    if (!loop_is_right(NULL, 1000) || tn_parallel_threads_set(2, NULL) != TN_BUSY)
        _exit(1);
    if (family->stays)
        _exit(0);
    (void)atexit(end_now); /* what the test framework holds is of no concern here */
}

static int family_is_well(bool by_worker, bool stays)
{
    struct family family = {.meeting = {.expected = 3},
                            .caller = tni_thread_id(),
                            .by_worker = by_worker,
                            .stays = stays};
    tn_parallel_for(3, fork_in_task, &family);
    if (family.is_child)
        _exit(child_is_right() ? 0 : 1);
    return atomic_load(&family.ended_well) == (by_worker ? 2 : 1);
}

static void child_of_a_task_is_serial_until_it_returns(void **state)
{
    (void)state;
    if (!CHILDREN_MAY_START_THREADS)
        skip_because("the thread sanitizer does not follow a thread into a child");
    assert_int_equal(tn_parallel_threads_set(3, NULL), TN_OK);
    assert_true(family_is_well(false, true));
    assert_true(family_is_well(false, false));
    assert_true(family_is_well(true, true));
    assert_true(family_is_well(true, false));
    assert_true(loop_is_right(NULL, 1000));
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

struct loader {
    _Atomic int inside, loaded, stop;
};

static void load_slowly(void *user)
{
    struct loader *loader = user;
    tni_fork_loading_begin();
    tni_fork_loading_begin();
    atomic_store(&loader->inside, 1);
    (void)usleep(100000);
    tni_fork_loading_end();
    atomic_store(&loader->loaded, 1);
    tni_fork_loading_end();
    while (!atomic_load(
        &loader->stop)) /* the thread sanitizer calls a thread that ended a leak of the child */
        (void)usleep(100);
}

static void a_fork_waits_for_a_thread_that_loads(void **state)
{
    struct loader loader = {0};
    tni_thread thread;
    (void)state;
    assert_int_equal(tni_thread_create(&thread, load_slowly, &loader, NULL), TN_OK);
    while (!atomic_load(&loader.inside))
        (void)usleep(100);
    pid_t pid = fork_watched();
    if (pid == 0)
        _exit(atomic_load(&loader.loaded) ? 0 : 1);
    atomic_store(&loader.stop, 1);
    tni_thread_join(thread);
    assert_true(ended_well(pid));
}

static void a_thread_that_loads_may_fork(void **state)
{
    (void)state;
    tni_fork_loading_begin();
    pid_t pid = fork_watched();
    if (pid == 0) {
        tni_fork_loading_end();
        tni_fork_loading_begin();
        tni_fork_loading_end();
        _exit(0);
    }
    tni_fork_loading_end();
    assert_true(ended_well(pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_run_once_and_in_order),
        cmocka_unit_test(child_of_an_idle_pool_has_its_own),
        cmocka_unit_test(child_of_a_busy_pool_has_its_own),
        cmocka_unit_test(children_of_a_working_pool_have_their_own),
        cmocka_unit_test(child_of_a_task_is_serial_until_it_returns),
        cmocka_unit_test(a_fork_waits_for_a_thread_that_loads),
        cmocka_unit_test(a_thread_that_loads_may_fork),
    };
    return run_suite("unit.fork", tests);
}
