/* The processor's own matmuls of i8, bf16 and f16, every row that runs here. Whole numbers are compared with
 * sums in 64 bits that wrap, exactly; floats with sums in long double, within the bound of any order of
 * summation in f32: 2 (k + 2) u sum |a b|, and a few roundings of what is added. Rows that do not run here
 * are named. */
#include "cpu_edge.h"

#include "base_isa.h"
#include "params.h"
#include "tenon/tenon.h"

/* Of bf16 rows whose instructions take subnormal numbers as 0. */
static bool flushes(const tn_kernel_row *row)
{
    return strstr(row->name, ".amx") || strstr(row->name, "_bf16");
}

static bool is_low(const tn_kernel_row *row)
{
    tn_dtype dtype = row->dtypes[0];
    return row->op == TN_OP_MATMUL && !row->library &&
           (dtype == TN_I8 || dtype == TN_BF16 || dtype == TN_F16) && !row->dtypes[1];
}

static int each_row(void (*check)(const tn_kernel_row *row))
{
    int count = 0;
    (void)tni_cpu_amx_request();
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        if (!is_low(*row) || !cpu_can(*row))
            continue;
        check(*row);
        count++;
    }
    assert_true(count >= 3);
    return count;
}

/* A product to be made: dtypes, sizes and how operands lie. */
typedef struct shapes {
    tn_dtype out;
    int64_t m, n, k;
    int lies[3]; /* CPU_DENSE ... of A, B and out */
    int64_t shift;
} shapes;

static tn_dtype usual_out(tn_dtype dtype)
{
    return dtype == TN_I8 ? TN_I32 : dtype;
}

static void fill(cpu_case *it, int32_t operand)
{
    tn_dtype dtype = it->op.operand[operand].dtype;
    for (int64_t i = 0; i < cpu_elements(&it->op.operand[operand]); i++) {
        double whole = (double)(cpu_random() % 256) - 128;
        cpu_put(it, operand, i,
                dtype == TN_I8    ? (cpu_random() % 3 ? whole
                                     : whole < 0      ? -128
                                                      : 127)
                : dtype == TN_I32 ? floor(cpu_uniform(-2e9, 2e9))
                                  : cpu_uniform(-1, 1));
    }
}

static void lay_out(cpu_case *it, tn_dtype dtype, const shapes *s)
{
    const int64_t a[] = {s->m, s->k}, b[] = {s->k, s->n}, out[] = {s->m, s->n};
    *it = (cpu_case){.op = {.uses = TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_OUT_DTYPE,
                            .params = PARAMS(matmul, .m = s->m, .n = s->n, .k = s->k, .matrices = 1,
                                             .acc = dtype == TN_I8 ? TN_I32 : TN_F32, .alpha = 1)}};
    cpu_add_lying(it, TN_MATMUL_A, dtype, 2, a, s->lies[0], s->shift);
    cpu_add_lying(it, TN_MATMUL_B, dtype, 2, b, s->lies[1], s->shift);
    cpu_add_lying(it, TN_MATMUL_OUT, s->out, 2, out, s->lies[2], s->shift);
}

static void make(cpu_case *it, tn_dtype dtype, const shapes *s)
{
    lay_out(it, dtype, s);
    fill(it, TN_MATMUL_A);
    fill(it, TN_MATMUL_B);
}

/* Sums of whole numbers wrap at 32 bits; what is left of a fraction is cut, and wraps too. */
static int32_t wrap(int64_t whole)
{
    return (int32_t)(uint32_t)(uint64_t)whole;
}

static double old_at(const cpu_case *it, const cpu_case *before, int64_t at)
{
    return TN_PARAMS(&it->op, matmul)->beta != 0 ? cpu_get(before, TN_MATMUL_OUT, at) : 0;
}

static double bias_at(const cpu_case *it, int64_t at)
{
    return it->op.operand[TN_MATMUL_BIAS].dtype ? cpu_get(it, TN_MATMUL_BIAS, at) : 0;
}

static void check_element(const tn_kernel_row *row, const cpu_case *it, const cpu_case *before,
                          int64_t at, long double sum, double size)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    const tn_dtype out = it->op.operand[TN_MATMUL_OUT].dtype;
    const bool bytes = row->dtypes[0] == TN_I8;
    const double u = 0x1p-24, old = old_at(it, before, at), bias = bias_at(it, at);
    const double found = cpu_get(it, TN_MATMUL_OUT, at);
    double exact = bytes ? (double)wrap((int64_t)sum) : (double)sum;
    double wanted = op->alpha * exact + op->beta * old + bias, bound = 0;
    if (out == TN_I32) {
        wanted = wrap((int64_t)wanted);
    } else {
        bound = bytes ? 2 * u * fabs(op->alpha * exact)
                      : fabs(op->alpha) * 2 * (double)(op->k + 2) * u * size;
        bound += 4 * u * (fabs(op->beta * old) + fabs(bias) + fabs(wanted));
        if (op->activation > TN_ACT_RELU)
            bound = 1.2 * bound + 16 * u * fabs(wanted);
        wanted = cpu_activated(op->activation, wanted);
        bound += 2 * cpu_unit(out) * fabs(wanted) + (out == TN_F16 ? 0x1p-24 : 0x1p-133);
    }
    if (!cpu_close(found, wanted, bound))
        fail_msg("%s, m %lld n %lld k %lld, element %lld: %.9g, not %.9g within %.3g", row->name,
                 (long long)op->m, (long long)op->n, (long long)op->k, (long long)at, found, wanted,
                 bound);
}

/* One matrix: of operands whose elements in the order of their shapes begin there. */
static void check_matrix(const tn_kernel_row *row, const cpu_case *it, const cpu_case *before,
                         int64_t matrix)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    double *a = calloc((size_t)(op->m * op->k + 1), sizeof *a);
    double *b = calloc((size_t)(op->k * op->n + 1), sizeof *b);
    for (int64_t i = 0; i < op->m * op->k; i++)
        a[i] = cpu_get(it, TN_MATMUL_A, matrix * op->m * op->k + i);
    for (int64_t i = 0; i < op->k * op->n; i++)
        b[i] = cpu_get(it, TN_MATMUL_B, matrix * op->k * op->n + i);
    for (int64_t i = 0; i < op->m; i++) {
        for (int64_t j = 0; j < op->n; j++) {
            long double sum = 0;
            double size = 0;
            for (int64_t p = 0; p < op->k; p++) {
                double product = a[i * op->k + p] * b[p * op->n + j];
                sum += product;
                size += fabs(product);
            }
            check_element(row, it, before, (matrix * op->m + i) * op->n + j, sum, size);
        }
    }
    free(a);
    free(b);
}

static void check_all(const tn_kernel_row *row, const cpu_case *it, const cpu_case *before)
{
    for (int64_t i = 0; i < TN_PARAMS(&it->op, matmul)->matrices; i++)
        check_matrix(row, it, before, i);
    cpu_check_gaps(it, TN_MATMUL_OUT);
}

static int64_t one_of(const int64_t *list, size_t count)
{
    return list[cpu_random() % count];
}

/* Sizes beside those of tiles and of units, in every way that operands can lie. */
static void check_shapes(const tn_kernel_row *row)
{
    static const int64_t sizes[] = {1,  2,  3,  5,  6,  7,  8,  11, 12, 13, 14,
                                    15, 16, 17, 23, 24, 25, 31, 32, 33, 48, 65};
    static const int64_t depths[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129};
    for (int c = 0; c < (test_fewest()    ? 25
                         : test_reduced() ? 100
                         : test_full()    ? 700
                                          : 200);
         c++) {
        const shapes s = {c % 2 ? TN_F32 : usual_out(row->dtypes[0]),
                          one_of(sizes, 22),
                          one_of(sizes, 22),
                          one_of(depths, 17),
                          {(int)(cpu_random() % CPU_LIES), (int)(cpu_random() % CPU_LIES),
                           (int)(cpu_random() % CPU_LIES)},
                          c % 3};
        cpu_case it;
        make(&it, row->dtypes[0], &s);
        cpu_run_in_room(row, &it, 1 + c % 2);
        check_all(row, &it, NULL);
        cpu_end(&it);
    }
}

static void awkward_shapes(void **state)
{
    (void)state;
    each_row(check_shapes);
}

/* Sums of several chunks, whose last may be of one product. */
static void check_depths(const tn_kernel_row *row)
{
    static const int64_t depths[] = {255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2049, 3000};
    for (int c = 0; c < 66; c += test_fewest() ? 13 : test_reduced() ? 5 : 1) {
        if (!test_reduced() && !test_sampled((uint64_t)c, 3))
            continue;
        const shapes s = {c % 2 ? TN_F32 : usual_out(row->dtypes[0]),
                          1 + cpu_random() % 20,
                          1 + cpu_random() % 36,
                          depths[c / 6],
                          {c % 3 == 0 ? CPU_DENSE : CPU_TURNED, c % 3 == 1 ? CPU_DENSE : CPU_TURNED,
                           c % 5 == 0 ? CPU_TURNED : CPU_PADDED},
                          c % 2};
        cpu_case it;
        make(&it, row->dtypes[0], &s);
        cpu_run_in_room(row, &it, 2);
        check_all(row, &it, NULL);
        cpu_end(&it);
    }
}

static void sums_of_several_chunks(void **state)
{
    (void)state;
    each_row(check_depths);
}

/* The greatest products there are, and sums that leave 32 bits. */
static void check_worst(const tn_kernel_row *row)
{
    static const int8_t pairs[][4] = {{-128, -128, -128, -128}, {127, 127, 127, 127},
                                      {-128, -128, 127, 127},   {127, 127, -128, -128},
                                      {-128, 127, 127, -128},   {-128, 127, -128, 127},
                                      {-128, -1, -128, 1},      {1, 127, -1, -128}};
    static const int64_t depths[] = {1, 4, 64, 1025, 140001};
    if (row->dtypes[0] != TN_I8)
        return;
    for (int c = 0; c < 8 * 5; c++) {
        const int8_t *pair = pairs[c % 8];
        const int64_t side = c / 8 < 4 ? 17 : 3;
        const shapes s = {TN_I32, 13, side, depths[c / 8], {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
        cpu_case it;
        if (c / 8 == 4 && test_reduced() && c % 8 > 0)
            break;
        if (test_fewest() && c % 8 > 0 && !test_sampled((uint64_t)c, 4))
            continue;
        make(&it, TN_I8, &s);
        for (int64_t i = 0; i < s.m * s.k; i++)
            cpu_put(&it, TN_MATMUL_A, i, pair[i % s.k % 2]);
        for (int64_t i = 0; i < s.k * s.n; i++)
            cpu_put(&it, TN_MATMUL_B, i, pair[2 + i / s.n % 2]);
        cpu_run_in_room(row, &it, 2);
        int64_t two = pair[0] * pair[2] + pair[1] * pair[3];
        int64_t sum = s.k / 2 * two + s.k % 2 * pair[0] * pair[2];
        for (int64_t i = 0; i < s.m * s.n; i++)
            assert_true(cpu_get(&it, TN_MATMUL_OUT, i) == wrap(sum));
        cpu_end(&it);
    }
}

static void bytes_never_saturate(void **state)
{
    (void)state;
    each_row(check_worst);
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

static void add_bias(cpu_case *it, const shapes *s, int kind)
{
    const int64_t shape[] = {s->m, s->n};
    const int64_t strides[][2] = {{s->n, 1}, {1, 0}, {0, 1}, {0, 0}, {2 * s->n, 2}, {0, -1}};
    cpu_add(it, TN_MATMUL_BIAS, s->out, 2, shape, strides[kind], 1);
    fill(it, TN_MATMUL_BIAS);
    it->op.uses |= TN_MATMUL_USES_BIAS;
}

/* With beta 0, NaN and poison in out are not read. */
static void check_finish(const tn_kernel_row *row)
{
    static const double alphas[] = {1, -0.75, 0, 2}, betas[] = {0, 1, -1.5, 3};
    static const int64_t depths[] = {0, 9, 1100};
    for (int c = 0; c < 2 * 4 * 4 * 7 * 5; c += test_fewest() ? 37 : test_reduced() ? 11 : 1) {
        if (!test_reduced() && !test_sampled((uint64_t)c, 5))
            continue;
        const tn_dtype out = c % 2 ? TN_F32 : usual_out(row->dtypes[0]);
        const int bias = c / 32 % 7, activation = c / 224 % 5;
        const shapes s = {out,
                          1 + cpu_random() % 34,
                          1 + cpu_random() % 34,
                          depths[cpu_random() % 8 ? 1 : cpu_random() % 3],
                          {CPU_DENSE, CPU_TURNED, (int)(cpu_random() % CPU_LIES)},
                          c % 3};
        cpu_case it, before;
        make(&it, row->dtypes[0], &s);
        TN_PARAMS_MUTABLE(&it.op, matmul)->alpha = alphas[c / 2 % 4];
        TN_PARAMS_MUTABLE(&it.op, matmul)->beta = betas[c / 8 % 4];
        TN_PARAMS_MUTABLE(&it.op, matmul)->activation = out == TN_I32 ? TN_ACT_NONE : activation;
        it.op.uses |= TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_ACTIVATION;
        it.op.uses |= TN_PARAMS(&it.op, matmul)->beta != 0 ? TN_MATMUL_USES_BETA : 0;
        if (TN_PARAMS(&it.op, matmul)->beta != 0)
            fill(&it, TN_MATMUL_OUT);
        if (bias)
            add_bias(&it, &s, bias - 1);
        copy_out(&it, &before);
        cpu_run_in_room(row, &it, 2);
        check_all(row, &it, &before);
        free(before.memory[TN_MATMUL_OUT].block);
        cpu_end(&it);
    }
}

static void everything_after_the_sum(void **state)
{
    (void)state;
    each_row(check_finish);
}

/* A of one matrix, B of one matrix, both of many, and rows that fold into one product. */
static void check_batches(const tn_kernel_row *row)
{
    enum { M = 5, N = 6, K = 70 };
    static const int64_t strides[][3][4] = {
        {{3 * M * K, M * K, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{0, 0, K, 1}, {3 * K * N, K * N, N, 1}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, K, 1}, {0, 0, 1, K}, {3 * M * N, M * N, N, 1}},
        {{3 * M * K, M * K, 1, M}, {0, 0, N, 1}, {3 * M * N, M * N, 1, M}},
        {{M * K, 2 * M * K, K, 1}, {0, K * N, N, 1}, {-3 * M * N, M * N, N, 1}},
    };
    const int64_t a[] = {2, 3, M, K}, b[] = {2, 3, K, N}, out[] = {2, 3, M, N};
    const tn_dtype dtype = row->dtypes[0];
    for (int c = 0; c < 10; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 3))
            continue;
        const tn_dtype acc = dtype == TN_I8 ? TN_I32 : TN_F32;
        cpu_case it = {.op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST,
                              .params = PARAMS(matmul, M, N, K, 6, 2, 0, acc, 0, 1, 0)}};
        cpu_add(&it, TN_MATMUL_A, dtype, 4, a, strides[c / 2][0], 0);
        cpu_add(&it, TN_MATMUL_B, dtype, 4, b, strides[c / 2][1], 1);
        cpu_add(&it, TN_MATMUL_OUT, c % 2 ? TN_F32 : usual_out(dtype), 4, out, strides[c / 2][2],
                0);
        fill(&it, TN_MATMUL_A);
        fill(&it, TN_MATMUL_B);
        cpu_run_in_room(row, &it, 1 + c % 2 * 3);
        check_all(row, &it, NULL);
        cpu_end(&it);
    }
}

/* Few rows, or few columns, of each matrix with a large one. */
static void check_thin_batches(const tn_kernel_row *row)
{
    static const int64_t sizes[][3] = {{3, 700, 150}, {600, 2, 230}};
    const tn_dtype dtype = row->dtypes[0];
    for (int c = 0; c < 4; c++) {
        const int64_t m = sizes[c / 2][0], n = sizes[c / 2][1], k = sizes[c / 2][2];
        const int64_t a[] = {2, m, k}, b[] = {2, k, n}, out[] = {2, m, n};
        const int64_t a_lies[] = {m * k, c % 2 ? 1 : k, c % 2 ? m : 1};
        const int64_t b_lies[] = {k * n, c % 2 ? n : 1, c % 2 ? 1 : k};
        cpu_case it = {
            .op = {.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_TRANSPOSE,
                   .params = PARAMS(matmul, .m = m, .n = n, .k = k, .matrices = 2, .batch_rank = 1,
                                    .acc = dtype == TN_I8 ? TN_I32 : TN_F32, .alpha = 1)}};
        cpu_add(&it, TN_MATMUL_A, dtype, 3, a, a_lies, 1);
        cpu_add(&it, TN_MATMUL_B, dtype, 3, b, b_lies, 0);
        cpu_add(&it, TN_MATMUL_OUT, usual_out(dtype), 3, out, NULL, 1);
        fill(&it, TN_MATMUL_A);
        fill(&it, TN_MATMUL_B);
        cpu_run_in_room(row, &it, 1 + c % 2);
        check_all(row, &it, NULL);
        cpu_end(&it);
    }
}

static void batches(void **state)
{
    (void)state;
    each_row(check_batches);
    each_row(check_thin_batches);
}

/* The same bits for any number of threads. */
static void check_threads(const tn_kernel_row *row)
{
    static const int64_t sizes[][3] = {
        {101, 130, 1100}, {1, 1500, 1100}, {300, 257, 129}, {1000, 17, 301}};
    for (int c = 0; c < (test_reduced() ? 2 : 4); c++) {
        if (test_fewest() && (uint64_t)c != test_seed() % 2)
            continue;
        const tn_dtype dtype = row->dtypes[0];
        const shapes s = {c % 2 ? TN_F32 : usual_out(dtype),
                          sizes[c][0],
                          sizes[c][1],
                          sizes[c][2],
                          {c % 2 ? CPU_TURNED : CPU_DENSE, CPU_DENSE, CPU_PADDED},
                          0};
        cpu_case it;
        make(&it, dtype, &s);
        const size_t bytes = it.memory[TN_MATMUL_OUT].bytes;
        void *first = malloc(bytes);
        cpu_run_in_room(row, &it, 1);
        memcpy(first, it.memory[TN_MATMUL_OUT].low, bytes);
        for (int32_t threads = 2; threads <= 8; threads += test_reduced() ? 6 : 3) {
            memset(it.memory[TN_MATMUL_OUT].low, CPU_POISON, bytes);
            cpu_run_in_room(row, &it, threads);
            assert_memory_equal(first, it.memory[TN_MATMUL_OUT].low, bytes);
        }
        cpu_check_gaps(&it, TN_MATMUL_OUT);
        free(first);
        cpu_end(&it);
    }
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    each_row(check_threads);
}

/* A row of A alone gives the bits that it gives among others. */
static void check_rows_alone(const tn_kernel_row *row)
{
    const tn_dtype dtype = row->dtypes[0];
    const shapes s = {TN_F32, 43, 45, 1100, {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
    cpu_case it;
    make(&it, dtype, &s);
    cpu_run_in_room(row, &it, 2);
    for (int64_t i = 0; i < s.m; i += 7) {
        const shapes one = {TN_F32, 1, s.n, s.k, {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
        cpu_case alone;
        make(&alone, dtype, &one);
        memcpy(alone.data[TN_MATMUL_A], cpu_at(&it, TN_MATMUL_A, i * s.k),
               (size_t)(s.k * cpu_size(dtype)));
        memcpy(alone.data[TN_MATMUL_B], it.data[TN_MATMUL_B],
               (size_t)(s.k * s.n * cpu_size(dtype)));
        cpu_run_in_room(row, &alone, 1);
        assert_memory_equal(alone.data[TN_MATMUL_OUT], cpu_at(&it, TN_MATMUL_OUT, i * s.n),
                            (size_t)(s.n * 4));
        cpu_end(&alone);
    }
    cpu_end(&it);
}

static void a_row_does_not_depend_on_others(void **state)
{
    (void)state;
    each_row(check_rows_alone);
}

/* Row i of A is i % 3 - 1 times a row of signs, row p of B the p-th sign times numbers from -2 to 2: sums are
 * k times the product of two whole numbers, in any order. */
static void fill_signs(cpu_case *it)
{
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    const size_t a_row = it->memory[TN_MATMUL_A].bytes / (size_t)op->m;
    const size_t b_row = it->memory[TN_MATMUL_B].bytes / (size_t)op->k;
    unsigned char *a = it->memory[TN_MATMUL_A].low, *b = it->memory[TN_MATMUL_B].low;
    unsigned char *rows = malloc(2 * b_row);
    for (int64_t j = 0; j < 2 * op->n; j++)
        cpu_put(it, TN_MATMUL_B, j, (double)(j % op->n % 5 - 2) * (j < op->n ? 1 : -1));
    memcpy(rows, b, 2 * b_row);
    for (int64_t p = 0; p < op->k; p++) {
        const int sign = (int)(cpu_random() % 2);
        for (int64_t i = 0; i < 3; i++)
            cpu_put(it, TN_MATMUL_A, i * op->k + p, (double)(i - 1) * (sign ? -1 : 1));
        memcpy(b + (size_t)p * b_row, rows + (size_t)sign * b_row, b_row);
    }
    for (int64_t i = 3; i < op->m; i++)
        memcpy(a + (size_t)i * a_row, a + (size_t)(i % 3) * a_row, a_row);
    free(rows);
}

/* More than is packed at once, in rows and in columns. */
static void check_slabs(const tn_kernel_row *row)
{
    static const int64_t sizes[][2] = {{20, 1100}, {1100, 20}};
    for (int c = 0; c < 4 && !strstr(row->name, "." BASE_ISA); c++) {
        const bool bytes = row->dtypes[0] == TN_I8;
        const shapes s = {bytes && c / 2 ? TN_F32 : usual_out(row->dtypes[0]),
                          sizes[c % 2][0],
                          sizes[c % 2][1],
                          bytes ? 32000 : 16000,
                          {0, 0, 0},
                          0};
        cpu_case it;
        lay_out(&it, row->dtypes[0], &s);
        fill_signs(&it);
        cpu_run_in_room(row, &it, c / 2 ? 9 : 1);
        for (int64_t at = 0; at < s.m * s.n; at++)
            check_element(row, &it, NULL, at,
                          (long double)((at / s.n % 3 - 1) * (at % s.n % 5 - 2) * s.k), 0);
        cpu_end(&it);
    }
}

static void large_products_are_made_of_slabs(void **state)
{
    (void)state;
    if (test_reduced())
        skip();
    each_row(check_slabs);
}

static void check_edges(const tn_kernel_row *row)
{
    static const int64_t sizes[] = {1, 3, 5, 13, 17, 35, 70};
    for (int c = 0; c < 60; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 4))
            continue;
        const shapes s = {
            usual_out(row->dtypes[0]),
            one_of(sizes, 7),
            one_of(sizes, 7),
            one_of(sizes, 7) * (1 + c % 5),
            {c & 1 ? CPU_TURNED : CPU_DENSE, c & 2 ? CPU_TURNED : CPU_DENSE, CPU_DENSE},
            0};
        cpu_case it;
        size_t bytes[2];
        make(&it, row->dtypes[0], &s);
        void *a = cpu_move_to_edge(&it, TN_MATMUL_A, c & 4, &bytes[0]);
        void *b = cpu_move_to_edge(&it, TN_MATMUL_B, c & 4, &bytes[1]);
        cpu_run_in_room(row, &it, 1);
        check_all(row, &it, NULL);
        munmap(a, bytes[0]);
        munmap(b, bytes[1]);
        cpu_end(&it);
    }
}

static void nothing_beside_operands_is_read(void **state)
{
    (void)state;
    each_row(check_edges);
}

/* NaN and infinity in A and B come out where they belong. */
static void check_specials(const tn_kernel_row *row)
{
    if (row->dtypes[0] == TN_I8)
        return;
    for (int c = 0; c < 4; c++) {
        const shapes s = {c % 2 ? TN_F32 : row->dtypes[0],
                          c / 2 ? 70 : 6,
                          c / 2 ? 65 : 5,
                          c / 2 ? 600 : 4,
                          {CPU_DENSE, CPU_DENSE, CPU_DENSE},
                          0};
        cpu_case it;
        make(&it, row->dtypes[0], &s);
        for (int64_t i = 0; i < s.m * s.n; i++)
            cpu_put(&it, TN_MATMUL_OUT, i, NAN);
        for (int64_t i = 0; i < s.m; i++)
            cpu_put(&it, TN_MATMUL_A, i * s.k + 1, 0.5);
        cpu_put(&it, TN_MATMUL_A, 2 * s.k + 1, NAN);
        cpu_put(&it, TN_MATMUL_A, 4 * s.k + 1, 0);
        cpu_put(&it, TN_MATMUL_B, 1 * s.n + 3, -INFINITY);
        cpu_run_in_room(row, &it, 2);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            double found = cpu_get(&it, TN_MATMUL_OUT, i);
            if (i / s.n == 2 || (i / s.n == 4 && i % s.n == 3))
                assert_true(isnan(found));
            else if (i % s.n == 3)
                assert_true(found == -INFINITY);
            else
                assert_true(isfinite(found));
        }
        cpu_end(&it);
    }
}

static void nans_stay_where_they_are(void **state)
{
    (void)state;
    each_row(check_specials);
}

/* Subnormal operands and sums: exact, or 0 for rows that say so. */
static void check_subnormals(const tn_kernel_row *row)
{
    const tn_dtype dtype = row->dtypes[0];
    const double tiny = dtype == TN_F16 ? 0x1p-24 : 0x1p-133;
    const double great = dtype == TN_F16 ? 0x1p10 : 0x1p100;
    const shapes s = {TN_F32, 3, 5, 2, {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
    cpu_case it;
    if (dtype == TN_I8)
        return;
    make(&it, dtype, &s);
    for (int64_t i = 0; i < s.m; i++) {
        cpu_put(&it, TN_MATMUL_A, i * 2, 3 * tiny);
        cpu_put(&it, TN_MATMUL_A, i * 2 + 1, 0x1p-10);
    }
    for (int64_t j = 0; j < s.n; j++) {
        cpu_put(&it, TN_MATMUL_B, j, j % 2 ? great : 1);
        cpu_put(&it, TN_MATMUL_B, s.n + j, j > 2 ? 0x1p-10 : 0);
    }
    cpu_run_in_room(row, &it, 1);
    for (int64_t i = 0; i < s.m * s.n; i++) {
        double rest = i % s.n > 2 ? 0x1p-20 : 0, found = cpu_get(&it, TN_MATMUL_OUT, i);
        double wanted = 3 * tiny * (i % s.n % 2 ? great : 1) + rest;
        bool exact = cpu_close(found, wanted, 0x1p-23 * wanted);
        if (!exact && !(flushes(row) && found == rest))
            fail_msg("%s, element %lld: %g, not %g", row->name, (long long)i, found, wanted);
    }
    cpu_end(&it);
}

static void subnormals_count_or_are_zero(void **state)
{
    (void)state;
    each_row(check_subnormals);
}

static void refused(const tn_kernel_row *row, cpu_case *it, const char *what, const char *text)
{
    tn_refusal why;
    assert_int_equal(cpu_admit(row, it, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, TN_REFUSE_DTYPE);
    assert_string_equal(why.what, what);
    assert_non_null(strstr(why.text, text));
}

static void check_refusals(const tn_kernel_row *row)
{
    const tn_dtype dtype = row->dtypes[0], usual = usual_out(dtype);
    const shapes s = {usual, 3, 4, 5, {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
    cpu_case it;
    make(&it, dtype, &s);
    add_bias(&it, &s, 0);
    tn_layout *layout = it.op.operand;
    layout[TN_MATMUL_B].dtype = TN_F64;
    refused(row, &it, "b.dtype", "cast one of them");
    layout[TN_MATMUL_B].dtype = dtype;
    layout[TN_MATMUL_OUT].dtype = TN_F64;
    refused(row, &it, "out.dtype", "f32");
    layout[TN_MATMUL_OUT].dtype = usual;
    layout[TN_MATMUL_BIAS].dtype = TN_F64;
    refused(row, &it, "bias.dtype", "out's dtype");
    layout[TN_MATMUL_BIAS].dtype = usual;
    TN_PARAMS_MUTABLE(&it.op, matmul)->acc = TN_F64;
    refused(row, &it, "acc", "f32");
    TN_PARAMS_MUTABLE(&it.op, matmul)->acc = dtype == TN_I8 ? TN_I32 : dtype;
    tn_refusal why;
    assert_int_equal(cpu_admit(row, &it, &why), TN_OK);
    TN_PARAMS_MUTABLE(&it.op, matmul)->activation = TN_ACT_RELU;
    if (dtype == TN_I8)
        refused(row, &it, "activation", "floats");
    cpu_end(&it);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    each_row(check_refusals);
}

/* Asked for by a call that could use it, and by nothing before. */
static void amx_is_asked_for_when_it_could_be_taken(void **state)
{
    static const char *const others[] = {"matmul:f32:m=64,n=64,k=64@cpu",
                                         "matmul:f16:m=64,n=64,k=64@cpu",
                                         "unary:bf16:kind=exp,shape=64@cpu"};
    const char *why = tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE);
    tn_decision *decision = NULL;
    (void)state;
    if (!why || !strstr(why, "has not requested") || !cpu_row("cpu.matmul.bf16.amx"))
        skip_because("AMX cannot be asked for here");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_explain(NULL, others[i], &decision, NULL), TN_OK);
        tn_decision_release(decision);
        assert_non_null(tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE));
    }
    tni_cpu_mask_set(~TN_CPU_BIT(AMX_TILE));
    assert_int_equal(tn_explain(NULL, "matmul:bf16:m=64,n=64,k=64@cpu", &decision, NULL), TN_OK);
    tn_decision_release(decision);
    assert_non_null(tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE));
    tni_cpu_mask_set(UINT64_MAX);
    assert_int_equal(tn_explain(NULL, "matmul:bf16:m=64,n=64,k=64@cpu", &decision, NULL), TN_OK);
    tn_decision_release(decision);
    why = tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE);
    assert_true(!why || !strstr(why, "has not requested"));
}

/* By each set's instructions alone, a call takes a row that needs no others, and is right. */
static void check_masked(const tn_kernel_row *row)
{
    enum { M = 33, N = 40, K = 70 };
    const tn_dtype dtype = row->dtypes[0];
    const shapes s = {TN_F32, M, N, K, {CPU_DENSE, CPU_DENSE, CPU_DENSE}, 0};
    const int64_t a[] = {M, K}, b[] = {K, N}, out[] = {M, N};
    cpu_case it;
    tn_error err;
    tn_decision *decision = NULL;
    make(&it, dtype, &s);
    tn_tensor tensors[] = {{.data = it.data[TN_MATMUL_A], .dtype = dtype, .ndim = 2},
                           {.data = it.data[TN_MATMUL_B], .dtype = dtype, .ndim = 2},
                           {.data = it.data[TN_MATMUL_OUT], .dtype = TN_F32, .ndim = 2}};
    const int64_t *shape[] = {a, b, out};
    for (int i = 0; i < 3; i++) {
        tensors[i].shape = (int64_t *)(uintptr_t)shape[i];
        tensors[i].device_type = TN_DLPACK_CPU;
    }
    const tn_matmul_args args = {
        .struct_size = sizeof args, .a = &tensors[0], .b = &tensors[1], .out = &tensors[2]};
    tni_cpu_mask_set(row->cpu_needs);
    if (tn_matmul_explain(NULL, &args, &decision, &err) || tn_matmul(NULL, &args, &err))
        fail_msg("%s", err.message);
    const tn_kernel_row *taken = cpu_row(tn_decision_chosen(decision)->kernel);
    tni_cpu_mask_set(UINT64_MAX);
    assert_true(!taken || (taken->cpu_needs & ~row->cpu_needs) == 0);
    check_all(row, &it, NULL);
    tn_decision_release(decision);
    cpu_end(&it);
}

static void every_set_of_instructions_alone(void **state)
{
    (void)state;
    each_row(check_masked);
}

/* Last, so that it is easy to find. */
static void rows_that_do_not_run_here(void **state)
{
    int lacking = 0;
    (void)state;
    (void)tni_cpu_amx_request();
    for (const tn_kernel_row *const *row = cpu_module()->kernels; *row; row++) {
        char words[128];
        if (!is_low(*row) || cpu_can(*row))
            continue;
        (void)tni_cpu_features_write((*row)->cpu_needs & ~tni_cpu_features(), words, sizeof words);
        print_message("not exercised: %s needs %s\n", (*row)->name, words);
        lacking++;
    }
    if (lacking)
        skip_because("%d rows are not exercised here", lacking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amx_is_asked_for_when_it_could_be_taken),
        cmocka_unit_test(awkward_shapes),
        cmocka_unit_test(sums_of_several_chunks),
        cmocka_unit_test(bytes_never_saturate),
        cmocka_unit_test(everything_after_the_sum),
        cmocka_unit_test(batches),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(a_row_does_not_depend_on_others),
        cmocka_unit_test(large_products_are_made_of_slabs),
        cmocka_unit_test(nothing_beside_operands_is_read),
        cmocka_unit_test(nans_stay_where_they_are),
        cmocka_unit_test(subnormals_count_or_are_zero),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(every_set_of_instructions_alone),
        cmocka_unit_test(rows_that_do_not_run_here),
    };
    return run_suite("kernels.cpu_matmul_low", tests);
}
