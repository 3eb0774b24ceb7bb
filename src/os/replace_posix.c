#include "replace.h"

#include "base/alloc.h"
#include "beside.h"
#include "file.h"
#include "sys.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

static tn_status failed(tn_error *err, const char *call, const char *path)
{
    int code = errno;
    tn_status status = code == ENOENT || code == ENOTDIR                  ? TN_NOT_FOUND
                       : code == EACCES || code == EPERM || code == EROFS ? TN_NOT_PERMITTED
                       : code == ENOMEM                                   ? TN_OUT_OF_MEMORY
                       : code == EMFILE || code == ENFILE                 ? TN_BUSY
                                                                          : TN_IO;
    char text[128];
    return tn_fail(err, status, code, call, "%s: %s", path, strerror_r(code, text, sizeof text));
}

/* Creates every missing folder above `path`, with access for the owner only. */
static tn_status make_folders(char *path, tn_error *err)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int made = tni_sys_mkdir(path, 0700);
        tn_status status =
            made != 0 && errno != EEXIST && errno != EROFS ? failed(err, "mkdir", path) : TN_OK;
        *at = '/';
        if (status)
            return status;
    }
    return TN_OK;
}

/* Copies owner and permissions from the file at `path`, if it exists. */
static int copy_ownership(int file, const char *path)
{
    struct stat old, own;
    if (tni_sys_stat(path, &old) != 0)
        return errno == ENOENT ? 0 : -1;
    if (tni_sys_fstat(file, &own) != 0)
        return -1;
    bool same = own.st_uid == old.st_uid && own.st_gid == old.st_gid;
    if (!same && tni_sys_fchown(file, old.st_uid, old.st_gid) != 0)
        return -1;
    return tni_sys_fchmod(file, old.st_mode & 0777);
}

/* `mode` applies to a new file. */
typedef struct contents {
    const char *text;
    size_t size;
    mode_t mode;
} contents;

/* `beside` is a buffer for the temporary file's name. The file stays open until it is renamed or
 * removed: closing it releases the lock, and then others may remove it as a dead writer's file.
 * fsync has already reported what close could. */
static tn_status write_beside(const char *path, const contents *of, char *beside, tn_error *err)
{
    tni_beside_clean(path);
    int file = tni_beside_create(path, of->mode, beside);
    if (file < 0)
        return failed(err, "open", path);
    const char *call = "write";
    int result = tni_sys_write_all(file, of->text, of->size);
    if (result == 0)
        result = tni_sys_fsync(file);
    if (result == 0) {
        call = "chmod";
        result = copy_ownership(file, path);
    }
    tn_status status = result == 0 ? TN_OK : failed(err, call, beside);
    if (!status && tni_sys_renameat(AT_FDCWD, beside, AT_FDCWD, path) != 0)
        status = failed(err, "rename", path);
    if (status)
        (void)tni_sys_unlinkat(AT_FDCWD, beside, 0);
    (void)tni_sys_close(file);
    return status;
}

/* Resolves links to the path where the file is or will be. */
static tn_status resolve(const char *path, char **out, tn_error *err)
{
    struct stat facts;
    tn_status status = tni_path_real(path, out, err);
    if (status != TN_NOT_FOUND)
        return status;
    bool is_there = tni_sys_fstatat(AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISLNK(facts.st_mode)) /* else it was created meanwhile */
        return tn_fail(err, TN_NOT_FOUND, 0, "open", "%s: a dangling symbolic link", path);
    *out = tni_text_copy(path);
    return *out ? TN_OK : tni_no_memory(err, "open", path);
}

/* Whether `path` is something that must not be replaced by a file: a device, a pipe, a folder. */
static tn_status check_special(const char *path, bool *out_special, tn_error *err)
{
    struct stat facts;
    bool is_there = tni_sys_stat(path, &facts) == 0;
    if (!is_there && errno != ENOENT)
        return failed(err, "stat", path);
    *out_special = is_there && !S_ISREG(facts.st_mode);
    return TN_OK;
}

static tn_status write_into(const char *path, const contents *of, tn_error *err)
{
    int file = tni_sys_open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC, 0);
    if (file < 0)
        return failed(err, "open", path);
    tn_status status =
        tni_sys_write_all(file, of->text, of->size) == 0 ? TN_OK : failed(err, "write", path);
    if (tni_sys_close(file) != 0 && !status)
        status = failed(err, "close", path);
    return status;
}

static tn_status replace(const char *path, bool makes_folders, const contents *of, tn_error *err)
{
    char *real = NULL, *beside = NULL;
    tn_status status = resolve(path, &real, err);
    if (status)
        return status;
    beside = tni_alloc(strlen(real) + TNI_BESIDE_ROOM);
    if (!beside)
        status = tni_no_memory(err, "open", path);
    else if (makes_folders)
        status = make_folders(real, err);
    if (!status)
        status = write_beside(real, of, beside, err);
    tni_release(beside);
    tni_release(real);
    return status;
}

static tn_status put(const char *path, bool makes_folders, const contents *of, tn_error *err)
{
    bool special = false;
    tn_status status = check_special(path, &special, err);
    if (status)
        return status;
    return special ? write_into(path, of, err) : replace(path, makes_folders, of, err);
}

tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err)
{
    const contents of = {.text = text, .size = size, .mode = 0666};
    return put(path, false, &of, err);
}

tn_status tni_file_replace_private(const char *path, const char *text, size_t size, tn_error *err)
{
    const contents of = {.text = text, .size = size, .mode = 0600};
    return put(path, true, &of, err);
}

struct tni_file_lock {
    int file;
    char path[]; /* of the lock file */
};

enum { LOCK_TRIES = 500, LOCK_PAUSE_MS = 10 };

/* Whether the lock file that was opened still has its name: the previous holder may have removed
 * it. Returns -1 with errno on failure. */
static int is_current(const tni_file_lock *lock, bool *out)
{
    struct stat own, there;
    if (tni_sys_fstat(lock->file, &own) != 0)
        return -1;
    int result = tni_sys_stat(lock->path, &there);
    if (result != 0 && errno != ENOENT)
        return -1;
    *out = result == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
    return 0;
}

/* One attempt without waiting; *out says whether the lock was acquired. Returns -1 with errno on
 * failure. */
static int try_lock(tni_file_lock *lock, bool *out)
{
    int result = 0;
    *out = false;
    lock->file = tni_sys_open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock->file < 0)
        return -1;
    if (tni_sys_flock(lock->file, LOCK_EX | LOCK_NB) == 0)
        result = is_current(lock, out);
    else if (errno == ENOSYS || errno == EOPNOTSUPP)
        *out = true;
    else
        result = errno == EWOULDBLOCK ? 0 : -1;
    int code = errno;
    if (!*out)
        (void)tni_sys_close(lock->file);
    errno = code;
    return result;
}

static tn_status wait_for(tni_file_lock *lock, tn_error *err)
{
    bool had = false;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (try_lock(lock, &had) != 0)
            return failed(err, "lock", lock->path);
        if (had)
            return TN_OK;
        (void)tni_sys_poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return tn_fail(err, TN_BUSY, 0, "lock", "%s: another process has held it for %d seconds",
                   lock->path, LOCK_TRIES * LOCK_PAUSE_MS / 1000);
}

tn_status tni_file_lock_acquire(const char *path, tni_file_lock **out, tn_error *err)
{
    static const char ending[] = ".lock";
    char *real = NULL;
    tn_status status = resolve(path, &real, err);
    if (status)
        return status;
    size_t room = strlen(real) + sizeof ending;
    tni_file_lock *lock = tni_alloc(sizeof *lock + room);
    if (!lock) {
        status = tni_no_memory(err, "lock", path);
        goto done;
    }
    snprintf(lock->path, room, "%s%s", real, ending);
    status = make_folders(real, err);
    if (!status)
        status = wait_for(lock, err);
    if (!status)
        *out = lock;
    else
        tni_release(lock);
done:
    tni_release(real);
    return status;
}

/* Removes the file while the lock is held, so that it cannot remove another holder's file. */
void tni_file_lock_release(tni_file_lock *lock)
{
    if (!lock)
        return;
    (void)tni_sys_unlinkat(AT_FDCWD, lock->path, 0);
    (void)tni_sys_close(lock->file);
    tni_release(lock);
}
