/* Several products at once: who computes them, what is refused, and that one which is wrong leaves all undone. */
#include "toy.h"

#include "fault/fault.h"

/* Sums over k: a multiple of 4 is of toy.matmul.fast, which takes many; the last has no rows. */
enum { GROUPS = 5, N = 8 };
static const int64_t rows[GROUPS] = {6, 3, 9, 1, 0}, sums[GROUPS] = {12, 10, 4, 7, 8};

typedef struct product {
    tn_tensor a, b, out, expected;
    tn_matmul_args args;
} product;
static product products[GROUPS];
static const tn_matmul_args *groups[GROUPS];
static tn_error err;

static void make(void)
{
    tn_device *device = toy_device();
    for (int i = 0; i < GROUPS; i++) {
        product *p = &products[i];
        p->a = toy_tensor(device, TN_F32, rows[i], sums[i], i);
        p->b = toy_tensor(device, TN_F32, sums[i], N, i + 1);
        p->out = toy_tensor(device, TN_F32, rows[i], N, 3);
        p->expected = toy_tensor(device, TN_F32, rows[i], N, 4);
        p->args = (tn_matmul_args){
            .struct_size = sizeof p->args, .a = &p->a, .b = &p->b, .out = &p->expected};
        assert_int_equal(tn_matmul(NULL, &p->args, &err), TN_OK);
        p->args.out = &p->out;
        groups[i] = &p->args;
    }
    toy.runs = toy.slow_runs = toy.many_runs = 0;
}

static void end(void)
{
    for (int i = 0; i < GROUPS; i++) {
        tn_tensor_release(&products[i].a);
        tn_tensor_release(&products[i].b);
        tn_tensor_release(&products[i].out);
        tn_tensor_release(&products[i].expected);
    }
}

static void assert_computed(void)
{
    for (int i = 0; i < GROUPS; i++)
        assert_memory_equal(products[i].out.data, products[i].expected.data,
                            (size_t)(rows[i] * N) * sizeof(float));
}

static void those_of_one_kernel_go_together(void **state)
{
    (void)state;
    make();
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_OK);
    assert_computed();
    assert_int_equal(toy.many_runs, 1);
    assert_int_equal(toy.runs, 4);
    assert_int_equal(toy.slow_runs, 2);
    assert_int_equal(tn_matmul_grouped(NULL, NULL, 0, &err), TN_OK);
    end();
}

/* What is sampled or recorded, and where settings give all to a kernel that takes one. */
static void or_one_by_one(void **state)
{
    tn_graph *graph = NULL;
    tn_stream *stream = NULL;
    (void)state;
    make();
    tn_context *sampled = toy_with("debug.sample=1"),
               *repeating = toy_with("determinism=run-to-run");
    assert_int_equal(tn_matmul_grouped(sampled, groups, GROUPS, &err), TN_OK);
    assert_computed();
    assert_int_equal(tn_matmul_grouped(repeating, groups, GROUPS, &err), TN_OK);
    assert_int_equal(toy.slow_runs, 2 + 4);
    tn_context *rarely = toy_with("debug.sample=100");
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_matmul_grouped(rarely, groups, GROUPS, &err), TN_OK);
    assert_int_equal(tn_stream_create(toy_device(), NULL, &stream, &err), TN_OK);
    for (int i = 0; i < GROUPS; i++)
        products[i].args.stream = stream;
    assert_int_equal(tn_graph_begin(stream, &err), TN_OK);
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_OK);
    assert_int_equal(tn_graph_end(stream, &graph, &err), TN_OK);
    memset(products[0].out.data, 0, (size_t)(rows[0] * N) * sizeof(float));
    assert_int_equal(tn_graph_run(graph, stream, &err), TN_OK);
    assert_computed();
    assert_int_equal(toy.many_runs, 0);
    tn_graph_release(graph);
    tn_stream_release(stream);
    tn_context_release(sampled);
    tn_context_release(rarely);
    tn_context_release(repeating);
    end();
}

static void assert_refused(const char *words)
{
    const int64_t before = toy.runs;
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, words);
    assert_int_equal(toy.runs, before);
    groups[2] = &products[2].args;
}

static void one_that_is_wrong_leaves_all_undone(void **state)
{
    tn_stream *stream = NULL;
    char room[64];
    (void)state;
    make();
    tn_matmul_args wrong = products[2].args;
    tn_tensor other = toy_tensor(toy_device(), TN_F64, rows[2], sums[2], 1);
    tn_tensor b = toy_tensor(toy_device(), TN_F64, sums[2], N, 1);
    tn_tensor out = toy_tensor(toy_device(), TN_F64, rows[2], N, 1);
    groups[2] = NULL;
    assert_refused("groups[2]: args is NULL");
    wrong.b = &products[0].b;
    groups[2] = &wrong;
    assert_refused("groups[2]: b: expected 4 rows, as many as a has columns, got 12");
    wrong = products[2].args;
    wrong.workspace = room, wrong.workspace_bytes = sizeof room;
    groups[2] = &wrong;
    assert_refused("groups[2]: workspace: expected NULL");
    wrong = products[2].args;
    assert_int_equal(tn_stream_create(toy_device(), NULL, &stream, &err), TN_OK);
    wrong.stream = stream;
    groups[2] = &wrong;
    assert_refused("groups[2]: stream: expected that of groups[0]");
    wrong = products[2].args;
    wrong.a = &other, wrong.b = &b, wrong.out = &out;
    groups[2] = &wrong;
    assert_refused("groups[2]: a: expected the dtype of groups[0], f32, got f64");
    assert_int_equal(tn_matmul_grouped(NULL, NULL, 1, &err), TN_INVALID_ARGUMENT);
    tn_stream_release(stream);
    tn_tensor_release(&other), tn_tensor_release(&b), tn_tensor_release(&out);
    end();
}

static void what_a_kernel_says_is_told(void **state)
{
    (void)state;
    make();
    toy.fails = TN_INTERNAL;
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_INTERNAL);
    assert_contains(err.message, "groups[0]: toy:0: the toy gave 3; matmul:f32:m=6,n=8,k=12");
    toy.fails_at = 2; /* of those that go together: the others are of another kernel */
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_INTERNAL);
    assert_contains(err.message, "groups[2]: toy:0: the toy gave 3; matmul:f32:m=9,n=8,k=4");
    toy.fails_at = -1;
    assert_int_equal(tn_matmul_grouped(NULL, groups, GROUPS, &err), TN_INTERNAL);
    assert_string_equal(err.message, "groups[0] to groups[2], 2 at once: toy:0: the toy gave 6");
    assert_int_equal(tn_matmul_grouped(NULL, groups + 1, GROUPS - 1, &err), TN_INTERNAL);
    assert_contains(err.message, "groups[1]: toy:0: the toy gave 6; matmul:f32:m=9,n=8,k=4");
    toy.fails_at = 0;
    tn_context *apart = toy_with("debug.sample=100"); /* each by itself */
    toy.fails = TN_INTERNAL;
    assert_int_equal(tn_matmul_grouped(apart, groups + 1, GROUPS - 1, &err), TN_INTERNAL);
    assert_contains(err.message, "groups[0]: toy:0: the toy gave 3; matmul:f32:m=3,n=8,k=10");
    tn_context_release(apart);
    tn_context *none = toy_with("rules=forbid:platform:toy");
    assert_int_equal(tn_matmul_grouped(none, groups, GROUPS, &err), TN_REFUSED);
    assert_contains(err.message, "groups[0]: no kernel can compute it");
    tn_context_release(none);
    end();
}

static void want_of_memory_leaves_nothing_behind(void **state)
{
    bool fired = true;
    (void)state;
    make();
    for (long n = 1; fired; n++) {
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tn_matmul_grouped(NULL, groups, GROUPS, &err);
        fired = fault_end(&fault_memory);
        assert_true(status == TN_OK || (fired && status == TN_OUT_OF_MEMORY));
    }
    assert_computed();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_one_kernel_go_together),
        cmocka_unit_test(or_one_by_one),
        cmocka_unit_test(one_that_is_wrong_leaves_all_undone),
        cmocka_unit_test(what_a_kernel_says_is_told),
        cmocka_unit_test(want_of_memory_leaves_nothing_behind),
    };
    fault_memory_install();
    return run_suite("unit.grouped", tests);
}
