/* Element types by name: the table behind tenon/dtype.h. Thread-safety: Safe. */
#ifndef TNI_BASE_DTYPE_H
#define TNI_BASE_DTYPE_H

#include "tenon/dtype.h"

/* Returns TN_DTYPE_NONE if no dtype has that name. */
tn_dtype tni_dtype_find(const char *word);

/* Returns the dtype name nearest to an unknown one, or NULL, as tni_words_nearest. */
const char *tni_dtype_nearest(const char *word);

/* Bytes of one element; 0 for an invalid dtype. */
int64_t tni_dtype_bytes(tn_dtype dtype);

#endif
