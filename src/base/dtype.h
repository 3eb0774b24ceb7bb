/* Element types by name: the table behind tenon/dtype.h. Thread-safety: Safe. */
#ifndef TNI_BASE_DTYPE_H
#define TNI_BASE_DTYPE_H

#include "words.h"

#include "tenon/dtype.h"

/* Returns TN_DTYPE_NONE if no dtype has that name. */
tn_dtype tni_dtype_find(const char *word);

/* Returns the dtype name nearest to an unknown one, or NULL, as tni_words_nearest. */
const char *tni_dtype_nearest(const char *word);

/* Writes the end of a message about an unknown dtype name, as tni_words_offer. Returns `room`. */
const char *tni_dtype_offer(const char *word, char room[TNI_OFFER]);

/* Bytes of one element; 0 for an invalid dtype. */
int64_t tni_dtype_bytes(tn_dtype dtype);

#endif
