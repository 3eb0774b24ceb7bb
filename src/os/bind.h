/* A vendor's functions, bound by name and version into a table. Thread-safety: Safe. */
#ifndef TNI_OS_BIND_H
#define TNI_OS_BIND_H

#include "tenon/base.h"

/* What tn_host.library_bind promises. `remedy` ends the message when no file is found; NULL: it is
 * said elsewhere. *out_file, when asked for and the system says, is the file opened: tni_release it. */
tn_status tni_bind(const char *files, const tn_symbol *symbols, size_t count, const char *remedy,
                   void *table, char **out_file, tn_error *err);

/* What helps against the want of files of which nothing is known but their names. */
void tni_bind_remedy(const char *files, char *out, size_t size);

#endif
