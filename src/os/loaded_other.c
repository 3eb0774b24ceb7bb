#include "loaded.h"

/* Not implemented for this system's loader. */
bool tni_loaded_each(void (*see)(void *user, const char *path), void *user)
{
    (void)see, (void)user;
    return false;
}
