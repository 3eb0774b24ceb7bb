/* Platforms: their words, what they support, and which one is current. */
#include "world.h"

#include "os/thread.h"

static void kinds_have_words(void **state)
{
    static const struct {
        int32_t kind;
        const char *name, *device_name, *device_type, *dispatch_key, *variable;
    } rows[] = {
        {TN_PLATFORM_CPU, "cpu", "CPU", "cpu", "CPU", ""},
        {TN_PLATFORM_CUDA, "cuda", "cuda", "cuda", "CUDA", "CUDA_VISIBLE_DEVICES"},
        {TN_PLATFORM_ROCM, "rocm", "rocm", "cuda", "CUDA", "HIP_VISIBLE_DEVICES"},
        {TN_PLATFORM_TPU, "tpu", "tpu", "tpu", "XLA", "TPU_VISIBLE_CHIPS"},
        {TN_PLATFORM_MPS, "mps", "mps", "mps", "MPS", ""},
        {TN_PLATFORM_XPU, "xpu", "xpu", "xpu", "XPU", "ZE_AFFINITY_MASK"},
        {TN_PLATFORM_NPU, "npu", "npu", "npu", "PrivateUse1", "ASCEND_RT_VISIBLE_DEVICES"},
        {TN_PLATFORM_OPENCL, "opencl", "opencl", "opencl", "PrivateUse1", ""},
    };
    world w;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tn_platform *p = world_platform(&w, rows[i].name);
        assert_int_equal(tn_platform_kind(p), rows[i].kind);
        assert_string_equal(tn_platform_name(p), rows[i].name);
        assert_string_equal(tn_platform_kind_name(rows[i].kind), rows[i].name);
        assert_string_equal(tni_kind_word(rows[i].kind), rows[i].name);
        assert_string_equal(tn_platform_device_name(p), rows[i].device_name);
        assert_string_equal(tn_platform_device_type(p), rows[i].device_type);
        assert_string_equal(tn_platform_dispatch_key(p), rows[i].dispatch_key);
        assert_string_equal(tn_platform_visible_variable(p), rows[i].variable);
    }
    assert_string_equal(tn_platform_kind_name(TN_PLATFORM_OOT), "out-of-tree");
    assert_string_equal(tni_kind_word(TN_PLATFORM_OOT), "out-of-tree");
    assert_string_equal(tn_platform_kind_name(TN_PLATFORM_UNSPECIFIED), "unspecified");
    assert_string_equal(tn_platform_kind_name(TN_PLATFORM_KIND_COUNT), "unknown");
    assert_string_equal(tn_platform_kind_name(-1), "unknown");
    world_end(&w);
}

static void row_goes_before_its_kind(void **state)
{
    world w;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    const tn_platform *acme = world_platform(&w, "acme"), *bolt = world_platform(&w, "bolt");
    assert_string_equal(tn_platform_device_name(acme), "Acme");
    assert_string_equal(tn_platform_device_type(acme), "acme");
    assert_string_equal(tn_platform_dispatch_key(acme), "PrivateUse1");
    assert_string_equal(tn_platform_visible_variable(acme), "ACME_VISIBLE");
    assert_string_equal(tn_platform_device_name(bolt), "bolt");
    assert_string_equal(tn_platform_visible_variable(bolt), "");
    world_end(&w);
}

static void predicates_look_at_the_kind_alone(void **state)
{
    static const char *const names[] = {"cpu", "cuda", "rocm", "tpu", "mps", "xpu", "npu", "acme"};
    static int32_t (*const predicates[])(const tn_platform *) = {
        tn_platform_is_cpu, tn_platform_is_cuda, tn_platform_is_rocm, tn_platform_is_tpu,
        tn_platform_is_mps, tn_platform_is_xpu,  tn_platform_is_npu,  tn_platform_is_out_of_tree};
    world w;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tn_platform *p = world_platform(&w, names[i]);
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
            assert_int_equal(predicates[j](p), i == j);
        assert_int_equal(tn_platform_is_cuda_alike(p), i == 1 || i == 2);
    }
    world_end(&w);
}

static void lists_are_verified_with_the_nearest(void **state)
{
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    const tn_platform *acme = world_platform(&w, "acme"), *bolt = world_platform(&w, "bolt");
    assert_string_equal(tn_platform_supported_quantization(acme)[1], "fp8");
    assert_null(tn_platform_supported_quantization(acme)[3]);
    assert_int_equal(tn_platform_verify_quantization(acme, "awq", &err), TN_OK);
    assert_int_equal(tn_platform_verify_quantization(acme, "int9", &err), TN_UNSUPPORTED);
    assert_string_equal(err.message, "platform acme does not support the quantization \"int9\"; it "
                                     "supports int8, fp8, awq; did you mean int8?");
    assert_int_equal(tn_platform_verify_quantization(acme, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_verify_model_arch(acme, "LlamaForCausalLM", &err), TN_OK);
    assert_int_equal(tn_platform_verify_model_arch(acme, "Whisper", &err), TN_UNSUPPORTED);
    assert_contains(err.message,
                    "the model architecture \"Whisper\"; it supports LlamaForCausalLM");
    assert_null(tn_platform_supported_quantization(bolt)[0]);
    assert_null(tn_platform_supported_model_arch(bolt)[0]);
    assert_int_equal(tn_platform_verify_quantization(bolt, "anything", &err), TN_OK);
    assert_int_equal(tn_platform_verify_model_arch(bolt, "anything", &err), TN_OK);
    world_end(&w);
}

static void languages_and_communicators_are_the_modules(void **state)
{
    world w;
    const char *reason;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    const tn_platform *acme = world_platform(&w, "acme"), *cpu = world_platform(&w, "cpu");
    assert_string_equal(tn_platform_simple_compile_backend(acme, &reason), "acme-c");
    assert_string_equal(reason, "");
    assert_string_equal(tn_platform_communicator(acme, &reason), "acmecl");
    assert_string_equal(tn_platform_simple_compile_backend(cpu, &reason), "");
    assert_string_equal(reason, "no module offers a kernel language for platform cpu");
    assert_string_equal(tn_platform_communicator(cpu, &reason), "");
    assert_string_equal(reason, "no module offers a communicator for platform cpu");
    assert_string_equal(tn_platform_communicator(cpu, NULL), "");
    world_end(&w);
}

static void async_output_has_a_reason(void **state)
{
    world w;
    tn_error err;
    int32_t supported = -1;
    const char *reason = NULL;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    const tn_platform *acme = world_platform(&w, "acme");
    assert_int_equal(tn_platform_is_async_output_supported(acme, 0, &supported, &reason, &err),
                     TN_OK);
    assert_int_equal(supported, 1);
    assert_contains(reason, "once a graph is recorded");
    assert_int_equal(tn_platform_is_async_output_supported(acme, 1, &supported, NULL, &err), TN_OK);
    assert_int_equal(supported, 0);
    const tn_platform *cpu = world_platform(&w, "cpu");
    assert_int_equal(tn_platform_is_async_output_supported(cpu, 0, &supported, &reason, &err),
                     TN_OK);
    assert_int_equal(supported, 0);
    assert_contains(reason, "no reason");
    const tn_platform *tpu = world_platform(&w, "tpu");
    supported = 5;
    assert_int_equal(tn_platform_is_async_output_supported(tpu, 0, &supported, &reason, &err),
                     TN_UNAVAILABLE);
    assert_contains(err.message, "platform tpu is ");
    assert_int_equal(supported, 5);
    assert_int_equal(tn_platform_is_async_output_supported(cpu, 0, NULL, NULL, &err),
                     TN_INVALID_ARGUMENT);
    world_end(&w);
}

static void every_query_answers_on_every_kind(void **state)
{
    static const char *const names[] = {"cpu", "cuda",   "rocm", "tpu",  "mps",  "xpu",
                                        "npu", "opencl", "acme", "bolt", "stand"};
    world w;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tn_platform *p = world_platform(&w, names[i]);
        const char *reason = NULL;
        tn_error err = {0};
        tn_device *device = NULL;
        int32_t out = -1;
        bool offered = tni_platform_row_of(p) != NULL, has = tn_platform_device_count(p) > 0;
        assert_string_not_equal(tn_platform_device_name(p), "");
        assert_true(tn_platform_simple_compile_backend(p, &reason)[0] || reason[0]);
        assert_true(tn_platform_communicator(p, &reason)[0] || reason[0]);
        assert_non_null(tn_platform_supported_quantization(p));
        assert_non_null(tn_platform_supported_model_arch(p));
        assert_int_equal(tn_platform_verify_quantization(p, "fp8", &err), TN_OK);
        assert_int_equal(tn_platform_inference_mode(p), 0);
        for (int32_t eager = 0; eager < 2; eager++) {
            tn_status status = tn_platform_is_async_output_supported(p, eager, &out, &reason, &err);
            assert_int_equal(status, offered ? TN_OK : TN_UNAVAILABLE);
            assert_true(status ? err.message[0] != '\0' : reason[0] != '\0');
        }
        assert_int_equal(tn_platform_id_convert(p, TN_ID_PHYSICAL, 0, TN_ID_PHYSICAL, &out, &err),
                         TN_OK);
        tn_status status = tn_platform_device_get(p, 0, &device, &err);
        assert_int_equal(status == TN_OK, has);
        assert_int_equal(tn_platform_is_fully_connected(p, &out, &err) == TN_OK, has);
        if (has)
            assert_ptr_equal(tn_device_platform(device), p);
        else
            assert_contains(err.message, names[i]);
    }
    world_end(&w);
}

static void check_unspecified(const tn_platform *p)
{
    tn_error err;
    int32_t out = -1;
    tn_device *device = NULL;
    const char *reason = NULL;
    const int32_t ids[] = {0};
    assert_int_equal(tn_platform_kind(p), TN_PLATFORM_UNSPECIFIED);
    assert_string_equal(tn_platform_name(p), "unspecified");
    assert_string_equal(tn_platform_device_type(p), "");
    assert_string_equal(tn_platform_device_name(p), "");
    assert_string_equal(tn_platform_dispatch_key(p), "CPU");
    assert_string_equal(tn_platform_visible_variable(p), "");
    assert_false(tn_platform_is_cpu(p) || tn_platform_is_cuda(p) || tn_platform_is_rocm(p) ||
                 tn_platform_is_tpu(p) || tn_platform_is_mps(p) || tn_platform_is_xpu(p) ||
                 tn_platform_is_npu(p) || tn_platform_is_out_of_tree(p) ||
                 tn_platform_is_cuda_alike(p) || tn_platform_inference_mode(p));
    assert_string_equal(tn_platform_simple_compile_backend(p, &reason), "");
    assert_contains(reason, "no platform is selected");
    assert_string_equal(tn_platform_communicator(p, &reason), "");
    assert_contains(reason, "no platform is selected");
    assert_null(tn_platform_supported_quantization(p)[0]);
    assert_null(tn_platform_supported_model_arch(p)[0]);
    assert_int_equal(tn_platform_device_count(p), 0);
    const tn_status failures[] = {
        tn_platform_verify_quantization(p, "x", &err),
        tn_platform_verify_model_arch(p, "x", &err),
        tn_platform_is_async_output_supported(p, 0, &out, &reason, &err),
        tn_platform_ids_assign(p, ids, 1, &err),
        tn_platform_id_convert(p, TN_ID_LOGICAL, 0, TN_ID_PHYSICAL, &out, &err),
        tn_platform_device_get(p, 0, &device, &err),
        tn_platform_is_fully_connected(p, &out, &err),
    };
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        assert_int_equal(failures[i], TN_UNAVAILABLE);
    assert_contains(err.message, "call tn_platform_current or tn_platform_get");
    assert_int_equal(out, -1);
    assert_null(device);
}

static void unspecified_answers_everything(void **state)
{
    (void)state;
    check_unspecified(tn_platform_unspecified());
    check_unspecified(NULL);
}

static void expect_current(unsigned modules, const char *name, const char *how)
{
    world w;
    const tn_platform *current = NULL, *again = NULL;
    tn_platform_list *list = NULL;
    tn_error err = {0};
    world_make(&w, modules, NULL);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), name);
    assert_int_equal(tni_platforms_current(w.set, &again, &err), TN_OK);
    assert_ptr_equal(current, again);
    assert_int_equal(tni_platform_list_of(w.set, &list, &err), TN_OK);
    assert_string_equal(tn_platform_list_choice(list), how);
    assert_int_equal(tn_platform_list_choice_status(list), TN_OK);
    tn_platform_list_release(list);
    world_end(&w);
}

static void best_that_is_ready_is_current(void **state)
{
    (void)state;
    unsetenv("TENON_PLATFORM");
    expect_current(WORLD_CPU, "cpu", "cpu: the first platform that is ready");
    expect_current(WORLD_CPU | WORLD_AWAY | WORLD_BROKEN, "cpu",
                   "cpu: the first platform that is ready");
    expect_current(WORLD_CPU | WORLD_STAND, "cpu", "cpu: the first platform that is ready");
    expect_current(WORLD_CPU | WORLD_BOLT, "bolt",
                   "bolt: the first platform that is ready; also ready: cpu");
    expect_current(WORLD_ALL, "acme",
                   "acme: the first platform that is ready; also ready: bolt, cpu");
}

static void nothing_ready_is_said(void **state)
{
    world w;
    const tn_platform *current = NULL;
    tn_platform_list *list = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    world_make(&w, WORLD_AWAY | WORLD_BROKEN, NULL);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "no platform is ready");
    assert_null(current);
    assert_int_equal(tni_platform_list_of(w.set, &list, &err), TN_OK);
    assert_int_equal(tn_platform_list_choice_status(list), TN_UNAVAILABLE);
    assert_contains(tn_platform_list_choice(list), "no platform is ready");
    assert_int_equal(tn_platform_list_count(list), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(tn_platform_list_get(list, i)->current, 0);
    tn_platform_list_release(list);
    world_end(&w);
}

static void variable_is_honoured_or_refused(void **state)
{
    static const struct {
        const char *value;
        tn_status status;
        const char *words;
    } cases[] = {
        {"cpu", TN_OK, ""},
        {"stand", TN_OK, ""},
        {"", TN_OK, ""},
        {"cuda", TN_UNAVAILABLE, "TENON_PLATFORM: platform cuda is "},
        {"rocm", TN_UNAVAILABLE,
         "TENON_PLATFORM: platform rocm is broken: module broken: the board "
         "does not answer"},
        {"acne", TN_NOT_FOUND,
         "TENON_PLATFORM: unknown platform \"acne\"; platforms: cpu, cuda, rocm, "
         "tpu, mps, xpu, npu, opencl, acme, bolt, stand; did you mean acme?"},
        {"CPU", TN_NOT_FOUND, "did you mean cpu?"},
        {"\xff\n", TN_NOT_FOUND, "unknown platform"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        const tn_platform *current = NULL;
        tn_error err = {0};
        setenv("TENON_PLATFORM", cases[i].value, 1);
        world_make(&w, WORLD_ALL, NULL);
        assert_int_equal(tni_platforms_current(w.set, &current, &err), cases[i].status);
        if (cases[i].status == TN_OK)
            assert_string_equal(tn_platform_name(current),
                                cases[i].value[0] ? cases[i].value : "acme");
        else
            assert_contains(err.message, cases[i].words);
        world_end(&w);
    }
    unsetenv("TENON_PLATFORM");
}

static void program_selects(void **state)
{
    world w;
    const tn_platform *current = NULL;
    tn_platform_list *list = NULL;
    tn_error err;
    (void)state;
    setenv("TENON_PLATFORM", "bolt", 1);
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(tni_platforms_select(w.set, "cpu", &err), TN_OK);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu");
    assert_int_equal(tni_platforms_select(w.set, "cuda", &err), TN_UNAVAILABLE);
    assert_contains(err.message, "libcuda.so.1 was not found");
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu"); /* a refusal changes nothing */
    assert_int_equal(tni_platform_list_of(w.set, &list, &err), TN_OK);
    assert_contains(tn_platform_list_choice(list), "cpu: selected by the program");
    tn_platform_list_release(list);
    assert_int_equal(tni_platforms_select(w.set, NULL, &err), TN_OK);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "bolt");
    world_end(&w);
    unsetenv("TENON_PLATFORM");
}

enum { RACERS = 8 };

typedef struct racer {
    world *w;
    tni_thread thread;
    const tn_platform *seen;
    tn_device *device;
    bool started;
} racer;

static void race(void *user)
{
    racer *r = user;
    tn_error err;
    if (tni_platforms_current(r->w->set, &r->seen, &err) ||
        tni_devices_get(r->w->set, "acme:1", &r->device, &err))
        r->seen = NULL;
}

static void first_resolution_is_raced_for(void **state)
{
    (void)state;
    unsetenv("TENON_PLATFORM");
    for (int round = 0; round < (test_reduced() ? 5 : 50); round++) {
        racer racers[RACERS] = {{0}};
        world w;
        tn_error err;
        world_probes = 0;
        world_make(&w, WORLD_ALL, NULL);
        for (size_t i = 0; i < RACERS; i++) {
            racers[i].w = &w;
            racers[i].started = !tni_thread_create(&racers[i].thread, race, &racers[i], &err);
        }
        for (size_t i = 0; i < RACERS; i++) {
            if (racers[i].started)
                tni_thread_join(racers[i].thread);
        }
        assert_int_equal(world_probes, 3); /* cpu, acme and bolt, once each */
        for (size_t i = 0; i < RACERS; i++) {
            assert_true(racers[i].started);
            assert_non_null(racers[i].seen);
            assert_ptr_equal(racers[i].seen, racers[0].seen);
            assert_ptr_equal(racers[i].device, racers[0].device);
        }
        assert_int_equal(w.set->devices.count, 5);
        world_end(&w);
    }
}

static void process_has_its_own(void **state)
{
    const tn_platform *current = NULL, *cpu = NULL;
    tn_platform_list *list = NULL;
    tn_error err = {0};
    (void)state;
    unsetenv("TENON_PLATFORM");
    assert_int_equal(tn_platform_current(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_get(NULL, &cpu, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_list_create(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_platform_get("cpu", &cpu, &err), TN_OK);
    assert_int_equal(tn_platform_current(&current, &err), TN_OK);
    assert_int_equal(tn_platform_select("cpu", &err), TN_OK);
    assert_int_equal(tn_platform_current(&current, &err), TN_OK);
    assert_ptr_equal(current, cpu);
    assert_int_equal(tn_platform_select(NULL, &err), TN_OK);
    assert_int_equal(tn_platform_list_create(&list, &err), TN_OK);
    assert_true(tn_platform_list_count(list) >= 8);
    assert_null(tn_platform_list_get(list, tn_platform_list_count(list)));
    tn_platform_list_release(list);
    tn_platform_list_release(NULL);
    assert_int_equal(tn_platform_list_count(NULL), 0);
    assert_string_equal(tn_platform_list_choice(NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_words),
        cmocka_unit_test(row_goes_before_its_kind),
        cmocka_unit_test(predicates_look_at_the_kind_alone),
        cmocka_unit_test(lists_are_verified_with_the_nearest),
        cmocka_unit_test(languages_and_communicators_are_the_modules),
        cmocka_unit_test(async_output_has_a_reason),
        cmocka_unit_test(every_query_answers_on_every_kind),
        cmocka_unit_test(unspecified_answers_everything),
        cmocka_unit_test(best_that_is_ready_is_current),
        cmocka_unit_test(nothing_ready_is_said),
        cmocka_unit_test(variable_is_honoured_or_refused),
        cmocka_unit_test(program_selects),
        cmocka_unit_test(first_resolution_is_raced_for),
        cmocka_unit_test(process_has_its_own),
    };
    return run_suite("unit.platforms", tests);
}
