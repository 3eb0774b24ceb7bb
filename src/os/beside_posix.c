#include "beside.h"

#include "base/alloc.h"
#include "file.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define MARK ".tmp-"

enum { STALE_SECONDS = 3600, BOOT_DIGITS = 8 };

/* Returns a number that identifies this boot of the system, the same in all its containers; 0 if
 * the system does not provide one. */
static uint32_t read_boot(void)
{
    static _Atomic uint32_t known;
    uint32_t boot = atomic_load_explicit(&known, memory_order_relaxed);
    char *text = NULL;
    size_t size = 0;
    if (boot != 0 ||
        tni_file_read("/proc/sys/kernel/random/boot_id", 4096, &text, &size, NULL) != TN_OK)
        return boot;
    boot = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        boot = (boot ^ (unsigned char)text[i]) * 16777619u;
    boot = boot ? boot : 1;
    tni_release(text);
    atomic_store_explicit(&known, boot, memory_order_relaxed);
    return boot;
}

/* Returns 1 if the file at `path` is the open one, 0 if it is another file or missing, -1 with
 * errno if the query fails. */
static int is_still_at(const char *path, int file)
{
    struct stat own, there;
    if (tni_sys_fstat(file, &own) != 0)
        return -1;
    if (tni_sys_fstatat(AT_FDCWD, path, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    return S_ISREG(there.st_mode) && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/* Returns 1 if this process holds the lock and the file still has its name; 0 if a cleaner mistook
 * the file for one of a dead writer; -1 if locks are not supported. */
static int lock_file(const char *path, int file)
{
    if (tni_sys_flock(file, LOCK_EX | LOCK_NB) == 0)
        return is_still_at(path, file);
    return errno == EWOULDBLOCK ? 0 : -1;
}

int tni_beside_create(const char *path, mode_t mode, char *out_name)
{
    static _Atomic unsigned turn;
    const size_t room = strlen(path) + TNI_BESIDE_ROOM;
    uint32_t boot = read_boot();
    int file = -1;
    for (int tries = 0; file < 0 && tries < 16; tries++) {
        snprintf(out_name, room, "%s" MARK "%08" PRIx32 "-%ld-%u", path, boot, (long)getpid(),
                 atomic_fetch_add(&turn, 1));
        file = tni_sys_open(out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (file < 0 && errno != EEXIST)
            break;
        const int held = file < 0 || boot == 0 ? 1 : lock_file(out_name, file);
        if (held == 1)
            continue;
        if (held < 0) { /* use a name with BOOT 0: no lock */
            (void)tni_sys_unlinkat(AT_FDCWD, out_name, 0);
            boot = 0;
        }
        (void)tni_sys_close(file);
        file = -1;
        errno = EEXIST;
    }
    return file;
}

/* Skips digits of a number; NULL if none exist. */
static const char *skip_digits(const char *at)
{
    const size_t count = strspn(at, "0123456789");
    return count > 0 ? at + count : NULL;
}

/* Reads BOOT from the part of a name that follows MARK; false if no writer creates such a name. */
static bool parse_name(const char *rest, uint32_t *out_boot)
{
    if (strspn(rest, "0123456789abcdef") != BOOT_DIGITS || rest[BOOT_DIGITS] != '-')
        return false;
    const char *at = skip_digits(rest + BOOT_DIGITS + 1);
    at = at && *at == '-' ? skip_digits(at + 1) : NULL;
    if (!at || *at != '\0')
        return false;
    *out_boot = (uint32_t)strtoul(rest, NULL, 16);
    return true;
}

/* Locks the file, if locks are supported, so that no writer can start to use it before it is
 * removed. */
static bool is_abandoned(const char *path, int file, uint32_t boot)
{
    struct stat facts;
    const bool locked = tni_sys_flock(file, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK)
        return false;
    if (is_still_at(path, file) != 1 || tni_sys_fstat(file, &facts) != 0)
        return false;
    return (locked && boot != 0 && boot == read_boot()) ||
           (int64_t)time(NULL) - (int64_t)facts.st_mtime > STALE_SECONDS;
}

static void clean_one(const char *path, uint32_t boot)
{
    const int file = tni_sys_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (file < 0)
        return;
    if (is_abandoned(path, file, boot))
        (void)tni_sys_unlinkat(AT_FDCWD, path, 0);
    (void)tni_sys_close(file);
}

void tni_beside_clean(const char *path)
{
    const char *name = tni_path_name(path);
    const size_t length = strlen(name) + strlen(MARK);
    char *folder = tni_path_folder(path), *prefix = tni_alloc(length + 1);
    tni_names *names = NULL;
    uint32_t boot = 0;
    if (prefix)
        snprintf(prefix, length + 1, "%s" MARK, name);
    if (folder && prefix)
        (void)tni_folder_list(folder, prefix, "", &names, NULL);
    for (size_t i = 0; names && i < names->count; i++) {
        char *found = parse_name(names->names[i] + length, &boot)
                          ? tni_path_join(folder, names->names[i])
                          : NULL;
        if (found)
            clean_one(found, boot);
        tni_release(found);
    }
    tni_release(names);
    tni_release(prefix);
    tni_release(folder);
}
