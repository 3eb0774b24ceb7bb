/* Products of one B that is packed: what they compute, who is refused, what is left behind. */
#include "toy.h"

#include "fault/fault.h"
#include "os/thread.h"

enum { M = 6, N = 8, K = 12 };

typedef struct operands {
    tn_tensor a, b, out, expected;
    tn_matmul_args args;
} operands;

static void make(operands *it)
{
    tn_device *device = toy_device();
    it->a = toy_tensor(device, TN_F32, M, K, 1);
    it->b = toy_tensor(device, TN_F32, K, N, 2);
    it->out = toy_tensor(device, TN_F32, M, N, 3);
    it->expected = toy_tensor(device, TN_F32, M, N, 4);
    it->args = (tn_matmul_args){
        .struct_size = sizeof it->args, .a = &it->a, .b = &it->b, .out = &it->expected};
    assert_int_equal(tn_matmul(NULL, &it->args, NULL), TN_OK);
    it->args.out = &it->out;
}

static void end(operands *it)
{
    tn_tensor_release(&it->a);
    tn_tensor_release(&it->b);
    tn_tensor_release(&it->out);
    tn_tensor_release(&it->expected);
}

static tn_packed *pack(const tn_context *context, const operands *it)
{
    tn_packed *packed = NULL;
    tn_error err;
    if (tn_matmul_pack(context, &it->args, &packed, &err))
        fail_msg("%s", err.message);
    return packed;
}

/* With B gone, and what is in out of no account. */
static void assert_computes(const tn_packed *packed, operands *it)
{
    tn_matmul_args args = it->args;
    tn_error err;
    args.b = NULL;
    memset(it->out.data, 0x7f, M * N * sizeof(float));
    if (tn_matmul_packed(packed, &args, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(it->out.data, it->expected.data, M * N * sizeof(float));
}

static void b_may_go_once_it_is_packed(void **state)
{
    operands it;
    uint64_t own = 1;
    (void)state;
    make(&it);
    tn_packed *packed = pack(NULL, &it);
    assert_string_equal(tn_packed_kernel(packed), "toy.matmul.fast");
    assert_int_equal(tn_packed_bytes(packed, &own), K * N * sizeof(float));
    assert_int_equal(own, K * N * sizeof(float));
    memset(it.b.data, 0x7f, K * N * sizeof(float));
    int64_t before = toy.packed_runs;
    assert_computes(packed, &it);
    assert_computes(packed, &it);
    assert_int_equal(toy.packed_runs, before + 2);
    assert_int_equal(toy.packs, 1);
    tn_packed_release(packed);
    assert_int_equal(toy.packs, 0);
    end(&it);
}

static void any_kernel_reads_the_copy(void **state)
{
    operands it;
    uint64_t own = 1;
    (void)state;
    make(&it);
    tn_context *slow = toy_with("rules=require:toy.matmul.slow");
    tn_packed *packed = pack(slow, &it);
    tn_context_release(slow);
    assert_string_equal(tn_packed_kernel(packed), "toy.matmul.slow");
    assert_int_equal(tn_packed_bytes(packed, &own), K * N * sizeof(float));
    assert_int_equal(own, 0);
    memset(it.b.data, 0x7f, K * N * sizeof(float));
    assert_computes(packed, &it);
    tn_packed_release(packed);
    end(&it);
    make(&it);
    toy.pack_fails = TN_UNSUPPORTED; /* such an op gains nothing by it */
    packed = pack(NULL, &it);
    assert_string_equal(tn_packed_kernel(packed), "toy.matmul.fast");
    (void)tn_packed_bytes(packed, &own);
    assert_int_equal(own, 0);
    memset(it.b.data, 0x7f, K * N * sizeof(float));
    assert_computes(packed, &it);
    tn_packed_release(packed);
    end(&it);
}

static void failures_come_through(void **state)
{
    operands it;
    tn_packed *packed = (tn_packed *)&it;
    tn_error err;
    (void)state;
    make(&it);
    toy.pack_fails = TN_INTERNAL;
    assert_int_equal(tn_matmul_pack(NULL, &it.args, &packed, &err), TN_INTERNAL);
    assert_contains(err.message, "the toy gave 4");
    assert_ptr_equal(packed, &it);
    assert_int_equal(toy.packs, 0);
    packed = pack(NULL, &it);
    toy.fails = TN_BUSY;
    it.args.b = NULL;
    assert_int_equal(tn_matmul_packed(packed, &it.args, &err), TN_BUSY);
    tn_packed_release(packed);
    end(&it);
}

static void refused(const tn_packed *packed, const tn_matmul_args *args, const char *says)
{
    tn_error err;
    assert_int_equal(tn_matmul_packed(packed, args, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, says);
}

static void wrong_use_is_refused(void **state)
{
    operands it;
    tn_error err;
    (void)state;
    make(&it);
    tn_packed *packed = pack(NULL, &it);
    tn_matmul_args args = it.args;
    refused(packed, &args, "b is packed already");
    args.b = NULL;
    refused(NULL, &args, "packed is NULL");
    refused(packed, NULL, "args is NULL");
    args.struct_size = 8;
    refused(packed, &args, "struct_size");
    args.struct_size = sizeof args;
    tn_tensor a = toy_tensor(toy_device(), TN_F32, M - 1, K, 1);
    tn_tensor out = toy_tensor(toy_device(), TN_F32, M - 1, N, 1);
    args.a = &a;
    args.out = &out;
    refused(packed, &args, "packed for matmul:f32:m=6,n=8,k=12");
    refused(packed, &args, "and this is matmul:f32:m=5,n=8,k=12");
    args = it.args;
    args.b = NULL;
    args.activation = TN_ACT_RELU;
    refused(packed, &args, "act=relu");
    assert_int_equal(tn_matmul_pack(NULL, &it.args, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_matmul_pack(NULL, NULL, &packed, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(tn_packed_kernel(NULL), "");
    assert_int_equal(tn_packed_bytes(NULL, NULL), 0);
    tn_packed_release(NULL);
    assert_computes(packed, &it);
    tn_packed_release(packed);
    tn_tensor_release(&a);
    tn_tensor_release(&out);
    end(&it);
}

/* What changes verdicts is looked at again, and what does not speak against the kernel goes on. */
static void verdicts_are_looked_at_again(void **state)
{
    operands it;
    (void)state;
    make(&it);
    tn_packed *packed = pack(NULL, &it);
    tni_dispatch_invalidate();
    assert_computes(packed, &it);
    assert_computes(packed, &it);
    tn_packed_release(packed);
    end(&it);
}

static void operands_may_lie_elsewhere(void **state)
{
    operands it;
    tn_error err;
    float memory[M * K + 1];
    (void)state;
    make(&it);
    tn_packed *packed = pack(NULL, &it);
    const int64_t shape[] = {M, K};
    tn_tensor a;
    memcpy(memory + 1, it.a.data, sizeof memory - sizeof memory[0]);
    assert_int_equal(
        tn_tensor_wrap(toy_device(), memory + 1, TN_F32, shape, NULL, 2, NULL, NULL, &a, &err),
        TN_OK);
    it.args.a = &a;
    assert_computes(packed, &it);
    tn_packed_release(packed);
    tn_tensor_release(&a);
    end(&it);
}

/* A B without elements is packed by nobody. */
static void a_b_of_nothing_is_packed(void **state)
{
    operands it;
    uint64_t own = 1;
    float zeros[M * N] = {0};
    (void)state;
    make(&it);
    tn_tensor a = toy_tensor(toy_device(), TN_F32, M, 0, 1);
    tn_tensor b = toy_tensor(toy_device(), TN_F32, 0, N, 1);
    it.args.a = &a;
    it.args.b = &b;
    tn_packed *packed = pack(NULL, &it);
    assert_int_equal(tn_packed_bytes(packed, &own), 0);
    assert_int_equal(own, 0);
    memcpy(it.expected.data, zeros, sizeof zeros);
    assert_computes(packed, &it);
    tn_packed_release(packed);
    tn_tensor_release(&a);
    tn_tensor_release(&b);
    end(&it);
}

static void want_of_memory_is_told(void **state)
{
    operands it;
    bool fired = true;
    long n = 1;
    (void)state;
    make(&it);
    for (; fired; n++) {
        tn_packed *packed = NULL;
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tn_matmul_pack(NULL, &it.args, &packed, NULL);
        fired = fault_end(&fault_memory);
        assert_true(status == TN_OK || (fired && status == TN_OUT_OF_MEMORY && !packed));
        if (!status)
            assert_computes(packed, &it);
        tn_packed_release(packed);
        assert_int_equal(toy.packs, 0);
    }
    assert_true(n > 3);
    end(&it);
}

static const tn_packed *shared;
static _Atomic int wrong;

static void compute_many(void *user)
{
    const operands *like = user;
    const int calls = test_reduced() ? 20 : 200;
    tn_tensor out = toy_tensor(toy_device(), TN_F32, M, N, 5);
    tn_matmul_args args = like->args;
    args.b = NULL;
    args.out = &out;
    for (int i = 0; i < calls; i++) {
        if (i % 16 == 0)
            tni_dispatch_invalidate();
        wrong += tn_matmul_packed(shared, &args, NULL) ||
                 memcmp(out.data, like->expected.data, M * N * sizeof(float)) != 0;
    }
    tn_tensor_release(&out);
}

static void one_serves_many_threads(void **state)
{
    enum { THREADS = 4 };
    tni_thread threads[THREADS];
    operands it;
    (void)state;
    make(&it);
    tn_packed *packed = pack(NULL, &it);
    shared = packed;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], compute_many, &it, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(wrong, 0);
    tn_packed_release(packed);
    end(&it);
}

/* The real thing: whatever the cpu takes, with a B that is gone. */
static void the_cpu_computes_with_it(void **state)
{
    enum { ROWS = 40, COLUMNS = 50, DEPTH = 70 };
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS], out[ROWS * COLUMNS], expected[ROWS * COLUMNS];
    const int64_t shapes[3][2] = {{ROWS, DEPTH}, {COLUMNS, DEPTH}, {ROWS, COLUMNS}};
    tn_tensor tensors[4];
    float *const data[] = {a, b, out, expected};
    tn_packed *packed = NULL;
    tn_device *cpu = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    for (int i = 0; i < ROWS * DEPTH; i++)
        a[i] = (float)(i % 13 - 6);
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        b[i] = (float)(i % 11 - 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tn_tensor_wrap(cpu, data[i], TN_F32, shapes[i < 3 ? i : 2], NULL, 2, NULL,
                                        NULL, &tensors[i], &err),
                         TN_OK);
    tn_matmul_args args = {.struct_size = sizeof args,
                           .a = &tensors[0],
                           .b = &tensors[1],
                           .out = &tensors[3],
                           .transpose_b = 1};
    assert_int_equal(tn_matmul(NULL, &args, &err), TN_OK);
    args.out = &tensors[2];
    if (tn_matmul_pack(NULL, &args, &packed, &err))
        fail_msg("%s", err.message);
    memset(b, 0x7f, sizeof b);
    args.b = NULL;
    if (tn_matmul_packed(packed, &args, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(out, expected, sizeof out);
    tn_packed_release(packed);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&tensors[i]);
}

/* The last, as the toy's fast kernel is in quarantine then. */
static void what_was_wrong_is_not_used_again(void **state)
{
    operands it;
    tn_error err;
    (void)state;
    make(&it);
    tn_context *watched = toy_with("debug.sample=1");
    tn_packed *packed = pack(watched, &it);
    assert_computes(packed, &it);
    it.args.b = NULL;
    toy.lies = 1000;
    assert_true(tn_matmul_packed(packed, &it.args, &err) != TN_OK);
    toy.lies = 0;
    assert_int_equal(tn_matmul_packed(packed, &it.args, &err), TN_REFUSED);
    assert_contains(err.message, "toy.matmul.fast, which B was packed by");
    assert_contains(err.message, "pack it again");
    tn_packed_release(packed);
    tn_context_release(watched);
    end(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b_may_go_once_it_is_packed),
        cmocka_unit_test(any_kernel_reads_the_copy),
        cmocka_unit_test(failures_come_through),
        cmocka_unit_test(wrong_use_is_refused),
        cmocka_unit_test(verdicts_are_looked_at_again),
        cmocka_unit_test(operands_may_lie_elsewhere),
        cmocka_unit_test(a_b_of_nothing_is_packed),
        cmocka_unit_test(want_of_memory_is_told),
        cmocka_unit_test(one_serves_many_threads),
        cmocka_unit_test(the_cpu_computes_with_it),
        cmocka_unit_test(what_was_wrong_is_not_used_again),
    };
    fault_memory_install();
    setenv("TENON_CACHE", "", 1); /* nothing is kept */
    return run_suite("unit.packed", tests);
}
