#include "shared.h"

#include "base/alloc.h"
#include "file.h"
#include "fork.h"
#include "sys.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/random.h>
#endif

struct tni_shared {
    void *memory;
    size_t size;
    unsigned char name[TNI_SHARED_NAME];
    bool created;
    unsigned generation; /* fork generation of the process that created it */
};

enum { PATH = sizeof "/tenon-" + 2 * (size_t)TNI_SHARED_NAME };

/* The name of the system's shared memory object. */
static void path_of(const unsigned char *name, char out[PATH])
{
    size_t at = (size_t)snprintf(out, PATH, "/tenon-");
    for (size_t i = 0; i < TNI_SHARED_NAME; i++)
        at += (size_t)snprintf(out + at, PATH - at, "%02x", name[i]);
}

/* The first bytes of a name; the rest is random. */
typedef struct maker {
    uint32_t process;
    uint32_t space; /* pid namespace, or 0: containers may share memory but not pids */
} maker;

static maker maker_here(void)
{
    maker here = {.process = (uint32_t)getpid()};
#if defined(__linux__)
    struct stat facts;
    if (tni_sys_stat("/proc/self/ns/pid", &facts) == 0)
        here.space = (uint32_t)facts.st_ino;
#endif
    return here;
}

#if defined(__linux__)

/* Parses "tenon-0123...": exactly 32 digits. */
static bool read_name(const char *file, unsigned char out[TNI_SHARED_NAME])
{
    file += sizeof "tenon-" - 1;
    for (size_t i = 0; i < TNI_SHARED_NAME; i++) {
        unsigned byte;
        if (strspn(file + 2 * i, "0123456789abcdef") < 2 || sscanf(file + 2 * i, "%2x", &byte) != 1)
            return false;
        out[i] = (unsigned char)byte;
    }
    return !file[2 * TNI_SHARED_NAME];
}

static bool is_left_behind(const unsigned char *name, const maker *here)
{
    maker of;
    memcpy(&of, name, sizeof of);
    return here->space != 0 && of.space == here->space && of.process > 0 &&
           of.process <= INT32_MAX && kill((pid_t)of.process, 0) != 0 && errno == ESRCH;
}

void tni_shared_collect(void)
{
    unsigned char name[TNI_SHARED_NAME];
    char path[PATH];
    tni_names *names = NULL;
    const maker here = maker_here();
    if (tni_folder_list("/dev/shm", "tenon-", "", &names, NULL) != TN_OK)
        return;
    for (size_t i = 0; i < names->count; i++) {
        if (!read_name(names->names[i], name) || !is_left_behind(name, &here))
            continue;
        path_of(name, path);
        (void)shm_unlink(path);
    }
    tni_release(names);
}

#else

void tni_shared_collect(void) {}

#endif

static tn_status fail_shared(int code, const char *where, tn_error *err)
{
    char text[128];
    const char *why = strerror_r(code, text, sizeof text);
    switch (code) {
    case ENOSPC:
    case ENOMEM:
    case EFBIG:
        return tn_fail(err, TN_OUT_OF_MEMORY, code, where, "not enough shared memory: %s", why);
    case EMFILE:
    case ENFILE:
        return tn_fail(err, TN_BUSY, code, where, "no free file descriptor: %s; raise the limit",
                       why);
    default:
        return tn_fail(err, TN_UNSUPPORTED, code, where,
                       "shared memory is not available: %s; on Linux /dev/shm must "
                       "exist and be writable",
                       why);
    }
}

static tn_status map(int file, size_t size, const unsigned char *name, tni_shared **out,
                     tn_error *err)
{
    tni_shared *shared = tni_alloc_zeroed(1, sizeof *shared);
    if (!shared)
        return tni_no_memory(err, "shared memory", "its handle");
    void *memory = tni_sys_mmap(file, size, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (memory == MAP_FAILED) {
        tn_status status = fail_shared(errno, "mmap", err);
        tni_release(shared);
        return status;
    }
    *shared = (tni_shared){.memory = memory, .size = size};
    memcpy(shared->name, name, TNI_SHARED_NAME);
    *out = shared;
    return TN_OK;
}

/* Allocates the memory immediately: if it were missing at the first access, the process would be
 * killed. */
static int reserve(int file, size_t size)
{
    return tni_sys_ftruncate(file, (off_t)size) != 0 ? errno : tni_sys_fallocate(file, (off_t)size);
}

/* Blocks SIGXFSZ, which would also kill the process if there is a limit on file sizes. */
static int reserve_room(int file, size_t size)
{
    static const struct timespec at_once = {0, 0};
    sigset_t limit, before;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    int code = reserve(file, size);
    if (code == EFBIG && !sigismember(&before, SIGXFSZ))
        sigtimedwait(&limit, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static tn_status make_name(unsigned char out[TNI_SHARED_NAME], tn_error *err)
{
    const maker here = maker_here();
    memcpy(out, &here, sizeof here);
    if (getentropy(out + sizeof here, TNI_SHARED_NAME - sizeof here) != 0)
        return fail_shared(errno, "getentropy", err);
    return TN_OK;
}

tn_status tni_shared_create(size_t size, tni_shared **out, tn_error *err)
{
    static tni_once once = TNI_ONCE_INIT;
    unsigned char name[TNI_SHARED_NAME];
    char path[PATH];
    tni_once_run(&once, tni_shared_collect);
    tn_status status = make_name(name, err);
    if (status)
        return status;
    path_of(name, path);
    int file = tni_sys_shm_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0)
        return fail_shared(errno, "shm_open", err);
    int code = reserve_room(file, size);
    status = code ? fail_shared(code, "shared memory", err) : map(file, size, name, out, err);
    (void)tni_sys_close(file);
    if (status) {
        (void)shm_unlink(path);
        return status;
    }
    (*out)->created = true;
    (*out)->generation = tni_fork_generation();
    return TN_OK;
}

/* The memory must belong to this user and have exactly this size. */
static tn_status check(int file, size_t size, tn_error *err)
{
    static const char where[] = "shared memory";
    struct stat facts;
    if (tni_sys_fstat(file, &facts) != 0)
        return tn_fail(err, TN_IO, errno, "fstat", "the shared memory cannot be examined");
    if (facts.st_uid != geteuid())
        return tn_fail(err, TN_NOT_PERMITTED, 0, where,
                       "the shared memory belongs to user %lld, not to user %lld",
                       (long long)facts.st_uid, (long long)geteuid());
    if (facts.st_mode & 077)
        return tn_fail(err, TN_NOT_PERMITTED, 0, where,
                       "the shared memory is accessible to other users (mode %04o)",
                       (unsigned)facts.st_mode & 07777);
    if (!S_ISREG(facts.st_mode) || facts.st_size != (off_t)size)
        return tn_fail(err, TN_CORRUPT, 0, where, "the shared memory has %lld bytes instead of %zu",
                       (long long)facts.st_size, size);
    return TN_OK;
}

tn_status tni_shared_open(const unsigned char name[TNI_SHARED_NAME], size_t size, tni_shared **out,
                          tn_error *err)
{
    char path[PATH];
    path_of(name, path);
    int file = tni_sys_shm_open(path, O_RDWR, 0);
    if (file < 0 && errno == ENOENT)
        return tn_fail(err, TN_NOT_FOUND, ENOENT, "shm_open",
                       "no shared memory has that name: its creator released it");
    if (file < 0 && errno == EACCES)
        return tn_fail(err, TN_NOT_PERMITTED, EACCES, "shm_open",
                       "the shared memory belongs to another user");
    if (file < 0)
        return fail_shared(errno, "shm_open", err);
    tn_status status = check(file, size, err);
    if (!status)
        status = map(file, size, name, out, err);
    (void)tni_sys_close(file);
    return status;
}

void tni_shared_release(tni_shared *shared)
{
    char path[PATH];
    if (!shared)
        return;
    if (shared->created && shared->generation == tni_fork_generation()) {
        path_of(shared->name, path);
        (void)shm_unlink(path);
    }
    (void)munmap(shared->memory, shared->size);
    tni_release(shared);
}

void *tni_shared_memory(const tni_shared *shared)
{
    return shared->memory;
}

const unsigned char *tni_shared_name(const tni_shared *shared)
{
    return shared->name;
}
