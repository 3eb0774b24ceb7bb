#include "look_read.h"

#include <fcntl.h>
#include <unistd.h>

bool tni_look_may_open(const char *path)
{
    return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}
