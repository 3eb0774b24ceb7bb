/* fft by libraries: what the samples of conformance lack (complex to real, other directions), with several
 * threads, and what the rows refuse. Libraries that are not installed are skipped. */
#include "test.h"

#include "tenon/tenon.h"

#include <stdbool.h>

static const char *const kernels[] = {"cpu.fft.mkl"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Whether the kernel can run at all; says why not, once. */
static bool is_here(const char *kernel)
{
    tn_check_result found = {.struct_size = sizeof found};
    tn_error err;
    const tn_status status = tn_check(
        NULL, TN_ARGS(check, .problem = "fft:c64:shape=8@cpu:0", .kernel = kernel), &found, &err);
    if (status)
        assert_contains(err.message, ": library: ");
    if (status)
        printf("skipped: %s: %.200s\n", kernel, err.message);
    return !status;
}

static void assert_right(const char *kernel, const char *problem)
{
    tn_check_result found = {.struct_size = sizeof found};
    tn_error err;
    if (tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel), &found, &err))
        fail_msg("%s: %s: %s", kernel, problem, err.message);
    if (!found.ok)
        fail_msg("%s: %s: %s; seed %llu", kernel, problem, found.text,
                 (unsigned long long)found.seed);
}

static void assert_refuses(const char *kernel, const char *problem, const char *reason)
{
    tn_check_result found = {.struct_size = sizeof found};
    tn_error err;
    assert_int_not_equal(
        tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel), &found, &err), TN_OK);
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
        "fft:c128:shape=1000x17,si=1;1000,so=17;1@cpu:0",
        "fft:c64:shape=513x67,inplace=1@cpu:0",
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

static void mkl_refuses_what_it_cannot(void **state)
{
    const char *mkl = kernels[0];
    (void)state;
    if (!is_here(mkl))
        skip();
    assert_refuses(mkl, "fft:c64:shape=4x8x10,dims=2,out=f32,dir=inverse@cpu:0",
                   ": shape: dims: expected 1");
    assert_refuses(mkl, "fft:f32:shape=4x10,dir=inverse@cpu:0", ": other: direction: expected 0");
    assert_refuses(mkl, "fft:c64:shape=4x10,out=f32@cpu:0", ": other: direction: expected 1");
    assert_refuses(mkl, "fft:c64:shape=4x10,si=-10;1@cpu:0", ": stride: si: expected 1");
    assert_refuses(mkl, "fft:c64:shape=4x10,si=0;1@cpu:0", "does not support broadcast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_is_right),
                                       cmocka_unit_test(mkl_refuses_what_it_cannot)};
    return run_suite("kernels.cpu_fft_libraries", tests);
}
