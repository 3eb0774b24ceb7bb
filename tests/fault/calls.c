/* Loader and cache over a system that fails: whichever system call fails, and however, discovery
 * ends with rows or with a clean error, leaves no descriptor, block or child behind, and remembers
 * nothing that is wrong: the next registry loads everything. */
#include "fault.h"
#include "rows.h"
#include "scratch.h"

#include "registry/registry.h"

static char scratch[SCRATCH_PATH];

static const char all_rows[] = "cpu ready ok; ref ready ok; willing ready ok; wary ready ok; ";

static void fresh_cache(char out[SCRATCH_PATH + 32])
{
    static int number;
    snprintf(out, SCRATCH_PATH + 32, "%s/cache-%d", scratch, ++number);
}

static tn_status create(const char *cache_folder, tni_registry **out, tn_error *err)
{
    static const char *const shipped[] = {"tenon-willing.so", NULL};
    const tni_registry_params params = {
        .builtins = tni_builtins,
        .module_folder = FOLDER_OF("willing"),
        .shipped = shipped,
        .search_path = FOLDER_OF("wary"),
        .probe = TENON_TEST_PROBE,
        .probe_limit_ns = INT64_C(30000000000),
        .cache_folder = cache_folder,
    };
    return tni_registry_create(&params, out, err);
}

/* Want of memory or descriptors: the module or place that met it is tried again. */
static bool is_not_now(tn_status status)
{
    return status == TN_OUT_OF_MEMORY || status == TN_BUSY;
}

/* One life of a registry over a cache folder. The rows it came to, or "" after an error, which is
 * want of memory or descriptors and has words. */
static void live(const char *folder, char rows[ROWS_TEXT])
{
    tni_registry *registry = NULL;
    tn_module_list *list = NULL;
    tn_error err = {0};
    rows[0] = '\0';
    tn_status status = create(folder, &registry, &err);
    if (!status)
        status = tni_registry_list(registry, &list, &err);
    if (status) {
        assert_true(is_not_now(status));
        assert_int_equal(err.status, status);
        assert_int_not_equal(err.message[0], '\0');
    } else {
        rows_write(list, rows);
        tn_module_list_release(list);
    }
    tni_registry_destroy(registry);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

/* The n-th call fails with `code`; true when there was one. */
static bool survive(long n, int code, bool warm)
{
    char folder[SCRATCH_PATH + 32], rows[ROWS_TEXT], again[ROWS_TEXT];
    fresh_cache(folder);
    if (warm)
        live(folder, rows);
    struct fault_state before = fault_look();
    fault_arm(&fault_call, n, false, code);
    live(folder, rows);
    bool fired = fault_end(&fault_call);
    if (fault_left(before, fired ? fault_call.call : "no fault", n))
        fail();
    assert_true(fault_childless());
    if (rows[0])
        assert_contains(rows, "ref ready ok; ");
    if (!fired)
        assert_string_equal(rows, all_rows);
    live(folder, again);
    if (strcmp(again, all_rows) != 0)
        fail_msg("after call %ld (%s) failed with error %d:\n%sand then\n%s", n,
                 fired ? fault_call.call : "none", code, rows, again);
    return fired;
}

static const int codes[] = {EIO, ENOMEM, EACCES, EMFILE};

/* Under the sanitizers, where children are slow, each call fails with one of them. */
static void survive_every_call(bool warm)
{
    enum { CODES = sizeof codes / sizeof codes[0] };
    long n = 1;
    for (bool fired = true; fired; n++) {
        if (test_reduced()) {
            fired = !test_sampled((uint64_t)n, 4) || survive(n, codes[n % CODES], warm);
            continue;
        }
        for (size_t i = 0; i < CODES; i++) {
            if (test_sampled((uint64_t)n * CODES + i, 8))
                fired = survive(n, codes[i], warm);
        }
    }
    assert_true(n > 20);
}

static void discovery_survives_every_call(void **state)
{
    (void)state;
    survive_every_call(false);
}

static void discovery_with_verdicts_survives_every_call(void **state)
{
    (void)state;
    survive_every_call(true);
}

/* Exit codes of a child that uses the process's own registry. */
enum { NO_FAULT = 10, RECOVERED, NO_ROWS, NO_RECOVERY, LEFT_CHILD };

static bool lists(tn_error *err, bool *out_complete)
{
    char rows[ROWS_TEXT] = "";
    tn_module_list *list = NULL;
    if (tn_module_list_create(&list, err) != TN_OK)
        return is_not_now(err->status) && err->message[0];
    rows_write(list, rows);
    tn_module_list_release(list);
    *out_complete = strstr(rows, "wary ready ok; ") != NULL;
    if (!*out_complete)
        print_message("not complete: %s\n", rows);
    return strstr(rows, "ref ready ok; ") != NULL;
}

static int use_process(long n, int code)
{
    tn_error err = {0};
    bool complete = false;
    fault_arm(&fault_call, n, false, code);
    if (!lists(&err, &complete))
        return NO_ROWS;
    bool fired = fault_end(&fault_call);
    if (!fault_childless())
        return LEFT_CHILD;
    bool lasts = fired && (code == EIO || code == EACCES); /* such a fault may be a row for good */
    if (!lists(&err, &complete) || (!lasts && !complete))
        return NO_RECOVERY;
    return fired ? RECOVERED : NO_FAULT;
}

static int ask(long n, int code)
{
    int status = -1;
    char folder[SCRATCH_PATH + 32];
    fresh_cache(folder);
    assert_int_equal(setenv("TENON_CACHE", folder, 1), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(TEST_HANG_SECONDS);
        int outcome = use_process(n, code);
        (void)fflush(NULL); /* what it said of rows that are not there */
        _exit(outcome);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_process_survives_every_call(void **state)
{
    int outcome = RECOVERED;
    long n = 1;
    (void)state;
    assert_int_equal(setenv("TENON_MODULE_PATH", FOLDER_OF("wary"), 1), 0);
    for (; outcome == RECOVERED; n++) {
        if (test_sampled((uint64_t)n, 4))
            outcome = ask(n, codes[n % 4]);
    }
    if (outcome != NO_FAULT)
        fail_msg("call %ld fails: the process ended with %d", n - 1, outcome);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_survives_every_call),
        cmocka_unit_test(discovery_survives_every_call),
        cmocka_unit_test(discovery_with_verdicts_survives_every_call),
    };
    fault_calls_install();
    scratch_make(scratch);
    int failed = run_suite("fault.calls", tests);
    scratch_remove(scratch);
    return failed;
}
