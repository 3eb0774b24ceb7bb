/* matmul of the reference kernels against loops in long double. */
#include "make.h"

#include "tenon/module/op/matmul.h"

typedef struct problem {
    tn_dtype dtype, out, acc;
    int64_t batch, m, n, k;
    double alpha, beta;
    int32_t bias; /* 0 none, 1 whole, 2 one row for all */
    int32_t activation;
    int kind; /* of layouts */
    int32_t threads;
} problem;

typedef struct product {
    operand a, b, out, bias, before; /* `before`: out before the run */
    tn_op op;
} product;

/* B and the batch of A have another layout than A. */
static void product_make(const problem *p, product *t)
{
    const int64_t a[] = {p->batch, p->m, p->k}, b[] = {p->batch, p->k, p->n};
    const int64_t out[] = {p->batch, p->m, p->n};
    *t = (product){.op = {.struct_size = sizeof t->op, .kind = TN_OP_MATMUL, .count = 4}};
    t->a = make_random(p->dtype, 3, a, p->kind);
    t->b = make_random(p->dtype, 3, b, (p->kind + 2) % LAYOUTS);
    t->out = p->beta != 0 ? make_random(p->out, 3, out, p->kind == REPEATED ? DENSE : p->kind)
                          : make_poisoned(p->out, 3, out, p->kind == REPEATED ? DENSE : p->kind);
    t->before = t->out;
    t->before.memory = malloc(t->out.size);
    assert_non_null(t->before.memory);
    memcpy(t->before.memory, t->out.memory, t->out.size);
    t->before.first = t->before.memory + (t->out.first - t->out.memory);
    if (p->bias) {
        tn_layout layout = layout_of(p->out, 3, out, DENSE);
        layout.stride[0] = p->bias == 2 ? 0 : layout.stride[0];
        layout.stride[1] = p->bias == 2 ? 0 : layout.stride[1];
        t->bias = operand_of(layout, 0);
        for (int64_t i = 0; i < elements_of(&layout); i++)
            store_random(p->out, element_at(&t->bias, i));
    }
    *TN_PARAMS_MUTABLE(&t->op, matmul) = (tn_matmul_op){.m = p->m,
                                                        .n = p->n,
                                                        .k = p->k,
                                                        .matrices = p->batch,
                                                        .batch_rank = 1,
                                                        .activation = p->activation,
                                                        .acc = p->acc ? p->acc : p->out,
                                                        .alpha = p->alpha,
                                                        .beta = p->beta};
}

static void product_run(product *t, int32_t threads)
{
    const operand *operands[] = {&t->a, &t->b, &t->out, t->bias.memory ? &t->bias : NULL};
    compute(&t->op, operands, threads);
}

static void product_drop(product *t)
{
    drop(&t->a), drop(&t->b), drop(&t->out), drop(&t->bias), drop(&t->before);
}

static long double activated(int32_t activation, long double x)
{
    const long double u = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
    switch (activation) {
    case TN_ACT_RELU: return x < 0 ? 0 : x;
    case TN_ACT_GELU: return x / 2 * (1 + erfl(x / sqrtl(2)));
    case TN_ACT_GELU_TANH: return x / 2 * (1 + tanhl(u));
    case TN_ACT_SILU: return x / (1 + expl(-x));
    default: return x;
    }
}

/* One part of an output, and the sum of all absolute values that went into it. */
static long double expected(const problem *p, const product *t, int64_t index, int part,
                            long double *out_size)
{
    const int64_t j = index % p->n, i = index / p->n % p->m, batch = index / p->n / p->m;
    long double sum = 0, size = 0;
    for (int64_t q = 0; q < p->k; q++) {
        int64_t at_a = (batch * p->m + i) * p->k + q, at_b = (batch * p->k + q) * p->n + j;
        for (int of_a = 0; of_a < parts_of(p->dtype); of_a++) {
            int of_b = of_a ^ part; /* x x' - y y' and x y' + y x' */
            long double term = value_at(&t->a, at_a, of_a) * value_at(&t->b, at_b, of_b);
            sum += of_a && of_b ? -term : term;
            size += fabsl(term);
        }
    }
    sum *= (long double)p->alpha;
    size *= fabsl((long double)p->alpha);
    if (p->beta != 0)
        sum += (long double)p->beta * value_at(&t->before, index, part);
    if (p->bias)
        sum += value_at(&t->bias, index, part);
    *out_size = size + fabsl(sum) + 8;
    return activated(p->activation, sum);
}

static void check(const problem *p)
{
    const int precise = p->dtype == TN_F64 || p->dtype == TN_C128;
    product t;
    product_make(p, &t);
    product_run(&t, p->threads);
    for (int64_t i = 0; i < elements_of(&t.out.layout); i++) {
        for (int part = 0; part < parts_of(p->dtype); part++) {
            long double size, want = expected(p, &t, i, part, &size);
            long double got = value_at(&t.out, i, part);
            if (p->out == TN_I32)
                assert_true(got == (int32_t)(uint32_t)(int64_t)want);
            else
                assert_near(p->out, got, want, ldexpl(size, precise ? -60 : -50));
        }
    }
    assert_outside_untouched(&t.out);
    product_drop(&t);
}

static const tn_dtype pairs[][2] = {
    {TN_F32, TN_F32},  {TN_F64, TN_F64}, {TN_F16, TN_F16},  {TN_BF16, TN_BF16}, {TN_F16, TN_F32},
    {TN_BF16, TN_F32}, {TN_I8, TN_I32},  {TN_I8, TN_F32},   {TN_C64, TN_C64},   {TN_C128, TN_C128},
    {TN_F32, TN_F64},  {TN_F32, TN_F16}, {TN_F64, TN_BF16},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static void every_dtype_and_layout(void **state)
{
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        for (int kind = 0; kind < LAYOUTS; kind++) {
            problem p = {.dtype = pairs[i][0], .out = pairs[i][1], .kind = kind, .alpha = 1};
            p.acc = p.dtype == TN_I8 ? TN_I32 : 0;
            p.batch = 2, p.m = 5, p.n = 7, p.k = 13;
            check(&p);
        }
    }
}

static void awkward_shapes(void **state)
{
    static const int64_t shapes[][4] = {/* batch, m, n, k */
                                        {1, 1, 1, 1},    {1, 1, 67, 131}, {1, 67, 1, 131},
                                        {1, 33, 31, 65}, {3, 1, 1, 200},  {1, 32, 32, 64},
                                        {1, 37, 61, 1},  {5, 2, 3, 0},    {1, 65, 33, 129},
                                        {7, 4, 4, 4},    {1, 3, 17, 1009}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int i = 0; i < PAIRS; i++) {
            problem p = {.dtype = pairs[i][0], .out = pairs[i][1], .alpha = 1, .threads = 4};
            p.acc = p.dtype == TN_I8 ? TN_I32 : 0;
            p.batch = shapes[s][0], p.m = shapes[s][1], p.n = shapes[s][2], p.k = shapes[s][3];
            check(&p);
        }
    }
}

static void all_that_is_added(void **state)
{
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        for (int turn = 0; turn < 12; turn++) {
            const int plain = pairs[i][1] == TN_I32 || parts_of(pairs[i][0]) == 2;
            problem p = {.dtype = pairs[i][0], .out = pairs[i][1], .kind = turn % LAYOUTS};
            p.acc = p.dtype == TN_I8 ? TN_I32 : 0;
            p.batch = 1 + turn % 2, p.m = 9, p.n = 35, p.k = turn % 4 == 3 ? 0 : 11;
            p.alpha = p.out == TN_I32 ? 3 : turn % 3 == 0 ? 1 : -0.7;
            p.beta = p.out == TN_I32 ? 2 : turn % 3 == 1 ? 0 : 1.3;
            p.bias = turn % 3;
            p.activation = plain ? 0 : turn % TN_ACT_COUNT;
            check(&p);
        }
    }
}

static void broadcast_batches(void **state)
{
    const int64_t a[] = {2, 3, 4, 5}, b[] = {2, 3, 5, 6}, out[] = {2, 3, 4, 6};
    (void)state;
    for (int shared = 0; shared < 4; shared++) {
        tn_layout la = layout_of(TN_F32, 4, a, DENSE), lb = layout_of(TN_F32, 4, b, DENSE);
        la.stride[0] = 0, la.stride[1] = shared & 1 ? 0 : la.stride[1];
        lb.stride[1] = 0, lb.stride[0] = shared & 2 ? 0 : lb.stride[0];
        operand oa = operand_of(la, 0), ob = operand_of(lb, 1);
        operand o = make_poisoned(TN_F32, 4, out, DENSE);
        for (int64_t i = 0; i < elements_of(&la); i++)
            store_random(TN_F32, element_at(&oa, i));
        for (int64_t i = 0; i < elements_of(&lb); i++)
            store_random(TN_F32, element_at(&ob, i));
        tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = 4};
        op.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST;
        *TN_PARAMS_MUTABLE(&op, matmul) = (tn_matmul_op){4, 6, 5, 6, 2, 0, TN_F32, 0, 1, 0};
        compute(&op, (const operand *const[]){&oa, &ob, &o, NULL}, 1);
        for (int64_t x = 0; x < 6 * 4 * 6; x++) {
            long double want = 0;
            for (int64_t q = 0; q < 5; q++)
                want +=
                    value_at(&oa, x / 6 * 5 + q, 0) * value_at(&ob, x / 24 * 30 + q * 6 + x % 6, 0);
            assert_near(TN_F32, value_at(&o, x, 0), want, 1e-14L);
        }
        drop(&oa), drop(&ob), drop(&o);
    }
}

/* A, B and scales of all four ways to have them, in a batch of two. */
static void f8_with_scales(void **state)
{
    enum { M = 37, N = 41, K = 19 };
    const int64_t a[] = {2, M, K}, b[] = {2, K, N}, out[] = {2, M, N};
    (void)state;
    for (int turn = 0; turn < 16; turn++) {
        tn_layout la = layout_of(TN_F32, 3, out, DENSE), lb = la;
        la.stride[0] = turn & 1 ? M : 0, la.stride[1] = turn & 1, la.stride[2] = 0;
        lb.stride[0] = turn & 2 ? N : 0, lb.stride[1] = 0, lb.stride[2] = turn & 2 ? 1 : 0;
        operand oa = make_random(turn & 4 ? TN_F8_E5M2 : TN_F8_E4M3FN, 3, a, DENSE);
        operand ob = make_random(turn & 8 ? TN_F8_E5M2 : TN_F8_E4M3FN, 3, b, DENSE);
        operand sa = operand_of(la, 0), sb = operand_of(lb, 0);
        operand o = make_poisoned(turn & 1 ? TN_BF16 : TN_F32, 3, out, DENSE);
        for (int64_t i = 0; i < elements_of(&la); i++) {
            store_random(TN_F32, element_at(&sa, i));
            store_random(TN_F32, element_at(&sb, i));
        }
        tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = TN_MATMUL_OPERANDS};
        op.uses = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_SCALES;
        *TN_PARAMS_MUTABLE(&op, matmul) = (tn_matmul_op){M, N, K, 2, 1, 0, TN_F32, 0, 0.5, 0};
        compute(&op, (const operand *const[]){&oa, &ob, &o, NULL, &sa, &sb}, 1 + turn % 3);
        for (int64_t x = 0; x < 2 * M * N; x++) {
            long double want = 0, size = 0;
            for (int64_t q = 0; q < K; q++) {
                long double term = value_at(&oa, x / N * K + q, 0) *
                                   value_at(&ob, (x / (M * N) * K + q) * N + x % N, 0);
                want += term, size += fabsl(term);
            }
            long double scale = value_at(&sa, x, 0) * value_at(&sb, x, 0) / 2;
            assert_near(o.layout.dtype, value_at(&o, x, 0), want * scale,
                        ldexpl(size * fabsl(scale), -50));
        }
        drop(&oa), drop(&ob), drop(&o), drop(&sa), drop(&sb);
    }
}

static void nothing_is_read_with_beta_0(void **state)
{
    problem p = {.dtype = TN_F32, .out = TN_F32, .batch = 1, .m = 3, .n = 5, .k = 0, .alpha = 1};
    product t;
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        p.dtype = p.out = wide ? TN_F64 : TN_F32;
        product_make(&p, &t); /* out is all NaNs */
        product_run(&t, 1);
        for (int64_t i = 0; i < 15; i++)
            assert_true(value_at(&t.out, i, 0) == 0);
        product_drop(&t);
    }
}

/* A 2 by 2 product of given doubles, in f64, or in f32 where they fit. */
static void multiply(tn_dtype dtype, const double *a, const double *b, double *out)
{
    const int64_t shape[] = {2, 2};
    operand oa = make(dtype, 2, shape, DENSE), ob = make(dtype, 2, shape, DENSE);
    operand o = make_poisoned(dtype, 2, shape, DENSE);
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = 4};
    for (int i = 0; i < 4; i++) {
        float narrow[2] = {(float)a[i], (float)b[i]};
        memcpy(element_at(&oa, i), dtype == TN_F64 ? (const void *)&a[i] : &narrow[0],
               (size_t)bytes_of(dtype));
        memcpy(element_at(&ob, i), dtype == TN_F64 ? (const void *)&b[i] : &narrow[1],
               (size_t)bytes_of(dtype));
    }
    *TN_PARAMS_MUTABLE(&op, matmul) = (tn_matmul_op){2, 2, 2, 1, 0, 0, dtype, 0, 1, 0};
    compute(&op, (const operand *const[]){&oa, &ob, &o, NULL}, 1);
    for (int i = 0; i < 4; i++)
        out[i] = (double)value_at(&o, i, 0);
    drop(&oa), drop(&ob), drop(&o);
}

static void infinities_and_nans(void **state)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    double out[4];
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        tn_dtype dtype = wide ? TN_F64 : TN_F32;
        multiply(dtype, (double[]){inf, 1, 2, nan}, (double[]){1, 0, 3, 4}, out);
        assert_true(is_inf(out[0]) && out[0] > 0);
        assert_true(is_nan(out[1])); /* infinity times 0 */
        assert_true(is_nan(out[2]) && is_nan(out[3]));
        multiply(dtype, (double[]){inf, inf, -inf, 1}, (double[]){1, 2, -1, 2}, out);
        assert_true(is_nan(out[0]));
        assert_true(is_inf(out[1]) && out[1] > 0);
        assert_true(is_inf(out[2]) && out[2] < 0 && is_inf(out[3]) && out[3] < 0);
    }
    multiply(TN_F64, (double[]){1e308, 1, 1e-308, 0}, (double[]){1e308, 1, 1, -1e308}, out);
    assert_true(is_inf(out[0]) && out[1] == 0 && out[2] == 1e-308 * 1e308 && out[3] == 1e-308);
    multiply(TN_F64, (double[]){0x1.fffffffffffffp1023, 0, 0, 0x1p-1074}, (double[]){1, 0.5, 3, 1},
             out);
    assert_true(out[0] == 0x1.fffffffffffffp1023 && out[1] == 0x1.fffffffffffffp1022);
    assert_true(out[2] == 0x3p-1074 && out[3] == 0x1p-1074);
}

/* Not even one whose mark is among the lowest bits. */
static void no_nan_is_lost(void **state)
{
    const uint64_t bits = UINT64_C(0x7FF0000000000001);
    double out[4], a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1};
    (void)state;
    memcpy(&a[1], &bits, sizeof bits);
    multiply(TN_F64, a, b, out);
    assert_true(is_nan(out[0]) && is_nan(out[1]) && out[2] == 3 && out[3] == 4);
}

/* More small matrices than one thread takes at a time, and not a multiple of that. */
static void a_batch_is_shared(void **state)
{
    (void)state;
    for (int64_t batch = 25; batch < 40; batch++) {
        problem p = {.dtype = TN_F32, .out = TN_F32, .batch = batch, .m = 3, .n = 4, .k = 5};
        p.alpha = p.beta = 1, p.threads = 4;
        host_tasks = 0;
        check(&p);
        assert_true(host_tasks > 1);
    }
}

/* What cancels in doubles does not in twice as many digits. */
static void f64_is_summed_in_more_than_f64(void **state)
{
    double out[4];
    (void)state;
    multiply(TN_F64, (double[]){1 + 0x1p-30, 1, 1 + 0x1p-52, 1},
             (double[]){1 + 0x1p-30, 1 - 0x1p-52, -1 - 0x1p-29, -1}, out);
    assert_true(out[0] == 0x1p-60);
    assert_true(out[3] == -0x1p-104);
}

static void i8_wraps_in_i32(void **state)
{
    enum { K = 140000 };
    const int64_t a[] = {1, K}, b[] = {K, 1}, c[] = {1, 1};
    operand oa = make(TN_I8, 2, a, DENSE), ob = make(TN_I8, 2, b, DENSE);
    operand o = make_poisoned(TN_I32, 2, c, DENSE), f = make_poisoned(TN_F32, 2, c, DENSE);
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = 4};
    (void)state;
    memset(element_at(&oa, 0), 0x80, K);
    memset(element_at(&ob, 0), 0x80, K);
    *TN_PARAMS_MUTABLE(&op, matmul) = (tn_matmul_op){1, 1, K, 1, 0, 0, TN_I32, 0, 1, 0};
    compute(&op, (const operand *const[]){&oa, &ob, &o, NULL}, 1);
    assert_true(value_at(&o, 0, 0) == (int32_t)(uint32_t)(16384u * K));
    compute(&op, (const operand *const[]){&oa, &ob, &f, NULL}, 1);
    assert_true(value_at(&f, 0, 0) == (float)(int32_t)(uint32_t)(16384u * K));
    drop(&oa), drop(&ob), drop(&o), drop(&f);
}

/* A row has the same bits alone, among others, and however the work is shared. */
static void bits_depend_on_nothing_else(void **state)
{
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        problem p = {.dtype = pairs[i][0], .out = pairs[i][1], .alpha = 1};
        product t;
        p.acc = p.dtype == TN_I8 ? TN_I32 : 0;
        p.batch = 2, p.m = 70, p.n = 67, p.k = 90;
        product_make(&p, &t);
        host_tasks = 0;
        product_run(&t, 8);
        assert_true(host_tasks > 1);
        const int64_t alone[] = {1, 1, p.n};
        operand row = make_poisoned(p.out, 3, alone, DENSE), a = t.a;
        a.first = element_at(&t.a, 69 * p.k);
        a.layout.shape[0] = a.layout.shape[1] = t.b.layout.shape[0] = 1;
        TN_PARAMS_MUTABLE(&t.op, matmul)->matrices = TN_PARAMS_MUTABLE(&t.op, matmul)->m = 1;
        compute(&t.op, (const operand *const[]){&a, &t.b, &row, NULL}, 1);
        for (int64_t j = 0; j < p.n; j++)
            assert_memory_equal(element_at(&row, j), element_at(&t.out, 69 * p.n + j),
                                (size_t)bytes_of(p.out));
        drop(&row);
        product_drop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_layout), cmocka_unit_test(awkward_shapes),
        cmocka_unit_test(all_that_is_added),      cmocka_unit_test(broadcast_batches),
        cmocka_unit_test(f8_with_scales),         cmocka_unit_test(nothing_is_read_with_beta_0),
        cmocka_unit_test(infinities_and_nans),    cmocka_unit_test(no_nan_is_lost),
        cmocka_unit_test(a_batch_is_shared),      cmocka_unit_test(f64_is_summed_in_more_than_f64),
        cmocka_unit_test(i8_wraps_in_i32),        cmocka_unit_test(bits_depend_on_nothing_else),
    };
    return run_suite("kernels.ref_matmul", tests);
}
