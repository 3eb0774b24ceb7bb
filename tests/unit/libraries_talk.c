/* A library talks as the context of each call says. */
#include "test.h"

#include "base/log.h"
#include "settings/context.h"
#include "settings/library.h"
#include "tenon/tenon.h"

static int32_t told[16];
static size_t count;
static tn_status answer;

static tn_status verbose(void *self, int32_t level, tn_error *err)
{
    assert_ptr_equal(self, &count);
    assert_true(count < sizeof told / sizeof told[0]);
    told[count++] = level;
    return answer ? tn_fail(err, answer, 5, "vendor", "not today") : TN_OK;
}

static const tn_library_row row = {.struct_size = sizeof row,
                                   .name = "talker",
                                   .platform = "cpu",
                                   .verbose_setting = "mkldnn.verbose",
                                   .verbose = verbose};

static tni_library_offer make_offer(void)
{
    count = 0;
    answer = TN_OK;
    return (tni_library_offer){.row = &row,
                               .talk = TN_SETTING_MKLDNN_VERBOSE,
                               .trial = {.stage = TNI_TRIAL_OPEN, .self = &count}};
}

static tn_context *context_with(int32_t level)
{
    tn_context *context = NULL;
    const tn_change change = tn_with_mkldnn_verbose(level);
    assert_int_equal(tn_context_derive(NULL, &change, 1, &context, NULL), TN_OK);
    return context;
}

static void each_call_talks_as_its_context_says(void **state)
{
    tni_library_offer offer = make_offer();
    tn_context *silent = context_with(TN_VERBOSE_OFF), *loud = context_with(TN_VERBOSE_ON);
    tn_context *louder = context_with(TN_VERBOSE_CREATION);
    const tn_context *const calls[] = {silent, silent, loud, loud, louder, silent, silent, loud};
    static const int32_t wanted[] = {1, 2, 0, 1};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        tni_library_apply_verbosity(&offer, calls[i]);
    assert_int_equal(count, sizeof wanted / sizeof wanted[0]);
    assert_memory_equal(told, wanted, sizeof wanted);
    tn_context_release(silent);
    tn_context_release(loud);
    tn_context_release(louder);
}

static char logged[512];

static void sink(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == TN_LOG_WARNING)
        tn_text_fit(logged, sizeof logged, text);
}

static const tn_log_sink warnings = {
    .struct_size = sizeof warnings, .write = sink, .level = TN_LOG_WARNING};

static void refusals_are_told_once_and_change_nothing_else(void **state)
{
    tni_library_offer offer = make_offer();
    tn_context *loud = context_with(TN_VERBOSE_ON);
    (void)state;
    answer = TN_UNSUPPORTED;
    assert_int_equal(tn_log_set(&warnings, NULL), TN_OK);
    tni_library_apply_verbosity(&offer, loud);
    assert_contains(logged, "mkldnn.verbose=1 has no effect: talker: not today");
    logged[0] = '\0';
    tni_library_apply_verbosity(&offer, loud);
    assert_string_equal(logged, "");
    assert_int_equal(count, 1);
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    tn_context_release(loud);
}

static void those_of_the_module_cpu_have_settings(void **state)
{
    static const struct {
        const char *name;
        tn_setting setting;
    } cases[] = {{"mkl", TN_SETTING_MKL_VERBOSE}, {"mkldnn", TN_SETTING_MKLDNN_VERBOSE}};
    const tn_library *library = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tn_library_get(cases[i].name, &library, NULL), TN_OK);
        tni_library_offer *offer = tni_library_talker(library, library->offers->record);
        assert_non_null(offer);
        assert_int_equal(offer->talk, cases[i].setting);
        assert_null(tni_library_talker(library, NULL)); /* of a module that does not offer it */
    }
    assert_int_equal(tn_library_get("openblas", &library, NULL), TN_OK);
    assert_null(tni_library_talker(library, library->offers->record));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_talks_as_its_context_says),
        cmocka_unit_test(refusals_are_told_once_and_change_nothing_else),
        cmocka_unit_test(those_of_the_module_cpu_have_settings),
    };
    return run_suite("unit.libraries_talk", tests);
}
