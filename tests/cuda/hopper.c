/* Which tiles attention on Hopper computes, in which order, and with how much memory: on the host, for random
 * problems. */
#include "test.h"

#include "../../backends/cuda/attention/hopper.h"
#include "op/op.h"
#include "params.h"

#include <math.h>
#include <string.h>

extern const tn_kernel_row cuda_hopper_row, cuda_lt_attention_row, cuda_lt_attention16_row,
    cuda_attention_row, cuda_attention_invariant_row, cuda_dnn_attention_row, cuda_dnn_single_row,
    cuda_decode_row;

enum { PROBLEMS = 2000 };

/* A number below `most`, from the seed of this run. */
static int random_of(uint64_t *from, int most)
{
    *from = *from * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*from >> 33) % (uint64_t)most);
}

static hopper_counts random_counts(uint64_t *from)
{
    hopper_counts counts = {.all_heads = 1 + random_of(from, 40),
                            .blocks = 1 + random_of(from, 20),
                            .sorted = random_of(from, 3) != 0,
                            .queries = 1 + random_of(from, 700),
                            .keys = 1 + random_of(from, 700),
                            .left = HOPPER_FAR,
                            .right = HOPPER_FAR,
                            .bottom = random_of(from, 2)};
    counts.section = 1 + random_of(from, counts.all_heads);
    if (random_of(from, 2))
        counts.left = random_of(from, 300);
    if (random_of(from, 2))
        counts.right = random_of(from, 300);
    if (random_of(from, 2))
        counts.shift = random_of(from, 800) - 400;
    return counts;
}

static void every_tile_is_computed_once(void **state)
{
    static unsigned char seen[40][20];
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        const hopper_counts counts = random_counts(&from);
        const int tiles = counts.all_heads * counts.blocks;
        const int workers = 1 + random_of(&from, tiles < 150 ? tiles : 150);
        memset(seen, 0, sizeof seen);
        for (int worker = 0; worker < workers; worker++) {
            for (int turn = 0; turn * workers < tiles; turn++) {
                const int index = hopper_index(&counts, worker, workers, turn);
                if (index >= tiles)
                    continue;
                const hopper_tile tile = hopper_tile_at(&counts, index);
                assert_in_range(tile.head, 0, counts.all_heads - 1);
                assert_in_range(tile.block, 0, counts.blocks - 1);
                seen[tile.head][tile.block]++;
            }
        }
        for (int head = 0; head < counts.all_heads; head++) {
            for (int block = 0; block < counts.blocks; block++)
                assert_int_equal(seen[head][block], 1);
        }
    }
}

/* By the definition in hopper_schedule.h, in 64 bits. */
static bool is_seen(const hopper_counts *counts, int row, int key)
{
    const int64_t place = (int64_t)row + counts->shift +
                          (counts->bottom ? (int64_t)counts->keys - counts->queries : 0);
    return (counts->left == HOPPER_FAR || key >= place - counts->left) &&
           (counts->right == HOPPER_FAR || key <= place + counts->right);
}

/* How many pairs of a block's rows and a tile's keys see each other, and how many there are. */
static int count_seen(const hopper_counts *counts, int row, int rows, int key, int width, int *all)
{
    int seen = 0;
    *all = 0;
    for (int i = row; i < row + rows && i < counts->queries; i++) {
        for (int j = key; j < key + width && j < counts->keys; j++) {
            seen += is_seen(counts, i, j);
            ++*all;
        }
    }
    return seen;
}

static void compare_keys(const hopper_counts *counts, int row, int rows, int width)
{
    const hopper_keys keys = hopper_keys_of(counts, row, rows, width);
    assert_true(keys.first <= keys.full_from && keys.full_from <= keys.full_end &&
                keys.full_end <= keys.end);
    assert_true(keys.end * width < counts->keys + width);
    for (int tile = 0; tile * width < counts->keys; tile++) {
        int all;
        const int seen = count_seen(counts, row, rows, tile * width, width, &all);
        if (seen > 0 && (tile < keys.first || tile >= keys.end))
            fail_msg("tile %d of rows from %d has %d pairs, but is left out", tile, row, seen);
        if (tile >= keys.full_from && tile < keys.full_end && seen < rows * width &&
            row + rows <= counts->queries)
            fail_msg("tile %d of rows from %d has %d pairs of %d, but is not masked", tile, row,
                     seen, rows * width);
        if (tile >= keys.full_from && tile < keys.full_end && seen < all)
            fail_msg("tile %d of the last rows has %d pairs of %d", tile, seen, all);
    }
}

static void no_key_is_left_out_and_all_others_are_masked(void **state)
{
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS / 10; problem++) {
        const hopper_counts counts = random_counts(&from);
        const int rows = 64 * (2 + random_of(&from, 2)), width = 16 * (1 + random_of(&from, 11));
        for (int row = 0; row < counts.queries; row += rows)
            compare_keys(&counts, row, rows, width);
    }
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

/* Tiles of keys of the worker that has the most, and of all. */
static void measure_balance(const hopper_counts *counts, const hopper_variant *variant, int workers,
                            double *most, double *all)
{
    const int rows = cuda_hopper_rows(variant);
    *most = *all = 0;
    for (int worker = 0; worker < workers; worker++) {
        double sum = 0;
        for (int turn = 0; turn * workers < counts->all_heads * counts->blocks; turn++) {
            const int index = hopper_index(counts, worker, workers, turn);
            if (index >= counts->all_heads * counts->blocks)
                continue;
            const hopper_tile tile = hopper_tile_at(counts, index);
            const hopper_keys keys =
                hopper_keys_of(counts, tile.block * rows, rows, variant->width);
            sum += keys.end - keys.first;
        }
        *all += sum;
        *most = sum > *most ? sum : *most;
    }
}

/* In long causal problems, no multiprocessor of an H200 has more than 8 % above the mean work. */
static void causal_work_is_balanced(void **state)
{
    enum { PROCESSORS = 132 };
    static const char *const problems[] = {
        "attention:bf16:b=4,h=16,l=4096,d=128,mask=causal",
        "attention:bf16:b=2,h=16,l=8192,d=128,mask=causal",
        "attention:bf16:b=1,h=16,l=16384,d=128,mask=causal",
        "attention:bf16:b=1,h=32,hk=8,l=8192,d=128,mask=causal",
        "attention:bf16:b=1,h=24,l=32760,d=128,mask=causal",
        "attention:bf16:b=4,h=32,l=4096,d=64,mask=causal-br",
        "attention:bf16:b=1,h=24,l=115200,d=256,mask=causal",
    };
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        tn_op op;
        hopper_variant variant;
        hopper_counts counts;
        double most, all;
        read_problem(problems[i], &op);
        cuda_hopper_variant_of(&op, &variant);
        cuda_hopper_counts_of(&op, &variant, &counts);
        measure_balance(&counts, &variant, PROCESSORS, &most, &all);
        if (most > 1.08 * all / PROCESSORS)
            fail_msg("%s: %g tiles, the mean is %g", problems[i], most, all / PROCESSORS);
    }
}

static void compare_variant(const char *dtype, const char *more, int size, int values)
{
    enum { SHARED = 227 << 10, THREADS = 512, STEP = 16, LEAST = 64 };
    char problem[200];
    tn_op op;
    hopper_variant variant;
    snprintf(problem, sizeof problem, "attention:%s:b=1,h=1,l=256,d=%d,dv=%d%s", dtype, size,
             values, more);
    read_problem(problem, &op);
    cuda_hopper_variant_of(&op, &variant);
    if (variant.size < size || variant.values < values || variant.width < LEAST ||
        variant.width % STEP || cuda_hopper_threads(&variant) > THREADS ||
        cuda_hopper_shared(&variant) > SHARED)
        fail_msg("%s: %d and %d, %d keys, %u threads, %u bytes", problem, variant.size,
                 variant.values, variant.width, cuda_hopper_threads(&variant),
                 cuda_hopper_shared(&variant));
}

static void every_variant_fits_a_multiprocessor(void **state)
{
    (void)state;
    for (int size = 8; size <= 256; size += 8) {
        for (int values = 8; values <= 256; values += 8) {
            compare_variant("bf16", "", size, values);
            compare_variant("f16", ",mask=causal", size, values);
            compare_variant("bf16", ",mask=additive,softcap=20", size, values);
            compare_variant("bf16", ",scale=-1", size, values);
        }
    }
}

/* The kernel without scaling is for scales that keep the order of scores: all others have a variant of their own, which is
 * part of their plan. */
static void the_sign_of_the_scale_selects_the_variant(void **state)
{
    static const struct {
        const char *more;
        int scores;
    } cases[] = {{"scale=1", 0},           {"scale=1e-37", 0},          {"scale=1e-39", 1},
                 {"scale=-1", 1},          {"scale=-1e-39", 1},         {"scale=-1,softcap=3", 2},
                 {"scale=1,mask=bool", 0}, {"scale=1,mask=additive", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char problem[128];
        tn_op op;
        hopper_variant variant;
        snprintf(problem, sizeof problem, "attention:bf16:b=1,h=1,l=256,d=64,%s", cases[i].more);
        read_problem(problem, &op);
        cuda_hopper_variant_of(&op, &variant);
        assert_int_equal(variant.scores, cases[i].scores);
    }
    tn_op op;
    hopper_variant variant;
    read_problem("attention:bf16:b=1,h=1,l=256,d=64", &op);
    TN_PARAMS_MUTABLE(&op, attention)->scale = 0;
    cuda_hopper_variant_of(&op, &variant);
    assert_int_equal(variant.scores, 1);
}

/* Costs are asked for before refusals: also of problems that no kernel computes. */
static void check_cost(const tn_kernel_row *row, const char *problem, const tn_op *op)
{
    const tn_device_properties device = {.capability = {9, 0}, .multi_processor_count = 132};
    const tn_query query = {
        .struct_size = sizeof query, .op = op, .device = &device, .library_version = -1};
    tn_refusal why = {.struct_size = sizeof why};
    const double cost = row->cost(row, &query);
    if (!(cost >= 0 && cost < HUGE_VAL))
        fail_msg("%s: %s: a cost of %g", problem, row->name, cost);
    if (!row->admit(row, &query, &why) && cost <= 0)
        fail_msg("%s: %s: no cost", problem, row->name);
}

static void every_problem_has_a_cost(void **state)
{
    static const int sizes[] = {0, 1, 8, 60, 64, 128, 256, 264, 384, 400, 512, 768, 1024};
    static const char *const more[] = {"b=1,h=1,l=256",
                                       "b=1,h=1,lq=0,lk=0",
                                       "b=0,h=1,l=64",
                                       "b=1,h=0,l=4",
                                       "b=0,h=0,l=1073741824",
                                       "b=1,h=1,lq=1,lk=1099511627776",
                                       "b=1,h=2,l=333,mask=causal,shift=140737488355328"};
    const tn_kernel_row *const rows[] = {&cuda_hopper_row,        &cuda_lt_attention_row,
                                         &cuda_attention_row,     &cuda_attention_invariant_row,
                                         &cuda_dnn_attention_row, &cuda_dnn_single_row,
                                         &cuda_decode_row,        &cuda_lt_attention16_row};
    enum { SIZES = sizeof sizes / sizeof sizes[0], MORE = sizeof more / sizeof more[0] };
    (void)state;
    for (size_t i = 0; i < SIZES * SIZES * MORE; i++) {
        const int size = sizes[i % SIZES], values = sizes[i / SIZES % SIZES];
        char problem[200];
        tn_op op;
        snprintf(problem, sizeof problem, "attention:bf16:%s,scale=1,d=%d,dv=%d",
                 more[i / SIZES / SIZES], size, values);
        read_problem(problem, &op);
        for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
            check_cost(rows[row], problem, &op);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_is_computed_once),
        cmocka_unit_test(no_key_is_left_out_and_all_others_are_masked),
        cmocka_unit_test(causal_work_is_balanced),
        cmocka_unit_test(every_variant_fits_a_multiprocessor),
        cmocka_unit_test(the_sign_of_the_scale_selects_the_variant),
        cmocka_unit_test(every_problem_has_a_cost),
    };
    return run_suite("cuda.hopper", tests);
}
