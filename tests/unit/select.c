/* Devices by conditions. */
#include "world.h"

#include "device/select.h"

static void conditions_are_parsed(void **state)
{
    tni_select_terms terms = {0};
    tn_error err;
    (void)state;
    assert_int_equal(tni_select_parse("best", &terms, &err), TN_OK);
    assert_int_equal(terms.count, 0);
    assert_int_equal(
        tni_select_parse("platform!=cuda,capability<9.1,memory>=40g,numa_node=1", &terms, &err),
        TN_OK);
    assert_int_equal(terms.count, 4);
    assert_string_equal(terms.items[0].word, "cuda");
    assert_int_equal(terms.items[0].op, TNI_SELECT_NE);
    assert_int_equal(terms.items[1].capability.major, 9);
    assert_int_equal(terms.items[1].op, TNI_SELECT_LT);
    assert_true(terms.items[2].number == INT64_C(40) << 30);
    assert_int_equal(terms.items[2].op, TNI_SELECT_GE);
    assert_int_equal(terms.items[3].number, 1);
    assert_true(tni_select_is("best") && tni_select_is("a=b") && tni_select_is("a>1"));
    assert_false(tni_select_is("cuda:0") || tni_select_is("bestest") || tni_select_is(""));
}

static void sizes_have_units(void **state)
{
    static const struct {
        const char *text;
        int64_t number;
    } rows[] = {{"memory>0", 0},
                {"memory>1k", 1024},
                {"memory>3M", INT64_C(3) << 20},
                {"memory>5t", INT64_C(5) << 40},
                {"memory>8388607t", INT64_C(8388607) << 40},
                {"memory>999999999999999999", INT64_C(999999999999999999)}};
    tni_select_terms terms;
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tni_select_parse(rows[i].text, &terms, &err), TN_OK);
        assert_true(terms.items[0].number == rows[i].number);
    }
}

static void nonsense_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"memroy>=40g", "unknown condition \"memroy\": expected platform, name, architecture, "
                        "capability, memory or another number of tn_device_properties; did you "
                        "mean memory?"},
        {"memory>=40q", "memory: expected a number such as 40, 40k, 40m, 40g or 40t; got \"40q\""},
        {"memory>=40gb", "got \"40gb\""},
        {"memory>=-1", "got \"-1\""},
        {"memory>=8388608t", "in \"memory>=8388608t\": 8388608t is too large; the largest number "
                             "is 9223372036854775807"},
        {"memory>=9999999999999999999", "9999999999999999999 is too large"},
        {"memory>=", "expected a condition such as memory>=40g, got \"memory>=\""},
        {">=4", "expected a condition such as"},
        {"memory!4", "expected a condition such as"},
        {"memory>1,", "expected a condition after the last comma"},
        {",memory>1", "expected a condition such as"},
        {"platform>cuda", "platform: expected = or !=, got >"},
        {"capability>=x", "in \"capability>=x\": capability: expected the form"},
        {"name=0123456789012345678901234567890123456789012345678901234567890", "at most 63 bytes"},
        {"memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,"
         "memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,memory>1,memory>1",
         "at most 16 conditions"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tni_select_terms terms = {.count = 77};
        tn_error err = {0};
        assert_int_equal(tni_select_parse(rows[i].text, &terms, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, rows[i].words);
        assert_int_equal(terms.count, 77);
    }
}

static void best_device_that_fits_is_found(void **state)
{
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"best", "acme:0"},
        {"capability>=3.6", "acme:1"},
        {"capability=3.5", "acme:0"},
        {"capability!=3.5", "acme:1"},
        {"memory>=16g", "acme:0"},
        {"memory<=16g,physical_index>0", "acme:1"},
        {"platform=cpu", "cpu:0"},
        {"platform!=acme", "bolt:0"},
        {"name=Acme Board 1", "acme:1"},
        {"platform=acme,memory>16g", NULL},
        {"clock>0", NULL}, /* no one tells, and what is unknown meets nothing */
        {"clock<=0", NULL},
        {"clock!=1", NULL},
        {"clock=0", NULL},
        {"clock<1", NULL},
        {"platform=bolt,capability!=1.0", NULL},
        {"platform=bolt,capability<=0.0", NULL},
        {"platform=bolt,architecture!=x", NULL},
    };
    world w;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    world_make(&w, WORLD_ALL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_device *device = NULL;
        tn_status status = tni_devices_get(w.set, rows[i].text, &device, &err);
        assert_int_equal(status, rows[i].id ? TN_OK : TN_NOT_FOUND);
        if (rows[i].id)
            assert_string_equal(tn_device_id(device), rows[i].id);
        else
            assert_contains(err.message, "present: cpu:0, acme:0 (Acme Board 0)");
    }
    assert_int_equal(tni_platforms_select(w.set, "cpu", &err), TN_OK);
    assert_string_equal(tn_device_id(world_device(&w, "best")), "cpu:0");
    assert_string_equal(tn_device_id(world_device(&w, "platform!=bolt")), "cpu:0");
    world_end(&w);
}

/* What is asked, what is missing, and what there is instead. */
static void what_is_not_met_is_named(void **state)
{
    static const char plans[] =
        "[device big]\nplatform = cuda\nname = NVIDIA Big\nmemory = 80 GB\n";
    static const struct {
        const char *text;
        tn_status status;
        const char *words;
    } rows[] = {
        {"memory>1k,memory>170g", TN_NOT_FOUND,
         "no device matches \"memory>170g\" in \"memory>1k,memory>170g\"; present: cpu:0, "},
        {"capability=3.5,physical_index=2", TN_NOT_FOUND,
         "no device matches all conditions together in \"capability=3.5,physical_index=2\""},
        {"platform=rocm", TN_UNAVAILABLE, "platform rocm is broken: "},
        {"platform=stand,memory>1", TN_NOT_FOUND, "platform stand has no device yet"},
        {"platform=acne", TN_NOT_FOUND,
         "in \"platform=acne\": unknown platform \"acne\"; platforms: cpu"},
        {"platform=acne", TN_NOT_FOUND, "did you mean acme?"},
        {"memory>70g", TN_NOT_FOUND,
         "\"memory>70g\": cuda:0 is skipped because it is for planning only, and no other device "
         "matches"},
        {"platform=cuda", TN_NOT_FOUND, "cuda:0 is skipped because it is for planning only"},
        {"nonsense", TN_NOT_FOUND, "cuda:0 (NVIDIA Big, for planning only)"},
    };
    world w;
    tni_descriptions *descriptions = NULL;
    tn_registration *registration = NULL;
    tn_device *device = NULL;
    tn_error err = {0};
    (void)state;
    world_make(&w, WORLD_ALL - WORLD_BOLT, NULL);
    assert_int_equal(tni_devices_get(w.set, "platform=cuda", &device, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "libcuda.so.1 was not found");
    assert_int_equal(tni_descriptions_parse(plans, sizeof plans - 1, "x", &descriptions, &err),
                     TN_OK);
    assert_int_equal(tni_devices_describe(w.set, descriptions, "x", &err), TN_OK);
    tni_descriptions_release(descriptions);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tni_devices_get(w.set, rows[i].text, &device, &err), rows[i].status);
        assert_contains(err.message, rows[i].words);
        assert_null(device);
    }
    assert_int_equal(
        tni_platforms_register(w.set, world_builtins(WORLD_BOLT)[0].entry, 0, &registration, &err),
        TN_OK);
    assert_int_equal(tni_devices_get(w.set, "bolt:7", &device, &err), TN_NOT_FOUND);
    assert_contains(err.message, "did you mean bolt:0?");
    tn_registration_release(registration);
    assert_int_equal(tni_devices_get(w.set, "bold:0", &device, &err), TN_NOT_FOUND);
    assert_null(strstr(err.message, "bolt")); /* it is gone */
    world_end(&w);
}

/* And of those with as much the first. */
static void best_has_the_most_memory(void **state)
{
    static const char text[] = "[device]\nplatform = stand\nmemory = 1 GB\n"
                               "[device]\nplatform = stand\nmemory = 5 GB\n"
                               "[device]\nplatform = stand\nmemory = 3 GB\n"
                               "[device]\nplatform = stand\nmemory = 5 GB\n";
    world w;
    tni_descriptions *descriptions = NULL;
    tn_error err = {0};
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_STAND, NULL);
    assert_int_equal(tni_descriptions_parse(text, sizeof text - 1, "x", &descriptions, &err),
                     TN_OK);
    assert_int_equal(tni_devices_describe(w.set, descriptions, "x", &err), TN_OK);
    tni_descriptions_release(descriptions);
    assert_int_equal(tni_platforms_select(w.set, "stand", &err), TN_OK);
    assert_string_equal(tn_device_id(world_device(&w, "best")), "stand:1");
    assert_string_equal(tn_device_id(world_device(&w, "memory>0")), "stand:1");
    assert_string_equal(tn_device_id(world_device(&w, "memory<5000000000")), "stand:2");
    world_end(&w);
}

static void planned_devices_are_passed_over(void **state)
{
    static const char text[] = "[device h200]\nplatform = cuda\nmemory = 141 GB\n";
    world w;
    tni_descriptions *descriptions = NULL;
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(tni_descriptions_parse(text, sizeof text - 1, "x", &descriptions, &err),
                     TN_OK);
    assert_int_equal(tni_devices_describe(w.set, descriptions, "x", &err), TN_OK);
    tni_descriptions_release(descriptions);
    assert_int_equal(tni_devices_get(w.set, "memory>100g", &device, &err), TN_NOT_FOUND);
    world_end(&w);
}

static void lose(const tn_device *device)
{
    const tn_error said = {.message = "it melted"};
    tni_call call;
    tn_error err = {0};
    assert_int_equal(tni_device_open(device, "test", &call, &err), TN_OK);
    assert_int_equal(tni_device_result_check(&call, "test", TN_DEVICE_LOST, &said, &err),
                     TN_DEVICE_LOST);
}

static void lost_devices_are_passed_over(void **state)
{
    world w;
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    assert_string_equal(tn_device_id(world_device(&w, "best")), "acme:0");
    lose(world_device(&w, "acme:0"));
    assert_string_equal(tn_device_id(world_device(&w, "best")), "acme:1");
    assert_string_equal(tn_device_id(world_device(&w, "memory>=16g")), "acme:1");
    assert_int_equal(tni_devices_get(w.set, "capability=3.5", &device, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "acme:0 was lost at test: it melted");
    lose(world_device(&w, "acme:1"));
    assert_int_equal(tni_devices_get(w.set, "memory>=16g", &device, &err), TN_DEVICE_LOST);
    assert_null(device);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_parsed),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(nonsense_is_refused_with_its_place),
        cmocka_unit_test(best_device_that_fits_is_found),
        cmocka_unit_test(what_is_not_met_is_named),
        cmocka_unit_test(best_has_the_most_memory),
        cmocka_unit_test(planned_devices_are_passed_over),
        cmocka_unit_test(lost_devices_are_passed_over),
    };
    return run_suite("unit.select", tests);
}
