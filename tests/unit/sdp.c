/* Scaled-dot-product attention's family: its switches and scopes, its parameters, and what settings and platforms
 * make of the conditions, whose edges are in sdpa_edges.c. */
#include "sdpa_make.h"
#include "settings_check.h"

static void what_holds_on_described_devices(void **state)
{
    static const struct {
        const char *device, *changes;
        int32_t usable[3];
    } rows[] = {{"h200", "", {1, 1, 1}},          {"h200", "mask=bool", {0, 1, 1}},
                {"h200", "dtype=f32", {0, 1, 0}}, {"a100", "", {1, 1, 1}},
                {"a100", "d=256", {1, 1, 0}},     {"mi300x", "", {1, 1, 0}},
                {"sm75", "dtype=f16", {0, 1, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int list = FLASH; list <= CUDNN; list++) {
            tn_sdpa_report report;
            ask(list, rows[i].device, rows[i].changes, &report);
            if (report.usable != rows[i].usable[list])
                fail_msg("%s: %s %s: usable %d, by %s", list_names[list], rows[i].device,
                         rows[i].changes, (int)report.usable,
                         report.first < 0 ? "nothing" : report.checks[report.first].name);
            assert_int_equal(report.usable, report.first < 0);
        }
    }
}

/* Upstream's three questions, of a machine that is not here. */
static void three_questions(void **state)
{
    tn_sdpa_params params;
    tn_sdpa_report report = {.struct_size = sizeof report};
    tn_error err = {0};
    (void)state;
    make(&params, "h200", "mask=bool d=512");
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_OK);
    assert_string_equal(report.checks[report.first].name, "mask");
    assert_int_equal(tn_can_use_efficient_attention(NULL, &params, &report, &err), TN_OK);
    assert_int_equal(report.usable, 1);
    assert_int_equal(report.first, -1);
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_OK);
    assert_string_equal(report.checks[report.first].name, "head-size");
}

/* The first failure is that of the order; later ones are told all the same. */
static void nothing_stops_at_the_first_failure(void **state)
{
    tn_sdpa_report report;
    (void)state;
    ask(FLASH, "sm75", "mask=bool dtype=f64 d=300", &report);
    assert_string_equal(report.checks[report.first].name, "mask");
    assert_int_equal(check_of(&report, "head-size")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "capability")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "dtype")->outcome, TN_SDPA_FAILS);
    assert_int_equal(check_of(&report, "nested-batch")->outcome, TN_SDPA_NOT_ASKED);
    ask(FLASH, "h200", "rank=3", &report);
    assert_int_equal(check_of(&report, "head-size")->outcome, TN_SDPA_NOT_ASKED);
    assert_int_equal(check_of(&report, "dtype")->outcome, TN_SDPA_HOLDS);
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "version")->why.text, "unknown");
}

static void settings_count(void **state)
{
    tn_sdpa_report report;
    tn_scope scope = {0};
    (void)state;
    assert_int_equal(outcome(CUDNN, "h200", "", "determinism"), TN_SDPA_HOLDS);
    enter(&scope, "determinism=run-to-run");
    assert_int_equal(outcome(CUDNN, "h200", "", "determinism"), TN_SDPA_FAILS);
    assert_int_equal(outcome(CUDNN, "h200", "", "enabled"), TN_SDPA_HOLDS);
    tn_scope_leave(&scope);
    enter(&scope, "cudnn.deterministic=true");
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "determinism")->why.text, "cudnn.deterministic");
    tn_scope_leave(&scope);
    enter(&scope, "cudnn.enabled=false");
    ask(CUDNN, "h200", "", &report);
    assert_contains(check_of(&report, "enabled")->why.text,
                    "cudnn.enabled is off, set by the scope");
    tn_scope_leave(&scope);
    enter(&scope, "attention.backend=math");
    ask(FLASH, "h200", "", &report);
    assert_contains(
        check_of(&report, "enabled")->why.text,
        "another one is required by the rule require:attention/backend:math of the scope");
    tn_scope_leave(&scope);
    assert_int_equal(outcome(FLASH, "sm86", "grad=1 d=200", "training"), TN_SDPA_FAILS);
    enter(&scope, "inference=true");
    assert_int_equal(outcome(FLASH, "sm86", "grad=1 d=200", "training"), TN_SDPA_HOLDS);
    tn_scope_leave(&scope);
    enter(&scope, "cuda.preferred_rocm_fa_library=ck");
    assert_int_equal(outcome(FLASH, "gfx803", "", "architecture"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(FLASH, "gfx1101", "", "experimental"), TN_SDPA_HOLDS);
    assert_int_equal(outcome(EFFICIENT, "mi300x", "dtype=f32", "dtype"), TN_SDPA_FAILS);
    tn_scope_leave(&scope);
    assert_int_equal(outcome(EFFICIENT, "mi300x", "dtype=f32", "dtype"), TN_SDPA_HOLDS);
}

/* A platform that no list is about answers by its kernels. */
static void other_platforms_answer_by_their_kernels(void **state)
{
    tn_sdpa_report report;
    (void)state;
    ask(FLASH, "pod", "causal=1", &report);
    assert_int_equal(report.usable, 1);
    assert_int_equal(check_of(&report, "problem")->outcome, TN_SDPA_HOLDS);
    ask(FLASH, "pod", "mask=bool", &report);
    assert_int_equal(report.usable, 0);
    assert_string_equal(report.checks[report.first].name, "problem");
    assert_int_equal(report.checks[report.first].why.code, TN_REFUSE_FEATURE);
    assert_string_equal(report.checks[report.first].why.what, "mask");
    ask(FLASH, "pod", "nested=1", &report);
    assert_string_equal(report.checks[report.first].name, "nested");
    assert_contains(report.checks[report.first].why.text, "starts_q");
    ask(FLASH, "pod", "lk=0 dk=3", &report);
    assert_int_equal(check_of(&report, "problem")->why.code, TN_REFUSE_OTHER);
    ask(EFFICIENT, "pod", "", &report);
    assert_string_equal(report.checks[report.first].name, "kernel");
    assert_contains(report.checks[report.first].why.text,
                    "kernel for tpu with the name mem_efficient");
    ask(CUDNN, "bare", "", &report);
    assert_string_equal(report.checks[report.first].name, "kernel");
    assert_int_equal(check_of(&report, "problem")->outcome, TN_SDPA_FAILS);
}

static void wrong_parameters_are_refused(void **state)
{
    tn_sdpa_params params;
    tn_sdpa_report report = {.struct_size = sizeof report}, small = {.struct_size = 8};
    tn_error err = {0};
    (void)state;
    make(&params, "h200", "");
    assert_int_equal(tn_can_use_flash_attention(NULL, NULL, &report, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &small, &err), TN_INVALID_ARGUMENT);
    params.value.layout.dtype = 0;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "value has no dtype");
    make(&params, "h200", "drop=1.5");
    assert_int_equal(tn_can_use_efficient_attention(NULL, &params, &report, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "dropout: expected 0 to 1, got 1.5");
    make(&params, "h200", "");
    params.attn_mask.layout.dtype = 0x7777;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "attn_mask: expected a valid dtype, got 0x7777");
    make(&params, "h200", "");
    params.query.layout.shape[3] = -64;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "query.shape[3]: expected 0 or more, got -64");
    make(&params, "h200", "");
    params.flash = 7;
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "flash: expected 0, 2, 3 or 4, got 7");
    make(&params, "h200", "");
    params.library_version = -5;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "library_version: expected 0 or more, got -5");
    make(&params, "h200", "");
    params.permits = 12;
    assert_int_equal(tn_can_use_cudnn_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "permits has unknown bits: 0xc");
    make(&params, "h200", "rank=9");
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    make(&params, "h200", "");
    params.query.device = NULL;
    assert_int_equal(tn_can_use_flash_attention(NULL, &params, &report, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "query.device");
    assert_int_equal(report.count, 0);
    assert_string_equal(tn_sdpa_outcome_name(TN_SDPA_NOT_ASKED), "not-asked");
    assert_string_equal(tn_sdpa_outcome_name(3), "unknown");
    assert_string_equal(tn_sdpa_outcome_name(-1), "unknown");
}

static void parameters_of_tensors(void **state)
{
    static float data[4 * 2 * 3 * 16 + 4];
    int64_t shape[] = {2, 2, 3, 16}, strides[] = {96, 16, 32, 1}, row[] = {3, 3};
    tn_tensor q = {0}, k = {0}, mask = {0};
    tn_sdpa_params params = {.struct_size = sizeof params};
    tn_device *cpu = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_device_get("cpu:0", &cpu, &err), TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data, TN_F32, shape, NULL, 4, NULL, NULL, &q, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data + 1, TN_F32, shape, strides, 4, NULL, NULL, &k, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_wrap(cpu, data, TN_BOOL, row, NULL, 2, NULL, NULL, &mask, &err),
                     TN_OK);
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, &mask, 0.25, 1, 1, &params, &err), TN_OK);
    assert_ptr_equal(params.query.device, cpu);
    assert_int_equal(params.key.layout.dtype, TN_F32);
    assert_memory_equal(params.key.layout.shape, shape, sizeof shape);
    assert_memory_equal(params.key.layout.stride, strides, sizeof strides);
    assert_int_equal(params.query.layout.stride[0], 96);
    assert_int_equal(params.query.layout.stride[2], 16);
    assert_int_equal(params.key.layout.alignment, 4);
    assert_int_equal(params.attn_mask.layout.rank, 2);
    assert_true(params.dropout == 0.25 && params.is_causal == 1 && params.enable_gqa == 1);
    assert_int_equal(params.query.nested + params.query.requires_grad, 0);
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, NULL, 0, 0, 0, &params, &err), TN_OK);
    assert_int_equal(params.attn_mask.layout.dtype, 0);
    assert_int_equal(tn_sdpa_params_get(&q, NULL, &q, NULL, 0, 0, 0, &params, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "key");
    params.struct_size = 16;
    assert_int_equal(tn_sdpa_params_get(&q, &k, &q, NULL, 0, 0, 0, &params, &err),
                     TN_INVALID_ARGUMENT);
    tn_tensor_release(&q), tn_tensor_release(&k), tn_tensor_release(&mask);
}

/* Each switch as upstream's getter and setter have it: on at first, for the process or for a scope, and what a
 * condition then says. */
static void switches_of_the_family(void **state)
{
    static const struct {
        tn_setting setting;
        int list;
    } rows[] = {{TN_SETTING_CUDA_FLASH_SDP, FLASH},
                {TN_SETTING_CUDA_MEM_EFFICIENT_SDP, EFFICIENT},
                {TN_SETTING_CUDA_CUDNN_SDP, CUDNN},
                {TN_SETTING_CUDA_MATH_SDP, -1},
                {TN_SETTING_CUDA_OVERRIDEABLE_SDP, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_sdpa_report report;
        const tn_change off = {.setting = rows[i].setting, .value = 0};
        assert_int_equal(tn_setting_value(NULL, rows[i].setting), 1);
        assert_int_equal(tn_settings_change(&off, 1, NULL), TN_OK);
        assert_int_equal(tn_setting_value(NULL, rows[i].setting), 0);
        if (rows[i].list >= 0) {
            char text[64];
            ask(rows[i].list, "h200", "", &report);
            snprintf(text, sizeof text, "%s is off, set by the process", key_of(rows[i].setting));
            assert_string_equal(check_of(&report, "enabled")->why.text, text);
            assert_int_equal(report.usable, 0);
        }
        reset(key_of(rows[i].setting));
    }
    assert_int_equal(tn_get_cuda_allow_fp16_bf16_reduction_math_sdp(NULL), 0);
    assert_int_equal(tn_setting_value(NULL, TN_SETTING_CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP), 0);
    set("cuda.allow_fp16_bf16_reduction_math_sdp=true");
    assert_int_equal(tn_get_cuda_allow_fp16_bf16_reduction_math_sdp(NULL), 1);
    reset(NULL);
    set("admission=never");
}

/* "flash math | math,flash,...": what is on, and the order. */
static const char *family(void)
{
    static char text[192];
    char order[128];
    size_t used = 0;
    static const tn_setting switches[] = {
        TN_SETTING_CUDA_FLASH_SDP, TN_SETTING_CUDA_MEM_EFFICIENT_SDP, TN_SETTING_CUDA_MATH_SDP,
        TN_SETTING_CUDA_CUDNN_SDP, TN_SETTING_CUDA_OVERRIDEABLE_SDP};
    for (int32_t i = 0; i < 5; i++) {
        if (tn_setting_value(NULL, switches[i]))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", tn_sdp_name(i));
    }
    (void)tn_setting_write(NULL, TN_SETTING_CUDA_SDP_PRIORITY, order, sizeof order);
    (void)snprintf(text + used, sizeof text - used, "| %s", order);
    return text;
}

static const char usual[] = "flash mem_efficient math cudnn overrideable | flash, mem_efficient, "
                            "math, cudnn, overrideable";

static void a_scope_has_those_and_no_others(void **state)
{
    static const int32_t one[] = {TN_SDP_MATH};
    static const int32_t two[] = {TN_SDP_CUDNN, TN_SDP_MATH, TN_SDP_CUDNN};
    tn_scope outer = {0}, inner = {0};
    tn_error err = {0};
    (void)state;
    assert_string_equal(family(), usual);
    assert_int_equal(tn_sdpa_kernel_enter(&outer, one, 1, 0, &err), TN_OK);
    assert_string_equal(family(), "math | flash, mem_efficient, math, cudnn, overrideable");
    assert_int_equal(tn_sdpa_kernel_enter(&inner, two, 3, 1, &err), TN_OK);
    assert_string_equal(family(), "math cudnn | cudnn, math, flash, mem_efficient, overrideable");
    tn_scope_leave(&inner);
    assert_string_equal(family(), "math | flash, mem_efficient, math, cudnn, overrideable");
    tn_scope_leave(&outer);
    assert_string_equal(family(), usual);
    set("cuda.sdp_priority=overrideable,cudnn"); /* what is left out follows as it was */
    assert_int_equal(tn_sdpa_kernel_enter(&outer, one, 1, 1, &err), TN_OK);
    assert_string_equal(family(), "math | math, overrideable, cudnn, flash, mem_efficient");
    tn_scope_leave(&outer);
    reset("cuda.sdp_priority");
}

static void wrong_scopes_change_nothing(void **state)
{
    static const int32_t wrong[] = {TN_SDP_FLASH, 5}, negative[] = {-1};
    tn_scope scope = {0};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_sdpa_kernel_enter(&scope, wrong, 2, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "backends[1]");
    assert_int_equal(tn_sdpa_kernel_enter(&scope, negative, 1, 0, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_sdpa_kernel_enter(&scope, wrong, 0, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "NO_ATTENTION");
    assert_int_equal(tn_sdpa_kernel_enter(&scope, NULL, 1, 0, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(family(), usual);
    tn_scope_leave(&scope);
    assert_string_equal(tn_sdp_name(TN_SDP_OVERRIDEABLE), "overrideable");
    assert_string_equal(tn_sdp_name(5), "unknown");
}

static void the_older_scope_names_four(void **state)
{
    tn_scope scope = {0};
    (void)state;
    assert_int_equal(tn_sdp_kernel_enter(&scope, 0, 1, 0, 1, NULL), TN_OK);
    assert_contains(family(), "math cudnn overrideable |");
    tn_scope_leave(&scope);
    assert_int_equal(tn_sdp_kernel_enter(&scope, 1, 0, 1, 0, NULL), TN_OK);
    assert_contains(family(), "flash mem_efficient overrideable |");
    tn_scope_leave(&scope);
    assert_string_equal(family(), usual);
}

static void what_is_there_is_told(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    const tn_platform *platform = NULL;
    tn_error err = {0};
    int32_t found = -1;
    (void)state;
    attention_rows();
    assert_int_equal(tn_platform_get("tpu", &platform, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(platform, &found, &why, &err), TN_OK);
    assert_int_equal(found, 1);
    assert_string_equal(why.text, "tpu.attention.flash");
    assert_int_equal(why.code, TN_REFUSE_NONE);
    assert_int_equal(tn_platform_get("xpu", &platform, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(platform, &found, &why, &err), TN_OK);
    assert_int_equal(found, 0);
    assert_int_equal(why.code, TN_REFUSE_LIBRARY);
    assert_contains(why.text, "no module has a kernel for xpu named flash");
    assert_int_equal(tn_is_flash_attention_available(NULL, &found, NULL, &err), TN_OK);
    assert_int_equal(tn_is_flash_attention_available(NULL, NULL, NULL, &err), TN_INVALID_ARGUMENT);
    found = -1;
    assert_int_equal(tn_is_ck_sdpa_available(&found, &why, &err), TN_OK);
    assert_int_equal(found, 0); /* a kernel goes through ck, which nobody offers */
    assert_string_equal(why.what, "ck");
    assert_true(why.text[0] != '\0');
    why.struct_size = 8;
    assert_int_equal(tn_is_ck_sdpa_available(&found, &why, &err), TN_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_on_described_devices),
        cmocka_unit_test(three_questions),
        cmocka_unit_test(nothing_stops_at_the_first_failure),
        cmocka_unit_test(settings_count),
        cmocka_unit_test(other_platforms_answer_by_their_kernels),
        cmocka_unit_test(wrong_parameters_are_refused),
        cmocka_unit_test(parameters_of_tensors),
        cmocka_unit_test(switches_of_the_family),
        cmocka_unit_test(a_scope_has_those_and_no_others),
        cmocka_unit_test(wrong_scopes_change_nothing),
        cmocka_unit_test(the_older_scope_names_four),
        cmocka_unit_test(what_is_there_is_told),
    };
    forget_settings();
    (void)setenv("TENON_CACHE", "", 1);
    attention_rows_of_gpus = true;
    return run_suite("unit.sdp", tests);
}
