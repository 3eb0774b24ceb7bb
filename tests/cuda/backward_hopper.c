/* Gradients of attention on Hopper: which tiles of queries and keys are computed, where their slopes are, and how problems are cut
 * into sections: on the host, for random problems. */
#include "test.h"

#include "../../backends/cuda/attention_backward/backward_hopper.h"
#include "op/op.h"
#include "params.h"

#include <math.h>
#include <string.h>

extern const tn_kernel_row cuda_backward_hopper_row;

/* A number from `least` to `most`, from the seed of this run. */
static int random_of(uint64_t *from, int least, int most)
{
    *from = *from * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int)((*from >> 33) % (uint64_t)(most - least + 1));
}

static hopper_counts random_counts(uint64_t *from)
{
    enum { LENGTH = 400, BOUND = 300 };
    hopper_counts counts = {.queries = random_of(from, 1, LENGTH),
                            .keys = random_of(from, 1, LENGTH),
                            .left = HOPPER_FAR,
                            .right = HOPPER_FAR,
                            .bottom = random_of(from, 0, 1)};
    if (random_of(from, 0, 1))
        counts.left = random_of(from, 0, BOUND);
    if (random_of(from, 0, 1))
        counts.right = random_of(from, 0, BOUND);
    if (random_of(from, 0, 1))
        counts.shift = random_of(from, -LENGTH, LENGTH);
    return counts;
}

/* By the definition in hopper_schedule.h, in 64 bits. */
static bool is_seen(const hopper_counts *counts, int query, int key)
{
    const int64_t place = (int64_t)query + counts->shift +
                          (counts->bottom ? (int64_t)counts->keys - counts->queries : 0);
    return query < counts->queries && key < counts->keys &&
           (counts->left == HOPPER_FAR || key >= place - counts->left) &&
           (counts->right == HOPPER_FAR || key <= place + counts->right);
}

static int count_seen(const hopper_counts *counts, int query_tile, int key_tile)
{
    int seen = 0;
    for (int i = 0; i < SLOPE_TILE; i++) {
        for (int j = 0; j < SLOPE_TILE; j++)
            seen += is_seen(counts, query_tile * SLOPE_TILE + i, key_tile * SLOPE_TILE + j);
    }
    return seen;
}

static bool has(const slope_range *range, int x)
{
    return x >= range->begin && x < range->end;
}

/* One tile beyond each side too, as blocks of several tiles ask about those. */
static void compare_tiles(const hopper_counts *counts)
{
    const int query_tiles = counts->queries / SLOPE_TILE + 2,
              key_tiles = counts->keys / SLOPE_TILE + 2;
    for (int key_tile = 0; key_tile < key_tiles; key_tile++) {
        const int key = key_tile * SLOPE_TILE, block = key_tile / SLOPE_BLOCK_TILES;
        const slope_range some = slope_query_tiles(counts, key, SLOPE_TILE);
        const slope_range of_block = slope_query_tiles(
            counts, block * SLOPE_BLOCK_TILES * SLOPE_TILE, SLOPE_BLOCK_TILES * SLOPE_TILE);
        const slope_range whole = slope_whole_tiles(counts, key);
        assert_true(some.begin <= some.end && some.end * SLOPE_TILE < counts->queries + SLOPE_TILE);
        for (int query_tile = 0; query_tile < query_tiles; query_tile++) {
            const int seen = count_seen(counts, query_tile, key_tile);
            const slope_sight sight = slope_sight_of(counts, query_tile, key_tile);
            assert_int_equal(sight == SLOPES_ALL, seen == SLOPE_TILE * SLOPE_TILE);
            assert_int_equal(sight == SLOPES_ALL, has(&whole, query_tile));
            if (seen > 0)
                assert_int_not_equal(sight, SLOPES_NONE);
            if (sight != SLOPES_NONE)
                assert_true(has(&some, query_tile) && has(&of_block, query_tile));
        }
    }
}

static void compare_queries(const hopper_counts *counts, int key)
{
    const slope_range queries = slope_queries(counts, key);
    for (int query = 0; query < counts->queries; query++)
        assert_int_equal(has(&queries, query), is_seen(counts, query, key));
}

/* Slopes that the kernel for queries reads were written by the kernel for keys: tiles of a sight that is not SLOPES_NONE are in
 * the ranges of the latter. */
static void tiles_are_those_with_pairs(void **state)
{
    enum { PROBLEMS = 300 };
    uint64_t from = test_seed();
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        const hopper_counts counts = random_counts(&from);
        compare_tiles(&counts);
        for (int i = 0; i < 4; i++)
            compare_queries(&counts, random_of(&from, 0, counts.keys + SLOPE_TILE));
    }
}

static void far_bounds_do_not_overflow(void **state)
{
    enum { MOST = 1 << 27 };
    (void)state;
    for (int i = 0; i < 8; i++) {
        const hopper_counts counts = {.queries = i & 1 ? MOST : 1,
                                      .keys = i & 2 ? MOST : 1,
                                      .left = HOPPER_FAR - 1,
                                      .right = HOPPER_FAR - 1,
                                      .shift = i & 4 ? MOST : -MOST,
                                      .bottom = 1};
        const slope_range queries = slope_queries(&counts, counts.keys - 1);
        assert_int_equal(queries.begin, 0);
        assert_int_equal(queries.end, counts.queries);
    }
}

/* A thread's 8 numbers of a row of products are the 8 places of a unit; units of a line do not overlap. */
static void lines_have_all_queries(void **state)
{
    enum { GROUP = 8, HALF = 32 };
    bool taken[SLOPE_TILE_BYTES] = {false};
    (void)state;
    for (int place = 0; place < SLOPE_TILE; place++) {
        const int lane = place % HALF / GROUP, word = place % GROUP / 2;
        const int query = place / HALF * HALF + word * GROUP + lane * 2 + place % 2;
        assert_int_equal(slope_query_at(place), query);
        assert_int_equal(slope_query_at(query), place);
    }
    for (int key = 0; key < SLOPE_TILE; key++) {
        for (int place = 0; place < SLOPE_TILE; place++) {
            const int at = slope_offset(key, place);
            assert_in_range(at, key * 128, key * 128 + 126);
            assert_false(taken[at]);
            assert_int_equal(at % 16, place % GROUP * 2);
            taken[at] = true;
        }
    }
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

static void compare_sections(const char *problem, int64_t wanted)
{
    enum { LOTS = 128, BLOCKS = 2048 };
    static unsigned char seen[LOTS][BLOCKS];
    backward_hopper_shape shape;
    tn_op op;
    read_problem(problem, &op);
    cuda_backward_hopper_shape_of(&op, &shape);
    const tn_query query = {.struct_size = sizeof query, .op = &op, .library_version = -1};
    const int64_t sections = cuda_backward_hopper_sections(&shape);
    assert_in_range(shape.all_lots, 1, LOTS);
    assert_in_range(shape.all_blocks, 1, BLOCKS);
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < sections; i++) {
        const backward_hopper_section at = cuda_backward_hopper_section(&shape, i);
        assert_true(at.lots >= 1 && at.lots <= shape.lots);
        assert_true(at.blocks >= 1 && at.blocks <= shape.blocks);
        for (int64_t lot = at.lot; lot < at.lot + at.lots; lot++) {
            for (int64_t block = at.block; block < at.block + at.blocks; block++)
                seen[lot][block]++;
        }
    }
    for (int64_t lot = 0; lot < shape.all_lots; lot++) {
        for (int64_t block = 0; block < shape.all_blocks; block++)
            assert_int_equal(seen[lot][block], 1);
    }
    if (sections != wanted)
        fail_msg("%s: %lld sections, expected %lld", problem, (long long)sections,
                 (long long)wanted);
    assert_int_equal(cuda_backward_hopper_workspace(NULL, &query),
                     2 * shape.states_bytes + shape.slopes_bytes + shape.partial_bytes);
    assert_int_equal(shape.states_bytes % 64, 0);
    assert_int_equal(shape.partial_bytes != 0, shape.blocks < shape.all_blocks);
}

static void sections_are_all_blocks_once(void **state)
{
    (void)state;
    compare_sections("attention-backward:bf16:b=1,h=1,l=1,d=64", 1);
    compare_sections("attention-backward:bf16:b=4,h=16,l=4096,d=128", 1);
    compare_sections("attention-backward:bf16:b=2,h=16,l=8192,d=128", 2);
    compare_sections("attention-backward:f16:b=2,h=16,hk=4,lq=8192,lk=8000,d=128", 2);
    compare_sections("attention-backward:bf16:b=1,h=24,l=32760,d=128", 24);
    compare_sections("attention-backward:bf16:b=1,h=3,l=115200,d=128", 21);
    compare_sections("attention-backward:bf16:b=1,h=8,hk=1,l=32768,d=64", 2);
}

static void variants_fit_a_multiprocessor(void **state)
{
    enum { SHARED = 227 << 10 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        char problem[128];
        tn_op op;
        snprintf(problem, sizeof problem, "attention-backward:bf16:b=1,h=1,l=256,d=%d,dv=%d",
                 i & 1 ? 128 : 64, i & 2 ? 128 : 64);
        read_problem(problem, &op);
        for (int part = 0; part < BACKWARD_HOPPER_PARTS; part++)
            assert_in_range(cuda_backward_hopper_shared(&op, (backward_hopper_part)part), 0,
                            SHARED);
    }
}

/* Costs are asked for before refusals: also of problems that no kernel computes. */
static void every_problem_has_a_cost(void **state)
{
    static const char *const problems[] = {"b=1,h=1,l=256,d=64",
                                           "b=1,h=1,l=256,d=60",
                                           "b=1,h=1,lq=0,lk=0,d=64",
                                           "b=0,h=1,l=64,d=64",
                                           "b=1,h=0,l=64,d=64",
                                           "b=1,h=1,lq=1,lk=1099511627776,d=128",
                                           "b=2,h=16,l=8192,d=128,mask=causal",
                                           "b=1,h=2,l=333,d=64,mask=causal,shift=140737488355328"};
    const tn_device_properties device = {.capability = {9, 0}, .multi_processor_count = 132};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        char problem[128];
        tn_op op;
        tn_refusal why = {.struct_size = sizeof why};
        snprintf(problem, sizeof problem, "attention-backward:bf16:%s,scale=1", problems[i]);
        read_problem(problem, &op);
        const tn_query query = {
            .struct_size = sizeof query, .op = &op, .device = &device, .library_version = -1};
        const double cost = cuda_backward_hopper_row.cost(&cuda_backward_hopper_row, &query);
        assert_true(cost >= 0 && cost < HUGE_VAL);
        if (!cuda_backward_hopper_row.admit(&cuda_backward_hopper_row, &query, &why))
            assert_true(cost > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_those_with_pairs),
        cmocka_unit_test(far_bounds_do_not_overflow),
        cmocka_unit_test(lines_have_all_queries),
        cmocka_unit_test(sections_are_all_blocks_once),
        cmocka_unit_test(variants_fit_a_multiprocessor),
        cmocka_unit_test(every_problem_has_a_cost),
    };
    return run_suite("cuda.backward_hopper", tests);
}
