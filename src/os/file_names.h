/* The system-independent part of listing a folder. */
#ifndef TNI_OS_FILE_NAMES_H
#define TNI_OS_FILE_NAMES_H

#include "base/buffer.h"
#include "file.h"

/* Whether `name` begins with `prefix`, ends with `suffix` and has at least one character between
 * them. */
bool tni_names_fit(const char *name, const char *prefix, const char *suffix);

/* Builds a sorted list of the `count` zero-terminated strings in `texts`. NULL if out of memory. */
tni_names *tni_names_pack(const tni_buffer *texts, size_t count);

#endif
