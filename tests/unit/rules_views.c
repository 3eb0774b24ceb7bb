/* Switches that choose write rules: what each says, seen in the list and judged, and what becomes of
 * two that contradict one another. */
#include "settings_check.h"

#include "settings/views.h"

/* What the calling thread's rules say of a candidate. */
static tni_judgement judge(const char *op, const char *library, const char *backend)
{
    const tni_candidate candidate = {.op = op,
                                     .kernel = "a.kernel",
                                     .library = library,
                                     .library_other = "",
                                     .backend = backend,
                                     .platform = "cuda",
                                     .language = ""};
    tni_judgement judged;
    tni_rules_judge(tni_context_current()->rules, &candidate, &judged);
    return judged;
}

static int32_t of_library(const char *op, const char *library)
{
    return judge(op, library, "").says;
}

static int32_t of_attention(const char *backend)
{
    return judge("attention", "", backend).says;
}

/* The list as "level:strength:selector (row); ...". */
static const char *list_of(const tn_context *context)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < tn_rule_count(context); i++) {
        tn_rule rule = {.struct_size = sizeof rule};
        tn_error err = {0};
        if (tn_rule_at(context, i, &rule, &err))
            fail_msg("rule %zu: %s", i, err.message);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%s:%s (%s)", i ? "; " : "",
                                 tn_level_name(rule.level), tn_strength_name(rule.strength),
                                 rule.selector, key_of(rule.setting));
    }
    return text;
}

static void assert_list(const char *expected)
{
    tn_context *context = captured();
    assert_string_equal(list_of(context), expected);
    tn_context_release(context);
}

/* Rows that choose write rules under their own name, others none; what is reset leaves none. */
static void rows_that_choose_write_rules(void **state)
{
    size_t choosing = 0;
    (void)state;
    assert_list("");
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char text[ROW_TEXT];
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        set(text);
        tn_context *context = captured();
        size_t count = tn_rule_count(context);
        assert_int_equal(count > 0, tni_setting_rules(i));
        choosing += count > 0;
        for (size_t j = 0; j < count; j++) {
            tn_rule rule = {.struct_size = sizeof rule};
            assert_int_equal(tn_rule_at(context, j, &rule, NULL), TN_OK);
            assert_int_equal(rule.setting, i);
            assert_int_equal(rule.level, TN_LEVEL_PROCESS);
        }
        reset(key_of(i));
        assert_list("");
        tn_context_release(context);
    }
    assert_int_equal(choosing, 18);
}

static void a_switch_forbids_and_permits(void **state)
{
    static const struct {
        const char *key, *op, *library, *backend, *selector;
    } rows[] = {
        {"cudnn.enabled", "conv", "cudnn", "", "library:cudnn"},
        {"cudnn.enabled", "conv", "miopen", "", "library:miopen"},
        {"mkldnn.enabled", "matmul", "mkldnn", "", "library:mkldnn"},
        {"nnpack.enabled", "conv", "nnpack", "", "library:nnpack"},
        {"cuda.flash_sdp", "attention", "", "flash", "attention/backend:flash"},
        {"cuda.mem_efficient_sdp", "attention", "", "mem_efficient",
         "attention/backend:mem_efficient"},
        {"cuda.math_sdp", "attention", "", "math", "attention/backend:math"},
        {"cuda.cudnn_sdp", "attention", "", "cudnn", "attention/backend:cudnn"},
        {"cuda.overrideable_sdp", "attention", "", "overrideable",
         "attention/backend:overrideable"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char off[64], on[64];
        tn_scope scope = {0};
        snprintf(off, sizeof off, "%s=false", rows[i].key);
        snprintf(on, sizeof on, "%s=true", rows[i].key);
        assert_int_equal(judge(rows[i].op, rows[i].library, rows[i].backend).says, TNI_JUDGED_FREE);
        set(off);
        tni_judgement judged = judge(rows[i].op, rows[i].library, rows[i].backend);
        assert_int_equal(judged.says, TNI_JUDGED_FORBIDDEN);
        assert_string_equal(judged.rule->text, rows[i].selector);
        assert_string_equal(key_of(judged.rule->setting), rows[i].key);
        assert_int_equal(judge(rows[i].op, "another", "another").says, TNI_JUDGED_FREE);
        enter(&scope, on);
        judged = judge(rows[i].op, rows[i].library, rows[i].backend);
        assert_int_equal(judged.says, TNI_JUDGED_FREE);
        assert_null(judged.rule);
        assert_int_equal(judged.overrode->strength, TN_FORBID);
        assert_int_equal(judged.overrode->level, TN_LEVEL_PROCESS);
        tn_scope_leave(&scope);
        reset(NULL);
        set(on);
        enter(&scope, off);
        assert_int_equal(judge(rows[i].op, rows[i].library, rows[i].backend).says,
                         TNI_JUDGED_FORBIDDEN);
        tn_scope_leave(&scope);
        reset(NULL);
    }
}

static void attention_off_is_attention_alone(void **state)
{
    (void)state;
    set("cuda.cudnn_sdp=false");
    assert_int_equal(of_attention("cudnn"), TNI_JUDGED_FORBIDDEN);
    assert_int_equal(of_library("conv", "cudnn"), TNI_JUDGED_FREE);
    reset(NULL);
}

/* Whether the calling thread's rules put one candidate of an op before another; only one of library
 * and backend is not "". */
static bool comes_first(const char *op, const char *libraries[2], const char *backends[2])
{
    tni_candidate both[2];
    for (int i = 0; i < 2; i++)
        both[i] = (tni_candidate){.op = op,
                                  .kernel = "a.kernel",
                                  .library = libraries[i],
                                  .library_other = "",
                                  .backend = backends[i],
                                  .platform = "cuda",
                                  .language = ""};
    return tni_rules_compare(tni_context_current()->rules, &both[0], &both[1], -1) < 0;
}

static bool backend_first(const char *first, const char *second)
{
    assert_int_equal(of_attention(first), TNI_JUDGED_PREFERRED);
    return comes_first("attention", (const char *[]){"", ""}, (const char *[]){first, second});
}

static bool library_first(const char *first, const char *second)
{
    return comes_first("matmul", (const char *[]){first, second}, (const char *[]){"", ""});
}

static void the_priority_of_attention_is_an_order(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("cuda.sdp_priority=math, cudnn");
    assert_true(backend_first("math", "cudnn"));
    assert_true(backend_first("cudnn", "flash"));
    assert_true(backend_first("flash", "mem_efficient"));
    assert_true(backend_first("mem_efficient", "overrideable"));
    set("cuda.math_sdp=false");
    assert_int_equal(of_attention("math"), TNI_JUDGED_FORBIDDEN);
    assert_int_equal(of_attention("cudnn"), TNI_JUDGED_PREFERRED);
    enter(&scope, "cuda.sdp_priority=flash");
    assert_true(backend_first("flash", "cudnn"));
    tn_scope_leave(&scope);
    assert_true(backend_first("cudnn", "flash"));
    reset(NULL);
}

static void a_preferred_library_comes_first(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("cuda.preferred_blas_library=cublaslt");
    assert_list("process:permit:matmul/library:cublas (cuda.preferred_blas_library); "
                "process:prefer:matmul/library:cublaslt (cuda.preferred_blas_library); "
                "process:permit:matmul/library:ck (cuda.preferred_blas_library)");
    assert_int_equal(of_library("matmul", "cublaslt"), TNI_JUDGED_PREFERRED);
    assert_int_equal(of_library("matmul", "cublas"), TNI_JUDGED_FREE);
    assert_int_equal(of_library("matmul", "mkl"), TNI_JUDGED_FREE);
    assert_int_equal(of_library("linalg", "cublaslt"), TNI_JUDGED_FREE);
    enter(&scope, "cuda.preferred_blas_library=cublas");
    assert_int_equal(of_library("matmul", "cublas"), TNI_JUDGED_PREFERRED);
    assert_int_equal(of_library("matmul", "cublaslt"), TNI_JUDGED_FREE);
    tn_scope_leave(&scope);
    enter(&scope, "cuda.preferred_blas_library=default");
    assert_int_equal(of_library("matmul", "cublaslt"), TNI_JUDGED_FREE);
    tn_scope_leave(&scope);
    set("cuda.preferred_linalg_library=magma");
    assert_int_equal(of_library("linalg", "magma"), TNI_JUDGED_PREFERRED);
    set("cuda.preferred_rocm_fa_library=ck");
    assert_int_equal(of_library("attention", "ck"), TNI_JUDGED_PREFERRED);
    assert_int_equal(of_library("matmul", "ck"), TNI_JUDGED_FREE);
    reset(NULL);
}

static void the_quantized_engine_is_required(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("quantized.engine=x86");
    assert_int_equal(judge("qlinear", "", "x86").says, TNI_JUDGED_REQUIRED);
    assert_int_equal(judge("qlinear", "", "fbgemm").says, TNI_JUDGED_PASSED_OVER);
    assert_int_equal(judge("matmul", "", "fbgemm").says, TNI_JUDGED_FREE);
    enter(&scope, "quantized.engine=onednn");
    assert_int_equal(judge("qlinear", "", "onednn").says, TNI_JUDGED_REQUIRED);
    assert_int_equal(judge("qlinear", "", "x86").says, TNI_JUDGED_PASSED_OVER);
    tn_scope_leave(&scope);
    enter(&scope, "quantized.engine=default");
    assert_int_equal(judge("qlinear", "", "fbgemm").says, TNI_JUDGED_FREE);
    assert_int_equal(judge("qlinear", "", "x86").says, TNI_JUDGED_FREE);
    tn_scope_leave(&scope);
    reset(NULL);
}

static void a_library_is_chosen_for_an_operator(void **state)
{
    static const struct {
        const char *key, *op;
    } rows[] = {{"matmul.library", "matmul"}, {"fft.library", "fft"}, {"linalg.library", "linalg"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        tn_scope scope = {0};
        snprintf(text, sizeof text, "%s=mkl, openblas", rows[i].key);
        set(text);
        assert_int_equal(of_library(rows[i].op, "mkl"), TNI_JUDGED_REQUIRED);
        assert_int_equal(of_library(rows[i].op, "openblas"), TNI_JUDGED_REQUIRED);
        assert_int_equal(of_library(rows[i].op, "blis"), TNI_JUDGED_PASSED_OVER);
        assert_int_equal(of_library("sort", "blis"), TNI_JUDGED_FREE);
        snprintf(text, sizeof text, "%s=any", rows[i].key);
        enter(&scope, text);
        assert_int_equal(of_library(rows[i].op, "mkl"), TNI_JUDGED_FREE);
        assert_int_equal(of_library(rows[i].op, "blis"), TNI_JUDGED_FREE);
        assert_string_equal(text_in(NULL, parsed(text).setting), "any");
        tn_scope_leave(&scope);
        snprintf(text, sizeof text, "%s=require:blis", rows[i].key);
        enter(&scope, text);
        assert_int_equal(of_library(rows[i].op, "blis"), TNI_JUDGED_REQUIRED);
        assert_int_equal(of_library(rows[i].op, "mkl"), TNI_JUDGED_PASSED_OVER);
        tn_scope_leave(&scope);
        snprintf(text, sizeof text, "%s=forbid:mkl", rows[i].key);
        set(text); /* takes the place of what the level said before */
        assert_int_equal(of_library(rows[i].op, "mkl"), TNI_JUDGED_FORBIDDEN);
        assert_int_equal(of_library(rows[i].op, "blis"), TNI_JUDGED_FREE);
        reset(NULL);
    }
    set("attention.backend=FLASH_ATTN");
    assert_int_equal(of_attention("flash_attn"), TNI_JUDGED_REQUIRED);
    assert_int_equal(of_attention("math"), TNI_JUDGED_PASSED_OVER);
    reset(NULL);
}

static void preferences_are_in_their_order(void **state)
{
    (void)state;
    set("matmul.library=prefer:b, a, c");
    assert_true(library_first("b", "a") && library_first("a", "c") && library_first("c", "d"));
    assert_false(library_first("c", "a"));
    reset(NULL);
}

static void rules_are_added_one_by_one(void **state)
{
    tn_scope scope = {0};
    const tn_change rules[] = {tn_with_rule(TN_FORBID, "language:triton"),
                               tn_with_rules(TN_AVOID, "Library:MKL"),
                               tn_with_rule(TN_AVOID, "library:mkl")};
    (void)state;
    assert_int_equal(tn_settings_change(rules, 3, NULL), TN_OK);
    assert_int_equal(tn_settings_change(&rules[0], 1, NULL), TN_OK); /* is there already */
    assert_string_equal(text_in(NULL, TN_SETTING_RULES),
                        "forbid:language:triton, avoid:library:mkl");
    const tn_change more = tn_with_rule(TN_PREFER, "cpu.matmul.avx2");
    assert_int_equal(tn_scope_enter(&scope, &more, 1, NULL), TN_OK);
    assert_list("scope:prefer:cpu.matmul.avx2 (rules); process:forbid:language:triton (rules); "
                "process:avoid:library:mkl (rules)");
    assert_string_equal(text_in(NULL, TN_SETTING_RULES),
                        "prefer:cpu.matmul.avx2, forbid:language:triton, avoid:library:mkl");
    tn_scope_leave(&scope);
    set("rules=prefer:x");
    assert_list("process:prefer:x (rules)");
    set("rules=");
    assert_list("");
    reset(NULL);
}

static void check_conflict(const char *first, const char *second, const char *words)
{
    char before[ALL_TEXT];
    tn_scope scope = {0};
    tn_context *context = NULL;
    tn_error err = {0};
    const tn_change both[] = {parsed(first), parsed(second)};
    write_all(NULL, before);
    assert_int_equal(tn_settings_change(both, 2, &err), TN_REFUSED);
    assert_contains(err.message, words);
    assert_all(NULL, before);
    assert_int_equal(tn_scope_enter(&scope, both, 2, &err), TN_REFUSED);
    assert_contains(err.message, "within the level scope, got ");
    assert_int_equal(tn_context_derive(NULL, both, 2, &context, &err), TN_REFUSED);
    assert_null(context);
    set(first);
    assert_int_equal(tn_settings_change(&both[1], 1, &err), TN_REFUSED);
    assert_contains(err.message, words);
    assert_contains(err.message, "within the level process, got ");
    assert_contains(err.message, "remove one of them");
    assert_int_equal(tn_scope_enter(&scope, &both[1], 1, &err), TN_OK); /* the nearer one wins */
    tn_scope_leave(&scope);
    reset(NULL);
    assert_all(NULL, before);
}

/* Something is left of what is required: mkl, but for matmul. */
static void a_part_that_is_forbidden_is_no_contradiction(void **state)
{
    (void)state;
    set("rules=require:library:mkl");
    set("matmul.library=forbid:mkl");
    assert_int_equal(of_library("fft", "mkl"), TNI_JUDGED_REQUIRED);
    assert_int_equal(of_library("matmul", "mkl"), TNI_JUDGED_FORBIDDEN);
    reset(NULL);
}

static void contradictions_name_both_rows(void **state)
{
    (void)state;
    check_conflict("matmul.library=require:mkldnn", "mkldnn.enabled=false",
                   "require:matmul/library:mkldnn (matmul.library) and forbid:library:mkldnn "
                   "(mkldnn.enabled)");
    check_conflict("cuda.math_sdp=false", "attention.backend=require:math",
                   "forbid:attention/backend:math (cuda.math_sdp) and "
                   "require:attention/backend:math (attention.backend)");
    check_conflict("quantized.engine=x86", "rules=forbid:backend:x86",
                   "require:qlinear/backend:x86 (quantized.engine) and forbid:backend:x86 "
                   "(rules)");
    tn_error err = {0};
    assert_int_equal(tn_settings_set("rules=require:a, forbid:a", &err), TN_REFUSED);
    assert_contains(err.message,
                    "expected rules that agree within one value, got require:a (rules) and "
                    "forbid:a (rules): they leave no candidate; remove one of them");
    assert_int_equal(tn_settings_set("rules=prefer:x, frobid:a", &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "\"frobid:a\" does not begin with require:");
    assert_contains(err.message, "; did you mean forbid?");
    assert_list("");
}

static void a_nearer_rule_wins_and_names_what_it_overrode(void **state)
{
    tn_scope scope = {0};
    (void)state;
    set("matmul.library=require:mkldnn");
    enter(&scope, "mkldnn.enabled=false");
    tni_judgement judged = judge("matmul", "mkldnn", "");
    assert_int_equal(judged.says, TNI_JUDGED_FORBIDDEN);
    assert_int_equal(judged.rule->setting, TN_SETTING_MKLDNN_ENABLED);
    assert_int_equal(judged.overrode->setting, TN_SETTING_MATMUL_LIBRARY);
    tn_context *call = derived(NULL, "mkldnn.enabled=true");
    const tni_candidate candidate = {.op = "matmul",
                                     .kernel = "a.kernel",
                                     .library = "mkldnn",
                                     .library_other = "",
                                     .backend = "",
                                     .platform = "cuda",
                                     .language = ""};
    tni_rules_judge(call->rules, &candidate, &judged);
    assert_int_equal(judged.says, TNI_JUDGED_REQUIRED); /* only the switch is taken back */
    assert_int_equal(judged.rule->setting, TN_SETTING_MATMUL_LIBRARY);
    assert_int_equal(judged.overrode->setting, TN_SETTING_MKLDNN_ENABLED);
    assert_int_equal(judged.overrode->level, TN_LEVEL_SCOPE);
    tn_context_release(call);
    tn_scope_leave(&scope);
    assert_int_equal(of_library("matmul", "mkldnn"), TNI_JUDGED_REQUIRED);
    reset(NULL);
}

/* A row's nearer value takes the place of its farther one, and what is soft lifts nothing that is
 * hard. */
static void a_nearer_value_lifts_its_own_row_alone(void **state)
{
    static const struct {
        const char *process, *scope, *op, *library, *backend;
        int32_t says;
    } rows[] = {
        {"cuda.flash_sdp=false", "cuda.sdp_priority=math", "attention", "", "flash",
         TNI_JUDGED_FORBIDDEN},
        {"cuda.flash_sdp=false", "cuda.sdp_priority=flash", "attention", "", "flash",
         TNI_JUDGED_FORBIDDEN},
        {"cuda.flash_sdp=false", "cuda.math_sdp=true", "attention", "", "flash",
         TNI_JUDGED_FORBIDDEN},
        {"rules=forbid:library:cublaslt", "cuda.preferred_blas_library=default", "matmul",
         "cublaslt", "", TNI_JUDGED_FORBIDDEN},
        {"rules=forbid:library:cublaslt", "cuda.preferred_blas_library=cublaslt", "matmul",
         "cublaslt", "", TNI_JUDGED_FORBIDDEN},
        {"rules=forbid:library:cudnn", "cudnn.enabled=true", "conv", "cudnn", "",
         TNI_JUDGED_FORBIDDEN},
        {"matmul.library=require:mkldnn", "mkldnn.enabled=true", "matmul", "openblas", "",
         TNI_JUDGED_PASSED_OVER},
        {"matmul.library=require:mkldnn", "mkldnn.enabled=true", "matmul", "mkldnn", "",
         TNI_JUDGED_REQUIRED},
        {"mkldnn.enabled=false", "mkldnn.enabled=true", "matmul", "mkldnn", "", TNI_JUDGED_FREE},
        {"mkldnn.enabled=false", "rules=permit:library:mkldnn", "matmul", "mkldnn", "",
         TNI_JUDGED_FREE},
        {"mkldnn.enabled=false", "matmul.library=any", "matmul", "mkldnn", "",
         TNI_JUDGED_FORBIDDEN},
        {"matmul.library=require:mkl", "matmul.library=any", "matmul", "mkl", "", TNI_JUDGED_FREE},
        {"matmul.library=require:mkl", "matmul.library=any", "matmul", "blis", "", TNI_JUDGED_FREE},
        {"matmul.library=require:mkl", "matmul.library=prefer:blis", "matmul", "mkl", "",
         TNI_JUDGED_FREE},
        {"matmul.library=require:mkl", "matmul.library=prefer:blis", "matmul", "blis", "",
         TNI_JUDGED_PREFERRED},
        {"rules=require:library:mkl", "matmul.library=any", "matmul", "blis", "",
         TNI_JUDGED_PASSED_OVER},
        {"rules=require:library:mkl", "rules=", "matmul", "blis", "", TNI_JUDGED_PASSED_OVER},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_scope scope = {0};
        set(rows[i].process);
        enter(&scope, rows[i].scope);
        int32_t says = judge(rows[i].op, rows[i].library, rows[i].backend).says;
        if (says != rows[i].says)
            fail_msg("%s, then %s: %d", rows[i].process, rows[i].scope, (int)says);
        tn_scope_leave(&scope);
        reset(NULL);
    }
}

static void any_has_no_strength(void **state)
{
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_settings_set("matmul.library=forbid:any", &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "matmul.library cannot be \"forbid:any\"; allowed: any, or ");
    assert_int_equal(tn_settings_set("fft.library=prefer: Any ", &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_settings_change(TN_CHANGES(tn_with_matmul_library(TN_AVOID, "any")), &err),
                     TN_INVALID_ARGUMENT);
    assert_list("");
}

/* What was good when a scope was entered is good whatever others say later. */
static void a_full_list_outside_holds_no_scope_back(void **state)
{
    enum { AT_ONCE = 256, MOST = TNI_RULES_MOST };
    static char names[AT_ONCE][16];
    static tn_change changes[AT_ONCE];
    tn_scope scope = {0};
    tn_error err = {0};
    (void)state;
    enter(&scope, "rules=avoid:library:mkl");
    for (int done = 0; done < MOST; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            snprintf(names[i], sizeof names[i], "n%d", done + i);
            changes[i] = tn_with_rule(TN_AVOID, names[i]);
        }
        assert_int_equal(tn_settings_change(changes, AT_ONCE, &err), TN_OK);
    }
    assert_int_equal(tn_settings_change(TN_CHANGES(tn_with_rule(TN_AVOID, "more")), &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the level process already has 4096 rules");
    set("determinism=run-to-run");
    assert_int_equal(tn_get_determinism(NULL), TN_RUN_TO_RUN);
    assert_int_equal(tni_rules_count(tni_context_current()->rules), MOST + 1);
    assert_int_equal(of_library("matmul", "mkl"), TNI_JUDGED_AVOIDED);
    tn_scope_leave(&scope);
    reset(NULL);
    assert_list("");
}

static void a_list_is_read_in_bounds(void **state)
{
    tn_rule rule = {.struct_size = sizeof rule, .strength = -7};
    tn_error err = {0};
    (void)state;
    set("rules=forbid:a, avoid:b");
    tn_context *context = captured();
    assert_int_equal(tn_rule_count(NULL), 0);
    assert_int_equal(tn_rule_at(NULL, 0, &rule, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "tn_context_capture");
    assert_int_equal(tn_rule_at(context, 0, NULL, &err), TN_INVALID_ARGUMENT);
    rule.struct_size--;
    assert_int_equal(tn_rule_at(context, 0, &rule, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size");
    rule.struct_size++;
    assert_int_equal(tn_rule_at(context, 2, &rule, &err), TN_NOT_FOUND);
    assert_contains(err.message, "no rule 2: there are 2");
    assert_int_equal(rule.strength, -7);
    assert_int_equal(tn_rule_at(context, 1, &rule, &err), TN_OK);
    assert_int_equal(rule.strength, TN_AVOID);
    reset(NULL);
    assert_string_equal(rule.selector, "b"); /* lent as long as the context lives */
    tn_context_release(context);
}

/* Nearer rules have the higher depth and stand first, however many scopes there are. */
static void the_list_is_nearest_first(void **state)
{
    tn_scope scopes[3] = {{0}};
    (void)state;
    set("rules=avoid:p");
    enter(&scopes[0], "rules=avoid:a");
    enter(&scopes[1], "rules=avoid:b, avoid:b2");
    enter(&scopes[2], "rules=avoid:c");
    tn_context *context = derived(NULL, "rules=avoid:d");
    static const char *const names[] = {"d", "c", "b", "b2", "a", "p"};
    int32_t depth = INT32_MAX;
    assert_int_equal(tn_rule_count(context), 6);
    for (size_t i = 0; i < 6; i++) {
        tn_rule rule = {.struct_size = sizeof rule};
        assert_int_equal(tn_rule_at(context, i, &rule, NULL), TN_OK);
        assert_string_equal(rule.selector, names[i]);
        assert_true(i == 3 ? rule.depth == depth : rule.depth < depth);
        depth = rule.depth;
    }
    tn_context_release(context);
    tn_scope_leave(&scopes[1]);
    assert_list("scope:avoid:c (rules); scope:avoid:a (rules); process:avoid:p (rules)");
    tn_scope_leave(&scopes[0]);
    tn_scope_leave(&scopes[2]);
    assert_list("process:avoid:p (rules)");
    reset(NULL);
    assert_list("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_choose_write_rules),
        cmocka_unit_test(a_switch_forbids_and_permits),
        cmocka_unit_test(attention_off_is_attention_alone),
        cmocka_unit_test(the_priority_of_attention_is_an_order),
        cmocka_unit_test(a_preferred_library_comes_first),
        cmocka_unit_test(the_quantized_engine_is_required),
        cmocka_unit_test(a_library_is_chosen_for_an_operator),
        cmocka_unit_test(preferences_are_in_their_order),
        cmocka_unit_test(rules_are_added_one_by_one),
        cmocka_unit_test(a_part_that_is_forbidden_is_no_contradiction),
        cmocka_unit_test(contradictions_name_both_rows),
        cmocka_unit_test(a_nearer_rule_wins_and_names_what_it_overrode),
        cmocka_unit_test(a_nearer_value_lifts_its_own_row_alone),
        cmocka_unit_test(any_has_no_strength),
        cmocka_unit_test(a_full_list_outside_holds_no_scope_back),
        cmocka_unit_test(a_list_is_read_in_bounds),
        cmocka_unit_test(the_list_is_nearest_first),
    };
    forget_settings();
    return run_suite("unit.rules_views", tests);
}
