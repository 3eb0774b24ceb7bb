/* The settings that the seeds of this project name, each by its own name: what it is at first, that a
 * scope changes it for its thread and no longer than it lasts, and that the process can be told too. */
#include "tenon/tenon.h"
#include "test.h"

typedef struct seed {
    tn_setting setting;
    const char *key;
    const char *first; /* as upstream has it, or as the migration page says why not */
    const char *other;
} seed;

static void assert_text(tn_setting setting, const char *expected)
{
    char text[64];
    tn_setting_write(NULL, setting, text, sizeof text);
    assert_string_equal(text, expected);
}

static void set_text(const char *key, const char *value)
{
    char text[128];
    tn_error err = {0};
    snprintf(text, sizeof text, "%s=%s", key, value);
    if (tn_settings_set(text, &err))
        fail_msg("%s: %s", text, err.message);
}

static void follow(const seed *row)
{
    char text[128];
    tn_change change;
    tn_scope scope = {0};
    tn_setting found;
    assert_int_equal(tn_setting_get(row->key, &found, NULL), TN_OK);
    assert_int_equal(found, row->setting);
    assert_text(row->setting, row->first);
    snprintf(text, sizeof text, "%s=%s", row->key, row->other);
    assert_int_equal(tn_setting_parse(text, &change, NULL), TN_OK);
    assert_int_equal(tn_scope_enter(&scope, &change, 1, NULL), TN_OK);
    assert_text(row->setting, row->other);
    tn_scope_leave(&scope);
    assert_text(row->setting, row->first);
    set_text(row->key, row->other);
    assert_text(row->setting, row->other);
    assert_int_equal(tn_settings_reset(row->key, NULL), TN_OK);
    assert_text(row->setting, row->first);
}

static void switches_of_torch_backends(void **state)
{
    static const seed rows[] = {
        {TN_SETTING_CUDA_MATMUL_ALLOW_TF32, "cuda.matmul.allow_tf32", "false", "true"},
        {TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION,
         "cuda.matmul.allow_fp16_reduced_precision_reduction", "true", "false"},
        {TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION,
         "cuda.matmul.allow_bf16_reduced_precision_reduction", "true", "false"},
        {TN_SETTING_CUDA_CUFFT_PLAN_CACHE_MAX_SIZE, "cuda.cufft_plan_cache.max_size", "4096", "7"},
        {TN_SETTING_CUDA_PREFERRED_BLAS_LIBRARY, "cuda.preferred_blas_library", "default",
         "cublaslt"},
        {TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY, "cuda.preferred_rocm_fa_library", "default",
         "ck"},
        {TN_SETTING_CUDA_PREFERRED_LINALG_LIBRARY, "cuda.preferred_linalg_library", "default",
         "magma"},
        {TN_SETTING_CUDNN_ENABLED, "cudnn.enabled", "true", "false"},
        {TN_SETTING_CUDNN_ALLOW_TF32, "cudnn.allow_tf32", "true", "false"},
        {TN_SETTING_CUDNN_DETERMINISTIC, "cudnn.deterministic", "false", "true"},
        {TN_SETTING_CUDNN_BENCHMARK, "cudnn.benchmark", "false", "true"},
        {TN_SETTING_CUDNN_BENCHMARK_LIMIT, "cudnn.benchmark_limit", "10", "0"},
        {TN_SETTING_MIOPEN_IMMEDIATE, "miopen.immediate", "false", "true"},
        {TN_SETTING_OPT_EINSUM_ENABLED, "opt_einsum.enabled", "true", "false"},
        {TN_SETTING_OPT_EINSUM_STRATEGY, "opt_einsum.strategy", "auto", "greedy"},
        {TN_SETTING_QUANTIZED_ENGINE, "quantized.engine", "default", "onednn"},
        {TN_SETTING_MKL_VERBOSE, "mkl.verbose", "off", "on"},
        {TN_SETTING_MKLDNN_VERBOSE, "mkldnn.verbose", "off", "creation"},
        {TN_SETTING_NNPACK_ENABLED, "nnpack.enabled", "true", "false"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        follow(&rows[i]);
    assert_int_equal(sizeof rows / sizeof rows[0], 19);
}

static void inference_mode_is_a_scope(void **state)
{
    tn_scope scope = {0};
    const tn_platform *platform = NULL;
    (void)state;
    assert_int_equal(tn_platform_get("cpu", &platform, NULL), TN_OK);
    assert_int_equal(tn_platform_inference_mode(platform), 0);
    assert_int_equal(tn_scope_enter(&scope, TN_CHANGES(tn_with_inference(1)), NULL), TN_OK);
    assert_int_equal(tn_platform_inference_mode(platform), 1);
    tn_scope_leave(&scope);
    assert_int_equal(tn_platform_inference_mode(platform), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_of_torch_backends),
        cmocka_unit_test(inference_mode_is_a_scope),
    };
    return run_suite("unit.settings_seeds", tests);
}
