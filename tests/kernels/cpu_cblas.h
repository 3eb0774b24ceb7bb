/* cpu.matmul.LIBRARY, through BLAS's C interface, against sums in long double, within the bound of any order
 * of summation: |error| <= (k + 2) u / (1 - (k + 2) u) * (|alpha| |A| |B|) + a few roundings of what is
 * added. A suite defines LIBRARY and its four DTYPES, and lists CBLAS_TESTS. */
#ifndef TENON_TESTS_CPU_CBLAS_H
#define TENON_TESTS_CPU_CBLAS_H

#include "cpu_make.h"

#include "params.h"
#include "tenon/module/op/matmul.h"

static void *library;

static const tn_kernel_row *open_row(void)
{
    const tn_kernel_row *row = cpu_row("cpu.matmul." LIBRARY);
    const tn_library_row *offers = cpu_library(LIBRARY);
    tn_error err;
    assert_non_null(row);
    assert_non_null(offers);
    assert_string_equal(row->library, LIBRARY);
    if (!library && offers->open(&cpu_host, &library, &err))
        skip_because("%s", err.message);
    return row;
}

/* Shapes and strides of a product. Strides of 0: dense. */
typedef struct shapes {
    int64_t m, n, k;
    int by_columns; /* bits: A, B, out */
    int64_t pad;    /* elements between rows */
    int64_t shift;
} shapes;

static double re(const cpu_case *it, int32_t operand, int64_t n, int part)
{
    tn_dtype dtype = it->op.operand[operand].dtype;
    tn_dtype real = dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
    const char *at = cpu_at(it, operand, n);
    return real == dtype ? (part ? 0 : cpu_read(real, at))
                         : cpu_read(real, at + part * cpu_size(real));
}

static void fill(cpu_case *it, int32_t operand)
{
    tn_dtype dtype = it->op.operand[operand].dtype;
    tn_dtype real = dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
    for (int64_t i = 0; i < cpu_elements(&it->op.operand[operand]); i++) {
        char *at = cpu_at(it, operand, i);
        for (int64_t part = 0; part < cpu_size(dtype); part += cpu_size(real))
            cpu_write(real, at + part, cpu_uniform(-1, 1));
    }
}

static void add_matrix(cpu_case *it, int32_t operand, tn_dtype dtype, int64_t rows, int64_t columns,
                       int by_columns, const shapes *s)
{
    int64_t shape[] = {rows, columns};
    int64_t strides[] = {by_columns ? 1 : columns + s->pad, by_columns ? rows + s->pad : 1};
    cpu_add(it, operand, dtype, 2, shape, strides, s->shift);
}

static void make(cpu_case *it, tn_dtype dtype, const shapes *s)
{
    *it = (cpu_case){.op = {.params = PARAMS(matmul, .m = s->m, .n = s->n, .k = s->k, .matrices = 1,
                                             .acc = dtype, .alpha = 1)}};
    add_matrix(it, TN_MATMUL_A, dtype, s->m, s->k, s->by_columns & 1, s);
    add_matrix(it, TN_MATMUL_B, dtype, s->k, s->n, s->by_columns & 2, s);
    add_matrix(it, TN_MATMUL_OUT, dtype, s->m, s->n, s->by_columns & 4, s);
    fill(it, TN_MATMUL_A);
    fill(it, TN_MATMUL_B);
    it->op.uses |= s->by_columns & 3 ? TN_MATMUL_USES_TRANSPOSE : 0;
}

/* One element: of matrix `batch`, whose elements in the order of the shape begin there. */
static void check_element(const cpu_case *it, const cpu_case *before, int64_t matrix, int64_t i,
                          int64_t j)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    tn_dtype dtype = it->op.operand[TN_MATMUL_OUT].dtype;
    double u = dtype == TN_F32 || dtype == TN_C64 ? 0x1p-24 : 0x1p-53;
    int64_t at = (matrix * op->m + i) * op->n + j;
    for (int part = 0; part < (dtype == TN_C64 || dtype == TN_C128 ? 2 : 1); part++) {
        long double sum = 0, size = 0;
        for (int64_t l = 0; l < op->k; l++) {
            int64_t a = (matrix * op->m + i) * op->k + l, b = (matrix * op->k + l) * op->n + j;
            for (int p = 0; p < 2; p++) {
                int q = part ^ p;
                long double product =
                    (long double)re(it, TN_MATMUL_A, a, p) * re(it, TN_MATMUL_B, b, q);
                sum += p && q ? -product : product;
                size += fabsl(product);
            }
        }
        double old = op->beta != 0 ? re(before, TN_MATMUL_OUT, at, part) : 0;
        double bias = it->op.operand[TN_MATMUL_BIAS].dtype ? re(it, TN_MATMUL_BIAS, at, part) : 0;
        double wanted = (double)(op->alpha * sum + op->beta * old) + bias;
        double scale = fabs(op->alpha) * (double)size;
        double bound = (double)(4 * op->k + 8) * u * scale +
                       4 * u * (fabs(op->beta * old) + fabs(bias) + fabs(wanted));
        bound =
            op->activation > TN_ACT_RELU ? 1.2 * bound + 8 * u * fabs(wanted) + 0x1p-140 : bound;
        double found = re(it, TN_MATMUL_OUT, at, part);
        if (!cpu_close(found, cpu_activated(op->activation, wanted), bound))
            fail_msg("element %lld,%lld of matrix %lld, part %d: %.9g, not %.9g", (long long)i,
                     (long long)j, (long long)matrix, part, found,
                     cpu_activated(op->activation, wanted));
    }
}

static void check_all(const cpu_case *it, const cpu_case *before)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    int64_t step_i = op->m * op->k > 4000 ? op->m / 13 + 1 : 1;
    int64_t step_j = op->n * op->k > 4000 ? op->n / 11 + 1 : 1;
    for (int64_t matrix = 0; matrix < op->matrices; matrix++) {
        for (int64_t i = 0; i < op->m;
             i += i + step_i < op->m || i == op->m - 1 ? step_i : op->m - 1 - i)
            for (int64_t j = 0; j < op->n;
                 j += j + step_j < op->n || j == op->n - 1 ? step_j : op->n - 1 - j)
                check_element(it, before, matrix, i, j);
    }
}

static const tn_dtype dtypes[] = {DTYPES};

static void plain_products_of_awkward_shapes(void **state)
{
    static const int64_t sizes[] = {1, 2, 7, 16, 31};
    const tn_kernel_row *row = open_row();
    (void)state;
    for (int c = 0; c < 4 * 125 * 8; c++) {
        shapes s = {sizes[c / 4 % 5], sizes[c / 20 % 5], sizes[c / 100 % 5], c / 500, c % 3, c % 2};
        cpu_case it;
        make(&it, dtypes[c % 4], &s);
        cpu_run_on(row, &it, library, 2);
        check_all(&it, NULL);
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        cpu_end(&it);
    }
}

/* Tiles: the same bits for any number of threads, for whatever the library would have used itself. */
static void threads_do_not_change_a_bit(void **state)
{
    static const shapes cases[] = {{257, 300, 263, 0, 0, 0},
                                   {1, 3000, 1500, 2, 0, 1},
                                   {700, 513, 129, 4, 3, 0},
                                   {3000, 17, 301, 1, 0, 0},
                                   {513, 513, 64, 7, 1, 1}};
    const tn_kernel_row *row = open_row();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        cpu_case it;
        make(&it, dtypes[c % 4], &cases[c]);
        size_t bytes = it.memory[TN_MATMUL_OUT].bytes;
        void *first = malloc(bytes);
        cpu_run_on(row, &it, library, 1);
        memcpy(first, it.memory[TN_MATMUL_OUT].low, bytes);
        memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, bytes);
        cpu_run_on(row, &it, library, 8);
        assert_memory_equal(first, it.memory[TN_MATMUL_OUT].low, bytes);
        check_all(&it, NULL);
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        free(first);
        cpu_end(&it);
    }
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

static void everything_after_the_sum(void **state)
{
    const tn_kernel_row *row = open_row();
    (void)state;
    for (int c = 0; c < 4 * 3 * 2 * 3 * 5 * 2; c++) {
        shapes s = {5, 37, 9, c % 7 % 8, c % 2, c % 3};
        tn_dtype dtype = dtypes[c % 4];
        int bias = c / 24 % 3, activation = c / 72 % 5;
        cpu_case it, before;
        make(&it, dtype, &s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->alpha = c / 4 % 3 == 0 ? 1 : c / 4 % 3 == 1 ? -0.75 : 0;
        TN_PARAMS_MUTABLE(&it.op, matmul)->beta = c / 12 % 2 ? 1.5 : 0;
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation =
            dtype == TN_C64 || dtype == TN_C128 ? 0 : activation;
        it.op.uses |= TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA | TN_MATMUL_USES_ACTIVATION;
        if (TN_PARAMS(&it.op, matmul)->beta != 0)
            fill(&it, TN_MATMUL_OUT);
        if (bias) {
            int64_t shape[] = {s.m, s.n}, rows[] = {1, 0}, columns[] = {0, 1};
            cpu_add(&it, TN_MATMUL_BIAS, dtype, 2, shape, bias == 1 ? rows : columns, 1);
            fill(&it, TN_MATMUL_BIAS);
            it.op.uses |= TN_MATMUL_USES_BIAS;
        }
        copy_out(&it, &before);
        cpu_run_on(row, &it, library, 2);
        check_all(&it, &before);
        free(before.memory[TN_MATMUL_OUT].block);
        cpu_end(&it);
    }
}

/* The same where out has tiles: each has its own part of the bias. */
static void everything_after_the_sum_of_a_tile(void **state)
{
    const tn_kernel_row *row = open_row();
    (void)state;
    for (int c = 0; c < 3 * 2; c++) {
        shapes s = {300, 310, 301, c / 3 * 4, 0, 0};
        int64_t shape[] = {s.m, s.n}, rows[] = {1, 0}, columns[] = {0, 1}, all[] = {s.n, 1};
        cpu_case it;
        make(&it, c % 2 ? TN_F64 : TN_F32, &s);
        cpu_add(&it, TN_MATMUL_BIAS, c % 2 ? TN_F64 : TN_F32, 2, shape,
                c % 3 == 0   ? rows
                : c % 3 == 1 ? columns
                             : all,
                0);
        fill(&it, TN_MATMUL_BIAS);
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation = TN_ACT_SILU;
        it.op.uses |= TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION;
        cpu_run_on(row, &it, library, 2);
        check_all(&it, NULL);
        cpu_end(&it);
    }
}

/* A of one matrix, B of one matrix, both of many, and rows that fold into one product. */
static void batches(void **state)
{
    enum { M = 5, N = 6, K = 7 };
    static const int64_t strides[][3][4] = {
        {{3 * M * K, M * K, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{0, 0, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, K, 1}, {0, 0, 1, K}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, 1, M}, {0, 0, N, 1}, {3 * M * N, M * N, 1, M}},
        {{M * K, 2 * M * K, K, 1}, {0, K * N, N, 1}, {-3 * M * N, M * N, N, 1}},
    };
    const tn_kernel_row *row = open_row();
    int64_t a[] = {2, 3, M, K}, b[] = {2, 3, K, N}, out[] = {2, 3, M, N};
    (void)state;
    for (size_t c = 0; c < 4 * 5; c++) {
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST,
                              .params = PARAMS(matmul, M, N, K, 6, 2, 0, dtypes[c % 4], 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, dtypes[c % 4], 4, a, strides[c / 4][0], 0);
        cpu_add(&it, TN_MATMUL_B, dtypes[c % 4], 4, b, strides[c / 4][1], 1);
        cpu_add(&it, TN_MATMUL_OUT, dtypes[c % 4], 4, out, strides[c / 4][2], 0);
        fill(&it, TN_MATMUL_A);
        fill(&it, TN_MATMUL_B);
        cpu_run_on(row, &it, library, 2);
        check_all(&it, NULL);
        cpu_end(&it);
    }
}

static void many_small_matrices_on_threads(void **state)
{
    const tn_kernel_row *row = open_row();
    int64_t a[] = {1201, 16, 24}, b[] = {1201, 24, 15}, out[] = {1201, 16, 15};
    cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH,
                          .params = PARAMS(matmul, 16, 15, 24, 1201, 1, 0, TN_F32, 0, 1, 0)}};
    (void)state;
    cpu_add(&it, TN_MATMUL_A, TN_F32, 3, a, NULL, 0);
    cpu_add(&it, TN_MATMUL_B, TN_F32, 3, b, NULL, 0);
    cpu_add(&it, TN_MATMUL_OUT, TN_F32, 3, out, NULL, 0);
    fill(&it, TN_MATMUL_A);
    fill(&it, TN_MATMUL_B);
    cpu_run_on(row, &it, library, 4);
    check_all(&it, NULL);
    cpu_end(&it);
}

static void sums_of_nothing(void **state)
{
    const tn_kernel_row *row = open_row();
    (void)state;
    for (int c = 0; c < 16; c++) {
        shapes s = {3, 4, 0, c / 4, 1, 0};
        cpu_case it;
        make(&it, dtypes[c % 4], &s);
        cpu_run_on(row, &it, library, 2);
        for (int64_t i = 0; i < 12; i++)
            assert_true(re(&it, TN_MATMUL_OUT, i, 0) == 0);
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        cpu_end(&it);
    }
}

/* With beta 0, poison in out is not read; NaN and infinity in A and B come out where they belong. */
static void nans_stay_where_they_are(void **state)
{
    const tn_kernel_row *row = open_row();
    (void)state;
    for (int large = 0; large < 2; large++) {
        shapes s = {large ? 200 : 6, large ? 190 : 5, large ? 210 : 4, 0, 0, 0};
        cpu_case it;
        make(&it, TN_F32, &s);
        for (int64_t i = 0; i < s.m * s.n; i++)
            cpu_put(&it, TN_MATMUL_OUT, i, NAN);
        cpu_put(&it, TN_MATMUL_A, 2 * s.k + 1, NAN);
        cpu_put(&it, TN_MATMUL_B, 1 * s.n + 3, INFINITY);
        cpu_run_on(row, &it, library, 2);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            double found = cpu_get(&it, TN_MATMUL_OUT, i);
            if (i / s.n == 2)
                assert_true(isnan(found));
            else if (i % s.n == 3)
                assert_true(isinf(found));
            else
                assert_true(isfinite(found));
        }
        cpu_end(&it);
    }
}

static void refused(cpu_case *it, int32_t code, const char *what, int64_t needed, int64_t found)
{
    tn_refusal why;
    const tn_kernel_row *row = cpu_row("cpu.matmul." LIBRARY);
    assert_int_equal(cpu_admit(row, it, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, code);
    assert_string_equal(why.what, what);
    assert_int_equal(why.needed, needed);
    assert_int_equal(why.found, found);
}

static void what_cblas_cannot_say_is_refused(void **state)
{
    shapes s = {3, 4, 5, 0, 0, 0};
    cpu_case it;
    (void)state;
    make(&it, TN_F32, &s);
    tn_layout *layout = it.op.operand;
    layout[TN_MATMUL_A].stride[0] = 4;
    refused(&it, TN_REFUSE_STRIDE, "a.stride", 5, 4);
    layout[TN_MATMUL_A].stride[0] = 5;
    layout[TN_MATMUL_B].stride[0] = -4;
    refused(&it, TN_REFUSE_STRIDE, "b.stride", 4, -4);
    layout[TN_MATMUL_B].stride[0] = INT64_C(1) << 31;
    refused(&it, TN_REFUSE_STRIDE, "b.stride", INT32_MAX, INT64_C(1) << 31);
    layout[TN_MATMUL_B].stride[0] = 4;
    layout[TN_MATMUL_OUT].stride[0] = 3;
    refused(&it, TN_REFUSE_STRIDE, "out.stride", 4, 3);
    layout[TN_MATMUL_OUT].stride[0] = 4;
    layout[TN_MATMUL_B].dtype = TN_F64;
    refused(&it, TN_REFUSE_DTYPE, "b", TN_F32, TN_F64);
    layout[TN_MATMUL_B].dtype = TN_F32;
    TN_PARAMS_MUTABLE(&it.op, matmul)->k = INT64_C(1) << 31;
    refused(&it, TN_REFUSE_SHAPE, "k", INT32_MAX, INT64_C(1) << 31);
    cpu_end(&it);
}

/* A stride of a single row or column means nothing. */
static void strides_of_single_rows_are_not_read(void **state)
{
    const tn_kernel_row *row = open_row();
    shapes s = {1, 4, 5, 0, 0, 0};
    cpu_case it;
    (void)state;
    make(&it, TN_F32, &s);
    it.op.operand[TN_MATMUL_A].stride[0] = -77;
    it.op.operand[TN_MATMUL_OUT].stride[0] = 0;
    cpu_run_on(row, &it, library, 1);
    check_all(&it, NULL);
    cpu_end(&it);
}

#define CBLAS_TESTS                                                                                \
    cmocka_unit_test(plain_products_of_awkward_shapes),                                            \
        cmocka_unit_test(threads_do_not_change_a_bit), cmocka_unit_test(everything_after_the_sum), \
        cmocka_unit_test(everything_after_the_sum_of_a_tile), cmocka_unit_test(batches),           \
        cmocka_unit_test(many_small_matrices_on_threads), cmocka_unit_test(sums_of_nothing),       \
        cmocka_unit_test(nans_stay_where_they_are),                                                \
        cmocka_unit_test(what_cblas_cannot_say_is_refused),                                        \
        cmocka_unit_test(strides_of_single_rows_are_not_read)

#endif
