/* Which folder a cache takes, for which it keeps to memory and why, and what it does when a folder
 * it took is no longer what it was. For POSIX systems. */
#include "cache_scratch.h"
#include "test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ANOTHER_USER = 65534 };

static int mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return (int)(facts.st_mode & 07777);
}

/* Makes the folder and those above it, for the owner alone, and leaves them so. */
static void test_makes_folders(void **state)
{
    (void)state;
    char deep[sizeof folder + 16], entry[SCRATCH_PATH + 200], *shelf;
    mode_t mask = umask(0);
    begin();
    snprintf(deep, sizeof deep, "%s/one/two///", folder);
    tni_cache *cache = create(deep, 1 << 20);
    umask(mask);
    assert_string_equal(tni_cache_reason(cache), "");
    assert_string_equal(tni_cache_folder(cache), deep);
    tni_cache_release(cache);
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(mode_of(deep), 0700);
    mask = umask(0);
    cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    umask(mask);
    snprintf(entry, sizeof entry, "%s", file_of("a"));
    assert_int_equal(mode_of(entry), 0600);
    for (int up = 0; up < 2; up++) {
        shelf = strrchr(entry, '/');
        *shelf = '\0';
        assert_int_equal(mode_of(entry), 0700);
    }
    tni_cache_release(cache);
    snprintf(entry, sizeof entry, "%s/CACHEDIR.TAG", deep);
    assert_int_equal(mode_of(entry), 0600);
    end();
}

/* What one handle put, another finds. */
static void test_lasts(void **state)
{
    (void)state;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    tni_cache_release(cache);
    cache = create_in_folder(1 << 20);
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    tni_cache_release(cache);
    end();
}

/* Memory only, which works, with a reason that contains both texts. */
static void assert_not_taken(const char *path, const char *words, const char *more)
{
    tni_cache *cache = create(path, 1 << 20);
    assert_null(tni_cache_folder(cache));
    assert_contains(tni_cache_reason(cache), words);
    assert_contains(tni_cache_reason(cache), more);
    assert_contains(tni_cache_reason(cache), path);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    assert_int_equal(get(cache, "a", NULL), TN_OK);
    tni_cache_release(cache);
}

static const char remedy[] = "; set TENON_CACHE to a writable folder that you own";

static void test_open_to_others(void **state)
{
    (void)state;
    static const mode_t modes[] = {0755, 0710, 0701, 0720, 0704};
    begin();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_not_taken(folder, "is accessible to other users (mode 07", remedy);
        assert_int_equal(rmdir(folder), 0);
    }
    tni_cache_release(create_in_folder(1 << 20));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_not_taken(folder, "is accessible to other users (mode 0755)", "; chmod 700 \"");
    end();
}

static void test_symbolic_link(void **state)
{
    (void)state;
    char real[sizeof folder + 8], slash[sizeof folder + 8];
    begin();
    snprintf(real, sizeof real, "%s/real", scratch);
    snprintf(slash, sizeof slash, "%s/", folder);
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink(real, folder), 0);
    assert_not_taken(folder, "is a symbolic link", "; set TENON_CACHE to the folder itself");
    tni_cache *cache = create(slash, 1 << 20);
    assert_contains(tni_cache_reason(cache), "is a symbolic link");
    tni_cache_release(cache);
    assert_int_equal(rmdir(real), 0);
    end();
}

static void test_another_owner(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can give a folder away");
    begin();
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, ANOTHER_USER, (gid_t)-1), 0);
    assert_not_taken(folder, "belongs to user 65534, not to user 0", remedy);
    end();
}

static void test_not_a_folder(void **state)
{
    (void)state;
    char below[sizeof folder + 8];
    begin();
    snprintf(below, sizeof below, "%s/x/y", folder);
    int file = open(folder, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(close(file), 0);
    assert_not_taken(folder, "cannot be opened: Not a directory", remedy);
    assert_not_taken(below, "cannot be opened: Not a directory", remedy);
    assert_not_taken("", "cannot be made: No such file or directory", remedy);
    end();
}

static void be_oneself(void)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

/* As a user whom modes bind: root becomes one until `be_oneself`. The test is skipped if that user cannot
 * reach its folder. */
static void be_bound(void)
{
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(scratch, ANOTHER_USER, (gid_t)-1) || seteuid(ANOTHER_USER), 0);
    if (exists(scratch))
        return;
    be_oneself();
    end();
    skip_because("user %d cannot reach %s; set TMPDIR to a folder that every user may enter",
                 ANOTHER_USER, scratch);
}

static void test_read_only_parent(void **state)
{
    (void)state;
    tni_cache *cache = NULL;
    begin();
    be_bound();
    int failed = chmod(scratch, 0500);
    tn_status status = tni_cache_create(folder, 1 << 20, &cache, NULL);
    failed |= chmod(scratch, 0700);
    be_oneself();
    assert_int_equal(failed || status, 0);
    assert_contains(tni_cache_reason(cache), "cannot be made: Permission denied");
    assert_contains(tni_cache_reason(cache), remedy);
    tni_cache_release(cache);
    end();
}

static void test_read_only_system(void **state)
{
    (void)state;
    begin();
    fail_calls("mkdir", EROFS);
    assert_not_taken(folder, "cannot be made: Read-only file system", remedy);
    assert_int_equal(mkdir(folder, 0700), 0);
    fail_calls("faccessat", EROFS);
    assert_not_taken(folder, "cannot be written: Read-only file system", remedy);
    fail_calls(NULL, 0);
    end();
}

/* A put fails, what was there is still found, and with the permission puts succeed again. */
static void test_permission_lost(void **state)
{
    (void)state;
    tni_cache *cache = NULL;
    tn_error err = {0};
    begin();
    be_bound();
    int failed = tni_cache_create(folder, 1 << 20, &cache, NULL) || put(cache, "a", "one", NULL);
    failed |= chmod(folder, 0500);
    tn_status lost = tni_cache_put(cache, "other", "b", 1, "two", 3, &err);
    tn_status found = get(cache, "a", NULL);
    failed |= chmod(folder, 0700);
    tn_status again = tni_cache_put(cache, "other", "b", 1, "two", 3, NULL);
    be_oneself();
    assert_int_equal(failed, 0);
    assert_int_equal(lost, TN_IO);
    assert_int_equal(err.native_code, EACCES);
    assert_contains(err.message, "Permission denied in the cache folder \"");
    assert_contains(err.message, folder);
    assert_int_equal(found, TN_OK);
    assert_int_equal(again, TN_OK);
    tni_cache_release(cache);
    end();
}

static void test_vanished_folder(void **state)
{
    (void)state;
    tn_error err;
    uint64_t entries = 9, bytes = 9;
    begin();
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    scratch_remove(folder);
    assert_int_equal(get(cache, "a", NULL), TN_NOT_FOUND);
    assert_int_equal(put(cache, "a", "one", &err), TN_IO);
    assert_contains(err.message, "No such file or directory in the cache folder");
    assert_int_equal(tni_cache_remove(cache, "test", "a", 1, NULL), TN_OK);
    assert_int_equal(cache_count(cache, &entries, &bytes, NULL), TN_OK);
    assert_int_equal(entries, 0);
    tni_cache_release(cache);
    end();
}

/* Sets or, for NULL, unsets. */
static void set_variable(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void assert_default(const char *tenon, const char *xdg, const char *home, const char *found)
{
    tni_buffer path = {0};
    const char *reason = NULL;
    set_variable("TENON_CACHE", tenon);
    set_variable("XDG_CACHE_HOME", xdg);
    set_variable("HOME", home);
    bool given = tni_cache_default_folder(&path, &reason);
    if (given)
        assert_null(reason);
    else
        assert_int_equal(path.length, 0);
    assert_contains(given ? tni_buffer_text(&path) : reason, found);
    assert_int_equal(given, found[0] == '/');
    tni_buffer_release(&path);
}

/* A folder that was there may hold more than a cache: backups must not leave it out. */
static void test_tags_only_what_it_made(void **state)
{
    char tag[sizeof folder + 16];
    (void)state;
    begin();
    snprintf(tag, sizeof tag, "%s/CACHEDIR.TAG", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    tni_cache *cache = create_in_folder(1 << 20);
    assert_int_equal(put(cache, "a", "one", NULL), TN_OK);
    tni_cache_release(cache);
    assert_false(exists(tag));
    scratch_remove(folder);
    tni_cache_release(create_in_folder(1 << 20));
    assert_true(exists(tag));
    end();
}

/* A limit on the size of files ends a process that does not expect it. */
static void test_limit_on_files(void **state)
{
    int status = -1;
    (void)state;
    begin();
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        tni_cache *cache = NULL;
        if (setrlimit(RLIMIT_FSIZE, &none) != 0 || tni_cache_create(folder, 1 << 20, &cache, NULL))
            _exit(2);
        _exit(tni_cache_folder(cache) ? 3 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end();
}

static void test_default_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"TENON_CACHE", "XDG_CACHE_HOME", "HOME"};
    char before[3][SCRATCH_PATH];
    for (int i = 0; i < 3; i++)
        snprintf(before[i], SCRATCH_PATH, "%s", getenv(names[i]) ? getenv(names[i]) : "");
    assert_default("/t", "/x", "/h", "/t");
    assert_default(NULL, "/x", "/h", "/x/tenon");
    assert_default(NULL, NULL, "/usr", "/usr/.cache/tenon");
    assert_default(NULL, "", "/usr", "/usr/.cache/tenon");
    assert_default(NULL, "x", "/usr", "/usr/.cache/tenon");
    assert_default(NULL, NULL, "/nonexistent", "HOME is not an existing folder");
    assert_default("", "/x", "/h", "TENON_CACHE is empty, which means memory only");
    assert_default("./x", "/x", "/h", "TENON_CACHE is not an absolute path");
    assert_default(NULL, NULL, NULL, "name no absolute path; set TENON_CACHE to a folder");
    assert_default(NULL, "x", "", "name no absolute path; set TENON_CACHE to a folder");
    for (int i = 0; i < 3; i++)
        set_variable(names[i], before[i][0] ? before[i] : NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_makes_folders),    cmocka_unit_test(test_lasts),
        cmocka_unit_test(test_open_to_others),   cmocka_unit_test(test_symbolic_link),
        cmocka_unit_test(test_another_owner),    cmocka_unit_test(test_not_a_folder),
        cmocka_unit_test(test_read_only_parent), cmocka_unit_test(test_read_only_system),
        cmocka_unit_test(test_permission_lost),  cmocka_unit_test(test_vanished_folder),
        cmocka_unit_test(test_default_folder),   cmocka_unit_test(test_tags_only_what_it_made),
        cmocka_unit_test(test_limit_on_files),
    };
    return run_suite("unit.cache_folder", tests);
}
