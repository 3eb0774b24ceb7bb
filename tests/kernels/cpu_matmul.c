/* The processor's own matmuls of f32 and f64, every row that runs here, bit by bit: a sum is made in chunks
 * of DEPTH products, each product added to the chunk's sum before it with one rounding, each chunk to those
 * before it. What a product looks like, how it is cut, on how many threads and among how many others it is
 * computed: none of it changes a bit, so all of it is compared with this one order. */
#include "cpu_make.h"

#include "params.h"
#include "tenon/module/op/matmul.h"

enum { DEPTH = 256 };

static const tn_kernel_row *rows[8];
static int row_count;

static bool is_own(const tn_kernel_row *row)
{
    return row->op == TN_OP_MATMUL && !row->library && row->dtypes[0] == TN_F32 &&
           row->dtypes[1] == TN_F64 && !row->dtypes[2];
}

static void find_rows(void)
{
    row_count = 0;
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        if (!is_own(*row))
            continue;
        if (cpu_can(*row))
            rows[row_count++] = *row;
        else
            print_message("%s cannot run here\n", (*row)->name);
    }
    assert_true(row_count > 0);
}

/* Portable C is compiled without fma. */
static bool fuses(const tn_kernel_row *row)
{
    return !strstr(row->name, ".plain");
}

/* Both round each step as their dtype does: volatile, as the compiler might not. */
static double multiply_add(const tn_kernel_row *row, tn_dtype dtype, double a, double b, double c)
{
    if (dtype == TN_F64) {
        volatile double product = a * b;
        return fuses(row) ? fma(a, b, c) : product + c;
    }
    volatile float product = (float)a * (float)b, sum = product + (float)c;
    return fuses(row) ? (double)fmaf((float)a, (float)b, (float)c) : (double)sum;
}

static double add(tn_dtype dtype, double a, double b)
{
    volatile float sum = (float)a + (float)b;
    return dtype == TN_F64 ? a + b : (double)sum;
}

static double times(tn_dtype dtype, double a, double b)
{
    volatile float product = (float)a * (float)b;
    return dtype == TN_F64 ? a * b : (double)product;
}

/* Of one matrix: element i, j. `before` is what out had, for beta. */
static double expected(const tn_kernel_row *row, const cpu_case *it, int64_t matrix, int64_t i,
                       int64_t j, double before)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    const tn_dtype dtype = it->op.operand[TN_MATMUL_OUT].dtype;
    double total = 0;
    for (int64_t first = 0; first < op->k; first += DEPTH) {
        double sum = 0;
        for (int64_t p = first; p < op->k && p < first + DEPTH; p++)
            sum =
                multiply_add(row, dtype, cpu_get(it, TN_MATMUL_A, (matrix * op->m + i) * op->k + p),
                             cpu_get(it, TN_MATMUL_B, (matrix * op->k + p) * op->n + j), sum);
        total = first ? add(dtype, total, sum) : sum;
    }
    if (op->alpha != 1)
        total = times(dtype, total, dtype == TN_F64 ? op->alpha : (double)(float)op->alpha);
    if (op->beta != 0)
        total = multiply_add(row, dtype, before,
                             dtype == TN_F64 ? op->beta : (double)(float)op->beta, total);
    if (it->op.operand[TN_MATMUL_BIAS].dtype)
        total = add(dtype, total, cpu_get(it, TN_MATMUL_BIAS, (matrix * op->m + i) * op->n + j));
    return total;
}

/* The same bits, but for which NaN it is; behind a function as near as it promises. */
static bool is_right(tn_dtype dtype, int32_t activation, double found, double wanted)
{
    if (activation > TN_ACT_RELU)
        return cpu_close(found, cpu_activated(activation, wanted),
                         40 * cpu_unit(dtype) * (1 + fabs(wanted)));
    wanted = cpu_activated(activation, wanted);
    return isnan(wanted) ? isnan(found) : found == wanted && !signbit(found) == !signbit(wanted);
}

/* A way for everything to lie. */
typedef struct shapes {
    int64_t m, n, k;
    int a, b, out; /* CPU_DENSE ... */
    int64_t shift;
} shapes;

static void make(cpu_case *it, tn_dtype dtype, const shapes *s)
{
    const int64_t a[] = {s->m, s->k}, b[] = {s->k, s->n}, out[] = {s->m, s->n};
    *it = (cpu_case){.op.params = PARAMS(matmul, .m = s->m, .n = s->n, .k = s->k, .matrices = 1,
                                         .acc = dtype, .alpha = 1)};
    cpu_add_lying(it, TN_MATMUL_A, dtype, 2, a, s->a, s->shift);
    cpu_add_lying(it, TN_MATMUL_B, dtype, 2, b, s->b, 2 * s->shift);
    cpu_add_lying(it, TN_MATMUL_OUT, dtype, 2, out, s->out, s->shift);
    cpu_fill(it, TN_MATMUL_A, -1, 1);
    cpu_fill(it, TN_MATMUL_B, -1, 1);
    it->op.uses = s->a || s->b || s->out ? TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_STRIDES : 0;
}

static void add_bias(cpu_case *it, int64_t row, int64_t column)
{
    const tn_layout *out = &it->op.operand[TN_MATMUL_OUT];
    const int64_t strides[] = {row, column};
    cpu_add(it, TN_MATMUL_BIAS, out->dtype, 2, out->shape, strides, 1);
    cpu_fill(it, TN_MATMUL_BIAS, -1, 1);
    it->op.uses |= TN_MATMUL_USES_BIAS;
}

/* As the core does: with the memory that the row asks for, and not a byte more, neither before it nor behind.
 * It was asked for `planned` threads. */
static void run_planned(const tn_kernel_row *row, cpu_case *it, int32_t planned, int32_t threads,
                        size_t guard)
{
    const tn_query query = {.struct_size = sizeof query, .op = &it->op, .threads = planned};
    tn_refusal why;
    tn_error err;
    it->op.struct_size = sizeof it->op;
    it->op.kind = TN_OP_MATMUL;
    assert_int_equal(it->op.uses & ~row->honours, 0);
    assert_int_equal(cpu_admit(row, it, &why), TN_OK);
    size_t bytes = (size_t)row->workspace(row, &query), whole = (2 * guard + bytes + 63) / 64 * 64;
    unsigned char *memory = aligned_alloc(64, whole);
    memset(memory, CPU_POISON, whole);
    const tn_run it_runs = {.struct_size = sizeof it_runs,
                            .row = row,
                            .op = &it->op,
                            .data = it->data,
                            .workspace = bytes ? memory + guard : NULL,
                            .workspace_bytes = bytes,
                            .host = &cpu_host,
                            .threads = threads};
    assert_int_equal(row->run(&it_runs, &err), TN_OK);
    size_t at = 0;
    while (at < whole && ((at >= guard && at < guard + bytes) || memory[at] == CPU_POISON))
        at++;
    assert_int_equal(at, whole);
    free(memory);
    cpu_check_guards(it);
}

static void run(const tn_kernel_row *row, cpu_case *it, int32_t threads)
{
    run_planned(row, it, threads, threads, 64);
}

static void copy_out(const cpu_case *it, cpu_case *out)
{
    *out = *it;
    cpu_memory *memory = &out->memory[TN_MATMUL_OUT];
    unsigned char *low = malloc(memory->bytes);
    memcpy(low, memory->low, memory->bytes);
    memory->first = (char *)low + (memory->first - (char *)memory->low);
    memory->block = memory->low = low;
}

/* About `most` elements, the first, the last and those between in uneven steps. */
static void compare(const tn_kernel_row *row, const cpu_case *it, const cpu_case *before,
                    int64_t most)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    const int64_t all = op->matrices * op->m * op->n, step = all / most + 1;
    for (int64_t at = 0; at < all; at = at + step < all || at + 1 == all ? at + step : all - 1) {
        int64_t matrix = at / (op->m * op->n), i = at / op->n % op->m, j = at % op->n;
        double old = op->beta != 0 && before ? cpu_get(before, TN_MATMUL_OUT, at) : 0;
        double wanted = expected(row, it, matrix, i, j, old);
        double found = cpu_get(it, TN_MATMUL_OUT, at);
        if (!is_right(it->op.operand[TN_MATMUL_OUT].dtype, op->activation, found, wanted))
            fail_msg(
                "%s, m=%lld n=%lld k=%lld: element %lld,%lld of matrix %lld is %.17g, not %.17g",
                row->name, (long long)op->m, (long long)op->n, (long long)op->k, (long long)i,
                (long long)j, (long long)matrix, found, cpu_activated(op->activation, wanted));
    }
}

static void check(const tn_kernel_row *row, cpu_case *it, int32_t threads, int64_t most)
{
    cpu_case before;
    copy_out(it, &before);
    run(row, it, threads);
    compare(row, it, &before, most);
    cpu_check_gaps(it, TN_MATMUL_OUT);
    free(before.memory[TN_MATMUL_OUT].block);
}

static tn_dtype dtype_of(int number)
{
    return number % 2 ? TN_F64 : TN_F32;
}

/* Around the sizes of tiles and vectors. */
static void small_shapes_that_lie_anyhow(void **state)
{
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 13, 14, 15, 16, 17, 18,
                                    24, 28, 29, 31, 32, 33, 34, 47, 48, 49, 57, 63, 64, 65, 66, 97};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    (void)state;
    for (int c = 0; c < (test_fewest()    ? 30
                         : test_reduced() ? 200
                         : test_full()    ? 1500
                                          : 300);
         c++) {
        const bool dense = c % 3 == 0;
        const shapes s = {sizes[cpu_random() % SIZES],
                          sizes[cpu_random() % SIZES],
                          sizes[cpu_random() % SIZES],
                          dense ? CPU_DENSE : (int)(cpu_random() % CPU_LIES),
                          dense ? CPU_DENSE : (int)(cpu_random() % CPU_LIES),
                          dense ? CPU_DENSE : (int)(cpu_random() % CPU_LIES),
                          cpu_random() % 3};
        cpu_case it;
        make(&it, dtype_of(c), &s);
        for (int r = 0; r < row_count; r++) {
            memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, it.memory[TN_MATMUL_OUT].bytes);
            check(rows[r], &it, 1 + c % 3, 300);
        }
        cpu_end(&it);
    }
}

/* Every height and width of a tile, whole and in part. */
static void every_tile(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= 17; m++) {
        for (int64_t n = 1; n <= 66; n += n < 18 ? 1 : 5) {
            for (int c = 0; c < 2; c++) {
                const shapes s = {m, n, 5, 0, 0, m % 3 ? CPU_DENSE : CPU_PADDED, m % 2};
                cpu_case it;
                make(&it, dtype_of(c), &s);
                for (int r = 0; r < row_count; r++)
                    check(rows[r], &it, 1, 2000);
                cpu_end(&it);
            }
        }
    }
}

/* More than caches hold, where operands are packed; more than one chunk, slab and task. */
static void large_shapes(void **state)
{
    static const shapes cases[] = {
        {300, 300, 600, CPU_DENSE, CPU_DENSE, CPU_DENSE, 0},
        {257, 513, 1025, CPU_PADDED, CPU_DENSE, CPU_PADDED, 1},
        {301, 290, 511, CPU_TURNED, CPU_DENSE, CPU_DENSE, 1},
        {290, 301, 513, CPU_DENSE, CPU_TURNED, CPU_DENSE, 0},
        {289, 291, 512, CPU_TURNED, CPU_TURNED, CPU_TURNED, 1},
        {280, 333, 515, CPU_SPREAD, CPU_BACKWARDS, CPU_SPREAD, 0},
        {333, 280, 700, CPU_BACKWARDS, CPU_SPREAD, CPU_BACKWARDS, 1},
        {300, 310, 520, CPU_UPSIDE_DOWN, CPU_UPSIDE_DOWN, CPU_UPSIDE_DOWN, 0},
        {15, 5000, 270, CPU_DENSE, CPU_DENSE, CPU_DENSE, 1},
        {5000, 15, 270, CPU_DENSE, CPU_DENSE, CPU_DENSE, 0},
        {20, 33, 30000, CPU_DENSE, CPU_TURNED, CPU_DENSE, 0},
        {64, 64, 9000, CPU_TURNED, CPU_DENSE, CPU_DENSE, 0},
        {140, 130, 256, CPU_DENSE, CPU_TURNED, CPU_DENSE, 0},
        {150, 140, 300, CPU_DENSE, CPU_DENSE, CPU_DENSE, 1},
        {530, 2101, 300, CPU_PADDED, CPU_DENSE, CPU_PADDED, 1},
        {811, 1060, 259, CPU_TURNED, CPU_SPREAD, CPU_DENSE, 1},
        {9, 700, 520, CPU_DENSE, CPU_DENSE, CPU_DENSE, 0},
        {16, 1030, 300, CPU_PADDED, CPU_DENSE, CPU_PADDED, 1},
        {23, 1100, 777, CPU_TURNED, CPU_PADDED, CPU_DENSE, 0},
        {190, 333, 1100, CPU_SPREAD, CPU_DENSE, CPU_PADDED, 0},
        {21, 2100, 2100, CPU_TURNED, CPU_DENSE, CPU_DENSE, 1},
        {17, 300, 3000, CPU_DENSE, CPU_TURNED, CPU_DENSE, 0},
        {2000, 24, 700, CPU_DENSE, CPU_DENSE, CPU_DENSE, 0},
        {1100, 157, 513, CPU_PADDED, CPU_PADDED, CPU_PADDED, 1},
        {900, 13, 2600, CPU_TURNED, CPU_DENSE, CPU_DENSE, 0},
        {9, 803, 7, CPU_DENSE, CPU_DENSE, CPU_PADDED, 1},
        {76, 649, 9, CPU_TURNED, CPU_PADDED, CPU_DENSE, 0},
        {301, 1001, 14, CPU_PADDED, CPU_DENSE, CPU_DENSE, 1},
        {1070, 1, 7, CPU_DENSE, CPU_DENSE, CPU_DENSE, 1},
        {449, 5, 39, CPU_PADDED, CPU_DENSE, CPU_PADDED, 1},
        {2, 2001, 5, CPU_DENSE, CPU_DENSE, CPU_DENSE, 0},
    };
    (void)state;
    for (size_t c = 0; c < 2 * sizeof cases / sizeof cases[0]; c += test_fewest()    ? 19
                                                                    : test_reduced() ? 9
                                                                                     : 1) {
        if (!test_reduced() && !test_sampled(c, 4))
            continue;
        cpu_case it;
        make(&it, dtype_of((int)c), &cases[c / 2]);
        for (int r = 0; r < row_count; r++) {
            memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, it.memory[TN_MATMUL_OUT].bytes);
            check(rows[r], &it, 1 + (int32_t)c % 4, 200);
        }
        cpu_end(&it);
    }
}

/* Few rows or columns: by columns and along k, wide, narrow and one alone; A in any way. */
static void thin_shapes(void **state)
{
    static const int64_t few[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t others[][2] = {{1, 5000},  {3, 4097},   {7, 9000},   {16, 4609},
                                        {17, 3000}, {900, 400},  {1500, 257}, {700, 1000},
                                        {33, 64},   {2049, 129}, {5000, 65}};
    static const int lies[] = {CPU_DENSE, CPU_TURNED, CPU_PADDED, CPU_SPREAD, CPU_BACKWARDS};
    (void)state;
    for (size_t c = 0; c < 11 * 10; c += test_fewest() ? 23 : test_reduced() ? 7 : 1) {
        if (!test_reduced() && !test_sampled(c, 5))
            continue;
        const int64_t *other = others[c % 11];
        shapes s = {few[c % 8],      other[0],        other[1],      lies[c % 5],
                    lies[c / 2 % 5], lies[c / 3 % 5], (int64_t)c % 3};
        if (c % 3 == 1) {
            s.n = s.m;
            s.m = other[0];
        }
        cpu_case it;
        make(&it, dtype_of((int)c), &s);
        for (int r = 0; r < row_count; r++) {
            memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, it.memory[TN_MATMUL_OUT].bytes);
            check(rows[r], &it, 1 + (int32_t)c % 3, 60);
        }
        cpu_end(&it);
    }
}

/* Alpha, beta, bias and activation, on every way that a product goes. */
static void everything_after_the_sum(void **state)
{
    static const shapes ways[] = {{9, 37, 20, 0, 0, 0, 0},
                                  {20, 9, 30, 0, CPU_TURNED, 0, 0},
                                  {70, 81, 300, 0, 0, CPU_PADDED, 1},
                                  {20, 30, 12000, CPU_TURNED, CPU_TURNED, 0, 0},
                                  {120, 140, 1100, 0, CPU_TURNED, CPU_SPREAD, 0},
                                  {3, 2000, 300, 0, 0, CPU_TURNED, 0},
                                  {1500, 2, 280, 0, 0, CPU_SPREAD, 1}};
    (void)state;
    for (int c = 0; c < 7 * 2 * 2 * 2 * 3 * 5; c += test_fewest() ? 97 : test_reduced() ? 23 : 1) {
        if (!test_reduced() && !test_sampled((uint64_t)c, 8))
            continue;
        const shapes *s = &ways[c % 7];
        int bias = c / 56 % 3, activation = c / 168 % 5;
        cpu_case it;
        make(&it, dtype_of(c / 7), s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->alpha = c / 14 % 2 ? -0.7 : 1;
        TN_PARAMS_MUTABLE(&it.op, matmul)->beta = c / 28 % 2 ? 1.3 : 0;
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation = activation;
        it.op.uses |= TN_PARAMS(&it.op, matmul)->alpha != 1 ? TN_MATMUL_USES_ALPHA : 0;
        it.op.uses |= TN_PARAMS(&it.op, matmul)->beta != 0 ? TN_MATMUL_USES_BETA : 0;
        it.op.uses |= activation ? TN_MATMUL_USES_ACTIVATION : 0;
        if (TN_PARAMS(&it.op, matmul)->beta != 0)
            cpu_fill(&it, TN_MATMUL_OUT, -1, 1);
        if (bias)
            add_bias(&it, bias == 1 ? 0 : 1, bias == 1 ? 1 : 0);
        check(rows[c % row_count], &it, 1 + c % 3, 100);
        cpu_end(&it);
    }
}

/* One dimension of a batch, several, folded ones; what is broadcast and what runs backwards. */
static void batches(void **state)
{
    static const int64_t sizes[][3] = {{5, 6, 7},     {33, 20, 17}, {80, 90, 70},
                                       {3, 700, 300}, {7, 8, 9},    {6, 4, 5}};
    (void)state;
    for (int c = 0; c < 6 * 5 * 2; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 4))
            continue;
        const int64_t m = sizes[c % 6][0], n = sizes[c % 6][1], k = sizes[c % 6][2];
        const int64_t strides[][3][4] = {
            {{3 * m * k, m * k, k, 1}, {3 * k * n, k * n, n, 1}, {3 * m * n, m * n, n, 1}},
            {{0, 0, k, 1}, {3 * k * n, k * n, n, 1}, {3 * m * n, m * n, n, 1}},
            {{3 * m * k, m * k, k, 1}, {0, 0, 1, k}, {3 * m * n, m * n, n, 1}},
            {{3 * m * k, m * k, 1, m}, {0, 0, n, 1}, {3 * m * n, m * n, 1, m}},
            {{m * k, 2 * m * k, k, 1}, {0, k * n, n, 1}, {-3 * m * n, m * n, n, 1}},
        };
        const int64_t a[] = {2, 3, m, k}, b[] = {2, 3, k, n}, out[] = {2, 3, m, n};
        const tn_dtype dtype = dtype_of(c / 30);
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST |
                                      TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_STRIDES,
                              .params = PARAMS(matmul, m, n, k, 6, 2, 0, dtype, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, dtype, 4, a, strides[c / 6 % 5][0], 0);
        cpu_add(&it, TN_MATMUL_B, dtype, 4, b, strides[c / 6 % 5][1], 1);
        cpu_add(&it, TN_MATMUL_OUT, dtype, 4, out, strides[c / 6 % 5][2], 0);
        cpu_fill(&it, TN_MATMUL_A, -1, 1);
        cpu_fill(&it, TN_MATMUL_B, -1, 1);
        for (int r = 0; r < row_count; r++)
            check(rows[r], &it, 1 + c % 4, 500);
        cpu_end(&it);
    }
}

/* Of few cases, a normal run has every third: one or more, whatever the seed. */
static bool is_left_out(uint64_t c)
{
    return !test_full() && !test_reduced() && (c + test_seed() % 3) % 3 != 0;
}

static void many_matrices_on_threads(void **state)
{
    static const int64_t sizes[][4] = {{1201, 16, 15, 24}, {500, 4, 4, 4},      {300, 9, 8, 11},
                                       {40, 100, 110, 90}, {12, 150, 150, 260}, {9, 1, 900, 300}};
    (void)state;
    for (int c = 0; c < 12; c += test_reduced() ? 3 : 1) {
        if (is_left_out((uint64_t)c))
            continue;
        const int64_t count = sizes[c / 2][0], m = sizes[c / 2][1], n = sizes[c / 2][2];
        const int64_t k = sizes[c / 2][3];
        const int64_t a[] = {count, m, k}, b[] = {count, k, n}, out[] = {count, m, n};
        const int64_t turned[] = {k * n, 1, k};
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_TRANSPOSE,
                              .params = PARAMS(matmul, m, n, k, count, 1, 0, TN_F32, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, TN_F32, 3, a, NULL, 0);
        cpu_add(&it, TN_MATMUL_B, TN_F32, 3, b, c % 2 ? turned : NULL, 0);
        cpu_add(&it, TN_MATMUL_OUT, TN_F32, 3, out, NULL, 0);
        cpu_fill(&it, TN_MATMUL_A, -1, 1);
        cpu_fill(&it, TN_MATMUL_B, -1, 1);
        for (int r = 0; r < row_count; r++)
            check(rows[r], &it, 4, 1000);
        cpu_end(&it);
    }
}

/* The whole output, whatever the threads. */
static void threads_do_not_change_a_bit(void **state)
{
    static const shapes cases[] = {
        {257, 300, 563, 0, 0, 0, 0},          {1, 3000, 1500, 0, CPU_TURNED, 0, 1},
        {200, 113, 129, 0, 0, CPU_TURNED, 0}, {2, 17, 60000, 0, 0, 0, 0},
        {300, 900, 8000, 0, 0, 0, 0},         {700, 1030, 260, 0, 0, 0, 0}};
    (void)state;
    for (size_t c = 0; c < (test_reduced() ? 8 : 12); c += test_reduced() ? 3 : 1) {
        if (is_left_out(c) || (test_fewest() && c / 3 != test_seed() % 3))
            continue;
        cpu_case it;
        make(&it, dtype_of((int)c), &cases[c / 2]);
        size_t bytes = it.memory[TN_MATMUL_OUT].bytes;
        void *first = malloc(bytes);
        for (int r = 0; r < row_count; r++) {
            run(rows[r], &it, 1);
            memcpy(first, it.memory[TN_MATMUL_OUT].low, bytes);
            for (int32_t threads = 2; threads < 20; threads = threads * 2 + 1) {
                memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, bytes);
                run(rows[r], &it, threads);
                assert_memory_equal(first, it.memory[TN_MATMUL_OUT].low, bytes);
            }
        }
        free(first);
        cpu_end(&it);
    }
}

/* Memory that was asked for fewer threads than there are now, of a product and of a batch. */
static void threads_that_were_not_planned_for(void **state)
{
    enum { GUARD = 16 << 20, THREADS = 16 };
    static const int64_t sizes[][4] = {{1, 300, 310, 2100}, {5, 150, 150, 260}, {1, 900, 300, 600}};
    (void)state;
    for (int c = 0; c < 6; c += test_fewest() ? 5 : 1) {
        if (test_fewest() && (uint64_t)c / 5 != test_seed() % 2)
            continue;
        const int64_t *size = sizes[c / 2], count = size[0], m = size[1], n = size[2], k = size[3];
        const int64_t a[] = {count, m, k}, b[] = {count, k, n}, out[] = {count, m, n};
        const tn_dtype dtype = dtype_of(c);
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BETA,
                              .params = PARAMS(matmul, m, n, k, count, 1, 0, dtype, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, dtype, 3, a, NULL, 0);
        cpu_add(&it, TN_MATMUL_B, dtype, 3, b, NULL, 0);
        cpu_add(&it, TN_MATMUL_OUT, dtype, 3, out, NULL, 0);
        cpu_fill(&it, TN_MATMUL_A, -1, 1);
        cpu_fill(&it, TN_MATMUL_B, -1, 1);
        for (int32_t planned = 1; planned < THREADS; planned += test_fewest() ? 12 : 6) {
            memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, it.memory[TN_MATMUL_OUT].bytes);
            it.op.uses ^= TN_MATMUL_USES_BETA;
            run_planned(rows[0], &it, planned, THREADS, GUARD);
            compare(rows[0], &it, &it, 100);
            run_planned(rows[row_count - 1], &it, planned, 4, GUARD);
            compare(rows[row_count - 1], &it, &it, 100);
        }
        cpu_end(&it);
    }
}

static void sums_of_nothing(void **state)
{
    (void)state;
    for (int c = 0; c < 2 * 6 * 2; c++) {
        const shapes s = {c % 3 ? 3 : 300, c % 2 ? 4 : 700, 0, 0, 0, c / 4, 1};
        cpu_case it;
        make(&it, dtype_of(c), &s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->beta = c / 12 ? 0.5 : 0;
        it.op.uses |= c / 12 ? TN_MATMUL_USES_BETA : 0;
        if (c / 12)
            cpu_fill(&it, TN_MATMUL_OUT, -1, 1);
        for (int r = 0; r < row_count; r++)
            check(rows[r], &it, 2, 1000);
        cpu_end(&it);
    }
}

/* With beta 0, what is in out is not read; NaN, infinity times zero and subnormal numbers come out as
 * they must, on every way that a product goes. */
static void numbers_that_are_not_ordinary(void **state)
{
    static const shapes ways[] = {{6, 5, 4, 0, 0, 0, 0},
                                  {150, 140, 300, 0, 0, 0, 0},
                                  {200, 190, 610, 0, CPU_TURNED, 0, 0},
                                  {4, 1500, 257, 0, 0, 0, 0},
                                  {4, 1500, 257, 0, CPU_TURNED, 0, 0},
                                  {1, 1, 9000, 0, 0, 0, 0}};
    (void)state;
    for (int c = 0; c < 12; c += test_reduced() ? 5 : 1) {
        if (test_fewest() && (uint64_t)c / 5 != test_seed() % 3)
            continue;
        const shapes *s = &ways[c / 2];
        const tn_dtype dtype = dtype_of(c);
        const double tiny = dtype == TN_F32 ? 0x1p-75 : 0x1p-538;
        cpu_case it;
        make(&it, dtype, s);
        for (int64_t i = 0; i < s->m * s->k; i++)
            cpu_put(&it, TN_MATMUL_A, i, cpu_get(&it, TN_MATMUL_A, i) * tiny);
        for (int64_t i = 0; i < s->k * s->n; i++)
            cpu_put(&it, TN_MATMUL_B, i, cpu_get(&it, TN_MATMUL_B, i) * tiny * 16);
        for (int r = 0; r < row_count; r++) {
            for (int64_t i = 0; i < s->m * s->n; i++)
                cpu_put(&it, TN_MATMUL_OUT, i, NAN);
            check(rows[r], &it, 2, 300);
        }
        cpu_put(&it, TN_MATMUL_A, s->k - 1, INFINITY);
        cpu_put(&it, TN_MATMUL_A, s->k - 2, 0);
        cpu_put(&it, TN_MATMUL_A, s->m > 1 ? s->k + 1 : 0, NAN);
        cpu_put(&it, TN_MATMUL_B, (s->k - 1) * s->n, 0);
        cpu_put(&it, TN_MATMUL_B, (s->k - 2) * s->n + s->n - 1, -INFINITY);
        for (int r = 0; r < row_count; r++)
            check(rows[r], &it, 2, 300);
        cpu_end(&it);
    }
}

/* Rows far apart share few sets of the caches; memory between them is not touched. */
static void strides_far_apart(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++) {
        const int64_t m = c % 2 ? 4 : 30, n = 40, k = 50, far = c / 2 ? 4096 : 70001;
        const int64_t a[] = {m, k}, b[] = {k, n}, out[] = {m, n}, strides[] = {far, 1};
        const int64_t across[] = {1, far};
        const tn_dtype dtype = dtype_of(c);
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_TRANSPOSE,
                              .params = PARAMS(matmul, m, n, k, 1, 0, 0, dtype, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, dtype, 2, a, c % 2 ? across : strides, 0);
        cpu_add(&it, TN_MATMUL_B, dtype, 2, b, strides, 0);
        cpu_add(&it, TN_MATMUL_OUT, dtype, 2, out, strides, 0);
        cpu_fill(&it, TN_MATMUL_A, -1, 1);
        cpu_fill(&it, TN_MATMUL_B, -1, 1);
        for (int r = 0; r < row_count; r++)
            check(rows[r], &it, 2, 500);
        cpu_end(&it);
    }
}

/* A stride of a single row or column means nothing. */
static void strides_of_single_rows_are_not_read(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++) {
        const shapes s = {c == 0 ? 1 : 4, c == 1 ? 1 : 5, c == 2 ? 1 : 6, 0, 0, 0, 0};
        cpu_case it;
        make(&it, TN_F32, &s);
        tn_layout *layout = it.op.operand;
        if (c == 0)
            layout[TN_MATMUL_A].stride[0] = -77, layout[TN_MATMUL_OUT].stride[0] = 0;
        if (c == 1)
            layout[TN_MATMUL_B].stride[1] = 99, layout[TN_MATMUL_OUT].stride[1] = -3;
        if (c == 2)
            layout[TN_MATMUL_A].stride[1] = 1000, layout[TN_MATMUL_B].stride[0] = -5;
        for (int r = 0; r < row_count; r++) {
            run(rows[r], &it, 1);
            compare(rows[r], &it, NULL, 100);
        }
        cpu_end(&it);
    }
}

static void other_dtypes_are_refused(void **state)
{
    const shapes s = {3, 4, 5, 0, 0, 0, 0};
    cpu_case it;
    tn_refusal why;
    (void)state;
    make(&it, TN_F32, &s);
    for (int r = 0; r < row_count; r++) {
        it.op.operand[TN_MATMUL_B].dtype = TN_F64;
        assert_int_equal(cpu_admit(rows[r], &it, &why), TN_UNSUPPORTED);
        assert_int_equal(why.code, TN_REFUSE_DTYPE);
        assert_string_equal(why.what, "b");
        assert_int_equal(why.needed, TN_F32);
        assert_int_equal(why.found, TN_F64);
        it.op.operand[TN_MATMUL_B].dtype = TN_F32;
        assert_int_equal(cpu_admit(rows[r], &it, &why), TN_OK);
        assert_int_equal(rows[r]->honours & TN_MATMUL_USES_OUT_DTYPE, 0);
        assert_int_equal(rows[r]->honours & TN_MATMUL_USES_ACC, 0);
    }
    cpu_end(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_shapes_that_lie_anyhow),
        cmocka_unit_test(every_tile),
        cmocka_unit_test(large_shapes),
        cmocka_unit_test(thin_shapes),
        cmocka_unit_test(everything_after_the_sum),
        cmocka_unit_test(batches),
        cmocka_unit_test(many_matrices_on_threads),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(threads_that_were_not_planned_for),
        cmocka_unit_test(sums_of_nothing),
        cmocka_unit_test(numbers_that_are_not_ordinary),
        cmocka_unit_test(strides_far_apart),
        cmocka_unit_test(strides_of_single_rows_are_not_read),
        cmocka_unit_test(other_dtypes_are_refused),
    };
    find_rows();
    return run_suite("kernels.cpu_matmul", tests);
}
