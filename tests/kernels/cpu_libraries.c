/* The processor's libraries against one another and against the module's own kernels, through the library's
 * front door: rules choose the kernel, everything else is as in any call. */
#include "test.h"

#include "base_isa.h"
#include "os/cpu.h"
#include "tenon/tenon.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Whose kernels are of which numbers. */
static const struct {
    const char *kernel;
    tn_dtype dtypes[2];
} rivals[] = {{"cpu.matmul.openblas", {TN_F32, TN_F64}},
              {"cpu.matmul.mkl", {TN_F32, TN_F64}},
              {"cpu.matmul.blis", {TN_F32, TN_F64}},
              {"cpu.matmul.onednn", {TN_F32}},
              {"cpu.matmul.avx512", {TN_F32, TN_F64}},
              {"cpu.matmul.avx2", {TN_F32, TN_F64}},
              {"cpu.matmul." BASE_ISA, {TN_F32, TN_F64}},
              {"cpu.matmul.onednn.bf16", {TN_BF16}},
              {"cpu.matmul.bf16.amx", {TN_BF16}},
              {"cpu.matmul.bf16.avx512_bf16", {TN_BF16}},
              {"cpu.matmul.bf16." BASE_ISA, {TN_BF16}},
              {"cpu.matmul.onednn.int8", {TN_I8}},
              {"cpu.matmul.i8.amx", {TN_I8}},
              {"cpu.matmul.i8.avx512_vnni", {TN_I8}},
              {"cpu.matmul.i8." BASE_ISA, {TN_I8}}};
enum { RIVALS = sizeof rivals / sizeof rivals[0] };

static tn_context *context_for(const char *kernel)
{
    tn_context *context = NULL;
    tn_error err;
    const tn_change change = tn_with_rule(TN_REQUIRE, kernel);
    if (tn_context_derive(NULL, &change, 1, &context, &err))
        fail_msg("%s: %s", kernel, err.message);
    return context;
}

/* Whether its library, its instructions or the row itself are not here; said once for each. */
static bool is_absent(const char *kernel, const tn_error *err)
{
    static bool said[RIVALS];
    for (size_t i = 0; i < RIVALS; i++) {
        if (strcmp(rivals[i].kernel, kernel) == 0 && !said[i]) {
            said[i] = true;
            printf("without %s: %.150s\n", kernel, err->message);
        }
    }
    return strstr(err->message, ": library: ") || strstr(err->message, ": device: ") ||
           strstr(err->message, ": rule: ");
}

typedef struct product {
    int64_t m, n, k;
    tn_dtype dtype;
    tn_tensor a, b;
} product;

static double get(const tn_tensor *tensor, int64_t i)
{
    if (tensor->dtype == TN_BF16) {
        const uint32_t bits = (uint32_t)((const uint16_t *)tensor->data)[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    switch (tensor->dtype) {
    case TN_F64: return ((const double *)tensor->data)[i];
    case TN_I8: return ((const int8_t *)tensor->data)[i];
    case TN_I32: return ((const int32_t *)tensor->data)[i];
    default: return (double)((const float *)tensor->data)[i];
    }
}

static tn_tensor make_matrix(tn_dtype dtype, int64_t rows, int64_t columns)
{
    tn_tensor tensor = {0};
    tn_device *device = NULL;
    const int64_t shape[] = {rows, columns};
    assert_int_equal(tn_device_get("cpu:0", &device, NULL), TN_OK);
    assert_int_equal(tn_tensor_create(device, dtype, shape, 2, &tensor, NULL), TN_OK);
    return tensor;
}

/* Of floats. */
static void put(tn_tensor *tensor, int64_t i, double x)
{
    if (tensor->dtype == TN_F64)
        ((double *)tensor->data)[i] = x;
    else
        ((float *)tensor->data)[i] = (float)x;
}

static void fill(tn_tensor *tensor, int64_t count)
{
    static uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        double x = (double)(state >> 8) * 0x1p-23 - 1;
        if (tensor->dtype == TN_I8)
            ((int8_t *)tensor->data)[i] = (int8_t)(state >> 24);
        else if (tensor->dtype == TN_BF16) /* 1 to 2, or -1 to -2 */
            ((uint16_t *)tensor->data)[i] = (uint16_t)(0x3f80 | (state >> 16 & 0x807f));
        else
            put(tensor, i, x);
    }
}

/* False when the kernel cannot be had here. */
static bool compute(const char *kernel, const product *p, tn_tensor *out)
{
    tn_context *context = context_for(kernel);
    tn_error err;
    tn_status status =
        tn_matmul(context, TN_ARGS(matmul, .a = &p->a, .b = &p->b, .out = out), &err);
    tn_context_release(context);
    if (status && !is_absent(kernel, &err))
        fail_msg("%s: %s", kernel, err.message);
    return status == TN_OK;
}

/* Sums of whole numbers are the same. Two sums of k products, whatever their order, differ by no more than twice the
 * bound of one. */
static void compare(const product *p, const char *first, const tn_tensor *x, const char *second,
                    const tn_tensor *y)
{
    double u = p->dtype == TN_F64 ? 0x1p-53 : p->dtype == TN_I8 ? 0 : 0x1p-24;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double bound = 0, difference = fabs(get(x, i) - get(y, i));
        for (int64_t l = 0; l < p->k && difference > 0; l++)
            bound += fabs(get(&p->a, i / p->n * p->k + l) * get(&p->b, l * p->n + i % p->n));
        if (difference > 2 * (double)(p->k + 2) * u * bound)
            fail_msg("element %lld of %lld x %lld x %lld: %s has %.9g, %s %.9g", (long long)i,
                     (long long)p->m, (long long)p->n, (long long)p->k, first, get(x, i), second,
                     get(y, i));
    }
}

static void check_product(int64_t m, int64_t n, int64_t k, tn_dtype dtype)
{
    product p = {m, n, k, dtype, make_matrix(dtype, m, k), make_matrix(dtype, k, n)};
    const tn_dtype out = dtype == TN_I8 ? TN_I32 : dtype == TN_BF16 ? TN_F32 : dtype;
    tn_tensor first = make_matrix(out, m, n), other = make_matrix(out, m, n);
    const char *name = NULL;
    fill(&p.a, m * k);
    fill(&p.b, k * n);
    for (size_t i = 0; i < RIVALS; i++) {
        if (rivals[i].dtypes[0] != dtype && rivals[i].dtypes[1] != dtype)
            continue;
        if (!name && compute(rivals[i].kernel, &p, &first))
            name = rivals[i].kernel;
        else if (name && compute(rivals[i].kernel, &p, &other))
            compare(&p, name, &first, rivals[i].kernel, &other);
    }
    assert_non_null(name);
    tn_tensor_release(&p.a);
    tn_tensor_release(&p.b);
    tn_tensor_release(&first);
    tn_tensor_release(&other);
}

static void libraries_agree_with_one_another(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 37, 64},   {64, 1, 33},  {16, 16, 16},
                                        {33, 17, 65}, {128, 96, 80}, {300, 5, 11}, {257, 130, 70}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_product(shapes[i][0], shapes[i][1], shapes[i][2], TN_F32);
        check_product(shapes[i][0], shapes[i][1], shapes[i][2], TN_F64);
    }
}

/* Of k that all of them take. */
static void narrow_products_agree_too(void **state)
{
    static const int64_t shapes[][3] = {
        {1, 37, 64}, {64, 1, 32}, {33, 17, 96}, {128, 96, 160}, {257, 130, 1024}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_product(shapes[i][0], shapes[i][1], shapes[i][2], TN_BF16);
        check_product(shapes[i][0], shapes[i][1], shapes[i][2], TN_I8);
    }
}

/* Subnormal operands and sums count in all of them: nobody leaves the processor so that they are 0. */
static void subnormal_numbers_count(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        const tn_dtype dtype = turn ? TN_F64 : TN_F32;
        product p = {33, 40, 70, dtype, make_matrix(dtype, 33, 70), make_matrix(dtype, 70, 40)};
        tn_tensor out = make_matrix(dtype, 33, 40);
        const double tiny =
            turn ? 0x1p-1060 : 0x1p-140; /* of which 70 are less than the least normal one */
        for (int64_t i = 0; i < 33 * 70; i++)
            put(&p.a, i, tiny);
        for (int64_t i = 0; i < 70 * 40; i++)
            put(&p.b, i, 1);
        for (size_t i = 0; i < RIVALS; i++) {
            if (rivals[i].dtypes[0] != dtype && rivals[i].dtypes[1] != dtype)
                continue;
            if (!compute(rivals[i].kernel, &p, &out))
                continue;
            for (int64_t e = 0; e < 33 * 40; e++) {
                if (get(&out, e) != 70 * tiny)
                    fail_msg("%s: %g is not %g", rivals[i].kernel, get(&out, e), 70 * tiny);
            }
        }
        tn_tensor_release(&p.a);
        tn_tensor_release(&p.b);
        tn_tensor_release(&out);
    }
}

static tn_library_state tried(const char *name)
{
    const tn_library *library = NULL;
    tn_library_state found = {.struct_size = sizeof found};
    tn_error err;
    assert_int_equal(tn_library_get(name, &library, NULL), TN_OK);
    if (tn_library_try(library, &err))
        skip_because("%s", err.message);
    assert_int_equal(tn_library_state_get(library, NULL, &found, NULL), TN_OK);
    return found;
}

/* Whatever it takes itself, and whatever is not known to it. */
static void openblas_uses_what_this_processor_has(void **state)
{
    static const char *const slow[] = {" Prescott ", " Core2 ",  " Nehalem ",
                                       " Penryn ",   " Katmai ", " Dunnington "};
    tn_library_state found = tried("openblas");
    char text[sizeof found.version_text + 2];
    (void)state;
    if (getenv("OPENBLAS_CORETYPE") || !strstr(found.version_text, "DYNAMIC_ARCH") ||
        (tni_cpu_features() & (TN_CPU_BIT(AVX2) | TN_CPU_BIT(FMA))) !=
            (TN_CPU_BIT(AVX2) | TN_CPU_BIT(FMA)))
        skip_because("its kernels are given, or this processor has no AVX2");
    snprintf(text, sizeof text, "%s ", found.version_text);
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
        assert_null(strstr(text, slow[i]));
}

/* What a call prints to the standard output. */
static void run_talking(const char *kernel, const tn_change *talk, char *out, size_t size)
{
    char path[] = "/tmp/tenon-test-XXXXXX";
    product p = {8, 8, 8, TN_F32, make_matrix(TN_F32, 8, 8), make_matrix(TN_F32, 8, 8)};
    tn_tensor result = make_matrix(TN_F32, 8, 8);
    const tn_change changes[] = {tn_with_rule(TN_REQUIRE, kernel), *talk};
    tn_context *context = NULL;
    fill(&p.a, 64);
    fill(&p.b, 64);
    assert_int_equal(tn_context_derive(NULL, changes, 2, &context, NULL), TN_OK);
    (void)fflush(stdout);
    int before = dup(STDOUT_FILENO), file = mkstemp(path);
    assert_true(before >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    tn_status status =
        tn_matmul(context, TN_ARGS(matmul, .a = &p.a, .b = &p.b, .out = &result), NULL);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    (void)close(before);
    ssize_t length = pread(file, out, size - 1, 0);
    out[length > 0 ? length : 0] = '\0';
    (void)close(file);
    (void)unlink(path);
    assert_int_equal(status, TN_OK);
    tn_context_release(context);
    tn_tensor_release(&p.a);
    tn_tensor_release(&p.b);
    tn_tensor_release(&result);
}

static void check_talk(const char *kernel, const tn_change *on, const tn_change *off,
                       const char *says)
{
    static char text[65536];
    run_talking(kernel, off, text, sizeof text); /* also tests and plans, where that is due */
    run_talking(kernel, off, text, sizeof text);
    assert_string_equal(text, "");
    run_talking(kernel, on, text, sizeof text);
    assert_contains(text, says);
    run_talking(kernel, off, text, sizeof text);
    assert_string_equal(text, "");
}

static void mkl_talks_when_its_setting_says_so(void **state)
{
    const tn_change on = tn_with_mkl_verbose(TN_VERBOSE_ON), off = tn_with_mkl_verbose(0);
    (void)state;
    (void)tried("mkl");
    if (getenv("MKL_VERBOSE"))
        skip_because("MKL_VERBOSE has the say");
    check_talk("cpu.matmul.mkl", &on, &off, "MKL_VERBOSE SGEMM(");
}

static void onednn_talks_when_its_setting_says_so(void **state)
{
    const tn_change on = tn_with_mkldnn_verbose(TN_VERBOSE_ON), off = tn_with_mkldnn_verbose(0);
    (void)state;
    (void)tried("mkldnn");
    if (getenv("ONEDNN_VERBOSE") || getenv("DNNL_VERBOSE"))
        skip_because("a variable has the say");
    check_talk("cpu.matmul.onednn", &on, &off, "exec,cpu,matmul,");
}

/* `tenon explain` in C: why the row that rounds is not taken, and when it is. */
static void precision_decides_whether_onednn_rounds(void **state)
{
    static const char problem[] = "matmul:f32:m=64,n=64,k=64@cpu:0";
    tn_error err;
    (void)state;
    (void)tried("mkldnn");
    for (int32_t allowed = 0; allowed < 2; allowed++) {
        const tn_change change =
            tn_with_mkldnn_matmul_fp32_precision(allowed ? TN_FP32_BF16 : TN_FP32_TF32);
        tn_context *context = NULL;
        tn_decision *decision = NULL;
        bool found = false;
        assert_int_equal(tn_context_derive(NULL, &change, 1, &context, NULL), TN_OK);
        assert_int_equal(tn_explain(context, problem, &decision, &err), TN_OK);
        for (size_t i = 0; i < tn_decision_count(decision); i++) {
            const tn_candidate *c = tn_decision_candidate(decision, i);
            if (strcmp(c->kernel, "cpu.matmul.onednn.rounded") != 0)
                continue;
            found = true;
            assert_int_equal(c->why && c->why->code == TN_REFUSE_PRECISION, !allowed);
        }
        assert_true(found);
        tn_decision_release(decision);
        tn_context_release(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_agree_with_one_another),
        cmocka_unit_test(narrow_products_agree_too),
        cmocka_unit_test(subnormal_numbers_count),
        cmocka_unit_test(openblas_uses_what_this_processor_has),
        cmocka_unit_test(mkl_talks_when_its_setting_says_so),
        cmocka_unit_test(onednn_talks_when_its_setting_says_so),
        cmocka_unit_test(precision_decides_whether_onednn_rounds),
    };
    return run_suite("kernels.cpu_libraries", tests);
}
