/* A process ends when its own threads have ended, whatever threads Tenon has. Each case is a process of its own, as
 * it has to end. */
#include "test.h"

#include "os/sys.h"
#include "tenon/module/module.h"
#include "tenon/tenon.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* The leak sanitizer does not end in a process whose main thread has. */
TN_MODULE_EXPORT const char *__lsan_default_options(void); // NOLINT(bugprone-reserved-identifier)
const char *__lsan_default_options(void)                   // NOLINT(bugprone-reserved-identifier)
{
    return "detect_leaks=0";
}

enum { LIMIT_S = 120, SIZE = 64 };

static void do_nothing(void *user, int64_t index)
{
    (void)user, (void)index;
}

static void run_loop(void)
{
    tn_parallel_for(100, do_nothing, NULL);
}

/* A product by a kernel that is chosen from all, so that libraries are opened. */
static void run_product(void)
{
    static float memory[3][SIZE * SIZE];
    int64_t shape[] = {SIZE, SIZE};
    tn_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = (tn_tensor){.data = memory[i],
                           .device_type = TN_DLPACK_CPU,
                           .ndim = 2,
                           .dtype = TN_F32,
                           .shape = shape};
    const tn_matmul_args args = {.struct_size = sizeof args, .a = &t[0], .b = &t[1], .out = &t[2]};
    if (tn_matmul(NULL, &args, NULL))
        exit(3);
}

/* Opens every library there is. */
static void open_libraries(void)
{
    size_t count = 0;
    if (tn_library_count(&count, NULL))
        exit(4);
    for (size_t i = 0; i < count; i++)
        (void)tn_library_try(tn_library_at(i), NULL);
    run_product();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"loop", run_loop}, {"product", run_product}, {"libraries", open_libraries}};

static _Atomic int main_ends;

static void *run_another_loop(void *user)
{
    (void)user;
    while (!atomic_load(&main_ends))
        (void)usleep(1000);
    (void)usleep(10000);
    run_loop();
    return NULL;
}

/* In the child: never returns. */
static void end_by_threads(const char *name)
{
    pthread_t other;
    if (tn_parallel_threads_set(3, NULL))
        exit(5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].name, name) == 0)
            cases[i].run();
    run_loop();
    if (pthread_create(&other, NULL, run_another_loop, NULL) || pthread_detach(other))
        exit(6);
    atomic_store(&main_ends, 1);
    pthread_exit(NULL);
}

/* Returns the wait status. A process that does not end by itself is killed: the pool's threads block all other signals,
 * and no thread of the program is left to receive them. */
static int wait_for(pid_t pid)
{
    enum { STEP_US = 10000 };
    int code = -1;
    pid_t ended = 0;
    for (int64_t us = 0; ended == 0 && us < LIMIT_S * INT64_C(1000000); us += STEP_US) {
        (void)usleep(STEP_US);
        ended = tni_sys_waitpid(pid, &code, WNOHANG);
    }
    if (ended == 0) {
        (void)kill(pid, SIGKILL);
        ended = tni_sys_waitpid(pid, &code, 0);
    }
    assert_int_equal(ended, pid);
    return code;
}

static void check_case(const char *name)
{
    if (TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD)
        skip_because("the thread sanitizer has a thread of its own, which keeps the process alive");
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user has the system start a program, which is not one of its own");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "process_end", name, (char *)NULL);
        _exit(7);
    }
    assert_true(pid > 0);
    int code = wait_for(pid);
    if (code != 0)
        fail_msg("%s: expected a process that ends with 0, got wait status %#x", name,
                 (unsigned)code);
}

// clang-format off
static void a_loop_keeps_no_process(void **state) { (void)state; check_case("loop"); }
static void a_product_keeps_no_process(void **state) { (void)state; check_case("product"); }
static void libraries_keep_no_process(void **state) { (void)state; check_case("libraries"); }
// clang-format on

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_keeps_no_process),
        cmocka_unit_test(a_product_keeps_no_process),
        cmocka_unit_test(libraries_keep_no_process),
    };
    if (argc == 2)
        end_by_threads(argv[1]);
    return run_suite("unit.process_end", tests);
}
