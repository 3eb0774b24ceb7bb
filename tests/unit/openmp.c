/* Loops on the threads of an OpenMP run-time, which the process has only once somebody brings it: here GNU's, which
 * comes with gcc. The test is one story, as what was brought stays. */
#include "loops.h"

#include "os/dl.h"
#include "os/float_mode.h"
#include "tenon/log.h"
#include "tenon/module/module.h"
#include "tenon/setting.h"

#include <sys/wait.h>
#include <unistd.h>

static int (*max_threads)(void);
static void (*set_threads)(int threads);

static void set(const char *text)
{
    assert_int_equal(tn_settings_set(text, NULL), TN_OK);
}

static void count_line(void *user, int32_t level, const char *text)
{
    (void)level;
    if (strstr(text, "no OpenMP runtime is loaded in this process"))
        atomic_fetch_add((_Atomic int *)user, 1);
}

static void without_one_tenons_own_threads_run(void **state)
{
    static _Atomic int lines;
    static const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = count_line, .user = &lines, .level = TN_LOG_WARNING};
    (void)state;
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    set("cpu.threads=2");
    set("cpu.pool=openmp");
    assert_threads_come(NULL, 2);
    assert_int_equal(tn_parallel_threads(), 2);
    assert_true(loop_is_right(NULL, 50));
    assert_int_equal(atomic_load(&lines), 1);
    set("cpu.pool=own");
    assert_int_equal(tn_settings_reset("cpu.threads", NULL), TN_OK);
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
}

static bool bring_one(void)
{
    void *handle = NULL, *symbol;
    if (tni_dl_open("libgomp.so.1", &handle, NULL))
        return false;
    symbol = tni_dl_symbol(handle, "omp_get_max_threads", NULL);
    memcpy(&max_threads, &symbol, sizeof symbol);
    symbol = tni_dl_symbol(handle, "omp_set_num_threads", NULL);
    memcpy(&set_threads, &symbol, sizeof symbol);
    return max_threads && set_threads;
}

static void loops_run_on_its_threads(void **state)
{
    struct caller callers[CALLERS];
    (void)state;
    set("cpu.pool=openmp");
    if (!bring_one()) {
        skip_because("no libgomp.so.1 is here");
        return;
    }
    set_threads(3);
    while (tn_parallel_threads() != 3) /* it is looked for ten times a second */
        tni_clock_sleep_ns(10000000);
    assert_int_equal(tn_parallel_threads(), 3);
    assert_threads_come(NULL, 3);
    for (int i = 0; i < 1000; i++)
        assert_true(loop_is_right(NULL, i % 50));
    assert_nested(NULL, NULL);
    callers_start(callers, NULL);
    callers_end(callers);
}

/* The program's own number holds from the next loop on, and cpu.threads is a limit. */
static void its_number_of_threads_is_followed(void **state)
{
    (void)state;
    if (!max_threads) {
        skip_because("no libgomp.so.1 is here");
        return;
    }
    set_threads(4);
    assert_int_equal(tn_parallel_threads(), 4);
    assert_threads_come(NULL, 4);
    set("cpu.threads=2");
    assert_int_equal(tn_parallel_threads(), 2);
    assert_threads_come(NULL, 2);
    assert_int_equal(max_threads(), 4); /* it is not told */
    assert_int_equal(tn_settings_reset("cpu.threads", NULL), TN_OK);
    set_threads(1);
    assert_int_equal(tn_parallel_threads(), 1);
    assert_true(loop_is_right(NULL, 50));
    set_threads(3);
}

struct modes {
    uint64_t wanted;
    _Atomic int others;
    struct meeting meeting;
};

static void compare_mode(void *user, int64_t index)
{
    struct modes *modes = user;
    meet(&modes->meeting, index);
    atomic_fetch_add(&modes->others, tni_float_mode_get() != modes->wanted);
}

/* What has denormals be zero: two bits of SSE's register, one of Arm's; none elsewhere. */
#if defined(__SSE__)
static const uint64_t flush = 0x8040;
#elif defined(__aarch64__)
static const uint64_t flush = 1 << 24;
#else
static const uint64_t flush = 0;
#endif

static void tasks_have_the_callers_mode(void **state)
{
    const uint64_t before = tni_float_mode_get();
    struct modes modes = {.wanted = before | flush, .meeting = {.expected = 3}};
    struct modes again = {.wanted = before, .meeting = {.expected = 3}};
    (void)state;
    if (!max_threads || flush == 0) {
        skip_because("no libgomp.so.1 is here, or no mode that is known");
        return;
    }
    tni_float_mode_set(modes.wanted);
    tn_parallel_for(3, compare_mode, &modes);
    tni_float_mode_set(before);
    assert_int_equal(atomic_load(&modes.others), 0);
    tn_parallel_for(3, compare_mode, &again);
    assert_int_equal(atomic_load(&again.others), 0);
}

/* It is never entered there: its threads did not come along. */
static void a_child_has_tenons_own(void **state)
{
    (void)state;
    if (!max_threads || TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD) {
        skip_because("no libgomp.so.1 is here, or a sanitizer that ends children with threads");
        return;
    }
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user dies of threads that a forked child makes");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool right = loop_is_right(NULL, 50) && !tn_settings_set("cpu.threads=2", NULL) &&
                     tn_parallel_threads() == 2 && !tn_settings_set("cpu.pool=openmp", NULL) &&
                     loop_is_right(NULL, 50) && !tn_settings_set("cpu.pool=own", NULL) &&
                     loop_is_right(NULL, 50);
        _exit(right ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_threads_come(NULL, 3);
}

static void engine_for(void *self, int64_t count, tn_task *task, void *user)
{
    ++*(int *)self;
    for (int64_t i = 0; i < count; i++)
        task(user, i);
}

/* The program's engine goes before it; then Tenon's own pool is back. */
static void it_gives_way(void **state)
{
    int called = 0;
    const tn_parallel_engine engine = {
        .struct_size = sizeof engine, .self = &called, .parallel_for = engine_for, .threads = 7};
    (void)state;
    if (!max_threads) {
        skip_because("no libgomp.so.1 is here");
        return;
    }
    assert_int_equal(tn_parallel_engine_set(&engine, NULL), TN_OK);
    assert_int_equal(tn_parallel_threads(), 7);
    assert_true(loop_is_right(NULL, 50));
    assert_int_equal(called, 1);
    assert_int_equal(tn_parallel_engine_set(NULL, NULL), TN_OK);
    assert_threads_come(NULL, 3);
    assert_int_equal(tn_settings_reset("cpu.pool", NULL), TN_OK);
    set("cpu.threads=5");
    assert_int_equal(tn_parallel_threads(), 5);
    assert_threads_come(NULL, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_one_tenons_own_threads_run),
                                       cmocka_unit_test(loops_run_on_its_threads),
                                       cmocka_unit_test(its_number_of_threads_is_followed),
                                       cmocka_unit_test(tasks_have_the_callers_mode),
                                       cmocka_unit_test(a_child_has_tenons_own),
                                       cmocka_unit_test(it_gives_way)};
    return run_suite("unit.openmp", tests);
}
