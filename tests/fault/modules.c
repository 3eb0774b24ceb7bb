/* Finding and loading modules without memory: whichever allocation fails, the call says so, nothing
 * is lost, and the same call made again ends where it would have ended. */
#include "fault.h"
#include "rows.h"
#include "scratch.h"

#include "registry/registry.h"

static char scratch[SCRATCH_PATH];

/* A cache folder that no earlier run has seen. */
static void fresh_cache(char out[SCRATCH_PATH + 32])
{
    static int number;
    snprintf(out, SCRATCH_PATH + 32, "%s/cache-%d", scratch, ++number);
}

/* Makes a call, and again without the fault when it failed for want of memory. */
#define PERSIST(call)                                       \
    do {                                                    \
        if ((call) != TN_OK) {                              \
            assert_true(fault_end(&fault_memory));          \
            assert_int_equal(err.status, TN_OUT_OF_MEMORY); \
            assert_int_equal(call, TN_OK);                  \
        }                                                   \
    } while (0)

static tni_registry *create_registry(const char *cache_folder)
{
    static const char *const shipped[] = {"tenon-willing.so", NULL};
    const tni_registry_params params = {
        .builtins = tni_builtins,
        .module_folder = FOLDER_OF("willing"),
        .shipped = shipped,
        .search_path = FOLDER_OF("wary") ":/proc/none",
        .probe = TENON_TEST_PROBE,
        .probe_limit_ns = INT64_C(30000000000),
        .cache_folder = cache_folder,
    };
    static char untouched;
    tni_registry *registry = (void *)&untouched;
    tn_error err;
    if (tni_registry_create(&params, &registry, &err) != TN_OK) {
        assert_ptr_equal(registry, &untouched);
        assert_true(fault_end(&fault_memory));
        assert_int_equal(tni_registry_create(&params, &registry, &err), TN_OK);
    }
    return registry;
}

/* One life of a registry, and the rows it came to; true when the n-th allocation was made. */
static bool live(long n, bool rest, char rows[ROWS_TEXT])
{
    char folder[SCRATCH_PATH + 32];
    tn_module_list *list = NULL;
    tn_error err = {0};
    fresh_cache(folder);
    struct fault_state before = fault_look();
    fault_arm(&fault_memory, n, rest, 0);

    tni_registry *registry = create_registry(folder);
    PERSIST(tni_registry_add(registry, FILE_OF("early"), false, TN_MODULE_TRUSTED, &err));
    PERSIST(tni_registry_discover(registry, &err));
    PERSIST(tni_registry_add(registry, FOLDER_OF("late"), true, TN_MODULE_TRUSTED, &err));
    PERSIST(tni_registry_list(registry, &list, &err));
    bool fired = fault_end(&fault_memory);
    rows_write(list, rows);
    tn_module_list_release(list);
    tni_registry_destroy(registry);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK); /* ends the pool that probes used */
    if (fault_left(before, "a registry", n))
        fail();
    assert_true(fault_childless());
    return fired;
}

static const char all_rows[] =
    "cpu ready ok; ref ready ok; early ready ok; willing ready ok; wary ready ok; "
    "late ready ok; ";

static void a_registry_survives_every_allocation(void **state)
{
    char rows[ROWS_TEXT];
    long n = 1;
    (void)state;
    assert_false(live(0, false, rows));
    assert_string_equal(rows, all_rows);
    for (bool fired = true; fired; n++) {
        if (!test_sampled((uint64_t)n, 4))
            continue;
        fired = live(n, false, rows);
        assert_string_equal(rows, all_rows);
        if (fired && !test_reduced())
            fired = live(n, true, rows);
        assert_string_equal(rows, all_rows);
    }
    assert_true(n > 50);
}

/* Want of memory in a module is its row, not the end of discovery. */
static void a_module_without_memory_stops_alone(void **state)
{
    static const char *const shipped[] = {"tenon-starved.so", NULL};
    tni_registry_params params = {.module_folder = FOLDER_OF("starved"),
                                  .shipped = shipped,
                                  .search_path = FOLDER_OF("wary"),
                                  .probe = TENON_TEST_PROBE,
                                  .probe_limit_ns = INT64_C(30000000000)};
    (void)state;
    for (int trusted = 0; trusted < 2; trusted++) {
        tni_registry *registry = NULL;
        tn_module_list *list = NULL;
        tn_error err = {0};
        params.shipped = trusted ? shipped : NULL;
        assert_int_equal(tni_registry_create(&params, &registry, NULL), TN_OK);
        if (tni_registry_list(registry, &list, &err) != TN_OK)
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(tn_module_list_count(list), 2);
        assert_string_equal(tn_module_list_get(list, 0)->name, "starved");
        assert_int_equal(tn_module_list_get(list, 0)->status, TN_OUT_OF_MEMORY);
        assert_contains(tn_module_list_get(list, 0)->message, "the device's memory is full");
        assert_int_equal(tn_module_list_get(list, 1)->stage, TN_STAGE_READY);
        tn_module_list_release(list);
        tni_registry_destroy(registry);
    }
}

/* What a child process tells of its one life with the public calls. */
struct story {
    bool fired;
    int64_t blocks;
    int descriptors;
    char fault[128]; /* what went wrong, or "" */
    char rows[ROWS_TEXT];
};

static void note(struct story *story, bool right, const char *text)
{
    if (!right && !story->fault[0])
        tn_text_fit(story->fault, sizeof story->fault, text);
}

/* As assertions and PERSIST, in a child, where a test framework has no business. */
#define NOTE(condition) note(story, condition, #condition)
#define NOTE_PERSIST(call)                        \
    do {                                          \
        if ((call) != TN_OK) {                    \
            NOTE(fault_end(&fault_memory));       \
            NOTE(err.status == TN_OUT_OF_MEMORY); \
            note(story, (call) == TN_OK, #call);  \
        }                                         \
    } while (0)

static void tell(struct story *story, long n, bool rest)
{
    static char untouched;
    tn_module_list *list = (void *)&untouched;
    tn_error err = {0};
    fault_arm(&fault_memory, n, rest, 0);
    NOTE_PERSIST(tn_module_verdicts_ignore(&err));
    NOTE_PERSIST(tn_module_file_add(FILE_OF("early"), TN_MODULE_TRUSTED, &err));
    NOTE_PERSIST(tn_module_discover(&err));
    NOTE_PERSIST(tn_module_folder_add(FOLDER_OF("late"), TN_MODULE_TRUSTED, &err));
    if (tn_module_list_create(&list, &err) != TN_OK) {
        NOTE(fault_end(&fault_memory));
        NOTE((char *)list == &untouched);
        NOTE_PERSIST(tn_module_list_create(&list, &err));
    }
    story->fired = fault_end(&fault_memory);
    NOTE(tn_module_generation() == tn_module_list_count(list));
    rows_write(list, story->rows);
    tn_module_list_release(list);
    NOTE(tn_parallel_threads_set(0, NULL) == TN_OK);
    NOTE(fault_childless());
    story->blocks = tn_allocator_blocks();
    story->descriptors = fault_descriptors();
}

/* Runs `tell` in a child: the registry of a process lives as long as it does. */
static void ask(long n, bool rest, struct story *out)
{
    int ends[2], status = -1;
    char folder[SCRATCH_PATH + 32];
    fresh_cache(folder);
    assert_int_equal(setenv("TENON_CACHE", folder, 1), 0);
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct story story = {0};
        (void)alarm(TEST_HANG_SECONDS);
        tell(&story, n, rest);
        _exit(write(ends[1], &story, sizeof story) == (ssize_t)sizeof story ? 0 : 1);
    }
    (void)close(ends[1]);
    ssize_t count = read(ends[0], out, sizeof *out);
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0 || count != (ssize_t)sizeof *out)
        fail_msg("allocation %ld%s: the process ended with %#x", n, rest ? " and all after it" : "",
                 (unsigned)status);
}

static void check_story(const struct story *story, const struct story *clean, long n)
{
    if (story->fault[0])
        fail_msg("allocation %ld: %s", n, story->fault);
    assert_string_equal(story->rows, clean->rows);
    /* Fewer where it does without a cache, which is allowed to it. */
    if (story->blocks > clean->blocks || story->descriptors > clean->descriptors)
        fail_msg("allocation %ld: %lld blocks and %d descriptors are left, not %lld and %d", n,
                 (long long)story->blocks, story->descriptors, (long long)clean->blocks,
                 clean->descriptors);
}

static void a_process_survives_every_allocation(void **state)
{
    struct story clean, story;
    long n = 1;
    (void)state;
    assert_int_equal(tn_allocator_blocks(), 0);
    assert_int_equal(setenv("TENON_MODULE_PATH", FOLDER_OF("wary"), 1), 0);
    ask(0, false, &clean);
    assert_string_equal(clean.fault, "");
    assert_contains(clean.rows, "cpu ready ok; ref ready ok; early ready ok; ");
    assert_contains(clean.rows, "wary ready ok; late ready ok; ");
#if defined(TENON_TEST_DESCRIBED)
    assert_contains(clean.rows, "described ready ok; ");
#endif
    for (story.fired = true; story.fired; n++) {
        if (!test_sampled((uint64_t)n, 4))
            continue;
        ask(n, false, &story);
        check_story(&story, &clean, n);
        if (story.fired && !test_reduced()) {
            ask(n, true, &story);
            check_story(&story, &clean, n);
        }
    }
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_survives_every_allocation),
        cmocka_unit_test(a_registry_survives_every_allocation),
        cmocka_unit_test(a_module_without_memory_stops_alone),
    };
    fault_memory_install();
    scratch_make(scratch);
    int failed = run_suite("fault.modules", tests);
    scratch_remove(scratch);
    return failed;
}
