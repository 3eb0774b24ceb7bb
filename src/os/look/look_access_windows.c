#include "look_read.h"

/* Its permissions are lists that only an attempt to open would evaluate. */
bool tni_look_may_open(const char *path)
{
    (void)path;
    return true;
}
