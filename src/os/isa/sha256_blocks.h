/* The inner function of SHA-256, one version for each instruction set. Included by objects compiled
 * for more than the baseline processor: declarations only, see cmake/TenonIsa.cmake. */
#ifndef TNI_OS_ISA_SHA256_BLOCKS_H
#define TNI_OS_ISA_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct tni_isa_row;

enum { TNI_SHA256_BLOCK = 64 };

/* Folds `count` blocks of TNI_SHA256_BLOCK bytes at `data` (any alignment) into `state`. */
typedef void tni_sha256_blocks(uint32_t state[8], const unsigned char *data, size_t count);

void tni_sha256_blocks_sha(uint32_t state[8], const unsigned char *data, size_t count);
void tni_sha256_blocks_arm_sha2(uint32_t state[8], const unsigned char *data, size_t count);
void tni_sha256_blocks_portable(uint32_t state[8], const unsigned char *data, size_t count);

extern const uint32_t tni_sha256_constants[64]; /* aligned to 16 bytes */

/* All rows of this build, best first; `function` is a tni_sha256_blocks. */
const struct tni_isa_row *tni_sha256_rows(size_t *out_count);

/* Makes the best row for `features` the one that all hashing uses from now on, and returns it. The
 * first hash calls it with tni_cpu_features(); other calls are for tests. */
const struct tni_isa_row *tni_sha256_choose(uint64_t features);

#endif
