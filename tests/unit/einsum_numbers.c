/* einsum: integers and complex numbers. */
#include "einsum_cases.h"

static tn_einsum_path *explain(const tn_einsum_args *args, tn_einsum_path_info *out_info)
{
    tn_einsum_path *path = NULL;
    tn_error err = {0};
    out_info->struct_size = sizeof *out_info;
    if (tn_einsum_explain(NULL, args, &path, &err) || tn_einsum_path_info_get(path, out_info, &err))
        fail_msg("%s: %s", args->equation, err.message);
    return path;
}

/* Counts the calls of a path whose problems begin with a text. */
static size_t count_calls(const tn_einsum_path *path, const char *begin)
{
    const tn_einsum_step *step;
    size_t count = 0;
    for (size_t i = 0; (step = tn_einsum_path_step(path, i)); i++) {
        for (size_t k = 0; k < step->calls; k++)
            count += strncmp(step->problems[k], begin, strlen(begin)) == 0;
    }
    return count;
}

/* Runs a problem in exactly the workspace that its explanation names. */
static void run_exactly(const problem *p, tn_einsum_args args)
{
    static _Alignas(64) char workspace[1 << 18];
    tn_einsum_path_info info;
    tn_error err = {0};
    tn_einsum_path_release(explain(&args, &info));
    assert_true(info.workspace_bytes < sizeof workspace);
    memset(workspace, 0xFF, sizeof workspace);
    args.workspace = info.workspace_bytes ? workspace : NULL;
    args.workspace_bytes = info.workspace_bytes;
    poison();
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s: %s", p->equation, err.message);
    expect_result(p);
    expect_gaps();
    for (size_t i = info.workspace_bytes; i < sizeof workspace; i++) {
        if (workspace[i] != (char)0xFF)
            fail_msg("%s: byte %zu beyond the workspace was written", p->equation, i);
    }
}

/* Where no kernel multiplies complex numbers, real products do; also after the same call without that. */
static void complex_products_are_real_ones_without_a_kernel(void **state)
{
    static problem p;
    static const tn_dtype dtypes[] = {TN_C64, TN_C128};
    const tn_change changes[] = {tn_with_rules(TN_FORBID, "cpu.binary.numbers.*"),
                                 tn_with_rules(TN_FORBID, "cpu.binary.ref")};
    size_t products = 0;
    (void)state;
    for (int32_t round = 0; round < (test_fewest() ? 100 : 300); round++) {
        tn_scope scope = {0};
        tn_einsum_path_info info;
        roll_problem(&p, dtypes[round % 2]);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        run_exactly(&p, args);
        assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
        tn_einsum_path *path = explain(&args, &info);
        assert_int_equal(count_calls(path, "binary:c"), 0);
        products += count_calls(path, "binary:f");
        tn_einsum_path_release(path);
        run_exactly(&p, args);
        tn_scope_leave(&scope);
    }
    assert_true(products > 40);
}

/* Large products of complex matrices, with batches, transposed, and of dimensions that do not merge. */
static void complex_matrices_are_real_ones(void **state)
{
    static const char *const equations[] = {
        "ab,bc->ac",    "ba,bc->ac",   "ab,cb->ca",       "ba,cb->ca",       "dab,dbc->dac",
        "abd,bcd->acd", "abc,bdc->ad", "abc,dcb->ad",     "ab,cbd->acd",     "abc,bd->adc",
        "ab,b->a",      "a,ab->b",     "abcd,cdef->abef", "acbd,dfce->eafb", "gab,gbc->cga"};
    static problem p;
    const tn_change change = tn_with_rules(TN_FORBID, "matmul/library:*");
    size_t expanded = 0;
    (void)state;
    for (size_t i = 0; i < 4 * sizeof equations / sizeof equations[0]; i++) {
        int64_t sizes[LABELS];
        tn_einsum_path_info info;
        const size_t number = i % (sizeof equations / sizeof equations[0]);
        const uint32_t most = number < 10 ? 11 : number < 12 ? 40 : 5;
        for (int32_t k = 0; k < LABELS; k++)
            sizes[k] = number == 14 ? 3 + (int64_t)roll(8) : most / 2 + (int64_t)roll(most / 2 + 1);
        set_problem(i % 2 ? TN_C64 : TN_C128, equations[number], sizes, &p);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        tn_scope scope = {0};
        run_exactly(&p, args);
        assert_int_equal(tn_scope_enter(&scope, &change, 1, NULL), TN_OK);
        tn_einsum_path *path = explain(&args, &info);
        expanded += count_calls(path, "matmul:f");
        tn_einsum_path_release(path);
        run_exactly(&p, args);
        tn_scope_leave(&scope);
    }
    assert_true(expanded > 20);
}

/* The kernel of a call is not the reference. */
static void expect_fast(tn_dtype dtype, const char *equation, int32_t terms)
{
    const tn_tensor *operands[2];
    tn_einsum_path_info info;
    for (int32_t i = 0; i < terms; i++) {
        (void)dense(&pieces[i], SIZES(8, 40));
        pieces[i].tensor.dtype = dtype;
        operands[i] = &pieces[i].tensor;
    }
    tn_einsum_args args = args_of(equation, operands, terms);
    args.out = NULL;
    tn_einsum_path *path = explain(&args, &info);
    const tn_einsum_step *step = tn_einsum_path_step(path, 0);
    for (size_t i = 0; i < step->calls; i++) {
        if (strstr(step->kernels[i], ".ref") || !step->kernels[i][0])
            fail_msg("%s: %s is computed by \"%s\"", equation, step->problems[i], step->kernels[i]);
    }
    tn_einsum_path_release(path);
}

static void no_number_needs_the_reference(void **state)
{
    static const tn_dtype dtypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64, TN_U8,
                                      TN_U16, TN_U32, TN_U64, TN_C64, TN_C128};
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        expect_fast(dtypes[i], "ab,ab->ab", 2);
        expect_fast(dtypes[i], "ab->a", 1);
        expect_fast(dtypes[i], "ab->b", 1);
        expect_fast(dtypes[i], "ab,cb->ac", 2);
    }
}

/* Narrow integers wrap as their dtype does. */
static void sums_and_products_wrap(void **state)
{
    enum { N = 700 };
    static uint16_t a[N], b[N], sum, expected;
    int64_t size[] = {N};
    tn_error err = {0};
    (void)state;
    const tn_tensor x = {
        .data = a, .device_type = TN_DLPACK_CPU, .ndim = 1, .dtype = TN_U16, .shape = size};
    tn_tensor y = x, out = x;
    y.data = b;
    out.data = &sum;
    out.ndim = 0;
    const tn_tensor *const operands[] = {&x, &y};
    tn_einsum_args args = args_of("i,i->", operands, 2);
    args.out = &out;
    for (int32_t i = 0; i < N; i++) {
        a[i] = (uint16_t)roll(65536);
        b[i] = (uint16_t)roll(65536);
        expected = (uint16_t)(expected + (uint32_t)a[i] * b[i]);
    }
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sum, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_products_are_real_ones_without_a_kernel),
        cmocka_unit_test(complex_matrices_are_real_ones),
        cmocka_unit_test(no_number_needs_the_reference),
        cmocka_unit_test(sums_and_products_wrap),
    };
    return run_suite("unit.einsum_numbers", tests);
}
