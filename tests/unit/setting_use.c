/* What settings can change with the modules that are loaded. Stand-in kernels that depend on everything show
 * that no setting claims a reader in vain. */
#include "settings_check.h"

#include "tenon/module/kernel.h"
#include "tenon/module/library.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/fft.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/unary.h"

static tn_setting_use use_of(const char *key)
{
    tn_setting_use use = {.struct_size = sizeof use};
    tn_setting setting;
    tn_error err;
    assert_int_equal(tn_setting_get(key, &setting, &err), TN_OK);
    if (tn_setting_use_get(setting, &use, &err))
        fail_msg("%s", err.message);
    assert_int_equal(use.used, use.readers != 0);
    assert_int_equal(use.used, use.reason[0] == '\0');
    return use;
}

static const char *reason_of(const char *key)
{
    static tn_setting_use use;
    use = use_of(key);
    return use.reason;
}

/* What holds for Tenon's own modules on every machine. */
static void settings_without_an_effect_say_why(void **state)
{
    static const char *const no_operator[] = {"cudnn.benchmark", "quantized.engine",
                                              "cudnn.allow_tf32", "mha.fastpath_enabled"};
    (void)state;
    for (size_t i = 0; i < sizeof no_operator / sizeof no_operator[0]; i++)
        assert_string_equal(reason_of(no_operator[i]),
                            "this version has no operator that reads it");
    assert_string_equal(reason_of("cuda.preferred_rocm_fa_library"),
                        "no loaded module uses aotriton or ck; a module for rocm could");
    assert_string_equal(reason_of("miopen.immediate"),
                        "no loaded module uses miopen; a module for rocm could");
    assert_string_equal(reason_of("nnpack.enabled"),
                        "no loaded module uses nnpack; a module for cpu could");
    assert_string_equal(reason_of("mkldnn.deterministic"),
                        "no kernel of the loaded modules depends on it");
    assert_true(use_of("cpu.threads").used);
    assert_true(use_of("plan.cache_size").used);
    assert_true(use_of("rules").used);
    assert_true(use_of("matmul.library").used);
    assert_true(use_of("fft.library").used);
    assert_true(use_of("cuda.flash_sdp").used); /* the CPU has flash kernels */
    assert_true(use_of("cuda.sdp_priority").used);
}

static void readers_are_those_that_are_affected(void **state)
{
    tn_setting_use use = use_of("mkldnn.enabled");
    (void)state;
    /* matmul is the only operator with kernels of oneDNN. */
    assert_string_equal(tn_setting_reader(TN_SETTING_MKLDNN_ENABLED, 0), "libraries");
    assert_int_equal(use.readers, 1);
    use = use_of("cudnn.deterministic");
    for (size_t i = 0; tn_setting_reader(TN_SETTING_CUDNN_DETERMINISTIC, i); i++) {
        const char *reader = tn_setting_reader(TN_SETTING_CUDNN_DETERMINISTIC, i);
        assert_int_equal(use.readers >> i & 1, strcmp(reader, "attention conditions") == 0);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    tn_setting_use use = {.struct_size = 8, .used = 7};
    tn_error err;
    (void)state;
    assert_int_equal(tn_setting_use_get(0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_use_get(0, &use, &err), TN_INVALID_ARGUMENT);
    use.struct_size = sizeof use;
    assert_int_equal(tn_setting_use_get(-1, &use, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_use_get(TN_SETTING_COUNT, &use, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "expected a setting from 0 to");
    assert_int_equal(use.used, 7);
}

static tn_status run(const tn_run *r, tn_error *err)
{
    (void)r, (void)err;
    return TN_OK;
}

static tn_status speak(void *self, int32_t level, tn_error *err)
{
    (void)self, (void)level, (void)err;
    return TN_OK;
}

/* Kernels of each group of operators, through each library, under every name of attention's backends.
 * Their numerics need permissions and promise nothing. What is forbidden by default hides every other
 * setting, so that some kernels need one permission or none. */
#define NUMERICS (TN_NUM_ROUNDS_F32_TF32 | TN_NUM_REDUCED_REDUCTION | TN_NUM_SPLIT_SUMS)
static const struct {
    const char *platform, *library, *backend;
    uint64_t numerics;
} variants[] = {
    {"cuda", "cublas", "flash", NUMERICS},
    {"cuda", "cublaslt", "mem_efficient", NUMERICS},
    {"cuda", "cudnn", "cudnn", NUMERICS},
    {"cuda", "nvrtc", "math", TN_NUM_F16_SUMS},
    {"cuda", "cufft", "math", 0},
    {"rocm", "ck", "flash", NUMERICS},
    {"rocm", "aotriton", "overrideable", NUMERICS},
    {"rocm", "miopen", "math", NUMERICS},
    {"opencl", "mkldnn", "math", NUMERICS},
    {"opencl", "mkl", "flash", NUMERICS},
    {"opencl", "nnpack", "flash", NUMERICS},
    {"opencl", NULL, "mem_efficient", NUMERICS},
    {"cuda", "cudnn", "cudnn", 0},
    {"opencl", "mkldnn", "math", 0},
};
static const int32_t operators[] = {TN_OP_MATMUL, TN_OP_ATTENTION, TN_OP_UNARY, TN_OP_FFT};
enum {
    VARIANTS = sizeof variants / sizeof variants[0],
    OPERATORS = sizeof operators / sizeof operators[0]
};

static const tn_library_row mkl = {.struct_size = sizeof mkl,
                                   .name = "mkl",
                                   .platform = "opencl",
                                   .remedy = "load the stand-in",
                                   .verbose_setting = "mkl.verbose",
                                   .verbose = speak};
static const tn_library_row mkldnn = {.struct_size = sizeof mkldnn,
                                      .name = "mkldnn",
                                      .platform = "opencl",
                                      .remedy = "load the stand-in",
                                      .verbose_setting = "mkldnn.verbose",
                                      .verbose = speak};
static const tn_library_row *const libraries[] = {&mkl, &mkldnn, NULL};
static tn_kernel_row rows[VARIANTS * OPERATORS];
static const tn_kernel_row *kernels[VARIANTS * OPERATORS + 1];
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stand-in",
                                 .version = "1",
                                 .libraries = libraries,
                                 .kernels = kernels};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void load_stand_ins(void)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16, 0};
    static char names[VARIANTS * OPERATORS][40];
    static tn_registration *registration;
    tn_error err;
    for (size_t i = 0; i < VARIANTS * OPERATORS; i++) {
        const size_t v = i % VARIANTS;
        snprintf(names[i], sizeof names[i], "%s.stand-in.n%zu", variants[v].platform, i);
        rows[i] = (tn_kernel_row){.struct_size = sizeof rows[i],
                                  .name = names[i],
                                  .platform = variants[v].platform,
                                  .library = variants[v].library,
                                  .backend = variants[v].backend,
                                  .op = operators[i / VARIANTS],
                                  .version = 1,
                                  .dtypes = dtypes,
                                  .numerics = variants[v].numerics,
                                  .flops_per_us = 1,
                                  .bytes_per_us = 1,
                                  .run = run};
        kernels[i] = &rows[i];
    }
    if (tn_module_register(entry, 0, &registration, &err))
        fail_msg("%s", err.message);
}

/* Must be the last test: the stand-ins stay. */
static void no_reader_is_claimed_in_vain(void **state)
{
    (void)state;
    load_stand_ins();
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_use use = use_of(key_of(i));
        for (size_t r = 0; tn_setting_reader(i, r); r++) {
            if (!(use.readers >> r & 1))
                fail_msg("%s claims to be read by %s, but changes nothing there", key_of(i),
                         tn_setting_reader(i, r));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_without_an_effect_say_why),
        cmocka_unit_test(readers_are_those_that_are_affected),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(no_reader_is_claimed_in_vain),
    };
    forget_settings();
    return run_suite("unit.setting_use", tests);
}
