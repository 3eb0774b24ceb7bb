/* What is explained is what is planned: random problems under random settings. */
#include "toy.h"

#include "settings/context.h"

static uint64_t seed = 20261115;

static uint32_t below(uint32_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % limit;
}

static void random_problem(char *out, size_t size)
{
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16", "c64", "i8"};
    static const int dims[] = {0, 1, 2, 3, 4, 7, 8, 16, 31, 64, 257};
    static const char *const extras[] = {"",
                                         ",bias=1",
                                         ",ta=1",
                                         ",tb=1",
                                         ",alpha=2",
                                         ",beta=0.5",
                                         ",batch=3",
                                         ",act=relu",
                                         ",bias=1,act=gelu",
                                         ",align=4;64;64"};
    static const char *const each[] = {"softmax:f32:shape=%dx%d",
                                       "norm:f32:kind=rms,shape=%dx%d",
                                       "cast:f32:shape=%dx%d,to=bf16",
                                       "unary:f32:kind=exp,shape=%dx%d",
                                       "reduce:f64:kind=sum,shape=%dx%d,axes=1",
                                       "permute:f32:shape=%dx%d,order=1;0"};
    const char *device = below(2) ? "cpu:0" : "toy:0";
    char text[160];
    int m = dims[below(11)], n = dims[below(11)], k = dims[below(11)];
    if (below(4) == 0) {
        /* The formats are the ones above. */
        snprintf(text, sizeof text, "%s", each[below(6)]);
        char *mark = strstr(text, "%d");
        char tail[96];
        snprintf(tail, sizeof tail, "%s", strstr(mark + 2, "%d") + 2);
        snprintf(mark, sizeof text - (size_t)(mark - text), "%dx%d%s", m + 1, n + 1, tail);
    } else {
        const char *extra = extras[below(10)];
        const char *dtype = dtypes[below(6)];
        bool act = strstr(extra, "act=") != NULL;
        snprintf(text, sizeof text, "matmul:%s:m=%d,n=%d,k=%d%s", act ? "f32" : dtype, m, n, k,
                 extra);
    }
    snprintf(out, size, "%s@%s", text, device);
}

static tn_context *random_context(void)
{
    static const char *const wishes[] = {
        "fp32_precision=tf32",           "determinism=run-to-run",
        "determinism=batch-invariant",   "determinism=cross-device",
        "rules=forbid:library:openblas", "rules=prefer:backend:ref",
        "rules=avoid:library:openblas",  "rules=require:toy.matmul.slow",
        "rules=forbid:toy.matmul.fast",  "workspace.limit=1000",
        "matmul.library=prefer:openblas"};
    tn_change changes[3];
    tn_context *made = NULL;
    tn_error err;
    size_t count = below(4);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tn_setting_parse(wishes[below(11)], &changes[i], &err), TN_OK);
    if (tn_context_derive(NULL, changes, count, &made, &err)) /* two that contradict each other */
        assert_int_equal(tn_context_derive(NULL, NULL, 0, &made, &err), TN_OK);
    return made;
}

static void compare(const tn_context *context, const char *problem)
{
    tn_decision *decision = NULL;
    tn_op op;
    tn_device *device;
    tn_error err;
    tni_lease lease;
    if (tn_explain(context, problem, &decision, &err))
        fail_msg("%s: %s", problem, err.message);
    assert_int_equal(tni_question_parse(problem, &op, &device, &err), TN_OK);
    const tni_question question = {.context = context, .op = &op, .device = device};
    tn_status status = tni_lease_acquire(&question, false, &lease, &err);
    assert_int_equal(status, tn_decision_status(decision, NULL));
    const tn_candidate *chosen = tn_decision_chosen(decision);
    if (status) {
        assert_null(chosen);
    } else {
        assert_int_equal(chosen->verdict, TN_VERDICT_CHOSEN);
        assert_string_equal(chosen->kernel, tni_plan_kernel(lease.plan)->row->name);
        assert_int_equal(chosen->workspace_bytes, tni_plan_workspace(lease.plan));
        tni_lease_end(&lease);
    }
    tn_decision_release(decision);
}

static void explained_is_planned(void **state)
{
    (void)state;
    int rounds = test_reduced() ? 400 : 4000;
    char problem[256];
    toy_device();
    for (int i = 0; i < rounds; i++) {
        tn_context *context = random_context();
        random_problem(problem, sizeof problem);
        compare(context, problem);
        compare(context, problem); /* now from the cache */
        tn_context_release(context);
    }
    tn_plan_cache_clear(NULL, 0);
}

/* Verdicts that a decision shows are the same whichever way the problem is given. */
static void tensors_and_text_agree(void **state)
{
    (void)state;
    tn_error err;
    tn_device *device = toy_device();
    tn_tensor a = toy_tensor(device, TN_F32, 6, 8, 1), b = toy_tensor(device, TN_F32, 5, 8, 2);
    tn_tensor out = toy_tensor(device, TN_F32, 6, 5, 3);
    tn_decision *by_tensors = NULL, *by_text = NULL;
    assert_int_equal(tn_matmul_explain(NULL,
                                       TN_ARGS(matmul, .a = &a, .b = &b, .out = &out,
                                               .transpose_b = 1, .beta = 0),
                                       &by_tensors, &err),
                     TN_OK);
    assert_string_equal(tn_decision_problem(by_tensors), "matmul:f32:m=6,n=5,k=8,tb=1@toy:0");
    assert_int_equal(tn_explain(NULL, tn_decision_problem(by_tensors), &by_text, &err), TN_OK);
    assert_int_equal(tn_decision_count(by_tensors), tn_decision_count(by_text));
    for (size_t i = 0; i < tn_decision_count(by_text); i++) {
        const tn_candidate *x = tn_decision_candidate(by_tensors, i);
        const tn_candidate *y = tn_decision_candidate(by_text, i);
        assert_string_equal(x->kernel, y->kernel);
        assert_int_equal(x->verdict, y->verdict);
        assert_true(x->predicted_us == y->predicted_us);
    }
    tn_decision_release(by_tensors), tn_decision_release(by_text);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(explained_is_planned),
                                       cmocka_unit_test(tensors_and_text_agree)};
    return run_suite("unit.dispatch_random", tests);
}
