/* SHA-256 (FIPS 180-4), using the processor's instructions for it if available. In os, not in base,
 * because it detects the processor. */
#ifndef TNI_OS_SHA256_H
#define TNI_OS_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TNI_SHA256_SIZE = 32, TNI_SHA256_HEX = 65 };

/* State of a hash computation. After tni_sha256_end, call tni_sha256_begin before reuse.
 * Thread-safety: one thread at a time. */
typedef struct tni_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char pending[64]; /* the first bytes % 64 are valid */
} tni_sha256;

/* `data` may be NULL when `size` is 0. */
void tni_sha256_begin(tni_sha256 *hash);
void tni_sha256_add(tni_sha256 *hash, const void *data, size_t size);
void tni_sha256_end(tni_sha256 *hash, unsigned char out[TNI_SHA256_SIZE]);

/* Hashes `data` in one call. */
void tni_sha256_of(const void *data, size_t size, unsigned char out[TNI_SHA256_SIZE]);

/* Lower-case hexadecimal with a terminator. */
void tni_sha256_hex(const unsigned char digest[TNI_SHA256_SIZE], char out[TNI_SHA256_HEX]);

#endif
