/* Element types by their words: the one table behind tenon/dtype.h.
 * Thread-safety: Safe. */
#ifndef TNI_BASE_DTYPE_H
#define TNI_BASE_DTYPE_H

#include "tenon/dtype.h"

/* TN_DTYPE_NONE when there is none of that word. */
tn_dtype tni_dtype_find(const char *word);

/* The word nearest to one that is none, or NULL, as tni_words_nearest. */
const char *tni_dtype_nearest(const char *word);

/* Of one element; 0 for what is no dtype. */
int64_t tni_dtype_bytes(tn_dtype dtype);

#endif
