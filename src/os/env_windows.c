#include "env.h"

#include <stdlib.h>

bool tni_env_privileged(void)
{
    return false; /* Windows has no set-uid: a process has the rights of its token, which the
                     starter's environment cannot raise */
}

const char *tni_env_get(const char *name)
{
    return getenv(name);
}

const char *tni_env_value(const char *name)
{
    return getenv(name);
}

bool tni_env_is_set(const char *name)
{
    return getenv(name) != NULL;
}

const char *const *tni_env_all(void)
{
    return (const char *const *)_environ;
}
