/* Fills: the published words, every row against the definition, and what a fill may depend on. */
#include "generators.h"

#include "device/random/fill.h"
#include "device/random/numbers.h"
#include "device/random/philox.h"
#include "os/cpu.h"
#include "os/sha256.h"
#include "tenon/parallel.h"

#include <stdbool.h>

static uint64_t seed = 0x9E3779B97F4A7C15;

static uint64_t random_word(void)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return seed ^ seed >> 29;
}

static size_t random_below(size_t limit)
{
    return (size_t)(random_word() >> 11) % limit;
}

typedef tn_status fill_fn(tn_generator *g, tn_dtype dtype, void *out, int64_t count, tn_error *err);

/* Everything that can be filled. The digests are of the 100003 elements that begin 1000 blocks
 * before block 2^32 of the subsequence 0xFEDCBA9876543210 of the seed 0x0123456789ABCDEF, computed
 * by another program from the definition alone. */
static const struct filling {
    fill_fn *fill;
    tn_dtype dtype;
    int kind;
    const char *digest;
} fillings[] = {
    {tn_random_fill_uniform, TN_U32, TNI_FILL_WORDS,
     "a65cf629b0f5bd1afc3f313d8bf2165c47a165ae945bff8221e7142889e8bc5d"},
    {tn_random_fill_uniform, TN_I32, TNI_FILL_WORDS,
     "a65cf629b0f5bd1afc3f313d8bf2165c47a165ae945bff8221e7142889e8bc5d"},
    {tn_random_fill_uniform, TN_F16, TNI_FILL_UNIFORM_F16,
     "b7aa553831ae9066e3609106f4be3354b795096fbed7f42eace61fefdd60e192"},
    {tn_random_fill_uniform, TN_BF16, TNI_FILL_UNIFORM_BF16,
     "d10d2516d9aaa857d4b64a0c164993391fb74135aba091696d3ace29816c1c59"},
    {tn_random_fill_uniform, TN_F32, TNI_FILL_UNIFORM_F32,
     "c967c9faa99185cd7ef5d89596b11db609fea4a61d823ef28e3b54efe6cc4d58"},
    {tn_random_fill_uniform, TN_F64, TNI_FILL_UNIFORM_F64,
     "083b25e362759c81e58d74b648092d2eadb9b5e6ac5659c4b4f0065a15d1f120"},
    {tn_random_fill_normal, TN_F16, TNI_FILL_NORMAL_F16,
     "bae8ce4be4d51fecd221b1f55af47abfd5d113788cc078ea61c9df2eec609be6"},
    {tn_random_fill_normal, TN_BF16, TNI_FILL_NORMAL_BF16,
     "ba7d962bd8b536334f1376e909cc35b14605e48a1da8989311c3220e880db60e"},
    {tn_random_fill_normal, TN_F32, TNI_FILL_NORMAL_F32,
     "450b85f9d889f88ad6a4a9e9c0e7390c35d688b2bb398f4870f065dffa7c8c8e"},
    {tn_random_fill_normal, TN_F64, TNI_FILL_NORMAL_F64,
     "2978b255fc975aec1bd4f16f23da054d6610a5d2c4441bf01ac489dc46425c33"},
};
enum { FILLINGS = sizeof fillings / sizeof fillings[0], DIGESTED = 100003 };

static const tni_isa_row *rows;
static size_t row_count;

/* The n-th row made the chosen one; false when this processor cannot run it. */
static bool use_row(size_t n)
{
    if (rows[n].needs & ~tni_cpu_detected())
        return false;
    assert_ptr_equal(tni_fill_choose(rows[n].needs), &rows[n]);
    return true;
}

/* Before any other test: nothing has been chosen, and nobody has seeded anything. */
static void default_generator_begins_at_seed_zero(void **state)
{
    static const float expected[8] = {0x1.FB7662p-1f,  -0x1.D96D5Ep-1f, -0x1.3C373Cp-1f,
                                      -0x1.EDA362p-2f, -0x1.3AA6B0p-3f, 0x1.7254DAp-3f,
                                      0x1.A9D930p-1f,  0x1.945B46p-3f};
    static const double expected_f64[4] = {-0x1.973628C131C04p-2, -0x1.3DD84FF91E70Dp-2,
                                           0x1.63083C830BEA5p+0, 0x1.511D43E0F270Dp-2};
    float f32[8];
    double f64[4];
    (void)state;
    rows = tni_fill_rows(&row_count);
    assert_int_equal(TN_SEED_DEFAULT, 0);
    assert_int_equal(tn_random_fill_normal(NULL, TN_F32, f32, 8, NULL), TN_OK);
    assert_memory_equal(f32, expected, sizeof expected);
    assert_int_equal(state_of(NULL).offset, 2);
    tn_generator_seed(NULL, TN_SEED_DEFAULT);
    assert_int_equal(tn_random_fill_normal(NULL, TN_F64, f64, 4, NULL), TN_OK);
    assert_memory_equal(f64, expected_f64, sizeof expected_f64);
    for (size_t i = 0; i < row_count; i++)
        print_message("%s: %s\n", rows[i].name, use_row(i) ? "runs here" : "cannot run here");
}

/* Random123's tests/kat_vectors, the lines "philox4x32 10". */
static const struct published {
    uint32_t counter[4], key[2], words[4];
} published[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
    {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
     {UINT32_MAX, UINT32_MAX},
     {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
    {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
     {0xA4093822, 0x299F31D0},
     {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
};

static uint64_t low_first(const uint32_t words[2])
{
    return words[0] | (uint64_t)words[1] << 32;
}

static void words_are_the_published_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const struct published *p = &published[i];
        uint32_t words[4];
        tn_philox(p->key, p->counter, words);
        assert_memory_equal(words, p->words, sizeof words);
        for (size_t row = 0; row < row_count; row++) {
            if (!use_row(row))
                continue;
            tn_generator *g =
                generator_at(low_first(p->key), low_first(p->counter + 2), low_first(p->counter));
            assert_int_equal(tn_random_fill_uniform(g, TN_U32, words, 4, NULL), TN_OK);
            assert_memory_equal(words, p->words, sizeof words);
            tn_generator_release(g);
        }
    }
}

static void every_row_gives_the_known_answers(void **state)
{
    unsigned char digest[TNI_SHA256_SIZE], *memory = malloc(8 * (size_t)DIGESTED);
    char hex[TNI_SHA256_HEX];
    (void)state;
    assert_non_null(memory);
    for (size_t row = 0; row < row_count; row++) {
        for (size_t i = 0; i < FILLINGS && use_row(row); i++) {
            tn_generator *g =
                generator_at(0x0123456789ABCDEF, 0xFEDCBA9876543210, (UINT64_C(1) << 32) - 1000);
            assert_int_equal(fillings[i].fill(g, fillings[i].dtype, memory, DIGESTED, NULL), TN_OK);
            tni_sha256_of(memory, DIGESTED * (size_t)tni_fill_bytes[fillings[i].kind], digest);
            tni_sha256_hex(digest, hex);
            assert_string_equal(hex, fillings[i].digest);
            tn_generator_release(g);
        }
    }
    free(memory);
}

/* The bytes of one element, by the definition. */
static void define(int kind, const tn_generator_state *from, uint64_t index, unsigned char *out)
{
    uint64_t first = index * tni_fill_words[kind];
    uint32_t words[4], word;
    tn_philox_block(from->seed, from->subsequence, from->offset + first / 4, words);
    word = words[first % 4];
    uint64_t pair = low_first(words + (first & 2));
    float both[2];
    double both_f64[2];
    tni_normals_f32(words[first & 2], words[(first & 2) + 1], &both[0], &both[1]);
    tni_normals_f64(low_first(words), low_first(words + 2), &both_f64[0], &both_f64[1]);
    float f32 = kind == TNI_FILL_UNIFORM_F32 ? tni_uniform_f32(word) : both[index & 1];
    double f64 = kind == TNI_FILL_UNIFORM_F64 ? tni_uniform_f64(pair) : both_f64[index & 1];
    uint16_t f16 = kind == TNI_FILL_UNIFORM_F16 ? tni_uniform_f16(word) : tni_f16_nearest(f32);
    uint16_t bf16 = kind == TNI_FILL_UNIFORM_BF16 ? tni_uniform_bf16(word) : tni_bf16_nearest(f32);
    switch (kind) {
    case TNI_FILL_WORDS: memcpy(out, &word, sizeof word); break;
    case TNI_FILL_UNIFORM_F32:
    case TNI_FILL_NORMAL_F32: memcpy(out, &f32, sizeof f32); break;
    case TNI_FILL_UNIFORM_F64:
    case TNI_FILL_NORMAL_F64: memcpy(out, &f64, sizeof f64); break;
    case TNI_FILL_UNIFORM_F16:
    case TNI_FILL_NORMAL_F16: memcpy(out, &f16, sizeof f16); break;
    default: memcpy(out, &bf16, sizeof bf16); break;
    }
}

enum { LONGEST = 700, GUARD = 64, POISON = 0xA5 };

/* One fill at some alignment, with poison on both sides, against the definition. */
static void check_fill(const struct filling *filling, const tn_generator_state *from, size_t count)
{
    static unsigned char memory[2 * GUARD + 8 * LONGEST + 64], expected[8];
    size_t size = tni_fill_bytes[filling->kind], shift = random_below(64);
    unsigned char *out = memory + GUARD + shift, *end = out + count * size;
    tn_generator *g = generator_at(from->seed, from->subsequence, from->offset);
    memset(memory, POISON, sizeof memory);
    assert_int_equal(filling->fill(g, filling->dtype, out, (int64_t)count, NULL), TN_OK);
    for (size_t i = 0; i < count; i++) {
        define(filling->kind, from, i, expected);
        assert_memory_equal(out + i * size, expected, size);
    }
    for (size_t i = 1; i <= GUARD; i++) {
        assert_int_equal(out[-(ptrdiff_t)i], POISON);
        assert_int_equal(end[i - 1], POISON);
    }
    uint64_t blocks = (count * tni_fill_words[filling->kind] + 3) / 4;
    assert_int_equal(state_of(g).offset, from->offset + blocks);
    tn_generator_release(g);
}

static void rows_agree_with_the_definition(void **state)
{
    static const uint64_t edges[] = {0, UINT64_C(1) << 32, UINT64_C(7) << 32, UINT64_MAX};
    int rounds = test_reduced() ? 20 : 150;
    (void)state;
    for (size_t row = 0; row < row_count; row++) {
        if (!use_row(row))
            continue;
        for (int i = 0; i < rounds * FILLINGS; i++) {
            tn_generator_state from = {sizeof from, random_word(), random_word(), random_word()};
            if (i % 3 == 0) /* an edge of the counter inside */
                from.offset = edges[random_below(4)] - random_below(LONGEST / 4);
            check_fill(&fillings[i % FILLINGS], &from, random_below(LONGEST + 1));
        }
    }
}

/* Short fills as rows do long ones, from places that allow it and from others. */
static void rows_write_past_caches_alike(void **state)
{
    static unsigned char memory[2 * GUARD + 8 * LONGEST + 64], expected[sizeof memory];
    (void)state;
    for (size_t row = 0; row < row_count; row++) {
        tni_fill *fill = (tni_fill *)rows[row].function;
        for (size_t i = 0; i < 10 * FILLINGS && use_row(row); i++) {
            tni_fill_source source = {random_word(), random_word(), random_word() >> 40, false};
            size_t shift = i % 3 == 0 ? random_below(64) : 16 * random_below(4);
            size_t count = random_below(LONGEST + 1), start = GUARD + shift;
            memset(memory, POISON, sizeof memory);
            memset(expected, POISON, sizeof expected);
            fill(&source, fillings[i % FILLINGS].kind, count, expected + start);
            source.past_caches = true;
            fill(&source, fillings[i % FILLINGS].kind, count, memory + start);
            assert_memory_equal(memory, expected, sizeof expected);
        }
    }
}

/* Long enough for that, at once and by parts that are not. */
static void long_fills_are_short_ones(void **state)
{
    enum { LONG = 9 << 20, PART = 1 << 20 };
    float *once = malloc(LONG * sizeof *once), *by_parts = malloc(LONG * sizeof *by_parts);
    (void)state;
    assert_true(once && by_parts);
    tn_generator_seed(NULL, 1);
    assert_int_equal(tn_random_fill_uniform(NULL, TN_F32, once, LONG, NULL), TN_OK);
    tn_generator_seed(NULL, 1);
    for (size_t i = 0; i < LONG; i += PART)
        assert_int_equal(tn_random_fill_uniform(NULL, TN_F32, by_parts + i, PART, NULL), TN_OK);
    assert_memory_equal(once, by_parts, LONG * sizeof *once);
    tn_generator_seed(NULL, TN_SEED_DEFAULT);
    free(once);
    free(by_parts);
}

static void chooses_by_features(void **state)
{
    size_t count = row_count;
    (void)state;
    assert_string_equal(rows[count - 1].name, "portable");
    assert_int_equal(rows[count - 1].needs, 0);
    assert_ptr_equal(tni_fill_choose(UINT64_MAX), &rows[0]);
    tni_cpu_mask_set(0);
    assert_ptr_equal(tni_fill_choose(tni_cpu_features()), &rows[count - 1]);
    tni_cpu_mask_set(UINT64_MAX);
    tni_fill_choose(tni_cpu_features());
}

/* Cut at a multiple of a block's elements, two fills are one; cut elsewhere, the rest of the block
 * is gone. */
static void fills_follow_each_other(void **state)
{
    unsigned char whole[8 * LONGEST], parts[8 * LONGEST];
    (void)state;
    for (size_t i = 0; i < FILLINGS; i++) {
        const struct filling *f = &fillings[i];
        size_t size = tni_fill_bytes[f->kind], each = 4u / tni_fill_words[f->kind];
        int64_t first = (int64_t)(each * (1 + random_below(100))), rest = 77;
        tn_generator *one = generator_at(3, 4, 5), *two = generator_at(3, 4, 5);
        assert_int_equal(f->fill(one, f->dtype, whole, first + rest, NULL), TN_OK);
        assert_int_equal(f->fill(two, f->dtype, parts, first, NULL), TN_OK);
        assert_int_equal(f->fill(two, f->dtype, parts + (size_t)first * size, rest, NULL), TN_OK);
        assert_memory_equal(whole, parts, (size_t)(first + rest) * size);
        assert_int_equal(state_of(one).offset, state_of(two).offset);
        uint64_t before = state_of(one).offset;
        assert_int_equal(f->fill(one, f->dtype, whole, 1, NULL), TN_OK);
        assert_int_equal(state_of(one).offset, before + 1);
        assert_int_equal(f->fill(one, f->dtype, NULL, 0, NULL), TN_OK);
        assert_int_equal(state_of(one).offset, before + 1);
        tn_generator_release(one);
        tn_generator_release(two);
    }
}

/* A fill that must fail, take nothing and write nothing. */
static void refuse(fill_fn *fill, tn_dtype dtype, void *out, int64_t count, tn_status status,
                   const char *message)
{
    tn_generator *g = generator_at(1, 2, 3);
    tn_error err;
    assert_int_equal(fill(g, dtype, out, count, &err), status);
    assert_int_equal(err.status, status);
    assert_contains(err.message, message);
    assert_contains(err.where, "tn_random_fill_");
    assert_int_equal(fill(g, dtype, out, count, NULL), status);
    assert_int_equal(state_of(g).offset, 3);
    tn_generator_release(g);
}

static void wrong_fills_are_refused(void **state)
{
    uint64_t out = 1;
    (void)state;
    refuse(tn_random_fill_uniform, TN_F32, NULL, 5, TN_INVALID_ARGUMENT,
           "out is NULL, and count is 5");
    refuse(tn_random_fill_normal, TN_F32, &out, -1, TN_INVALID_ARGUMENT,
           "count: expected at least 0, got -1");
    refuse(tn_random_fill_uniform, TN_I64, &out, 1, TN_UNSUPPORTED,
           "uniform numbers do not support dtype i64; they support f16, bf16, f32, f64, i32, u32");
    refuse(tn_random_fill_normal, TN_U32, &out, 1, TN_UNSUPPORTED,
           "normal numbers do not support dtype u32; they support f16, bf16, f32, f64");
    refuse(tn_random_fill_normal, TN_DTYPE_NONE, &out, 0, TN_INVALID_ARGUMENT, "0 is not a dtype:");
    refuse(tn_random_fill_uniform, 0x123456, &out, 1, TN_INVALID_ARGUMENT,
           "0x123456 is not a dtype: uniform numbers support");
    refuse(tn_random_fill_uniform, TN_F32, &out, INT64_MAX, TN_INVALID_ARGUMENT,
           "9223372036854775807 elements of f32 exceed the address space");
    refuse(tn_random_fill_normal, TN_F64, &out, PTRDIFF_MAX / 8 + 1, TN_INVALID_ARGUMENT,
           "elements of f64 exceed the address space");
    assert_int_equal(out, 1);
}

/* Runs a loop's pieces from the last to the first. */
static void backwards(void *self, int64_t count, tn_task *task, void *user)
{
    *(int64_t *)self = count;
    for (int64_t i = count; i-- > 0;)
        task(user, i);
}

/* Long enough for several pieces of different lengths. */
static void split_changes_nothing(void **state)
{
    int64_t pieces = 0, count = test_reduced() ? 300001 : 1000003;
    const tn_parallel_engine engine = {
        .struct_size = sizeof engine, .self = &pieces, .parallel_for = backwards, .threads = 5};
    unsigned char *one = malloc(8 * (size_t)count), *other = malloc(8 * (size_t)count);
    (void)state;
    assert_true(one && other);
    for (size_t i = 0; i < FILLINGS; i++) {
        const struct filling *f = &fillings[i];
        size_t bytes = (size_t)count * tni_fill_bytes[f->kind];
        tn_generator *g = generator_at(9, 9, 12345);
        tn_generator_state begin = state_of(g);
        assert_int_equal(tn_parallel_threads_set(1, NULL), TN_OK);
        assert_int_equal(f->fill(g, f->dtype, one, count, NULL), TN_OK);
        assert_int_equal(tn_parallel_threads_set(4, NULL), TN_OK);
        assert_int_equal(tn_generator_state_set(g, &begin, NULL), TN_OK);
        assert_int_equal(f->fill(g, f->dtype, other, count, NULL), TN_OK);
        assert_memory_equal(one, other, bytes);
        assert_int_equal(tn_parallel_engine_set(&engine, NULL), TN_OK);
        assert_int_equal(tn_generator_state_set(g, &begin, NULL), TN_OK);
        assert_int_equal(f->fill(g, f->dtype, other, count, NULL), TN_OK);
        assert_memory_equal(one, other, bytes);
        assert_true(pieces >= 5);
        assert_int_equal(tn_parallel_engine_set(NULL, NULL), TN_OK);
        tn_generator_release(g);
    }
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
    free(one);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_generator_begins_at_seed_zero),
        cmocka_unit_test(words_are_the_published_ones),
        cmocka_unit_test(every_row_gives_the_known_answers),
        cmocka_unit_test(rows_agree_with_the_definition),
        cmocka_unit_test(rows_write_past_caches_alike),
        cmocka_unit_test(long_fills_are_short_ones),
        cmocka_unit_test(chooses_by_features),
        cmocka_unit_test(fills_follow_each_other),
        cmocka_unit_test(wrong_fills_are_refused),
        cmocka_unit_test(split_changes_nothing),
    };
    return run_suite("unit.random", tests);
}
