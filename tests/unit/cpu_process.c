/* What a vendor's library finds in the process: a variable for one call, others who use it. */
#include "test.h"

#include "../../backends/cpu/cpu_process.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <unistd.h>

#define NAME  "TENON_TEST_VARIABLE"
#define ENTRY NAME "=seen"

static size_t count_variables(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

static void look(void *user)
{
    const char *value = getenv(NAME), *path = getenv("PATH");
    *(bool *)user = value && strcmp(value, "seen") == 0 && path;
}

static void a_variable_is_there_for_one_call(void **state)
{
    size_t before = count_variables();
    bool seen = false;
    (void)state;
    setenv("TENON_TEST_OTHER", "stays", 1);
    assert_true(tni_cpu_call_with(ENTRY, look, &seen));
    assert_true(seen);
    assert_null(getenv(NAME));
    assert_string_equal(getenv("TENON_TEST_OTHER"), "stays");
    assert_int_equal(count_variables(), before + 1);
    unsetenv("TENON_TEST_OTHER");
    assert_int_equal(count_variables(), before);
}

/* What the called one, or another thread, changes meanwhile is kept. */
static void change(void *user)
{
    (void)user;
    setenv("TENON_TEST_OLD", "new", 1);
    unsetenv("TENON_TEST_GONE");
}

static void add(void *user)
{
    (void)user;
    setenv("TENON_TEST_MORE", "more", 1);
}

static void changes_of_others_are_kept(void **state)
{
    (void)state;
    setenv("TENON_TEST_OLD", "old", 1);
    setenv("TENON_TEST_GONE", "here", 1);
    assert_true(tni_cpu_call_with(ENTRY, change, NULL));
    assert_string_equal(getenv("TENON_TEST_OLD"), "new");
    assert_null(getenv("TENON_TEST_GONE"));
    assert_null(getenv(NAME));
    assert_true(tni_cpu_call_with(ENTRY, add, NULL));
    assert_string_equal(getenv("TENON_TEST_MORE"), "more");
    assert_null(getenv(NAME));
    unsetenv("TENON_TEST_OLD");
    unsetenv("TENON_TEST_MORE");
}

static void works_without_any_variable(void **state)
{
    char **all = environ, *none[] = {NULL};
    bool seen = false;
    (void)state;
    environ = NULL;
    assert_true(tni_cpu_call_with(ENTRY, look, &seen));
    assert_int_equal(count_variables(), 0);
    environ = none;
    assert_true(tni_cpu_call_with(ENTRY, look, &seen));
    assert_int_equal(count_variables(), 0);
    environ = all;
}

static _Atomic bool done, lost;

static void read_on(void *user)
{
    (void)user;
    while (!atomic_load(&done)) {
        if (!getenv("PATH") || getenv("TENON_TEST_NEVER"))
            atomic_store(&lost, true);
    }
}

static void readers_are_not_disturbed(void **state)
{
    tni_thread thread;
    bool seen = false;
    (void)state;
    assert_int_equal(tni_thread_create(&thread, read_on, NULL, NULL), TN_OK);
    for (int i = 0; i < 1000; i++)
        assert_true(tni_cpu_call_with(ENTRY, look, &seen));
    atomic_store(&done, true);
    tni_thread_join(thread);
    assert_false(lost);
}

static void libraries_of_the_process_are_known(void **state)
{
    (void)state;
    assert_true(tni_cpu_process_has("libnowhere.so.7|libc.so.6"));
    assert_false(tni_cpu_process_has("libnowhere.so.7|libnowhere.so.6"));
}

static void levels_are_read(void **state)
{
    static const struct {
        const char *text;
        int32_t level;
    } cases[] = {{"", 0}, {"0", 0}, {"1", 1}, {"2", 2}, {"dispatch", 1}};
    (void)state;
    assert_int_equal(tni_cpu_variable_level(NAME), 0);
    assert_false(tni_cpu_variable_is_set(NAME));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv(NAME, cases[i].text, 1);
        assert_int_equal(tni_cpu_variable_level(NAME), cases[i].level);
        assert_true(tni_cpu_variable_is_set(NAME));
    }
    unsetenv(NAME);
}

static void features_are_whole_words(void **state)
{
    const tn_machine_facts facts = {.features = "sse2,avx,avx512f"};
    (void)state;
    assert_true(tni_cpu_machine_has(&facts, "avx"));
    assert_true(tni_cpu_machine_has(&facts, "avx512f,sse2"));
    assert_true(tni_cpu_machine_has(&facts, ""));
    assert_false(tni_cpu_machine_has(&facts, "avx2"));
    assert_false(tni_cpu_machine_has(&facts, "avx5"));
    assert_false(tni_cpu_machine_has(&facts, "avx,avx2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_is_there_for_one_call),
        cmocka_unit_test(changes_of_others_are_kept),
        cmocka_unit_test(works_without_any_variable),
        cmocka_unit_test(readers_are_not_disturbed),
        cmocka_unit_test(libraries_of_the_process_are_known),
        cmocka_unit_test(levels_are_read),
        cmocka_unit_test(features_are_whole_words),
    };
    return run_suite("unit.cpu_process", tests);
}
