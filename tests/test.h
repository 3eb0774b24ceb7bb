/* The test framework as the suites use it: cmocka where it is installed, and otherwise the part of
 * it that is used here, so that a compiler and CMake alone can also run the tests.
 *
 * A suite is one program: functions `static void name(void **state)`, a table, and
 *     int main(void) { return run_suite("unit.buffer", tests); }
 */
#ifndef TENON_TEST_H
#define TENON_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(TENON_HAVE_CMOCKA)

#include <cmocka.h>
#define run_suite(name, tests) cmocka_run_group_tests_name(name, tests, NULL, NULL)

#else

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);
struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func;
    CMFixtureFunction teardown_func;
};
#define cmocka_unit_test_setup_teardown(f, before, after) \
    {                                                     \
#f, f, before, after                              \
    }
#define cmocka_unit_test(f) cmocka_unit_test_setup_teardown(f, NULL, NULL)

static jmp_buf test_escape_;
enum { TEST_FAILED_ = 1, TEST_SKIPPED_ = 2 };

static inline void test_fail_(const char *text, const char *file, int line)
{
    printf("%s:%d: error: %s\n", file, line, text);
    longjmp(test_escape_, TEST_FAILED_);
}

static inline void test_fail_numbers_(const char *text, unsigned long long a, unsigned long long b,
                                      const char *file, int line)
{
    printf("%s:%d: error: %s: %lld (%#llx) and %lld (%#llx)\n", file, line, text, (long long)a, a,
           (long long)b, b);
    longjmp(test_escape_, TEST_FAILED_);
}

static inline void test_text_(const char *a, const char *b, int equal, const char *file, int line)
{
    if (!a || !b || (strcmp(a, b) == 0) != equal) {
        printf("%s:%d: error: \"%s\" %s \"%s\"\n", file, line, a ? a : "(null)",
               equal ? "!=" : "==", b ? b : "(null)");
        longjmp(test_escape_, TEST_FAILED_);
    }
}

#define test_number_(a, op, b)                                                         \
    do {                                                                               \
        unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b); \
        if (!(a_ op b_))                                                               \
            test_fail_numbers_(#a " " #op " " #b, a_, b_, __FILE__, __LINE__);         \
    } while (0)

#define assert_true(c)                          \
    do {                                        \
        if (!(c))                               \
            test_fail_(#c, __FILE__, __LINE__); \
    } while (0)
#define assert_false(c)               assert_true(!(c))
#define assert_null(p)                assert_true((p) == NULL)
#define assert_non_null(p)            assert_true((p) != NULL)
#define assert_ptr_equal(a, b)        assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b)    assert_true((const void *)(a) != (const void *)(b))
#define assert_int_equal(a, b)        test_number_(a, ==, b)
#define assert_int_not_equal(a, b)    test_number_(a, !=, b)
#define assert_string_equal(a, b)     test_text_(a, b, 1, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) test_text_(a, b, 0, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n)  assert_true(memcmp(a, b, n) == 0)
#define assert_in_range(v, low, high) \
    do {                              \
        test_number_(v, >=, low);     \
        test_number_(v, <=, high);    \
    } while (0)
#define fail() test_fail_("fail()", __FILE__, __LINE__)
#define fail_msg(...)                                 \
    do {                                              \
        printf(__VA_ARGS__);                          \
        printf("\n");                                 \
        test_fail_("fail_msg()", __FILE__, __LINE__); \
    } while (0)
#define skip()                 longjmp(test_escape_, TEST_SKIPPED_)
#define print_message(...)     printf(__VA_ARGS__)

static inline int test_run_all_(const char *suite, const struct CMUnitTest *tests, size_t count)
{
    volatile int failed = 0, skipped = 0;
    printf("[==========] %s: Running %zu test(s).\n", suite, count);
    for (volatile size_t i = 0; i < count; i++) {
        static void *state; /* that a jump leaves as it is */
        state = NULL;
        int outcome = setjmp(test_escape_);
        if (outcome == 0) {
            if (tests[i].setup_func && tests[i].setup_func(&state) != 0)
                fail_msg("%s: not set up", tests[i].name);
            tests[i].test_func(&state);
        }
        if (tests[i].teardown_func)
            (void)tests[i].teardown_func(&state);
        failed += outcome == TEST_FAILED_;
        skipped += outcome == TEST_SKIPPED_;
        printf("[ %s ] %s\n",
               outcome == 0               ? "      OK"
               : outcome == TEST_SKIPPED_ ? " SKIPPED"
                                          : "  FAILED",
               tests[i].name);
        fflush(stdout);
    }
    printf("[  PASSED  ] %d test(s).\n", (int)count - failed - skipped);
    return failed;
}
#define run_suite(name, tests) test_run_all_(name, tests, sizeof(tests) / sizeof((tests)[0]))

#endif

/* Says why before a test is skipped, so that no skip is silent. */
#define skip_because(...)                       \
    do {                                        \
        print_message("skipped: " __VA_ARGS__); \
        print_message("\n");                    \
        skip();                                 \
    } while (0)

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_ADDRESS_SANITIZER 1
#endif

/* Skips a test that forks while other threads allocate. The address sanitizer's allocator is not safe for
 * that: the child may wait for ever for a lock that such a thread held. */
#if defined(TEST_ADDRESS_SANITIZER)
#define skip_unless_fork_is_safe() \
    skip_because("the address sanitizer's allocator keeps locks that others held at a fork")
#else
#define skip_unless_fork_is_safe() (void)0
#endif

/* True when `text` contains `part`; prints both when it does not. */
static inline int test_contains_(const char *text, const char *part)
{
    if (text && strstr(text, part))
        return 1;
    print_message("\"%s\" does not contain \"%s\"\n", text ? text : "(null)", part);
    return 0;
}
#define assert_contains(text, part) assert_true(test_contains_(text, part))

/* Seconds after which the alarm of a child process ends it, should it hang. A slow or busy machine must
 * never reach this. */
enum { TEST_HANG_SECONDS = 600 };

/* Returns whether the environment variable `name` is set to 1. */
static inline int test_flag_(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '1';
}

/* Sanitizer builds and emulators set this: heavy suites then use fewer and smaller cases. */
static inline int test_reduced(void)
{
    return test_flag_("TN_TEST_REDUCED");
}

/* `make test-full` sets this: suites that sample their cases in `make test` then run all of them. */
static inline int test_full(void)
{
    return test_flag_("TN_TEST_FULL");
}

/* Sanitizer builds in `make test`: the fewest cases that still reach every path. */
static inline int test_fewest(void)
{
    return test_reduced() && !test_full();
}

/* Returns the seed of this run: TN_TEST_SEED if that is set, otherwise a new one for each process.
 * The first call prints it, so that a failure can be repeated. */
static inline uint64_t test_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *given = getenv("TN_TEST_SEED");
        struct timespec now = {0};
        (void)timespec_get(&now, TIME_UTC);
        seed = given ? strtoull(given, NULL, 0)
                     : (uint64_t)now.tv_sec * 1000003 ^ (uint64_t)now.tv_nsec;
        seed += seed == 0;
        print_message("TN_TEST_SEED=%llu\n", (unsigned long long)seed);
    }
    return seed;
}

/* Returns whether case `index` belongs to this run: always in a full run, otherwise one in `one_in`,
 * chosen by the seed; eight times as many in a full run of a sanitizer build. Over many runs every case has its turn. */
static inline int test_sampled(uint64_t index, uint64_t one_in)
{
    const int all = test_full() && !test_reduced();
    uint64_t mixed = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ test_seed();
    mixed = (mixed ^ mixed >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    one_in = test_full() ? one_in / 8 : one_in;
    return all || one_in <= 1 || (mixed ^ mixed >> 29) % one_in == 0;
}

#endif
