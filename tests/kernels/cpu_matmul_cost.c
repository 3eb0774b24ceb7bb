/* What the cpu's matmul rows predict of their time: never measured here, but always a time, always the same, and more
 * for far more work: which way a kernel goes changes with the shape, and the next one may be the faster. */
#include "test.h"

#include "base_isa.h"
#include "dispatch/dispatch.h"
#include "tenon/module/kernel.h"
#include "tenon/tenon.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <time.h>

static uint64_t seed;

static int64_t roll(int64_t low, int64_t high)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static int64_t roll_size(void)
{
    return roll(0, 5) == 0 ? 1 : roll(1, (int64_t)1 << roll(1, 11));
}

typedef struct shape {
    const char *dtype, *more;
    int64_t m, n, k, batch;
} shape;

static shape roll_shape(void)
{
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16", "i8"};
    static const char *const more[] = {"", ",tb=1", ",ta=1", ",ta=1,tb=1", ",bias=1"};
    shape it = {.dtype = dtypes[roll(0, 4)], .more = more[roll(0, 4)]};
    it.m = roll_size();
    it.n = roll_size();
    it.k = roll_size();
    it.batch = roll(0, 3) == 0 ? roll(1, 40) : 0;
    return it;
}

static tn_decision *explain(const shape *it)
{
    char problem[160], batch[32] = "";
    tn_decision *decision = NULL;
    tn_error err;
    if (it->batch)
        snprintf(batch, sizeof batch, ",batch=%lld", (long long)it->batch);
    snprintf(problem, sizeof problem, "matmul:%s:m=%lld,n=%lld,k=%lld%s%s@cpu:0", it->dtype,
             (long long)it->m, (long long)it->n, (long long)it->k, batch, it->more);
    if (tn_explain(NULL, problem, &decision, &err))
        fail_msg("%s: %s", problem, err.message);
    return decision;
}

/* NULL for one that has no function, or that was not asked. */
static const tn_candidate *modelled(const tn_decision *d, const char *kernel)
{
    for (size_t i = 0; i < tn_decision_count(d); i++) {
        const tn_candidate *c = tn_decision_candidate(d, i);
        if (strcmp(c->kernel, kernel) == 0 && strcmp(c->predicted_by, "cost") == 0)
            return c;
    }
    return NULL;
}

static bool is_own(const tn_candidate *c)
{
    return !c->library[0] && strcmp(c->kernel, "cpu.matmul.ref") != 0;
}

static void compare(const shape *it, const tn_decision *first, const tn_decision *same,
                    const tn_decision *greater)
{
    for (size_t i = 0; i < tn_decision_count(first); i++) {
        const tn_candidate *c = tn_decision_candidate(first, i);
        const tn_candidate *again = modelled(same, c->kernel), *more = modelled(greater, c->kernel);
        if (!c->why && is_own(c))
            assert_string_equal(c->predicted_by, "cost");
        if (strcmp(c->predicted_by, "cost") != 0)
            continue;
        assert_true(c->predicted_us > 0 && c->predicted_us < DBL_MAX);
        assert_true(again && again->predicted_us == c->predicted_us);
        if (!more || more->predicted_us <= c->predicted_us)
            fail_msg("%s of %s m=%lld n=%lld k=%lld%s: %g us, and %g of 4096 times as much",
                     c->kernel, it->dtype, (long long)it->m, (long long)it->n, (long long)it->k,
                     it->more, c->predicted_us, more ? more->predicted_us : 0);
    }
}

static void far_more_work_takes_longer(void **state)
{
    const int count = test_reduced() ? 100 : 1500;
    (void)state;
    for (int i = 0; i < count; i++) {
        const shape it = roll_shape();
        shape greater = it;
        greater.m *= 16;
        greater.n *= 16;
        greater.k *= 16;
        tn_decision *first = explain(&it), *same = explain(&it), *more = explain(&greater);
        compare(&it, first, same, more);
        tn_decision_release(first);
        tn_decision_release(same);
        tn_decision_release(more);
    }
}

/* Nothing of it overflows, and nothing is divided by nothing. */
static void any_size_has_a_cost(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 31, 1 << 20, (int64_t)1 << 34};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    (void)state;
    for (int i = 0; i < SIZES * SIZES * SIZES; i++) {
        const int64_t m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES],
                      k = sizes[i / SIZES / SIZES];
        if ((double)m * (double)n > 0x1p50 || (double)m * (double)k > 0x1p50 ||
            (double)n * (double)k > 0x1p50)
            continue;
        const char *const dtypes[] = {"f32", "f64", "bf16", "i8"};
        for (int t = 0; t < 4; t++) {
            const shape it = {
                .dtype = dtypes[t], .more = t % 2 ? ",tb=1" : "", .m = m, .n = n, .k = k};
            tn_decision *d = explain(&it);
            for (size_t c = 0; c < tn_decision_count(d); c++) {
                const double us = tn_decision_candidate(d, c)->predicted_us;
                assert_true(us >= 0 && us < DBL_MAX);
            }
            tn_decision_release(d);
        }
    }
}

/* Microseconds that a row predicts for one thread of a processor with these features, whichever this one is. */
static double predict(const char *kernel, const shape *it, uint64_t features)
{
    const tni_kernel *found = NULL;
    char problem[160];
    tn_device *device;
    tn_op op;
    tn_error err;
    snprintf(problem, sizeof problem, "matmul:%s:m=%lld,n=%lld,k=%lld%s@cpu:0", it->dtype,
             (long long)it->m, (long long)it->n, (long long)it->k, it->more);
    assert_int_equal(tni_kernel_find(kernel, &found, &err), TN_OK);
    if (tni_question_parse(problem, &op, &device, &err))
        fail_msg("%s: %s", problem, err.message);
    const tn_query query = {
        .struct_size = sizeof query, .op = &op, .cpu_features = features, .threads = 1};
    return found->row->cost(found->row, &query);
}

/* On Arm, OpenBLAS packs small products as it does large ones, and a call of it costs more. */
static void small_products_on_arm_are_ours(void **state)
{
    static const struct {
        int64_t m, n, k;
        bool ours;
    } cases[] = {{1, 1, 1, true},       {4, 4, 4, true},     {8, 8, 8, true},
                 {16, 16, 16, true},    {24, 24, 24, true},  {32, 32, 32, true},
                 {8, 8, 64, true},      {16, 16, 256, true}, {64, 64, 4, true},
                 {64, 1, 64, true},     {4, 64, 64, true},   {256, 256, 256, false},
                 {512, 512, 512, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int t = 0; t < 2; t++) {
            const shape it = {.dtype = t ? "f64" : "f32",
                              .more = "",
                              .m = cases[i].m,
                              .n = cases[i].n,
                              .k = cases[i].k};
            const double own = predict("cpu.matmul." BASE_ISA, &it, TN_CPU_BIT(NEON));
            const double library = predict("cpu.matmul.openblas", &it, TN_CPU_BIT(NEON));
            if ((own < library) != cases[i].ours)
                fail_msg("%s m=%lld n=%lld k=%lld: %g us of our own, %g of OpenBLAS", it.dtype,
                         (long long)it.m, (long long)it.n, (long long)it.k, own, library);
        }
    }
#if defined(__aarch64__)
    const shape tiny = {.dtype = "f32", .more = "", .m = 16, .n = 16, .k = 16};
    tn_decision *d = explain(&tiny);
    assert_string_equal(tn_decision_chosen(d)->kernel, "cpu.matmul." BASE_ISA);
    tn_decision_release(d);
#endif
}

/* What Arm's figures are leaves those of x86 as they were fitted there. */
static void small_products_on_x86_go_by_its_own_figures(void **state)
{
    const uint64_t wide = TN_CPU_BIT(AVX2) | TN_CPU_BIT(AVX512F);
    const shape tiny = {.dtype = "f32", .more = "", .m = 16, .n = 16, .k = 16};
    const shape large = {.dtype = "f64", .more = ",tb=1", .m = 200, .n = 300, .k = 100};
    (void)state;
    assert_true(fabs(predict("cpu.matmul.openblas", &tiny, wide) - 0.224) < 1e-6);
    assert_true(fabs(predict("cpu.matmul.openblas", &large, wide) - 228.72) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_more_work_takes_longer),
        cmocka_unit_test(any_size_has_a_cost),
        cmocka_unit_test(small_products_on_arm_are_ours),
        cmocka_unit_test(small_products_on_x86_go_by_its_own_figures),
    };
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return run_suite("kernels.cpu_matmul_cost", tests);
}
