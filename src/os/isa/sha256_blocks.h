/* The inner function of SHA-256, once for each instruction set. Included by objects that are
 * compiled for more than the least processor: declarations only, see cmake/TenonIsa.cmake. */
#ifndef TNI_OS_ISA_SHA256_BLOCKS_H
#define TNI_OS_ISA_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct tni_isa_row;

enum { TNI_SHA256_BLOCK = 64 };

/* Folds `count` blocks of TNI_SHA256_BLOCK bytes at `data`, aligned anyhow, into `state`. */
typedef void tni_sha256_blocks(uint32_t state[8], const unsigned char *data, size_t count);

void tni_sha256_blocks_sha(uint32_t state[8], const unsigned char *data, size_t count);
void tni_sha256_blocks_arm_sha2(uint32_t state[8], const unsigned char *data, size_t count);
void tni_sha256_blocks_portable(uint32_t state[8], const unsigned char *data, size_t count);

extern const uint32_t tni_sha256_constants[64]; /* aligned to 16 bytes */

/* Every row of this build, best first; `function` is a tni_sha256_blocks. */
const struct tni_isa_row *tni_sha256_rows(size_t *out_count);

/* Makes the best row for `features` the one that all hashing uses from now on, and returns it. The
 * first use does it with tni_cpu_features(); calling it again is for tests. */
const struct tni_isa_row *tni_sha256_choose(uint64_t features);

#endif
