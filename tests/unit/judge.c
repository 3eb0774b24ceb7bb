/* What a list of rules says of a candidate. */
#include "rules_check.h"

/* A candidate from "op kernel library backend platform language"; a '-' is nothing, and what follows is
 * another name of the library. */
typedef struct seen {
    char parts[7][32];
    tni_candidate candidate;
} seen;

static void see(const char *text, seen *out)
{
    char(*p)[32] = out->parts;
    p[6][0] = '\0';
    assert_true(sscanf(text, "%31s %31s %31s %31s %31s %31s %31s", p[0], p[1], p[2], p[3], p[4],
                       p[5], p[6]) >= 6);
    for (int i = 0; i < 6; i++)
        if (strcmp(p[i], "-") == 0)
            p[i][0] = '\0';
    out->candidate = (tni_candidate){p[0], p[1], p[2], p[3], p[4], p[5], p[6], NULL, NULL};
}

static const char mkl[] = "matmul cpu.matmul.mkl mkl - cpu -";
static const char own[] = "matmul cpu.matmul.avx2 - - cpu -";
static const char triton[] = "matmul cuda.matmul.t - - cuda triton";
static const char dnn[] = "conv cpu.conv.dnn mkldnn - cpu - onednn";
static const char flash[] = "attention cuda.attn.flash cudnn flash cuda -";

static void the_nearest_level_decides(void **state)
{
    static const struct {
        const char *list, *candidate;
        int32_t says;
        const char *rule, *overrode;
    } rows[] = {
        {"3:forbid:library:blis", mkl, TNI_JUDGED_FREE, NULL, NULL},
        {"3:forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl", NULL},
        {"3:avoid:cpu.*", mkl, TNI_JUDGED_AVOIDED, "cpu.*", NULL},
        {"3:permit:mkl", mkl, TNI_JUDGED_FREE, "mkl", NULL},
        /* within one level: forbid, require, permit, in whatever order they stand */
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.* 3:require:library:m* 3:forbid:platform:cpu", mkl,
         TNI_JUDGED_FORBIDDEN, "platform:cpu", NULL},
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.* 3:require:library:m*", mkl, TNI_JUDGED_REQUIRED,
         "library:m*", NULL},
        {"3:permit:cpu 3:avoid:cpu.* 3:prefer:mkl", mkl, TNI_JUDGED_AVOIDED, "cpu.*", NULL},
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.*", mkl, TNI_JUDGED_PREFERRED, "mkl", NULL},
        {"3:forbid:library:m* 3:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:m*", NULL},
        /* a require speaks of every candidate of its op */
        {"3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"3:require:matmul/library:mkl", own, TNI_JUDGED_PASSED_OVER, "matmul/library:mkl", NULL},
        {"3:require:matmul/library:mkl", flash, TNI_JUDGED_FREE, NULL, NULL},
        {"3:prefer:cpu 3:avoid:cpu* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER,
         "library:mkl", NULL},
        {"3:permit:cpu 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:forbid:mkl 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        /* all that one level requires, and one of the names in one value of another setting */
        {"3:@require:library:blis 3:@require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         NULL},
        {"3:@require:library:blis 3:@require:library:mkl", own, TNI_JUDGED_PASSED_OVER,
         "library:blis", NULL},
        {"3:@require:library:blis 3:@require:library:mkl 3:require:platform:cuda", mkl,
         TNI_JUDGED_PASSED_OVER, "platform:cuda", NULL},
        {"3:require:platform:cpu 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "platform:cpu",
         NULL},
        {"3:require:platform:cpu 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl",
         NULL},
        {"3:require:platform:cpu 3:require:library:mkl", triton, TNI_JUDGED_PASSED_OVER,
         "platform:cpu", NULL},
        {"3:require:platform:cpu 3:require:fft/library:blis", mkl, TNI_JUDGED_REQUIRED,
         "platform:cpu", NULL},
        {"3:require:mkl 3:require:library:blis", mkl, TNI_JUDGED_PASSED_OVER, "library:blis", NULL},
        /* the nearest wins, whatever its kind, and names the nearest that decided otherwise */
        {"5:require:library:m* 3:forbid:mkl", mkl, TNI_JUDGED_REQUIRED, "library:m*",
         "3:forbid:mkl"},
        {"5:forbid:mkl 3:require:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", "3:require:mkl"},
        {"5:require:library:mkl 3:require:library:openblas", mkl, TNI_JUDGED_REQUIRED,
         "library:mkl", "3:require:library:openblas"},
        {"5:require:library:openblas 3:require:library:mkl", mkl, TNI_JUDGED_PASSED_OVER,
         "library:openblas", "3:require:library:mkl"},
        {"5:require:library:mkl 3:require:library:mkl 3:forbid:library:blis", own,
         TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:require:library:mkl 3:forbid:platform:cpu", own, TNI_JUDGED_PASSED_OVER, "library:mkl",
         NULL},
        {"5:require:library:mkl 3:forbid:platform:cpu", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         "3:forbid:platform:cpu"},
        {"5:permit:attention/backend:flash 3:forbid:library:cudnn", flash, TNI_JUDGED_FREE,
         "attention/backend:flash", "3:forbid:library:cudnn"},
        {"5:require:cpu.matmul.mkl 3:require:library:openblas", mkl, TNI_JUDGED_REQUIRED,
         "cpu.matmul.mkl", "3:require:library:openblas"},
        {"5:require:cpu.matmul.mkl 3:permit:library:mkl 2:forbid:library:m*", mkl,
         TNI_JUDGED_REQUIRED, "cpu.matmul.mkl", "2:forbid:library:m*"},
        {"5:permit:library:mkl 4:permit:platform:cpu 3:forbid:cpu", mkl, TNI_JUDGED_FREE,
         "library:mkl", "3:forbid:cpu"},
        {"5:forbid:platform:cpu 4:forbid:library:mkl 3:permit:library:mkl", mkl,
         TNI_JUDGED_FORBIDDEN, "platform:cpu", "3:permit:library:mkl"},
        {"5:require:fft/blis 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        {"5:permit:mkl 3:require:library:blis", mkl, TNI_JUDGED_FREE, "mkl",
         "3:require:library:blis"},
        {"3:permit:mkl 5:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", "3:permit:mkl"},
        {"5:permit:matmul/library:* 3:require:matmul/library:mkl", own, TNI_JUDGED_PASSED_OVER,
         "matmul/library:mkl", NULL},
        {"5:permit:matmul/* 3:require:matmul/library:mkl", own, TNI_JUDGED_FREE, "matmul/*",
         "3:require:matmul/library:mkl"},
        {"2:permit:mkl 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        /* soft rules are apart: the nearest that matches, of one level the first */
        {"5:prefer:mkl 3:avoid:mkl", mkl, TNI_JUDGED_PREFERRED, "mkl", "3:avoid:mkl"},
        {"5:avoid:library:* 4:avoid:mkl 3:prefer:mkl 2:permit:mkl", mkl, TNI_JUDGED_AVOIDED,
         "library:*", "3:prefer:mkl"},
        {"5:avoid:x 4:prefer:mkl 3:prefer:cpu", mkl, TNI_JUDGED_PREFERRED, "mkl", NULL},
        {"5:prefer:platform:cpu 3:avoid:library:mkl", mkl, TNI_JUDGED_PREFERRED, "platform:cpu",
         "3:avoid:library:mkl"},
        {"5:prefer:mkl 3:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", NULL},
        {"5:avoid:library:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        {"5:avoid:platform:cpu 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         NULL},
        {"5:avoid:mkl 4:prefer:mkl 3:permit:mkl 2:forbid:mkl", mkl, TNI_JUDGED_AVOIDED, "mkl",
         "4:prefer:mkl"},
        {"5:forbid:mkl 3:prefer:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", NULL},
        {"5:permit:mkl 4:avoid:mkl 3:prefer:library:mkl 3:require:library:blis", mkl,
         TNI_JUDGED_AVOIDED, "mkl", "3:prefer:library:mkl"},
        /* a row's nearer value takes the place of its farther one, and of nothing else */
        {"5:@permit:library:mkl 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, NULL,
         "3:forbid:library:mkl"},
        {"5:@permit:library:blis 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, NULL,
         "3:forbid:library:mkl"},
        {"5:@permit:library:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        {"5:@permit:* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:@permit:* 3:@require:library:mkl", own, TNI_JUDGED_FREE, NULL, "3:require:library:mkl"},
        {"5:@permit:* 3:@require:library:mkl", mkl, TNI_JUDGED_FREE, NULL, NULL},
        {"5:@permit:* 4:@require:library:blis 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED,
         "library:mkl", "4:require:library:blis"},
        {"5:@permit:* 4:@prefer:library:mkl", mkl, TNI_JUDGED_FREE, NULL, "4:prefer:library:mkl"},
        {"5:@prefer:library:blis 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, NULL,
         "3:forbid:library:mkl"},
        {"5:@require:library:mkl 3:@require:library:blis", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         "3:require:library:blis"},
        {"5:@require:fft/library:mkl 3:@require:library:blis", mkl, TNI_JUDGED_FREE, NULL,
         "3:require:library:blis"},
        {"5:prefer:library:blis 3:@forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        {"5:permit:library:mkl 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, "library:mkl",
         "3:forbid:library:mkl"},
        {"3:@permit:library:mkl 5:@forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        /* a library has two names for whoever speaks of it */
        {"3:forbid:library:onednn", dnn, TNI_JUDGED_FORBIDDEN, "library:onednn", NULL},
        {"3:forbid:one*", dnn, TNI_JUDGED_FORBIDDEN, "one*", NULL},
        {"5:permit:library:onednn 3:forbid:library:mkldnn", dnn, TNI_JUDGED_FREE, "library:onednn",
         "3:forbid:library:mkldnn"},
        {"5:permit:mkldnn 3:forbid:library:onednn", dnn, TNI_JUDGED_FREE, "mkldnn",
         "3:forbid:library:onednn"},
        {"3:require:library:onednn", dnn, TNI_JUDGED_REQUIRED, "library:onednn", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tni_rules *rules = list_of(rows[i].list);
        tni_judgement judged;
        char overrode[TNI_SELECTOR_MAX] = "";
        seen it;
        see(rows[i].candidate, &it);
        tni_rules_judge(rules, &it.candidate, &judged);
        if (judged.overrode)
            snprintf(overrode, sizeof overrode, "%d:%s:%s", (int)judged.overrode->depth,
                     tn_strength_name(judged.overrode->strength), judged.overrode->text);
        if (judged.says != rows[i].says)
            fail_msg("%s, of %s: %d", rows[i].list, rows[i].candidate, (int)judged.says);
        assert_string_equal(judged.rule ? judged.rule->text : "-",
                            rows[i].rule ? rows[i].rule : "-");
        assert_string_equal(overrode, rows[i].overrode ? rows[i].overrode : "");
        tni_rules_release(rules);
    }
}

/* Whether the first candidate comes first, in both orders of asking. */
static int32_t compare(const tni_rules *rules, const char *first, const char *second)
{
    seen one, other;
    see(first, &one);
    see(second, &other);
    int32_t order = tni_rules_compare(rules, &one.candidate, &other.candidate, -1);
    assert_int_equal(tni_rules_compare(rules, &other.candidate, &one.candidate, -1), -order);
    assert_int_equal(tni_rules_compare(rules, &one.candidate, &one.candidate, -1), 0);
    return order;
}

static void the_first_rule_that_distinguishes_orders(void **state)
{
    static const struct {
        const char *list, *first, *second;
        int32_t order;
    } rows[] = {
        {"", mkl, own, 0},
        {"3:prefer:library:mkl", mkl, own, -1},
        {"3:avoid:library:mkl", mkl, own, 1},
        {"3:prefer:platform:cpu 3:avoid:library:mkl", mkl, own, 1},
        {"3:prefer:library:mkl 3:prefer:platform:cpu", mkl, own, -1},
        {"3:prefer:library:mkl 3:prefer:platform:cpu 4:prefer:language:triton", mkl, triton, 1},
        {"3:prefer:library:mkl 3:prefer:platform:cpu 4:avoid:x", own, triton, -1},
        {"5:prefer:platform:cpu 3:avoid:library:mkl", mkl, own, 1},
        {"5:avoid:mkl 3:prefer:mkl", mkl, own, 1},
        {"5:permit:mkl 3:avoid:mkl", mkl, own, 1},
        {"5:require:mkl 3:prefer:own 2:forbid:mkl", mkl, own, 0},
        {"5:@permit:* 3:@prefer:library:mkl", mkl, own, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tni_rules *rules = list_of(rows[i].list);
        if (compare(rules, rows[i].first, rows[i].second) != rows[i].order)
            fail_msg("%s, of %s and %s", rows[i].list, rows[i].first, rows[i].second);
        tni_rules_release(rules);
    }
}

static void required_ones_have_an_order_among_them(void **state)
{
    static const struct {
        const char *list;
        int32_t order;
    } rows[] = {
        {"3:require:library:mkl 3:prefer:cpu", TNI_JUDGED_PREFERRED},
        {"3:require:library:mkl 2:prefer:x 2:prefer:cpu.*", TNI_JUDGED_PREFERRED},
        {"3:prefer:blis 3:require:library:mkl", TNI_JUDGED_FREE},
        {"3:prefer:cpu.* 3:require:library:mkl 2:avoid:platform:cpu", TNI_JUDGED_PREFERRED},
        {"3:require:library:mkl 2:avoid:platform:cpu", TNI_JUDGED_AVOIDED},
        {"5:permit:platform:cpu 5:require:library:mkl 3:prefer:platform:cpu", TNI_JUDGED_PREFERRED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tni_rules *rules = list_of(rows[i].list);
        tni_judgement judged;
        seen it;
        see(mkl, &it);
        tni_rules_judge(rules, &it.candidate, &judged);
        assert_int_equal(judged.says, TNI_JUDGED_REQUIRED);
        assert_int_equal(judged.order, rows[i].order);
        tni_rules_release(rules);
    }
}

/* The same rules once more, over texts alone: a candidate is a handful of selectors that name it. */

static size_t count_of(const char *text, char c)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

/* `fact` has no '*'; marks never hide in the part of it that a '*' stands for. */
static bool names(const char *selector, const char *fact)
{
    size_t length = strlen(selector);
    if (length == 0 || selector[length - 1] != '*')
        return strcmp(selector, fact) == 0;
    return strncmp(selector, fact, length - 1) == 0 &&
           count_of(selector, '/') == count_of(fact, '/') &&
           count_of(selector, ':') == count_of(fact, ':');
}

static const char *const kind_words[] = {"op",      "kernel",   "library",
                                         "backend", "platform", "language"};

static bool plain_names(const char *selector, int kind, const char *name, const seen *it)
{
    bool bare = !strchr(selector, ':'), of_kernels = bare && strchr(selector, '.');
    const char *op = it->parts[0];
    char fact[64], of_op[128];
    if (!name[0] || (of_kernels && kind != 1))
        return false;
    snprintf(fact, sizeof fact, "%s%s%s", bare ? "" : kind_words[kind], bare ? "" : ":", name);
    snprintf(of_op, sizeof of_op, "%s/%s", op, fact);
    return names(selector, fact) || names(selector, of_op);
}

static bool plain_matches_by(const char *selector, int kind, const seen *it)
{
    return plain_names(selector, kind, it->parts[kind], it) ||
           (kind == 2 && plain_names(selector, kind, it->parts[6], it));
}

static bool plain_matches(const char *selector, const seen *it)
{
    bool matches = false;
    for (int kind = 1; kind < 6; kind++)
        matches = matches || plain_matches_by(selector, kind, it);
    return matches;
}

static bool plain_speaks_of(const char *selector, const char *op)
{
    size_t length = strcspn(selector, "/");
    return !selector[length] || (strlen(op) == length && strncmp(selector, op, length) == 0);
}

static bool plain_shadowed(const tni_rules *rules, const tni_rule *rule)
{
    bool nearer = false;
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *other = tni_rules_at(rules, i);
        nearer = nearer || (other->setting == rule->setting && other->depth > rule->depth);
    }
    return nearer && rule->setting != ROW;
}

static bool is_hard(int32_t strength)
{
    return strength != TN_PREFER && strength != TN_AVOID;
}

/* Whether a rule has a say; `shadowed`: also if a nearer value of its row replaces it. */
static bool plain_heard(const tni_rules *rules, const tni_rule *rule, bool shadowed)
{
    if (rule->strength == TN_PERMIT)
        return rule->setting == ROW;
    return shadowed || !plain_shadowed(rules, rule);
}

static bool plain_met(const tni_rules *rules, const tni_rule *rule, const seen *it)
{
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *other = tni_rules_at(rules, i);
        if (other->depth == rule->depth && other->strength == TN_REQUIRE &&
            (other == rule || (rule->setting != ROW && other->setting == rule->setting)) &&
            plain_matches(other->text, it))
            return true;
    }
    return false;
}

/* The first rule of a depth that says this; NULL for none. */
static const tni_rule *plain_sayer(const tni_rules *rules, int32_t depth, bool shadowed,
                                   int32_t says, const seen *it)
{
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        if (rule->depth != depth || !is_hard(rule->strength) || !plain_heard(rules, rule, shadowed))
            continue;
        bool matches = plain_matches(rule->text, it);
        if ((says == TNI_JUDGED_FORBIDDEN && rule->strength == TN_FORBID && matches) ||
            (says == TNI_JUDGED_REQUIRED && rule->strength == TN_REQUIRE && matches) ||
            (says == TNI_JUDGED_FREE && rule->strength == TN_PERMIT && matches) ||
            (says == TNI_JUDGED_PASSED_OVER && rule->strength == TN_REQUIRE &&
             plain_speaks_of(rule->text, it->parts[0]) && !plain_met(rules, rule, it)))
            return rule;
    }
    return NULL;
}

/* The first of what the hard rules of a depth say, the strictest first. */
static const tni_rule *plain_decide(const tni_rules *rules, int32_t depth, bool shadowed,
                                    const seen *it, int32_t *out)
{
    static const int32_t order[] = {TNI_JUDGED_FORBIDDEN, TNI_JUDGED_PASSED_OVER,
                                    TNI_JUDGED_REQUIRED, TNI_JUDGED_FREE};
    const tni_rule *rule = NULL;
    for (size_t turn = 0; turn < COUNT(order) && !rule; turn++) {
        *out = order[turn];
        rule = plain_sayer(rules, depth, shadowed, order[turn], it);
    }
    return rule;
}

static bool plain_may_run(int32_t says)
{
    return says != TNI_JUDGED_FORBIDDEN && says != TNI_JUDGED_PASSED_OVER;
}

static void plain_judge_hard(const tni_rules *rules, const seen *it, tni_judgement *out)
{
    int32_t says;
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int32_t depth = 9; depth >= 0 && !out->rule; depth--) {
        out->rule = plain_decide(rules, depth, false, it, &says);
        if (out->rule)
            out->says = says;
    }
    for (int32_t depth = 9; depth >= 0 && !out->overrode; depth--) {
        const tni_rule *rule = plain_decide(rules, depth, true, it, &says);
        if (rule && plain_may_run(says) != plain_may_run(out->says))
            out->overrode = rule;
    }
}

/* The soft rules that match, the first that holds and the first of another depth that differs. */
static void plain_judge_soft(const tni_rules *rules, const seen *it, tni_judgement *out)
{
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < tni_rules_count(rules); i++) {
            const tni_rule *rule = tni_rules_at(rules, i), *held = out->rule;
            if (is_hard(rule->strength) || !plain_matches(rule->text, it))
                continue;
            if (turn == 0 && !held && plain_heard(rules, rule, false))
                out->rule = rule;
            bool differs =
                !held || (rule->strength != held->strength && rule->depth != held->depth);
            if (turn == 1 && !out->overrode && differs)
                out->overrode = rule;
        }
    }
    if (out->rule)
        out->says = out->rule->strength == TN_PREFER ? TNI_JUDGED_PREFERRED : TNI_JUDGED_AVOIDED;
}

static void plain_judge(const tni_rules *rules, const seen *it, tni_judgement *out)
{
    tni_judgement soft;
    plain_judge_hard(rules, it, out);
    plain_judge_soft(rules, it, &soft);
    out->order = soft.says;
    if (out->says == TNI_JUDGED_FREE && soft.rule) {
        out->says = soft.says;
        out->rule = soft.rule;
        out->overrode = soft.overrode;
    } else if (!out->rule && !out->overrode) {
        out->overrode = soft.overrode;
    }
}

static tni_rules *random_list(uint64_t *seed)
{
    static const char *const ops[] = {"", "", "matmul/", "fft/"};
    static const char *const kinds[] = {
        "", "", "kernel:", "library:", "backend:", "platform:", "language:"};
    static const char *const ends[] = {"a", "b", "ab", "a.b", "b.a", "a*", "*", "a.*"};
    static const tn_setting rows[] = {ROW, OTHER_ROW, TN_SETTING_CUDNN_ENABLED};
    tni_rules *rules = NULL;
    for (uint64_t left = random_next(seed, 14); left > 0; left--) {
        char text[64];
        snprintf(text, sizeof text, "%s%s%s", ops[random_next(seed, COUNT(ops))],
                 kinds[random_next(seed, COUNT(kinds))], ends[random_next(seed, COUNT(ends))]);
        tni_rule_request add = {.selector = text,
                                .strength = (int32_t)random_next(seed, TN_FORBID + 1),
                                .setting = rows[random_next(seed, COUNT(rows))]};
        tni_rules *more = NULL;
        if (change(rules, (int32_t)random_next(seed, 4), &add, 1, &more, NULL))
            continue;
        tni_rules_release(rules);
        rules = more;
    }
    return rules;
}

static void random_candidate(uint64_t *seed, seen *out)
{
    static const char *const ops[] = {"matmul", "fft", "conv"};
    static const char *const of[] = {"", "", "a", "b", "ab", "a.b", "b.a", "c"};
    char(*p)[32] = out->parts;
    snprintf(p[0], sizeof p[0], "%s", ops[random_next(seed, COUNT(ops))]);
    for (int i = 1; i < 7; i++)
        snprintf(p[i], sizeof p[i], "%s", of[random_next(seed, COUNT(of))]);
    out->candidate = (tni_candidate){p[0], p[1], p[2], p[3], p[4], p[5], p[6], NULL, NULL};
}

static void any_list_judges_as_told(void **state)
{
    int rounds = test_fewest()                    ? 500
                 : test_full() && !test_reduced() ? 8000
                                                  : 2000,
        heard[TNI_JUDGED_FORBIDDEN + 1] = {0}, overrode = 0;
    uint64_t seed = 20250312;
    (void)state;
    print_message("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    for (int round = 0; round < rounds; round++) {
        tni_rules *rules = random_list(&seed);
        for (int i = 0; i < 5; i++) {
            tni_judgement judged, told;
            seen it;
            random_candidate(&seed, &it);
            tni_rules_judge(rules, &it.candidate, &judged);
            plain_judge(rules, &it, &told);
            assert_int_equal(judged.says, told.says);
            assert_int_equal(judged.order, told.order);
            assert_ptr_equal(judged.rule, told.rule);
            assert_ptr_equal(judged.overrode, told.overrode);
            heard[judged.says]++;
            overrode += judged.overrode != NULL;
        }
        tni_rules_release(rules);
    }
    for (int says = 0; says <= TNI_JUDGED_FORBIDDEN; says++)
        assert_true(heard[says] > rounds / 10);
    assert_true(overrode > rounds / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_level_decides),
        cmocka_unit_test(the_first_rule_that_distinguishes_orders),
        cmocka_unit_test(required_ones_have_an_order_among_them),
        cmocka_unit_test(any_list_judges_as_told),
    };
    return run_suite("unit.judge", tests);
}
