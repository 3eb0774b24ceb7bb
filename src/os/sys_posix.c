#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static tni_sys_fault_fn *fault;

void tni_sys_fault_set(tni_sys_fault_fn *f)
{
    fault = f;
}

static bool faulted(const char *call)
{
    return fault && fault(call);
}

#define RETRY(result, call) \
    do {                    \
        (result) = (call);  \
    } while ((result) == -1 && errno == EINTR)

int tni_sys_open(const char *path, int flags, mode_t mode)
{
    int file;
    if (faulted("open"))
        return -1;
    RETRY(file, open(path, flags | O_CLOEXEC, mode));
    return file;
}

int tni_sys_openat(int folder, const char *path, int flags, mode_t mode)
{
    int file;
    if (faulted("openat"))
        return -1;
    RETRY(file, openat(folder, path, flags | O_CLOEXEC, mode));
    return file;
}

/* close() always frees the descriptor, even if it fails, so an injected fault closes it too. */
int tni_sys_close(int file)
{
    bool failed = faulted("close");
    int saved = errno, result = close(file);
    if (failed)
        errno = saved;
    return failed ? -1 : result;
}

ssize_t tni_sys_read(int file, void *to, size_t size)
{
    ssize_t count;
    if (faulted("read"))
        return -1;
    RETRY(count, read(file, to, size));
    return count;
}

ssize_t tni_sys_pread(int file, void *to, size_t size, off_t offset)
{
    ssize_t count;
    if (faulted("pread"))
        return -1;
    RETRY(count, pread(file, to, size, offset));
    return count;
}

/* A write beyond a file size limit raises SIGXFSZ, which would end the process. While it is
 * blocked, the write fails with EFBIG instead. */
ssize_t tni_sys_write(int file, const void *from, size_t size)
{
    static const struct timespec at_once = {0, 0};
    sigset_t limit, before;
    ssize_t count;
    if (faulted("write"))
        return -1;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    RETRY(count, write(file, from, size));
    int code = errno;
    if (count < 0 && code == EFBIG && !sigismember(&before, SIGXFSZ))
        sigtimedwait(&limit, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return count;
}

int tni_sys_write_all(int file, const void *from, size_t size)
{
    const char *at = from;
    while (size > 0) {
        ssize_t count = tni_sys_write(file, at, size);
        if (count == 0)
            errno = EIO;
        if (count <= 0)
            return -1;
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

int tni_sys_stat(const char *path, struct stat *out)
{
    return faulted("stat") ? -1 : stat(path, out);
}

int tni_sys_fstat(int file, struct stat *out)
{
    return faulted("fstat") ? -1 : fstat(file, out);
}

int tni_sys_fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return faulted("fstatat") ? -1 : fstatat(folder, path, out, flags);
}

int tni_sys_faccessat(int folder, const char *path, int mode, int flags)
{
    return faulted("faccessat") ? -1 : faccessat(folder, path, mode, flags);
}

int tni_sys_futimens(int file)
{
    return faulted("futimens") ? -1 : futimens(file, NULL);
}

int tni_sys_fsync(int file)
{
    int result;
    if (faulted("fsync"))
        return -1;
    RETRY(result, fsync(file));
    return result;
}

int tni_sys_fchmod(int file, mode_t mode)
{
    return faulted("fchmod") ? -1 : fchmod(file, mode);
}

int tni_sys_fchown(int file, uid_t user, gid_t group)
{
    return faulted("fchown") ? -1 : fchown(file, user, group);
}

int tni_sys_ftruncate(int file, off_t size)
{
    int result;
    if (faulted("ftruncate"))
        return -1;
    RETRY(result, ftruncate(file, size));
    return result;
}

int tni_sys_fallocate(int file, off_t size)
{
    int code;
    if (faulted("fallocate"))
        return errno;
#if defined(__APPLE__)
    (void)file, (void)size;
    code = 0;
#else
    do {
        code = posix_fallocate(file, 0, size);
    } while (code == EINTR);
#endif
    return code;
}

int tni_sys_shm_open(const char *name, int flags, mode_t mode)
{
    int file;
    if (faulted("shm_open"))
        return -1;
    RETRY(file, shm_open(name, flags, mode));
    return file;
}

void *tni_sys_mmap(int file, size_t size, int access, int flags)
{
    return faulted("mmap") ? MAP_FAILED : mmap(NULL, size, access, flags, file, 0);
}

int tni_sys_flock(int file, int how)
{
    int result;
    if (faulted("flock"))
        return -1;
    RETRY(result, flock(file, how));
    return result;
}

int tni_sys_mkdir(const char *path, mode_t mode)
{
    return faulted("mkdir") ? -1 : mkdir(path, mode);
}

int tni_sys_mkdirat(int folder, const char *path, mode_t mode)
{
    return faulted("mkdirat") ? -1 : mkdirat(folder, path, mode);
}

int tni_sys_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return faulted("renameat") ? -1 : renameat(from_folder, from, to_folder, to);
}

int tni_sys_unlinkat(int folder, const char *path, int flags)
{
    return faulted("unlinkat") ? -1 : unlinkat(folder, path, flags);
}

char *tni_sys_getcwd(char *out, size_t size)
{
    return faulted("getcwd") ? NULL : getcwd(out, size);
}

char *tni_sys_realpath(const char *path, char *out)
{
    return faulted("realpath") ? NULL : realpath(path, out);
}

DIR *tni_sys_opendir(const char *path)
{
    return faulted("opendir") ? NULL : opendir(path);
}

DIR *tni_sys_fdopendir(int folder)
{
    return faulted("fdopendir") ? NULL : fdopendir(folder);
}

struct dirent *tni_sys_readdir(DIR *folder)
{
    if (faulted("readdir"))
        return NULL;
    errno = 0;
    return readdir(folder);
}

void *tni_sys_dlopen(const char *path, int flags)
{
    return faulted("dlopen") ? NULL : dlopen(path, flags);
}

int tni_sys_pipe(int out[2])
{
#if defined(__linux__)
    return faulted("pipe") ? -1 : pipe2(out, O_CLOEXEC);
#else
    if (faulted("pipe") || pipe(out) != 0)
        return -1;
    (void)fcntl(out[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(out[1], F_SETFD, FD_CLOEXEC);
    return 0;
#endif
}

/* Not retried: the caller computes the remaining time. */
int tni_sys_poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
    return faulted("poll") ? -1 : poll(files, count, timeout_ms);
}

int tni_sys_spawn(pid_t *out, const char *path, const posix_spawn_file_actions_t *actions,
                  const posix_spawnattr_t *attributes, const char *const *arguments,
                  const char *const *environment)
{
    if (faulted("spawn"))
        return errno;
    /* posix_spawn does not modify these lists; its prototype lacks const for historical reasons. */
    return posix_spawn(out, path, actions, attributes, (char *const *)(uintptr_t)arguments,
                       (char *const *)(uintptr_t)environment);
}

int tni_sys_waitid(pid_t pid, siginfo_t *out, int flags)
{
    int result;
    if (faulted("waitid"))
        return -1;
    RETRY(result, waitid(P_PID, (id_t)pid, out, flags));
    return result;
}

/* An injected fault reaps nothing: the child remains for the next call. */
pid_t tni_sys_waitpid(pid_t pid, int *out_status, int flags)
{
    pid_t result;
    if (faulted("waitpid"))
        return -1;
    RETRY(result, waitpid(pid, out_status, flags));
    return result;
}

/* Uses the default stack size, but at least STACK_LEAST: a stack limit (ulimit -s) can reduce the
 * default. */
static int create_thread(pthread_t *out, void *(*run)(void *), void *user)
{
    enum { STACK_LEAST = 512 << 10 };
    pthread_attr_t attributes;
    size_t size = 0;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    if (pthread_attr_getstacksize(&attributes, &size) == 0 && size < STACK_LEAST)
        (void)pthread_attr_setstacksize(&attributes, STACK_LEAST);
    error = pthread_create(out, &attributes, run, user);
    (void)pthread_attr_destroy(&attributes);
    return error;
}

int tni_sys_thread_create(pthread_t *out, void *(*run)(void *), void *user)
{
    return faulted("pthread_create") ? errno : create_thread(out, run, user);
}
