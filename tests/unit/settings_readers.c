/* Who reads which settings. A row that nobody reads yet is on the list here, which can only shrink; one
 * that is read changes what its reader does. */
#include "settings_check.h"

#include "loops.h"
#include "settings_plans.h"

#include "os/dl.h"
#include "settings/context.h"
#include "settings/library.h"

/* Not one more may come here: a new row has a reader, and one that gets a reader leaves. */
static const tn_setting unread[] = {
    TN_SETTING_CUDNN_CONV_FP32_PRECISION,
    TN_SETTING_CUDNN_RNN_FP32_PRECISION,
    TN_SETTING_MKLDNN_CONV_FP32_PRECISION,
    TN_SETTING_MKLDNN_RNN_FP32_PRECISION,
    TN_SETTING_CUDNN_ALLOW_TF32,
    TN_SETTING_CUDA_PREFERRED_LINALG_LIBRARY,
    TN_SETTING_CUDNN_BENCHMARK,
    TN_SETTING_CUDNN_BENCHMARK_LIMIT,
    TN_SETTING_CUDNN_DEPTHWISE_KERNEL,
    TN_SETTING_QUANTIZED_ENGINE,
    TN_SETTING_MHA_FASTPATH_ENABLED,
    TN_SETTING_LINALG_LIBRARY,
};
enum { UNREAD = sizeof unread / sizeof unread[0], UNREAD_MOST = 12 };
TN_STATIC_ASSERT(UNREAD <= UNREAD_MOST, "the list can only shrink");

static bool is_unread(tn_setting setting)
{
    for (size_t i = 0; i < UNREAD; i++) {
        if (unread[i] == setting)
            return true;
    }
    return false;
}

/* Who reads is known before anyone has: the first test. */
static void rows_that_nobody_reads_are_known(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const char *reader = tn_setting_reader(i, 0);
        if (is_unread(i) && reader)
            fail_msg("%s is read by %s: take it off the list", key_of(i), reader);
        if (!is_unread(i) && !reader)
            fail_msg("nobody reads %s", key_of(i));
    }
}

static void readers_have_names_of_their_own(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        size_t count = 0;
        for (; tn_setting_reader(i, count); count++) {
            assert_true(tn_setting_reader(i, count)[0] != '\0');
            for (size_t j = 0; j < count; j++)
                assert_string_not_equal(tn_setting_reader(i, j), tn_setting_reader(i, count));
        }
        assert_null(tn_setting_reader(i, count + 1));
    }
    assert_string_equal(tn_setting_reader(TN_SETTING_INFERENCE, 0), "platform.inference_mode");
    assert_string_equal(tn_setting_reader(TN_SETTING_CPU_THREADS, 0), "cpu");
    assert_string_equal(tn_setting_reader(TN_SETTING_CPU_POOL, 0), "cpu");
    assert_string_equal(tn_setting_reader(TN_SETTING_CPU_ISA_MASK, 0), "cpu");
    assert_string_equal(tn_setting_reader(TN_SETTING_CUDNN_ENABLED, 0), "libraries");
}

static void flip_inference(void)
{
    tn_scope scope = {0};
    assert_int_equal(tn_platform_inference_mode(NULL), 0);
    set("inference=true");
    assert_int_equal(tn_platform_inference_mode(NULL), 1);
    enter(&scope, "inference=false");
    assert_int_equal(tn_platform_inference_mode(NULL), 0);
    tn_scope_leave(&scope);
    assert_int_equal(tn_platform_inference_mode(NULL), 1);
    reset(NULL);
    assert_int_equal(tn_platform_inference_mode(NULL), 0);
}

/* So many threads take part in a loop. */
static void flip_threads(void)
{
    int32_t before = tn_parallel_threads();
    for (int32_t threads = 1; threads <= 3; threads++) {
        char text[32];
        struct meeting meeting = {.expected = threads};
        snprintf(text, sizeof text, "cpu.threads=%d", (int)threads);
        set(text);
        assert_int_equal(tn_parallel_threads(), threads);
        tn_parallel_for(threads, meet, &meeting);
    }
    assert_int_equal(tn_parallel_threads_set(5, NULL), TN_OK);
    assert_int_equal(tn_get_cpu_threads(NULL), 5);
    reset("cpu.threads");
    assert_int_equal(tn_parallel_threads(), before);
    set("cpu.threads=7");
    reset(NULL);
    assert_int_equal(tn_parallel_threads(), before);
}

/* Loops have as many threads as GNU's OpenMP is told of, where it is. */
static void flip_pool(void)
{
    int32_t before = tn_parallel_threads();
    void *handle = NULL, *symbol = NULL;
    void (*set_threads)(int threads);
    if (tni_dl_open("libgomp.so.1", &handle, NULL) == TN_OK)
        symbol = tni_dl_symbol(handle, "omp_set_num_threads", NULL);
    set("cpu.pool=openmp");
    if (symbol) {
        memcpy(&set_threads, &symbol, sizeof symbol);
        set_threads(before + 3);
        assert_int_equal(tn_parallel_threads(), before + 3);
    }
    reset("cpu.pool");
    assert_int_equal(tn_parallel_threads(), before);
}

static void flip_levels(void)
{
    char before[512], features[512];
    const char *highest = tn_cpu_level();
    (void)tn_cpu_features(before, sizeof before);
    set("cpu.isa_mask=baseline");
    assert_string_equal(tn_cpu_level(), "baseline");
    assert_string_equal(tn_cpu_capability(), "DEFAULT");
    (void)tn_cpu_features(features, sizeof features);
    assert_int_equal(strcmp(features, before) == 0, strcmp(highest, "baseline") == 0);
    assert_int_equal(tn_cpu_limit(highest, NULL), TN_OK);
    assert_string_equal(text_in(NULL, TN_SETTING_CPU_ISA_MASK), highest);
    assert_string_equal(tn_cpu_level(), highest);
    reset("cpu.isa_mask");
    assert_string_equal(text_in(NULL, TN_SETTING_CPU_ISA_MASK), "all");
    (void)tn_cpu_features(features, sizeof features);
    assert_string_equal(features, before);
}

static bool may_take(const char *name)
{
    const tn_library *library = NULL;
    tn_library_state found = {.struct_size = sizeof found};
    assert_int_equal(tn_library_get(name, &library, NULL), TN_OK);
    assert_int_equal(tn_library_state_get(library, NULL, &found, NULL), TN_OK);
    return found.enabled;
}

/* `off` forbids the library to the process, `on` takes that back for a scope. */
static void flip_library(const char *name, const char *off, const char *on)
{
    tn_scope scope = {0};
    assert_true(may_take(name));
    set(off);
    assert_false(may_take(name));
    enter(&scope, on);
    assert_true(may_take(name));
    tn_scope_leave(&scope);
    assert_false(may_take(name));
    reset(NULL);
    assert_true(may_take(name));
}

static void flip_cudnn(void)
{
    flip_library("cudnn", "cudnn.enabled=false", "cudnn.enabled=true");
    flip_library("miopen", "cudnn.enabled=false", "cudnn.enabled=true");
}

static void flip_mkldnn(void)
{
    flip_library("mkldnn", "mkldnn.enabled=false", "mkldnn.enabled=true");
}

static void flip_nnpack(void)
{
    flip_library("nnpack", "nnpack.enabled=false", "nnpack.enabled=true");
}

static void flip_rules(void)
{
    flip_library("openblas", "rules=forbid:library:openblas", "rules=permit:library:openblas");
}

static int32_t talked;

static tn_status talk(void *self, int32_t level, tn_error *err)
{
    (void)self, (void)err;
    talked = level;
    return TN_OK;
}

/* What a library is told before a call of its kernels. */
static void flip_talk(tn_setting setting, const tn_change *change)
{
    static const tn_library_row row = {
        .struct_size = sizeof row, .name = "talker", .verbose = talk};
    tni_library_offer offer = {.row = &row, .talk = setting, .trial = {.stage = TNI_TRIAL_OPEN}};
    tn_context *context = NULL;
    talked = -1;
    tni_library_apply_verbosity(&offer, tni_context_or_current(NULL));
    assert_int_equal(talked, -1);
    assert_int_equal(tn_context_derive(NULL, change, 1, &context, NULL), TN_OK);
    tni_library_apply_verbosity(&offer, context);
    assert_int_equal(talked, 1);
    tn_context_release(context);
}

static void flip_mkl_talk(void)
{
    const tn_change change = tn_with_mkl_verbose(TN_VERBOSE_ON);
    flip_talk(TN_SETTING_MKL_VERBOSE, &change);
}

static void flip_mkldnn_talk(void)
{
    const tn_change change = tn_with_mkldnn_verbose(TN_VERBOSE_ON);
    flip_talk(TN_SETTING_MKLDNN_VERBOSE, &change);
}

/* The strategy that the settings choose, and the cost of the path that it finds. */
static const char *path_of_einsum(double *out_cost)
{
    int64_t shapes[3][2] = {{10, 20}, {20, 30}, {30, 5}};
    tn_tensor tensors[3];
    const tn_tensor *operands[3];
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    for (int32_t i = 0; i < 3; i++) {
        tensors[i] = (tn_tensor){
            .device_type = TN_DLPACK_CPU, .ndim = 2, .dtype = TN_F32, .shape = shapes[i]};
        operands[i] = &tensors[i];
    }
    assert_int_equal(tn_einsum_explain(NULL,
                                       TN_ARGS(einsum, .equation = "ij,jk,kl->il",
                                               .operands = operands, .count = 3),
                                       &path, NULL),
                     TN_OK);
    assert_int_equal(tn_einsum_path_info_get(path, &info, NULL), TN_OK);
    *out_cost = info.cost;
    tn_einsum_path_release(path);
    return info.strategy;
}

static void flip_einsum(void)
{
    double cost, best;
    tn_scope scope = {0};
    assert_string_equal(path_of_einsum(&best), "optimal");
    set("opt_einsum.enabled=false");
    assert_string_equal(path_of_einsum(&cost), "left");
    assert_true(cost > best);
    enter(&scope, "opt_einsum.enabled=true");
    assert_string_equal(path_of_einsum(&cost), "optimal");
    assert_true(cost == best);
    tn_scope_leave(&scope);
    reset(NULL);
}

static void flip_einsum_strategy(void)
{
    double cost;
    set("opt_einsum.strategy=greedy");
    assert_string_equal(path_of_einsum(&cost), "greedy");
    set("opt_einsum.strategy=optimal");
    assert_string_equal(path_of_einsum(&cost), "optimal");
    reset(NULL);
}

static const char *kernel_of_fft(void)
{
    static char name[64];
    tn_decision *decision = NULL;
    assert_int_equal(tn_explain(NULL, "fft:c64:shape=8x64@cpu:0", &decision, NULL), TN_OK);
    const tn_candidate *chosen = tn_decision_chosen(decision);
    snprintf(name, sizeof name, "%s", chosen ? chosen->kernel : "nothing");
    tn_decision_release(decision);
    return name;
}

/* A library without kernels of fft leaves none. */
static void flip_fft_library(void)
{
    assert_string_not_equal(kernel_of_fft(), "nothing");
    set("fft.library=require:openblas");
    assert_string_equal(kernel_of_fft(), "nothing");
    reset(NULL);
}

static void a_row_that_is_read_has_its_effect(void **state)
{
    static const struct {
        tn_setting setting;
        void (*flip)(void);
    } effects[] = {
        {TN_SETTING_INFERENCE, flip_inference},
        {TN_SETTING_CPU_THREADS, flip_threads},
        {TN_SETTING_CPU_POOL, flip_pool},
        {TN_SETTING_CPU_ISA_MASK, flip_levels},
        {TN_SETTING_CUDNN_ENABLED, flip_cudnn},
        {TN_SETTING_MKLDNN_ENABLED, flip_mkldnn},
        {TN_SETTING_NNPACK_ENABLED, flip_nnpack},
        {TN_SETTING_RULES, flip_rules},
        {TN_SETTING_MKL_VERBOSE, flip_mkl_talk},
        {TN_SETTING_MKLDNN_VERBOSE, flip_mkldnn_talk},
        {TN_SETTING_OPT_EINSUM_ENABLED, flip_einsum},
        {TN_SETTING_OPT_EINSUM_STRATEGY, flip_einsum_strategy},
        {TN_SETTING_FFT_LIBRARY, flip_fft_library},
    };
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        bool shown = false;
        for (size_t j = 0; j < sizeof effects / sizeof effects[0]; j++) {
            if (effects[j].setting == i) {
                effects[j].flip();
                shown = true;
            }
        }
        shown = show_effect_on_plans(i) || shown;
        if (shown == is_unread(i))
            fail_msg("%s: no test shows what it does", key_of(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_nobody_reads_are_known),
        cmocka_unit_test(readers_have_names_of_their_own),
        cmocka_unit_test(a_row_that_is_read_has_its_effect),
    };
    forget_settings();
#if !defined(_WIN32)
    (void)setenv("TENON_CACHE", "", 1); /* times of another run would be taken for this one's */
#endif
    return run_suite("unit.settings_readers", tests);
}
