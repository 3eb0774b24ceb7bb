#include "env.h"

#include <stdlib.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

bool tni_env_privileged(void)
{
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#else
    return getuid() != geteuid() || getgid() != getegid();
#endif
}

const char *tni_env_get(const char *name)
{
    return tni_env_privileged() ? NULL : getenv(name);
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
    return (const char *const *)environ;
}
