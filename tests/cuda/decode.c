/* Decoding: which keys each warp computes, where its operands lie in shared memory, how keys are split, and how much memory
 * that takes: on the host, for all sizes of heads and for random problems. */
#include "test.h"

#include "../../backends/cuda/attention/decode.h"
#include "op/op.h"
#include "params.h"

#include <string.h>

extern const tn_kernel_row cuda_decode_row;

enum { SIZE_MOST = 256, LANES = 32, STEP = 16, CHUNK_BYTES = 16 };

/* A number below `most`, from the seed of this run. */
static int random_of(uint64_t *from, int most)
{
    *from = *from * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*from >> 33) % (uint64_t)most);
}

static void every_chunk_is_copied_once(void **state)
{
    (void)state;
    for (int size = STEP; size <= SIZE_MOST; size += STEP) {
        unsigned char copied[DECODE_KEYS][SIZE_MOST / DECODE_CHUNK] = {{0}};
        for (int lane = 0; lane < LANES; lane++) {
            for (int n = 0; n < size / STEP; n++) {
                const int key = decode_copied_key(size, lane, n);
                const int chunk = decode_copied_chunk(size, lane, n);
                assert_in_range(key, 0, DECODE_KEYS - 1);
                assert_in_range(chunk, 0, size / DECODE_CHUNK - 1);
                copied[key][chunk]++;
            }
        }
        for (int key = 0; key < DECODE_KEYS; key++) {
            for (int chunk = 0; chunk < size / DECODE_CHUNK; chunk++)
                assert_int_equal(copied[key][chunk], 1);
        }
    }
}

/* The address of a chunk of a key. */
static int chunk_at(int pitch, int key, int chunk)
{
    return key * pitch + chunk * CHUNK_BYTES;
}

/* Matrix lane / 8 has the keys and elements that the instructions' operands need (mma.cuh), and the eight rows of a matrix
 * are read from different banks. */
static void matrices_are_where_they_were_copied(void **state)
{
    (void)state;
    for (int size = STEP; size <= SIZE_MOST; size += STEP) {
        const int pitch = decode_pitch(size);
        assert_true(pitch >= size * 2 && pitch % CHUNK_BYTES == 0);
        for (int i = 0; i < size / STEP * LANES; i++) {
            const int lane = i % LANES, step = i / LANES, matrix = lane / 8, row = lane % 8;
            assert_int_equal(decode_keys_at(pitch, lane, step),
                             chunk_at(pitch, matrix / 2 * 8 + row, 2 * step + matrix % 2));
            assert_int_equal(decode_values_at(pitch, lane, step),
                             chunk_at(pitch, matrix % 2 * 8 + row, 2 * step + matrix / 2));
        }
        for (int first = 0; first < LANES; first += 8) {
            unsigned banks = 0;
            for (int lane = first; lane < first + 8; lane++)
                banks |= 1u << decode_keys_at(pitch, lane, 0) / CHUNK_BYTES % 8;
            assert_int_equal(banks, 0xFF);
        }
    }
}

static void every_key_is_computed_once(void **state)
{
    enum { PROBLEMS = 2000, KEYS = 1000 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        unsigned char computed[KEYS + DECODE_TURN] = {0};
        const int begin = random_of(&from, KEYS), end = random_of(&from, KEYS + 1);
        for (int warp = 0; warp < DECODE_WARPS; warp++) {
            const int turns = decode_turns(begin, end, warp);
            for (int n = 0; n < turns; n++) {
                const int key = decode_key(begin, warp, n);
                assert_in_range(key, begin, end - 1);
                for (int i = key; i < key + DECODE_KEYS && i < end; i++)
                    computed[i]++;
            }
        }
        for (int key = 0; key < KEYS; key++)
            assert_int_equal(computed[key], key >= begin && key < end);
    }
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

static void every_key_is_in_one_part(void **state)
{
    enum { PROBLEMS = 2000 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        const int groups = 1 + random_of(&from, 20), ratio = 1 + random_of(&from, 8);
        const int processors = random_of(&from, 3) ? 1 + random_of(&from, 200) : 132;
        char text[200];
        tn_op op;
        decode_shape shape;
        snprintf(text, sizeof text, "attention:bf16:b=%d,h=%d,hk=%d,lq=%d,lk=%d,d=%d",
                 1 + random_of(&from, 20), groups * ratio, groups, 1 + random_of(&from, 10),
                 1 + random_of(&from, 1 << (1 + random_of(&from, 17))),
                 8 * (1 + random_of(&from, 32)));
        read_problem(text, &op);
        cuda_decode_shape_of(&op, processors, &shape);
        const int64_t keys = TN_PARAMS(&op, attention)->keys;
        if (shape.parts < 1 || (shape.parts - 1) * shape.part >= keys ||
            shape.parts * shape.part < keys ||
            (shape.parts > 1 && (shape.part % DECODE_TURN || shape.part < 2 * DECODE_TURN)))
            fail_msg("%s: %d parts of %d keys", text, (int)shape.parts, (int)shape.part);
        if (shape.lots * shape.blocks * shape.parts > 8 * processors + shape.lots * shape.blocks)
            fail_msg("%s: %d blocks on %d", text, (int)(shape.lots * shape.blocks * shape.parts),
                     processors);
    }
}

/* Nearly all of the 264 blocks that an H200 has at once work until the end. */
static void steps_of_decoding_keep_a_device_busy(void **state)
{
    enum { RESIDENT = 264 };
    static const char *const problems[] = {
        "b=8,h=32,hk=8,lq=1,lk=8192,d=128",   "b=1,h=32,hk=8,lq=1,lk=32768,d=128",
        "b=1,h=64,hk=8,lq=1,lk=131072,d=128", "b=64,h=32,hk=8,lq=1,lk=4096,d=128",
        "b=3,h=40,hk=8,lq=1,lk=10000,d=128",  "b=16,h=16,hk=1,lq=4,lk=8192,d=256"};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        char text[200];
        tn_op op;
        decode_shape shape;
        snprintf(text, sizeof text, "attention:bf16:%s", problems[i]);
        read_problem(text, &op);
        cuda_decode_shape_of(&op, RESIDENT / 2, &shape);
        const int64_t blocks = shape.lots * shape.blocks * shape.parts;
        const int64_t turns = (blocks + RESIDENT - 1) / RESIDENT;
        if ((double)blocks < 0.9 * (double)(turns * RESIDENT))
            fail_msg("%s: %d blocks", text, (int)blocks);
    }
}

static void compare_variant(const char *dtype, const char *more, int size, int values)
{
    enum { SHARED = 228 << 10, RESERVED = 1 << 10, SMALL = 99 << 10, SMALL_SIZE = 192 };
    char problem[200];
    tn_op op;
    decode_variant variant;
    snprintf(problem, sizeof problem, "attention:%s:b=1,h=16,hk=1,lk=256,d=%d,dv=%d%s", dtype, size,
             values, more);
    read_problem(problem, &op);
    cuda_decode_variant_of(&op, &variant);
    const int greater = size > values ? size : values;
    const unsigned shared = cuda_decode_shared(&variant);
    if (variant.size < size || variant.values < values || variant.size % STEP ||
        variant.values % STEP || variant.slots < 3 || 2 * (shared + RESERVED) > SHARED ||
        (greater <= SMALL_SIZE && shared > SMALL))
        fail_msg("%s: %d and %d, %d slots, %u bytes", problem, variant.size, variant.values,
                 variant.slots, shared);
}

static void two_blocks_fit_a_multiprocessor(void **state)
{
    (void)state;
    for (int size = 8; size <= SIZE_MOST; size += 8) {
        for (int values = 8; values <= SIZE_MOST; values += 8) {
            compare_variant("bf16", ",lq=1", size, values);
            compare_variant("f16", ",lq=2", size, values);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_is_copied_once),
        cmocka_unit_test(matrices_are_where_they_were_copied),
        cmocka_unit_test(every_key_is_computed_once),
        cmocka_unit_test(every_key_is_in_one_part),
        cmocka_unit_test(steps_of_decoding_keep_a_device_busy),
        cmocka_unit_test(two_blocks_fit_a_multiprocessor),
    };
    return run_suite("cuda.decode", tests);
}
