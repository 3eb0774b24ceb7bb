/* From a call to its kernel when the n-th allocation fails: the call says so or goes on, nothing is left
 * behind, and the next attempt succeeds. */
#include "fault.h"
#include "unit/toy.h"

static tn_tensor a, b, out;

static void check_product(void)
{
    double sum = 0;
    for (int p = 0; p < 8; p++)
        sum += (double)(((float *)a.data)[p] * ((float *)b.data)[p * 6]);
    assert_true((double)((float *)out.data)[0] == sum);
}

/* Everything anew: the problem, the decision, the plan and its run. */
static tn_status multiply(tn_error *err)
{
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    tn_status status = tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), err);
    if (!status)
        check_product();
    return status;
}

/* An operand that lies on the cpu is copied first, and its copy given back. */
static tn_status cross(tn_error *err)
{
    tn_memory_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    tn_tensor there = a;
    tn_context *context = NULL;
    const tn_change change = tn_with_may_cross_devices(1);
    tn_status status = tn_context_derive(NULL, &change, 1, &context, err);
    there.owner = NULL;
    there.device_type = TN_DLPACK_CPU;
    there.device_id = 0;
    assert_int_equal(tn_memory_stats_get(toy_device(), &before, NULL), TN_OK);
    if (!status)
        status = tn_matmul(context, TN_ARGS(matmul, .a = &there, .b = &b, .out = &out), err);
    assert_int_equal(tn_memory_stats_get(toy_device(), &after, NULL), TN_OK);
    assert_true(after.current == before.current);
    if (!status)
        check_product();
    tn_context_release(context);
    return status;
}

static tn_status limit_plans(tn_error *err)
{
    return tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, 100, err);
}

static tn_status explain(tn_error *err)
{
    tn_decision *decision = NULL;
    tn_status status = tn_explain(NULL, "matmul:f32:m=6,n=6,k=8,sa=16;2@toy:0", &decision, err);
    if (!status)
        assert_string_equal(tn_decision_chosen(decision)->kernel, "toy.matmul.fast");
    tn_decision_release(decision);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    tn_device *device = toy_device();
    long n = 1;
    (void)state;
    a = toy_tensor(device, TN_F32, 6, 8, 1);
    b = toy_tensor(device, TN_F32, 8, 6, 2);
    out = toy_tensor(device, TN_F32, 6, 6, 3);
    memset(out.data, 0xFF, 36 * sizeof(float));
    for (; fault_survive_memory(limit_plans, n); n++)
        ;
    assert_true(n > 1);
    for (n = 1; fault_survive_memory(multiply, n); n++)
        ;
    assert_true(n > 3);
    for (n = 1; fault_survive_memory(cross, n); n++)
        ;
    assert_true(n > 2);
    for (n = 1; fault_survive_memory(explain, n); n++)
        ;
    assert_true(n > 2);
    tn_plan_cache_clear(NULL, TN_OP_NONE);
    assert_true(toy.plans <= 8); /* given back, but for what the stream remembers to have run */
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    fault_memory_install();
    return run_suite("fault.dispatch", tests);
}
