/* Checking, timing and testing kernels without memory: whichever allocation fails, the call says so or
 * does without, and nothing is left behind. */
#include "fault.h"

#include "dispatch/trust/admission_store.h"
#include "dispatch/trust/notes.h"
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
    assert_true(status ? result.runs == 0 : result.runs >= 15);
    return status;
}

/* A kernel of Tenon's own that nobody has tested yet. */
static tn_status test_once(void)
{
    const tni_kernel *kernel = NULL;
    tn_refusal why = {.struct_size = sizeof why};
    if (tni_kernel_find("cpu.fill.plain", &kernel, NULL))
        return TN_OUT_OF_MEMORY;
    tni_trust_forget();
    tn_status status = tni_trust_test(tni_context_current(), kernel, cpu, -1, NULL);
    if (!status)
        assert_int_not_equal(tni_trust_of(tni_context_current(), kernel, cpu, -1, &why),
                             TNI_TRUST_QUARANTINED);
    tni_trust_forget();
    return status;
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
    } calls[] = {{"tn_check", check_once},
                 {"tn_bench", bench_once},
                 {"tni_trust_test", test_once},
                 {"tni_notes_parse", read_list}};
    int left = 0;
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        assert_int_equal(calls[i].call(), TN_OK);
        for (long n = 1, fired = 1; fired; n++) {
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
    setenv("TENON_CACHE", "", 1); /* what is found out is forgotten */
    fault_memory_install();
    if (tn_device_get("cpu:0", &cpu, NULL))
        return 1;
    return run_suite("fault.check", tests);
}
