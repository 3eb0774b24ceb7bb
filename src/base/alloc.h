/* All host memory of the library is allocated here; tenon/alloc.h has the hook to replace the
 * allocator. */
#ifndef TNI_BASE_ALLOC_H
#define TNI_BASE_ALLOC_H

#include "tenon/alloc.h"

/* Return NULL if out of memory. A size of 0 gives a block that can be released. */
void *tni_alloc(size_t size);
void *tni_alloc_aligned(size_t size, size_t align); /* align: a power of two */
void *tni_alloc_zeroed(size_t count, size_t size);  /* NULL also if count * size overflows */
void tni_release(void *memory);                     /* accepts NULL */

/* Return a copy of `text`, or of its first `length` bytes, with a terminator; NULL if out of
 * memory. */
char *tni_text_copy(const char *text);
char *tni_text_copy_part(const char *text, size_t length);

/* Makes room for `needed` elements of `size` bytes in *array, whose current capacity is *capacity;
 * grows by at least half. If out of memory, returns false and changes nothing. */
int tni_array_reserve(void **array, size_t *capacity, size_t used, size_t needed, size_t size);

/* Fails with TN_OUT_OF_MEMORY for `what`. */
tn_status tni_no_memory(tn_error *err, const char *where, const char *what);

#endif
