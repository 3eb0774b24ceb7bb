/* Shared libraries currently loaded in this process. Thread-safety: Safe. */
#ifndef TNI_OS_LOADED_H
#define TNI_OS_LOADED_H

#include <stdbool.h>

/* Calls see(user, path) for each of them, in load order, with the loader's path, which may be
 * relative. The loader is locked during the calls: `see` must not open libraries. Returns false if
 * the system has no such list. */
bool tni_loaded_each(void (*see)(void *user, const char *path), void *user);

#endif
