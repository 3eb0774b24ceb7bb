/* Attention of listed blocks: how rows of queries are split into tiles, how a block divides its shared memory, and what problems are
 * predicted to cost: on the host, for all sizes of heads and for random problems. */
#include "test.h"

#include "../../backends/cuda/attention/decode_schedule.h"
#include "../../backends/cuda/attention_sparse/attention_sparse_cuda.h"
#include "../../backends/cuda/attention_sparse/sparse_mma.h"
#include "op/op.h"
#include "params.h"

#include <math.h>

extern const tn_kernel_row cuda_sparse_own_row, cuda_sparse_mma_row;

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
static void every_row_is_in_one_tile(void **state)
{
    enum { PROBLEMS = 2000, LENGTH = 1000 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        char text[160];
        tn_op op;
        sparse_variant variant;
        snprintf(text, sizeof text, "attention-sparse:bf16:b=%d,h=%d,lq=%d,lk=9,d=%d,bq=%d",
                 random_of(&from, 1, 3), random_of(&from, 1, 5), random_of(&from, 1, LENGTH),
                 8 * random_of(&from, 1, 32), random_of(&from, 1, 2 * LENGTH));
        read_problem(text, &op);
        cuda_sparse_variant_of(&op, &variant);
        const tn_attention_sparse_op *sparse = TN_PARAMS(&op, attention_sparse);
        const int64_t rows = cuda_sparse_rows(&variant), tiles = cuda_sparse_tiles(&op, rows);
        const int64_t queries = sparse->at.queries;
        const int64_t block = sparse->block_queries < queries ? sparse->block_queries : queries;
        const int64_t blocks = sparse->at.batch * sparse->at.heads * sparse->query_blocks * tiles;
        if (tiles * rows < block || (tiles - 1) * rows >= block)
            fail_msg("%s: %d tiles of %d rows", text, (int)tiles, (int)rows);
        assert_true(cuda_sparse_blocks(&op, rows) == (double)blocks);
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
    static const tn_kernel_row *const rows[] = {&cuda_sparse_own_row, &cuda_sparse_mma_row};
    static const tn_device_properties device = {.capability = {9, 0}, .multi_processor_count = 132};
    enum { SIZES = sizeof sizes / sizeof sizes[0], MORE = sizeof more / sizeof more[0] };
    (void)state;
    for (size_t i = 0; i < 2 * SIZES * MORE; i++) {
        const tn_kernel_row *row = rows[i % 2];
        char problem[200];
        tn_op op;
        snprintf(problem, sizeof problem, "attention-sparse:bf16:%s,scale=1,d=%d",
                 more[i / 2 / SIZES], sizes[i / 2 % SIZES]);
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
        cmocka_unit_test(every_problem_has_a_cost),
    };
    return run_suite("cuda.sparse", tests);
}
