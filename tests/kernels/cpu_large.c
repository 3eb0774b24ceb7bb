/* Results larger than caches are written past them: every bit as when they are made in parts. */
#include "cpu_make.h"

#include "params.h"
#include "tenon/module/op/cast.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/softmax.h"
#include "tenon/module/op/unary.h"

enum { PART = 300 }; /* rows, which stay in caches */

/* Columns of rows that are aligned to nothing, and to a line. */
enum { ODD = 4111, ALIGNED = 4128 };

/* Some rows with numbers of their own, and then the same again. */
static void fill_rows(cpu_case *it, int64_t rows, int64_t columns)
{
    enum { DIFFERENT = 31 };
    size_t bytes = (size_t)(columns * cpu_size(it->op.operand[TN_ELEMENTWISE_IN].dtype));
    for (int64_t i = 0; i < DIFFERENT * columns; i++)
        cpu_put(it, TN_ELEMENTWISE_IN, i, cpu_uniform(-4, 4));
    for (int64_t row = DIFFERENT; row < rows; row++)
        memcpy(cpu_at(it, TN_ELEMENTWISE_IN, row * columns),
               cpu_at(it, TN_ELEMENTWISE_IN, row % DIFFERENT * columns), bytes);
}

/* 34 MB of out. */
static void make(cpu_case *it, tn_dtype in, tn_dtype out, int64_t columns)
{
    int64_t rows = (34 << 20) / (columns * cpu_size(out)), shape[] = {rows, columns};
    int64_t shift = columns == ODD;
    *it = (cpu_case){.op = {.params = PARAMS(elementwise, .size = columns, .rows = rows,
                                             .elements = rows * columns, .value = 1e-5)}};
    cpu_add(it, TN_ELEMENTWISE_IN, in, 2, shape, NULL, shift);
    cpu_add(it, TN_ELEMENTWISE_OUT, out, 2, shape, NULL, 3 * shift);
    fill_rows(it, rows, columns);
}

static void check_parts(const tn_kernel_row *row, cpu_case *it)
{
    const int64_t rows = TN_PARAMS(&it->op, elementwise)->rows,
                  columns = TN_PARAMS(&it->op, elementwise)->size;
    size_t bytes = (size_t)(PART * columns * cpu_size(it->op.operand[TN_ELEMENTWISE_OUT].dtype));
    char *part = malloc(bytes);
    cpu_run(row, it);
    for (int64_t first = 0; first + PART <= rows; first += PART) {
        tn_op op = it->op;
        void *data[TN_OP_OPERANDS_MAX] = {cpu_at(it, TN_ELEMENTWISE_IN, first * columns), part};
        const tn_run run = {.struct_size = sizeof run,
                            .row = row,
                            .op = &op,
                            .data = data,
                            .host = &cpu_host,
                            .threads = 1};
        op.operand[TN_ELEMENTWISE_IN].shape[0] = op.operand[TN_ELEMENTWISE_OUT].shape[0] = PART;
        TN_PARAMS_MUTABLE(&op, elementwise)->rows = PART;
        TN_PARAMS_MUTABLE(&op, elementwise)->elements = PART * columns;
        assert_int_equal(row->run(&run, NULL), TN_OK);
        assert_memory_equal(part, cpu_at(it, TN_ELEMENTWISE_OUT, first * columns), bytes);
    }
    free(part);
}

static void large_of(const tn_kernel_row *row)
{
    static const struct {
        tn_dtype dtype;
        int64_t columns;
    } cases[] = {{TN_F32, ODD}, {TN_BF16, ALIGNED}, {TN_F32, ALIGNED}};
    int count = test_reduced() || row->op == TN_OP_CAST || row->op == TN_OP_UNARY ? 2 : 3;
    for (int c = 0; c < count; c++) {
        if (test_fewest() && (uint64_t)c != test_seed() % 2)
            continue;
        cpu_case it;
        tn_dtype out = cases[c].dtype;
        tn_dtype in = row->op != TN_OP_CAST ? out : out == TN_F32 ? TN_BF16 : TN_F32;
        make(&it, in, out, cases[c].columns);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = row->op == TN_OP_UNARY ? TN_UNARY_SILU : 0;
        check_parts(row, &it);
        cpu_end(&it);
    }
}

static void large_results_are_those_of_their_parts(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, large_of);
    cpu_each_row(TN_OP_UNARY, large_of);
    cpu_each_row(TN_OP_SOFTMAX, large_of);
    cpu_each_row(TN_OP_NORM, large_of);
}

static void check_turned(const cpu_case *it, int64_t rows, int64_t columns, size_t size)
{
    const unsigned char *in = it->memory[TN_ELEMENTWISE_IN].low,
                        *out = it->memory[TN_ELEMENTWISE_OUT].low;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            if (memcmp(in + (size_t)(c * rows + r) * size, out + (size_t)(r * columns + c) * size,
                       size) != 0)
                fail_msg("row %lld, column %lld of %zu bytes differs", (long long)r, (long long)c,
                         size);
        }
}

/* Lines that are aligned, lines that are not, and what no line fits in. */
static void turned_of(const tn_kernel_row *row)
{
    static const struct {
        tn_dtype dtype;
        int64_t columns;
    } cases[] = {{TN_U8, 4160}, {TN_I16, ODD}, {TN_I16, 4160}, {TN_I64, ALIGNED}};
    for (int c = 0; c < 4; c += test_reduced() ? 2 : 1) {
        if (test_fewest() && (uint64_t)c / 2 != test_seed() % 2)
            continue;
        const int64_t size = cpu_size(cases[c].dtype), columns = cases[c].columns;
        const int64_t rows = (34 << 20) / (columns * size) | 1;
        const int64_t shape[] = {rows, columns}, strides[] = {1, rows};
        cpu_case it = {0};
        cpu_add(&it, TN_ELEMENTWISE_IN, cases[c].dtype, 2, shape, strides, 0);
        cpu_add(&it, TN_ELEMENTWISE_OUT, cases[c].dtype, 2, shape, NULL, 0);
        for (size_t i = 0; i + 4 <= it.memory[TN_ELEMENTWISE_IN].bytes; i += 4) {
            uint32_t bits = cpu_random();
            memcpy(it.memory[TN_ELEMENTWISE_IN].low + i, &bits, 4);
        }
        cpu_run(row, &it);
        check_turned(&it, rows, columns, (size_t)size);
        cpu_end(&it);
    }
}

static void large_planes_are_turned(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_PERMUTE, turned_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_results_are_those_of_their_parts),
        cmocka_unit_test(large_planes_are_turned),
    };
    return run_suite("kernels.cpu_large", tests);
}
