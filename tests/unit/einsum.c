/* einsum: results against loops over all labels, and memory. */
#include "compose/einsum/einsum.h"
#include "einsum_cases.h"

static const char *const strategies[] = {
    "left", "greedy",        "optimal",           "dp",      "branch-1", "branch-2", "branch-all",
    "auto", "random-greedy", "random-greedy-128", "auto-hq", NULL};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

static void random_equations_are_right(void **state)
{
    static const tn_dtype dtypes[] = {TN_F64, TN_F32,  TN_C64, TN_C128,
                                      TN_F16, TN_BF16, TN_I32, TN_U8};
    static problem p;
    (void)state;
    for (int32_t round = 0; round < (test_fewest() ? 300 : 1500); round++) {
        tn_error err = {0};
        int64_t shape[TN_TENSOR_NDIM_MAX];
        int32_t ndim = -1;
        roll_problem(&p, dtypes[roll(sizeof dtypes / sizeof dtypes[0])]);
        poison();
        tn_einsum_args args = {.struct_size = sizeof args,
                               .equation = p.equation,
                               .operands = p.operands,
                               .count = p.terms,
                               .out = &result.tensor,
                               .strategy = strategies[roll(STRATEGIES)],
                               .seed = (uint64_t)round};
        if (tn_einsum_shape(&args, shape, &ndim, &err) || tn_einsum(NULL, &args, &err))
            fail_msg("round %d, %s: %s", (int)round, p.equation, err.message);
        assert_int_equal(ndim, result.tensor.ndim);
        assert_memory_equal(shape, result.shape, (size_t)ndim * sizeof shape[0]);
        expect_result(&p);
        expect_gaps();
        poison(); /* the same call again, which uses the plan of the first */
        if (tn_einsum(NULL, &args, &err))
            fail_msg("round %d again, %s: %s", (int)round, p.equation, err.message);
        expect_result(&p);
        expect_gaps();
    }
}

/* Calls that differ from an earlier one in a shape, strides, an equation or a dtype are not confused
 * with it. */
static void plans_are_of_one_call(void **state)
{
    static const struct {
        const char *equation;
        int64_t shapes[2][2], out[2], strides[2];
        double first; /* element of out */
    } cases[] = {
        {"ij,jk->ik", {{2, 3}, {3, 2}}, {2, 2}, {2, 1}, 1 * 1 + 2 * 3 + 3 * 5},
        {"ij,jk->ki", {{2, 3}, {3, 2}}, {2, 2}, {2, 1}, 1 * 1 + 2 * 3 + 3 * 5},
        {"ij,kj->ik", {{2, 3}, {2, 3}}, {2, 2}, {2, 1}, 1 * 1 + 2 * 2 + 3 * 3},
        {"ij,jk->ik", {{2, 2}, {2, 2}}, {2, 2}, {2, 1}, 1 * 1 + 2 * 3},
        {"ij,jk->ik", {{2, 2}, {2, 2}}, {2, 2}, {1, 2}, 1 * 1 + 2 * 3},
        {"ij,jk->ik", {{2, 2}, {2, 2}}, {2, 2}, {1, 2}, 1 * 1 + 3 * 3},
    };
    (void)state;
    for (int32_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const tn_tensor *const operands[] = {&pieces[0].tensor, &pieces[1].tensor};
            tn_error err = {0};
            double *const memory[] = {(double *)pieces[0].memory, (double *)pieces[1].memory};
            for (int32_t k = 0; k < 2; k++) {
                (void)dense(&pieces[k],
                            (const int64_t[]){cases[i].shapes[k][0], cases[i].shapes[k][1], -1});
                for (int32_t n = 0; n < 6; n++)
                    memory[k][n] = n + 1;
            }
            if (i == 5) { /* a is transposed by its strides */
                pieces[0].tensor.strides = pieces[0].strides;
                pieces[0].strides[0] = 1;
                pieces[0].strides[1] = 2;
            }
            (void)dense(&result, SIZES(2, 2));
            result.tensor.strides = result.strides;
            memcpy(result.strides, cases[i].strides, sizeof cases[i].strides);
            poison();
            const tn_einsum_args args = args_of(cases[i].equation, operands, 2);
            if (tn_einsum(NULL, &args, &err))
                fail_msg("%s: %s", cases[i].equation, err.message);
            const double *out = (const double *)result.memory;
            if (out[0] != cases[i].first)
                fail_msg("case %zu: expected %g, got %g", i, cases[i].first, out[0]);
        }
    }
}

/* Twelve dimensions of 2, which no operator accepts at once, in the reverse order. */
static void many_dimensions_are_supported(void **state)
{
    enum { RANK = 12 };
    (void)state;
    const tn_tensor *const operands[] = {
        dense(&pieces[0], SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)),
        dense(&pieces[1], SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)), dense(&pieces[2], SIZES(2))};
    tn_error err = {0};
    dense(&result, SIZES(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2));
    tn_einsum_args args = args_of("abcdefghijkl->lkjihgfedcba", operands, 1);
    poison();
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    const double *in = (const double *)pieces[0].memory, *out = (const double *)result.memory;
    for (uint32_t i = 0; i < 1 << RANK; i++) {
        uint32_t reversed = 0;
        for (uint32_t bit = 0; bit < RANK; bit++)
            reversed |= (i >> bit & 1) << (RANK - 1 - bit);
        assert_true(out[reversed] == in[i]);
    }
    /* Every other dimension is summed, and the second operand has them in the reverse order. */
    const double *other = (const double *)pieces[1].memory;
    dense(&result, SIZES(2, 2, 2, 2, 2, 2));
    args = args_of("abcdefghijkl,lkjihgfedcba->acegik", operands, 2);
    poison();
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    for (uint32_t kept = 0; kept < 64; kept++) {
        double sum = 0;
        for (uint32_t summed = 0; summed < 64; summed++) {
            uint32_t here = 0, there = 0;
            for (uint32_t bit = 0; bit < 6; bit++)
                here |= (kept >> bit & 1) << (2 * bit + 1) | (summed >> bit & 1) << 2 * bit;
            for (uint32_t bit = 0; bit < RANK; bit++)
                there |= (here >> bit & 1) << (RANK - 1 - bit);
            sum += in[here] * other[there];
        }
        assert_true(out[kept] == sum);
    }
}

/* Intermediate results fit exactly into the workspace that explain names. */
static void memory_is_what_explain_says(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 200; round++) {
        static problem p;
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        tn_einsum_path_info info = {.struct_size = sizeof info};
        static _Alignas(64) char workspace[1 << 20];
        roll_problem(&p, TN_F64);
        tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
        assert_int_equal(tn_einsum_path_info_get(path, &info, &err), TN_OK);
        tn_einsum_path_release(path);
        assert_true(info.workspace_bytes < sizeof workspace);
        memset(workspace, 0xFF, sizeof workspace);
        poison();
        args.workspace = info.workspace_bytes ? workspace : NULL;
        args.workspace_bytes = info.workspace_bytes;
        args.memory_limit = info.workspace_bytes;
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", p.equation, err.message);
        expect_result(&p);
        for (size_t i = info.workspace_bytes; i < sizeof workspace; i++)
            assert_int_equal(workspace[i], (char)0xFF);
    }
}

/* Dimensions that are reversed in both operands merge, so nothing is copied. */
static void reversed_dimensions_are_not_copied(void **state)
{
    static const int64_t sizes[2][4] = {{4, 5, 6, -1}, {4, 5, 7, -1}};
    const tn_tensor *const operands[] = {&pieces[0].tensor, &pieces[1].tensor};
    const double *const out = (const double *)result.memory;
    tn_einsum_path *path = NULL;
    tn_error err = {0};
    const double *last[2];
    (void)state;
    for (int32_t i = 0; i < 2; i++) {
        const int64_t strides[] = {-5 * sizes[i][2], -sizes[i][2], 1};
        (void)dense(&pieces[i], sizes[i]);
        memcpy(pieces[i].strides, strides, sizeof strides);
        pieces[i].tensor.strides = pieces[i].strides;
        pieces[i].tensor.byte_offset = (uint64_t)(19 * sizes[i][2]) * sizeof *last[i];
        last[i] = (const double *)pieces[i].memory;
    }
    (void)dense(&result, SIZES(6, 7));
    tn_einsum_args args = args_of("abk,abn->kn", operands, 2);
    assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
    assert_int_equal(tn_einsum_path_step(path, 0)->calls, 1);
    assert_non_null(strstr(tn_einsum_path_step(path, 0)->problems[0],
                           "matmul:f64:m=6,n=7,k=20,sa=1;-6,sb=-7;1"));
    assert_string_not_equal(tn_einsum_path_step(path, 0)->kernels[0], "ref.matmul");
    tn_einsum_path_release(path);
    poison();
    assert_int_equal(tn_einsum(NULL, &args, &err), TN_OK);
    for (int32_t at = 0; at < 6 * 7; at++) {
        double sum = 0;
        for (int32_t i = 0; i < 20; i++)
            sum += last[0][i * 6 + at / 7] * last[1][i * 7 + at % 7];
        assert_true(out[at] == sum);
    }
}

/* Rows or columns that are not one dimension of an operand or the result become batches, unless the matrices
 * would be too small. */
static void rows_apart_are_batches(void **state)
{
    static const struct {
        const char *equation;
        int64_t sizes[LABELS]; /* of a to g */
        bool copied;
        const char *problem;
    } cases[] = {
        /* the columns c, d of the second operand have the summed dimension between them */
        {"ab,cbd->acd", {33, 16, 3, 40}, false, "m=33,n=40,k=16,batch=3,sa=0;16;1"},
        {"ab,cbd->cda", {33, 16, 3, 40}, false, "batch=3"},
        /* rows of the result are apart */
        {"abc,bd->adc", {3, 16, 40, 36}, false, "batch=3"},
        {"abc,bd->cad", {3, 16, 40, 36}, false, "batch=3"},
        /* both are, with a batch of their own */
        {"gabc,gbd->gadc", {3, 16, 34, 33, 1, 1, 2}, false, "batch=2x3"},
        /* 12 columns are too few */
        {"ab,cbd->acd", {33, 16, 9, 12}, true, "m=33,n=108,k=16"},
        /* so are 2112 products of each matrix */
        {"ab,cbd->acd", {33, 2, 3, 32}, true, "m=33,n=96,k=2"},
    };
    static problem p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_einsum_path *path = NULL;
        tn_error err = {0};
        set_problem(TN_F64, cases[i].equation, cases[i].sizes, &p);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        if (tn_einsum_explain(NULL, &args, &path, &err))
            fail_msg("%s: %s", p.equation, err.message);
        const tn_einsum_step *step = tn_einsum_path_step(path, 0);
        const char *last = step->problems[step->calls - 1];
        if ((step->calls > 1) != cases[i].copied ||
            !strstr(cases[i].copied ? step->problems[1] : last, cases[i].problem))
            fail_msg("%s: %zu calls, of which the last is %s", p.equation, step->calls, last);
        tn_einsum_path_release(path);
        poison();
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", p.equation, err.message);
        expect_result(&p);
        expect_gaps();
    }
}

/* Devices compute one equation with different calls, and need different memory for it. */
static void plans_are_of_one_device(void **state)
{
    static tni_einsum_key keys[3];
    int64_t shape[] = {2, 3};
    tn_tensor tensors[] = {
        {.dtype = TN_F32, .ndim = 2, .shape = shape, .device_type = TN_DLPACK_CPU},
        {.dtype = TN_F32, .ndim = 2, .shape = shape}};
    const tn_einsum_args args = {.struct_size = sizeof args, .equation = "ij->ij", .count = 1};
    (void)state;
    tni_einsum_key_make(NULL, &args, 0, tensors, &keys[0]);
    tensors[0].device_id = 1;
    tni_einsum_key_make(NULL, &args, 0, tensors, &keys[1]);
    tensors[0].device_type = TN_DLPACK_CUDA;
    tni_einsum_key_make(NULL, &args, 0, tensors, &keys[2]);
    for (int i = 0; i < 2; i++) {
        assert_true(keys[i].fits && keys[i].size == keys[i + 1].size);
        assert_true(memcmp(keys[i].bytes, keys[i + 1].bytes, keys[i].size) != 0);
    }
}

/* The memory of a call and the number of its slices, as it is explained. */
static uint64_t explain_memory(const tn_einsum_args *args, double *out_slices)
{
    tn_error err = {0};
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    if (tn_einsum_explain(NULL, args, &path, &err) || tn_einsum_path_info_get(path, &info, &err))
        fail_msg("%s: %s", args->equation, err.message);
    tn_einsum_path_release(path);
    *out_slices = info.slices;
    return info.workspace_bytes;
}

/* Calls that need more memory than they may use are computed in slices, or fail if none fit. */
static void slices_fit_the_memory(void **state)
{
    static problem p;
    static _Alignas(64) char workspace[1 << 20];
    int32_t sliced = 0, refused = 0;
    (void)state;
    for (int32_t round = 0; round < (test_fewest() ? 300 : 1500); round++) {
        static const tn_dtype dtypes[] = {TN_F64, TN_C64, TN_I32, TN_F32};
        tn_error err = {0};
        double slices = 0;
        roll_problem(&p, dtypes[round % 4]);
        tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        const uint64_t whole = explain_memory(&args, &slices);
        assert_true(slices == 1 && whole < sizeof workspace);
        if (whole <= 64)
            continue;
        args.memory_limit = 64 + roll((uint32_t)whole - 64);
        const uint64_t bytes = explain_memory(&args, &slices);
        poison();
        if (bytes > args.memory_limit) {
            assert_true(slices == 1 && bytes == whole);
            assert_int_equal(tn_einsum(NULL, &args, &err), TN_OUT_OF_MEMORY);
            refused++;
            continue;
        }
        sliced += slices > 1;
        memset(workspace, 0xFF, sizeof workspace);
        args.workspace = bytes ? workspace : NULL;
        args.workspace_bytes = bytes;
        for (int call = 0; call < 2; call++) { /* the second one has the slices of the first */
            if (call)
                poison();
            if (tn_einsum(NULL, &args, &err))
                fail_msg("%s: %s", p.equation, err.message);
            expect_result(&p);
            expect_gaps();
        }
        for (size_t i = bytes; i < sizeof workspace; i++)
            assert_int_equal(workspace[i], (char)0xFF);
    }
    assert_true(sliced > 20 && refused > 0);
}

/* Every path gives the same result. */
static void paths_do_not_change_results(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 300; round++) {
        static problem p;
        int32_t path[2 * TERMS];
        tn_error err = {0};
        roll_problem(&p, TN_F64);
        for (int32_t i = 0; i < p.terms - 1; i++) {
            const uint32_t left = (uint32_t)(p.terms - i);
            path[2 * i] = (int32_t)roll(left);
            path[2 * i + 1] = (path[2 * i] + 1 + (int32_t)roll(left - 1)) % (int32_t)left;
        }
        poison();
        tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        args.path = p.terms > 1 ? path : NULL;
        args.path_count = p.terms - 1;
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", p.equation, err.message);
        expect_result(&p);
    }
}

/* An outer product of many elements is a matrix product where that needs no copies, also in batches and into a
 * transposed out. */
static void large_outer_products_are_right(void **state)
{
    static const struct {
        const char *equation;
        int64_t shapes[2][4], out[4], strides[3];
        const char *problem;
    } cases[] = {
        {"i,j->ij", {{64, -1}, {65, -1}}, {64, 65, -1}, {65, 1}, "matmul:f64"},
        {"i,j->ij", {{64, -1}, {65, -1}}, {64, 65, -1}, {1, 64}, "matmul:f64"},
        {"bi,bj->bij", {{1, 64, -1}, {1, 65, -1}}, {1, 64, 65, -1}, {4160, 65, 1}, "matmul:f64"},
        {"ki,j->kji", {{2, 40, -1}, {60, -1}}, {2, 60, 40, -1}, {2400, 40, 1}, "binary:f64"}};
    const tn_tensor *const operands[] = {&pieces[0].tensor, &pieces[1].tensor};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        (void)dense(&pieces[0], cases[i].shapes[0]);
        (void)dense(&pieces[1], cases[i].shapes[1]);
        (void)dense(&result, cases[i].out);
        memcpy(result.strides, cases[i].strides, sizeof cases[i].strides);
        result.tensor.strides = result.strides;
        const tn_einsum_args args = args_of(cases[i].equation, operands, 2);
        assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
        assert_non_null(strstr(tn_einsum_path_step(path, 0)->problems[0], cases[i].problem));
        tn_einsum_path_release(path);
        poison();
        if (tn_einsum(NULL, &args, &err))
            fail_msg("%s: %s", cases[i].equation, err.message);
        const int64_t *shape = cases[i].out, *step = cases[i].strides;
        const bool flat = shape[2] == -1, turned = i == 3;
        for (int64_t at = 0; at < shape[0] * shape[1] * (flat ? 1 : shape[2]); at++) {
            const int64_t last = at % (flat ? shape[1] : shape[2]);
            const int64_t middle = flat ? 0 : at / shape[2] % shape[1];
            const int64_t first = flat ? at / shape[1] : at / shape[2] / shape[1];
            const int64_t place =
                first * step[0] + (flat ? last : middle) * step[1] + (flat ? 0 : last) * step[2];
            const double *a = (const double *)pieces[0].memory;
            const double *b = (const double *)pieces[1].memory;
            const double x = turned ? a[first * 40 + last] : a[flat ? first : middle];
            const double y = b[turned ? middle : last];
            assert_true(((const double *)result.memory)[place] == x * y);
        }
    }
}

/* The problem and the memory of an outer product of f32. */
static void check_outer(const char *equation, const int64_t *shape, int32_t ndim, const char *begin)
{
    const tn_tensor operand = {.device_type = TN_DLPACK_CPU,
                               .dtype = TN_F32,
                               .ndim = ndim,
                               .shape = (int64_t *)(uintptr_t)shape};
    const tn_tensor *const operands[] = {&operand, &operand};
    tn_error err = {0};
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    tn_einsum_args args = args_of(equation, operands, 2);
    args.out = NULL;
    if (tn_einsum_explain(NULL, &args, &path, &err) || tn_einsum_path_info_get(path, &info, &err))
        fail_msg("%s", err.message);
    assert_int_equal(info.workspace_bytes, 0);
    const tn_einsum_step *step = tn_einsum_path_step(path, 0);
    if (step->calls != 1 || strncmp(step->problems[0], begin, strlen(begin)) != 0)
        fail_msg("%s: expected %s, got %s", equation, begin, step->problems[0]);
    tn_einsum_path_release(path);
}

/* Outer products need no memory, and do not round more where matrix products may. */
static void outer_products_need_no_memory(void **state)
{
    static const int64_t shape[] = {64, 64};
    const tn_change rounded = tn_with_fp32_precision(TN_FP32_BF16);
    tn_scope scope = {0};
    (void)state;
    check_outer("ab,cd->acbd", shape, 2, "binary:f32");
    check_outer("ab,cd->abcd", shape, 2, "matmul:f32");
    check_outer("a,b->ab", shape, 1, "matmul:f32");
    assert_int_equal(tn_scope_enter(&scope, &rounded, 1, NULL), TN_OK);
    check_outer("a,b->ab", shape, 1, "binary:f32");
    tn_scope_leave(&scope);
}

/* A product of integers that is computed in several parts. */
static void large_integers_are_computed_in_parts(void **state)
{
    enum { N = 300 };
    static int32_t a[N * N], b[N * N], c[N * N];
    int64_t shape[] = {N, N};
    (void)state;
    for (int32_t i = 0; i < N * N; i++)
        a[i] = (int32_t)roll(100) - 50, b[i] = (int32_t)roll(100) - 50;
    tn_tensor tensors[3];
    int32_t *const memory[] = {a, b, c};
    for (int32_t i = 0; i < 3; i++)
        tensors[i] = (tn_tensor){.data = memory[i],
                                 .device_type = TN_DLPACK_CPU,
                                 .ndim = 2,
                                 .dtype = TN_I32,
                                 .shape = shape};
    const tn_tensor *const operands[] = {&tensors[0], &tensors[1]};
    tn_einsum_args args = args_of("ij,jk->ik", operands, 2);
    args.out = &tensors[2];
    args.memory_limit = 33 << 20;
    tn_error err = {0};
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    for (int32_t at = 0; at < N * N; at += 7) {
        int32_t sum = 0;
        for (int32_t k = 0; k < N; k++)
            sum += a[at / N * N + k] * b[k * N + at % N];
        assert_int_equal(c[at], sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_equations_are_right),
        cmocka_unit_test(plans_are_of_one_call),
        cmocka_unit_test(plans_are_of_one_device),
        cmocka_unit_test(many_dimensions_are_supported),
        cmocka_unit_test(memory_is_what_explain_says),
        cmocka_unit_test(reversed_dimensions_are_not_copied),
        cmocka_unit_test(rows_apart_are_batches),
        cmocka_unit_test(slices_fit_the_memory),
        cmocka_unit_test(paths_do_not_change_results),
        cmocka_unit_test(large_outer_products_are_right),
        cmocka_unit_test(outer_products_need_no_memory),
        cmocka_unit_test(large_integers_are_computed_in_parts),
    };
    return run_suite("unit.einsum", tests);
}
