/* cpu.matmul.onednn and its sisters against sums in long double; integers exactly. */
#include "cpu_make.h"

#include "os/thread.h"
#include "params.h"
#include "tenon/module/op/matmul.h"

static void *library;

static const tn_kernel_row *open_row(const char *name)
{
    const tn_kernel_row *row = cpu_row(name);
    tn_error err;
    assert_non_null(row);
    assert_string_equal(row->library, "mkldnn");
    if (!library && cpu_library("mkldnn")->open(&cpu_host, &library, &err))
        skip_because("%s", err.message);
    if (!cpu_can(row))
        skip_because("this processor lacks what %s needs", name);
    return row;
}

static const struct {
    const char *name;
    tn_dtype dtype, out, acc;
    double unit;  /* of what operands are read as, where they are rounded first; else 0 */
    int64_t step; /* of k */
} rows[] = {
    {"cpu.matmul.onednn", TN_F32, TN_F32, TN_F32, 0, 1},
    {"cpu.matmul.onednn.rounded", TN_F32, TN_F32, TN_F32, 0x1p-8, 32},
    {"cpu.matmul.onednn.bf16", TN_BF16, TN_BF16, TN_F32, 0, 32},
    {"cpu.matmul.onednn.bf16", TN_BF16, TN_F32, TN_F32, 0, 32},
    {"cpu.matmul.onednn.int8", TN_I8, TN_I32, TN_I32, 0, 1},
};
enum { ROWS = sizeof rows / sizeof rows[0], INT8 = ROWS - 1 };

typedef struct shapes {
    int64_t m, n, k;
    int by_columns; /* bits: A, B, out */
    int64_t pad;    /* elements between rows */
    int64_t shift;
} shapes;

static void add_matrix(cpu_case *it, int32_t operand, tn_dtype dtype, int64_t height, int64_t width,
                       int by_columns, const shapes *s)
{
    int64_t shape[] = {height, width};
    int64_t strides[] = {by_columns ? 1 : width + s->pad, by_columns ? height + s->pad : 1};
    cpu_add(it, operand, dtype, 2, shape, strides, s->shift);
}

static void fill(cpu_case *it, int32_t operand)
{
    bool whole = it->op.operand[operand].dtype == TN_I8;
    cpu_fill(it, operand, whole ? -128 : -1, whole ? 128 : 1);
}

/* k is taken up to what the row computes with. */
static void make(cpu_case *it, size_t r, shapes *s)
{
    s->k = (s->k + rows[r].step - 1) / rows[r].step * rows[r].step;
    *it = (cpu_case){.op = {.params = PARAMS(matmul, .m = s->m, .n = s->n, .k = s->k, .matrices = 1,
                                             .acc = rows[r].acc, .alpha = 1)}};
    add_matrix(it, TN_MATMUL_A, rows[r].dtype, s->m, s->k, s->by_columns & 1, s);
    add_matrix(it, TN_MATMUL_B, rows[r].dtype, s->k, s->n, s->by_columns & 2, s);
    add_matrix(it, TN_MATMUL_OUT, rows[r].out, s->m, s->n, s->by_columns & 4, s);
    fill(it, TN_MATMUL_A);
    fill(it, TN_MATMUL_B);
    it->op.uses |= s->by_columns & 3 ? TN_MATMUL_USES_TRANSPOSE : 0;
    it->op.uses |= rows[r].out != rows[r].dtype && r != INT8 ? TN_MATMUL_USES_OUT_DTYPE : 0;
}

static tn_run run_of(const tn_kernel_row *row, cpu_case *it, int32_t threads)
{
    it->op.struct_size = sizeof it->op;
    it->op.kind = row->op;
    return (tn_run){.struct_size = sizeof(tn_run),
                    .row = row,
                    .op = &it->op,
                    .data = it->data,
                    .library = library,
                    .host = &cpu_host,
                    .threads = threads};
}

static void make_plan(tn_run *run)
{
    static void *const nothing[TN_OP_OPERANDS_MAX] = {NULL};
    void *const *data = run->data;
    uint64_t bytes = 0;
    tn_error err;
    run->data = nothing;
    if (run->row->plan(run, &run->plan, &bytes, &err))
        fail_msg("%s: %s", run->row->name, err.message);
    assert_true(bytes > 0);
    run->data = data;
}

/* As the core: only what is honoured and admitted is planned, then run. */
static void compute(const tn_kernel_row *row, cpu_case *it, int32_t threads)
{
    tn_refusal why;
    tn_error err;
    tn_run run = run_of(row, it, threads);
    assert_int_equal(it->op.uses & ~row->honours, 0);
    if (cpu_admit(row, it, &why))
        fail_msg("%s refuses: %s: expected %lld, got %lld", row->name, why.what,
                 (long long)why.needed, (long long)why.found);
    make_plan(&run);
    if (row->run(&run, &err))
        fail_msg("%s: %s", row->name, err.message);
    row->plan_release(&run, run.plan);
    cpu_check_guards(it);
}

/* The same with B packed ahead, and gone when it is run; false where that is refused. */
static bool compute_packed(const tn_kernel_row *row, cpu_case *it, int32_t threads)
{
    void *data[TN_OP_OPERANDS_MAX] = {NULL}, *packed = NULL;
    uint64_t bytes = 0;
    tn_error err;
    tn_run run = run_of(row, it, threads);
    void *const *all = run.data;
    make_plan(&run);
    data[TN_MATMUL_B] = all[TN_MATMUL_B];
    run.data = data;
    tn_status status = row->pack(&run, &packed, &bytes, &err);
    if (!status) {
        assert_true(bytes >=
                    (uint64_t)(TN_PARAMS(&it->op, matmul)->n * TN_PARAMS(&it->op, matmul)->k));
        memcpy(data, all, TN_MATMUL_OPERANDS * sizeof data[0]);
        data[TN_MATMUL_B] = NULL;
        run.packed = packed;
        if (row->run(&run, &err))
            fail_msg("%s: %s", row->name, err.message);
        row->pack_release(&run, packed);
        cpu_check_guards(it);
    } else if (status != TN_UNSUPPORTED) {
        fail_msg("%s: %s", row->name, err.message);
    }
    row->plan_release(&run, run.plan);
    return status == TN_OK;
}

static void check_element(const cpu_case *it, size_t r, int64_t matrix, int64_t i, int64_t j)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    int64_t at = (matrix * op->m + i) * op->n + j;
    long double sum = 0, size = 0;
    for (int64_t l = 0; l < op->k; l++) {
        long double product =
            (long double)cpu_get(it, TN_MATMUL_A, (matrix * op->m + i) * op->k + l) *
            cpu_get(it, TN_MATMUL_B, (matrix * op->k + l) * op->n + j);
        sum += product;
        size += fabsl(product);
    }
    double bias = it->op.operand[TN_MATMUL_BIAS].dtype ? cpu_get(it, TN_MATMUL_BIAS, at) : 0;
    double wanted = (double)sum + bias, exact = cpu_activated(op->activation, wanted);
    double bound = (double)(2 * op->k + 4) * 0x1p-24 * (double)size + 4 * 0x1p-24 * fabs(bias) +
                   2.1 * rows[r].unit * (double)size;
    if (op->activation > TN_ACT_RELU)
        bound = 1.2 * bound + 0x1p-20 * fabs(wanted);
    bound += cpu_unit(rows[r].out) * fabs(exact);
    double found = cpu_get(it, TN_MATMUL_OUT, at);
    if (!cpu_close(found, exact, r == INT8 ? 0 : bound))
        fail_msg("%s: element %lld,%lld of matrix %lld: %.9g, not %.9g (bound %.3g)", rows[r].name,
                 (long long)i, (long long)j, (long long)matrix, found, exact, bound);
}

static int64_t next(int64_t i, int64_t step, int64_t count)
{
    return i + step < count || i == count - 1 ? i + step : count - 1;
}

static void check_all(const cpu_case *it, size_t r)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    int64_t step_i = op->m * op->k > 4000 ? op->m / 13 + 1 : 1;
    int64_t step_j = op->n * op->k > 4000 ? op->n / 11 + 1 : 1;
    for (int64_t matrix = 0; matrix < op->matrices; matrix++) {
        for (int64_t i = 0; i < op->m; i = next(i, step_i, op->m)) {
            for (int64_t j = 0; j < op->n; j = next(j, step_j, op->n))
                check_element(it, r, matrix, i, j);
        }
    }
}

/* Vectors that are not dense are refused. */
static bool is_refused(const tn_kernel_row *row, const cpu_case *it)
{
    tn_refusal why;
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    if (!cpu_admit(row, it, &why))
        return false;
    assert_int_equal(why.code, TN_REFUSE_STRIDE);
    assert_true(op->m == 1 || op->n == 1);
    assert_true(why.found > 1);
    return true;
}

static void check_awkward_shapes(size_t r)
{
    static const int64_t sizes[] = {1, 2, 7, 16, 33};
    const tn_kernel_row *row = open_row(rows[r].name);
    for (int c = 0; c < 125 * 8; c++) {
        shapes s = {sizes[c % 5], sizes[c / 5 % 5], sizes[c / 25 % 5], c / 125, c % 3, c % 2};
        cpu_case it;
        make(&it, r, &s);
        if (is_refused(row, &it)) {
            cpu_end(&it);
            continue;
        }
        compute(row, &it, 2);
        check_all(&it, r);
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        cpu_end(&it);
    }
}

static void awkward_shapes_of_f32(void **state)
{
    (void)state;
    check_awkward_shapes(0);
}

static void awkward_shapes_of_f32_rounded(void **state)
{
    (void)state;
    check_awkward_shapes(1);
}

static void awkward_shapes_of_bf16(void **state)
{
    (void)state;
    check_awkward_shapes(2);
    check_awkward_shapes(3);
}

static void awkward_shapes_of_i8(void **state)
{
    (void)state;
    check_awkward_shapes(INT8);
}

static void threads_do_not_change_a_bit(void **state)
{
    static const shapes cases[] = {{600, 300, 263, 0, 0, 0},
                                   {1, 3000, 1500, 2, 0, 1},
                                   {700, 513, 129, 4, 3, 0},
                                   {3000, 17, 301, 1, 0, 0},
                                   {513, 513, 64, 7, 1, 1}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0] * ROWS; c++) {
        const tn_kernel_row *row = open_row(rows[c % ROWS].name);
        shapes s = cases[c / ROWS];
        cpu_case it;
        make(&it, c % ROWS, &s);
        size_t bytes = it.memory[TN_MATMUL_OUT].bytes;
        void *first = malloc(bytes);
        compute(row, &it, 1);
        memcpy(first, it.memory[TN_MATMUL_OUT].low, bytes);
        memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, bytes);
        compute(row, &it, 8);
        assert_memory_equal(first, it.memory[TN_MATMUL_OUT].low, bytes);
        check_all(&it, c % ROWS);
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        free(first);
        cpu_end(&it);
    }
}

static void check_packed(size_t r)
{
    static const shapes cases[] = {{1, 16, 64, 0, 0, 0},
                                   {16, 33, 7, 0, 2, 1},
                                   {33, 16, 64, 2, 0, 0},
                                   {128, 200, 96, 3, 1, 0},
                                   {300, 520, 250, 0, 0, 0}};
    const tn_kernel_row *row = open_row(rows[r].name);
    int done = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        shapes s = cases[i];
        cpu_case it;
        make(&it, r, &s);
        if (!is_refused(row, &it) && compute_packed(row, &it, 2)) {
            check_all(&it, r);
            cpu_check_gaps(&it, TN_MATMUL_OUT);
            done++;
        }
        cpu_end(&it);
    }
    assert_true(done >= 3);
}

static void a_packed_b_serves_in_its_place(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        const tn_kernel_row *row = cpu_row(rows[r].name);
        if (cpu_can(row))
            check_packed(r);
    }
}

/* Out by columns makes A of B; batches have many. */
static void what_cannot_be_packed_is_read_where_it_is(void **state)
{
    const tn_kernel_row *row = open_row("cpu.matmul.onednn");
    shapes s = {33, 16, 64, 4, 0, 0};
    cpu_case it;
    (void)state;
    make(&it, 0, &s);
    if (!is_refused(row, &it))
        assert_false(compute_packed(row, &it, 2));
    cpu_end(&it);
}

static void everything_after_the_sum(void **state)
{
    (void)state;
    for (size_t c = 0; c < INT8 * 2 * 5 * 8; c++) {
        size_t r = c % INT8;
        const tn_kernel_row *row = open_row(rows[r].name);
        shapes s = {5, 37, 9, (int)(c / INT8 / 10) & 3, (int64_t)c % 2, (int64_t)c % 3};
        cpu_case it;
        make(&it, r, &s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation = (int32_t)(c / INT8 / 2 % 5);
        it.op.uses |= TN_MATMUL_USES_ACTIVATION;
        if (c / INT8 % 2) {
            int64_t shape[] = {s.m, s.n}, strides[] = {0, 1};
            cpu_add(&it, TN_MATMUL_BIAS, rows[r].out, 2, shape, strides, 1);
            fill(&it, TN_MATMUL_BIAS);
            it.op.uses |= TN_MATMUL_USES_BIAS;
        }
        compute(row, &it, 2);
        check_all(&it, r);
        cpu_end(&it);
    }
}

/* A of one matrix, B of one matrix, both of many, and rows that fold into one product. */
static void batches(void **state)
{
    enum { M = 5, N = 6, K = 32 };
    static const int64_t strides[][3][4] = {
        {{3 * M * K, M * K, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{0, 0, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, K, 1}, {0, 0, 1, K}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, 1, M}, {0, 0, N, 1}, {3 * M * N, M * N, 1, M}},
        {{M * K, 2 * M * K, K, 1}, {0, K * N, N, 1}, {-3 * M * N, M * N, N, 1}},
    };
    int64_t a[] = {2, 3, M, K}, b[] = {2, 3, K, N}, out[] = {2, 3, M, N};
    (void)state;
    for (size_t c = 0; c < ROWS * 5; c++) {
        size_t r = c % ROWS, lies = c / ROWS;
        const tn_kernel_row *row = open_row(rows[r].name);
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST,
                              .params = PARAMS(matmul, M, N, K, 6, 2, 0, rows[r].acc, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, rows[r].dtype, 4, a, strides[lies][0], 0);
        cpu_add(&it, TN_MATMUL_B, rows[r].dtype, 4, b, strides[lies][1], 1);
        cpu_add(&it, TN_MATMUL_OUT, rows[r].out, 4, out, strides[lies][2], 0);
        fill(&it, TN_MATMUL_A);
        fill(&it, TN_MATMUL_B);
        compute(row, &it, 2);
        check_all(&it, r);
        cpu_end(&it);
    }
}

/* Sums whose pairs of products do not fit 16 bits, and whose all does fit 32. */
static void the_greatest_sums_of_i8_are_exact(void **state)
{
    static const int values[][2] = {{-128, -128}, {-128, 127}, {127, 127}, {127, -128}};
    const tn_kernel_row *row = open_row(rows[INT8].name);
    (void)state;
    for (size_t v = 0; v < 4; v++) {
        for (int64_t m = 1; m <= 300; m += 299) {
            shapes s = {m, 40, 1024, (int)v, 0, 0};
            cpu_case it;
            make(&it, INT8, &s);
            cpu_fill(&it, TN_MATMUL_A, values[v][0], values[v][0]);
            cpu_fill(&it, TN_MATMUL_B, values[v][1], values[v][1]);
            compute(row, &it, 2);
            for (int64_t i = 0; i < s.m * s.n; i++)
                assert_true(cpu_get(&it, TN_MATMUL_OUT, i) ==
                            (double)(values[v][0] * values[v][1] * s.k));
            cpu_end(&it);
        }
    }
}

static void nans_stay_where_they_are(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2 * 2 * 2 * 2; c++) {
        shapes s = {c & 1 ? 600 : 6, c & 1 ? 190 : 5, c & 1 ? 210 : 4, 0, 0, 0};
        size_t r = c & 2 ? 2 : 0;
        const tn_kernel_row *row = open_row(rows[r].name);
        cpu_case it;
        make(&it, r, &s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation = c & 4 ? TN_ACT_RELU : TN_ACT_NONE;
        cpu_put(&it, TN_MATMUL_A, 2 * s.k + 1, c & 8 ? -NAN : NAN);
        cpu_put(&it, TN_MATMUL_B, 1 * s.n + 3, INFINITY);
        compute(row, &it, 2);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            double found = cpu_get(&it, TN_MATMUL_OUT, i);
            if (i / s.n == 2)
                assert_true(isnan(found));
            else if (i % s.n == 3)
                assert_true(isinf(found) || (c & 4 && found == 0));
            else
                assert_true(isfinite(found));
        }
        cpu_end(&it);
    }
}

/* What is empty is planned as anything else, and then not run. */
static void plans_for_nothing_are_made(void **state)
{
    shapes s = {0, 4, 5, 0, 0, 0};
    const tn_kernel_row *row = open_row(rows[0].name);
    (void)state;
    for (int c = 0; c < 2; c++) {
        s.m = c ? 4 : 0, s.n = c ? 0 : 4;
        cpu_case it;
        make(&it, 0, &s);
        tn_run run = run_of(row, &it, 1);
        make_plan(&run);
        run.row->plan_release(&run, run.plan);
        cpu_end(&it);
    }
}

/* Threads that use one plan at once. */
enum { THREADS = 4, TURNS = 50 };
typedef struct worker {
    tn_run run;
    cpu_case it;
} worker;

static void work(void *user)
{
    worker *w = user;
    for (int i = 0; i < TURNS; i++) {
        if (w->run.row->run(&w->run, NULL))
            fail_msg("a run failed");
    }
}

static void one_plan_serves_many_threads(void **state)
{
    const tn_kernel_row *row = open_row(rows[0].name);
    static worker workers[THREADS];
    tni_thread threads[THREADS];
    shapes s = {90, 80, 70, 0, 0, 0};
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        make(&workers[i].it, 0, &s);
        workers[i].run = run_of(row, &workers[i].it, 1);
        if (i == 0)
            make_plan(&workers[0].run);
        workers[i].run.plan = workers[0].run.plan;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], work, &workers[i], NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    row->plan_release(&workers[0].run, workers[0].run.plan);
    for (int i = 0; i < THREADS; i++) {
        check_all(&workers[i].it, 0);
        cpu_end(&workers[i].it);
    }
}

static void refused(const cpu_case *it, size_t r, int32_t code, const char *what, int64_t needed,
                    int64_t found)
{
    tn_refusal why;
    assert_int_equal(cpu_admit(cpu_row(rows[r].name), it, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, code);
    assert_string_equal(why.what, what);
    assert_int_equal(why.needed, needed);
    assert_int_equal(why.found, found);
}

static void what_it_cannot_do_is_refused(void **state)
{
    shapes s = {3, 4, 5, 0, 0, 0};
    int64_t shape[] = {3, 4}, strides[] = {1, 0};
    cpu_case it;
    (void)state;
    make(&it, 0, &s);
    it.op.operand[TN_MATMUL_A].stride[0] = 4;
    refused(&it, 0, TN_REFUSE_STRIDE, "a.stride", 5, 4);
    it.op.operand[TN_MATMUL_A].stride[0] = 5;
    cpu_add(&it, TN_MATMUL_BIAS, TN_F32, 2, shape, strides, 0);
    refused(&it, 0, TN_REFUSE_STRIDE, "bias.stride", 0, 1);
    it.op.operand[TN_MATMUL_BIAS].stride[0] = 4;
    it.op.operand[TN_MATMUL_BIAS].stride[1] = 1;
    refused(&it, 0, TN_REFUSE_STRIDE, "bias.stride", 0, 4);
    cpu_end(&it);
    make(&it, 0, &(shapes){1, 4, 5, 1, 2, 0});
    refused(&it, 0, TN_REFUSE_STRIDE, "a.stride", 1, 3);
    cpu_end(&it);
    make(&it, 0, &(shapes){3, 1, 5, 0, 2, 0});
    refused(&it, 0, TN_REFUSE_STRIDE, "b.stride", 1, 3);
    cpu_end(&it);
    make(&it, 0, &(shapes){1, 4, 5, 4, 2, 0});
    refused(&it, 0, TN_REFUSE_STRIDE, "out.stride", 1, 3);
    cpu_end(&it);
    s.k = 0;
    make(&it, 0, &s);
    refused(&it, 0, TN_REFUSE_SHAPE, "k", 1, 0);
    cpu_end(&it);
    s.k = 33;
    make(&it, 0, &s);
    refused(&it, 1, TN_REFUSE_SHAPE, "k", 64, 33);
    cpu_end(&it);
    assert_int_equal(cpu_row(rows[0].name)->honours & (TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA),
                     0);
    assert_int_equal(cpu_row(rows[INT8].name)->honours & TN_MATMUL_USES_BIAS, 0);
}

static void only_one_row_rounds_f32(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++)
        assert_int_equal((cpu_row(rows[r].name)->numerics & TN_NUM_ROUNDS_F32_BF16) != 0,
                         rows[r].unit > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awkward_shapes_of_f32),
        cmocka_unit_test(awkward_shapes_of_f32_rounded),
        cmocka_unit_test(awkward_shapes_of_bf16),
        cmocka_unit_test(awkward_shapes_of_i8),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(a_packed_b_serves_in_its_place),
        cmocka_unit_test(what_cannot_be_packed_is_read_where_it_is),
        cmocka_unit_test(everything_after_the_sum),
        cmocka_unit_test(batches),
        cmocka_unit_test(the_greatest_sums_of_i8_are_exact),
        cmocka_unit_test(nans_stay_where_they_are),
        cmocka_unit_test(plans_for_nothing_are_made),
        cmocka_unit_test(one_plan_serves_many_threads),
        cmocka_unit_test(what_it_cannot_do_is_refused),
        cmocka_unit_test(only_one_row_rounds_f32),
    };
    return run_suite("kernels.cpu_onednn", tests);
}
