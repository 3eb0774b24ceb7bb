#include "loaded.h"

/* Systems whose loader is not asked yet. */
bool tni_loaded_each(void (*see)(void *user, const char *path), void *user)
{
    (void)see, (void)user;
    return false;
}
