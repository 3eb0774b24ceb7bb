/* may_cross_devices: operands on several devices are refused, or copied to that of the output. */
#include "toy.h"

static tn_device *cpu, *toys;
static tn_context *crossing; /* permits it */

/* Sides of the product: no two alike. */
enum { M = 3, N = 5, K = 4 };

static tn_memory_stats memory_of(tn_device *device)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(tn_memory_stats_get(device, &stats, NULL), TN_OK);
    return stats;
}

static int64_t held(tn_device *device)
{
    return memory_of(device).current;
}

static void expect_product(const tn_tensor *a, const tn_tensor *b, const tn_tensor *out)
{
    const float *x = a->data, *y = b->data, *z = out->data; /* the toy's memory is the host's */
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += x[i * K + k] * y[k * N + j];
            assert_true(z[i * N + j] == sum);
        }
    }
}

typedef struct product {
    tn_tensor a, b, out;
} product;

static product make(tn_device *a, tn_device *b, tn_device *out)
{
    return (product){toy_tensor(a, TN_F32, M, K, 1), toy_tensor(b, TN_F32, K, N, 2),
                     toy_tensor(out, TN_F32, M, N, 3)};
}

static void end(product *p)
{
    tn_tensor_release(&p->a);
    tn_tensor_release(&p->b);
    tn_tensor_release(&p->out);
}

static tn_status multiply(const tn_context *context, const product *p, tn_error *err)
{
    return tn_matmul(context, TN_ARGS(matmul, .a = &p->a, .b = &p->b, .out = &p->out), err);
}

static void several_devices_are_refused(void **state)
{
    product p = make(toys, cpu, toys);
    tn_decision *decision = NULL;
    tn_error err;
    (void)state;
    int64_t runs = toy.runs;
    assert_int_equal(multiply(NULL, &p, &err), TN_REFUSED);
    assert_contains(err.message, "a is on toy:0 and b on cpu:0");
    assert_int_equal(toy.runs, runs);
    assert_int_equal(tn_matmul_explain(NULL, TN_ARGS(matmul, .a = &p.a, .b = &p.b, .out = &p.out),
                                       &decision, &err),
                     TN_REFUSED);
    end(&p);
}

/* Wherever operands are, the output stays where it is, and what was copied is given back. */
static void operands_come_to_the_output(void **state)
{
    tn_error err;
    (void)state;
    for (int where = 0; where < 8; where++) {
        tn_device *to = where & 4 ? toys : cpu;
        product p = make(where & 1 ? toys : cpu, where & 2 ? toys : cpu, to);
        if (multiply(crossing, &p, &err)) /* from now on streams have their workspace */
            fail_msg("%s", err.message);
        expect_product(&p.a, &p.b, &p.out);
        memset(p.out.data, 0, M * N * sizeof(float));
        bool strays = where != 0 && where != 7;
        int64_t runs = toy.runs, on_toy = held(toys), on_cpu = held(cpu);
        tn_memory_peak_reset(to);
        if (multiply(crossing, &p, &err))
            fail_msg("%s", err.message);
        expect_product(&p.a, &p.b, &p.out);
        assert_true((memory_of(to).peak > held(to)) == strays); /* it was copied */
        assert_int_equal(toy.runs - runs, where & 4 ? 1 : 0);
        assert_true(held(toys) == on_toy && held(cpu) == on_cpu);
        end(&p);
    }
}

/* Backwards, with holes, and no better aligned than their elements. */
static void strides_cross_as_they_are(void **state)
{
    const int64_t shape[] = {M, K}, strides[] = {-2 * K - 1, 2};
    float room[2 * M * (K + 1)], dense[M * K];
    product p = make(cpu, toys, toys);
    tn_tensor odd = {0}, plain = {0};
    tn_decision *decision = NULL;
    tn_error err;
    (void)state;
    for (int i = 0; i < (int)(sizeof room / sizeof room[0]); i++)
        room[i] = (float)(i * 5 % 7);
    float *first = room + 1 + (M - 1) * (2 * K + 1);
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < K; k++)
            dense[i * K + k] = first[-i * (2 * K + 1) + 2 * k];
    }
    if (tn_tensor_wrap(cpu, first, TN_F32, shape, strides, 2, NULL, NULL, &odd, &err) ||
        tn_tensor_wrap(cpu, dense, TN_F32, shape, NULL, 2, NULL, NULL, &plain, &err) ||
        tn_matmul(crossing, TN_ARGS(matmul, .a = &odd, .b = &p.b, .out = &p.out), &err) ||
        tn_matmul_explain(crossing, TN_ARGS(matmul, .a = &odd, .b = &p.b, .out = &p.out), &decision,
                          &err))
        fail_msg("%s", err.message);
    expect_product(&plain, &p.b, &p.out);
    assert_contains(tn_decision_problem(decision), "sa=-9;2");
    tn_decision_release(decision);
    tn_tensor_release(&odd);
    tn_tensor_release(&plain);
    end(&p);
}

static void explaining_copies_nothing(void **state)
{
    product p = make(cpu, cpu, toys);
    tn_decision *decision = NULL;
    tn_error err;
    (void)state;
    tn_memory_peak_reset(toys);
    int64_t before = memory_of(toys).peak;
    if (tn_matmul_explain(crossing, TN_ARGS(matmul, .a = &p.a, .b = &p.b, .out = &p.out), &decision,
                          &err) ||
        tn_matmul_prepare(crossing, TN_ARGS(matmul, .a = &p.a, .b = &p.b, .out = &p.out), &err))
        fail_msg("%s", err.message);
    assert_true(memory_of(toys).peak == before);
    assert_ptr_equal(tn_decision_device(decision), toys);
    assert_string_equal(tn_decision_chosen(decision)->platform, "toy");
    tn_decision_release(decision);
    end(&p);
}

static void failures_leave_nothing_behind(void **state)
{
    product p = make(cpu, cpu, toys);
    tn_tensor torn = {.ndim = 2, .dtype = TN_F32};
    tn_error err;
    (void)state;
    int64_t before = held(toys);
    toy.fails = TN_IO;
    assert_int_equal(multiply(crossing, &p, &err), TN_IO);
    assert_contains(err.message, "the toy gave 3");
    assert_int_equal(held(toys), before);
    assert_int_equal(tn_memory_limit_set(toys, before + 64, &err), TN_OK);
    assert_int_equal(multiply(crossing, &p, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(held(toys), before);
    assert_int_equal(tn_memory_limit_set(toys, 0, &err), TN_OK);
    assert_int_equal(tn_matmul(crossing, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_matmul(crossing, TN_ARGS(matmul, .a = &p.a, .b = &p.b), &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(
        tn_matmul(crossing, TN_ARGS(matmul, .a = &torn, .b = &p.b, .out = &p.out), &err),
        TN_INVALID_ARGUMENT);
    assert_contains(err.message, "a: ");
    end(&p);
}

/* Arguments behind those that the first version had: they are kept, and cross as the others. */
static void later_arguments_cross(void **state)
{
    enum { F8_ONE = 0x38 };
    tn_error err;
    (void)state;
    for (int where = 0; where < 2; where++) {
        tn_tensor a = toy_tensor(toys, TN_F8_E4M3FN, 1, 1, 1),
                  b = toy_tensor(cpu, TN_F8_E4M3FN, 1, 1, 1);
        tn_tensor out = toy_tensor(cpu, TN_F32, 1, 1, 1);
        tn_tensor scale = toy_tensor(where ? toys : cpu, TN_F32, 1, 1, 1);
        *(unsigned char *)a.data = *(unsigned char *)b.data = F8_ONE;
        *(float *)scale.data = 8;
        if (tn_matmul(crossing,
                      TN_ARGS(matmul, .a = &a, .b = &b, .out = &out, .scale_a = &scale,
                              .scale_b = &scale),
                      &err))
            fail_msg("%s", err.message);
        assert_true(*(const float *)out.data == 64);
        tn_tensor *const all[] = {&a, &b, &out, &scale};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            tn_tensor_release(all[i]);
    }
}

/* One call of every operator, with its inputs on the toy and its output on the cpu. */
static void every_operator_crosses(void **state)
{
    tn_tensor in = toy_tensor(toys, TN_F32, 4, 8, 1), other = toy_tensor(toys, TN_F32, 4, 8, 2);
    tn_tensor half = toy_tensor(toys, TN_F32, 4, 4, 3), out = toy_tensor(cpu, TN_F32, 4, 8, 4);
    tn_tensor column = toy_tensor(cpu, TN_F32, 4, 1, 5);
    tn_tensor wide = toy_tensor(cpu, TN_F64, 4, 8, 6);
    tn_error err;
    (void)state;
    const tn_status statuses[] = {
        tn_permute(crossing, TN_ARGS(permute, .in = &in, .out = &out), &err),
        tn_cast(crossing, TN_ARGS(cast, .in = &in, .out = &wide), &err),
        tn_unary(crossing, TN_ARGS(unary, .in = &in, .out = &out, .kind = TN_UNARY_NEG), &err),
        tn_binary(crossing, TN_ARGS(binary, .in = &in, .other = &other, .out = &out), &err),
        tn_reduce(crossing, TN_ARGS(reduce, .in = &in, .out = &column, .axes = 2, .keep = 1), &err),
        tn_softmax(crossing, TN_ARGS(softmax, .in = &in, .out = &out), &err),
        tn_norm(crossing, TN_ARGS(norm, .in = &in, .out = &out), &err),
        tn_rotary(crossing, TN_ARGS(rotary, .in = &in, .out = &out, .cos = &half, .sin = &half),
                  &err),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i])
            fail_msg("operator %zu: %s", i, tn_status_name(statuses[i]));
    }
    const float *x = in.data, *cos = half.data, *z = out.data;
    assert_true(z[0] == x[0] * cos[0] - x[4] * cos[0]);
    assert_true(((const double *)wide.data)[9] == (double)x[9]);
    tn_tensor *const all[] = {&in, &other, &half, &out, &column, &wide};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_release(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_devices_are_refused),
        cmocka_unit_test(operands_come_to_the_output),
        cmocka_unit_test(strides_cross_as_they_are),
        cmocka_unit_test(explaining_copies_nothing),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(later_arguments_cross),
        cmocka_unit_test(every_operator_crosses),
    };
    toys = toy_device();
    crossing = toy_with("may_cross_devices=true");
    if (tn_device_get("cpu:0", &cpu, NULL))
        return 1;
    int failed = run_suite("unit.cross", tests);
    tn_context_release(crossing);
    return failed;
}
