/* A cache's entries as files: damage, order of use, strangers' files, and what a failing system
 * call leaves behind. For POSIX systems. */
#include "cache_scratch.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

static void set_age(const char *path, int64_t seconds)
{
    struct timespec when = {.tv_sec = time(NULL) - (time_t)seconds};
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){when, when}, 0), 0);
}

static int64_t age_of(const char *path)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return (int64_t)time(NULL) - (int64_t)facts.st_mtim.tv_sec;
}

static int temporary_files;

static int count_temporary(const char *path, const struct stat *facts, int type, struct FTW *at)
{
    (void)facts;
    (void)type;
    temporary_files += path[at->base] == '.';
    return 0;
}

static void assert_no_temporary_files(void)
{
    temporary_files = 0;
    assert_int_equal(nftw(folder, count_temporary, 16, FTW_PHYS), 0);
    assert_int_equal(temporary_files, 0);
}

/* The system takes the first part of a file and no more. */
static void test_file_cut_by_system(void **state)
{
    (void)state;
    struct rlimit before, small;
    char data[HEADER] = {0};
    tn_error err;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = HEADER + 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tn_status status = tni_cache_put(cache, "test", "a", 1, data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, TN_IO);
    assert_int_equal(err.native_code, EFBIG);
    assert_no_temporary_files();
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    tni_cache_release(cache);
    end();
}

static void test_disk_full(void **state)
{
    (void)state;
    tn_error err;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    fail_calls("write", ENOSPC);
    assert_int_equal(put(cache, "a", "two", &err), TN_IO);
    fail_calls(NULL, 0);
    assert_int_equal(err.native_code, ENOSPC);
    assert_contains(err.message, "No space left on device in the cache folder");
    assert_no_temporary_files();
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    tni_cache_release(cache);
    end();
}

static void assert_damage_found(tni_cache *cache, const char *what)
{
    const char *path = file_of("a");
    tn_error err;
    if (get(cache, "a", &err) != TN_NOT_FOUND)
        fail_msg("not noticed: %s", what);
    assert_contains(err.message, "no test with the key ");
    assert_false(exists(path));
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    assert_int_equal(get(cache, "a", NULL), TN_OK);
}

/* Every byte of an entry's file matters, and so does their number. */
static void test_damaged_entry(void **state)
{
    (void)state;
    const char *path;
    char what[32], byte;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    path = file_of("a");
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    for (off_t i = 0; i < HEADER + 3; i++) {
        int file = open(path, O_RDWR);
        assert_int_equal(pread(file, &byte, 1, i), 1);
        byte = (char)(byte ^ 0x10);
        assert_int_equal(pwrite(file, &byte, 1, i), 1);
        assert_int_equal(close(file), 0);
        snprintf(what, sizeof what, "byte %lld", (long long)i);
        assert_damage_found(cache, what);
    }
    for (off_t length = 0; length < HEADER + 6; length++) {
        if (length == HEADER + 3)
            continue;
        assert_int_equal(truncate(path, length), 0);
        snprintf(what, sizeof what, "length %lld", (long long)length);
        assert_damage_found(cache, what);
    }
    tni_cache_release(cache);
    end();
}

/* A sound entry under another's name, a link to it and a pipe are not that entry. */
static void test_false_entry(void **state)
{
    (void)state;
    char other[sizeof folder + 80];
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL) || put(cache, "b", "one", NULL), 0);
    snprintf(other, sizeof other, "%s", file_of("b"));
    assert_int_equal(rename(other, file_of("a")), 0);
    assert_damage_found(cache, "another's file");
    assert_int_equal(rename(file_of("a"), other), 0);
    assert_int_equal(symlink(other, file_of("a")), 0);
    assert_damage_found(cache, "a link");
    assert_int_equal(unlink(file_of("a")), 0);
    assert_int_equal(mkfifo(file_of("a"), 0600), 0);
    assert_damage_found(cache, "a pipe");
    assert_int_equal(unlink(file_of("a")), 0);
    assert_int_equal(mkdir(file_of("a"), 0700), 0);
    assert_int_equal(get(cache, "a", NULL), TN_NOT_FOUND);
    tni_cache_release(cache);
    end();
}

/* The file's time is that of the last use, refreshed when it is older than a minute. */
static void test_least_recently_used(void **state)
{
    (void)state;
    const char *const keys[] = {"a", "b", "c", "d"};
    begin();
    tni_cache *cache = create_in_folder(4 * (HEADER + 3));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(put(cache, keys[i], "one", NULL), TN_OK);
        set_age(file_of(keys[i]), 1000 - 100 * i);
    }
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    assert_in_range(age_of(file_of("a")), 0, 60);
    set_age(file_of("b"), 30);
    assert_int_equal(get(cache, "b", NULL), TN_OK);
    assert_in_range(age_of(file_of("b")), 30, 60);
    set_age(file_of("b"), -1000);
    assert_int_equal(get(cache, "b", NULL), TN_OK);
    assert_in_range(age_of(file_of("b")), 0, 60);
    assert_int_equal(put(cache, "e", "one", NULL), TN_OK);
    assert_int_equal(get(cache, "c", NULL), TN_NOT_FOUND);
    assert_int_equal(get(cache, "d", NULL), TN_NOT_FOUND);
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    assert_int_equal(get(cache, "b", NULL), TN_OK);
    assert_int_equal(get(cache, "e", NULL), TN_OK);
    tni_cache_release(cache);
    end();
}

/* A handle that knows of nothing yet counts what others left, and makes room among it. */
static void test_counts_what_was_there(void **state)
{
    (void)state;
    uint64_t entries = 0, bytes = 0;
    begin();
    tni_cache *large = create_in_folder(1 << 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(tni_cache_put(large, "test", &i, sizeof i, "one", 3, NULL), TN_OK);
    tni_cache *small = create_in_folder(10 * (HEADER + 3));
    assert_int_equal(put(small, "a", "one", NULL), TN_OK);
    assert_int_equal(cache_count(small, &entries, &bytes, NULL), TN_OK);
    assert_int_equal(entries, 9);
    tni_cache_release(small);
    tni_cache_release(large);
    end();
}

/* Only the first put and one that may find no room count; who counts says when it cannot. */
static void test_counts_when_needed(void **state)
{
    (void)state;
    uint64_t entries, bytes;
    tn_error err;
    begin();
    tni_cache *cache = create_in_folder(3 * (HEADER + 3));
    fail_calls("readdir", EIO);
    assert_int_equal(put(cache, "a", "one", &err), TN_IO);
    fail_calls(NULL, 0);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    fail_calls("readdir", EIO);
    assert_int_equal(put(cache, "b", "two", NULL), TN_OK);
    assert_int_equal(put(cache, "c", "two", NULL), TN_OK);
    assert_int_equal(put(cache, "d", "two", &err), TN_IO);
    assert_int_equal(cache_count(cache, &entries, &bytes, &err), TN_IO);
    assert_int_equal(tni_cache_prune(cache, 0, &err), TN_IO);
    assert_contains(err.message, "Input/output error in the cache folder");
    fail_calls(NULL, 0);
    tni_cache_release(cache);
    end();
}

static void test_entries_that_stay(void **state)
{
    (void)state;
    tn_error err;
    begin();
    tni_cache *cache = create_in_folder(2 * (HEADER + 3));
    assert_int_equal(put(cache, "a", "one", NULL) || put(cache, "b", "two", NULL), 0);
    fail_calls("unlinkat", EPERM);
    assert_int_equal(tni_cache_prune(cache, 0, &err), TN_IO);
    assert_int_equal(err.native_code, EPERM);
    assert_int_equal(put(cache, "c", "one", &err), TN_IO);
    assert_int_equal(tni_cache_remove(cache, "test", "a", 1, &err), TN_IO);
    fail_calls(NULL, 0);
    assert_int_equal(put(cache, "c", "one", &err), TN_OK);
    tni_cache_release(cache);
    end();
}

static void path_of(const char *name, char out[SCRATCH_PATH])
{
    assert_true(snprintf(out, SCRATCH_PATH, "%s/%s", folder, name) < SCRATCH_PATH);
}

typedef struct found {
    const char *name; /* ends in '/' for a folder */
    int64_t age;
    bool stays;
} found;

/* "ca" is how the SHA-256 of the key "a" begins. */
static const found strangers[] = {
    {"test/ca/.tmp-1-1-1", 3700, false}, /* what a crashed writer left */
    {"test/ca/.tmp-1-1-2", 3500, true},  /* what may still be written */
    {"test/ca/cafe", 9999, true},
    {"test/ca/notes", 9999, true},
    {"test/notes", 9999, true},
    {"test/cafe/", 9999, true},
    {"notes", 9999, true},
    {"CACHEDIR.TAG", 0, true},
    {"Other/", 9999, true},
    {"Other/ca/", 9999, true},
    {"Other/ca/978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", 9999, true},
};

static void make_stranger(const found *it)
{
    char path[SCRATCH_PATH];
    path_of(it->name, path);
    if (it->name[strlen(it->name) - 1] == '/') {
        assert_int_equal(mkdir(path, 0700), 0);
        return;
    }
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(close(file), 0);
    set_age(path, it->age);
}

static void test_prunes_only_its_own(void **state)
{
    (void)state;
    uint64_t entries = 0, bytes = 0;
    size_t count = sizeof strangers / sizeof *strangers;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    for (size_t i = 0; i < count; i++)
        make_stranger(&strangers[i]);
    assert_int_equal(cache_count(cache, &entries, &bytes, NULL), TN_OK);
    assert_int_equal(entries, 1);
    assert_int_equal(tni_cache_prune(cache, 0, NULL), TN_OK);
    assert_false(exists(file_of("a")));
    for (size_t i = 0; i < count; i++) {
        char path[SCRATCH_PATH];
        path_of(strangers[i].name, path);
        if (exists(path) != strangers[i].stays)
            fail_msg("%s %s", strangers[i].name, strangers[i].stays ? "went" : "stayed");
    }
    tni_cache_release(cache);
    end();
}

static int open_files(void)
{
    int count = 0;
    for (int file = 0; file < 4096; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

static int calls_left;
static bool fired;

/* Makes the n-th call fail, whichever it is. */
static bool fault_nth(const char *call)
{
    (void)call;
    if (--calls_left != 0)
        return false;
    fired = true;
    errno = fault_code;
    return true;
}

/* What must hold when one system call fails, whichever: see `every_call_fails`. */
typedef tn_status operation(tni_cache *cache, tn_error *err);

static tn_status do_put(tni_cache *cache, tn_error *err)
{
    return put(cache, "b", "two", err);
}

static tn_status do_replace(tni_cache *cache, tn_error *err)
{
    return put(cache, "a", "two", err);
}

/* The data fill the cache, so that room must be made. */
static tn_status do_put_large(tni_cache *cache, tn_error *err)
{
    char data[3 * HEADER] = {0};
    return tni_cache_put(cache, "test", "large", 5, data, sizeof data, err);
}

static tn_status do_get(tni_cache *cache, tn_error *err)
{
    set_age(file_of("a"), 1000);
    return get(cache, "a", err);
}

static tn_status do_remove(tni_cache *cache, tn_error *err)
{
    return tni_cache_remove(cache, "test", "a", 1, err);
}

static tn_status do_prune(tni_cache *cache, tn_error *err)
{
    return tni_cache_prune(cache, 0, err);
}

static tn_status do_count(tni_cache *cache, tn_error *err)
{
    uint64_t entries, bytes;
    return cache_count(cache, &entries, &bytes, err);
}

static tn_status do_create(tni_cache *unused, tn_error *err)
{
    char fresh[sizeof folder + 8];
    tni_cache *cache = NULL;
    (void)unused;
    snprintf(fresh, sizeof fresh, "%s-2/x", folder);
    tn_status status = tni_cache_create(fresh, 1 << 20, &cache, err);
    if (!status && !tni_cache_folder(cache))
        assert_contains(tni_cache_reason(cache), "Input/output error; set TENON_CACHE to");
    tni_cache_release(cache);
    return status;
}

/* Runs `operate` on a cache with one entry while the n-th call fails, then without: nothing leaks,
 * no file is half there, the failure is TN_IO with the system's code, and the second succeeds.
 * False when there was no n-th call. */
static bool nth_call_fails(operation *operate, int n)
{
    tn_error err;
    int64_t blocks = tn_allocator_blocks();
    begin();
    int files = open_files();
    tni_cache *cache = create_in_folder(4 * HEADER);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    int64_t blocks_within = tn_allocator_blocks();
    int files_within = open_files();
    calls_left = n;
    fault_code = EIO;
    fired = false;
    tni_sys_fault_set(fault_nth);
    tn_status status = operate(cache, &err);
    tni_sys_fault_set(NULL);
    if (status && (status != TN_IO || err.native_code != EIO))
        fail_msg("call %d failing gives status %d: %s", n, status, err.message);
    assert_int_equal(tn_allocator_blocks(), blocks_within);
    assert_int_equal(open_files(), files_within);
    assert_no_temporary_files();
    assert_int_equal(operate(cache, &err), TN_OK);
    tni_cache_release(cache);
    assert_int_equal(tn_allocator_blocks(), blocks);
    assert_int_equal(open_files(), files);
    end();
    return fired;
}

static void every_call_fails(const char *name, operation *operate)
{
    int n = 1;
    while (nth_call_fails(operate, n))
        n++;
    print_message("%s: %d calls, each failed in turn\n", name, n - 1);
    assert_true(n > 3);
}

static void test_every_call_fails(void **state)
{
    (void)state;
    every_call_fails("create", do_create);
    every_call_fails("put", do_put);
    every_call_fails("replace", do_replace);
    every_call_fails("put and make room", do_put_large);
    every_call_fails("get", do_get);
    every_call_fails("remove", do_remove);
    every_call_fails("prune", do_prune);
    every_call_fails("count", do_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_cut_by_system),  cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_damaged_entry),       cmocka_unit_test(test_false_entry),
        cmocka_unit_test(test_least_recently_used), cmocka_unit_test(test_counts_what_was_there),
        cmocka_unit_test(test_counts_when_needed),  cmocka_unit_test(test_entries_that_stay),
        cmocka_unit_test(test_prunes_only_its_own), cmocka_unit_test(test_every_call_fails),
    };
    return run_suite("unit.cache_files", tests);
}
