/* Few rows or columns of a product, by every row of the cpu's own that runs here: each has the bits that it has among
 * many, however it is computed. Where A and B have gaps they have NaNs, and they end where memory does. */
#include "cpu_edge.h"

#include "base_isa.h"
#include "params.h"
#include "tenon/module/op/matmul.h"

typedef struct shapes {
    int64_t m, n, k;
    int a, b, out; /* CPU_DENSE ... */
    int finish;    /* what happens to sums: FINISHES of them */
    int32_t threads;
} shapes;

enum { FINISHES = 4 };

static int32_t packs; /* how often a row packed B */

static tn_dtype out_of(tn_dtype dtype)
{
    return dtype == TN_I8 ? TN_I32 : dtype;
}

static void add(cpu_case *it, int32_t operand, tn_dtype dtype, int64_t rows, int64_t columns,
                int lies)
{
    const int64_t shape[] = {rows, columns};
    cpu_add_lying(it, operand, dtype, 2, shape, lies, 1);
    memset(it->memory[operand].low, 0xFF, it->memory[operand].bytes);
}

/* A number for each place, whatever the shape. */
static double number(int32_t operand, int64_t row, int64_t column, tn_dtype dtype)
{
    const int64_t at = (row * 7919 + column * 104729 + operand * 31) % 1021;
    return dtype == TN_I8 || dtype == TN_I32 ? (double)(at % 255 - 127) : (double)at / 512 - 1;
}

static void fill(cpu_case *it, int32_t operand)
{
    const tn_layout *layout = &it->op.operand[operand];
    for (int64_t i = 0; i < cpu_elements(layout); i++)
        cpu_put(it, operand, i,
                number(operand, i / layout->shape[1], i % layout->shape[1], layout->dtype));
}

static void make(cpu_case *it, tn_dtype dtype, const shapes *s)
{
    *it = (cpu_case){.op = {.uses = TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_TRANSPOSE,
                            .params = PARAMS(matmul, .m = s->m, .n = s->n, .k = s->k, .matrices = 1,
                                             .acc = dtype == TN_I8    ? TN_I32
                                                    : dtype == TN_F64 ? TN_F64
                                                                      : TN_F32,
                                             .alpha = 1)}};
    add(it, TN_MATMUL_A, dtype, s->m, s->k, s->a);
    add(it, TN_MATMUL_B, dtype, s->k, s->n, s->b);
    add(it, TN_MATMUL_OUT, out_of(dtype), s->m, s->n, s->out);
    fill(it, TN_MATMUL_A);
    fill(it, TN_MATMUL_B);
    memset(it->memory[TN_MATMUL_OUT].low, CPU_POISON, it->memory[TN_MATMUL_OUT].bytes);
    if (s->finish == 1 || s->finish == 3) {
        add(it, TN_MATMUL_BIAS, out_of(dtype), s->m, s->n, CPU_DENSE);
        fill(it, TN_MATMUL_BIAS);
        it->op.uses |= TN_MATMUL_USES_BIAS;
    }
    if (s->finish >= 2) {
        fill(it, TN_MATMUL_OUT);
        TN_PARAMS_MUTABLE(&it->op, matmul)->alpha = 0.75;
        TN_PARAMS_MUTABLE(&it->op, matmul)->beta = s->finish == 2 ? 1.5 : 0;
        it->op.uses |= TN_MATMUL_USES_ALPHA | (s->finish == 2 ? TN_MATMUL_USES_BETA : 0);
    }
}

static void compare(const tn_kernel_row *row, const cpu_case *few, const cpu_case *many)
{
    const tn_matmul_op *op = TN_PARAMS(&few->op, matmul);
    const size_t size = (size_t)cpu_size(few->op.operand[TN_MATMUL_OUT].dtype);
    for (int64_t i = 0; i < op->m * op->n; i++) {
        const int64_t there = i / op->n * TN_PARAMS(&many->op, matmul)->n + i % op->n;
        if (memcmp(cpu_at(few, TN_MATMUL_OUT, i), cpu_at(many, TN_MATMUL_OUT, there), size) != 0)
            fail_msg("%s, m=%lld n=%lld k=%lld: element %lld,%lld is %.17g, and %.17g among many",
                     row->name, (long long)op->m, (long long)op->n, (long long)op->k,
                     (long long)(i / op->n), (long long)(i % op->n), cpu_get(few, TN_MATMUL_OUT, i),
                     cpu_get(many, TN_MATMUL_OUT, there));
    }
}

static void check(const tn_kernel_row *row, tn_dtype dtype, const shapes *s)
{
    shapes all = *s;
    cpu_case few, many;
    size_t bytes[2];
    const int64_t others = test_reduced() ? 24 : 100;
    all.m += s->m < 80 ? others : 0;
    all.n += s->n < 80 ? others : 0;
    make(&few, dtype, s);
    make(&many, dtype, &all);
    void *a = cpu_move_to_edge(&few, TN_MATMUL_A, true, &bytes[0]);
    void *b = cpu_move_to_edge(&few, TN_MATMUL_B, true, &bytes[1]);
    cpu_run_in_room(row, &few, s->threads);
    cpu_run_in_room(row, &many, 1);
    compare(row, &few, &many);
    if (s->finish < 2)
        cpu_check_gaps(&few, TN_MATMUL_OUT);
    munmap(a, bytes[0]);
    munmap(b, bytes[1]);
    cpu_end(&few);
    cpu_end(&many);
}

static int lie_of(uint32_t number)
{
    return number % 4 == 0 ? CPU_PADDED : number % 4 == 1 ? CPU_TURNED : CPU_DENSE;
}

static shapes roll(const int64_t *sizes, size_t count, int64_t k)
{
    return (shapes){.m = sizes[cpu_random() % count],
                    .n = sizes[cpu_random() % count],
                    .k = k,
                    .a = lie_of(cpu_random()),
                    .b = lie_of(cpu_random()),
                    .out = (int)(cpu_random() % CPU_LIES),
                    .finish = cpu_random() % 2 ? 0 : (int)(cpu_random() % FINISHES),
                    .threads = 1 + (int32_t)(cpu_random() % 3)};
}

/* Sizes that are a little more than whole vectors of any instruction set. */
static void check_last_columns(const tn_kernel_row *row)
{
    static const int64_t sizes[] = {1,  2,  3,  7,  8,  9,  10, 11, 15, 16, 17, 18,
                                    19, 25, 31, 32, 33, 34, 35, 47, 49, 51, 64, 65};
    static const int64_t depths[] = {1, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64, 65, 255, 256, 257};
    for (int c = 0; c < (test_reduced() ? 15 : test_full() ? 400 : 120); c++) {
        shapes s = roll(sizes, sizeof sizes / sizeof sizes[0],
                        depths[cpu_random() % (sizeof depths / sizeof depths[0])]);
        if (c % 2) { /* what is computed with the least before it */
            s.a = c % 4 == 1 ? CPU_PADDED : CPU_DENSE;
            s.b = s.out = CPU_DENSE;
            s.finish = 0;
        }
        check(row, row->dtypes[c / 2 % (row->dtypes[1] ? 2 : 1)], &s);
    }
}

static void the_last_columns(void **state)
{
    (void)state;
    (void)tni_cpu_amx_request();
    cpu_each_row(TN_OP_MATMUL, check_last_columns);
}

/* A large matrix with a few columns, and as few rows with one. */
static void check_narrow(const tn_kernel_row *row)
{
    static const int64_t few[] = {1, 2, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65};
    static const int64_t many[] = {63, 64, 65, 95, 96, 97, 300, 301, 336, 351};
    static const int64_t depths[] = {31, 32, 33, 63, 64, 65, 300, 511, 512, 513, 1025, 1090};
    if (row->dtypes[1] || strstr(row->name, "." BASE_ISA))
        return;
    for (int c = 0; c < (test_reduced() ? 3 : test_full() ? 150 : 50); c++) {
        shapes s = roll(few, sizeof few / sizeof few[0],
                        depths[cpu_random() % (sizeof depths / sizeof depths[0])]);
        *(c % 2 ? &s.m : &s.n) = many[cpu_random() % (sizeof many / sizeof many[0])];
        check(row, row->dtypes[0], &s);
    }
}

static void few_of_a_large_matrix(void **state)
{
    (void)state;
    (void)tni_cpu_amx_request();
    cpu_each_row(TN_OP_MATMUL, check_narrow);
}

/* B is packed by the row, and then no longer there. */
static void check_packed(const tn_kernel_row *row, tn_dtype dtype, const shapes *s)
{
    cpu_case packed, plain;
    uint64_t bytes = 0;
    void *made = NULL;
    make(&packed, dtype, s);
    make(&plain, dtype, s);
    packed.op.struct_size = sizeof packed.op;
    packed.op.kind = row->op;
    const tn_run run = {.struct_size = sizeof run,
                        .row = row,
                        .op = &packed.op,
                        .data = packed.data,
                        .host = &cpu_host,
                        .threads = s->threads};
    const tn_status status = row->pack(&run, &made, &bytes, NULL);
    if (status != TN_UNSUPPORTED) {
        assert_int_equal(status, TN_OK);
        assert_true(bytes > 0);
        memset(packed.memory[TN_MATMUL_B].low, CPU_POISON, packed.memory[TN_MATMUL_B].bytes);
        packed.packed = made;
        cpu_run_in_room(row, &packed, s->threads);
        cpu_run_in_room(row, &plain, 1);
        compare(row, &packed, &plain);
        row->pack_release(&run, made);
        packs++;
    }
    cpu_end(&packed);
    cpu_end(&plain);
}

/* A large B with few rows, which is packed piece by piece, or beforehand. */
static void check_streamed(const tn_kernel_row *row)
{
    static const int64_t rows[] = {1, 7, 9, 11, 12, 13, 16, 17, 32, 33, 63, 64, 65};
    static const int64_t columns[] = {257, 300, 351, 512, 1031};
    static const int64_t depths[] = {255, 257, 300, 511, 513, 1025, 1090};
    const int32_t before = packs;
    if (strstr(row->name, ".plain"))
        return;
    for (int c = 0; c < (test_reduced() ? 6 : test_full() ? 150 : 20); c++) {
        shapes s = roll(rows, sizeof rows / sizeof rows[0],
                        depths[cpu_random() % (sizeof depths / sizeof depths[0])]);
        const tn_dtype dtype = row->dtypes[c % (row->dtypes[1] ? 2 : 1)];
        s.n = columns[cpu_random() % (sizeof columns / sizeof columns[0])];
        s.out = c % 3 ? CPU_DENSE : s.out;
        check(row, dtype, &s);
        check_packed(row, dtype, &s);
    }
    assert_true(packs > before);
}

static void few_rows_of_a_large_matrix(void **state)
{
    (void)state;
    (void)tni_cpu_amx_request();
    cpu_each_row(TN_OP_MATMUL, check_streamed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_columns),
        cmocka_unit_test(few_of_a_large_matrix),
        cmocka_unit_test(few_rows_of_a_large_matrix),
    };
    return run_suite("kernels.cpu_matmul_few", tests);
}
