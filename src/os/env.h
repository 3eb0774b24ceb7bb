/* Reads the environment; most variables are ignored in a privileged process. */
#ifndef TNI_OS_ENV_H
#define TNI_OS_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* True if the process runs with elevated privileges (set-uid, set-gid, file capabilities). Then
 * nothing that the user who started it controls may determine which code or files are used. */
bool tni_env_privileged(void);

/* Returns the variable's value, or NULL if it is unset or the process is privileged. Valid until
 * the environment changes. All of Tenon's variables are read through this function. */
const char *tni_env_get(const char *name);

/* Returns the value also in a privileged process, for variables that other software reads
 * (CUDA_VISIBLE_DEVICES). Use it only to predict what that software does, never to find code or
 * files. */
const char *tni_env_value(const char *name);

/* True if the variable is set, even if tni_env_get ignores it. For reports. */
bool tni_env_is_set(const char *name);

/* The whole environment as "NAME=value" strings, terminated by NULL; may itself be NULL. For
 * reports and child processes only. */
const char *const *tni_env_all(void);

#endif
