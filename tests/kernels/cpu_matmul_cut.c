/* How large products are cut: what threads have to do is about the same, and scratch memory has room for it. */
#include "test.h"

#include "../../backends/cpu/matmul/matmul_blocking.h"
#include "../../backends/cpu/matmul/matmul_strips.h"
#include "tenon/module/op/matmul.h"

enum { THREADS_MOST = 64, CACHE = 2 << 20 };

/* As those of AVX-512: of f32, of f64, and of bf16 by AMX. */
static const tni_mm_set sets[] = {
    {14, 32, 256, 1, 4, 4, 0, 0, TN_F32, 4, 0.0125, NULL, NULL, NULL, false},
    {14, 16, 256, 1, 8, 8, 0, 0, TN_F64, 8, 0.025, NULL, NULL, NULL, false},
    {32, 32, 512, 32, 2, 2, 0, 0, TN_F32, 4, 0.001, NULL, NULL, NULL, true},
};

static double block_products(const tni_mm_cut *cut, int64_t rows, int64_t columns, int64_t block)
{
    const int64_t row = block / cut->across * cut->rows,
                  column = block % cut->across * cut->columns;
    assert_true(row < rows && column < columns);
    return (double)least(cut->rows, rows - row) * (double)least(cut->columns, columns - column);
}

/* What the busiest thread multiplies, when whoever is ready takes the next task. */
static double busiest(const tni_mm_set *set, const tni_mm_slab *slab, const tni_mm_cut *cut,
                      int64_t rows, int64_t columns, int32_t threads)
{
    const int64_t blocks = cut->down * cut->across;
    const int64_t slot = cut->rows * round_up(cut->columns, 16) * set->acc_size;
    const int64_t tasks = slab->apart && slab->deep ? least(blocks, slab->sums / slot) : blocks;
    double load[THREADS_MOST] = {0}, most = 0;
    assert_true(tasks > 0);
    for (int64_t task = 0; task < tasks; task++) {
        int32_t idle = 0;
        for (int32_t i = 1; i < threads; i++)
            idle = load[i] < load[idle] ? i : idle;
        for (int64_t block = task; block < blocks; block += tasks)
            load[idle] += block_products(cut, rows, columns, block);
        most = load[idle] > most ? load[idle] : most;
    }
    return most;
}

/* The part of all threads' time that products take. */
static double share_of_time(const tni_mm_set *set, int64_t side, int32_t threads)
{
    const tn_op op = {.kind = TN_OP_MATMUL};
    const tni_mm_product p = {.op = &op,
                              .m = side,
                              .n = side,
                              .k = side,
                              .matrices = 1,
                              .out = {.dtype = set->a_size == 2 ? TN_BF16 : set->acc, .column = 1}};
    tni_mm_slab slab;
    double busy = 0;
    tni_gemm_panel_layout(set, &p, threads, &slab);
    for (int64_t column = 0; column < side; column += slab.columns) {
        for (int64_t row = 0; row < side; row += slab.rows) {
            const int64_t rows = least(slab.rows, side - row);
            const int64_t columns = least(slab.columns, side - column);
            tni_mm_cut cut;
            tni_mm_cut_make(set, &slab, rows, columns, least(side, slab.chunks * set->depth),
                            threads, CACHE, &cut);
            busy += busiest(set, &slab, &cut, rows, columns, threads);
        }
    }
    return (double)side * (double)side / (busy * threads);
}

static void threads_have_as_much_to_do(void **state)
{
    static const int64_t sides[] = {768, 1024, 1500, 2048, 3000, 4096};
    static const int32_t threads[] = {1, 2, 3, 4, 6, 8, 16, 24, 32};
    (void)state;
    for (int c = 0; c < 3 * 6 * 9; c++) {
        const double share = share_of_time(&sets[c % 3], sides[c / 3 % 6], threads[c / 18]);
        if (share < 0.85)
            fail_msg("%d bytes, %lld cubed on %d threads: %.3f", (int)sets[c % 3].a_size,
                     (long long)sides[c / 3 % 6], (int)threads[c / 18], share);
    }
}

/* Each thread packs what it multiplies where that is little beside its products, and sums can stay in out. */
static void threads_pack_for_themselves(void **state)
{
    const tn_op op = {.kind = TN_OP_MATMUL},
                adds = {.kind = TN_OP_MATMUL, .uses = TN_MATMUL_USES_BETA};
    tni_mm_product p = {.op = &op, .m = 1024, .n = 1024, .k = 1024, .matrices = 1};
    (void)state;
    p.out = (tni_mm_side){.dtype = TN_F32, .column = 1};
    assert_true(tni_mm_strips_suit(&sets[0], &p, 2));
    assert_true(tni_mm_strips_suit(&sets[0], &p, 4));
    assert_false(tni_mm_strips_suit(&sets[0], &p, 1));
    assert_true(tni_mm_strips_suit(&sets[0], &p, 16));
    for (int32_t threads = 2; threads <= 16; threads *= 2)
        assert_true(tni_mm_strips_bytes(&sets[0], &p, threads) <= CACHE);
    p.op = &adds;
    assert_false(tni_mm_strips_suit(&sets[0], &p, 2));
    p.op = &op;
    p.m = 128;
    assert_false(tni_mm_strips_suit(&sets[0], &p, 2));
    p.n = 128;
    assert_false(tni_mm_strips_suit(&sets[0], &p, 16));
    p.n = 1024;
    p.m = 1024;
    p.out.dtype = TN_BF16;
    assert_false(tni_mm_strips_suit(&sets[2], &p, 2));
    p.k = 512;
    p.m = 4096;
    assert_true(tni_mm_strips_suit(&sets[2], &p, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_have_as_much_to_do),
                                       cmocka_unit_test(threads_pack_for_themselves)};
    return run_suite("kernels.cpu_matmul_cut", tests);
}
