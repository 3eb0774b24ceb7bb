/* Parses and formats whole numbers as users write them. */
#ifndef TNI_BASE_NUMBER_H
#define TNI_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses digits up to INT64_MAX; if `units` is true, also one letter of k m g t, in either case,
 * for powers of 1024. For anything else returns false and leaves *out unchanged. */
bool tni_number_parse(const char *text, bool units, int64_t *out);

/* Writes the number with the greatest unit that divides it: 67108864 is "64m". At most 24 bytes,
 * including the terminator. `value` must not be negative. */
void tni_number_write_units(int64_t value, char out[24]);

#endif
