/* How products are split for libraries: every element once, whatever the sizes. */
#include "test.h"

#include "../../backends/cpu/lib/cblas/cblas_tiles.h"

static uint32_t random_below(uint32_t end)
{
    static uint32_t state = 2463534242U;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % end;
}

enum { MOST = 700, MATRICES = 5 };
static unsigned char seen[MATRICES][MOST][MOST];

typedef struct sight {
    const tni_tiles *tiles;
    int64_t smallest; /* rows of a tile */
} sight;

static void see(void *user, const tni_tile *tile)
{
    sight *s = user;
    assert_true(tile->rows > 0 && tile->columns > 0);
    assert_true(tile->rows <= s->tiles->rows && tile->columns <= s->tiles->columns);
    s->smallest = tile->rows < s->smallest ? tile->rows : s->smallest;
    for (int64_t i = tile->row; i < tile->row + tile->rows; i++) {
        for (int64_t j = tile->column; j < tile->column + tile->columns; j++)
            seen[tile->matrix][i][j]++;
    }
}

typedef struct loop {
    sight sight;
    int64_t tasks;
} loop;

static void task(void *user, int64_t index)
{
    loop *l = user;
    assert_int_equal(index, l->tasks);
    l->tasks++;
    tni_tiles_of_task(l->sight.tiles, index, see, &l->sight);
}

static void check(const tni_mm_product *p, const tni_tiles *tiles, bool by_rows)
{
    const tn_run run = {.struct_size = sizeof run, .threads = 1};
    loop l = {.sight = {tiles, INT64_MAX}};
    memset(seen, 0, sizeof seen);
    tni_tiles_loop(tiles, &run, task, &l);
    for (int64_t matrix = 0; matrix < MATRICES; matrix++) {
        for (int64_t i = 0; i < MOST; i++) {
            bool inside = matrix < p->matrices && i < p->m;
            for (int64_t j = 0; j < MOST; j++)
                assert_int_equal(seen[matrix][i][j], inside && j < p->n);
        }
    }
    if (by_rows) {
        assert_int_equal(tiles->columns, p->n);
        assert_true(l.sight.smallest > 1 || p->m == 1);
    }
}

static void every_element_is_in_one_tile(void **state)
{
    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        tni_mm_product p = {.m = 1 + random_below(turn % 2 ? 100 : MOST),
                            .n = 1 + random_below(turn % 3 ? MOST : 20),
                            .k = random_below(turn % 5 ? 3000 : 2),
                            .matrices = 1 + random_below(MATRICES)};
        int64_t wished = 1 + random_below(40);
        tni_tiles tiles;
        tni_tiles_cut(&p, wished, &tiles);
        check(&p, &tiles, false);
        tni_tiles_cut_rows(&p, wished, &tiles);
        check(&p, &tiles, true);
    }
}

static void large_products_have_as_many_tiles_as_wished(void **state)
{
    const tni_mm_product one = {.m = 2048, .n = 2048, .k = 2048, .matrices = 1};
    tni_mm_product many = one;
    tni_tiles tiles;
    (void)state;
    for (int64_t wished = 1; wished <= 64; wished *= 2) {
        tni_tiles_cut(&one, wished, &tiles);
        assert_true(tiles.count >= wished && tiles.count < 2 * wished);
    }
    many.matrices = 64;
    tni_tiles_cut(&many, 64, &tiles);
    assert_int_equal(tiles.count, 1);
}

/* A last tile of one row would be a vector, for which some libraries have other code. */
static void no_tile_of_rows_is_a_single_one(void **state)
{
    (void)state;
    for (int64_t m = 65; m <= 2049; m += 64) {
        const tni_mm_product p = {.m = m, .n = 3000, .k = 3000, .matrices = 1};
        for (int64_t wished = 1; wished <= 64; wished++) {
            tni_tiles tiles;
            tni_tiles_cut_rows(&p, wished, &tiles);
            assert_true(m % tiles.rows != 1);
        }
    }
}

static void what_is_too_great_for_32_bits_is_split(void **state)
{
    const tni_mm_product p = {.m = INT64_C(1) << 33, .n = 1, .k = 1, .matrices = 1};
    tni_tiles tiles;
    (void)state;
    tni_tiles_cut(&p, 1, &tiles);
    assert_true(tiles.rows <= INT32_MAX);
    assert_true(tiles.count * tiles.rows >= p.m);
}

static void nothing_is_no_tile(void **state)
{
    const tni_mm_product p = {.m = 0, .n = 4, .k = 4, .matrices = 1};
    tni_tiles tiles;
    (void)state;
    tni_tiles_cut(&p, 4, &tiles);
    assert_int_equal(tiles.count, 0);
    tni_tiles_cut_rows(&p, 4, &tiles);
    assert_int_equal(tiles.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_in_one_tile),
        cmocka_unit_test(large_products_have_as_many_tiles_as_wished),
        cmocka_unit_test(no_tile_of_rows_is_a_single_one),
        cmocka_unit_test(what_is_too_great_for_32_bits_is_split),
        cmocka_unit_test(nothing_is_no_tile),
    };
    return run_suite("unit.cpu_tiles", tests);
}
