/* Checking, timing and testing kernels without memory: whichever allocation fails, the call says so or
 * does without, and nothing is left behind. */
#include "fault.h"

#include "base_isa.h"
#include "policy/admission/admission_store.h"
#include "policy/admission/notes.h"
#include "settings/context.h"
#include "tenon/tenon.h"

static tn_device *cpu;

static tn_status check_once(void)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_status status = tn_check(NULL,
                                TN_ARGS(check, .problem = "matmul:f32:m=5,n=7,k=3,beta=0.5@cpu:0",
                                        .kernel = "cpu.matmul.ref"),
                                &result, NULL);
    assert_true(status ? result.checked == 0 : result.ok == 1);
    return status;
}

static tn_status bench_once(void)
{
    tn_bench_result result = {.struct_size = sizeof result};
    tn_status status = tn_bench(NULL,
                                TN_ARGS(bench, .problem = "matmul:f32:m=512,n=512,k=2@cpu:0",
                                        .kernel = "cpu.matmul.ref", .seconds = 1e-9),
                                &result, NULL);
    assert_true(status ? result.runs == 0 : result.runs == 1);
    return status;
}

/* A kernel that takes none of the problems that kernels are tested with. */
static tn_status admit_page(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t elements = TN_PARAMS(query->op, elementwise)->elements;
    (void)row;
    return elements == 4096 ? TN_OK : tn_refuse(why, TN_REFUSE_SHAPE, "elements", 4096, elements);
}

static bool lies; /* the next run does */

static tn_status run_page(const tn_run *run, tn_error *err)
{
    (void)err;
    for (int64_t i = 0; i < TN_PARAMS(run->op, elementwise)->elements; i++)
        ((float *)tn_operand(run, TN_ELEMENTWISE_OUT))[i] =
            (float)TN_PARAMS(run->op, elementwise)->value + (float)lies;
    lies = false;
    return TN_OK;
}

static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};
static const tn_kernel_row page = {.struct_size = sizeof page,
                                   .name = "cpu.fill.page",
                                   .platform = "cpu",
                                   .op = TN_OP_FILL,
                                   .version = 1,
                                   .dtypes = only_f32,
                                   .flops_per_us = 1,
                                   .bytes_per_us = 1,
                                   .overhead_us = 1000,
                                   .admit = admit_page,
                                   .run = run_page};
static const tn_kernel_row *const rows[] = {&page, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stranger",
                                 .version = "1.0",
                                 .kernels = rows};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static tn_status examine(const char *name)
{
    const tni_kernel *kernel = NULL;
    tn_refusal why = {.struct_size = sizeof why};
    tn_op op;
    char device[8];
    if (tni_kernel_find(name, &kernel, NULL) ||
        tni_problem_parse("fill:f32:shape=4096,value=2", &op, device, sizeof device, NULL))
        return TN_OUT_OF_MEMORY;
    const tni_question question = {.context = tni_context_current(), .op = &op, .device = cpu};
    tni_trust_forget();
    tn_status status = tni_trust_examine(&question, kernel, -1, NULL);
    if (!status)
        assert_int_not_equal(tni_trust_of(&question, kernel, -1, &why), TNI_TRUST_QUARANTINED);
    tni_trust_forget();
    return status;
}

/* A kernel of Tenon's own that nobody has tested yet. */
static tn_status test_once(void)
{
    return examine("cpu.fill." BASE_ISA);
}

static tn_status test_odd_once(void)
{
    return examine("cpu.fill.page");
}

/* A call that is wrong, which is found out; its kernel is asked again. */
static tn_status sample_once(void)
{
    float out[4096];
    const int64_t shape[] = {4096};
    tn_tensor to = {0};
    tn_context *context = NULL;
    tn_change changes[] = {tn_with_debug_sample(1), tn_with_admission(TN_ADMISSION_NEVER), {0}};
    lies = true;
    tn_status status = tn_setting_parse("rules=require:cpu.fill.page", &changes[2], NULL);
    if (!status)
        status = tn_context_derive(NULL, changes, 3, &context, NULL);
    if (!status)
        status = tn_tensor_wrap(cpu, out, TN_F32, shape, NULL, 1, NULL, NULL, &to, NULL);
    if (!status)
        status = tn_fill(context, TN_ARGS(fill, .out = &to, .value = 3), NULL);
    tn_tensor_release(&to);
    tn_context_release(context);
    assert_int_not_equal(status, TN_OK);
    return status == TN_CORRUPT ? TN_OK : status;
}

static tn_status read_list(void)
{
    tni_notes notes = {.count = 77};
    tn_status status = tni_notes_parse((const char *)tni_embedded_known_bad,
                                       tni_embedded_known_bad_size, "list", &notes, NULL);
    assert_true(status ? notes.count == 77 : notes.count >= 3);
    if (!status)
        tni_notes_release(&notes);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    static const struct {
        const char *what;
        tn_status (*call)(void);
    } calls[] = {
        {"tn_check", check_once},         {"tn_bench", bench_once},
        {"tni_trust_examine", test_once}, {"tni_trust_examine of an odd one", test_odd_once},
        {"debug.sample", sample_once},    {"tni_notes_parse", read_list}};
    int left = 0;
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int warm = 0; warm < 3; warm++) /* threads remember calls that come again */
            assert_int_equal(calls[i].call(), TN_OK);
        for (long n = 1, fired = 1; fired; n++) {
            if (test_fewest() && !test_sampled((uint64_t)n, 4))
                continue;
            tn_memory_trim(cpu);
            struct fault_state before = fault_look();
            fault_arm(&fault_memory, n, false, 0);
            tn_status status = calls[i].call();
            fired = fault_end(&fault_memory);
            tn_memory_trim(cpu);
            assert_true(status == TN_OK || status == TN_OUT_OF_MEMORY);
            left += fault_left(before, calls[i].what, n);
            assert_true(fired || status == TN_OK);
        }
    }
    assert_int_equal(left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    static tn_registration *stranger;
    setenv("TENON_CACHE", "", 1); /* what is found out is forgotten */
    fault_memory_install();
    if (tn_device_get("cpu:0", &cpu, NULL) || tn_module_register(entry, 0, &stranger, NULL))
        return 1;
    return run_suite("fault.check", tests);
}
