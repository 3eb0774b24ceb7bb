/* SHA-256 (FIPS 180-4), with the processor's own instructions where it has them. Lives here and
 * not in base because it asks which processor this is. */
#ifndef TNI_OS_SHA256_H
#define TNI_OS_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TNI_SHA256_SIZE = 32, TNI_SHA256_HEX = 65 };

/* A hash under way. After the end it must begin anew.
 * Thread-safety: one thread at a time. */
typedef struct tni_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char pending[64]; /* the first bytes % 64 of them count */
} tni_sha256;

/* `data` may be NULL when `size` is 0. */
void tni_sha256_begin(tni_sha256 *hash);
void tni_sha256_add(tni_sha256 *hash, const void *data, size_t size);
void tni_sha256_end(tni_sha256 *hash, unsigned char out[TNI_SHA256_SIZE]);

/* All of it in one call. */
void tni_sha256_of(const void *data, size_t size, unsigned char out[TNI_SHA256_SIZE]);

/* Lower-case hexadecimal with a terminator. */
void tni_sha256_hex(const unsigned char digest[TNI_SHA256_SIZE], char out[TNI_SHA256_HEX]);

#endif
