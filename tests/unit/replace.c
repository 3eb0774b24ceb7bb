/* Temporary files of writers that replace a file: those of dead writers go with the next write, those of living
 * writers never. */
#include "test.h"

#include "scratch.h"

#include "os/replace.h"
#include "os/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char scratch[SCRATCH_PATH];
static char file[SCRATCH_PATH + 16];
static int to_parent[2], to_child[2];

static int make_scratch(void **state)
{
    (void)state;
    scratch_make(scratch);
    snprintf(file, sizeof file, "%s/file", scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    (void)state;
    tni_sys_fault_set(NULL);
    scratch_remove(scratch);
    return 0;
}

/* How many names begin with that; `out`, if not NULL, is the path of the last one. */
static int count_names(const char *beginning, char *out, size_t room)
{
    int count = 0;
    struct dirent *entry;
    DIR *folder = opendir(scratch);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (strncmp(entry->d_name, beginning, strlen(beginning)) != 0)
            continue;
        count++;
        if (out)
            snprintf(out, room, "%s/%s", scratch, entry->d_name);
    }
    (void)closedir(folder);
    return count;
}

static void write_text(const char *text)
{
    tn_error err = {0};
    if (tni_file_replace(file, text, strlen(text), &err))
        fail_msg("%s", err.message);
}

static void assert_text(const char *text)
{
    char found[32] = "";
    FILE *from = fopen(file, "r");
    assert_non_null(from);
    assert_true(fgets(found, sizeof found, from) && fclose(from) == 0);
    assert_string_equal(found, text);
}

static bool die_at_rename(const char *call)
{
    if (strcmp(call, "renameat") == 0)
        (void)raise(SIGKILL);
    return false;
}

static bool die_at_rename_without_locks(const char *call)
{
    (void)die_at_rename(call);
    errno = EOPNOTSUPP;
    return strcmp(call, "flock") == 0;
}

/* Tells the parent, and waits for its answer. */
static bool wait_at_rename(const char *call)
{
    char byte = 0;
    if (strcmp(call, "renameat") == 0 &&
        (write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1))
        _exit(9);
    return false;
}

static pid_t start_writer(const char *text, tni_sys_fault_fn *hook)
{
    pid_t child = fork();
    if (child == 0) {
        tni_sys_fault_set(hook);
        _exit(tni_file_replace(file, text, strlen(text), NULL) ? 8 : 0);
    }
    assert_true(child > 0);
    return child;
}

static int end_of(pid_t child)
{
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

static void a_dead_writers_file_goes(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(WTERMSIG(end_of(start_writer("lost", die_at_rename))), SIGKILL);
    assert_true(count_names("file.", NULL, 0) > 0);
    write_text("found");
    assert_text("found");
    assert_int_equal(count_names("file", NULL, 0), 1);
}

static void a_living_writers_file_stays(void **state)
{
    char byte = 0, name[SCRATCH_PATH + 300];
    (void)state;
    assert_int_equal(pipe(to_parent), 0);
    assert_int_equal(pipe(to_child), 0);
    pid_t child = start_writer("child", wait_at_rename);
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(count_names("file.", name, sizeof name), 1);
    write_text("parent");
    assert_text("parent");
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}}; /* a slow writer */
    assert_int_equal(utimensat(AT_FDCWD, name, long_ago, 0), 0);
    write_text("parent");
    assert_int_equal(count_names("file.", NULL, 0), 1);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(end_of(child), 0);
    assert_text("child");
    assert_int_equal(count_names("file", NULL, 0), 1);
}

static void make_file(const char *name, time_t age)
{
    char path[SCRATCH_PATH + 64];
    const time_t then = time(NULL) - age;
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *to = fopen(path, "w");
    assert_true(to && fclose(to) == 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Whether a process of another system lives, nobody here can tell. */
static void another_systems_files_go_by_age(void **state)
{
    (void)state;
    make_file("file.tmp-00000000-77-0", 60);
    make_file("file.tmp-00000000-77-1", 4000);
    make_file("file.tmp-00000001-77-0", 60);
    make_file("file.tmp-00000001-77-1", 4000);
    write_text("new");
    assert_int_equal(count_names("file.", NULL, 0), 2);
    assert_int_equal(count_names("file.tmp-00000000-77-0", NULL, 0), 1);
    assert_int_equal(count_names("file.tmp-00000001-77-0", NULL, 0), 1);
}

static void a_writers_file_without_locks_goes_by_age(void **state)
{
    (void)state;
    assert_int_equal(WTERMSIG(end_of(start_writer("lost", die_at_rename_without_locks))), SIGKILL);
    write_text("new");
    assert_int_equal(count_names("file.tmp-00000000-", NULL, 0), 1);
}

static void other_names_stay(void **state)
{
    static const char *const names[] = {"file.2024-11",          "file.tmp-",
                                        "file.tmp-notes",        "file.tmp-00000000-77-",
                                        "file.tmp-00000000-7",   "file.tmp-00000000-77-1.txt",
                                        "file.tmp-0000000-77-1", "files.tmp-00000000-77-1",
                                        "file.tmp-0000000G-7-1"};
    enum { COUNT = sizeof names / sizeof names[0] };
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        make_file(names[i], 4000);
    write_text("new");
    assert_int_equal(count_names("file", NULL, 0), COUNT + 1);
}

static int taken;

/* As one who cleans up and comes between the creation of a file and its lock. */
static bool take_before_lock(const char *call)
{
    char name[SCRATCH_PATH + 300];
    if (strcmp(call, "flock") == 0 && taken++ == 0) {
        assert_int_equal(count_names("file.", name, sizeof name), 1);
        assert_int_equal(unlink(name), 0);
    }
    return false;
}

static void a_file_that_is_taken_too_early_is_made_again(void **state)
{
    (void)state;
    tni_sys_fault_set(take_before_lock);
    write_text("new");
    tni_sys_fault_set(NULL);
    assert_int_equal(taken, 2);
    assert_text("new");
    assert_int_equal(count_names("file", NULL, 0), 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        CASE(a_dead_writers_file_goes),
        CASE(a_living_writers_file_stays),
        CASE(another_systems_files_go_by_age),
        CASE(a_writers_file_without_locks_goes_by_age),
        CASE(other_names_stay),
        CASE(a_file_that_is_taken_too_early_is_made_again),
    };
    return run_suite("unit.replace", tests);
}
