/* Whole numbers as people write them. */
#ifndef TNI_BASE_NUMBER_H
#define TNI_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits and nothing else, up to INT64_MAX; with `units` also one letter of k m g t, in either case,
 * for powers of 1024. False, with *out untouched, for anything else. */
bool tni_number_parse(const char *text, bool units, int64_t *out);

/* The same number with the greatest unit that divides it: 67108864 is "64m". At most 24 bytes, the
 * terminator included. `value` is not negative. */
void tni_number_write_units(int64_t value, char out[24]);

#endif
