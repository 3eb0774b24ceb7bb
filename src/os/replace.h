/* Writing a file so that whoever reads it sees the old or the new one, never a part. */
#ifndef TNI_OS_REPLACE_H
#define TNI_OS_REPLACE_H

#include "tenon/base.h"

/* Makes the folders above it that are missing, for their owner alone, writes beside `path` and renames;
 * a link at `path` stays one, and its file is replaced; one that leads nowhere is TN_NOT_FOUND. The file
 * keeps its owner and who may read and write it; a new one is its owner's. Statuses as in file.h.
 * Thread-safety: Safe; of two at once the later one stays. */
tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err);

#endif
