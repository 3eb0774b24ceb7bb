/* The library's one way to host memory; see tenon/alloc.h for the hook behind it. */
#ifndef TNI_BASE_ALLOC_H
#define TNI_BASE_ALLOC_H

#include "tenon/alloc.h"

/* NULL when there is no memory. A size of 0 gives a block that can be released. */
void *tni_alloc(size_t size);
void *tni_alloc_aligned(size_t size, size_t align); /* a power of two */
void *tni_alloc_zeroed(size_t count, size_t size);  /* NULL too when count * size wraps */
void tni_release(void *memory);                     /* accepts NULL */

/* A copy of `text`, or of its first `length` bytes, with a terminator; NULL for want of memory. */
char *tni_text_copy(const char *text);
char *tni_text_copy_part(const char *text, size_t length);

/* Makes room for `needed` elements of `size` bytes in *array, which has room for *capacity; grows
 * by half or more. False, with nothing changed, for want of memory. */
int tni_array_reserve(void **array, size_t *capacity, size_t used, size_t needed, size_t size);

/* err gets TN_OUT_OF_MEMORY for `what`. */
tn_status tni_no_memory(tn_error *err, const char *where, const char *what);

#endif
