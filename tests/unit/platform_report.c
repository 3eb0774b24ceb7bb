/* The verdict on a platform: traces in a made-up root, the rule that merges them, the variables
 * that hide devices, and the three numberings. */
#include "world.h"

#include "device/platform/visible.h"
#include "scratch.h"

#define UNASKED        TNI_SEEN_NOTHING_ASKED
#define NO             TNI_SEEN_ABSENT
#define UNKNOWN        TNI_SEEN_UNKNOWN
#define YES            TNI_SEEN
#define LOOKS(h, d, l) .hardware = (h), .driver = (d), .library = (l)

static void verdicts_follow_one_rule(void **state)
{
    static const struct {
        tni_traces traces;
        tn_platform_verdict verdict;
    } rows[] = {
        {{LOOKS(NO, NO, NO)}, TN_PLATFORM_ABSENT},
        {{LOOKS(NO, NO, YES)}, TN_PLATFORM_ABSENT},
        {{LOOKS(NO, YES, YES)}, TN_PLATFORM_ABSENT},
        {{LOOKS(YES, NO, NO)}, TN_PLATFORM_NO_DRIVER},
        {{LOOKS(YES, NO, YES)}, TN_PLATFORM_NO_DRIVER}, /* the kernel's driver is not loaded */
        {{LOOKS(YES, YES, NO)}, TN_PLATFORM_NO_DRIVER}, /* the user's library is not installed */
        {{LOOKS(YES, YES, YES)}, TN_PLATFORM_NO_MODULE},
        {{LOOKS(YES, UNKNOWN, YES)}, TN_PLATFORM_NO_MODULE},
        {{LOOKS(YES, UNASKED, UNASKED)}, TN_PLATFORM_NO_MODULE},
        {{LOOKS(UNKNOWN, YES, YES)}, TN_PLATFORM_NO_MODULE}, /* a container without a bus to see */
        {{LOOKS(UNKNOWN, NO, YES)}, TN_PLATFORM_ABSENT},
        {{LOOKS(UNASKED, YES, YES)}, TN_PLATFORM_NO_MODULE},
        {{LOOKS(UNASKED, NO, YES)}, TN_PLATFORM_ABSENT},
        {{LOOKS(UNASKED, UNASKED, UNASKED)}, TN_PLATFORM_ABSENT},
        {{LOOKS(YES, YES, YES), .denied = true}, TN_PLATFORM_BROKEN},
        {{LOOKS(YES, YES, YES), .denied = true, .offered = true, .ready = true}, TN_PLATFORM_READY},
        {{.offered = true, .probe = TN_UNAVAILABLE}, TN_PLATFORM_ABSENT},
        {{.offered = true, .probe = TN_NOT_READY}, TN_PLATFORM_ABSENT},
        {{.offered = true, .probe = TN_OK}, TN_PLATFORM_ABSENT},
        {{.offered = true, .probe = TN_DEVICE_LOST}, TN_PLATFORM_BROKEN},
        {{.offered = true, .probe = TN_CRASHED}, TN_PLATFORM_BROKEN},
        {{LOOKS(YES, NO, NO), .offered = true, .probe = TN_UNAVAILABLE}, TN_PLATFORM_NO_DRIVER},
        {{LOOKS(YES, YES, YES), .offered = true, .probe = TN_UNAVAILABLE}, TN_PLATFORM_BROKEN},
        {{LOOKS(NO, NO, NO), .hides_all = true}, TN_PLATFORM_ABSENT},
        {{LOOKS(NO, NO, NO), .hides_all = true, .offered = true, .probe = TN_UNAVAILABLE},
         TN_PLATFORM_ABSENT},
        {{LOOKS(YES, YES, YES), .hides_all = true, .offered = true, .probe = TN_UNAVAILABLE},
         TN_PLATFORM_HIDDEN},
        {{LOOKS(YES, YES, YES), .hides_all = true}, TN_PLATFORM_HIDDEN},
        {{LOOKS(YES, YES, YES), .hides_all = true, .offered = true, .ready = true},
         TN_PLATFORM_READY},
        {{.offered = true, .ready = true}, TN_PLATFORM_READY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(tni_platform_judge(&rows[i].traces), rows[i].verdict);
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_READY), "ready");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_HIDDEN), "hidden");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_BROKEN), "broken");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_NO_MODULE), "no-module");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_NO_DRIVER), "no-driver");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_ABSENT), "absent");
    assert_string_equal(tn_platform_verdict_name(TN_PLATFORM_VERDICT_COUNT), "unknown");
}

/* A file below `root`, with the folders it needs. */
static void put(const char *root, const char *path, const char *text)
{
    char full[SCRATCH_PATH + 256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0755);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A shared library of this machine: this program's own beginning is as good as any. */
static void put_library(const char *root, const char *path)
{
    char full[SCRATCH_PATH + 256];
    put(root, path, "");
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(full, "wb");
    assert_non_null(from);
    assert_non_null(to);
    for (int c; (c = getc(from)) != EOF;)
        putc(c, to);
    fclose(from);
    fclose(to);
}

static void put_gpu(const char *root)
{
    put(root, "/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n");
    put(root, "/sys/bus/pci/devices/0000:3b:00.0/device", "0x2335\n");
    put(root, "/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
}

static void expect_cuda(unsigned modules, const char *root, tn_platform_verdict verdict,
                        const char *reason, const char *remedy)
{
    world w;
    tni_platform_report report;
    world_make(&w, modules, root);
    tni_platform_examine(world_platform(&w, "cuda"), &report);
    assert_string_equal(tn_platform_verdict_name(report.verdict),
                        tn_platform_verdict_name(verdict));
    assert_contains(report.reason, reason);
    assert_contains(report.remedy, remedy);
    world_end(&w);
}

/* A call that needs the platform fails with this advice. */
static void expect_refusal(unsigned modules, const char *root, const char *advice)
{
    world w;
    tn_error err;
    world_make(&w, modules, root);
    assert_int_equal(tni_platform_unready(world_platform(&w, "cuda"), "test", &err),
                     TN_UNAVAILABLE);
    assert_contains(err.message, advice);
    world_end(&w);
}

static void traces_of_a_gpu_are_weighed(void **state)
{
    char root[SCRATCH_PATH];
    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    scratch_make(root);
    put(root, "/sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n");
    put(root, "/sys/bus/pci/devices/0000:00:01.0/device", "0x1234\n");
    put(root, "/sys/bus/pci/devices/0000:00:01.0/class", "0x020000\n");
    expect_cuda(WORLD_CPU, root, TN_PLATFORM_ABSENT, "not found (10 places checked)", "");
    expect_refusal(WORLD_CPU, root, "`tenon devices --explain` shows the evidence");
    put_gpu(root);
    expect_cuda(WORLD_CPU, root, TN_PLATFORM_NO_DRIVER,
                "NVIDIA GPU without a working driver: found PCI device 10de:03", "nvidia-smi");
    expect_cuda(WORLD_AWAY, root, TN_PLATFORM_NO_DRIVER, "found PCI device", "nvidia-smi");
    put(root, "/proc/driver/nvidia/version", "NVRM version\n");
    expect_cuda(WORLD_CPU, root, TN_PLATFORM_NO_DRIVER, "file /proc/driver/nvidia/version",
                "nvidia-smi"); /* no library */
    put_library(root, "/usr/lib/libcuda.so.1");
    expect_cuda(WORLD_CPU, root, TN_PLATFORM_NO_MODULE,
                "NVIDIA GPU and driver are present (PCI device 10de:03, file "
                "/proc/driver/nvidia/version, /usr/lib/libcuda.so.1), but no module supports cuda",
                "has no module for it; install a tenon-cuda");
    expect_cuda(WORLD_AWAY, root, TN_PLATFORM_BROKEN,
                "module away: libcuda.so.1 was not found; but found PCI device 10de:03",
                "nvidia-smi");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    expect_cuda(WORLD_AWAY, root, TN_PLATFORM_HIDDEN, "CUDA_VISIBLE_DEVICES hides every NVIDIA GPU",
                "unset CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    scratch_remove(root);
}

static const tn_platform_report *report_of(const tn_platform_list *list, const char *name,
                                           size_t *out_index)
{
    for (size_t i = 0; i < tn_platform_list_count(list); i++) {
        if (strcmp(tn_platform_list_get(list, i)->name, name) == 0) {
            *out_index = i;
            return tn_platform_list_get(list, i);
        }
    }
    fail_msg("no platform %s", name);
    return NULL;
}

static void list_has_the_evidence(void **state)
{
    char root[SCRATCH_PATH];
    world w;
    tn_platform_list *list = NULL;
    tn_error err = {0};
    size_t at;
    (void)state;
    unsetenv("TENON_PLATFORM");
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    scratch_make(root);
    put_gpu(root);
    world_make(&w, WORLD_ALL, root);
    assert_int_equal(tni_platform_list_of(w.set, &list, &err), TN_OK);
    static const char *const order[] = {"cuda",   "rocm", "tpu",  "mps", "xpu",  "npu",
                                        "opencl", "acme", "bolt", "cpu", "stand"};
    assert_int_equal(tn_platform_list_count(list), sizeof order / sizeof order[0]);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        assert_string_equal(tn_platform_list_get(list, i)->name, order[i]); /* best first */
    assert_int_equal(report_of(list, "acme", &at)->current, 1);
    const tn_platform_report *cuda = report_of(list, "cuda", &at);
    assert_string_equal(cuda->module, "away");
    assert_int_equal(cuda->evidence_count, 12);
    const tn_platform_evidence *bus = tn_platform_list_evidence(list, at, 0);
    assert_string_equal(bus->what, "PCI device 10de:03");
    assert_contains(bus->found, "0000:3b:00.0");
    assert_string_equal(bus->shows, "hardware");
    assert_int_equal(bus->holds, 1);
    const tn_platform_evidence *variable = tn_platform_list_evidence(list, at, 10);
    assert_string_equal(variable->what, "variable CUDA_VISIBLE_DEVICES");
    assert_string_equal(variable->found, "\"0,1\": 2 devices");
    const tn_platform_evidence *module = tn_platform_list_evidence(list, at, 11);
    assert_string_equal(module->what, "module away");
    assert_string_equal(module->found, "libcuda.so.1 was not found");
    assert_string_equal(module->shows, "module");
    assert_int_equal(module->holds, 0);
    assert_null(tn_platform_list_evidence(list, at, 12));
    assert_null(tn_platform_list_evidence(list, 999, 0));
    const tn_platform_report *tpu = report_of(list, "tpu", &at);
    assert_string_equal(tpu->module, "");
    assert_int_equal(tpu->verdict, TN_PLATFORM_ABSENT);
    const tn_platform_report *stand = report_of(list, "stand", &at);
    assert_int_equal(stand->verdict, TN_PLATFORM_READY);
    assert_string_equal(stand->reason, "module stand is ready to receive described devices");
    tn_platform_list_release(list);
    world_end(&w);
    unsetenv("CUDA_VISIBLE_DEVICES");
    scratch_remove(root);
}

static void variables_are_read_as_their_run_times_do(void **state)
{
    static const struct {
        const char *value;
        size_t count;
        int32_t first, last;
    } rows[] = {
        {"0", 1, 0, 0},
        {"3,1,2", 3, 3, 2},
        {" 3 ,\t1 ", 2, 3, 1},
        {"", 0, 0, 0},
        {"-1", 0, 0, 0},
        {"0,-1,1", 1, 0, 0},
        {"0,,1", 1, 0, 0},
        {"0,x,1", 1, 0, 0},
        {"NoDevFiles", 0, 0, 0},
        {"none", 0, 0, 0},
        {"0.1,2.0", 2, 0, 2},
        {"99999999999", 1, INT32_MAX, INT32_MAX},
        {"000000000000000000000", 1, 0, 0},
        {"+0", 1, 0, 0},
        {"-0", 1, 0, 0},
        {"0x1", 1, 0, 0},
        {"0gpu,1", 2, 0, 1},
        {"0 1", 1, 0, 0},
        {"0,0", 0, 0, 0},
        {"1,2,1", 0, 0, 0},
        {"GPU-8932f937,GPU-8932f937", 0, 0, 0},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1", 2, -1, 1},
        {"MIG-8932f937/1/2", 1, -1, -1},
        {"8932f937-d72c-4106-c12f-20bd9faed9f6", 1, 8932, 8932},
        {"GPU-", 0, 0, 0},
        {"MIG-GPU-8932f937-d72c/1/2", 1, -1, -1},
        {"GPU_1", 0, 0, 0},
    };
    tni_visible visible;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tni_visible_parse(rows[i].value, &visible);
        assert_true(visible.is_set);
        assert_int_equal(visible.count, rows[i].count);
        if (rows[i].count > 0) {
            assert_int_equal(visible.entries[0].number, rows[i].first);
            assert_int_equal(visible.entries[rows[i].count - 1].number, rows[i].last);
        }
    }
    tni_visible_parse("GPU-8932f937", &visible);
    assert_string_equal(visible.entries[0].uuid, "GPU-8932f937");
    tni_visible_parse(NULL, &visible);
    assert_false(visible.is_set);
    char many[4096] = "0";
    for (int i = 1; i < 400; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    tni_visible_parse(many, &visible);
    assert_int_equal(visible.count, TNI_VISIBLE_MAX);
}

/* -1 for a failure. */
static int32_t convert(const tn_platform *p, int32_t from, int32_t id, int32_t to, tn_error *err)
{
    int32_t out = -1;
    return tn_platform_id_convert(p, from, id, to, &out, err) ? -1 : out;
}

static void devices_have_three_numbers(void **state)
{
    world w;
    tn_error err;
    const int32_t assigned[] = {4, 0}, other[] = {0, 4}, twice[] = {1, 1}, negative[] = {-1};
    (void)state;
    unsetenv("ACME_VISIBLE");
    world_make(&w, WORLD_ALL, NULL);
    const tn_platform *acme = world_platform(&w, "acme");
    /* acme's boards 0 and 1 say that their physical numbers are 0 and 2; board 2 says nothing */
    assert_int_equal(convert(acme, TN_ID_VISIBLE, 1, TN_ID_PHYSICAL, &err), 2);
    assert_int_equal(convert(acme, TN_ID_PHYSICAL, 2, TN_ID_VISIBLE, &err), 1);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 1, TN_ID_PHYSICAL, &err), 2);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 1, TN_ID_VISIBLE, &err), 1);
    assert_int_equal(convert(acme, TN_ID_VISIBLE, 3, TN_ID_PHYSICAL, &err), -1);
    assert_int_equal(err.status, TN_NOT_FOUND);
    assert_contains(err.message, "acme has no visible device 3: 3 are visible");
    assert_int_equal(convert(acme, TN_ID_VISIBLE, -1, TN_ID_PHYSICAL, &err), -1);
    assert_contains(err.message, "numbers start at 0");
    assert_int_equal(convert(acme, TN_ID_PHYSICAL, 7, TN_ID_VISIBLE, &err), -1);
    assert_contains(err.message, "there are fewer devices");
    assert_int_equal(convert(acme, TN_ID_PHYSICAL, 7, TN_ID_PHYSICAL, &err), 7);
    assert_int_equal(convert(acme, 3, 0, TN_ID_PHYSICAL, &err), -1);
    assert_int_equal(err.status, TN_INVALID_ARGUMENT);

    assert_int_equal(tn_platform_ids_assign(acme, twice, 2, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "are both 1");
    assert_int_equal(tn_platform_ids_assign(acme, negative, 1, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_ids_assign(acme, assigned, 0, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_ids_assign(acme, NULL, 2, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_ids_assign(acme, assigned, 2, &err), TN_OK);
    assert_int_equal(tn_platform_ids_assign(acme, assigned, 2, &err), TN_OK);
    assert_int_equal(tn_platform_ids_assign(acme, other, 2, &err), TN_ALREADY_EXISTS);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 0, TN_ID_PHYSICAL, &err), 4);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 1, TN_ID_VISIBLE, &err), 0);
    assert_int_equal(convert(acme, TN_ID_PHYSICAL, 4, TN_ID_LOGICAL, &err), 0);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 0, TN_ID_VISIBLE, &err), -1);
    assert_int_equal(convert(acme, TN_ID_LOGICAL, 2, TN_ID_PHYSICAL, &err), -1);
    assert_contains(err.message, "the program assigned fewer");
    assert_int_equal(convert(acme, TN_ID_PHYSICAL, 9, TN_ID_LOGICAL, &err), -1);
    assert_contains(err.message, "did not assign it");
    world_end(&w);
}

static void numbers_are_known_without_devices(void **state)
{
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_AWAY, NULL);
    const tn_platform *cuda = world_platform(&w, "cuda");
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(convert(cuda, TN_ID_VISIBLE, 5, TN_ID_PHYSICAL, &err), 5);
    assert_int_equal(convert(cuda, TN_ID_PHYSICAL, 5, TN_ID_VISIBLE, &err), 5);
    assert_int_equal(convert(cuda, TN_ID_PHYSICAL, -5, TN_ID_VISIBLE, &err), -1);
    setenv("CUDA_VISIBLE_DEVICES", "3,GPU-12345678,1", 1);
    assert_int_equal(convert(cuda, TN_ID_VISIBLE, 0, TN_ID_PHYSICAL, &err), 3);
    assert_int_equal(convert(cuda, TN_ID_LOGICAL, 2, TN_ID_PHYSICAL, &err), 1);
    assert_int_equal(convert(cuda, TN_ID_PHYSICAL, 1, TN_ID_VISIBLE, &err), 2);
    assert_int_equal(convert(cuda, TN_ID_VISIBLE, 1, TN_ID_PHYSICAL, &err), -1);
    assert_int_equal(err.status, TN_UNSUPPORTED);
    assert_contains(err.message, "GPU-12345678");
    assert_int_equal(convert(cuda, TN_ID_PHYSICAL, 0, TN_ID_VISIBLE, &err), -1);
    assert_int_equal(err.status, TN_UNSUPPORTED); /* the UUID may be its */
    assert_contains(err.message, "CUDA_VISIBLE_DEVICES lists devices by UUID");
    setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
    assert_int_equal(convert(cuda, TN_ID_PHYSICAL, 0, TN_ID_VISIBLE, &err), -1);
    assert_int_equal(err.status, TN_NOT_FOUND);
    assert_contains(err.message, "hides it");
    setenv("CUDA_VISIBLE_DEVICES", "3,GPU-12345678,1", 1);
    assert_int_equal(convert(cuda, TN_ID_VISIBLE, 3, TN_ID_PHYSICAL, &err), -1);
    assert_contains(err.message, "3 are visible, by CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_follow_one_rule),
        cmocka_unit_test(traces_of_a_gpu_are_weighed),
        cmocka_unit_test(list_has_the_evidence),
        cmocka_unit_test(variables_are_read_as_their_run_times_do),
        cmocka_unit_test(devices_have_three_numbers),
        cmocka_unit_test(numbers_are_known_without_devices),
    };
    return run_suite("unit.platform_report", tests);
}
