/* Copies of elements as bytes, with any strides. */
#ifndef TNI_REF_COPY_H
#define TNI_REF_COPY_H

#include <stdint.h>

/* Copies `count` elements of 1, 2, 4, 8 or 16 bytes; steps are strides in bytes. A `from_step` of 0
 * repeats one element. */
void tni_ref_copy(int64_t bytes, const char *from, int64_t from_step, char *to, int64_t to_step,
                  int64_t count);

#endif
