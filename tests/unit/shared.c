/* Memory that processes of one user share by name. */
#include "fault/fault.h"
#include "scratch.h"

#include "os/shared.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>

enum { SIZE = 64 };

/* Skips the test where the system has no such thing. */
static tni_shared *made(void)
{
    tni_shared *shared = NULL;
    tn_error err = {0};
    tn_status status = tni_shared_create(SIZE, &shared, &err);
    if (status == TN_UNSUPPORTED)
        skip_because("%s", err.message);
    if (status)
        fail_msg("%s", err.message);
    return shared;
}

/* The file behind it. */
static int file_of(const tni_shared *shared)
{
    char path[64] = "/tenon-";
    const unsigned char *name = tni_shared_name(shared);
    for (size_t i = 0; i < TNI_SHARED_NAME; i++)
        snprintf(path + 7 + 2 * i, 3, "%02x", name[i]);
    return shm_open(path, O_RDWR, 0);
}

static void two_see_the_same(void **state)
{
    static const unsigned char zeros[SIZE];
    unsigned char name[TNI_SHARED_NAME];
    tni_shared *a = made(), *b = NULL, *c = made();
    tn_error err;
    (void)state;
    memcpy(name, tni_shared_name(a), sizeof name);
    assert_memory_equal(tni_shared_memory(a), zeros, SIZE);
    assert_true(memcmp(tni_shared_name(c), name, sizeof name) != 0);
    assert_int_equal(tni_shared_open(name, SIZE, &b, &err), TN_OK);
    assert_ptr_not_equal(tni_shared_memory(a), tni_shared_memory(b));
    assert_memory_equal(tni_shared_name(b), name, sizeof name);
    strcpy(tni_shared_memory(a), "from a");
    assert_string_equal(tni_shared_memory(b), "from a");
    tni_shared_release(c);
    tni_shared_release(b); /* who opened it takes no name away */
    b = NULL;
    assert_int_equal(tni_shared_open(name, SIZE, &b, &err), TN_OK);
    void *mapped = tni_shared_memory(a);
    tni_shared_release(a);
    assert_int_equal(msync(mapped, 1, MS_ASYNC), -1); /* here it is gone */
    assert_int_equal(errno, ENOMEM);
    assert_string_equal(tni_shared_memory(b), "from a"); /* it stays for those who have it */
    assert_int_equal(tni_shared_open(name, SIZE, &c, &err), TN_NOT_FOUND);
    assert_contains(err.message, "its creator released it");
    tni_shared_release(b);
    tni_shared_release(NULL);
}

static void child_takes_no_name_away(void **state)
{
    int status = -1;
    tni_shared *a = made(), *b = NULL;
    tn_error err;
    (void)state;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        strcpy(tni_shared_memory(a), "from a child");
        tni_shared_release(a);
        _exit(0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_string_equal(tni_shared_memory(a), "from a child");
    assert_int_equal(tni_shared_open(tni_shared_name(a), SIZE, &b, &err), TN_OK);
    tni_shared_release(b);
    tni_shared_release(a);
}

/* A process that is killed cannot take its names away: whoever comes next does. */
static void what_the_killed_left_is_taken_away(void **state)
{
    int ends[2], status = -1;
    unsigned char name[TNI_SHARED_NAME];
    tni_shared *mine = made(), *left = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (tni_shared_create(SIZE, &left, &err) ||
            write(ends[1], tni_shared_name(left), sizeof name) != sizeof name)
            _exit(1);
        (void)pause();
    }
    assert_true(pid > 0 && read(ends[0], name, sizeof name) == sizeof name);
    tni_shared_collect(); /* it lives */
    assert_int_equal(tni_shared_open(name, SIZE, &left, &err), TN_OK);
    tni_shared_release(left);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    assert_int_equal(tni_shared_open(name, SIZE, &left, &err), TN_OK);
    tni_shared_release(left);
    tni_shared_collect();
    assert_int_equal(tni_shared_open(name, SIZE, &left, &err), TN_NOT_FOUND);
    assert_int_equal(tni_shared_open(tni_shared_name(mine), SIZE, &left, &err), TN_OK);
    tni_shared_release(left);
    tni_shared_release(mine);
    close(ends[0]), close(ends[1]);
}

static void what_is_not_as_it_was_is_refused(void **state)
{
    tn_error err;
    struct stat facts;
    tni_shared *a = made(), *b = NULL;
    const unsigned char *name = tni_shared_name(a);
    int file = file_of(a);
    (void)state;
    assert_true(file >= 0 && fstat(file, &facts) == 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    assert_int_equal(tni_shared_open(name, SIZE + 1, &b, &err), TN_CORRUPT);
    assert_contains(err.message, "64 bytes instead of 65");
    assert_int_equal(fchmod(file, 0640), 0);
    assert_int_equal(tni_shared_open(name, SIZE, &b, &err), TN_NOT_PERMITTED);
    assert_contains(err.message, "accessible to other users (mode 0640)");
    assert_int_equal(fchmod(file, 0600), 0);
    assert_int_equal(ftruncate(file, SIZE + 1), 0);
    assert_int_equal(tni_shared_open(name, SIZE, &b, &err), TN_CORRUPT);
    assert_int_equal(ftruncate(file, SIZE), 0);
    assert_int_equal(tni_shared_open(name, SIZE, &b, &err), TN_OK);
    tni_shared_release(b);
    tni_shared_release(a);
    close(file);
}

static void other_users_have_their_own(void **state)
{
    tn_error err;
    tni_shared *b = NULL;
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can be someone else");
    tni_shared *a = made();
    int file = file_of(a);
    assert_int_equal(fchown(file, 12345, (gid_t)-1), 0);
    assert_int_equal(tni_shared_open(tni_shared_name(a), SIZE, &b, &err), TN_NOT_PERMITTED);
    assert_contains(err.message, "belongs to user 12345, not to user 0");
    assert_int_equal(fchown(file, 0, (gid_t)-1), 0);
    assert_int_equal(seteuid(12345), 0);
    tn_status status = tni_shared_open(tni_shared_name(a), SIZE, &b, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, TN_NOT_PERMITTED);
    assert_contains(err.message, "another user");
    assert_null(b);
    close(file);
    tni_shared_release(a);
}

/* What `sees` finds in a child, which may change what it sees of the system. */
static void check_in_child(bool (*sees)(void))
{
    int status = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(sees() ? 0 : 1);
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static char scratch[SCRATCH_PATH];

static bool is_unsupported(void)
{
    tni_shared *shared = NULL;
    tn_error err = {0};
    return chroot(scratch) == 0 && chdir("/") == 0 &&
           tni_shared_create(SIZE, &shared, &err) == TN_UNSUPPORTED && !shared &&
           strstr(err.message, "/dev/shm must exist");
}

static void system_without_it_says_so(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can change the root");
    scratch_make(scratch);
    check_in_child(is_unsupported);
    scratch_remove(scratch);
}

#if defined(__linux__)

/* A folder of shared memory that no other process sees, with room for one page. */
static bool own_folder(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, "size=4096") == 0;
}

static int files(void)
{
    int count = -2; /* "." and ".." */
    DIR *folder = opendir("/dev/shm");
    while (folder && readdir(folder))
        count++;
    if (folder)
        (void)closedir(folder);
    return count;
}

static bool leaves_no_file(void)
{
    tni_shared *a = NULL, *b = NULL;
    tn_error err = {0};
    if (!own_folder())
        return false;
    fault_arm(&fault_memory, 1, false, 0);
    bool right = tni_shared_create(SIZE, &a, &err) == TN_OUT_OF_MEMORY && files() == 0;
    right = right && fault_end(&fault_memory) && tni_shared_create(SIZE, &a, &err) == TN_OK;
    right = right && files() == 1 && tni_shared_create(SIZE, &b, &err) == TN_OUT_OF_MEMORY;
    right = right && files() == 1 && !b && strstr(err.message, "not enough shared memory");
    tni_shared_release(a);
    return right && files() == 0;
}

static void failure_leaves_no_file(void **state)
{
    int status = -1;
    (void)state;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(own_folder() ? 0 : 1);
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0)
        skip_because("this user cannot mount a folder of its own");
    check_in_child(leaves_no_file);
}

#else

static void failure_leaves_no_file(void **state)
{
    (void)state;
    skip_because("only Linux has folders of shared memory that a test can see");
}

#endif

enum limit { FILES, BYTES };

static int limit_get(enum limit limit, struct rlimit *out)
{
    return limit == FILES ? getrlimit(RLIMIT_NOFILE, out) : getrlimit(RLIMIT_FSIZE, out);
}

static int limit_set(enum limit limit, const struct rlimit *to)
{
    return limit == FILES ? setrlimit(RLIMIT_NOFILE, to) : setrlimit(RLIMIT_FSIZE, to);
}

static tn_status create_without(enum limit limit, tn_error *err)
{
    tni_shared *shared = NULL;
    struct rlimit before, none;
    assert_int_equal(limit_get(limit, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(limit_set(limit, &none), 0);
    tn_status status = tni_shared_create(SIZE, &shared, err);
    assert_int_equal(limit_set(limit, &before), 0);
    assert_null(shared);
    return status;
}

static void full_limits_are_told(void **state)
{
    tn_error err;
    sigset_t pending;
    (void)state;
    tni_shared_release(made());
    struct fault_state before = fault_look();
    assert_int_equal(create_without(FILES, &err), TN_BUSY);
    assert_contains(err.message, "no free file descriptor");
    assert_int_equal(create_without(BYTES, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "not enough shared memory");
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGXFSZ), 0); /* nor is its signal left */
    assert_int_equal(fault_left(before, "limits", 0), 0);
}

static void nothing_is_left_of_a_failure(void **state)
{
    tn_error err;
    tni_shared *a = made(), *b = NULL;
    (void)state;
    struct fault_state before = fault_look();
    fault_arm(&fault_memory, 1, false, 0);
    assert_int_equal(tni_shared_open(tni_shared_name(a), SIZE, &b, &err), TN_OUT_OF_MEMORY);
    assert_true(fault_end(&fault_memory));
    fault_arm(&fault_memory, 1, false, 0);
    assert_int_equal(tni_shared_create(SIZE, &b, &err), TN_OUT_OF_MEMORY);
    assert_true(fault_end(&fault_memory));
    fault_arm(&fault_call, 2, false, EIO);
    assert_int_equal(tni_shared_open(tni_shared_name(a), SIZE, &b, &err), TN_IO);
    assert_true(fault_end(&fault_call));
    assert_string_equal(fault_call.call, "fstat");
    assert_null(b);
    assert_int_equal(fault_left(before, "failures", 0), 0);
    tni_shared_release(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_see_the_same),
        cmocka_unit_test(child_takes_no_name_away),
        cmocka_unit_test(what_the_killed_left_is_taken_away),
        cmocka_unit_test(what_is_not_as_it_was_is_refused),
        cmocka_unit_test(other_users_have_their_own),
        cmocka_unit_test(system_without_it_says_so),
        cmocka_unit_test(failure_leaves_no_file),
        cmocka_unit_test(full_limits_are_told),
        cmocka_unit_test(nothing_is_left_of_a_failure),
    };
    fault_memory_install();
    fault_calls_install();
    return run_suite("unit.shared", tests);
}
