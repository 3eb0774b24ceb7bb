/* The inner folders of a cache, and errors about its files. */
#include "cache_folder.h"
#include "os/sys.h"

#include <errno.h>

tn_status tni_cache_io(tn_error *err, const char *where, const char *path)
{
    char text[128];
    int code = errno;
    return tn_fail(err, TN_IO, code, where, "%s in the cache folder \"%s\"",
                   strerror_r(code, text, sizeof text), path);
}

tn_status tni_cache_entry_io(tn_error *err, const char *where, const char *path, const char *kind,
                             const char *hex)
{
    char text[128];
    int code = errno;
    if (code == EISDIR)
        return tn_fail(err, TN_IO, code, where,
                       "expected a file, got a folder: \"%s/%s/%.2s/%s\"; remove the folder", path,
                       kind, hex, hex + 2);
    return tn_fail(err, TN_IO, code, where, "%s in the cache folder \"%s\", at %s/%.2s/%s",
                   strerror_r(code, text, sizeof text), path, kind, hex, hex + 2);
}

void tni_cache_close(int file)
{
    int saved = errno;
    (void)tni_sys_close(file);
    errno = saved;
}

static int open_within(int parent, const char *name, bool make)
{
    int inner = tni_sys_openat(parent, name, TNI_CACHE_FOLDER_FLAGS, 0);
    if (inner >= 0 || errno != ENOENT || !make)
        return inner;
    if (tni_sys_mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
        return -1;
    return tni_sys_openat(parent, name, TNI_CACHE_FOLDER_FLAGS, 0);
}

int tni_cache_shelf_open(int root, const char *kind, const char *hex, bool make)
{
    char name[3] = {hex[0], hex[1], '\0'};
    int outer = open_within(root, kind, make);
    if (outer < 0)
        return -1;
    int shelf = open_within(outer, name, make);
    tni_cache_close(outer);
    return shelf;
}

bool tni_cache_is_folder(int shelf, const char *name)
{
    struct stat facts;
    int saved = errno;
    bool found = tni_sys_fstatat(shelf, name, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    errno = saved;
    return found && S_ISDIR(facts.st_mode);
}

bool tni_cache_unlink(int root, const char *kind, const char *hex)
{
    int shelf = tni_cache_shelf_open(root, kind, hex, false);
    if (shelf < 0)
        return errno == ENOENT;
    bool gone = tni_sys_unlinkat(shelf, hex + 2, 0) == 0 || errno == ENOENT;
    if (!gone && errno == EPERM &&
        tni_cache_is_folder(shelf, hex + 2)) /* POSIX gives EPERM, Linux EISDIR */
        errno = EISDIR;
    tni_cache_close(shelf);
    return gone;
}
