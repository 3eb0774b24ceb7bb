/* Opens shared libraries at run time. An opened library is never closed: libraries with their own
 * threads crash when they are unloaded. Thread-safety: Safe. */
#ifndef TNI_OS_DL_H
#define TNI_OS_DL_H

#include "elf.h"

/* Inspects the file without running it. On systems without ELF, reports that everything is in
 * order. */
tn_status tni_dl_inspect(const char *path, tni_elf_facts *out, tn_error *err);

/* Checks the file's headers only (tni_elf_check_headers): that it is a library for this machine and
 * complete. On systems without ELF, always TN_OK. */
tn_status tni_dl_check_headers(const char *path, tn_error *err);

/* Opens a file by path, or a name through the loader's own search. All symbols are resolved
 * immediately and stay local. The error message is the loader's. Fails with TN_UNAVAILABLE if the
 * file or a dependency is missing, TN_INCOMPATIBLE if it cannot be used, TN_BUSY if the process has
 * no free file descriptor. */
tn_status tni_dl_open(const char *path_or_name, void **out_handle, tn_error *err);

/* Returns the address of `name`, of that symbol version if `version` is not NULL; NULL if
 * missing. */
void *tni_dl_symbol(void *handle, const char *name, const char *version);

/* Returns the file of a handle, or NULL if the system does not report it: release it with
 * tni_release. */
char *tni_dl_file(void *handle);

/* Returns the folder of the library or program that contains this code: release it with
 * tni_release. Fails with TN_UNAVAILABLE if the system does not report it. */
tn_status tni_dl_own_folder(char **out, tn_error *err);

/* Writes where the loader searches for a bare name, for messages. Uses static text and the
 * environment. */
void tni_dl_places(char *out, size_t size);

#endif
