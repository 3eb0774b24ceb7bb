/* Which backend computes a layer when the n-th allocation fails: the question says so or is answered as
 * without a fault, and nothing is left behind. */
#include "fault.h"
#include "unit/attention_rows.h"

static tn_device *pod, *gpu;

static tn_status choose(tn_error *err)
{
    tn_attention_choice choice = {.struct_size = sizeof choice};
    tn_status status = tn_attention_backend(
        NULL,
        TN_ARGS(attention_backend, .device = pod, .head_size = 64, .dtype = TN_F32, .training = 1,
                .backend = TN_BACKEND_SAGE_ATTN, .strength = TN_PREFER,
                .layer_default = TN_BACKEND_TORCH_SDPA),
        &choice, err);
    if (!status)
        assert_string_equal(choice.name, "TORCH_SDPA");
    return status;
}

static tn_status explain(tn_error *err)
{
    tn_decision *decision = NULL;
    tn_status status = tn_attention_backend_explain(
        NULL, TN_ARGS(attention_backend, .device = gpu, .head_size = 64, .dtype = TN_BF16),
        &decision, err);
    if (!status)
        assert_true(tn_decision_backend_count(decision) >= 20);
    tn_decision_release(decision);
    return status;
}

static tn_status enter(tn_error *err)
{
    static const int32_t only[] = {TN_SDP_MATH};
    tn_scope scope = {0};
    tn_status status = tn_sdpa_kernel_enter(&scope, only, 1, 1, err);
    assert_int_equal(tn_get_cuda_flash_sdp(NULL), status != TN_OK);
    tn_scope_leave(&scope);
    assert_int_equal(tn_get_cuda_flash_sdp(NULL), 1);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    static tn_status (*const runs[])(tn_error *) = {choose, explain, enter};
    (void)state;
    pod = described("pod");
    gpu = described("h200");
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        tn_error err;
        long n = 1;
        assert_int_equal(runs[i](&err), TN_OK); /* what is made once is there */
        while (fault_survive_memory(runs[i], n))
            n++;
        assert_true(n > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    fault_memory_install();
    return run_suite("fault.attention", tests);
}
