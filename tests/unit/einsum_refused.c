/* einsum: equations and arguments, accepted and refused. */
#include "einsum_cases.h"

#include <time.h>

static void expect_shape(const char *equation, const tn_tensor *const *operands, int32_t count,
                         const int64_t *sizes)
{
    tn_error err = {0};
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t ndim;
    const tn_einsum_args args = args_of(equation, operands, count);
    if (tn_einsum_shape(&args, shape, &ndim, &err))
        fail_msg("%s: %s", equation, err.message);
    for (int32_t i = 0; i < ndim; i++)
        assert_int_equal(shape[i], sizes[i]);
    assert_int_equal(sizes[ndim], -1);
}

static void shapes_follow_from_equations(void **state)
{
    (void)state;
    const tn_tensor *const two[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4))};
    const tn_tensor *const wide[] = {dense(&pieces[2], SIZES(5, 1, 2, 3)),
                                     dense(&pieces[3], SIZES(7, 3, 4))};
    expect_shape("ij,jk", two, 2, SIZES(2, 4));
    expect_shape("ba,ac", two, 2, SIZES(2, 4));
    expect_shape("za,aB", two, 2, SIZES(4, 2)); /* capitals come first */
    expect_shape(" i j , j k -> k i ", two, 2, SIZES(4, 2));
    expect_shape("ij,jk->", two, 2, (const int64_t[]){-1});
    expect_shape("...ij,...jk", wide, 2, SIZES(5, 7, 2, 4));
    expect_shape("...ij,...jk->i...k", wide, 2, SIZES(2, 5, 7, 4));
    expect_shape("...ij,...jk->ik", wide, 2, SIZES(2, 4));
    expect_shape("\xC3\x80\xCE\xB2,\xCE\xB2j->\xC3\x80", two, 2, SIZES(2));
}

/* Fails with a message that has `words`, and writes nothing. */
static void expect_refused(const tn_einsum_args *args, tn_status expected, const char *words)
{
    tn_error err = {0};
    poison();
    const tn_status status = tn_einsum(NULL, args, &err);
    if (status != expected || !strstr(err.message, words))
        fail_msg("%s: expected \"%s\", got status %d: %s",
                 args && args->equation ? args->equation : "NULL", words, (int)status, err.message);
    for (size_t i = 0; i < ROOM; i++)
        assert_int_equal(result.memory[i], (char)0xFF);
}

static void expect_equation(const char *equation, const tn_tensor *const *operands, int32_t count,
                            const char *words)
{
    const tn_einsum_args args = args_of(equation, operands, count);
    expect_refused(&args, TN_INVALID_ARGUMENT, words);
}

static void wrong_equations_are_refused(void **state)
{
    (void)state;
    const tn_tensor *const two[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4)),
                                    NULL};
    dense(&result, SIZES(2, 4));
    expect_refused(NULL, TN_INVALID_ARGUMENT, "args is NULL");
    expect_equation(NULL, two, 2, "args->equation is NULL");
    expect_equation("ij,jk->ik", NULL, 2, "args->operands is NULL");
    expect_equation("ij,jk->ik", two, 0, "expected 1 to 4096 operands, got 0");
    expect_equation("ij,jk->ik", two, -1, "expected 1 to 4096 operands, got -1");
    expect_equation("ij,jk,kl->ik", two, 3, "operand 2: the tensor is NULL");
    expect_equation("ij,jk,kl->ik", two, 2, "\"ij,jk,kl->ik\": expected 3 operands, got 2");
    expect_equation("ij->ij", two, 2, "\"ij->ij\": expected 1 operands, got 2");
    expect_equation("i,jk->ik", two, 2, "operand 0 has 2 dimensions, and its part of");
    expect_equation("ijk...,jk->ik", two, 2, "operand 0 has 2 dimensions");
    expect_equation("i1,jk->ik", two, 2,
                    "expected a letter, '...', ',' or '->' at byte 1, got '1'");
    expect_equation("ij.,jk->ik", two, 2, "at byte 2, got '.'");
    expect_equation("ij,jk-ik", two, 2, "at byte 5, got '-'");
    expect_equation("i\xFF,jk->ik", two, 2, "at byte 1, got an invalid byte");
    expect_equation("......ij,jk->ik", two, 2, "\"...\" is twice in");
    expect_equation("ij,jk->ik,k", two, 2, "expected the end after the labels of out, got ','");
    expect_equation("ij,jk->ik->k", two, 2, "expected the end after the labels of out, got '->'");
    expect_equation("ij,jk->il", two, 2, "label 'l' of out is in no operand");
    expect_equation("ij,jk->ii", two, 2, "label 'i' is twice in out");
    expect_equation("ij,ik->jk", two, 2,
                    "label 'i': expected one size, or 1 to broadcast, got 2 in operand 0 and 3 in "
                    "operand 1");
    expect_equation("...,...", two, 2,
                    "dimension -2 of '...': expected one size, or 1 to broadcast, got 2 in operand "
                    "0 and 3 in operand 1");
    expect_equation("ii,jk->ik", two, 2,
                    "label 'i' is repeated in operand 0: expected equal sizes, got 2 in dimension "
                    "0 and 3 in dimension 1");
    expect_equation("ij,jk->ki", two, 2, "out: dimension 0: expected size 4, got 2");
    expect_equation("ij,jk->i", two, 2, "out: expected 1 dimensions, got 2");
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    const tn_tensor *operands[] = {dense(&pieces[0], SIZES(2, 3)), dense(&pieces[1], SIZES(3, 4)),
                                   dense(&pieces[2], SIZES(4, 5))};
    const int32_t path[] = {0, 1, 0, 2};
    dense(&result, SIZES(2, 5));
    tn_einsum_args args = args_of("ij,jk,kl->il", operands, 3);
    args.strategy = "gredy";
    expect_refused(&args, TN_INVALID_ARGUMENT, "did you mean greedy?");
    args.strategy = NULL;
    args.path = path;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 2 pairs for 3 operands, got 0");
    args.path_count = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 2 pairs for 3 operands, got 1");
    args.path = NULL;
    expect_refused(&args, TN_INVALID_ARGUMENT, "path_count is 1, and path is NULL");
    args.path = path;
    args.path_count = 2;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "path[1]: expected two different positions below 2, got 0 and 2");
    args = args_of("ij,jk,kl->il", operands, 3);
    args.workspace_bytes = 64;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "expected both workspace and workspace_bytes, or neither; got NULL and 64");
    args.workspace_bytes = 0;
    args.workspace = &result;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "expected both workspace and workspace_bytes, or neither; got memory and 0");
    args.workspace = NULL;
    args.memory_limit = 63;
    expect_refused(&args, TN_OUT_OF_MEMORY, "and memory_limit is 63");
    args.memory_limit = 0;
    args.workspace = pieces[3].memory;
    args.workspace_bytes = 63;
    expect_refused(&args, TN_INVALID_ARGUMENT, "bytes aligned to 64, got 63 bytes at");
    args.struct_size = 8;
    expect_refused(&args, TN_INVALID_ARGUMENT, "args->struct_size: expected at least");
    args = args_of("ij,jk,kl->il", operands, 3);
    result.tensor.flags = TN_TENSOR_READ_ONLY;
    expect_refused(&args, TN_REFUSED, "out: the tensor is read-only");
    dense(&result, SIZES(2, 5));
    result.tensor.strides = result.strides;
    result.strides[0] = 1, result.strides[1] = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "out: several elements have the same address");
    dense(&result, SIZES(2, 5));
    pieces[2].tensor.data = result.memory + 24;
    expect_refused(&args, TN_INVALID_ARGUMENT, "operand 2 shares memory with out");
    (void)dense(&pieces[2], SIZES(4, 5));
    pieces[1].tensor.dtype = TN_F32;
    expect_refused(&args, TN_INVALID_ARGUMENT,
                   "operand 1: expected the dtype of operand 0, f64, got f32");
    for (int32_t i = 0; i < 3; i++)
        pieces[i].tensor.dtype = TN_BOOL;
    result.tensor.dtype = TN_BOOL;
    expect_refused(&args, TN_UNSUPPORTED, "expected f64, f32, f16, bf16, c64, c128 or integers");
}

/* Equations and paths of one operand: a path without pairs is as good as none. */
static void one_operand_has_a_path_without_pairs(void **state)
{
    (void)state;
    const tn_tensor *const operands[] = {dense(&pieces[0], SIZES(2, 3))};
    const int32_t path[] = {0, 0};
    tn_error err = {0};
    dense(&result, SIZES(3, 2));
    tn_einsum_args args = args_of("ij->ji", operands, 1);
    args.path = path;
    if (tn_einsum(NULL, &args, &err))
        fail_msg("%s", err.message);
    args.path_count = 1;
    expect_refused(&args, TN_INVALID_ARGUMENT, "expected 0 pairs for 1 operands, got 1");
}

/* Strides that end just inside the addresses are not computed with beyond them. */
static void largest_strides_are_explained(void **state)
{
    static int64_t strides[][2] = {{INT64_C(1) << 62, -(INT64_C(1) << 62)},
                                   {-(INT64_C(1) << 62), INT64_C(1) << 62},
                                   {INT64_C(1) << 62, 1}};
    static const char *const equations[] = {"ab->ab", "ab->ba", "ab->a", "ab->", "aa->a"};
    int64_t shape[] = {2, 2};
    (void)state;
    for (size_t i = 0; i < 3 * 5; i++) {
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        tn_tensor tensor = {.device_type = TN_DLPACK_CPU,
                            .ndim = 2,
                            .dtype = TN_I8,
                            .shape = shape,
                            .strides = strides[i / 5]};
        const tn_tensor *const operands[] = {&tensor};
        tn_einsum_args args = args_of(equations[i % 5], operands, 1);
        args.out = NULL;
        if (tn_einsum_explain(NULL, &args, &path, &err))
            fail_msg("%s: %s", equations[i % 5], err.message);
        tn_einsum_path_release(path);
    }
}

/* A limit that no slices fit in is found without a search of slices. */
static void hopeless_limits_fail_soon(void **state)
{
    enum { COUNT = 200, BYTES = 5 };
    static char equation[COUNT * BYTES + 3];
    const tn_tensor *operands[COUNT];
    const clock_t begin = clock();
    (void)state;
    for (int i = 0; i < COUNT; i++) { /* a ring; labels are U+0100 to U+01C7 */
        const int labels[] = {0x100 + i, 0x100 + (i + 1) % COUNT};
        for (int k = 0; k < 2; k++) {
            equation[BYTES * i + 2 * k] = (char)(0xC0 | labels[k] >> 6);
            equation[BYTES * i + 2 * k + 1] = (char)(0x80 | (labels[k] & 63));
        }
        equation[BYTES * i + 4] = ',';
        operands[i] = dense(&pieces[0], SIZES(8, 8));
    }
    memcpy(equation + COUNT * BYTES - 1, "->", 3);
    dense(&result, SIZES(1));
    result.tensor.ndim = 0;
    tn_einsum_args args = args_of(equation, operands, COUNT);
    args.memory_limit = 1;
    args.strategy = "greedy";
    expect_refused(&args, TN_OUT_OF_MEMORY, "which no slices fit in");
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 3)
        fail_msg("expected at most 3 s of processor time, got %g s", seconds);
}

/* Slices whose results are added need a kernel that adds: its call is one of the last step, and without one no
 * summed label is divided. */
static void sums_of_slices_are_explained(void **state)
{
    const tn_tensor *const operands[] = {dense(&pieces[0], SIZES(16, 16)),
                                         dense(&pieces[1], SIZES(16, 16)),
                                         dense(&pieces[2], SIZES(16, 16))};
    const tn_change changes[] = {tn_with_rules(TN_FORBID, "binary/platform:cpu")};
    tn_einsum_args args = args_of("ab,bc,cd->", operands, 3);
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    tn_error err = {0};
    tn_scope scope = {0};
    (void)state;
    dense(&result, SIZES(1));
    result.tensor.ndim = 0;
    args.memory_limit = 192;
    args.strategy = "left";
    if (tn_einsum_explain(NULL, &args, &path, &err) || tn_einsum_path_info_get(path, &info, &err))
        fail_msg("%s", err.message);
    assert_true(info.slices > 1);
    const tn_einsum_step *last = tn_einsum_path_step(path, info.steps - 1);
    assert_true(last->calls > 0);
    assert_true(strncmp(last->problems[last->calls - 1], "binary:f64", 10) == 0);
    tn_einsum_path_release(path);
    assert_int_equal(tn_einsum(NULL, &args, &err), TN_OK);
    assert_int_equal(tn_scope_enter(&scope, changes, 1, &err), TN_OK);
    expect_refused(&args, TN_OUT_OF_MEMORY, "which no slices fit in");
    tn_scope_leave(&scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_from_equations),
        cmocka_unit_test(wrong_equations_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(one_operand_has_a_path_without_pairs),
        cmocka_unit_test(largest_strides_are_explained),
        cmocka_unit_test(hopeless_limits_fail_soon),
        cmocka_unit_test(sums_of_slices_are_explained),
    };
    return run_suite("unit.einsum_refused", tests);
}
