/* The part of listing a folder that is the same on every system. */
#ifndef TNI_OS_FILE_NAMES_H
#define TNI_OS_FILE_NAMES_H

#include "base/buffer.h"
#include "file.h"

/* Something between `prefix` and `suffix`. */
bool tni_names_fit(const char *name, const char *prefix, const char *suffix);

/* A sorted list from `count` texts that stand in `texts`, each with its terminator. NULL for want
 * of memory. */
tni_names *tni_names_pack(const tni_buffer *texts, size_t count);

#endif
