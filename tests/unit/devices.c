/* Devices: capabilities, what their platforms tell, and those that are described. */
#include "world.h"

#include "os/thread.h"
#include "scratch.h"

#include <sched.h>

static void capabilities_have_an_order(void **state)
{
    static const struct {
        tn_capability capability;
        const char *text;
        int32_t number;
    } rows[] = {
        {{0, 0}, "0.0", 0},
        {{9, 0}, "9.0", 90},
        {{8, 6}, "8.6", 86},
        {{12, 1}, "12.1", 121},
        {{9, 10}, "9.10", 99},
        {{9, 123}, "9.123", 99},
        {{10, 0}, "10.0", 100},
        {{-1, 5}, "-1.5", 0},
        {{3, -2}, "3.-2", 30},
        {{INT32_MAX, INT32_MAX}, "2147483647.2147483647", INT32_MAX},
        {{INT32_MIN, INT32_MIN}, "-2147483648.-2147483648", 0},
    };
    char text[24];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_ptr_equal(tn_capability_as_version_str(rows[i].capability, text, sizeof text), text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(tn_capability_to_int(rows[i].capability), rows[i].number);
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
            tn_capability a = rows[i].capability, b = rows[j].capability;
            int32_t order = tn_capability_compare(a, b);
            assert_int_equal(order, -tn_capability_compare(b, a));
            assert_int_equal(order == 0, a.major == b.major && a.minor == b.minor);
            if (order < 0) /* the integers never say otherwise */
                assert_true(tn_capability_to_int(a) <= tn_capability_to_int(b));
        }
    }
    tn_capability pair = tn_capability_from_int(86);
    assert_true(pair.major == 8 && pair.minor == 6);
    pair = tn_capability_from_int(-5);
    assert_true(pair.major == 0 && pair.minor == 0);
    assert_true(tn_capability_same_family((tn_capability){9, 0}, (tn_capability){9, 4}));
    assert_false(tn_capability_same_family((tn_capability){9, 0}, (tn_capability){10, 0}));
    assert_string_equal(tn_capability_as_version_str((tn_capability){12, 1}, text, 3), "12");
}

static void capabilities_are_parsed(void **state)
{
    static const char *const wrong[] = {"",      "x",    "9.", ".0",    "9.0a",
                                        "9.0.0", " 9.0", "-9", "12345", "9.2147483648",
                                        "10",    "12",   "19"};
    tn_capability read = {7, 7};
    tn_error err;
    (void)state;
    assert_int_equal(tn_capability_parse("9.0", &read, &err), TN_OK);
    assert_true(read.major == 9 && read.minor == 0);
    assert_int_equal(tn_capability_parse("9", &read, &err), TN_OK);
    assert_true(read.major == 9 && read.minor == 0);
    assert_int_equal(tn_capability_parse("121", &read, &err), TN_OK);
    assert_true(read.major == 12 && read.minor == 1);
    assert_int_equal(tn_capability_parse("9.12", &read, &err), TN_OK);
    assert_true(read.major == 9 && read.minor == 12);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tn_capability_parse(wrong[i], &read, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "expected the form 9.0, 9 or 90");
        assert_true(read.major == 9 && read.minor == 12);
    }
    assert_int_equal(tn_capability_parse(NULL, &read, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_capability_parse("9", NULL, &err), TN_INVALID_ARGUMENT);
}

static void devices_are_found_by_every_name(void **state)
{
    static const char *const names[] = {"acme:1", "ACME-00000001", "acme-00000001", "0000:01:00.0"};
    world w;
    tn_error err;
    tn_device *device = NULL;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(tn_device_id(world_device(&w, names[i])), "acme:1");
    assert_string_equal(tn_device_id(world_device(&w, "acme")), "acme:0");
    assert_string_equal(tn_device_name(world_device(&w, "acme")), "Acme Board 0");
    assert_int_equal(tni_devices_get(w.set, "acme:7", &device, &err), TN_NOT_FOUND);
    assert_contains(err.message, "no device \"acme:7\"; present: cpu:0, acme:0 (Acme Board 0), "
                                 "acme:1 (Acme Board 1), acme:2, bolt:0; did you mean acme:0?");
    assert_int_equal(tni_devices_get(w.set, "cuda:0", &device, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "platform cuda is ");
    assert_int_equal(tni_devices_get(w.set, "nonsense", &device, &err), TN_NOT_FOUND);
    assert_int_equal(tni_devices_get(w.set, "", &device, &err), TN_NOT_FOUND);
    assert_int_equal(tni_devices_get(w.set, ":", &device, &err), TN_NOT_FOUND);
    assert_null(device);
    assert_int_equal(tn_platform_device_get(world_platform(&w, "acme"), 2, &device, &err), TN_OK);
    assert_int_equal(tn_device_index(device), 2);
    assert_string_equal(tn_device_name(device), ""); /* it did not tell */
    assert_string_equal(tn_device_origin(device), "found");
    assert_int_equal(tn_platform_device_get(world_platform(&w, "acme"), 3, &device, &err),
                     TN_NOT_FOUND);
    assert_contains(err.message, "no device \"acme:3\": acme has 3");
    assert_int_equal(tn_platform_device_get(world_platform(&w, "acme"), -1, &device, &err),
                     TN_NOT_FOUND);
    assert_int_equal(tn_platform_device_get(world_platform(&w, "tpu"), 0, &device, &err),
                     TN_UNAVAILABLE);
    world_end(&w);
}

static void properties_answer_questions(void **state)
{
    world w;
    tn_error err;
    tn_capability capability;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    tn_device *acme = world_device(&w, "acme:1"), *bolt = world_device(&w, "bolt");
    assert_int_equal(tn_device_capability(acme, &capability, &err), TN_OK);
    assert_true(capability.major == 3 && capability.minor == 12);
    assert_true(tn_device_has_capability(acme, (tn_capability){3, 12}));
    assert_true(tn_device_has_capability(acme, (tn_capability){2, 99}));
    assert_false(tn_device_has_capability(acme, (tn_capability){3, 13}));
    assert_false(tn_device_has_capability(acme, (tn_capability){4, 0}));
    assert_true(tn_device_has_capability_int(acme, 39));
    assert_false(tn_device_has_capability_int(acme, 40));
    assert_true(tn_device_is_capability(acme, (tn_capability){3, 12}));
    assert_false(tn_device_is_capability(acme, (tn_capability){3, 1}));
    assert_true(tn_device_is_capability_family(acme, 30));
    assert_true(tn_device_is_capability_family(acme, 35));
    assert_false(tn_device_is_capability_family(acme, 40));
    assert_true(tn_device_is_capability_int(world_device(&w, "acme:0"), 35));
    assert_false(tn_device_is_capability_int(acme, 35));
    capability.major = -7;
    assert_int_equal(tn_device_capability(bolt, &capability, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "bolt:0 has no capability");
    assert_int_equal(capability.major, -7);
    assert_false(tn_device_has_capability(bolt, (tn_capability){0, 0}) ||
                 tn_device_has_capability_int(bolt, 0) ||
                 tn_device_is_capability(bolt, (tn_capability){0, 0}) ||
                 tn_device_is_capability_family(bolt, 0));

    assert_int_equal(tn_device_supported_dtypes(acme)[0], TN_BF16);
    assert_int_equal(tn_device_verify_dtype(acme, TN_F32, &err), TN_OK);
    assert_int_equal(tn_device_verify_dtype(acme, TN_F64, &err), TN_UNSUPPORTED);
    assert_string_equal(err.message, "acme:1 does not support f64; it supports bf16, f32");
    assert_int_equal(tn_device_verify_dtype(acme, 77, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_supports_fp8(acme), 0);
    assert_int_equal(tn_device_fp8_dtype(acme), 0);
    tn_device *first = world_device(&w, "acme:0");
    assert_int_equal(tn_device_supports_fp8(first), 1);
    assert_int_equal(tn_device_fp8_dtype(first), TN_F8_E4M3FNUZ);
    assert_int_equal(tn_device_is_fp8_fnuz(first), 1);
    assert_int_equal(tn_device_is_fp8_fnuz(acme), 0);
    assert_int_equal(tn_device_supported_dtypes(bolt)[0], 0);
    assert_int_equal(tn_device_verify_dtype(bolt, TN_F32, &err), TN_UNSUPPORTED);
    assert_string_equal(err.message, "cannot tell whether bolt:0 supports f32: platform bolt does "
                                     "not report its dtypes");
    world_end(&w);
}

static void memory_is_told_or_unknown(void **state)
{
    world w;
    tn_error err;
    tn_device_memory memory = {.struct_size = sizeof memory};
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(tn_device_memory_get(world_device(&w, "acme:0"), &memory, &err), TN_OK);
    assert_int_equal(memory.total.known, 1);
    assert_true(memory.total.value == INT64_C(1) << 34);
    assert_string_equal(memory.total.origin, "acme's driver");
    assert_int_equal(memory.available.known, 0);
    assert_string_equal(memory.available.origin, "acme does not count");
    assert_int_equal(strlen(memory.in_use.origin), sizeof memory.in_use.origin - 1);
    assert_int_equal(tn_device_memory_get(world_device(&w, "acme:2"), &memory, &err),
                     TN_DEVICE_LOST);
    assert_true(memory.total.value == INT64_C(1) << 34);
    assert_int_equal(tn_device_memory_get(world_device(&w, "bolt"), &memory, &err), TN_OK);
    assert_int_equal(memory.total.known, 0);
    assert_string_equal(memory.total.origin, "its platform does not report it");
    memory.struct_size = 8;
    assert_int_equal(tn_device_memory_get(world_device(&w, "bolt"), &memory, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_memory_get(world_device(&w, "bolt"), NULL, &err),
                     TN_INVALID_ARGUMENT);
    world_end(&w);
}

static void links_join_devices(void **state)
{
    world w;
    tn_error err;
    int32_t link = -1, all = -1;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    tn_device *a = world_device(&w, "acme:0"), *b = world_device(&w, "acme:1");
    assert_int_equal(tn_device_link(a, b, &link, &err), TN_OK);
    assert_int_equal(link, TN_LINK_FABRIC);
    assert_int_equal(tn_device_link(b, world_device(&w, "acme:2"), &link, &err), TN_OK);
    assert_int_equal(link, TN_LINK_BUS);
    assert_int_equal(tn_device_link(a, a, &link, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_link(a, world_device(&w, "bolt"), &link, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "acme:0 and bolt:0 are not two devices of one platform");
    assert_int_equal(tn_platform_is_fully_connected(world_platform(&w, "acme"), &all, &err), TN_OK);
    assert_int_equal(all, 0);
    tn_platform *acme = tni_platforms_same(world_platform(&w, "acme"));
    atomic_store(&acme->devices, 1 << 16); /* more than a square of 32 bits holds */
    assert_int_equal(tn_platform_is_fully_connected(acme, &all, &err), TN_OK);
    assert_int_equal(all, 0);
    atomic_store(&acme->devices, 3);
    assert_int_equal(tn_platform_is_fully_connected(world_platform(&w, "bolt"), &all, &err), TN_OK);
    assert_int_equal(all, 1);
    assert_int_equal(tn_platform_is_fully_connected(world_platform(&w, "tpu"), &all, &err),
                     TN_UNAVAILABLE);
    world_end(&w);
}

static void generators_are_by_number(void **state)
{
    world w;
    tn_generator_state a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    tn_error err;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(tn_seed_everything(99, &err), TN_OK);
    tn_generator *first = tn_device_generator(world_device(&w, "acme:1"));
    assert_int_equal(tn_generator_state_get(first, &a, &err), TN_OK);
    assert_int_equal(a.seed, 99);
    assert_int_equal(a.subsequence, 1);
    assert_int_equal(tn_generator_state_get(tn_device_generator(world_device(&w, "cpu")), &b, &err),
                     TN_OK);
    assert_int_equal(b.seed, 99);
    assert_int_equal(b.subsequence, 0);
    assert_null(tn_device_generator(NULL));
    world_end(&w);
    assert_int_equal(tn_seed_everything(TN_SEED_DEFAULT, &err), TN_OK);
}

static tn_status describe(world *w, const char *text, tn_error *err)
{
    tni_descriptions *descriptions = NULL;
    tn_status status = tni_descriptions_parse(text, strlen(text), "lab.device", &descriptions, err);
    if (!status)
        status = tni_devices_describe(w->set, descriptions, "lab.device", err);
    tni_descriptions_release(descriptions);
    return status;
}

static void described_devices_plan_or_run(void **state)
{
    world w;
    tn_error err = {0};
    tn_device_memory memory = {.struct_size = sizeof memory};
    (void)state;
    world_describes = 0;
    world_make(&w, WORLD_ALL, NULL);
    if (describe(&w,
                 "[device h200]\nplatform = cuda\nname = NVIDIA H200\ncapability = 9.0\n"
                 "memory = 141 GB\n[device]\nplatform = cuda\n[device toy]\nplatform = stand\n",
                 &err))
        fail_msg("%s", err.message);
    tn_device *h200 = world_device(&w, "h200"), *toy = world_device(&w, "toy");
    assert_string_equal(tn_device_id(h200), "cuda:0");
    assert_string_equal(tn_device_id(toy), "stand:0");
    assert_int_equal(tn_device_plans_only(h200), 1);
    assert_int_equal(tn_device_plans_only(toy), 0);
    assert_string_equal(tn_device_origin(h200), "described in lab.device");
    assert_true(tn_device_has_capability_int(h200, 90));
    assert_int_equal(tn_platform_device_count(world_platform(&w, "cuda")), 2);
    assert_ptr_equal(tn_device_platform(h200), world_platform(&w, "cuda"));
    assert_int_equal(tn_device_memory_get(h200, &memory, &err), TN_OK);
    assert_true(memory.total.known && memory.total.value == INT64_C(141000000000));
    assert_string_equal(memory.available.origin, "the device is described for planning only");
    int32_t link;
    assert_int_equal(tn_device_link(h200, world_device(&w, "cuda:1"), &link, &err), TN_UNSUPPORTED);
    assert_int_equal(describe(&w, "[device b]\nplatform = cuda\n", &err), TN_OK);
    assert_string_equal(tn_device_id(world_device(&w, "b")), "cuda:2");
    world_end(&w);
}

static void bf16_and_triton_are_questions_of_their_own(void **state)
{
    static const char text[] =
        "[device old]\nplatform = stand\ndtypes = f16, f32\ntriton_capable = 0\n"
        "[device new]\nplatform = stand\ndtypes = bf16, f32\ntriton_capable = 1\n"
        "[device narrow]\nplatform = stand\ndtypes = bf16, i8\n"
        "[device small]\nplatform = stand\ndtypes = i8\n"
        "[device silent]\nplatform = stand\n";
    static const struct {
        const char *name;
        int32_t real, emulated, triton;
    } rows[] = {{"old", 0, 1, 0},
                {"new", 1, 1, 1},
                {"narrow", 1, 1, 0},
                {"small", 0, 0, 0},
                {"silent", 0, 0, 0}};
    world w;
    tn_error err = {0};
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_STAND, NULL);
    assert_int_equal(describe(&w, text, &err), TN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tn_device *device = world_device(&w, rows[i].name);
        assert_int_equal(tn_device_supports_bf16(device, 0), rows[i].real);
        assert_int_equal(tn_device_supports_bf16(device, 1), rows[i].emulated);
        assert_int_equal(tn_device_is_triton_capable(device), rows[i].triton);
    }
    assert_int_equal(tn_device_supports_bf16(NULL, 1), 0);
    assert_int_equal(tn_device_is_triton_capable(NULL), 0);
    assert_ptr_equal(world_device(&w, "triton_capable=1"), world_device(&w, "new"));
    assert_ptr_equal(world_device(&w, "triton_capable=0"), world_device(&w, "old"));
    world_end(&w);
}

static void bad_descriptions_add_nothing(void **state)
{
    static const struct {
        const char *text;
        tn_status status;
        const char *words;
    } rows[] = {
        {"[device a]\nplatform = cuda\n[device b]\nplatform = cudo\n", TN_NOT_FOUND,
         "lab.device:4: unknown platform \"cudo\""},
        {"[device a]\nplatform = cuda\n[device a]\nplatform = tpu\n", TN_INVALID_ARGUMENT, "a"},
        {"[device cpu]\nplatform = cuda\n", TN_ALREADY_EXISTS, "it is the name of a platform"},
        {"[device best]\nplatform = cuda\n", TN_ALREADY_EXISTS, "that word selects a device"},
        {"[device a]\nplatform = cuda\nbus = 00000000:01:00.0\n", TN_ALREADY_EXISTS,
         "\"00000000:01:00.0\" is already in use: acme:1"},
        {"[device a]\nplatform = cuda\nbus = 0000:AA:00.0\n"
         "[device b]\nplatform = cuda\nbus = 0000:aa:00.0\n",
         TN_ALREADY_EXISTS, "\"0000:aa:00.0\" is already in use: lab.device:1"},
        {"[device a]\nplatform = cuda\nbehaviour.fail_alloc = 1\n", TN_INVALID_ARGUMENT,
         "is for planning only"},
        {"[device a]\nplatform = cuda\n[device b]\nplatform = stand\nbehaviour.x = refuse\n",
         TN_INVALID_ARGUMENT, "lab.device:5: behaviour.x is not understood"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world w;
        tn_error err = {0};
        tn_device *device = NULL;
        world_make(&w, WORLD_ALL, NULL);
        assert_string_equal(tn_device_id(world_device(&w, "cpu")), "cpu:0");
        assert_int_equal(describe(&w, rows[i].text, &err), rows[i].status);
        assert_contains(err.message, rows[i].words);
        assert_contains(err.message, "lab.device");
        assert_int_equal(w.set->devices.count, 5);
        assert_int_equal(tn_platform_device_count(world_platform(&w, "cuda")), 0);
        assert_int_not_equal(tni_devices_get(w.set, "a", &device, &err), TN_OK);
        world_end(&w);
    }
}

static void a_refused_file_leaves_no_gap(void **state)
{
    world w;
    tn_error err = {0};
    (void)state;
    world_describes = 0;
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(describe(&w,
                              "[device]\nplatform = stand\n[device]\nplatform = stand\n"
                              "behaviour.x = refuse\n",
                              &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(world_describes, 0); /* all were checked before the first was added */
    assert_int_equal(describe(&w, "[device]\nplatform = stand\n", &err), TN_OK);
    assert_string_equal(tn_device_id(world_device(&w, "stand")), "stand:0");
    world_end(&w);
}

static void numbers_that_are_none_are_refused(void **state)
{
    static const int32_t bad[][2] = {{-5, 0}, {3, 3}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        world w;
        tn_error err = {0};
        world_describes = 0;
        world_numbers = bad[i];
        world_make(&w, WORLD_ALL, NULL);
        assert_int_equal(
            describe(&w, "[device]\nplatform = stand\n[device]\nplatform = stand\n", &err),
            TN_CORRUPT);
        assert_contains(err.message, i ? "the number 3, which belongs to another device"
                                       : "the number -5, which is not a device number");
        assert_int_equal(tn_platform_device_count(world_platform(&w, "stand")), 0);
        world_end(&w);
    }
    world_numbers = NULL;
}

static void a_module_that_comes_late_has_its_numbers(void **state)
{
    world w;
    tn_error err = {0};
    tn_registration *registration = NULL;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(describe(&w, "[device early]\nplatform = cuda\n", &err), TN_OK);
    assert_int_equal(tn_device_plans_only(world_device(&w, "cuda:0")), 1);
    assert_int_equal(
        tni_platforms_register(w.set, world_builtins(WORLD_ACME)[0].entry, 0, &registration, &err),
        TN_OK);
    assert_int_equal(describe(&w, "[device more]\nplatform = acme\n", &err), TN_OK);
    assert_string_equal(tn_device_id(world_device(&w, "more")), "acme:3");
    tn_registration_release(registration);
    assert_string_equal(tn_device_id(world_device(&w, "more")), "acme:3");
    assert_int_equal(
        tni_platforms_register(w.set, world_builtins(WORLD_ACME)[0].entry, 0, &registration, &err),
        TN_OK);
    assert_int_equal(tn_device_plans_only(world_device(&w, "acme:0")), 0);
    assert_int_equal(tn_platform_device_count(world_platform(&w, "acme")), 4);
    tn_registration_release(registration);
    world_end(&w);
}

/* The module of `cpu` under another name, with its one device as a cuda one. */
static tn_status cuda_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static tn_platform_row row;
    static const tn_platform_row *const rows[] = {&row, NULL};
    static tn_module module;
    const tn_module *cpu = NULL;
    tn_status status = world_builtins(WORLD_CPU)[0].entry(host, &cpu, err);
    row = *cpu->platforms[0];
    row.name = "cuda";
    row.kind = TN_PLATFORM_CUDA;
    module = *cpu;
    module.name = "late";
    module.platforms = rows;
    *out = &module;
    return status;
}

static void one_for_planning_steps_back_for_one_that_runs(void **state)
{
    world w;
    tn_error err = {0};
    tn_registration *registration = NULL;
    tn_device *found = NULL;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(
        describe(&w, "[device a]\nplatform = cuda\n[device b]\nplatform = cuda\n", &err), TN_OK);
    tn_device *a = world_device(&w, "a"), *b = world_device(&w, "b");
    const tn_platform *cuda = world_platform(&w, "cuda");
    assert_int_equal(tni_platforms_register(w.set, cuda_entry, 0, &registration, &err), TN_OK);
    tn_device *runs = world_device(&w, "cuda:0");
    assert_int_equal(tn_device_plans_only(runs), 0);
    assert_false(tni_device_is_visible(a));
    assert_int_equal(tni_devices_get(w.set, "a", &found, &err), TN_NOT_FOUND);
    assert_contains(err.message, "present: cpu:0, cuda:1 (for planning only), cuda:0");
    assert_int_equal(tn_platform_device_count(cuda), 2);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(tn_device_set(cuda, i, &err), TN_OK);
        assert_int_equal(tn_platform_device_get(cuda, i, &found, &err), TN_OK);
        assert_ptr_equal(found, i ? b : runs);
    }
    assert_int_equal(tn_device_set(cuda, 0, &err), TN_OK);
    assert_int_equal(tn_platform_device_get(cuda, 2, &found, &err), TN_NOT_FOUND);
    assert_string_equal(err.message, "no device \"cuda:2\": cuda has 2");
    tn_registration_release(registration);
    assert_ptr_equal(world_device(&w, "cuda:0"), a); /* and comes forward again */
    assert_int_equal(tn_platform_device_count(cuda), 2);
    world_end(&w);
}

/* A platform whose devices tell nonsense, nothing, and the truth; and ask in their turn. */
static struct {
    tni_platforms *set;
    _Atomic int asked[3];
    _Atomic int failed;
} odd;

static tn_status odd_probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 3;
    return TN_OK;
}

static tn_status odd_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "odd", "no memory here");
}

static void odd_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status odd_copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job, (void)err;
    return TN_OK;
}

static tn_status odd_properties(void *self, int32_t device, tn_device_properties *out,
                                tn_error *err)
{
    (void)self;
    odd.asked[device]++;
    if (odd.set) /* others come in meanwhile, and it asks itself */
        odd.failed += tni_platforms_sync(odd.set, err) != TN_OK;
    for (int i = 0; i < 100; i++)
        (void)sched_yield();
    if (device == 1)
        return tn_fail(err, TN_IO, 5, "odd", "the board does not answer");
    out->known = device == 0 ? ~UINT64_C(0) : TN_DEVICE_KNOWS(memory_bytes);
    out->memory_bytes = device == 0 ? -5 : 1024;
    out->warp_size = 32;
    out->is_integrated = 2;
    out->capability = (tn_capability){-3, -9};
    out->dtypes[0] = 0xFF;
    out->dtypes[1] = TN_F32;
    return TN_OK;
}

static tn_status odd_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row row = {.struct_size = sizeof row,
                                        .name = "odd",
                                        .kind = TN_PLATFORM_OOT,
                                        .probe = odd_probe,
                                        .memory_alloc = odd_alloc,
                                        .memory_free = odd_free,
                                        .copy = odd_copy,
                                        .device_properties = odd_properties};
    static const tn_platform_row *const rows[] = {&row, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "odd",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void odd_world_make(world *out)
{
    static const tni_builtin builtins[] = {{"odd", odd_entry}, {NULL, NULL}};
    const tni_registry_params params = {.builtins = builtins};
    tn_error err = {0};
    memset(&odd, 0, sizeof odd);
    if (tni_registry_create(&params, &out->registry, &err) ||
        tni_platforms_create(out->registry, NULL, &out->set, &err))
        fail_msg("%s", err.message);
}

static void what_cannot_be_is_unknown_and_shown(void **state)
{
    world w;
    tn_error err;
    (void)state;
    odd_world_make(&w);
    const tn_device_properties *p = tn_device_properties_get(world_device(&w, "odd:0"));
    assert_int_equal(p->known & (TN_DEVICE_KNOWS(memory_bytes) | TN_DEVICE_KNOWS(capability) |
                                 TN_DEVICE_KNOWS(is_integrated)),
                     0);
    assert_int_equal(p->known >> TN_DEVICE_NUMBER_COUNT, 0);
    assert_true(p->known & TN_DEVICE_KNOWS(warp_size) && p->warp_size == 32);
    assert_true(p->memory_bytes == 0 && p->is_integrated == 0 && p->capability.major == 0);
    assert_true(p->dtypes[0] == TN_F32 && p->dtypes[1] == 0);
    const tn_device_properties *last = tn_device_properties_get(world_device(&w, "odd:2"));
    assert_true(last->memory_bytes == 1024 && last->warp_size == 0 && last->capability.minor == 0);
    assert_int_equal(last->known, TN_DEVICE_KNOWS(memory_bytes));

    tn_platform_list *list = NULL;
    char text[1024] = "";
    assert_int_equal(tni_platform_list_of(w.set, &list, &err), TN_OK);
    size_t at = 0;
    while (strcmp(tn_platform_list_get(list, at)->name, "odd") != 0)
        at++;
    const tn_platform_report *report = tn_platform_list_get(list, at);
    for (size_t i = 0; i < report->evidence_count; i++) {
        const tn_platform_evidence *e = tn_platform_list_evidence(list, at, i);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s: %s (%d)\n", e->what, e->found,
                 (int)e->holds);
    }
    assert_contains(text, "properties of odd:0: impossible values, treated as unknown: "
                          "known 0x7fffffffffff0000, memory -5, is_integrated 2, "
                          "capability -3.-9, dtype 0xff (0)\n");
    assert_contains(text, "properties of odd:1: does not report its properties: the board does not "
                          "answer (0)\n");
    assert_contains(text, "properties of odd:2: impossible values, treated as unknown: "
                          "dtype 0xff (0)\n");
    tn_platform_list_release(list);
    world_end(&w);
}

static void sync_once(void *user)
{
    odd.failed += tni_platforms_sync(user, NULL) != TN_OK;
}

static void each_device_is_asked_once(void **state)
{
    enum { THREADS = 4 };
    world w;
    tni_thread threads[THREADS];
    (void)state;
    odd_world_make(&w);
    odd.set = w.set;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], sync_once, w.set, NULL), TN_OK);
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(odd.failed, 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(odd.asked[i], 1);
    assert_int_equal(w.set->devices.count, 3);
    world_end(&w);
}

static void nothing_is_asked_of_no_device(void **state)
{
    tn_error err;
    int32_t out = 7;
    tn_capability capability;
    tn_device_memory memory = {.struct_size = sizeof memory};
    (void)state;
    assert_string_equal(tn_device_id(NULL), "");
    assert_string_equal(tn_device_name(NULL), "");
    assert_string_equal(tn_device_uuid(NULL), "");
    assert_string_equal(tn_device_bus(NULL), "");
    assert_string_equal(tn_device_origin(NULL), "");
    assert_int_equal(tn_device_index(NULL), -1);
    assert_int_equal(tn_device_plans_only(NULL), 0);
    assert_null(tn_device_properties_get(NULL));
    assert_ptr_equal(tn_device_platform(NULL), tn_platform_unspecified());
    assert_int_equal(tn_device_capability(NULL, &capability, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_memory_get(NULL, &memory, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_verify_dtype(NULL, TN_F32, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_link(NULL, NULL, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_supported_dtypes(NULL)[0], 0);
    assert_int_equal(tn_device_get(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_count(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_file_add(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_device_file_add("", &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "path is empty");
    assert_int_equal(tn_device_file_add("/no/such/file", &err), TN_NOT_FOUND);
    assert_int_equal(out, 7);
}

static void process_has_a_cpu(void **state)
{
    size_t count = 0;
    tn_device *cpu = NULL;
    tn_error err = {0};
    tn_device_memory memory = {.struct_size = sizeof memory};
    (void)state;
    assert_int_equal(tn_device_count(&count, &err), TN_OK);
    assert_true(count >= 1);
    assert_non_null(tn_device_at(0));
    assert_null(tn_device_at(count));
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    assert_string_not_equal(tn_device_name(cpu), "");
    assert_int_equal(strlen(tn_device_uuid(cpu)), 36);
    assert_int_equal(tn_device_memory_get(cpu, &memory, &err), TN_OK);
    assert_true(memory.total.known && memory.total.value > 0);
    assert_true(memory.in_use.value < memory.total.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_have_an_order),
        cmocka_unit_test(capabilities_are_parsed),
        cmocka_unit_test(devices_are_found_by_every_name),
        cmocka_unit_test(properties_answer_questions),
        cmocka_unit_test(memory_is_told_or_unknown),
        cmocka_unit_test(links_join_devices),
        cmocka_unit_test(generators_are_by_number),
        cmocka_unit_test(described_devices_plan_or_run),
        cmocka_unit_test(bf16_and_triton_are_questions_of_their_own),
        cmocka_unit_test(bad_descriptions_add_nothing),
        cmocka_unit_test(a_refused_file_leaves_no_gap),
        cmocka_unit_test(numbers_that_are_none_are_refused),
        cmocka_unit_test(a_module_that_comes_late_has_its_numbers),
        cmocka_unit_test(one_for_planning_steps_back_for_one_that_runs),
        cmocka_unit_test(what_cannot_be_is_unknown_and_shown),
        cmocka_unit_test(each_device_is_asked_once),
        cmocka_unit_test(nothing_is_asked_of_no_device),
        cmocka_unit_test(process_has_a_cpu),
    };
    return run_suite("unit.devices", tests);
}
