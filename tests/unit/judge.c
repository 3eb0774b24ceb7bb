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

static void each_kind_decides_by_its_nearest_depth(void **state)
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
        /* strengths at one depth, in whatever order they stand */
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.* 3:require:library:m* 3:forbid:platform:cpu", mkl,
         TNI_JUDGED_FORBIDDEN, "platform:cpu", NULL},
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.* 3:require:library:m*", mkl, TNI_JUDGED_REQUIRED,
         "library:m*", NULL},
        {"3:permit:cpu 3:prefer:mkl 3:avoid:cpu.*", mkl, TNI_JUDGED_AVOIDED, "cpu.*", NULL},
        {"3:permit:cpu 3:prefer:mkl", mkl, TNI_JUDGED_PREFERRED, "mkl", NULL},
        {"3:forbid:library:m* 3:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:m*", NULL},
        /* what is required passes over all else of its op, whatever else is said of it there */
        {"3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"3:require:matmul/library:mkl", own, TNI_JUDGED_PASSED_OVER, "matmul/library:mkl", NULL},
        {"3:require:matmul/library:mkl", flash, TNI_JUDGED_FREE, NULL, NULL},
        {"3:prefer:cpu 3:avoid:cpu* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER,
         "library:mkl", NULL},
        {"3:permit:cpu 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        /* one of a kind, all of several kinds */
        {"3:require:library:blis 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         NULL},
        {"3:require:library:mkl 3:require:matmul/library:blis", mkl, TNI_JUDGED_REQUIRED,
         "library:mkl", NULL},
        {"3:require:platform:cpu 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "platform:cpu",
         NULL},
        {"3:require:platform:cpu 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl",
         NULL},
        {"3:require:platform:cpu 3:require:library:mkl", triton, TNI_JUDGED_PASSED_OVER,
         "platform:cpu", NULL},
        {"3:require:library:blis 3:require:library:x 3:require:platform:cuda", mkl,
         TNI_JUDGED_PASSED_OVER, "library:blis", NULL},
        {"3:require:platform:cpu 3:require:fft/library:blis", mkl, TNI_JUDGED_REQUIRED,
         "platform:cpu", NULL},
        /* nearer ones of a kind win, and name the nearest that said otherwise */
        {"5:prefer:mkl 3:avoid:mkl", mkl, TNI_JUDGED_PREFERRED, "mkl", "3:avoid:mkl"},
        {"5:prefer:mkl 3:avoid:library:mkl", mkl, TNI_JUDGED_PREFERRED, "mkl",
         "3:avoid:library:mkl"},
        {"5:require:library:m* 3:forbid:mkl", mkl, TNI_JUDGED_REQUIRED, "library:m*",
         "3:forbid:mkl"},
        {"5:forbid:mkl 3:require:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", "3:require:mkl"},
        {"5:forbid:mkl 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        {"5:avoid:library:* 4:avoid:mkl 3:prefer:mkl 2:permit:mkl", mkl, TNI_JUDGED_AVOIDED,
         "library:*", "3:prefer:mkl"},
        {"5:avoid:x 4:prefer:mkl 3:prefer:cpu", mkl, TNI_JUDGED_PREFERRED, "mkl", NULL},
        {"5:require:library:mkl 3:require:library:openblas", mkl, TNI_JUDGED_REQUIRED,
         "library:mkl", "3:require:library:openblas"},
        {"5:require:library:openblas 3:require:library:mkl", mkl, TNI_JUDGED_PASSED_OVER,
         "library:openblas", "3:require:library:mkl"},
        {"5:require:library:mkl 3:require:library:mkl 3:forbid:library:blis", own,
         TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        /* ... and lift nothing of another kind */
        {"5:require:library:mkl 3:forbid:platform:cpu", own, TNI_JUDGED_FORBIDDEN, "platform:cpu",
         NULL},
        {"5:permit:attention/backend:flash 3:forbid:library:cudnn", flash, TNI_JUDGED_FORBIDDEN,
         "library:cudnn", NULL},
        {"5:prefer:attention/backend:flash 3:forbid:library:cudnn", flash, TNI_JUDGED_FORBIDDEN,
         "library:cudnn", NULL},
        {"5:prefer:language:triton 3:require:library:mkl", triton, TNI_JUDGED_PASSED_OVER,
         "library:mkl", NULL},
        {"5:require:kernel:cpu.matmul.mkl 3:require:library:openblas", mkl, TNI_JUDGED_PASSED_OVER,
         "library:openblas", NULL},
        {"5:require:kernel:cpu.matmul.mkl 3:permit:library:mkl 2:forbid:library:m*", mkl,
         TNI_JUDGED_REQUIRED, "cpu.matmul.mkl", NULL},
        {"5:avoid:platform:cpu 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED, "library:mkl",
         NULL},
        {"5:prefer:platform:cpu 3:avoid:library:mkl", mkl, TNI_JUDGED_AVOIDED, "library:mkl", NULL},
        {"5:permit:platform:cpu 3:prefer:library:mkl", mkl, TNI_JUDGED_PREFERRED, "library:mkl",
         NULL},
        {"5:permit:library:mkl 4:permit:platform:cpu 3:forbid:cpu", mkl, TNI_JUDGED_FREE,
         "library:mkl", NULL},
        /* of kinds that say the same, the nearest rule, and what it overrode alone */
        {"5:forbid:platform:cpu 4:forbid:library:mkl 3:permit:library:mkl", mkl,
         TNI_JUDGED_FORBIDDEN, "platform:cpu", NULL},
        {"5:forbid:cpu.* 4:forbid:library:mkl 3:permit:kernel:* 2:permit:library:mkl", mkl,
         TNI_JUDGED_FORBIDDEN, "cpu.*", "3:permit:kernel:*"},
        {"5:avoid:* 4:prefer:platform:cpu 3:require:library:blis 2:prefer:cpu.*", flash,
         TNI_JUDGED_PASSED_OVER, "library:blis", NULL},
        {"5:avoid:* 4:prefer:platform:cpu 2:prefer:cpu.*", mkl, TNI_JUDGED_AVOIDED, "*",
         "4:prefer:platform:cpu"},
        /* hard and soft are apart: a soft rule lifts no hard one, nor a hard one a soft one */
        {"5:prefer:mkl 3:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", NULL},
        {"5:avoid:library:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        {"5:avoid:mkl 4:prefer:mkl 3:permit:mkl 2:forbid:mkl", mkl, TNI_JUDGED_AVOIDED, "mkl",
         "4:prefer:mkl"},
        {"5:forbid:mkl 3:prefer:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", NULL},
        {"5:prefer:library:blis 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl",
         NULL},
        {"5:permit:mkl 3:prefer:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FREE, "mkl",
         "3:prefer:mkl"},
        {"5:permit:mkl 4:avoid:mkl 3:prefer:library:mkl 3:require:library:blis", mkl,
         TNI_JUDGED_FREE, "mkl", "4:avoid:mkl"},
        /* a row's nearer value takes the place of its farther one, and of nothing else */
        {"5:@permit:library:mkl 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, NULL,
         "3:forbid:library:mkl"},
        {"5:@permit:library:blis 3:@forbid:library:mkl", mkl, TNI_JUDGED_FREE, NULL,
         "3:forbid:library:mkl"},
        {"5:@permit:library:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FORBIDDEN, "library:mkl",
         NULL},
        {"5:@permit:* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:@permit:* 3:@require:library:mkl", own, TNI_JUDGED_FREE, NULL, "3:require:library:mkl"},
        {"5:@permit:* 3:@require:library:mkl", mkl, TNI_JUDGED_FREE, NULL, "3:require:library:mkl"},
        {"5:@permit:* 4:@require:library:blis 3:require:library:mkl", mkl, TNI_JUDGED_REQUIRED,
         "library:mkl", "4:require:library:blis"},
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
        /* a name alone has the kinds it matches by, and is missed by one of its own */
        {"5:permit:cpu 3:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", NULL},
        {"5:permit:* 3:forbid:mkl", mkl, TNI_JUDGED_FREE, "*", "3:forbid:mkl"},
        {"5:prefer:* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:prefer:cpu 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        {"5:require:mkl 3:require:blis", mkl, TNI_JUDGED_REQUIRED, "mkl", "3:require:blis"},
        {"5:require:mkl 3:require:blis 2:forbid:library:mkl", mkl, TNI_JUDGED_REQUIRED, "mkl",
         "3:require:blis"},
        {"5:require:blis 3:require:mkl", mkl, TNI_JUDGED_PASSED_OVER, "blis", "3:require:mkl"},
        {"5:require:fft/blis 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        {"5:require:mkl 3:require:library:blis", mkl, TNI_JUDGED_REQUIRED, "mkl",
         "3:require:library:blis"},
        {"5:require:library:mkl 3:require:blis", mkl, TNI_JUDGED_PASSED_OVER, "blis", NULL},
        {"5:avoid:library:mkl 3:require:mkl", mkl, TNI_JUDGED_REQUIRED, "mkl", NULL},
        {"5:require:mkl 3:require:cpu.matmul.avx2", mkl, TNI_JUDGED_PASSED_OVER, "cpu.matmul.avx2",
         NULL},
        {"5:require:mkl 3:require:cpu.matmul.avx2", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
        {"3:require:mkl 3:require:library:blis", mkl, TNI_JUDGED_PASSED_OVER, "library:blis", NULL},
        /* permitting takes back what farther levels say */
        {"5:permit:library:mkl 3:forbid:library:mkl", mkl, TNI_JUDGED_FREE, "library:mkl",
         "3:forbid:library:mkl"},
        {"5:permit:library:* 3:avoid:matmul/mkl", mkl, TNI_JUDGED_FREE, "library:*",
         "3:avoid:matmul/mkl"},
        {"5:permit:mkl 3:require:library:blis", mkl, TNI_JUDGED_FREE, "mkl",
         "3:require:library:blis"},
        {"3:permit:mkl 5:forbid:mkl", mkl, TNI_JUDGED_FORBIDDEN, "mkl", "3:permit:mkl"},
        {"5:permit:library:* 3:forbid:platform:cpu", mkl, TNI_JUDGED_FORBIDDEN, "platform:cpu",
         NULL},
        {"5:permit:blis 3:require:mkl 3:require:blis", mkl, TNI_JUDGED_REQUIRED, "mkl", NULL},
        /* ... also for those that a farther level would have passed over */
        {"5:permit:matmul/library:* 3:require:matmul/library:mkl", own, TNI_JUDGED_FREE, NULL,
         NULL},
        {"5:permit:matmul/library:* 3:require:library:mkl", own, TNI_JUDGED_PASSED_OVER,
         "library:mkl", NULL},
        {"5:permit:library:blis 3:require:library:blis 3:require:library:mkl", own,
         TNI_JUDGED_PASSED_OVER, "library:mkl", NULL},
        {"5:permit:mkl 3:require:mkl 2:avoid:cpu", own, TNI_JUDGED_AVOIDED, "cpu", NULL},
        {"2:permit:mkl 3:require:mkl", own, TNI_JUDGED_PASSED_OVER, "mkl", NULL},
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

static void preferences_rank_by_their_place(void **state)
{
    tni_rules *rules =
        list_of("3:prefer:library:mkl 3:prefer:platform:cpu 4:avoid:x 4:prefer:language:triton");
    tni_judgement judged;
    seen it;
    (void)state;
    see(triton, &it);
    tni_rules_judge(rules, &it.candidate, &judged);
    assert_int_equal(judged.says, TNI_JUDGED_PREFERRED);
    assert_int_equal(judged.rank, 1);
    see(mkl, &it);
    tni_rules_judge(rules, &it.candidate, &judged);
    assert_int_equal(judged.rank, 2);
    see(own, &it);
    tni_rules_judge(rules, &it.candidate, &judged);
    assert_int_equal(judged.rank, 3);
    assert_ptr_equal(judged.rule, tni_rules_at(rules, 3));
    tni_rules_release(rules);
}

static void required_ones_have_an_order_among_them(void **state)
{
    static const struct {
        const char *list;
        int32_t order, rank;
    } rows[] = {
        {"3:require:library:mkl 3:prefer:cpu", TNI_JUDGED_PREFERRED, 1},
        {"3:require:library:mkl 2:prefer:x 2:prefer:cpu.*", TNI_JUDGED_PREFERRED, 2},
        {"3:require:library:mkl 2:prefer:library:mkl", TNI_JUDGED_PREFERRED, 1},
        {"3:prefer:blis 3:require:library:mkl", TNI_JUDGED_FREE, 0},
        {"3:prefer:cpu.* 3:require:library:mkl 2:avoid:platform:cpu", TNI_JUDGED_AVOIDED, 0},
        {"5:permit:platform:cpu 3:require:library:mkl 3:prefer:platform:cpu", TNI_JUDGED_FREE, 0},
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
        assert_int_equal(judged.rank, rows[i].rank);
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

/* The number of its kind's word; 0 for a name alone. */
static int plain_kind(const char *selector)
{
    const char *slash = strchr(selector, '/'), *rest = slash ? slash + 1 : selector;
    for (int kind = 1; kind < 6; kind++) {
        size_t length = strlen(kind_words[kind]);
        if (strncmp(rest, kind_words[kind], length) == 0 && rest[length] == ':')
            return kind;
    }
    return strchr(rest, '.') ? 1 : 0;
}

/* One that has only what the selector needs, with '~', which no selector has, for all it leaves
 * open: whoever matches it for every kind covers the selector. */
static void witness(const char *selector, int kind, seen *out)
{
    const char *slash = strchr(selector, '/'), *rest = slash ? slash + 1 : selector;
    const char *colon = strchr(rest, ':'), *name = colon ? colon + 1 : rest;
    size_t length = strlen(name);
    *out = (seen){0};
    snprintf(out->parts[0], sizeof out->parts[0], "%.*s", (int)(slash ? slash - selector : 1),
             slash ? selector : "~");
    snprintf(out->parts[kind], sizeof out->parts[kind], "%s", name);
    if (length > 0 && name[length - 1] == '*')
        out->parts[kind][length - 1] = '~';
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

/* What is judged on its own, and whether by shadowed rules too. */
typedef struct part {
    int kind;
    bool soft, shadowed;
} part;

static bool plain_heard(const tni_rules *rules, const tni_rule *rule, part of)
{
    switch (rule->strength) {
    case TN_PERMIT: return rule->setting == ROW;
    case TN_AVOID:
    case TN_PREFER: return of.soft && (of.shadowed || !plain_shadowed(rules, rule));
    default: return !of.soft && (of.shadowed || !plain_shadowed(rules, rule));
    }
}

static bool plain_taken_back(const tni_rules *rules, const tni_rule *rule)
{
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *permit = tni_rules_at(rules, i);
        int kind = plain_kind(rule->text), matched = 0;
        if (permit->strength != TN_PERMIT || permit->setting != ROW || permit->depth <= rule->depth)
            continue;
        for (int k = kind ? kind : 1; k <= (kind ? kind : 5); k++) {
            seen it;
            witness(rule->text, k, &it);
            matched += plain_matches(permit->text, &it);
        }
        if (matched == (kind ? 1 : 5))
            return true;
    }
    return false;
}

static bool plain_met(const tni_rules *rules, const tni_rule *rule, part of, const seen *it)
{
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *other = tni_rules_at(rules, i);
        if (other->depth == rule->depth && other->strength == TN_REQUIRE &&
            plain_heard(rules, other, of) && plain_kind(other->text) == plain_kind(rule->text) &&
            plain_matches(other->text, it))
            return true;
    }
    return false;
}

/* Whether a rule has a say by a kind, and then what. The kind 0 is that of names alone which are
 * required. */
static bool plain_says(const tni_rules *rules, const tni_rule *rule, part of, const seen *it,
                       int32_t *out)
{
    static const int32_t says[] = {TNI_JUDGED_FREE, TNI_JUDGED_REQUIRED, TNI_JUDGED_PREFERRED,
                                   TNI_JUDGED_AVOIDED, TNI_JUDGED_FORBIDDEN};
    bool required_here = rule->strength == TN_REQUIRE && plain_kind(rule->text) == of.kind;
    *out = says[rule->strength];
    if (!plain_heard(rules, rule, of))
        return false;
    if (required_here && plain_speaks_of(rule->text, it->parts[0]) &&
        !plain_met(rules, rule, of, it) && !plain_taken_back(rules, rule)) {
        *out = TNI_JUDGED_PASSED_OVER;
        return true;
    }
    return of.kind ? plain_matches_by(rule->text, of.kind, it)
                   : required_here && plain_matches(rule->text, it);
}

static const int32_t order[] = {TNI_JUDGED_FORBIDDEN, TNI_JUDGED_PASSED_OVER, TNI_JUDGED_REQUIRED,
                                TNI_JUDGED_AVOIDED,   TNI_JUDGED_PREFERRED,   TNI_JUDGED_FREE};

/* The rule of one depth that is heard first, by the order of what they say. */
static const tni_rule *plain_decide(const tni_rules *rules, int32_t depth, part of, const seen *it,
                                    int32_t *out)
{
    for (size_t turn = 0; turn < COUNT(order); turn++) {
        for (size_t i = 0; i < tni_rules_count(rules); i++) {
            const tni_rule *rule = tni_rules_at(rules, i);
            if (rule->depth == depth && plain_says(rules, rule, of, it, out) && *out == order[turn])
                return rule;
        }
    }
    return NULL;
}

static void plain_judge_part(const tni_rules *rules, part of, const seen *it, tni_judgement *out)
{
    int32_t says;
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int32_t depth = 9; depth >= 0 && !out->rule; depth--) {
        out->rule = plain_decide(rules, depth, of, it, &says);
        if (out->rule)
            out->says = says;
    }
    of.shadowed = true;
    for (int32_t depth = 9; depth >= 0 && !out->overrode; depth--) {
        const tni_rule *rule = plain_decide(rules, depth, of, it, &says);
        if (rule && says != out->says)
            out->overrode = rule;
    }
}

enum { PARTS = 12 }; /* the soft ones of all kinds behind the hard ones */

/* The place of the first rule by which one of the parts says this; the number of rules for none. */
static size_t plain_first(const tni_rules *rules, const tni_judgement by[PARTS], int from,
                          int32_t says)
{
    size_t i = 0;
    for (; i < tni_rules_count(rules); i++) {
        for (int k = from; k < PARTS; k++) {
            bool counts = k % 6 || says == TNI_JUDGED_PASSED_OVER;
            if (counts && by[k].says == says && by[k].rule == tni_rules_at(rules, i))
                return i;
        }
    }
    return i;
}

/* What holds of all parts from one on, and the place of its rule. */
static int32_t plain_holds(const tni_rules *rules, const tni_judgement by[PARTS], int from,
                           size_t *out_at)
{
    size_t turn = 0;
    *out_at = plain_first(rules, by, from, order[turn]);
    while (*out_at == tni_rules_count(rules) && turn + 1 < COUNT(order))
        *out_at = plain_first(rules, by, from, order[++turn]);
    return order[turn];
}

static void plain_judge(const tni_rules *rules, const seen *it, tni_judgement *out)
{
    size_t at;
    tni_judgement by[PARTS];
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int k = 0; k < PARTS; k++)
        plain_judge_part(rules, (part){.kind = k % 6, .soft = k >= 6}, it, &by[k]);
    out->order = plain_holds(rules, by, 6, &at);
    out->rank = out->order == TNI_JUDGED_PREFERRED ? (int32_t)at : 0;
    out->says = plain_holds(rules, by, 0, &at);
    out->rule = tni_rules_at(rules, at);
    for (size_t i = tni_rules_count(rules); i-- > 0;) {
        for (int k = 0; k < PARTS; k++) {
            if (by[k].rule == out->rule && by[k].overrode == tni_rules_at(rules, i))
                out->overrode = by[k].overrode;
        }
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
            assert_int_equal(judged.rank, told.rank);
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
        cmocka_unit_test(each_kind_decides_by_its_nearest_depth),
        cmocka_unit_test(preferences_rank_by_their_place),
        cmocka_unit_test(required_ones_have_an_order_among_them),
        cmocka_unit_test(any_list_judges_as_told),
    };
    return run_suite("unit.judge", tests);
}
