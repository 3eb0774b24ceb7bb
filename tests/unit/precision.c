/* float32 precision is one truth: a tree of rows, and older switches that see it. Each fault of
 * PyTorch's switches that concerns settings has a test of its name here: those of its precision, of its
 * `flags()`, of reads that change or fail, and of values that are stored before they are checked. */
#include "settings_check.h"

#include "os/thread.h"

enum { GENERIC = TN_SETTING_FP32_PRECISION, CUDA = TN_SETTING_CUDA_FP32_PRECISION };

/* The tree as the pages describe it. */
static const struct {
    tn_setting row, parent;
    int32_t unset;
    bool cuda;
} tree[] = {
    {GENERIC, -1, TN_FP32_IEEE, false},
    {CUDA, GENERIC, TN_FP32_IEEE, true},
    {TN_SETTING_CUDA_MATMUL_FP32_PRECISION, CUDA, TN_FP32_IEEE, true},
    {TN_SETTING_CUDNN_CONV_FP32_PRECISION, CUDA, TN_FP32_TF32, true},
    {TN_SETTING_CUDNN_RNN_FP32_PRECISION, CUDA, TN_FP32_TF32, true},
    {TN_SETTING_MKLDNN_FP32_PRECISION, GENERIC, TN_FP32_IEEE, false},
    {TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION, TN_SETTING_MKLDNN_FP32_PRECISION, TN_FP32_IEEE,
     false},
    {TN_SETTING_MKLDNN_CONV_FP32_PRECISION, TN_SETTING_MKLDNN_FP32_PRECISION, TN_FP32_IEEE, false},
    {TN_SETTING_MKLDNN_RNN_FP32_PRECISION, TN_SETTING_MKLDNN_FP32_PRECISION, TN_FP32_IEEE, false},
};
enum { NODES = sizeof tree / sizeof tree[0] };

static int64_t value(tn_setting setting)
{
    return tn_setting_value(NULL, setting);
}

static int64_t holds(tn_setting setting)
{
    return tn_setting_resolved(NULL, setting);
}

static void assert_refused(const char *text, const char *words)
{
    char before[ALL_TEXT];
    tn_error err = {0};
    write_all(NULL, before);
    assert_int_equal(tn_settings_set(text, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, words);
    assert_all(NULL, before);
}

static size_t node_of(tn_setting row)
{
    size_t i = 0;
    while (tree[i].row != row)
        i++;
    return i;
}

/* What must hold when the rows have `values`, and which row says so; -1 for none. */
static int32_t expected(const int32_t values[NODES], size_t node, tn_setting *out_from)
{
    size_t at = node;
    while (values[at] == TN_FP32_NONE && tree[at].parent >= 0)
        at = node_of(tree[at].parent);
    *out_from = values[at] == TN_FP32_NONE ? -1 : tree[at].row;
    if (values[at] == TN_FP32_NONE)
        return tree[node].unset;
    return tree[node].cuda && values[at] == TN_FP32_BF16 ? TN_FP32_IEEE : values[at];
}

static void check_tree(const int32_t values[NODES])
{
    tn_change changes[NODES];
    tn_context *context = NULL;
    tn_error err = {0};
    for (size_t i = 0; i < NODES; i++)
        changes[i] = (tn_change){.setting = tree[i].row, .value = values[i]};
    if (tn_context_derive(NULL, changes, NODES, &context, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < NODES; i++) {
        tn_setting from;
        int32_t says = expected(values, i, &from);
        tn_origin origin = origin_in(context, tree[i].row);
        assert_int_equal(tn_setting_value(context, tree[i].row), values[i]);
        assert_int_equal(tn_setting_resolved(context, tree[i].row), says);
        assert_int_equal(origin.from, from < 0 ? tree[i].row : from);
    }
    assert_int_equal(tn_setting_resolved(context, TN_SETTING_CUDNN_FP32_PRECISION),
                     tn_setting_resolved(context, CUDA));
    tn_context_release(context);
}

/* Every value of every three rows of a branch. */
static void the_nearest_row_that_says_something_holds(void **state)
{
    (void)state;
    for (size_t node = 2; node < NODES; node++) {
        size_t parent = node_of(tree[node].parent);
        int32_t most = tree[node].cuda ? TN_FP32_TF32 : TN_FP32_BF16;
        if (parent == 0)
            continue;
        for (int32_t own = TN_FP32_NONE; own <= most; own++) {
            for (int32_t over = TN_FP32_NONE; over <= most; over++) {
                for (int32_t root = TN_FP32_NONE; root <= TN_FP32_BF16; root++) {
                    int32_t values[NODES] = {0};
                    values[node] = own;
                    values[parent] = over;
                    values[0] = root;
                    check_tree(values);
                }
            }
        }
    }
}

static void every_row_of_precision_is_in_the_tree(void **state)
{
    size_t found = 0;
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_facts *facts = tn_setting_info(i);
        found += strstr(facts->key, "fp32_precision") && !facts->view;
    }
    assert_int_equal(found, NODES);
}

static void only_none_inherits(void **state)
{
    (void)state;
    set("fp32_precision=tf32");
    set("cuda.matmul.fp32_precision=ieee");
    assert_int_equal(holds(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), TN_FP32_IEEE);
    set("cuda.matmul.fp32_precision=none");
    assert_int_equal(holds(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), TN_FP32_TF32);
    reset(NULL);
}

static void the_generic_row_reaches_conv_and_rnn(void **state)
{
    (void)state;
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_TF32);
    assert_int_equal(holds(TN_SETTING_CUDNN_RNN_FP32_PRECISION), TN_FP32_TF32);
    set("fp32_precision=ieee");
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_IEEE);
    assert_int_equal(holds(TN_SETTING_CUDNN_RNN_FP32_PRECISION), TN_FP32_IEEE);
    reset(NULL);
}

static void the_default_of_conv_and_rnn_can_be_set_again(void **state)
{
    (void)state;
    set("cudnn.allow_tf32=false");
    set("cudnn.conv.fp32_precision=none");
    set("cudnn.rnn.fp32_precision=none");
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_TF32);
    set("fp32_precision=ieee");
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_IEEE);
    reset(NULL);
}

static void mkldnn_assignment_does_not_write_the_generic_node(void **state)
{
    (void)state;
    set("mkldnn.fp32_precision=bf16");
    assert_int_equal(value(TN_SETTING_MKLDNN_FP32_PRECISION), TN_FP32_BF16);
    assert_int_equal(value(GENERIC), TN_FP32_NONE);
    assert_int_equal(holds(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), TN_FP32_IEEE);
    assert_int_equal(origin_in(NULL, GENERIC).level, TN_LEVEL_DEFAULT);
    reset(NULL);
}

static void bf16_on_cuda_is_refused(void **state)
{
    (void)state;
    assert_refused("cuda.fp32_precision=bf16", "cuda.fp32_precision cannot be \"bf16\"");
    assert_refused("cudnn.fp32_precision=bf16", "allowed: none, ieee, tf32");
    assert_refused("cuda.matmul.fp32_precision=bf16", "allowed: none, ieee, tf32");
    assert_refused("cudnn.conv.fp32_precision=bf16", "allowed: none, ieee, tf32");
    assert_refused("cudnn.rnn.fp32_precision=bf16", "allowed: none, ieee, tf32");
    const tn_change change = tn_with_cuda_fp32_precision(TN_FP32_BF16);
    assert_int_equal(tn_settings_change(&change, 1, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(value(CUDA), TN_FP32_NONE);
}

static void inherited_bf16_does_not_reach_cuda(void **state)
{
    (void)state;
    set("fp32_precision=bf16");
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(holds(tree[i].row), tree[i].cuda ? TN_FP32_IEEE : TN_FP32_BF16);
    reset(NULL);
}

/* Upstream forgets "DEFAULT"; here no word is stored that cannot be set. */
static void every_word_that_is_read_can_be_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s=%s", key_of(tree[i].row), text_in(NULL, tree[i].row));
        set(text);
        assert_string_equal(text_in(NULL, tree[i].row), "none");
    }
    reset(NULL);
}

/* As flags() does it: read, change, set what was read. */
static void save_and_restore_keeps_inheritance(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char saved[ROW_TEXT + 64], other[ROW_TEXT];
        if (!tni_setting_row_of(i)->words || tn_setting_info(i)->view ||
            tn_setting_info(i)->process_only)
            continue;
        snprintf(saved, sizeof saved, "%s=%s", key_of(i), text_in(NULL, i));
        snprintf(other, sizeof other, "%s=%s", key_of(i), other_value(i));
        set(other);
        set(saved);
    }
    set("fp32_precision=ieee");
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(holds(tree[i].row), TN_FP32_IEEE);
    set("fp32_precision=tf32");
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(holds(tree[i].row), TN_FP32_TF32);
    reset(NULL);
}

static void a_cudnn_scope_keeps_what_conv_and_rnn_inherit(void **state)
{
    tn_scope scope = {0};
    (void)state;
    const tn_change changes[] = {tn_with_cudnn_benchmark(1), tn_with_cudnn_allow_tf32(0)};
    assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_IEEE);
    tn_scope_leave(&scope);
    assert_int_equal(value(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_NONE);
    assert_int_equal(value(TN_SETTING_CUDNN_RNN_FP32_PRECISION), TN_FP32_NONE);
    set("fp32_precision=ieee");
    assert_int_equal(holds(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_IEEE);
    assert_int_equal(tn_get_cudnn_allow_tf32(NULL), 0);
    reset(NULL);
}

static void a_scope_that_names_one_row_leaves_the_others(void **state)
{
    char before[ALL_TEXT];
    tn_scope scope = {0};
    (void)state;
    set("cudnn.deterministic=true");
    set("cudnn.benchmark_limit=3");
    write_all(NULL, before);
    assert_int_equal(tn_scope_enter(&scope, NULL, 0, NULL), TN_OK);
    assert_all(NULL, before); /* cudnn.flags() turned cuDNN off */
    tn_scope_leave(&scope);
    enter(&scope, "cudnn.benchmark=true");
    assert_int_equal(tn_get_cudnn_enabled(NULL), 1);
    assert_int_equal(tn_get_cudnn_deterministic(NULL), 1);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 3);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 1);
    tn_scope_leave(&scope);
    assert_all(NULL, before);
    reset(NULL);
}

/* All that the three rows behind it and those above can have: read through every name. */
static void reading_a_legacy_switch_never_fails(void **state)
{
    (void)state;
    for (int code = 0; code < 3 * 3 * 3 * 3 * 4; code++) {
        const tn_change changes[] = {
            tn_with_cuda_matmul_fp32_precision(code % 3),
            tn_with_cudnn_conv_fp32_precision(code / 3 % 3),
            tn_with_cudnn_rnn_fp32_precision(code / 9 % 3),
            tn_with_cuda_fp32_precision(code / 27 % 3),
            tn_with_mkldnn_matmul_fp32_precision(code / 81),
        };
        tn_context *context = NULL;
        assert_int_equal(tn_context_derive(NULL, changes, 5, &context, NULL), TN_OK);
        int64_t matmul = tn_setting_resolved(context, TN_SETTING_CUDA_MATMUL_FP32_PRECISION);
        int64_t conv = tn_setting_resolved(context, TN_SETTING_CUDNN_CONV_FP32_PRECISION);
        int64_t rnn = tn_setting_resolved(context, TN_SETTING_CUDNN_RNN_FP32_PRECISION);
        int64_t cpu = tn_setting_resolved(context, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION);
        assert_int_equal(tn_get_cuda_matmul_allow_tf32(context), matmul == TN_FP32_TF32);
        assert_int_equal(tn_get_cudnn_allow_tf32(context),
                         conv == TN_FP32_TF32 && rnn == TN_FP32_TF32);
        int32_t words = matmul == TN_FP32_IEEE && cpu == TN_FP32_IEEE ? TN_MATMUL_PRECISION_HIGHEST
                        : matmul == TN_FP32_TF32 && cpu == TN_FP32_TF32 ? TN_MATMUL_PRECISION_HIGH
                        : matmul == TN_FP32_TF32 && cpu == TN_FP32_BF16 ? TN_MATMUL_PRECISION_MEDIUM
                                                                        : TN_MATMUL_PRECISION_MIXED;
        assert_int_equal(tn_get_float32_matmul_precision(context), words);
        tn_context_release(context);
    }
}

/* The origin of a switch over two rows is the row that makes it false. */
static void a_switch_over_two_rows_names_the_one_that_decides(void **state)
{
    (void)state;
    set("cudnn.rnn.fp32_precision=ieee");
    assert_int_equal(tn_get_cudnn_allow_tf32(NULL), 0);
    assert_int_equal(origin_in(NULL, TN_SETTING_CUDNN_ALLOW_TF32).from,
                     TN_SETTING_CUDNN_RNN_FP32_PRECISION);
    set("cudnn.rnn.fp32_precision=tf32");
    set("cudnn.conv.fp32_precision=ieee");
    tn_origin origin = origin_in(NULL, TN_SETTING_CUDNN_ALLOW_TF32);
    assert_int_equal(origin.from, TN_SETTING_CUDNN_CONV_FP32_PRECISION);
    assert_string_equal(origin.text, "process, through cudnn.conv.fp32_precision");
    reset(NULL);
}

static void a_legacy_switch_has_no_state_of_its_own(void **state)
{
    (void)state;
    set("cuda.matmul.allow_tf32=true");
    assert_int_equal(value(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), TN_FP32_TF32);
    set("cuda.matmul.fp32_precision=ieee");
    assert_int_equal(tn_get_cuda_matmul_allow_tf32(NULL), 0);
    set("cuda.matmul.fp32_precision=none");
    set("fp32_precision=tf32");
    assert_int_equal(tn_get_cuda_matmul_allow_tf32(NULL), 1);
    assert_string_equal(origin_in(NULL, TN_SETTING_CUDA_MATMUL_ALLOW_TF32).text,
                        "process, through fp32_precision");
    reset("cuda.matmul.allow_tf32");
    assert_int_equal(origin_in(NULL, TN_SETTING_CUDA_MATMUL_FP32_PRECISION).from, GENERIC);
    reset(NULL);
}

static void legacy_switches_write_their_rows(void **state)
{
    static const struct {
        const char *text;
        int32_t cuda, conv, rnn, mkldnn, mkldnn_matmul;
    } rows[] = {
        {"cuda.matmul.allow_tf32=true", TN_FP32_TF32, 0, 0, 0, 0},
        {"cuda.matmul.allow_tf32=false", TN_FP32_IEEE, 0, 0, 0, 0},
        {"cudnn.allow_tf32=true", 0, TN_FP32_TF32, TN_FP32_TF32, 0, 0},
        {"cudnn.allow_tf32=false", 0, TN_FP32_IEEE, TN_FP32_IEEE, 0, 0},
        {"mkldnn.allow_tf32=true", 0, 0, 0, TN_FP32_TF32, 0},
        {"mkldnn.allow_tf32=false", 0, 0, 0, TN_FP32_IEEE, 0},
        {"float32_matmul_precision=highest", TN_FP32_IEEE, 0, 0, 0, TN_FP32_IEEE},
        {"float32_matmul_precision=high", TN_FP32_TF32, 0, 0, 0, TN_FP32_TF32},
        {"float32_matmul_precision=medium", TN_FP32_TF32, 0, 0, 0, TN_FP32_BF16},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_change change = parsed(rows[i].text);
        set(rows[i].text);
        assert_int_equal(value(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), rows[i].cuda);
        assert_int_equal(value(TN_SETTING_CUDNN_CONV_FP32_PRECISION), rows[i].conv);
        assert_int_equal(value(TN_SETTING_CUDNN_RNN_FP32_PRECISION), rows[i].rnn);
        assert_int_equal(value(TN_SETTING_MKLDNN_FP32_PRECISION), rows[i].mkldnn);
        assert_int_equal(value(TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION), rows[i].mkldnn_matmul);
        assert_int_equal(value(GENERIC), TN_FP32_NONE);
        assert_int_equal(value(change.setting), change.value);
        reset(key_of(change.setting));
        for (size_t j = 0; j < NODES; j++)
            assert_int_equal(value(tree[j].row), TN_FP32_NONE);
    }
}

static void mkldnn_allow_tf32_is_kept_on_every_machine(void **state)
{
    (void)state;
    set("mkldnn.allow_tf32=true");
    assert_int_equal(tn_get_mkldnn_allow_tf32(NULL), 1);
    assert_int_equal(holds(TN_SETTING_MKLDNN_CONV_FP32_PRECISION), TN_FP32_TF32);
    reset(NULL);
}

static void entering_a_scope_never_fails_for_what_the_rows_say(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("cudnn.conv.fp32_precision=tf32");
    set("cudnn.rnn.fp32_precision=ieee");
    enter(&scope, "cudnn.enabled=false");
    assert_int_equal(tn_get_cudnn_allow_tf32(NULL), 0);
    tn_scope_leave(&scope);
    assert_int_equal(value(TN_SETTING_CUDNN_CONV_FP32_PRECISION), TN_FP32_TF32);
    assert_int_equal(value(TN_SETTING_CUDNN_RNN_FP32_PRECISION), TN_FP32_IEEE);
    reset(NULL);
}

static void an_unknown_precision_word_is_refused_in_any_case(void **state)
{
    (void)state;
    assert_refused("float32_matmul_precision=hihg", "did you mean high?");
    assert_refused("float32_matmul_precision=FASTEST", "allowed: highest, high, medium");
    assert_refused("fp32_precision=fp16", "allowed: none, ieee, tf32, bf16");
    assert_refused("fp32_precision=TF-32", "did you mean tf32?");
    assert_refused("fp32_precision=default", "allowed: none, ieee, tf32, bf16");
    set("float32_matmul_precision=HIGH");
    assert_string_equal(text_in(NULL, TN_SETTING_FLOAT32_MATMUL_PRECISION), "high");
    set("fp32_precision=Ieee");
    assert_string_equal(text_in(NULL, GENERIC), "ieee");
    reset(NULL);
}

static void precision_does_not_bring_back_a_library_that_is_off(void **state)
{
    tni_judgement judged;
    const tni_candidate mkldnn = {.op = "matmul",
                                  .kernel = "a.kernel",
                                  .library = "mkldnn",
                                  .library_other = "",
                                  .backend = "",
                                  .platform = "cuda",
                                  .language = ""};
    (void)state;
    set("mkldnn.enabled=false");
    set("mkldnn.matmul.fp32_precision=tf32");
    tni_rules_judge(tni_context_current()->rules, &mkldnn, &judged);
    assert_int_equal(judged.says, TNI_JUDGED_FORBIDDEN);
    reset(NULL);
}

static void validation_comes_before_assignment(void **state)
{
    (void)state;
    set("cuda.preferred_linalg_library=magma");
    assert_refused("cuda.preferred_linalg_library=lapack", "default, cusolver, magma");
    assert_string_equal(text_in(NULL, TN_SETTING_CUDA_PREFERRED_LINALG_LIBRARY), "magma");
    set("quantized.engine=x86");
    assert_refused("quantized.engine=fbgem", "did you mean fbgemm?");
    assert_string_equal(text_in(NULL, TN_SETTING_QUANTIZED_ENGINE), "x86");
    assert_refused("cuda.cufft_plan_cache.max_size=-1", "at least 0");
    assert_refused("cudnn.benchmark_limit=-1", "0 to 10000");
    assert_refused("cuda.cublas_workspace_size=-1", "at least 0");
    assert_refused("mha.fastpath_enabled=2", "true, false");
    assert_refused("cudnn.depthwise_kernel=none", "auto, cudnn, native");
    reset(NULL);
}

/* Several error texts upstream name another setter. */
static void a_refusal_names_the_row_that_was_meant(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char text[128], words[128];
        if (tni_setting_row_of(i)->kind != TN_VALUE_BOOL)
            continue;
        snprintf(text, sizeof text, "%s=2", key_of(i));
        snprintf(words, sizeof words, "%s cannot be \"2\"; allowed: true, false", key_of(i));
        assert_refused(text, words);
    }
}

static void of_flags_that_fail_midway_none_is_set(void **state)
{
    char before[ALL_TEXT];
    tn_scope scope = {0};
    (void)state;
    write_all(NULL, before);
    const tn_change changes[] = {tn_with_cudnn_enabled(0), tn_with_cudnn_benchmark(1),
                                 tn_with_cudnn_fp32_precision(TN_FP32_BF16)};
    assert_int_equal(tn_scope_enter(&scope, changes, 3, NULL), TN_INVALID_ARGUMENT);
    assert_all(NULL, before);
    assert_int_equal(tn_settings_change(changes, 3, NULL), TN_INVALID_ARGUMENT);
    assert_all(NULL, before);
}

static void reading_changes_nothing(void **state)
{
    char before[ALL_TEXT];
    (void)state;
    uint64_t generation = atomic_load(&tni_settings_generation);
    write_all(NULL, before);
    assert_string_equal(text_in(NULL, TN_SETTING_CUDA_PREFERRED_BLAS_LIBRARY), "default");
    assert_string_equal(text_in(NULL, TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY), "default");
    assert_string_equal(text_in(NULL, TN_SETTING_QUANTIZED_ENGINE), "default");
    assert_all(NULL, before);
    assert_int_equal(atomic_load(&tni_settings_generation), generation);
    assert_int_equal(tni_rules_count(tni_context_current()->rules), 0);
}

static void the_quantized_engine_can_be_unset(void **state)
{
    (void)state;
    set("quantized.engine=onednn");
    set("quantized.engine=default");
    assert_string_equal(text_in(NULL, TN_SETTING_QUANTIZED_ENGINE), "default");
    reset(NULL);
}

static void einsum_keeps_its_strategy_while_it_is_off(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("opt_einsum.enabled=false");
    set("opt_einsum.strategy=greedy");
    const tn_change changes[] = {tn_with_opt_einsum_enabled(0),
                                 tn_with_opt_einsum_strategy(TN_EINSUM_OPTIMAL)};
    assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
    assert_string_equal(text_in(NULL, TN_SETTING_OPT_EINSUM_STRATEGY), "optimal");
    tn_scope_leave(&scope);
    assert_string_equal(text_in(NULL, TN_SETTING_OPT_EINSUM_STRATEGY), "greedy");
    assert_int_equal(tn_get_opt_einsum_enabled(NULL), 0);
    reset(NULL);
}

static void leaving_a_verbose_scope_restores_what_was(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("mkl.verbose=on");
    set("mkldnn.verbose=creation");
    const tn_change changes[] = {tn_with_mkl_verbose(TN_VERBOSE_OFF),
                                 tn_with_mkldnn_verbose(TN_VERBOSE_OFF)};
    assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
    assert_int_equal(tn_get_mkldnn_verbose(NULL), TN_VERBOSE_OFF);
    tn_scope_leave(&scope);
    assert_int_equal(tn_get_mkl_verbose(NULL), TN_VERBOSE_ON);
    assert_int_equal(tn_get_mkldnn_verbose(NULL), TN_VERBOSE_CREATION);
    reset(NULL);
}

static void choosing_one_attention_leaves_the_overrideable_one(void **state)
{
    tn_scope scope = {0};
    (void)state;
    const tn_change changes[] = {tn_with_cuda_flash_sdp(1), tn_with_cuda_math_sdp(0)};
    assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
    assert_int_equal(tn_get_cuda_overrideable_sdp(NULL), 1);
    assert_int_equal(tn_get_cuda_cudnn_sdp(NULL), 1);
    tn_scope_leave(&scope);
}

/* Upstream settles the order of attention, and workspaces, at the first call of the process. */
static void nothing_is_settled_by_the_first_reading(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_contains(text_in(NULL, TN_SETTING_CUDA_SDP_PRIORITY), "flash, mem_efficient, math");
        assert_int_equal(tn_get_cuda_cublas_workspace_size(NULL), -1);
        set("cuda.sdp_priority=cudnn");
        set("cuda.cublas_workspace_size=32m");
        assert_contains(text_in(NULL, TN_SETTING_CUDA_SDP_PRIORITY), "cudnn, flash");
        assert_int_equal(tn_get_cuda_cublas_workspace_size(NULL), 32 << 20);
        reset(NULL);
    }
}

static void read_elsewhere(void *user)
{
    *(int64_t *)user = tn_setting_resolved(NULL, TN_SETTING_CUDA_MATMUL_FP32_PRECISION);
}

static void a_scope_belongs_to_its_thread(void **state)
{
    tn_scope scope = {0};
    tni_thread other;
    int64_t seen = -1;
    (void)state;
    enter(&scope, "fp32_precision=tf32");
    assert_int_equal(tni_thread_create(&other, read_elsewhere, &seen, NULL), TN_OK);
    tni_thread_join(other);
    assert_int_equal(seen, TN_FP32_IEEE);
    assert_int_equal(holds(TN_SETTING_CUDA_MATMUL_FP32_PRECISION), TN_FP32_TF32);
    tn_scope_leave(&scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_row_that_says_something_holds),
        cmocka_unit_test(every_row_of_precision_is_in_the_tree),
        cmocka_unit_test(only_none_inherits),
        cmocka_unit_test(the_generic_row_reaches_conv_and_rnn),
        cmocka_unit_test(the_default_of_conv_and_rnn_can_be_set_again),
        cmocka_unit_test(mkldnn_assignment_does_not_write_the_generic_node),
        cmocka_unit_test(bf16_on_cuda_is_refused),
        cmocka_unit_test(inherited_bf16_does_not_reach_cuda),
        cmocka_unit_test(every_word_that_is_read_can_be_set),
        cmocka_unit_test(save_and_restore_keeps_inheritance),
        cmocka_unit_test(a_cudnn_scope_keeps_what_conv_and_rnn_inherit),
        cmocka_unit_test(a_scope_that_names_one_row_leaves_the_others),
        cmocka_unit_test(reading_a_legacy_switch_never_fails),
        cmocka_unit_test(a_switch_over_two_rows_names_the_one_that_decides),
        cmocka_unit_test(a_legacy_switch_has_no_state_of_its_own),
        cmocka_unit_test(legacy_switches_write_their_rows),
        cmocka_unit_test(mkldnn_allow_tf32_is_kept_on_every_machine),
        cmocka_unit_test(entering_a_scope_never_fails_for_what_the_rows_say),
        cmocka_unit_test(an_unknown_precision_word_is_refused_in_any_case),
        cmocka_unit_test(precision_does_not_bring_back_a_library_that_is_off),
        cmocka_unit_test(validation_comes_before_assignment),
        cmocka_unit_test(a_refusal_names_the_row_that_was_meant),
        cmocka_unit_test(of_flags_that_fail_midway_none_is_set),
        cmocka_unit_test(reading_changes_nothing),
        cmocka_unit_test(the_quantized_engine_can_be_unset),
        cmocka_unit_test(einsum_keeps_its_strategy_while_it_is_off),
        cmocka_unit_test(leaving_a_verbose_scope_restores_what_was),
        cmocka_unit_test(choosing_one_attention_leaves_the_overrideable_one),
        cmocka_unit_test(nothing_is_settled_by_the_first_reading),
        cmocka_unit_test(a_scope_belongs_to_its_thread),
    };
    forget_settings();
    return run_suite("unit.precision", tests);
}
