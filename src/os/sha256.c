#include "sha256.h"

#include "cpu.h"
#include "isa/sha256_blocks.h"

#include <string.h>

static void store(uint32_t value, unsigned char *to)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> (24 - 8 * i));
}

#define FUNCTION(name) (void (*)(void)) tni_sha256_blocks_##name
static const tni_isa_row rows[] = {
#ifdef TENON_ISA_SHA
    {"sha", TENON_ISA_SHA, FUNCTION(sha)},
#endif
#ifdef TENON_ISA_ARM_SHA2
    {"arm_sha2", TENON_ISA_ARM_SHA2, FUNCTION(arm_sha2)},
#endif
    {"portable", 0, FUNCTION(portable)},
};
static tni_isa_table table = {rows, sizeof rows / sizeof rows[0], NULL};

const tni_isa_row *tni_sha256_rows(size_t *out_count)
{
    *out_count = table.count;
    return table.rows;
}

const tni_isa_row *tni_sha256_choose(uint64_t features)
{
    return tni_isa_use(&table, features);
}

static void run(tni_sha256 *hash, const unsigned char *data, size_t count)
{
    ((tni_sha256_blocks *)tni_isa_best(&table)->function)(hash->state, data, count);
}

void tni_sha256_begin(tni_sha256 *hash)
{
    static const uint32_t initial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                        0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
    memcpy(hash->state, initial, sizeof initial);
    hash->bytes = 0;
}

void tni_sha256_add(tni_sha256 *hash, const void *data, size_t size)
{
    const unsigned char *from = data;
    size_t pending = (size_t)(hash->bytes % TNI_SHA256_BLOCK);
    size_t room = TNI_SHA256_BLOCK - pending;
    hash->bytes += size;
    if (pending > 0 && size >= room) {
        memcpy(hash->pending + pending, from, room);
        run(hash, hash->pending, 1);
        from += room, size -= room, pending = 0;
    }
    if (size >= TNI_SHA256_BLOCK) {
        size_t whole = size / TNI_SHA256_BLOCK;
        run(hash, from, whole);
        from += whole * TNI_SHA256_BLOCK, size %= TNI_SHA256_BLOCK;
    }
    if (size > 0)
        memcpy(hash->pending + pending, from, size);
}

void tni_sha256_end(tni_sha256 *hash, unsigned char out[TNI_SHA256_SIZE])
{
    enum { LENGTH_AT = TNI_SHA256_BLOCK - 8 };
    static const unsigned char padding[TNI_SHA256_BLOCK] = {0x80};
    uint64_t bits = hash->bytes * 8;
    size_t pending = (size_t)(hash->bytes % TNI_SHA256_BLOCK);
    unsigned char length[8];
    store((uint32_t)(bits >> 32), length);
    store((uint32_t)bits, length + 4);
    tni_sha256_add(hash, padding,
                   pending < LENGTH_AT ? LENGTH_AT - pending
                                       : TNI_SHA256_BLOCK + LENGTH_AT - pending);
    tni_sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        store(hash->state[i], out + 4 * i);
}

void tni_sha256_of(const void *data, size_t size, unsigned char out[TNI_SHA256_SIZE])
{
    tni_sha256 hash;
    tni_sha256_begin(&hash);
    tni_sha256_add(&hash, data, size);
    tni_sha256_end(&hash, out);
}

void tni_sha256_hex(const unsigned char digest[TNI_SHA256_SIZE], char out[TNI_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < TNI_SHA256_SIZE; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * TNI_SHA256_SIZE] = '\0';
}
