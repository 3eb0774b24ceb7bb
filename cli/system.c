#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "system.h"

#include <sys/stat.h>
#if defined(_WIN32)
#include <io.h>
#else
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

bool system_is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

int system_replace(const char *from, const char *to)
{
#if defined(_WIN32)
    (void)remove(to); /* rename() there refuses a name that is taken */
#endif
    return rename(from, to);
}
