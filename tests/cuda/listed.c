/* Devices that the kernel module lists, against the stub driver: who is asked, and when. Each case is a process of its
 * own, which has found nothing before. */
#include "listing.h"
#include "mapped.h"
#include "tenon/tenon.h"

#include "../../backends/cuda/platform/cuda.h"
#include "device/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#define UUID_A "GPU-01a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"
#define UUID_B "GPU-11a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"

static char root[SCRATCH_PATH];
static void *driver; /* the stub, as the loader has it */
static tn_device *one, *two;
static tn_error err;

/* In the child: a failed assertion of the parent's kind would go on in both. */
#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, err.message); \
            fflush(stdout);                                                          \
            _exit(1);                                                                \
        }                                                                            \
    } while (0)
#define DO(call) CHECK((call) == TN_OK)

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *error)
{
    return cuda_probe_at(host, root, out_self, out_devices, error);
}

/* The module itself, which looks for the system's files below `root`. */
static tn_status entry(const tn_host *host, const tn_module **out, tn_error *error)
{
    static tn_module module;
    static tn_platform_row row;
    static const tn_platform_row *const rows[] = {&row, NULL};
    const tn_module *real = NULL;
    tn_status status = tn_module_entry(host, &real, error);
    if (status)
        return status;
    row = *real->platforms[0];
    row.probe = probe;
    module = *real;
    module.platforms = rows;
    *out = &module;
    return TN_OK;
}

/* What becomes of the module. */
static tn_status load(void)
{
    static tn_registration *registration;
    char path[LISTING_PATH];
    snprintf(path, sizeof path, "%s/lib/libcuda.so.1", root);
    driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(driver);
    return tn_module_register(entry, 0, &registration, &err);
}

static void find(void)
{
    DO(load());
    DO(tn_device_get("cuda:0", &one, &err));
    DO(tn_device_get("cuda:1", &two, &err));
}

static bool has_started_the_driver(void)
{
    cu_result (*count)(int *out);
    int found = 0;
    void *address = dlsym(driver, "cuDeviceGetCount");
    memcpy(&count, &address, sizeof count);
    return count(&found) == CUDA_SUCCESS;
}

/* The machine of most cases: two equal devices, and a driver that has them, too. */
static int begin(void **state)
{
    char command[2 * LISTING_PATH];
    (void)state;
    scratch_make(root);
    listing_begin(root);
    listing_add(root, &(listing_device){"0000:3b:00.0", "Stub GPU", UUID_A, NULL, 0});
    listing_add(root, &(listing_device){"0000:3c:00.0", "Stub GPU", UUID_B, NULL, 1});
    listing_library(root, LISTING_VERSION, command);
    snprintf(command, sizeof command, "cp '%s' '%s/lib/libcuda.so.%s'", CUDA_STUB, root,
             LISTING_VERSION);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

/* Runs it in a process of its own, where variables are set: "NAME=VALUE" each. */
static void run(void (*body)(void), const char *const *variables)
{
    int how = 1;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (; *variables; variables++) {
            char name[64];
            const char *equals = strchr(*variables, '=');
            snprintf(name, sizeof name, "%.*s", (int)(equals - *variables), *variables);
            setenv(name, equals + 1, 1);
        }
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}
#define RUN(body, ...) run(body, (const char *const[]){__VA_ARGS__ NULL})

static void look(void)
{
    int32_t physical = -1;
    find();
    CHECK(strcmp(tn_device_name(one), "Stub GPU") == 0);
    CHECK(strcmp(tn_device_uuid(one), UUID_A) == 0);
    CHECK(strcmp(tn_device_uuid(two), UUID_B) == 0);
    CHECK(strcmp(tn_device_bus(two), "0000:3c:00.0") == 0);
    CHECK(tn_platform_device_count(tn_device_platform(one)) == 2);
    DO(tn_platform_id_convert(tn_device_platform(one), TN_ID_VISIBLE, 1, TN_ID_PHYSICAL, &physical,
                              &err));
    CHECK(physical == 1);
    CHECK(!has_opened_the_management_library() && !has_started_the_driver());
}

static void check_numbers(const tn_device *device)
{
    tn_capability capability = {0, 0};
    DO(tn_device_capability(device, &capability, &err));
    CHECK(capability.major == 9 && capability.minor == 0);
    const tn_device_properties *p = tn_device_properties_get(device);
    CHECK(p->multi_processor_count == 4 && p->memory_bytes == INT64_C(256) << 20);
    CHECK(p->clock_khz == 1000000 && p->memory_bandwidth == INT64_C(16000000000));
    CHECK(strcmp(p->architecture, "sm_90a") == 0 && p->dtypes[0] == TN_BF16);
    CHECK(tn_device_supports_fp8(device) && tn_device_is_triton_capable(device));
    CHECK(p->known & TN_DEVICE_KNOWS(physical_index));
}

/* Opening needs the driver alone, and so does all that is asked from then on. */
static void open_first(void)
{
    void *memory = NULL;
    look();
    DO(tn_device_set(tn_device_platform(two), 1, &err));
    DO(tn_memory_alloc(two, 1000, "test", &memory, &err));
    tn_memory_free(two, memory);
    check_numbers(two);
    check_numbers(one);
    CHECK(tn_device_properties_get(one)->l2_cache_bytes == 1 << 20);
    CHECK(!has_opened_the_management_library());
    CHECK(tn_device_is_initialized(two) && !tn_device_is_initialized(one));
}

static void the_list_is_enough(void **state)
{
    (void)state;
    RUN(open_first, );
}

/* What is said of the second device's properties; "" for nothing. */
static const char *evidence_of_second(void)
{
    static char found[256];
    tn_platform_list *list = NULL;
    found[0] = '\0';
    DO(tn_platform_list_create(&list, &err));
    for (size_t i = 0; i < tn_platform_list_count(list); i++) {
        const tn_platform_evidence *e;
        for (size_t k = 0; (e = tn_platform_list_evidence(list, i, k)); k++) {
            if (strcmp(e->what, "properties of cuda:1") == 0)
                snprintf(found, sizeof found, "%s", e->found);
        }
    }
    tn_platform_list_release(list);
    return found;
}

/* Whoever asks before that asks the management library, and the driver stays as it was. */
static void ask_first(void)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    look();
    check_numbers(one);
    CHECK(has_opened_the_management_library() && !has_started_the_driver());
    CHECK(!evidence_of_second()[0]);
    DO(tn_device_memory_get(two, &memory, &err));
    CHECK(strcmp(memory.available.origin, "NVML") == 0);
    CHECK(!has_started_the_driver());
    DO(tn_device_set(tn_device_platform(two), 1, &err));
    check_numbers(two);
}

static void select_first(void)
{
    tn_device *found = NULL;
    DO(load());
    DO(tn_device_get("platform=cpu,memory>=1m", &found, &err));
    CHECK(!has_opened_the_management_library());
    DO(tn_device_get("platform=cuda,capability>=9.0,architecture=sm_90a", &found, &err));
    CHECK(strcmp(tn_device_id(found), "cuda:0") == 0);
    CHECK(has_opened_the_management_library() && !has_started_the_driver());
}

static void plan_first(void)
{
    tn_decision *decision = NULL;
    look();
    DO(tn_explain(NULL, "matmul:f8_e4m3fn:m=64,n=64,k=64,out=bf16@cuda:0", &decision, &err));
    CHECK(tni_device_known(one)->capability.major == 9);
    CHECK(!has_started_the_driver());
    tn_decision_release(decision);
}

static void questions_before_the_first_use_are_answered(void **state)
{
    (void)state;
    RUN(ask_first, );
    RUN(select_first, );
    RUN(plan_first, );
}

/* Without the management library the driver starts to answer, and makes no context. */
static void ask_the_driver(void)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    look();
    DO(tn_device_memory_get(one, &memory, &err));
    CHECK(memory.total.value == INT64_C(256) << 20 && !memory.available.known);
    CHECK(has_started_the_driver());
    check_numbers(one);
    CHECK(!tn_device_is_initialized(one));
}

static void ask_in_vain(void)
{
    tn_capability capability = {0, 0};
    tn_device_memory memory = {.struct_size = sizeof memory};
    find();
    CHECK(tn_device_capability(two, &capability, &err) == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "cuda:1 does not report its properties: the driver does not show"));
    CHECK(strstr(evidence_of_second(), "does not report its properties: the driver does not show"));
    CHECK(tn_device_memory_get(two, &memory, &err) == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "the driver does not show Stub GPU (" UUID_B ")"));
    CHECK(tn_device_set(tn_device_platform(two), 1, &err) == TN_UNAVAILABLE);
    check_numbers(one);
    DO(tn_device_set(tn_device_platform(one), 0, &err));
}

/* What was not told is asked for again. */
static void ask_again(void)
{
    tn_capability capability = {0, 0};
    find();
    CHECK(tn_device_capability(two, &capability, &err) == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "the driver does not start and does not say why; look which device"));
    CHECK(tn_device_properties_get(two)->multi_processor_count == 0);
    CHECK(strstr(evidence_of_second(), "the driver does not start"));
    unsetenv("STUB_INIT");
    check_numbers(two);
    CHECK(!evidence_of_second()[0]);
}

static void where_one_is_silent_the_other_is_asked(void **state)
{
    (void)state;
    RUN(ask_again, "STUB_NVML=3", "STUB_INIT=999", );
    RUN(ask_the_driver, "STUB_NVML=3", );
    RUN(ask_in_vain, "STUB_DEVICES=1", ); /* as of one in MIG mode that has no instance */
}

static void see_second(void)
{
    DO(load());
    DO(tn_device_get("cuda:0", &one, &err));
    CHECK(tn_platform_device_count(tn_device_platform(one)) == 1);
    CHECK(strcmp(tn_device_uuid(one), UUID_B) == 0);
    CHECK(!has_opened_the_management_library() && !has_started_the_driver());
    DO(tn_device_set(tn_device_platform(one), 0, &err));
    check_numbers(one);
}

static void see_both_the_other_way(void)
{
    int32_t physical = -1;
    find();
    CHECK(strcmp(tn_device_uuid(one), UUID_B) == 0 && strcmp(tn_device_uuid(two), UUID_A) == 0);
    DO(tn_platform_id_convert(tn_device_platform(one), TN_ID_VISIBLE, 0, TN_ID_PHYSICAL, &physical,
                              &err));
    CHECK(physical == 1 && !has_opened_the_management_library());
}

static void see_nothing(void)
{
    CHECK(load() == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "CUDA_VISIBLE_DEVICES is \""));
    CHECK(strstr(err.message, "; remedy: unset CUDA_VISIBLE_DEVICES"));
}

static void visible_devices_are_those_of_the_driver(void **state)
{
    (void)state;
    RUN(see_second, "CUDA_VISIBLE_DEVICES=1", );
    RUN(see_second, "CUDA_VISIBLE_DEVICES=1,7", );
    RUN(see_second, "CUDA_VISIBLE_DEVICES=GPU-11a1", );
    RUN(see_both_the_other_way, "CUDA_VISIBLE_DEVICES=1,0", );
    RUN(see_both_the_other_way, "CUDA_VISIBLE_DEVICES=" UUID_B "," UUID_A, );
    RUN(see_nothing, "CUDA_VISIBLE_DEVICES=", );
    RUN(see_nothing, "CUDA_VISIBLE_DEVICES=0,0", );
    RUN(see_nothing, "CUDA_VISIBLE_DEVICES=MIG-" UUID_A, );
}

static void a_container_has_what_it_was_given(void **state)
{
    (void)state;
    listing_take_away(root, "/dev/nvidia0");
    RUN(see_second, );
}

static void look_at_mixed(void)
{
    find();
    CHECK(strcmp(tn_device_uuid(one), UUID_B) == 0 && strcmp(tn_device_uuid(two), UUID_A) == 0);
    CHECK(has_started_the_driver());
    check_numbers(one);
}

/* Only the driver knows which of two kinds it puts first, unless it is told to go by the bus. */
static void devices_that_differ_are_ordered_by_the_driver(void **state)
{
    (void)state;
    listing_add(root, &(listing_device){"0000:3c:00.0", "Stub GPU Fast", UUID_B, NULL, 1});
    RUN(look_at_mixed, "STUB_MIXED=1", );
    RUN(see_second, "STUB_MIXED=1", "CUDA_VISIBLE_DEVICES=GPU-1", );
    RUN(see_second, "STUB_MIXED=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1", );
}

static void look_with_the_management_library(void)
{
    find();
    CHECK(has_opened_the_management_library() && !has_started_the_driver());
    check_numbers(one);
    check_numbers(two);
}

static void look_at_split(void)
{
    find();
    CHECK(has_opened_the_management_library() && has_started_the_driver());
    CHECK(strncmp(tn_device_uuid(one), "MIG-01a1", 8) == 0);
}

static void hear_of_versions(void)
{
    CHECK(load() == TN_INCOMPATIBLE);
    CHECK(strstr(err.message, "of different versions; remedy: start the machine anew"));
}

static void what_the_list_does_not_say_others_do(void **state)
{
    (void)state;
    listing_add(root, &(listing_device){"0000:3c:00.0", "Stub GPU", LISTING_UNTOLD, NULL, 1});
    RUN(look_with_the_management_library, );
    listing_add(root, &(listing_device){"0000:3c:00.0", "Stub GPU", UUID_B, NULL, 1});
    RUN(look, );
    listing_put(root, "/proc/driver/nvidia/capabilities/gpu1/mig/gi0/access", "");
    RUN(look_at_split, "STUB_MIG=1", );
    listing_take_away(root, "/proc/driver/nvidia/capabilities/gpu1/mig/gi0/access");
    listing_take_away(root, "/proc/driver/nvidia/capabilities/gpu1/mig/gi0");
    RUN(look, );
    listing_put(root, "/proc/driver/nvidia/version", "NVRM version: Module 570.1.2\n");
    RUN(look_with_the_management_library, );
    RUN(hear_of_versions, "STUB_NVML=18", );
}

static void hear_of_wsl(void)
{
    CHECK(load() == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "this is WSL; remedy: update NVIDIA's driver on Windows"));
}

static void hear_of_an_old_one_on_wsl(void)
{
    CHECK(load() == TN_INCOMPATIBLE);
    CHECK(strstr(err.message, "needs 11.2; remedy: install a newer driver on Windows"));
}

static void hear_of_a_jetson_in_a_box(void)
{
    CHECK(load() == TN_UNAVAILABLE);
    CHECK(strstr(err.message, "/dev/nvmap cannot be opened; remedy: in a container use --runtime"));
}

static void what_helps_is_told_for_the_machine(void **state)
{
    (void)state;
    listing_put(root, "/dev/dxg", "");
    RUN(hear_of_wsl, "STUB_NVML=3", "STUB_DEVICES=0", );
    RUN(hear_of_an_old_one_on_wsl, "STUB_VERSION=10020", );
    listing_take_away(root, "/dev/dxg");
    listing_put(root, "/etc/nv_tegra_release", "");
    RUN(hear_of_a_jetson_in_a_box, "STUB_NVML=3", "STUB_DEVICES=0", );
}

/* A child that only saw them cannot ask, and is told so; it can start the driver for itself. */
static void fork_after_looking(void)
{
    int how = 1;
    look();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tn_capability capability = {0, 0};
        cu_result (*init)(unsigned flags);
        void *address = dlsym(driver, "cuInit");
        memcpy(&init, &address, sizeof init);
        CHECK(strcmp(tn_device_name(one), "Stub GPU") == 0);
        CHECK(tn_device_capability(one, &capability, &err) == TN_UNAVAILABLE);
        CHECK(strstr(err.message, "not queried before") && strstr(err.message, "forked"));
        CHECK(init(0) == CUDA_SUCCESS && !has_opened_the_management_library());
        _exit(0);
    }
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    check_numbers(one);
}

static void looking_leaves_a_process_that_forks(void **state)
{
    (void)state;
    RUN(fork_after_looking, );
}

enum { THREADS = 6 };

static void *ask_in_thread(void *user)
{
    void *memory = NULL;
    const intptr_t number = (intptr_t)user;
    tn_error mine;
    if (number % 3 == 0 && !tn_memory_alloc(one, 512, "test", &memory, &mine))
        tn_memory_free(one, memory);
    const tn_device_properties *p = tn_device_properties_get(number % 2 ? one : two);
    return p->capability.major == 9 && p->multi_processor_count == 4 ? user : NULL;
}

static void ask_from_threads(void)
{
    pthread_t threads[THREADS];
    find();
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, ask_in_thread, (void *)(i + 1)) == 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        void *said = NULL;
        CHECK(pthread_join(threads[i], &said) == 0 && said == (void *)(i + 1));
    }
    check_numbers(one);
}

static void many_may_ask_at_once(void **state)
{
    (void)state;
    RUN(ask_from_threads, );
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_list_is_enough),
        TEST(questions_before_the_first_use_are_answered),
        TEST(where_one_is_silent_the_other_is_asked),
        TEST(visible_devices_are_those_of_the_driver),
        TEST(a_container_has_what_it_was_given),
        TEST(devices_that_differ_are_ordered_by_the_driver),
        TEST(what_the_list_does_not_say_others_do),
        TEST(what_helps_is_told_for_the_machine),
        TEST(looking_leaves_a_process_that_forks),
        TEST(many_may_ask_at_once),
    };
#undef TEST
    return run_suite("cuda.listed", tests);
}
