/* Wrappers for the system calls that may fail for lack of a resource, used by the loader, the
 * cache, file replacement, shared memory and the child process, so that a test can make the n-th
 * call fail. POSIX only: the Windows files of this folder do not use them. */
#ifndef TNI_OS_SYS_H
#define TNI_OS_SYS_H

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* For tests: called before each call with its name; returning true makes the call fail with the
 * errno that it set. Set it only while no other thread is inside the library. */
typedef bool tni_sys_fault_fn(const char *call);
void tni_sys_fault_set(tni_sys_fault_fn *fault);

/* As the functions they are named after; EINTR is retried if that is safe. */
int tni_sys_open(const char *path, int flags, mode_t mode);
int tni_sys_openat(int folder, const char *path, int flags, mode_t mode);
int tni_sys_close(int file);
ssize_t tni_sys_read(int file, void *to, size_t size);
ssize_t tni_sys_pread(int file, void *to, size_t size, off_t offset);
ssize_t tni_sys_write(int file, const void *from, size_t size);
int tni_sys_write_all(int file, const void *from, size_t size); /* 0, or -1 with errno */
int tni_sys_stat(const char *path, struct stat *out);
int tni_sys_fstat(int file, struct stat *out);
int tni_sys_fstatat(int folder, const char *path, struct stat *out, int flags);
int tni_sys_faccessat(int folder, const char *path, int mode, int flags);
int tni_sys_futimens(int file); /* sets both times to now */
int tni_sys_fsync(int file);
int tni_sys_fchmod(int file, mode_t mode);
int tni_sys_fchown(int file, uid_t user, gid_t group);
int tni_sys_ftruncate(int file, off_t size);
int tni_sys_fallocate(int file,
                      off_t size); /* an errno, as posix_fallocate gives; from the start */
int tni_sys_flock(int file, int how);
int tni_sys_mkdir(const char *path, mode_t mode);
int tni_sys_mkdirat(int folder, const char *path, mode_t mode);
int tni_sys_renameat(int from_folder, const char *from, int to_folder, const char *to);
int tni_sys_unlinkat(int folder, const char *path, int flags);
int tni_sys_shm_open(const char *name, int flags, mode_t mode);
void *tni_sys_mmap(int file, size_t size, int access, int flags); /* from the start; MAP_FAILED */
char *tni_sys_getcwd(char *out, size_t size);
char *tni_sys_realpath(const char *path, char *out); /* out holds PATH_MAX bytes */
DIR *tni_sys_opendir(const char *path);
DIR *tni_sys_fdopendir(int folder);
struct dirent *tni_sys_readdir(DIR *folder); /* NULL with errno 0 at the end */
void *tni_sys_dlopen(const char *path, int flags);
int tni_sys_pipe(int out[2]); /* close-on-exec */
int tni_sys_poll(struct pollfd *files, nfds_t count, int timeout_ms);
int tni_sys_spawn(pid_t *out, const char *path, const posix_spawn_file_actions_t *actions,
                  const posix_spawnattr_t *attributes, const char *const *arguments,
                  const char *const *environment); /* an errno, as posix_spawn gives */
int tni_sys_waitid(pid_t pid, siginfo_t *out, int flags);
pid_t tni_sys_waitpid(pid_t pid, int *out_status, int flags);
int tni_sys_thread_create(pthread_t *out, void *(*run)(void *), void *user); /* an errno */

#endif
