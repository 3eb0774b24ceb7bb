#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#if defined(_WIN32)
#include <io.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

bool system_is_terminal(FILE *file)
{
#if defined(_WIN32)
    return _isatty(_fileno(file)) != 0;
#else
    return isatty(fileno(file)) != 0;
#endif
}

int system_columns(FILE *file)
{
#if defined(TIOCGWINSZ)
    struct winsize size;
    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
#else
    (void)file;
    return 0;
#endif
}

bool system_is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

#if defined(_WIN32)
int system_can_write(const char *path)
{
    (void)path;
    return 0;
}
#else
int system_can_write(const char *path)
{
    struct stat about;
    const char *slash = strrchr(path, '/');
    size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return EISDIR;
    if (system_is_special(path))
        return access(path, W_OK) == 0 ? 0 : errno;
    char *folder = malloc(length + 2);
    if (!folder)
        return ENOMEM;
    snprintf(folder, length + 2, "%.*s", slash ? (int)length : 1, slash ? path : ".");
    int code = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
    free(folder);
    return code;
}
#endif

int system_replace(const char *from, const char *to)
{
#if defined(_WIN32)
    (void)remove(to); /* Windows' rename() fails if the target exists */
#endif
    return rename(from, to);
}

char *system_real_path(const char *path)
{
#if defined(_WIN32)
    return _fullpath(NULL, path, 0);
#else
    return realpath(path, NULL);
#endif
}

void system_copy_mode(FILE *file, const char *like)
{
#if defined(_WIN32)
    (void)file, (void)like;
#else
    struct stat about;
    if (stat(like, &about) == 0)
        (void)fchmod(fileno(file), about.st_mode & 07777);
#endif
}

double system_seconds(void)
{
#if defined(_WIN32)
    return (double)clock() / CLOCKS_PER_SEC; /* on Windows clock() is wall time */
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
#endif
}

int system_make_folder(const char *path)
{
#if defined(_WIN32)
    return mkdir(path);
#else
    return mkdir(path, 0755);
#endif
}
