/* einsum when the n-th allocation fails: the call says so or is computed as without a fault, and nothing
 * is left behind. */
#include "fault.h"

#include "tenon/tenon.h"

static int64_t shapes[4][2] = {{2, 3}, {3, 4}, {4, 5}, {5, 2}}, out_shape[2] = {2, 2};
static double numbers[20], sums[4];
static tn_tensor tensors[4], out;
static const tn_tensor *operands[4];
static const char *strategy;

static tn_einsum_args args_of(void)
{
    return (tn_einsum_args){.struct_size = sizeof(tn_einsum_args),
                            .equation = "ij,jk,kl,lm->im",
                            .operands = operands,
                            .out = &out,
                            .count = 4,
                            .strategy = strategy};
}

static tn_status compute(tn_error *err)
{
    const tn_einsum_args args = args_of();
    memset(sums, 0xFF, sizeof sums);
    const tn_status status = tn_einsum(NULL, &args, err);
    for (size_t i = 0; i < 4;
         i++) /* the last step is one call, so a failure leaves out unchanged */
        assert_true(status ? sums[i] != sums[i] : sums[i] == 3 * 4 * 5);
    return status;
}

static tn_status explain(tn_error *err)
{
    tn_einsum_path *path = NULL;
    const tn_einsum_args args = args_of();
    const tn_status status = tn_einsum_explain(NULL, &args, &path, err);
    assert_int_equal(path != NULL, status == TN_OK);
    tn_einsum_path_release(path);
    return status;
}

static tn_status compute_slices(tn_error *err)
{
    tn_einsum_args args = args_of();
    args.memory_limit = 128;
    args.strategy = "left"; /* which needs 192 bytes at once */
    const tn_status status = tn_einsum(NULL, &args, err);
    for (size_t i = 0; i < 4 && !status; i++)
        assert_true(sums[i] == 3 * 4 * 5);
    return status;
}

static tn_status search(tn_error *err)
{
    int32_t path[16], steps;
    double cost;
    const tn_einsum_args args = args_of();
    return tn_einsum_search(NULL, &args, path, &steps, &cost, err);
}

static void every_allocation_may_fail(void **state)
{
    static tn_status (*const runs[])(tn_error *) = {compute, explain, search, compute_slices};
    static const char *const strategies[] = {"left", "greedy", "optimal", "random-greedy",
                                             "branch-2"};
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        struct fault_state before = {0};
        strategy = strategies[i / 4];
        for (int pass = 0; pass < 2; pass++) { /* the first makes plans and what else is kept */
            long n = 1;
            tn_error err;
            assert_int_equal(runs[i % 4](&err), TN_OK);
            while (fault_survive_memory(runs[i % 4], n))
                n++;
            assert_true(n > 8);
            if (pass)
                assert_int_equal(fault_left(before, strategy, n), 0);
            before = fault_look();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    fault_memory_install();
    for (size_t i = 0; i < 20; i++)
        numbers[i] = 1;
    for (size_t i = 0; i < 4; i++) {
        operands[i] = &tensors[i];
        tensors[i] = (tn_tensor){.data = numbers,
                                 .device_type = TN_DLPACK_CPU,
                                 .ndim = 2,
                                 .dtype = TN_F64,
                                 .shape = shapes[i]};
    }
    out = tensors[0];
    out.shape = out_shape;
    out.data = sums;
    return run_suite("fault.einsum", tests);
}
