/* The environment, read with privileges in mind. */
#ifndef TNI_OS_ENV_H
#define TNI_OS_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* True when the process runs with more rights than whoever started it (set-uid, set-gid, file
 * capabilities): then nothing that they could have prepared may lead to code or files. */
bool tni_env_privileged(void);

/* The variable's value, or NULL when it is unset or the process is privileged. Lent until the
 * environment changes. Every variable of Tenon's is read through this. */
const char *tni_env_get(const char *name);

/* The value whatever the privileges, for variables that others read (CUDA_VISIBLE_DEVICES): to say
 * what they will do, never to find code or files. */
const char *tni_env_value(const char *name);

/* True when the variable is set, even where tni_env_get would ignore it: for reports. */
bool tni_env_is_set(const char *name);

/* The whole environment as "NAME=value" texts, ended by NULL; NULL when there is none. For
 * reports and child processes only. */
const char *const *tni_env_all(void);

#endif
