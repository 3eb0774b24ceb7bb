/* fft by libraries, MKL and FFTW: every kind of transform, with several threads, and what the rows refuse;
 * FFTW's planner in several threads and beside fork(). Libraries that are not installed are skipped. */
#include "test.h"

#include "tenon/tenon.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static const char mkl[] = "cpu.fft.mkl", fftw[] = "cpu.fft.fftw",
                  measured[] = "cpu.fft.fftw.measured";
static const char *const kernels[] = {mkl, fftw, measured};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static tn_context *tuning; /* tuning.enabled */

static tn_status check(const char *kernel, const char *problem, tn_check_result *out, tn_error *err)
{
    *out = (tn_check_result){.struct_size = sizeof *out};
    return tn_check(strcmp(kernel, measured) == 0 ? tuning : NULL,
                    TN_ARGS(check, .problem = problem, .kernel = kernel), out, err);
}

/* Whether the kernel can run at all; says why not, once. */
static bool is_here(const char *kernel)
{
    static const char *said[KERNELS];
    tn_check_result found;
    tn_error err;
    const tn_status status = check(kernel, "fft:c64:shape=8@cpu:0", &found, &err);
    if (!status)
        return true;
    assert_contains(err.message, ": library: ");
    for (size_t i = 0; i < KERNELS && said[i] != kernel; i++) {
        if (said[i])
            continue;
        said[i] = kernel;
        printf("skipped: %s: %.300s\n", kernel, err.message);
        break;
    }
    return false;
}

static void assert_right(const char *kernel, const char *problem)
{
    tn_check_result found;
    tn_error err;
    if (check(kernel, problem, &found, &err))
        fail_msg("%s: %s: %s", kernel, problem, err.message);
    if (!found.ok)
        fail_msg("%s: %s: %s; seed %llu", kernel, problem, found.text,
                 (unsigned long long)found.seed);
}

static void assert_refuses(const char *kernel, const char *problem, const char *reason)
{
    tn_check_result found;
    tn_error err;
    assert_int_not_equal(check(kernel, problem, &found, &err), TN_OK);
    assert_contains(err.message, reason);
}

static void every_kind_is_right(void **state)
{
    static const char *const problems[] = {
        "fft:c64:shape=5x9,out=f32,dir=inverse@cpu:0",
        "fft:c64:shape=7x64,out=f32,dir=inverse,norm=ortho@cpu:0",
        "fft:c128:shape=3x1000,out=f64,dir=inverse@cpu:0",
        "fft:c128:shape=300x77,out=f64,dir=inverse,norm=forward@cpu:0",
        "fft:f32:shape=300x77,norm=ortho@cpu:0",
        "fft:f64:shape=3x5x12x10,dims=2@cpu:0",
        "fft:f32:shape=2x3x6x10,dims=3@cpu:0",
        "fft:c64:shape=3x700x60,dir=inverse@cpu:0",
        "fft:c64:shape=41x2x30,si=60;2520;1,so=60;2460;2@cpu:0",
        "fft:c64:shape=20x3x31,dir=inverse,so=1;620;20@cpu:0",
        "fft:c128:shape=1000x17,si=1;1000,so=17;1@cpu:0",
        "fft:c64:shape=513x67,inplace=1@cpu:0",
        "fft:c128:shape=1x19,inplace=1,dir=inverse@cpu:0",
        "fft:f32:shape=5x30,align=4;8@cpu:0",
        "fft:c128:shape=1@cpu:0",
        "fft:c64:shape=3x20000@cpu:0"};
    int tried = 0;
    (void)state;
    for (size_t k = 0; k < KERNELS; k++) {
        if (!is_here(kernels[k]))
            continue;
        tried++;
        for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
            assert_right(kernels[k], problems[i]);
    }
    if (!tried)
        skip();
}

static void what_they_cannot_is_refused(void **state)
{
    int tried = 0;
    (void)state;
    for (size_t k = 0; k < KERNELS; k++) {
        if (!is_here(kernels[k]))
            continue;
        tried++;
        assert_refuses(kernels[k], "fft:c64:shape=4x8x10,dims=2,out=f32,dir=inverse@cpu:0",
                       ": shape: dims: expected 1");
        assert_refuses(kernels[k], "fft:f32:shape=4x10,dir=inverse@cpu:0",
                       ": other: direction: expected 0");
        assert_refuses(kernels[k], "fft:c64:shape=4x10,out=f32@cpu:0",
                       ": other: direction: expected 1");
        assert_refuses(kernels[k], "fft:c64:shape=4x10,si=0;1@cpu:0", "does not support broadcast");
        assert_refuses(kernels[k], "fft:c64:shape=4x10,align=2;8@cpu:0",
                       ": alignment: in.alignment: expected 4");
    }
    if (!tried)
        skip();
}

static void strides_below_zero(void **state)
{
    const char *problem = "fft:c64:shape=4x10,si=-10;1,so=10;-1@cpu:0";
    (void)state;
    if (is_here(mkl))
        assert_refuses(mkl, problem, ": stride: si: expected 1");
    if (!is_here(fftw))
        skip();
    assert_right(fftw, problem);
    assert_right(fftw, "fft:f64:shape=6x40x10,si=400;-10;-1,norm=ortho@cpu:0");
}

/* The rows of a module that its library is missing for say what to install. */
static void absence_is_explained(void **state)
{
    tn_library_state found = {.struct_size = sizeof found};
    const tn_library *library = NULL;
    (void)state;
    if (is_here(fftw))
        skip_because("FFTW is here");
    assert_int_equal(tn_library_get("fftw", &library, NULL), TN_OK);
    assert_int_equal(tn_library_state_get(library, NULL, &found, NULL), TN_OK);
    assert_contains(found.remedy, "libfftw3-double3");
}

static void measuring_needs_tuning(void **state)
{
    tn_check_result found = {.struct_size = sizeof found};
    tn_error err;
    (void)state;
    if (!is_here(fftw))
        skip();
    assert_int_equal(
        tn_check(NULL, TN_ARGS(check, .problem = "fft:c64:shape=8@cpu:0", .kernel = measured),
                 &found, &err),
        TN_REFUSED);
    assert_contains(err.message, ": setting: tuning.enabled: expected 1, got 0");
}

enum { THREADS = 4, LENGTHS = 12 };
static _Atomic int wrong;
static atomic_bool ends;

/* Plans lengths that no other thread has. */
static void *plan_lengths(void *number)
{
    const int thread = (int)(intptr_t)number;
    for (int i = 0; i < LENGTHS; i++) {
        char problem[64];
        tn_check_result found;
        snprintf(problem, sizeof problem, "fft:%s:shape=3x%d@cpu:0", i % 2 ? "c64" : "f64",
                 16 + THREADS * i + thread);
        if (check(fftw, problem, &found, NULL) || !found.ok)
            wrong++;
    }
    return NULL;
}

static void planner_serves_several_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    if (!is_here(fftw))
        skip();
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, plan_lengths, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

/* The first element of the transform of n ones, which is n; -1 on failure. Makes a plan, unless there is one. */
static int transform(tn_context *context, int n)
{
    enum { MOST = 2048 };
    static const float one[2] = {1, 0};
    float in[2 * MOST], out[2 * MOST] = {0};
    const int64_t shape[] = {n};
    tn_device *device = NULL;
    tn_tensor from = {0}, to = {0};
    for (int i = 0; i < n; i++)
        memcpy(&in[2 * i], one, sizeof one);
    tn_status status = tn_device_get("cpu:0", &device, NULL);
    if (!status)
        status = tn_tensor_wrap(device, in, TN_C64, shape, NULL, 1, NULL, NULL, &from, NULL);
    if (!status)
        status = tn_tensor_wrap(device, out, TN_C64, shape, NULL, 1, NULL, NULL, &to, NULL);
    if (!status)
        status = tn_fft(context, TN_ARGS(fft, .in = &from, .out = &to), NULL);
    tn_tensor_release(&from);
    tn_tensor_release(&to);
    return status ? -1 : (int)(out[0] + 0.5F);
}

static tn_context *require_fftw(void)
{
    tn_context *made = NULL;
    const tn_change change = tn_with_rule(TN_REQUIRE, fftw);
    assert_int_equal(tn_context_derive(NULL, &change, 1, &made, NULL), TN_OK);
    return made;
}

static void *keep_planning(void *context)
{
    for (int n = 32; !ends; n = n < 2000 ? n + 1 : 32)
        wrong += transform(context, n) != n;
    return NULL;
}

static void child_can_plan(void **state)
{
    enum { FORKS = 10, LIMIT = 100 }; /* seconds */
    pthread_t thread;
    (void)state;
    skip_unless_fork_is_safe();
    if (!is_here(fftw))
        skip();
    tn_context *context = require_fftw();
    assert_int_equal(transform(context, 31), 31);
    assert_int_equal(pthread_create(&thread, NULL, keep_planning, context), 0);
    for (int i = 0; i < FORKS; i++) {
        int result = -1;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)alarm(LIMIT);
            _exit(transform(context, 2001 + i) == 2001 + i ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
    }
    ends = true;
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    tn_context_release(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_right),    cmocka_unit_test(what_they_cannot_is_refused),
        cmocka_unit_test(strides_below_zero),     cmocka_unit_test(absence_is_explained),
        cmocka_unit_test(measuring_needs_tuning), cmocka_unit_test(planner_serves_several_threads),
        cmocka_unit_test(child_can_plan)};
    const tn_change change = tn_with_tuning_enabled(1);
    tn_error err;
    if (tn_module_file_add(FFTW_MODULE, TN_MODULE_TRUSTED, &err) ||
        tn_context_derive(NULL, &change, 1, &tuning, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const int failed = run_suite("kernels.cpu_fft_libraries", tests);
    tn_context_release(tuning);
    return failed;
}
