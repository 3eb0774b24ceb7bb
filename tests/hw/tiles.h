/* Compiled for AMX; called only once the kernel has given permission. */
#ifndef TENON_TEST_TILES_H
#define TENON_TEST_TILES_H

#include <stdint.h>

/* c = a * b for 16x64 bytes and 64x16 bytes packed by fours; c is 16x16. */
void tiles_multiply(const int8_t *a, const int8_t *b, int32_t *c);

#endif
