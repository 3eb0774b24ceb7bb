/* Attention of listed blocks: how rows of queries are split into tiles, how a block divides its shared memory, and what problems are
 * predicted to cost: on the host, for all sizes of heads and for random problems. */
#include "test.h"

#include "../../backends/cuda/attention/decode_schedule.h"
#include "../../backends/cuda/attention_sparse/attention_sparse_cuda.h"
#include "../../backends/cuda/attention_sparse/sparse_hopper.h"
#include "../../backends/cuda/attention_sparse/sparse_mma.h"
#include "op/op.h"
#include "params.h"

#include <math.h>

extern const tn_kernel_row cuda_sparse_own_row, cuda_sparse_mma_row, cuda_sparse_hopper_row;

enum { SIZE_MOST = 256, STEP = 8 };

/* A number from `least` to `most`, from the seed of this run. */
static int random_of(uint64_t *from, int least, int most)
{
    *from = *from * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int)((*from >> 33) % (uint64_t)(most - least + 1));
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

/* The tiles of a block of queries cover it, and none of a whole block is empty. */
static void compare_tiles(const char *text, const tn_op *op, int64_t rows)
{
    const tn_attention_sparse_op *sparse = TN_PARAMS(op, attention_sparse);
    const int64_t queries = sparse->at.queries, tiles = cuda_sparse_tiles(op, rows);
    const int64_t block = sparse->block_queries < queries ? sparse->block_queries : queries;
    const int64_t blocks = sparse->at.batch * sparse->at.heads * sparse->query_blocks * tiles;
    if (tiles * rows < block || (tiles - 1) * rows >= block)
        fail_msg("%s: %d tiles of %d rows", text, (int)tiles, (int)rows);
    assert_true(cuda_sparse_blocks(op, rows) == (double)blocks);
}

static void every_row_is_in_one_tile(void **state)
{
    enum { PROBLEMS = 2000, LENGTH = 1000 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        char text[160];
        tn_op op;
        sparse_variant variant;
        hopper_variant hopper;
        snprintf(text, sizeof text, "attention-sparse:bf16:b=%d,h=%d,lq=%d,lk=9,d=%d,bq=%d",
                 random_of(&from, 1, 3), random_of(&from, 1, 5), random_of(&from, 1, LENGTH),
                 8 * random_of(&from, 1, 32), random_of(&from, 1, 2 * LENGTH));
        read_problem(text, &op);
        cuda_sparse_variant_of(&op, &variant);
        cuda_sparse_hopper_variant_of(&op, &hopper);
        compare_tiles(text, &op, cuda_sparse_rows(&variant));
        compare_tiles(text, &op, cuda_hopper_rows(&hopper));
    }
}

/* Tiles of 128 rows waste no more rows than those of 64. */
static void wide_tiles_are_filled(void **state)
{
    static const struct {
        int block, rows;
    } cases[] = {{1, 64},   {64, 64},   {65, 128},  {128, 128}, {129, 64},
                 {192, 64}, {193, 128}, {256, 128}, {384, 128}, {100000, 128}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int size = 64; size <= SIZE_MOST; size *= 2) {
            char text[128];
            tn_op op;
            sparse_variant variant;
            snprintf(text, sizeof text, "attention-sparse:bf16:h=1,l=1024,d=%d,bq=%d", size,
                     cases[i].block);
            read_problem(text, &op);
            cuda_sparse_variant_of(&op, &variant);
            if (cuda_sparse_rows(&variant) != cases[i].rows)
                fail_msg("%s: %d rows", text, cuda_sparse_rows(&variant));
        }
    }
}

static void compare_variant(const char *text)
{
    enum { LEAST = 163 << 10, MOST = 228 << 10, RESERVED = 1 << 10 }; /* of an A100, of an H100 */
    enum { SMALL = 99 << 10, SIZE_SMALL = 128 };                      /* of capability 8.6 */
    enum { REGISTERS = 64 << 10, PER_THREAD = 128, WORDS = 4 };
    tn_op op;
    sparse_variant variant;
    read_problem(text, &op);
    cuda_sparse_variant_of(&op, &variant);
    const tn_attention_op *at = TN_PARAMS(&op, attention);
    const sparse_places to =
        sparse_places_of(cuda_sparse_rows(&variant), variant.width, variant.stages,
                         decode_pitch(variant.size), decode_pitch(variant.values));
    const int shared = (int)cuda_sparse_shared(&variant) + RESERVED;
    const int stages = to.stages + variant.stages * to.stage;
    if (variant.size < at->size || variant.values < at->value_size ||
        to.values < variant.width * variant.size * 2 || to.finder < stages ||
        to.end < to.finder + (variant.stages + 1) * (variant.width + 1) * WORDS ||
        (to.stages | to.stage | to.values | to.finder) % 16 || variant.resident * shared > MOST ||
        shared > LEAST ||
        (variant.size <= SIZE_SMALL && variant.values <= SIZE_SMALL && shared - RESERVED > SMALL) ||
        variant.resident * (int)cuda_sparse_threads(&variant) * PER_THREAD > REGISTERS)
        fail_msg("%s: %d bytes, %d blocks", text, shared, variant.resident);
}

static void blocks_fit_a_multiprocessor(void **state)
{
    (void)state;
    for (int size = STEP; size <= SIZE_MOST; size += STEP) {
        for (int values = STEP; values <= SIZE_MOST; values += STEP) {
            for (int block = 64; block <= 128; block *= 2) {
                char text[128];
                snprintf(text, sizeof text, "attention-sparse:bf16:h=2,l=999,d=%d,dv=%d,bq=%d",
                         size, values, block);
                compare_variant(text);
            }
        }
    }
}

/* A block of queries has as few empty rows as one group for each tile would leave, unless that would take longer. */
static void groups_of_hopper_are_filled(void **state)
{
    static const struct {
        int size, block, groups;
    } cases[] = {{128, 1, 1},   {128, 64, 1}, {128, 65, 2},  {128, 128, 2}, {128, 192, 2},
                 {128, 384, 2}, {64, 64, 1},  {64, 128, 2},  {64, 192, 3},  {64, 256, 2},
                 {64, 384, 3},  {256, 64, 1}, {256, 128, 2}, {72, 192, 2},  {64, 100000, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        tn_op op;
        hopper_variant variant;
        snprintf(text, sizeof text, "attention-sparse:bf16:h=1,l=1024,d=%d,bq=%d", cases[i].size,
                 cases[i].block);
        read_problem(text, &op);
        cuda_sparse_hopper_variant_of(&op, &variant);
        if (variant.groups != cases[i].groups)
            fail_msg("%s: %d groups", text, variant.groups);
    }
}

/* Scores, weights and sums of a thread have to leave registers for the rest. */
static void compare_hopper_variant(const char *text)
{
    enum { REST = 28, THREADS = 512, LEAST = 64, MOST = 192 };
    tn_op op;
    hopper_variant variant;
    read_problem(text, &op);
    cuda_sparse_hopper_variant_of(&op, &variant);
    const tn_attention_op *at = TN_PARAMS(&op, attention);
    const unsigned shared = cuda_sparse_hopper_shared(&variant);
    const int held = variant.width / 2 + variant.width / 4 + variant.values / 2;
    const int registers[] = {216, held > SPARSE_HOPPER_HELD_MANY ? 240 : 232, 160};
    const unsigned all =
        (unsigned)cuda_sparse_hopper_resident(&variant) * (shared + SPARSE_HOPPER_RESERVED_BYTES);
    if (variant.size < at->size || variant.values < at->value_size || variant.width < LEAST ||
        variant.width > MOST || variant.width % (2 * STEP) || variant.stages < 2 ||
        variant.stages > SPARSE_HOPPER_STAGES_MOST || variant.tables != 1 ||
        cuda_hopper_threads(&variant) > THREADS || shared > SPARSE_HOPPER_BLOCK_BYTES ||
        all > SPARSE_HOPPER_PROCESSOR_BYTES || held + REST > registers[variant.groups - 1])
        fail_msg("%s: %d groups, %d keys, %d buffers, %u bytes, %d registers", text, variant.groups,
                 variant.width, variant.stages, shared, held);
}

static void variants_of_hopper_fit_a_multiprocessor(void **state)
{
    static const int rows[] = {64, 128, 192}, keys[] = {16, 64, 96, 128, 144, 384, 1000};
    enum { ROWS = sizeof rows / sizeof rows[0], KEYS = sizeof keys / sizeof keys[0] };
    (void)state;
    for (int size = STEP; size <= SIZE_MOST; size += STEP) {
        for (int values = STEP; values <= SIZE_MOST; values += STEP) {
            const int i = (size + 7 * values) / STEP;
            char text[128];
            snprintf(text, sizeof text, "attention-sparse:bf16:h=2,l=999,d=%d,dv=%d,bq=%d,bk=%d",
                     size, values, rows[i % ROWS], keys[i / ROWS % KEYS]);
            compare_hopper_variant(text);
        }
    }
}

/* Every valid key of a block is in one tile. Tiles of more than 64 keys have fewer unused rows than the steps of their widths. */
static void every_key_is_in_one_tile_of_hopper(void **state)
{
    enum { KEYS = 1100, STEP_OF_WIDTH = 16, LEAST = 64 };
    static const int sizes[] = {64, 128, 192, 256};
    (void)state;
    for (int block = 1; block <= KEYS; block++) {
        char text[128];
        tn_op op;
        hopper_variant variant;
        snprintf(text, sizeof text, "attention-sparse:f16:h=1,l=1100,d=%d,bq=%d,bk=%d",
                 sizes[block % 4], block % 3 * 64 + 64, block);
        read_problem(text, &op);
        cuda_sparse_hopper_variant_of(&op, &variant);
        int tiles = 0, all = 0, valid = 0;
        for (int key = 0; key < block; key += variant.width) {
            const int unused = sparse_hopper_unused(block - key, variant.width);
            assert_in_range(unused, 0, variant.width - 1);
            all += variant.width;
            valid += variant.width - unused;
            tiles++;
        }
        assert_int_equal(valid, block);
        if (variant.width > LEAST && all - block >= tiles * STEP_OF_WIDTH)
            fail_msg("%s: %d tiles of %d keys", text, tiles, variant.width);
    }
}

/* Groups read the slot of each tile after they have freed its keys, the loader writes it as soon as a buffer is free, and all take turns
 * at random: each group reads what was written for its tile. */
static void slots_are_read_before_they_are_overwritten(void **state)
{
    enum { TILES = 200, TURNS = 1000000, GROUPS_MOST = 3 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < 30; problem++) {
        const int groups = 1 + problem % GROUPS_MOST;
        const int stages = 2 + problem / GROUPS_MOST % (SPARSE_HOPPER_STAGES_MOST - 1);
        int slots[SPARSE_HOPPER_SLOTS] = {0}, write = 0, written = 0;
        int freed[GROUPS_MOST] = {0}, read[GROUPS_MOST] = {0}, slot[GROUPS_MOST] = {0}, done = 0;
        for (int turn = 0; done < groups * TILES; turn++) {
            const int group = random_of(&from, 0, groups);
            int least = TILES;
            assert_true(turn < TURNS);
            for (int i = 0; i < groups; i++)
                least = freed[i] < least ? freed[i] : least;
            if (group == groups && written < TILES && written < least + stages) {
                slots[write] = written++;
                write = sparse_hopper_next_slot(write);
            } else if (group < groups && read[group] < freed[group]) {
                assert_int_equal(slots[slot[group]], read[group]);
                slot[group] = sparse_hopper_next_slot(slot[group]);
                read[group]++;
                done++;
            } else if (group < groups && freed[group] < written) {
                freed[group]++;
            }
        }
    }
}

/* Costs are asked for before refusals: also of problems that no kernel computes. */
static void every_problem_has_a_cost(void **state)
{
    static const int sizes[] = {0, 1, 8, 60, 64, 128, 256, 264, 512, 1024};
    static const char *const more[] = {"h=1,l=256,bq=64",
                                       "h=1,l=256,bq=64,entries=3",
                                       "h=1,lq=0,lk=0,bq=64",
                                       "b=0,h=1,l=64,bq=3",
                                       "h=0,l=4,bq=1",
                                       "h=1,lq=1,lk=1099511627776,bq=1,bk=1099511627776",
                                       "h=2,l=1000000,bq=1,bk=1000000,mask=causal"};
    static const tn_kernel_row *const rows[] = {&cuda_sparse_own_row, &cuda_sparse_mma_row,
                                                &cuda_sparse_hopper_row};
    static const tn_device_properties device = {.capability = {9, 0}, .multi_processor_count = 132};
    enum { SIZES = sizeof sizes / sizeof sizes[0], MORE = sizeof more / sizeof more[0] };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    (void)state;
    for (size_t i = 0; i < ROWS * SIZES * MORE; i++) {
        const tn_kernel_row *row = rows[i % ROWS];
        char problem[200];
        tn_op op;
        snprintf(problem, sizeof problem, "attention-sparse:bf16:%s,scale=1,d=%d",
                 more[i / ROWS / SIZES], sizes[i / ROWS % SIZES]);
        read_problem(problem, &op);
        const tn_query query = {
            .struct_size = sizeof query, .op = &op, .device = &device, .library_version = -1};
        tn_refusal why = {.struct_size = sizeof why};
        const double cost = row->cost(row, &query);
        if (!(cost >= 0 && cost < HUGE_VAL) || (!row->admit(row, &query, &why) && cost <= 0))
            fail_msg("%s: %s: a cost of %g", problem, row->name, cost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_one_tile),
        cmocka_unit_test(wide_tiles_are_filled),
        cmocka_unit_test(blocks_fit_a_multiprocessor),
        cmocka_unit_test(groups_of_hopper_are_filled),
        cmocka_unit_test(variants_of_hopper_fit_a_multiprocessor),
        cmocka_unit_test(every_key_is_in_one_tile_of_hopper),
        cmocka_unit_test(slots_are_read_before_they_are_overwritten),
        cmocka_unit_test(every_problem_has_a_cost),
    };
    return run_suite("cuda.sparse", tests);
}
