/* SHA-256: the published messages, and every row that can run here against the portable one. */
#include "os/sha256.h"

#include "os/cpu.h"
#include "os/isa/sha256_blocks.h"
#include "test.h"

#include <stdbool.h>

static uint64_t seed = 0x9E3779B97F4A7C15;

static uint32_t random_below(uint32_t limit)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(seed >> 33) % limit;
}

static void fill(unsigned char *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)random_below(256);
}

static const tni_isa_row *rows;
static size_t row_count;

/* The n-th row made the chosen one; false when this processor cannot run it. */
static bool use_row(size_t n)
{
    if (rows[n].needs & ~tni_cpu_detected())
        return false;
    assert_ptr_equal(tni_sha256_choose(rows[n].needs), &rows[n]);
    return true;
}

static void assert_digest(const unsigned char digest[TNI_SHA256_SIZE], const char *expected)
{
    char hex[TNI_SHA256_HEX];
    tni_sha256_hex(digest, hex);
    assert_string_equal(hex, expected);
}

typedef struct vector {
    const char *message;
    const char *digest;
} vector;

/* FIPS 180-4 and the examples that NIST publishes with it. */
static const vector published[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnop"
     "qrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

/* Before any other test: nothing has been chosen yet. */
static void hashes_at_first_use(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE];
    (void)state;
    tni_sha256_of("abc", 3, digest);
    assert_digest(digest, published[1].digest);
    for (size_t i = 0; i < row_count; i++)
        print_message("%s: %s\n", rows[i].name, use_row(i) ? "runs here" : "cannot run here");
}

static void hashes_published_messages(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE];
    (void)state;
    for (size_t row = 0; row < row_count; row++) {
        if (!use_row(row))
            continue;
        for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
            tni_sha256_of(published[i].message, strlen(published[i].message), digest);
            assert_digest(digest, published[i].digest);
        }
    }
}

static void hashes_a_million_letters(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE];
    char piece[1000];
    (void)state;
    memset(piece, 'a', sizeof piece);
    for (size_t row = 0; row < row_count; row++) {
        tni_sha256 hash;
        if (!use_row(row))
            continue;
        tni_sha256_begin(&hash);
        for (int i = 0; i < 1000; i++)
            tni_sha256_add(&hash, piece, sizeof piece);
        tni_sha256_end(&hash, digest);
        assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

/* Each row folds the same blocks, from every alignment, into the state that the portable one
 * computes; the state before is arbitrary. */
static void rows_agree_on_blocks(void **state)
{
    enum { BLOCKS = 5 };
    unsigned char data[BLOCKS * TNI_SHA256_BLOCK + 16];
    (void)state;
    for (size_t row = 0; row < row_count; row++) {
        if (!use_row(row))
            continue;
        tni_sha256_blocks *blocks = (tni_sha256_blocks *)rows[row].function;
        for (size_t shift = 0; shift < 16; shift++) {
            uint32_t expected[8], found[8];
            fill(data, sizeof data);
            fill((unsigned char *)expected, sizeof expected);
            memcpy(found, expected, sizeof found);
            tni_sha256_blocks_portable(expected, data + shift, shift % (BLOCKS + 1));
            blocks(found, data + shift, shift % (BLOCKS + 1));
            assert_memory_equal(found, expected, sizeof expected);
        }
    }
}

static void add_in_pieces(tni_sha256 *hash, const unsigned char *data, size_t size)
{
    while (size > 0) {
        size_t piece = 1 + random_below(random_below(2) ? 7 : 150);
        piece = piece < size ? piece : size;
        tni_sha256_add(hash, data, piece);
        tni_sha256_add(hash, NULL, 0);
        data += piece, size -= piece;
    }
}

/* Every length up to several blocks, whole and in random pieces, from random alignments. A message
 * ends where its memory ends, so that a sanitizer sees a read beyond it. */
static void rows_agree_on_messages(void **state)
{
    enum { LONGEST = 300 };
    (void)state;
    for (size_t size = 0; size <= LONGEST; size++) {
        size_t shift = random_below(16);
        unsigned char expected[TNI_SHA256_SIZE], whole[TNI_SHA256_SIZE], pieces[TNI_SHA256_SIZE];
        unsigned char *memory = malloc(shift + size + 1), *data = memory + shift + 1;
        assert_non_null(memory);
        fill(data, size);
        tni_sha256_choose(0);
        tni_sha256_of(data, size, expected);
        for (size_t row = 0; row < row_count; row++) {
            tni_sha256 hash;
            if (!use_row(row))
                continue;
            tni_sha256_of(data, size, whole);
            tni_sha256_begin(&hash);
            add_in_pieces(&hash, data, size);
            tni_sha256_end(&hash, pieces);
            assert_memory_equal(whole, expected, sizeof expected);
            assert_memory_equal(pieces, expected, sizeof expected);
        }
        free(memory);
    }
}

/* The length counts bits in 64 bits: a message above 512 MiB needs the upper half. Feeding one
 * would take seconds, so the count alone is moved there, at a block's boundary. */
static void counts_beyond_32_bits(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE];
    unsigned char block[TNI_SHA256_BLOCK] = {0x80, [59] = 1};
    uint32_t expected[8];
    tni_sha256 hash;
    (void)state;
    tni_sha256_begin(&hash);
    memcpy(expected, hash.state, sizeof expected);
    hash.bytes = UINT64_C(1) << 29;
    tni_sha256_end(&hash, digest);
    tni_sha256_blocks_portable(expected, block, 1);
    for (int i = 0; i < TNI_SHA256_SIZE; i++)
        assert_int_equal(digest[i], expected[i / 4] >> (24 - 8 * (i % 4)) & 0xFF);
}

static void chooses_by_features(void **state)
{
    size_t count = row_count;
    (void)state;
    assert_string_equal(rows[count - 1].name, "portable");
    assert_int_equal(rows[count - 1].needs, 0);
    assert_ptr_equal(tni_sha256_choose(UINT64_MAX), &rows[0]);
    tni_cpu_mask_set(0);
    assert_ptr_equal(tni_sha256_choose(tni_cpu_features()), &rows[count - 1]);
    tni_cpu_mask_set(UINT64_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t sha = TN_CPU_BIT(SHA) | TN_CPU_BIT(SSE41);
        uint64_t arm_sha2 = TN_CPU_BIT(ARM_SHA2) | TN_CPU_BIT(NEON);
        if (strcmp(rows[i].name, "sha") == 0)
            assert_int_equal(rows[i].needs, sha);
        if (strcmp(rows[i].name, "arm_sha2") == 0)
            assert_int_equal(rows[i].needs, arm_sha2);
    }
}

static void writes_hexadecimal(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE];
    (void)state;
    for (int i = 0; i < TNI_SHA256_SIZE; i++)
        digest[i] = (unsigned char)(i * 0x0B);
    assert_digest(digest, "000b16212c37424d58636e79848f9aa5b0bbc6d1dce7f2fd08131e29343f4a55");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_at_first_use),      cmocka_unit_test(hashes_published_messages),
        cmocka_unit_test(hashes_a_million_letters), cmocka_unit_test(rows_agree_on_blocks),
        cmocka_unit_test(rows_agree_on_messages),   cmocka_unit_test(counts_beyond_32_bits),
        cmocka_unit_test(chooses_by_features),      cmocka_unit_test(writes_hexadecimal),
    };
    rows = tni_sha256_rows(&row_count);
    return run_suite("unit.sha256", tests);
}
