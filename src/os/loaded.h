/* Shared libraries that are in this process now. Thread-safety: Safe. */
#ifndef TNI_OS_LOADED_H
#define TNI_OS_LOADED_H

#include <stdbool.h>

/* Calls see(user, path) for each of them, in the order they came, with the path by which the loader
 * knows it, which may be relative. The loader is locked meanwhile: `see` opens nothing. False where
 * the system does not tell. */
bool tni_loaded_each(void (*see)(void *user, const char *path), void *user);

#endif
