/* A limit on instructions holds for kernels that go through libraries too: those choose their own, so below
 * the processor's own level none of them is taken, and none is opened for it. */
#include "test.h"

#include "os/cpu.h"
#include "os/cpu_level.h"
#include "tenon/module/kernel.h"
#include "tenon/module/library.h"
#include "tenon/tenon.h"

static int opens, runs;

static tn_status open_library(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)err;
    opens++;
    *out_self = NULL;
    return TN_OK;
}

static tn_status run_fill(const tn_run *run, tn_error *err)
{
    float *out = tn_operand(run, TN_ELEMENTWISE_OUT);
    (void)err;
    for (int64_t i = 0; i < TN_PARAMS(run->op, elementwise)->elements; i++)
        out[i] = (float)TN_PARAMS(run->op, elementwise)->value;
    runs++;
    return TN_OK;
}

static const tn_library_row library = {
    .struct_size = sizeof library, .name = "strange", .platform = "cpu", .open = open_library};
static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};
static const tn_kernel_row row = {.struct_size = sizeof row,
                                  .name = "cpu.fill.strange",
                                  .platform = "cpu",
                                  .library = "strange",
                                  .op = TN_OP_FILL,
                                  .version = 1,
                                  .dtypes = only_f32,
                                  .flops_per_us = 1e9,
                                  .bytes_per_us = 1e9,
                                  .overhead_us = 1e-6,
                                  .run = run_fill};
static const tn_library_row *const libraries[] = {&library, NULL};
static const tn_kernel_row *const rows[] = {&row, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stranger",
                                 .version = "1.0",
                                 .libraries = libraries,
                                 .kernels = rows};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void set_up(void)
{
    static tn_registration *registration;
    const tn_change change = tn_with_admission(TN_ADMISSION_NEVER);
    tn_error err;
    if (!registration &&
        (tn_module_register(entry, 0, &registration, &err) || tn_settings_change(&change, 1, &err)))
        fail_msg("%s", err.message);
}

static void limit(const char *level)
{
    tn_error err;
    if (tn_cpu_limit(level, &err))
        fail_msg("%s", err.message);
}

/* What is said of the library's kernel; its texts live until the next call. */
static const tn_candidate *candidate(void)
{
    static tn_decision *decision;
    tn_error err;
    tn_decision_release(decision);
    decision = NULL;
    if (tn_explain(NULL, "fill:f32:shape=64,value=1@cpu:0", &decision, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        if (strcmp(tn_decision_candidate(decision, i)->kernel, row.name) == 0)
            return tn_decision_candidate(decision, i);
    }
    fail_msg("%s is no candidate", row.name);
    return NULL;
}

static void assert_refused(const char *level)
{
    const tn_candidate *found = candidate();
    assert_int_equal(found->verdict, TN_VERDICT_REFUSED);
    assert_int_equal(found->why->code, TN_REFUSE_DEVICE);
    assert_string_equal(found->why->what, "instructions");
    assert_int_equal(found->why->needed, 1);
    assert_int_equal(found->why->found, 0);
    assert_contains(found->why->text, "strange chooses its own instructions");
    assert_contains(found->why->text, level);
    assert_contains(found->why->text, "set by cpu.isa_mask; unset it");
}

static void begin(void)
{
    set_up();
    if (!(tni_cpu_possible() & ~TN_CPU_BIT(SSE2)))
        skip_because("this processor has one level");
}

static void below_the_processors_level_none_is_taken(void **state)
{
    (void)state;
    begin();
    limit("baseline");
    assert_refused("exceed baseline");
    assert_int_equal(opens, 0);
    limit(NULL);
    assert_int_equal(candidate()->verdict, TN_VERDICT_CHOSEN);
    assert_int_equal(opens, 1);
    limit("baseline");
    assert_refused("exceed baseline");
    limit(NULL);
}

static void at_the_processors_level_nothing_is_hidden(void **state)
{
    (void)state;
    begin();
    limit(tn_cpu_level());
    assert_false(tni_cpu_is_masked());
    assert_int_equal(candidate()->verdict, TN_VERDICT_CHOSEN);
    limit(NULL);
}

/* Calls that are the same again skip the choice, unless what it went by has changed. */
static void fill(int expected)
{
    static float room[64];
    int64_t shape[] = {64}, strides[] = {1};
    tn_tensor out = {.data = room,
                     .device_type = TN_DLPACK_CPU,
                     .ndim = 1,
                     .dtype = TN_F32,
                     .shape = shape,
                     .strides = strides};
    const tn_fill_args args = {.struct_size = sizeof args, .out = &out, .value = 3};
    tn_error err;
    runs = 0;
    for (int i = 0; i < 4; i++) {
        if (tn_fill(NULL, &args, &err))
            fail_msg("%s", err.message);
    }
    assert_int_equal(runs, expected);
    assert_true(room[0] == 3 && room[63] == 3);
}

static void remembered_calls_are_no_way_round_it(void **state)
{
    (void)state;
    begin();
    fill(4);
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        if (!(tni_cpu_possible() >> i & 1))
            continue;
        tni_cpu_mask_set(~(UINT64_C(1) << i));
        fill(0);
        tni_cpu_mask_set(UINT64_MAX);
        fill(4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_the_processors_level_none_is_taken),
        cmocka_unit_test(remembered_calls_are_no_way_round_it), /* before AMX is asked for */
        cmocka_unit_test(at_the_processors_level_nothing_is_hidden),
    };
    return run_suite("unit.cpu_mask", tests);
}
