/* Binds a vendor library's functions, by name and version, into a table. Thread-safety: Safe. */
#ifndef TNI_OS_BIND_H
#define TNI_OS_BIND_H

#include "tenon/base.h"

/* Implements tn_host.library_bind. `remedy` is appended to the message if no file is found; NULL if
 * the caller reports it elsewhere. *out_file, if requested and known to the system, is the file
 * that was opened: release it with tni_release. */
tn_status tni_bind(const char *files, const tn_symbol *symbols, size_t count, const char *remedy,
                   void *table, char **out_file, tn_error *err);

/* Writes the generic remedy for missing files of which only the names are known. */
void tni_bind_remedy(const char *files, char *out, size_t size);

#endif
