/* From a call to a kernel: who is asked, who is refused and why, what is kept. */
#include "toy.h"

#include <math.h>

/* "fast" of toy.matmul.fast. */
static const char *short_choice(const tn_context *context, const char *problem)
{
    const char *name = toy_choice(context, problem);
    return name[0] ? strrchr(name, '.') + 1 : "";
}

static const char *choice_with(const char *setting, const char *problem)
{
    tn_context *context = toy_with(setting);
    const char *name = short_choice(context, problem);
    tn_context_release(context);
    return name;
}

static const tn_candidate *candidate(const tn_decision *d, const char *kernel)
{
    for (size_t i = 0; i < tn_decision_count(d); i++) {
        if (strcmp(tn_decision_candidate(d, i)->kernel, kernel) == 0)
            return tn_decision_candidate(d, i);
    }
    fail_msg("no candidate %s", kernel);
    return NULL;
}

static tn_decision *explain(const tn_context *context, const char *problem)
{
    tn_decision *decision = NULL;
    tn_error err;
    assert_int_equal(tn_explain(context, problem, &decision, &err), TN_OK);
    return decision;
}

static const char dense[] = "matmul:f32:m=8,n=8,k=8@toy:0";

static void verdicts_have_reasons(void **state)
{
    (void)state;
    toy_device();
    tn_decision *d = explain(NULL, "matmul:f32:m=8,n=8,k=5@toy:0");
    assert_string_equal(tn_decision_problem(d), "matmul:f32:m=8,n=8,k=5@toy:0");
    assert_int_equal(tn_decision_count(d), 3);
    assert_string_equal(tn_decision_candidate(d, 0)->kernel, "toy.matmul.slow");
    assert_int_equal(tn_decision_candidate(d, 0)->verdict, TN_VERDICT_CHOSEN);
    const tn_candidate *fast = candidate(d, "toy.matmul.fast");
    assert_int_equal(fast->verdict, TN_VERDICT_REFUSED);
    assert_int_equal(fast->why->code, TN_REFUSE_SHAPE);
    assert_string_equal(fast->why->what, "k");
    assert_int_equal(fast->why->needed, 8);
    assert_int_equal(fast->why->found, 5);
    const tn_candidate *tf32 = candidate(d, "toy.matmul.tf32");
    assert_int_equal(tf32->why->code, TN_REFUSE_PRECISION);
    assert_int_equal(tf32->why->needed, 24);
    assert_int_equal(tf32->why->found, 11);
    assert_contains(tf32->why->text, "fp32_precision=tf32");
    tn_decision_release(d);

    d = explain(NULL, "matmul:f64:m=8,n=8,k=8@toy:0");
    assert_int_equal(candidate(d, "toy.matmul.fast")->why->code, TN_REFUSE_DTYPE);
    assert_contains(candidate(d, "toy.matmul.fast")->why->text, "f32");
    tn_decision_release(d);

    d = explain(NULL, "matmul:f32:m=8,n=8,k=8,bias=1@toy:0");
    assert_null(tn_decision_chosen(d));
    const char *message;
    assert_int_equal(tn_decision_status(d, &message), TN_UNSUPPORTED);
    assert_contains(message, "matmul:f32:m=8,n=8,k=8,bias=1@toy:0");
    assert_int_equal(candidate(d, "toy.matmul.slow")->why->code, TN_REFUSE_FEATURE);
    assert_string_equal(candidate(d, "toy.matmul.slow")->why->what, "bias");
    tn_decision_release(d);
}

static void the_fastest_that_is_permitted_is_taken(void **state)
{
    (void)state;
    toy_device();
    assert_string_equal(short_choice(NULL, dense), "fast");
    assert_string_equal(choice_with("fp32_precision=tf32", dense), "tf32");
    assert_string_equal(choice_with("fp32_precision=bf16", dense), "tf32");
    assert_string_equal(choice_with("determinism=run-to-run", dense), "slow");
    assert_string_equal(choice_with("determinism=batch-invariant", dense), "");
    assert_string_equal(choice_with("rules=forbid:toy.matmul.fast", dense), "slow");
    assert_string_equal(choice_with("rules=avoid:toy.matmul.fast", dense), "slow");
    assert_string_equal(choice_with("rules=prefer:toy.matmul.slow", dense), "slow");
    assert_string_equal(choice_with("rules=require:toy.matmul.slow", dense), "slow");
    assert_string_equal(choice_with("rules=forbid:toy.*", dense), "");
    assert_string_equal(choice_with("workspace.limit=4095", dense), "slow");
    assert_string_equal(choice_with("workspace.limit=4096", dense), "fast");
    /* A wish that cannot be met falls back only when it is no request. */
    assert_string_equal(choice_with("rules=prefer:toy.matmul.tf32", dense), "fast");
    assert_string_equal(choice_with("rules=require:toy.matmul.tf32", dense), "");
}

/* What fast is predicted to take, when its function says `us`. */
static double fast_us(double us, const char *by)
{
    atomic_store(&toy.cost_us, us);
    tn_decision *d = explain(NULL, dense);
    const tn_candidate *fast = candidate(d, "toy.matmul.fast");
    double predicted = fast->predicted_us;
    assert_string_equal(fast->predicted_by, by);
    assert_string_equal(candidate(d, "toy.matmul.slow")->predicted_by, "figures");
    atomic_store(&toy.cost_us, 0);
    tn_decision_release(d);
    return predicted;
}

static void a_row_may_predict_its_time(void **state)
{
    const double nonsense[] = {-1, 0, NAN, INFINITY, -INFINITY};
    (void)state;
    toy_device();
    assert_string_equal(short_choice(NULL, dense), "fast");
    double figures = fast_us(0, "figures");
    assert_true(figures == 2.0 * 8 * 8 * 8 / 1e4);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++)
        assert_true(fast_us(nonsense[i], "figures") == figures);
    assert_true(fast_us(1e9, "cost") == 1e9);
    atomic_store(&toy.cost_us, 1e9);
    assert_string_equal(short_choice(NULL, dense), "slow");
    atomic_store(&toy.cost_us, 1e-9);
    assert_string_equal(short_choice(NULL, dense), "fast");
    atomic_store(&toy.cost_us, 0);
}

static void a_row_is_asked_only_of_what_it_computes(void **state)
{
    (void)state;
    toy_device();
    int64_t before = atomic_load(&toy.cost_asked);
    assert_string_equal(short_choice(NULL, "matmul:f64:m=8,n=8,k=8@toy:0"), "slow");
    tn_decision_release(explain(NULL, "matmul:f32:m=8,n=8,k=8,act=relu@toy:0"));
    assert_int_equal(atomic_load(&toy.cost_asked), before);
    assert_string_equal(short_choice(NULL, dense), "fast");
    assert_int_equal(atomic_load(&toy.cost_asked), before + 1);
}

static void decisions_name_the_rule(void **state)
{
    (void)state;
    toy_device();
    tn_context *context = toy_with("rules=require:toy.matmul.slow");
    tn_decision *d = explain(context, dense);
    const tn_candidate *fast = candidate(d, "toy.matmul.fast");
    assert_int_equal(fast->why->code, TN_REFUSE_RULE);
    assert_contains(fast->why->text, "require:toy.matmul.slow");
    assert_contains(fast->why->text, "call");
    assert_string_equal(fast->module, "toy");
    tn_decision_release(d);
    tn_context_release(context);
}

/* Runs a product of the toy's, m by n by k, and gives the status. */
static tn_status multiply(const tn_context *context, int64_t m, int64_t n, int64_t k,
                          void *workspace, uint64_t bytes, tn_error *err)
{
    tn_device *device = toy_device();
    tn_tensor a = toy_tensor(device, TN_F32, m, k, 1), b = toy_tensor(device, TN_F32, k, n, 2);
    tn_tensor out = toy_tensor(device, TN_F32, m, n, 3);
    tn_status status = tn_matmul(context,
                                 TN_ARGS(matmul, .a = &a, .b = &b, .out = &out,
                                         .workspace = workspace, .workspace_bytes = bytes),
                                 err);
    for (int64_t i = 0; !status && i < m * n; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += (double)((const float *)a.data)[i / n * k + p] *
                   (double)((const float *)b.data)[p * n + i % n];
        assert_true((double)((const float *)out.data)[i] == sum);
    }
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
    return status;
}

static tn_plan_cache_state cache_state(const tn_context *context)
{
    tn_plan_cache_state s = {.struct_size = sizeof s};
    tn_error err;
    assert_int_equal(tn_plan_cache_state_get(context, toy_device(), 0, &s, &err), TN_OK);
    return s;
}

static void plans_are_kept_and_shared(void **state)
{
    (void)state;
    tn_error err;
    tn_plan_cache_clear(NULL, 0);
    assert_int_equal(toy.plans, 0);
    tn_plan_cache_state before = cache_state(NULL);
    int64_t made = toy.plans_made;
    for (int i = 0; i < 5; i++)
        assert_int_equal(multiply(NULL, 6, 7, 8, NULL, 0, &err), TN_OK);
    tn_plan_cache_state after = cache_state(NULL);
    assert_int_equal(after.size, 1);
    assert_int_equal(after.misses - before.misses, 1);
    assert_int_equal(after.hits - before.hits, 4);
    assert_true(after.bytes >= 1000);
    assert_int_equal(after.max_size, 4096);
    /* Another m and n: another plan of Tenon's, the same one of the kernel's. */
    assert_int_equal(multiply(NULL, 3, 2, 8, NULL, 0, &err), TN_OK);
    after = cache_state(NULL);
    assert_int_equal(after.size, 2);
    assert_int_equal(after.shared - before.shared, 1);
    assert_int_equal(toy.plans_made - made, 1);
    /* Another k is the kernel's business. */
    assert_int_equal(multiply(NULL, 3, 2, 12, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.plans_made - made, 2);
    tn_plan_cache_clear(toy_device(), TN_OP_CAST);
    assert_int_equal(cache_state(NULL).size, 3);
    tn_plan_cache_clear(toy_device(), TN_OP_MATMUL);
    assert_int_equal(cache_state(NULL).size, 0);
    assert_int_equal(multiply(NULL, 3, 2, 12, NULL, 0, &err), TN_OK); /* the thread's own let go */
    assert_int_equal(toy.plans_made - made, 3);
}

/* Sizes of k make plans of the kernel's own. */
static void an_op_may_keep_fewer_plans(void **state)
{
    tn_error err;
    tn_plan_cache_state of_op = {.struct_size = sizeof of_op};
    (void)state;
    tn_plan_cache_clear(NULL, 0);
    for (int64_t k = 100; k < 104; k++)
        assert_int_equal(multiply(NULL, 3, 2, k, NULL, 0, &err), TN_OK);
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_CAST, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 4);
    /* The oldest go at once. */
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, 2, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 2);
    assert_int_equal(tn_plan_cache_state_get(NULL, toy_device(), TN_OP_MATMUL, &of_op, &err),
                     TN_OK);
    assert_int_equal(of_op.max_size, 2);
    assert_int_equal(cache_state(NULL).max_size, 4096);
    int64_t made = toy.plans_made;
    assert_int_equal(multiply(NULL, 3, 2, 103, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.plans_made, made);
    assert_int_equal(multiply(NULL, 3, 2, 100, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.plans_made, made + 1);
    assert_int_equal(cache_state(NULL).size, 2);
    assert_int_equal(multiply(NULL, 3, 2, 103, NULL, 0, &err),
                     TN_OK); /* it was used, 102 was not */
    assert_int_equal(toy.plans_made, made + 1);
    /* What cannot be made evicts nothing. */
    tn_context *only = toy_with("rules=require:toy.matmul.fast");
    toy.plan_fails = TN_INTERNAL;
    assert_int_equal(multiply(only, 3, 2, 108, NULL, 0, &err), TN_INTERNAL);
    assert_int_equal(cache_state(NULL).size, 2);
    tn_context_release(only);
    /* None are kept, and all calls work. */
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 0);
    made = toy.plans_made;
    for (int i = 0; i < 3; i++)
        assert_int_equal(multiply(NULL, 3, 2, 100, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.plans_made, made + 3);
    assert_int_equal(cache_state(NULL).size, 0);
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, -1, &err), TN_OK);
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_CAST, -1, &err), TN_OK);
    assert_int_equal(multiply(NULL, 3, 2, 100, NULL, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 1);
}

static void wrong_limits_of_plans_are_refused(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(tn_plan_cache_limit_set(NULL, TN_OP_MATMUL, 1, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), 0, 1, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), 63, 1, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "op: expected a TN_OP_..., got 63");
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, -2, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "max_size: expected -1 to 2^63 - 2, got -2");
    assert_int_equal(tn_plan_cache_limit_set(toy_device(), TN_OP_MATMUL, INT64_MAX, &err),
                     TN_INVALID_ARGUMENT);
}

/* What a vendor's library says only when it is asked for a plan. */
static void a_kernel_may_decline_when_it_plans(void **state)
{
    static const char problem[] = "matmul:f32:m=4,n=4,k=1204@toy:0";
    tn_error err;
    (void)state;
    assert_string_equal(short_choice(NULL, problem), "fast");
    toy.plan_fails = TN_UNSUPPORTED;
    assert_int_equal(multiply(NULL, 4, 4, 1204, NULL, 0, &err), TN_OK);
    assert_string_equal(toy.last, "toy.matmul.slow");
    tn_decision *d = explain(NULL, problem);
    const tn_candidate *fast = candidate(d, "toy.matmul.fast");
    assert_int_equal(fast->verdict, TN_VERDICT_REFUSED);
    assert_int_equal(fast->why->code, TN_REFUSE_OTHER);
    assert_string_equal(fast->why->what, "plan");
    assert_contains(fast->why->text, "the toy gave 5");
    tn_decision_release(d);
    assert_string_equal(short_choice(NULL, dense), "fast"); /* of others it has said nothing */

    tn_context *only = toy_with("rules=require:toy.matmul.fast");
    toy.plan_fails = TN_UNSUPPORTED;
    assert_int_equal(multiply(only, 4, 4, 1208, NULL, 0, &err), TN_REFUSED);
    assert_contains(err.message, "the toy gave 5");
    tn_context_release(only);

    toy.plan_fails = TN_INTERNAL; /* is no refusal */
    assert_int_equal(multiply(NULL, 4, 4, 1212, NULL, 0, &err), TN_INTERNAL);
    assert_string_equal(short_choice(NULL, "matmul:f32:m=4,n=4,k=1212@toy:0"), "fast");
}

/* One that is found out when it is first used. The test of admission cannot be made then either. */
static void a_library_may_not_start(void **state)
{
    static const struct {
        tn_status status;
        const char *setting;
    } cases[] = {{TN_UNAVAILABLE, "admission=never"},
                 {TN_INCOMPATIBLE, "admission=never"},
                 {TN_UNAVAILABLE, "admission=auto"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_context *context = toy_with(cases[i].setting);
        char problem[64];
        tn_error err;
        toy.plan_fails = cases[i].status;
        assert_int_equal(multiply(context, 4, 4, 1216 + 4 * (int64_t)i, NULL, 0, &err), TN_OK);
        assert_string_equal(toy.last, "toy.matmul.slow");
        snprintf(problem, sizeof problem, "matmul:f32:m=4,n=4,k=%d@toy:0", 1216 + 4 * (int)i);
        tn_decision *d = explain(context, problem);
        const tn_candidate *fast = candidate(d, "toy.matmul.fast");
        assert_int_equal(fast->verdict, TN_VERDICT_REFUSED);
        assert_contains(fast->why->text, "the toy gave");
        tn_decision_release(d);
        tn_context_release(context);
    }
}

static void bounds_are_kept(void **state)
{
    (void)state;
    tn_error err;
    tn_plan_cache_clear(NULL, 0);
    tn_context *three = toy_with("plan.cache_size=3"), *none = toy_with("plan.cache_size=0");
    tn_context *small = toy_with("plan.cache_bytes=100");
    int64_t evicted = cache_state(NULL).evictions;
    for (int64_t k = 4; k <= 40; k += 4)
        assert_int_equal(multiply(three, 2, 2, k, NULL, 0, &err), TN_OK);
    assert_int_equal(cache_state(three).size, 3);
    assert_int_equal(cache_state(three).max_size, 3);
    assert_int_equal(cache_state(NULL).evictions - evicted, 7);
    assert_int_equal(multiply(none, 2, 2, 44, NULL, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 0);
    assert_int_equal(multiply(small, 2, 2, 48, NULL, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).size, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(multiply(NULL, 2, 2, 52, NULL, 0, &err), TN_OK);
    int64_t hits = cache_state(NULL).hits; /* what others keep is not used either */
    assert_int_equal(multiply(none, 2, 2, 52, NULL, 0, &err), TN_OK);
    assert_int_equal(cache_state(NULL).hits, hits);
    tn_context_release(three), tn_context_release(none), tn_context_release(small);
}

static void only_what_was_prepared(void **state)
{
    (void)state;
    tn_error err;
    tn_plan_cache_clear(NULL, 0);
    tn_context *context = toy_with("plan.only_prepared=true");
    assert_int_equal(multiply(context, 4, 4, 16, NULL, 0, &err), TN_REFUSED);
    assert_contains(err.message, "matmul:f32:m=4,n=4,k=16@toy:0");
    assert_contains(err.message, "plan.only_prepared");
    tn_decision *d = explain(context, "matmul:f32:m=4,n=4,k=16@toy:0");
    const char *message;
    assert_null(tn_decision_chosen(d));
    assert_int_equal(tn_decision_status(d, &message), TN_REFUSED);
    assert_contains(message, "plan.only_prepared");
    assert_int_equal(tn_decision_candidate(d, 0)->verdict, TN_VERDICT_ADMITTED);
    tn_decision_release(d);
    assert_int_equal(tn_prepare(context, "matmul:f32:m=4,n=4,k=16@toy:0", &err), TN_OK);
    assert_int_equal(multiply(context, 4, 4, 16, NULL, 0, &err), TN_OK);
    d = explain(context, "matmul:f32:m=5,n=9,k=16@toy:0"); /* its plan serves it */
    assert_non_null(tn_decision_chosen(d));
    tn_decision_release(d);
    assert_int_equal(multiply(context, 5, 9, 16, NULL, 0, &err), TN_OK);
    assert_int_equal(multiply(context, 4, 4, 20, NULL, 0, &err), TN_REFUSED);
    assert_int_equal(tn_prepare(context, "matmul:f32:m=4,n=4", &err), TN_INVALID_ARGUMENT);
    tn_context_release(context);
}

/* An explanation with a call's own workspace says what that call then says, and no one is chosen for it. */
static void assert_told(int64_t m, int64_t k, void *workspace, uint64_t bytes)
{
    tn_device *device = toy_device();
    tn_tensor a = toy_tensor(device, TN_F32, m, k, 1), b = toy_tensor(device, TN_F32, k, 4, 2);
    tn_tensor out = toy_tensor(device, TN_F32, m, 4, 3);
    const tn_matmul_args args = {.struct_size = sizeof args,
                                 .a = &a,
                                 .b = &b,
                                 .out = &out,
                                 .workspace = workspace,
                                 .workspace_bytes = bytes};
    tn_decision *d = NULL;
    const char *message = "";
    tn_error err = {0};
    assert_int_equal(tn_matmul_explain(NULL, &args, &d, &err), TN_OK);
    const tn_status told = tn_decision_status(d, &message);
    assert_int_equal(tn_matmul(NULL, &args, &err), told);
    if (told)
        assert_string_equal(message, err.message);
    assert_true((told == TN_OK) == (tn_decision_chosen(d) != NULL));
    if (told)
        assert_null(tn_decision_runs_now(d));
    tn_decision_release(d);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out);
}

static void workspaces_are_explained(void **state)
{
    (void)state;
    tn_error err;
    void *own = NULL;
    assert_int_equal(tn_memory_alloc(toy_device(), 8192, "test", &own, &err), TN_OK);
    assert_told(4, 4, NULL, 0);
    assert_told(4, 4, own, 4096);
    assert_told(4, 4, own, 4095);
    assert_told(4, 4, (char *)own + 8, 8000);
    assert_told(4, 4, own, 0);
    assert_told(4, 4, NULL, 4096);
    assert_told(4, 5, own, 16); /* the slow one needs none */
    assert_told(0, 4, own, 16); /* nor does what has no rows */
    tn_memory_free(toy_device(), own);
}

static void workspaces(void **state)
{
    (void)state;
    tn_error err;
    void *own = NULL;
    assert_int_equal(tn_memory_alloc(toy_device(), 8192, "test", &own, &err), TN_OK);
    assert_int_equal(multiply(NULL, 4, 4, 4, own, 8192, &err), TN_OK);
    assert_ptr_equal(toy.last_workspace, own);
    assert_int_equal(multiply(NULL, 4, 4, 4, own, 4095, &err), TN_INVALID_ARGUMENT);
    assert_contains(
        err.message,
        "expected 4096 bytes aligned to 64 for toy.matmul.fast, got 4095 aligned to 64");
    assert_int_equal(multiply(NULL, 4, 4, 4, (char *)own + 8, 8000, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "got 8000 aligned to 8");
    assert_int_equal(multiply(NULL, 4, 4, 4, own, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "or neither; got memory and 0");
    assert_int_equal(multiply(NULL, 4, 4, 4, NULL, 4096, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "got NULL and 4096");
    assert_int_equal(multiply(NULL, 4, 4, 4, NULL, 0, &err), TN_OK);
    void *first = toy.last_workspace;
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal(multiply(NULL, 4, 4, 4, NULL, 0, &err), TN_OK);
    assert_ptr_equal(toy.last_workspace, first); /* the stream keeps it */
    tn_memory_free(toy_device(), own);
}

static void faults_name_the_problem(void **state)
{
    (void)state;
    tn_error err;
    toy.fails = TN_BUSY;
    assert_int_equal(multiply(NULL, 2, 3, 4, NULL, 0, &err), TN_BUSY);
    assert_contains(err.message, "the toy gave 3");
    assert_contains(err.message, "matmul:f32:m=2,n=3,k=4@toy:0");
    assert_int_equal(err.native_code, 3);
}

static void losses_list_what_ran(void **state)
{
    (void)state;
    tn_error err;
    for (int64_t n = 1; n <= 3; n++)
        assert_int_equal(multiply(NULL, 2, n, 4, NULL, 0, &err), TN_OK);
    toy.lose = true;
    assert_int_equal(tn_device_synchronize(toy_device(), &err), TN_DEVICE_LOST);
    assert_contains(err.message, "a kernel read where nothing is");
    assert_contains(err.message,
                    "matmul:f32:m=2,n=3,k=4@toy:0 (toy.matmul.fast); matmul:f32:m=2,n=2");
    assert_int_equal(tn_prepare(NULL, "matmul:f32:m=2,n=2,k=64@toy:0", &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_reset(toy_device(), &err), TN_OK);
    assert_int_equal(multiply(NULL, 2, 2, 4, NULL, 0, &err), TN_OK);
}

static void debug_sync_waits(void **state)
{
    (void)state;
    tn_error err;
    tn_context *context = toy_with("debug.sync=true");
    int64_t syncs = toy.syncs;
    assert_int_equal(multiply(NULL, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.syncs, syncs);
    assert_int_equal(multiply(context, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(toy.syncs, syncs + 1);
    tn_context_release(context);
}

static void fallbacks_are_counted(void **state)
{
    (void)state;
    tn_error err;
    tn_fallbacks f = {.struct_size = sizeof f};
    tn_plan_cache_clear(NULL, 0);
    tn_fallbacks_reset();
    assert_int_equal(multiply(NULL, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(tn_fallbacks_get(&f, &err), TN_OK);
    assert_int_equal(f.preferred + f.avoided + f.unavailable + f.quarantined + f.reference, 0);
    assert_string_equal(f.last, "");
    tn_context *prefers = toy_with("rules=prefer:toy.matmul.tf32");
    tn_context *avoids = toy_with("rules=avoid:platform:toy");
    assert_int_equal(multiply(prefers, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(multiply(prefers, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(multiply(avoids, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(tn_fallbacks_get(&f, &err), TN_OK);
    assert_int_equal(f.preferred, 1);
    assert_int_equal(f.avoided, 1);
    assert_contains(f.last, "matmul:f32:m=2,n=2,k=4@toy:0 is computed by toy.matmul.fast");
    tn_context_release(prefers), tn_context_release(avoids);
}

/* A kernel whose results do not depend on the batch is of no use when the batch chooses the kernel. */
static void batches_do_not_choose(void **state)
{
    static const struct {
        const char *before, *behind;
    } forms[] = {{"matmul:f32:m=", ",n=200,k=255"}, {"matmul:bf16:m=", ",n=200,k=255"},
                 {"matmul:f16:m=", ",n=8,k=16"},    {"matmul:i8:m=", ",n=64,k=64"},
                 {"softmax:f32:shape=", "x64"},     {"softmax:bf16:shape=", "x4"}};
    static const int sizes[] = {1, 3, 16, 200, 3000};
    tn_context *context = toy_with("determinism=batch-invariant");
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char first[128] = "", problem[128];
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            snprintf(problem, sizeof problem, "%s%d%s@cpu:0", forms[i].before, sizes[j],
                     forms[i].behind);
            tn_decision *d = explain(context, problem);
            assert_non_null(tn_decision_chosen(d));
            if (j == 0)
                snprintf(first, sizeof first, "%s", tn_decision_chosen(d)->kernel);
            assert_string_equal(tn_decision_chosen(d)->kernel, first);
            tn_decision_release(d);
        }
    }
    tn_context_release(context);
}

/* The rule that is not met, and how many fallbacks it counts for. */
static void assert_unmet(const char *setting, const char *unmet, int64_t preferred)
{
    tn_error err;
    tn_fallbacks f = {.struct_size = sizeof f};
    tn_context *context = toy_with(setting);
    tn_plan_cache_clear(NULL, 0);
    tn_fallbacks_reset();
    assert_int_equal(multiply(context, 2, 2, 4, NULL, 0, &err), TN_OK);
    assert_int_equal(tn_fallbacks_get(&f, &err), TN_OK);
    assert_int_equal(f.preferred, preferred);
    tn_decision *d = explain(context, dense);
    assert_string_equal(tn_decision_unmet(d), unmet);
    tn_decision_release(d);
    tn_context_release(context);
}

static void preferences_that_are_not_met(void **state)
{
    (void)state;
    assert_unmet("matmul.library=prefer:nope", "matmul/library:nope", 1);
    assert_unmet("rules=prefer:toy.matmul.none", "toy.matmul.none", 1);
    assert_unmet("rules=prefer:toy.matmul.tf32,prefer:toy.matmul.fast", "", 1);
    assert_unmet("rules=prefer:toy.matmul.fast,prefer:toy.matmul.tf32", "", 0);
    assert_unmet("rules=prefer:toy.matmul.slow", "", 0);
    assert_unmet("matmul.library=prefer:cublas", "", 0); /* of another platform */
    assert_unmet("rules=prefer:cuda.matmul.x", "", 0);
    assert_unmet("rules=prefer:softmax/library:nope", "", 0);
}

static void the_cpu_multiplies(void **state)
{
    (void)state;
    tn_error err;
    tn_device *cpu;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    tn_tensor a = toy_tensor(cpu, TN_F64, 5, 7, 1), b = toy_tensor(cpu, TN_F64, 7, 3, 2);
    tn_tensor out = toy_tensor(cpu, TN_F64, 5, 3, 3);
    assert_int_equal(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &out), &err), TN_OK);
    double sum = 0;
    for (int p = 0; p < 7; p++)
        sum += ((double *)a.data)[4 * 7 + p] * ((double *)b.data)[p * 3 + 2];
    assert_true(((double *)out.data)[14] == sum);
    tn_tensor toys = toy_tensor(toy_device(), TN_F64, 7, 3, 2);
    assert_int_equal(tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &toys, .out = &out), &err),
                     TN_REFUSED);
    assert_contains(err.message, "a is on cpu:0 and b on toy:0");
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&out), tn_tensor_release(&toys);
}

static void a_selector_names_what_is_known(void **state)
{
    static const char *const known[] = {"toy.matmul.fast",
                                        "TOY.MATMUL.FAST",
                                        "softmax/toy.matmul.fast",
                                        "kernel:toy.matmul.no*",
                                        "library:mkl",
                                        "softmax/library:mkl",
                                        "mkl",
                                        "toy",
                                        "cuda",
                                        "flash_attn",
                                        "language:nobodys",
                                        "platform:nobodys",
                                        "backend:nobodys",
                                        "no*"};
    static const struct {
        const char *selector, *said, *nearest;
    } unknown[] = {
        {"toy.matmul.fats", "no kernel \"toy.matmul.fats\"", "did you mean toy.matmul.fast?"},
        {"matmul/kernel:fast", "no kernel \"fast\"", ""},
        {"library:mlk", "unknown library \"mlk\"", "did you mean mkl?"},
        {"matmul/mlk", "or language is named \"mlk\"", "did you mean mkl?"},
    };
    tn_error err;
    (void)state;
    toy_device();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (tn_selector_check(known[i], &err))
            fail_msg("%s: %s", known[i], err.message);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_equal(tn_selector_check(unknown[i].selector, &err), TN_NOT_FOUND);
        assert_contains(err.message, unknown[i].said);
        assert_contains(err.message, unknown[i].nearest);
    }
    assert_int_equal(tn_selector_check("kernel:", &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_selector_check(NULL, &err), TN_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_selector_names_what_is_known),
        cmocka_unit_test(verdicts_have_reasons),
        cmocka_unit_test(the_fastest_that_is_permitted_is_taken),
        cmocka_unit_test(a_row_may_predict_its_time),
        cmocka_unit_test(a_row_is_asked_only_of_what_it_computes),
        cmocka_unit_test(decisions_name_the_rule),
        cmocka_unit_test(plans_are_kept_and_shared),
        cmocka_unit_test(an_op_may_keep_fewer_plans),
        cmocka_unit_test(wrong_limits_of_plans_are_refused),
        cmocka_unit_test(a_kernel_may_decline_when_it_plans),
        cmocka_unit_test(a_library_may_not_start),
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(only_what_was_prepared),
        cmocka_unit_test(workspaces),
        cmocka_unit_test(workspaces_are_explained),
        cmocka_unit_test(faults_name_the_problem),
        cmocka_unit_test(losses_list_what_ran),
        cmocka_unit_test(debug_sync_waits),
        cmocka_unit_test(fallbacks_are_counted),
        cmocka_unit_test(batches_do_not_choose),
        cmocka_unit_test(preferences_that_are_not_met),
        cmocka_unit_test(the_cpu_multiplies),
    };
    return run_suite("unit.dispatch", tests);
}
