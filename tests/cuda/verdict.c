/* Why there is no device: each cause has its own words, and says what helps. */
#include "test.h"

#include "../../backends/cuda/platform/verdict.h"
#include "listing.h"

static cu_result no_words(cu_result code, const char **out)
{
    (void)code, (void)out;
    return CUDA_ERROR_INVALID_VALUE;
}

static const cuda_driver driver = {.error_name = no_words, .error_text = no_words};
static const cuda_surroundings plain = {.has_nodes = 1};
static const cuda_surroundings bare = {.has_nodes = 0};

static const char *remedy;

/* The message and the remedy, each with its own words, and none twice. */
static void says(tn_status status, tn_status expected, const tn_error *err, const char *words,
                 const char *helps)
{
    assert_int_equal(status, expected);
    assert_int_equal(err->status, expected);
    if (!strstr(err->message, words))
        fail_msg("\"%s\" does not say \"%s\"", err->message, words);
    if (!strstr(remedy, helps))
        fail_msg("the remedy of \"%s\" is \"%s\" and not \"%s\"", err->message, remedy, helps);
    assert_null(strstr(err->message, remedy));
    assert_in_range(strlen(remedy), 1, 255); /* as much as a host keeps */
    remedy = "untold";
}

static void the_driver_s_results_are_told_apart(void **state)
{
    static const struct {
        cu_result code;
        tn_status status;
        const char *words, *helps;
    } cases[] = {
        {CUDA_ERROR_NO_DEVICE, TN_UNAVAILABLE, "shows no NVIDIA GPU", "nvidia-smi"},
        {CUDA_ERROR_STUB_LIBRARY, TN_INCOMPATIBLE, "toolkit's stub", "before the stub's in"},
        {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, TN_INCOMPATIBLE, "different versions", "machine anew"},
        {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, TN_INCOMPATIBLE, "compatibility package",
         "off LD_LIBRARY_PATH"},
        {CUDA_ERROR_SYSTEM_NOT_READY, TN_UNAVAILABLE, "not ready", "nvidia-fabricmanager"},
        {CUDA_ERROR_UNKNOWN, TN_UNAVAILABLE, "does not say why", "nvidia-smi"},
        {CUDA_ERROR_OUT_OF_MEMORY, TN_OUT_OF_MEMORY, "(2)", "nvidia-smi"},
    };
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_status status = cuda_verdict_driver(&driver, cases[i].code, &plain, NULL, &remedy, &err);
        says(status, cases[i].status, &err, cases[i].words, cases[i].helps);
        assert_int_equal(err.native_code, cases[i].code);
    }
}

static const cuda_surroundings wsl = {.is_wsl = 1, .has_nodes = 1}, old_wsl = {.is_wsl = 1};
static const cuda_surroundings jetson = {.is_jetson = 1, .has_nodes = 1};
static const cuda_surroundings jetson_box = {.is_jetson = 1};

static void what_helps_depends_on_the_machine(void **state)
{
    static const struct {
        const cuda_surroundings *around;
        const char *words, *helps;
    } cases[] = {
        {&plain, "no NVIDIA GPU", "nvidia-smi"}, {&bare, "/dev/nvidiactl", "--gpus all"},
        {&wsl, "this is WSL", "on Windows"},     {&old_wsl, "/dev/dxg", "WSL 2"},
        {&jetson, "a Jetson", "JetPack"},        {&jetson_box, "/dev/nvmap", "--runtime nvidia"},
    };
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        says(cuda_verdict_driver(&driver, CUDA_ERROR_NO_DEVICE, cases[i].around, NULL, &remedy,
                                 &err),
             TN_UNAVAILABLE, &err, cases[i].words, cases[i].helps);
    }
    says(cuda_verdict_driver(&driver, CUDA_ERROR_NO_DEVICE, &plain, "7", &remedy, &err),
         TN_UNAVAILABLE, &err, "CUDA_VISIBLE_DEVICES is \"7\"", "unset CUDA_VISIBLE_DEVICES");
    /* Without device files the variable is not what hides them. */
    says(cuda_verdict_driver(&driver, CUDA_ERROR_NO_DEVICE, &bare, "7", &remedy, &err),
         TN_UNAVAILABLE, &err, "CUDA_VISIBLE_DEVICES is \"7\"; /dev/nvidiactl", "--gpus all");
    says(cuda_verdict_driver(&driver, CUDA_ERROR_STUB_LIBRARY, &old_wsl, NULL, &remedy, &err),
         TN_INCOMPATIBLE, &err, "toolkit's stub", "/usr/lib/wsl/lib");
}

static void so_does_what_brings_the_driver(void **state)
{
    static const struct {
        const cuda_surroundings *around;
        const char *absent, *old;
    } cases[] = {
        {&plain, "NVIDIA_DRIVER_CAPABILITIES", "newer driver"},
        {&bare, "", "newer driver"}, /* what the platform's row says */
        {&wsl, "driver on Windows", "newer driver on Windows"},
        {&old_wsl, "driver on Windows", "newer driver on Windows"},
        {&jetson, "JetPack", "newer JetPack"},
        {&jetson_box, "JetPack", "newer JetPack"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *absent = cuda_verdict_library(TN_UNAVAILABLE, cases[i].around);
        assert_contains(absent, cases[i].absent);
        assert_int_equal(!absent[0], !cases[i].absent[0]);
        assert_contains(cuda_verdict_library(TN_INCOMPATIBLE, cases[i].around), cases[i].old);
        assert_string_equal(cuda_verdict_library(TN_OUT_OF_MEMORY, cases[i].around), "");
    }
}

static void the_management_library_speaks_first(void **state)
{
    tn_error err;
    (void)state;
    says(cuda_verdict_nvml(NVML_ERROR_DRIVER_NOT_LOADED, &bare, &remedy, &err), TN_UNAVAILABLE,
         &err, "kernel module is not loaded", "modprobe nvidia");
    says(cuda_verdict_nvml(NVML_ERROR_LIB_RM_VERSION_MISMATCH, &plain, &remedy, &err),
         TN_INCOMPATIBLE, &err, "of different versions", "start the machine anew");
    says(cuda_verdict_nvml(NVML_ERROR_NO_PERMISSION, &plain, &remedy, &err), TN_NOT_PERMITTED, &err,
         "may not use", "ls -l /dev/nvidiactl");
    assert_int_equal(cuda_verdict_nvml(NVML_ERROR_DRIVER_NOT_LOADED, &jetson, &remedy, &err),
                     TN_OK);
    assert_int_equal(cuda_verdict_nvml(NVML_ERROR_GPU_IS_LOST, &plain, &remedy, &err), TN_OK);
    assert_string_equal(remedy, "untold");
}

static void look(const char *const *paths, cuda_surroundings *out)
{
    char root[SCRATCH_PATH];
    scratch_make(root);
    for (; *paths; paths++)
        listing_put(root, *paths, "");
    cuda_look_around(root, out);
    scratch_remove(root);
}

static void machines_are_told_by_their_files(void **state)
{
    cuda_surroundings found;
    (void)state;
    look((const char *const[]){NULL}, &found);
    assert_false(found.is_wsl || found.is_jetson || found.has_nodes);
    look((const char *const[]){"/dev/nvidiactl", NULL}, &found);
    assert_true(!found.is_wsl && !found.is_jetson && found.has_nodes);
    look((const char *const[]){"/usr/lib/wsl/lib/libcuda.so.1", NULL}, &found);
    assert_true(found.is_wsl && !found.has_nodes);
    look((const char *const[]){"/dev/dxg", NULL}, &found);
    assert_true(found.is_wsl && found.has_nodes);
    look((const char *const[]){"/etc/nv_tegra_release", "/dev/nvmap", NULL}, &found);
    assert_true(found.is_jetson && found.has_nodes);
}

static void faults_of_the_context_stay(void **state)
{
    (void)state;
    assert_int_equal(cuda_driver_status(CUDA_ERROR_ILLEGAL_ADDRESS), TN_DEVICE_LOST);
    assert_int_equal(cuda_driver_status(CUDA_ERROR_LAUNCH_FAILED), TN_DEVICE_LOST);
    assert_int_equal(cuda_driver_status(CUDA_ERROR_ASSERT), TN_DEVICE_LOST);
    assert_int_equal(cuda_driver_status(CUDA_ERROR_OUT_OF_MEMORY), TN_OUT_OF_MEMORY);
    assert_int_equal(cuda_driver_status(CUDA_ERROR_NOT_READY), TN_NOT_READY);
    assert_int_equal(cuda_driver_status(12345), TN_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_s_results_are_told_apart),
        cmocka_unit_test(what_helps_depends_on_the_machine),
        cmocka_unit_test(so_does_what_brings_the_driver),
        cmocka_unit_test(the_management_library_speaks_first),
        cmocka_unit_test(machines_are_told_by_their_files),
        cmocka_unit_test(faults_of_the_context_stay),
    };
    return run_suite("cuda.verdict", tests);
}
