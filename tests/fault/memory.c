/* Base and os without memory: whichever allocation fails, the call says so, leaves nothing behind
 * and succeeds when it is made again. */
#include "cache_count.h"
#include "fault.h"
#include "rows.h"
#include "scratch.h"

#include "base/alloc.h"
#include "base/form.h"
#include "os/bind.h"
#include "os/cache/cache.h"
#include "os/dl.h"
#include "os/file.h"
#include "os/parallel.h"
#include "os/pool.h"
#include "os/process.h"
#include "os/thread.h"
#include "tenon/tenon.h"

static char scratch[SCRATCH_PATH];

/* An output before the call: what a failing one must leave there. */
static char untouched_;
#define UNTOUCHED ((void *)&untouched_)

/* A call that gives something: it must have on success, and not on failure. */
static tn_status check_given(tn_status status, const void *out)
{
    assert_true(status ? out == UNTOUCHED : out != UNTOUCHED && out != NULL);
    return status;
}

static tn_status given_or_not(char *text)
{
    tni_release(text);
    return text ? TN_OK : TN_OUT_OF_MEMORY;
}

static tn_status names_and_statuses(void)
{
    int32_t level = -1;
    assert_string_equal(tn_status_name(TN_IO), "io");
    assert_non_null(tn_status_meaning(TN_IO));
    assert_string_equal(tn_module_stage_name(TN_STAGE_READY), "ready");
    assert_string_equal(tn_log_level_name(TN_LOG_INFO), "info");
    assert_non_null(tn_version());
    assert_non_null(tn_build_get());
    assert_int_equal(tn_log_level_parse("inof", &level, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_log_level_parse("info", &level, NULL), TN_OK);
    assert_int_equal(tn_allocator_set(&(tn_allocator){0}, NULL), TN_INVALID_ARGUMENT);
    return TN_OK;
}

static void hear(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
}

static tn_status log_set(void)
{
    static const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = hear, .level = TN_LOG_DEBUG};
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    return tn_log_set(NULL, NULL);
}

static tn_status text_copy(void)
{
    return given_or_not(tni_text_copy("text"));
}

static tn_status buffer(void)
{
    tni_buffer text = {0};
    for (int i = 0; i < 100; i++)
        tni_buffer_format(&text, "%d ", i);
    tni_buffer_add(&text, "end");
    bool failed = text.failed;
    char *taken = tni_buffer_detach(&text);
    assert_int_equal(failed, taken == NULL);
    return given_or_not(taken);
}

static tn_status form_parse(void)
{
    static const char text[] = "a = 1\n[s]\nb = \"x\\n\"\nc = \"\"\"\nblock\n\"\"\"\n";
    tni_form *form = UNTOUCHED;
    tn_status status = tni_form_parse(text, sizeof text - 1, "test", &form, NULL);
    check_given(status, form);
    if (!status)
        tni_form_release(form);
    return status;
}

static tn_status form_write(void)
{
    tni_buffer text = {0};
    tn_status status = tni_form_write_section(&text, "section", NULL);
    size_t before = text.length;
    if (!status) {
        status = tni_form_write_entry(&text, "key", "a value # with\nlines\n", NULL);
        if (status)
            assert_int_equal(text.length, before);
    }
    tni_buffer_release(&text);
    return status;
}

static void count_up(void *user, int64_t index)
{
    (void)index;
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* Loops always complete, on whichever threads there are. */
static tn_status parallel_for(void)
{
    _Atomic int sum = 0;
    tni_pool *before = NULL, *ended = NULL;
    assert_int_equal(tni_parallel_threads_set(3, &before, NULL), TN_OK);
    tni_pool_destroy(before);
    tn_parallel_for(100, count_up, &sum);
    assert_int_equal(atomic_load(&sum), 100);
    assert_in_range(tn_parallel_threads(), 1, 3);
    tn_status status = tni_parallel_threads_set(0, &ended, NULL);
    tni_pool_destroy(ended);
    return status;
}

/* Setting their number is a change of a setting: it takes place or it does not. */
static tn_status parallel_threads(void)
{
    tn_status status = tn_parallel_threads_set(3, NULL);
    if (!status)
        assert_int_equal(tn_parallel_threads(), 3);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
    return status;
}

static void engine_for(void *self, int64_t count, tn_task *task, void *user)
{
    (void)self;
    for (int64_t i = 0; i < count; i++)
        task(user, i);
}

static tn_status parallel_engine(void)
{
    static const tn_parallel_engine engine = {
        .struct_size = sizeof engine, .parallel_for = engine_for, .threads = 2};
    _Atomic int sum = 0;
    assert_int_equal(tn_parallel_engine_set(&engine, NULL), TN_OK);
    tn_parallel_for(10, count_up, &sum);
    assert_int_equal(atomic_load(&sum), 10);
    return tn_parallel_engine_set(NULL, NULL);
}

static tn_status pool_create(void)
{
    tni_pool *pool = UNTOUCHED;
    tn_status status = tni_pool_create(2, &pool, NULL);
    check_given(status, pool);
    if (!status)
        tni_pool_destroy(pool);
    return status;
}

static void do_nothing(void *user)
{
    (void)user;
}

static tn_status thread_create(void)
{
    tni_thread thread;
    tn_status status = tni_thread_create(&thread, do_nothing, NULL, NULL);
    if (!status)
        tni_thread_join(thread);
    return status;
}

static tn_status file_read(void)
{
    char *text = UNTOUCHED;
    size_t size = 7;
    tn_status status = tni_file_read("/proc/self/status", 1 << 20, &text, &size, NULL);
    check_given(status, text);
    assert_true(status ? size == 7 : size > 7);
    if (!status)
        tni_release(text);
    return status;
}

static tn_status folder_list(void)
{
    tni_names *names = UNTOUCHED;
    tn_status status = tni_folder_list(FOLDER_OF("willing"), "tenon-", ".so", &names, NULL);
    check_given(status, names);
    if (!status) {
        assert_int_equal(names->count, 1);
        tni_release(names);
    }
    return status;
}

static tn_status path_real(void)
{
    char *path = UNTOUCHED;
    tn_status status = tni_path_real(".", &path, NULL);
    check_given(status, path);
    if (!status)
        tni_release(path);
    return status;
}

static tn_status path_join(void)
{
    return given_or_not(tni_path_join("/folder", "name"));
}

static tn_status path_folder(void)
{
    return given_or_not(tni_path_folder("/folder/name"));
}

static tn_status dl_inspect(void)
{
    tni_elf_facts facts = {.sanitizers = 77};
    tn_status status = tni_dl_inspect(FILE_OF("willing"), &facts, NULL);
    assert_true(status ? facts.sanitizers == 77 : facts.has_entry);
    return status;
}

static tn_status dl_check_headers(void)
{
    return tni_dl_check_headers(FILE_OF("willing"), NULL);
}

static tn_status bind(void)
{
    typedef double function(double);
    struct {
        function *first, *second;
    } table = {0};
    const tn_symbol symbols[] = {{"cos", 0}, {"sin", sizeof(function *)}};
    char *file = UNTOUCHED;
    tn_status status = tni_bind("libnone.so.9|libm.so.6", symbols, 2, NULL, &table, &file, NULL);
    assert_true(status ? !table.first && !table.second : table.first && table.second);
    if (status)
        assert_ptr_equal(file, UNTOUCHED);
    else
        tni_release(file);
    return status;
}

static tn_status bind_without_symbol(void)
{
    void *table[2] = {0};
    const tn_symbol symbols[] = {{"cos", 0}, {"no_such_symbol", sizeof(void *)}};
    tn_status status = tni_bind("libm.so.6", symbols, 2, NULL, table, NULL, NULL);
    assert_null(table[0]);
    return status == TN_INCOMPATIBLE ? TN_OK : status;
}

static tn_status bind_without_library(void)
{
    tn_error err;
    tn_status status = tni_bind("libnone.so.9|libnone.so.8", NULL, 0, NULL, NULL, NULL, &err);
    assert_int_equal(status, err.status);
    return status == TN_UNAVAILABLE ? TN_OK : status;
}

static tn_status process_run(void)
{
    static const char *const arguments[] = {"sh", "-c", "echo answer >&3", NULL};
    tni_buffer answer = {0};
    tni_process_end end = {.exit_code = 77};
    tn_status status =
        tni_process_run("/bin/sh", arguments, INT64_C(20000000000), &answer, &end, NULL);
    if (status)
        assert_int_equal(end.exit_code, 77);
    else
        assert_string_equal(tni_buffer_text(&answer), "answer\n");
    tni_buffer_release(&answer);
    assert_true(fault_childless());
    return status;
}

/* One life of a cache. Whatever fails, the rest goes on; the first failure is the outcome. */
static tn_status cache_in(const char *folder)
{
    tni_cache *cache = UNTOUCHED;
    void *data = UNTOUCHED;
    size_t size = 0;
    uint64_t entries = 7, bytes = 7;
    tn_status status = tni_cache_create(folder, 1 << 20, &cache, NULL);
    if (check_given(status, cache))
        return status;
    status = tni_cache_put(cache, "test", "key", 3, "data", 4, NULL);
    if (!status) {
        status = tni_cache_get(cache, "test", "key", 3, &data, &size, NULL);
        if (!check_given(status, data))
            tni_release(data);
    }
    if (!status)
        status = cache_count(cache, &entries, &bytes, NULL);
    if (!status)
        assert_int_equal(entries, 1);
    if (!status)
        status = tni_cache_prune(cache, 0, NULL);
    if (!status)
        status = tni_cache_remove(cache, "test", "key", 3, NULL);
    tni_cache_release(cache);
    return status;
}

static tn_status cache_in_memory(void)
{
    return cache_in(NULL);
}

static tn_status cache_in_folder(void)
{
    char folder[SCRATCH_PATH + 16];
    snprintf(folder, sizeof folder, "%s/cache", scratch);
    return cache_in(folder);
}

static tn_status cache_default_folder(void)
{
    tni_buffer folder = {0};
    const char *reason = NULL;
    bool known = tni_cache_default_folder(&folder, &reason);
    bool failed = folder.failed;
    tni_buffer_release(&folder);
    assert_true(known || failed || reason);
    return failed ? TN_OUT_OF_MEMORY : TN_OK;
}

struct step {
    const char *name;
    tn_status (*run)(void);
    enum { NEEDS, TOLERATES, NEEDS_NONE } memory; /* whether want of it is an error */
};

static const struct step steps[] = {
    {"names and statuses", names_and_statuses, NEEDS_NONE},
    {"tn_log_set", log_set, NEEDS_NONE},
    {"tn_parallel_for", parallel_for, TOLERATES},
    {"tn_parallel_threads_set", parallel_threads, TOLERATES},
    {"tn_parallel_engine_set", parallel_engine, NEEDS_NONE},
    {"tni_text_copy", text_copy, NEEDS},
    {"tni_buffer", buffer, NEEDS},
    {"tni_form_parse", form_parse, NEEDS},
    {"tni_form_write", form_write, NEEDS},
    {"tni_pool_create", pool_create, NEEDS},
    {"tni_thread_create", thread_create, NEEDS_NONE},
    {"tni_file_read", file_read, NEEDS},
    {"tni_folder_list", folder_list, NEEDS},
    {"tni_path_real", path_real, NEEDS},
    {"tni_path_join", path_join, NEEDS},
    {"tni_path_folder", path_folder, NEEDS},
    {"tni_dl_inspect", dl_inspect, NEEDS},
    {"tni_dl_check_headers", dl_check_headers, NEEDS},
    {"tni_bind", bind, TOLERATES},
    {"tni_bind without a symbol", bind_without_symbol, TOLERATES},
    {"tni_bind without a library", bind_without_library, NEEDS},
    {"tni_process_run", process_run, NEEDS},
    {"tni_cache in memory", cache_in_memory, NEEDS},
    {"tni_cache in a folder", cache_in_folder, NEEDS},
    {"tni_cache_default_folder", cache_default_folder, NEEDS},
};

/* Runs the step with the n-th allocation failing; false when it does not make so many. */
static bool survive(const struct step *step, long n, bool rest)
{
    struct fault_state before = fault_look();
    fault_arm(&fault_memory, n, rest, 0);
    tn_status status = step->run();
    bool fired = fault_end(&fault_memory);
    if (fault_left(before, step->name, n))
        fail();
    if (status != (fired && step->memory == NEEDS ? TN_OUT_OF_MEMORY : TN_OK) &&
        !(fired && step->memory == TOLERATES && status == TN_OUT_OF_MEMORY))
        fail_msg("%s, allocation %ld%s: %s", step->name, n, rest ? " and all after it" : "",
                 tn_status_name(status));
    if (step->run() != TN_OK)
        fail_msg("%s does not recover from allocation %ld", step->name, n);
    if (fault_left(before, step->name, n))
        fail();
    return fired;
}

static void every_call_survives_every_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        long n = 1;
        print_message("%s\n", steps[i].name);
        assert_int_equal(steps[i].run(), TN_OK); /* what is made once is made now */
        while (survive(&steps[i], n, false) && survive(&steps[i], n, true))
            n++;
        if ((n > 1) != (steps[i].memory != NEEDS_NONE))
            fail_msg("%s: %ld allocations failed", steps[i].name, n - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_every_allocation),
    };
    fault_memory_install();
    scratch_make(scratch);
    int failed = run_suite("fault.memory", tests);
    scratch_remove(scratch);
    return failed;
}
