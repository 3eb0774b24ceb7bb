/* Opening code at run time. What is opened stays open as long as the process: libraries with
 * threads of their own crash when they are unloaded. Thread-safety: Safe. */
#ifndef TNI_OS_DL_H
#define TNI_OS_DL_H

#include "elf.h"

/* What the file says of itself, without running it. On systems whose libraries this floor cannot
 * read, everything is taken to be in order. */
tn_status tni_dl_inspect(const char *path, tni_elf_facts *out, tn_error *err);

/* Opens a file by path, or a name by the loader's own search; all symbols are bound now and stay
 * local. With the loader's words: TN_UNAVAILABLE when it or something it needs is absent,
 * TN_INCOMPATIBLE when it cannot be used, TN_BUSY when the process has no descriptor left. */
tn_status tni_dl_open(const char *path_or_name, void **out_handle, tn_error *err);

/* The address of `name`, of that symbol version when `version` is not NULL; NULL when absent. */
void *tni_dl_symbol(void *handle, const char *name, const char *version);

/* The file behind a handle, or NULL when the system does not say: tni_release it. */
char *tni_dl_file(void *handle);

/* The folder of the library or program this code is part of: tni_release it. TN_UNAVAILABLE when
 * the system does not say. */
tn_status tni_dl_own_folder(char **out, tn_error *err);

/* Where the loader looks for a bare name, for messages. Static or environment text. */
void tni_dl_places(char *out, size_t size);

#endif
