/* Results larger than caches are written past them: every bit as when they are made in parts. */
#include "cpu_make.h"

enum { ROWS = 2100, COLUMNS = 4111 }; /* 34 MB of f32, in rows that are aligned to nothing */

static void make(cpu_case *it, tn_dtype in, tn_dtype out)
{
    int64_t shape[] = {ROWS, COLUMNS};
    *it = (cpu_case){.op = {.as.each = {.kind = TN_UNARY_SILU,
                                        .size = COLUMNS,
                                        .rows = ROWS,
                                        .elements = (int64_t)ROWS * COLUMNS,
                                        .value = 1e-5}}};
    cpu_add(it, TN_EACH_IN, in, 2, shape, NULL, 1);
    cpu_add(it, TN_EACH_OUT, out, 2, shape, NULL, 3);
    cpu_fill(it, TN_EACH_IN, -4, 4);
}

/* The same, some rows at a time: each part small enough to stay in caches. */
static void check_parts(const tn_kernel_row *row, cpu_case *it)
{
    enum { PART = 300 };
    tn_dtype dtype = it->op.operand[TN_EACH_OUT].dtype;
    size_t bytes = (size_t)(PART * COLUMNS * cpu_size(dtype));
    char *part = malloc(bytes);
    cpu_run(row, it);
    for (int64_t first = 0; first + PART <= ROWS; first += PART) {
        tn_op op = it->op;
        void *data[TN_OP_OPERANDS_MAX] = {cpu_at(it, TN_EACH_IN, first * COLUMNS), part};
        const tn_run run = {.struct_size = sizeof run,
                            .row = row,
                            .op = &op,
                            .data = data,
                            .host = &cpu_host,
                            .threads = 1};
        op.operand[TN_EACH_IN].shape[0] = op.operand[TN_EACH_OUT].shape[0] = PART;
        op.as.each.rows = PART;
        op.as.each.elements = PART * COLUMNS;
        assert_int_equal(row->run(&run, NULL), TN_OK);
        assert_memory_equal(part, cpu_at(it, TN_EACH_OUT, first * COLUMNS), bytes);
    }
    free(part);
}

static void large_of(const tn_kernel_row *row)
{
    cpu_case it;
    make(&it, row->op == TN_OP_CAST ? TN_BF16 : TN_F32, TN_F32);
    if (row->op != TN_OP_UNARY)
        it.op.as.each.kind = 0;
    check_parts(row, &it);
    cpu_end(&it);
}

static void large_results_are_those_of_their_parts(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, large_of);
    cpu_each_row(TN_OP_UNARY, large_of);
    cpu_each_row(TN_OP_SOFTMAX, large_of);
    cpu_each_row(TN_OP_NORM, large_of);
}

/* Lines that are aligned, lines that are not, and what no line fits in. */
static void turned_of(const tn_kernel_row *row)
{
    static const int64_t shapes[][2] = {{2053, 4112}, {2053, 4111}};
    for (int c = 0; c < 2; c++) {
        const int64_t *shape = shapes[c], strides[] = {1, shape[0]};
        cpu_case it = {0};
        cpu_add(&it, TN_EACH_IN, TN_I32, 2, shape, strides, 0);
        cpu_add(&it, TN_EACH_OUT, TN_I32, 2, shape, NULL, 0);
        for (int64_t i = 0; i < shape[0] * shape[1]; i++)
            cpu_put(&it, TN_EACH_IN, i, (double)i);
        cpu_run(row, &it);
        for (int64_t i = 0; i < shape[0] * shape[1]; i++)
            assert_true(cpu_get(&it, TN_EACH_OUT, i) == (double)i);
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
