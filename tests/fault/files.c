/* Files that are replaced and memory that processes share, over a system that fails: whichever call fails,
 * and however, the old file or the new one is whole, nothing is left behind, and the next attempt
 * succeeds. */
#include "fault.h"
#include "scratch.h"

#include "os/replace.h"
#include "os/shared.h"

static char scratch[SCRATCH_PATH];

/* Names of the calls that were made to fail. */
enum { CALLS_MOST = 32 };
static const char *failed[CALLS_MOST];

static bool has_failed(const char *call)
{
    for (size_t i = 0; i < CALLS_MOST && failed[i]; i++) {
        if (strcmp(failed[i], call) == 0)
            return true;
    }
    return false;
}

static void note_failed(void)
{
    size_t i = 0;
    while (i + 1 < CALLS_MOST && failed[i])
        i++;
    if (!has_failed(fault_call.call))
        failed[i] = fault_call.call;
}

static size_t count_names(const char *path, const char *beginning)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)))
        count += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
    if (folder)
        (void)closedir(folder);
    return count;
}

static const int codes[] = {EIO, ENOMEM, EACCES, ENOSPC, EMFILE};
enum { CODES = sizeof codes / sizeof codes[0] };

/* Runs `attempt` with its n-th call failing, for every n and code; it says what came of it, and is
 * attempted again without. */
static void fail_every_call(const char *what, tn_status (*attempt)(tn_error *err))
{
    for (size_t i = 0; i < CODES; i++) {
        bool fired = true;
        for (long n = 1; fired; n++) {
            tn_error err = {0};
            struct fault_state before = fault_look();
            fault_arm(&fault_call, n, false, codes[i]);
            tn_status status = attempt(&err);
            fired = fault_end(&fault_call);
            if (fired)
                note_failed();
            if (fault_left(before, what, n))
                fail();
            assert_true(fired || status == TN_OK);
            assert_true(status == TN_OK || (err.status == status && err.message[0]));
            if (attempt(&err))
                fail_msg("%s after fault %ld: %s", what, n, err.message);
        }
    }
}

static char file[SCRATCH_PATH + 16];

static void write_old(void)
{
    FILE *to = fopen(file, "w");
    assert_non_null(to);
    assert_true(fputs("old", to) >= 0 && fclose(to) == 0);
    assert_int_equal(chmod(file, 0640), 0);
    if (geteuid() == 0) /* then it is to stay someone else's */
        assert_int_equal(chown(file, 12345, 12345), 0);
}

/* What is in the file, and whose it is, when it could be replaced and when it could not. */
static tn_status replace(tn_error *err)
{
    char found[16] = "";
    struct stat facts;
    write_old();
    tn_status status = tni_file_replace(file, "newer", 5, err);
    FILE *from = fopen(file, "r");
    assert_non_null(from);
    assert_true(fgets(found, sizeof found, from) && fclose(from) == 0);
    assert_string_equal(found, status ? "old" : "newer");
    assert_int_equal(stat(file, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
    if (geteuid() == 0)
        assert_int_equal(facts.st_uid, 12345);
    return status;
}

static void old_or_new_file_is_whole(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/file", scratch);
    fail_every_call("tni_file_replace", replace);
    assert_true(has_failed("fsync") && has_failed("fchmod"));
    assert_true(geteuid() != 0 || has_failed("fchown"));
    assert_int_equal(count_names(scratch, "file"), 1);
}

/* Names of shared memory that are this process's. */
static size_t count_shared(void)
{
    const uint32_t process = (uint32_t)getpid();
    unsigned char bytes[sizeof process];
    char beginning[32];
    memcpy(bytes, &process, sizeof bytes);
    snprintf(beginning, sizeof beginning, "tenon-%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
             bytes[3]);
    return count_names("/dev/shm", beginning);
}

/* One makes it, the other finds it. */
static tn_status share(tn_error *err)
{
    tni_shared *ours = NULL, *theirs = NULL;
    tn_status status = tni_shared_create(64, &ours, err);
    if (!status)
        status = tni_shared_open(tni_shared_name(ours), 64, &theirs, err);
    assert_true(!ours || count_names("/dev/shm", "") == 0 || count_shared() == 1);
    if (!status)
        assert_memory_equal(tni_shared_memory(ours), tni_shared_memory(theirs), 64);
    assert_true(ours || !theirs);
    tni_shared_release(theirs);
    tni_shared_release(ours);
    assert_int_equal(count_shared(), 0);
    return status;
}

static void no_name_is_left_of_shared_memory(void **state)
{
    tn_error err = {0};
    (void)state;
    if (share(&err) == TN_UNSUPPORTED)
        skip_because("%s", err.message);
    fail_every_call("shared memory", share);
    assert_true(has_failed("shm_open") && has_failed("ftruncate") && has_failed("fallocate") &&
                has_failed("mmap"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_or_new_file_is_whole),
        cmocka_unit_test(no_name_is_left_of_shared_memory),
    };
    fault_memory_install();
    fault_calls_install();
    scratch_make(scratch);
    int outcome = run_suite("fault.files", tests);
    scratch_remove(scratch);
    return outcome;
}
