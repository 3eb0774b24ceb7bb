/* The rules of a context: an immutable, reference-counted list, nearest first, and its verdict on a
 * candidate. */
#ifndef TNI_SETTINGS_RULES_H
#define TNI_SETTINGS_RULES_H

#include "tenon/rule.h"

#include <stdbool.h>

/* A parsed selector. */
enum {
    TNI_SELECT_ANY = 0, /* a bare name */
    TNI_SELECT_KERNEL,
    TNI_SELECT_LIBRARY,
    TNI_SELECT_BACKEND,
    TNI_SELECT_PLATFORM,
    TNI_SELECT_LANGUAGE,
    TNI_SELECT_COUNT
};

enum { TNI_SELECTOR_MAX = 160 };

typedef struct tni_selector {
    int32_t kind;
    const char *op; /* "" for every op */
    const char *name;
    bool open; /* the name ended in '*', which is removed */
} tni_selector;

/* Parses `text`; `room` stores the parts. Fails with TN_INVALID_ARGUMENT, naming the wrong
 * character, word or length, and the nearest kind. Case-insensitive. The canonical form is lower
 * case and without redundant parts: a name with a dot and no kind is a kernel's. */
tn_status tni_selector_parse(const char *text, char room[TNI_SELECTOR_MAX], tni_selector *out,
                             tn_error *err);
size_t tni_selector_write(const tni_selector *selector, char *out, size_t size);

/* Whether `a` matches everything that `b` can match; both names of a library are one. */
bool tni_selector_covers(const tni_selector *a, const tni_selector *b);

/* A candidate as rules see it; "" for what it does not have. */
typedef struct tni_candidate {
    const char *op, *kernel, *library, *backend, *platform, *language;
    const char *library_other;         /* another name of the library; both match */
    const char *op_other;              /* an op whose rules apply too; NULL: none */
    const char *const *backend_others; /* other names of the backend, NULL-ended; NULL: none */
} tni_candidate;

/* Whether the selector's op is the candidate's, or any op. */
bool tni_selector_speaks_of(const tni_selector *selector, const tni_candidate *candidate);

/* The case of the candidate's names is ignored; its op must be lower case. */
bool tni_selector_matches(const tni_selector *selector, const tni_candidate *candidate);

typedef struct tni_rule {
    tni_selector selector; /* its texts are stored in the list */
    const char *text;      /* the canonical selector */
    int32_t strength;
    int32_t level;
    int32_t depth;
    tn_setting setting;
    bool shadowed; /* a nearer depth sets this row; never for TN_SETTING_RULES */
} tni_rule;

/* NULL is the empty list everywhere. */
typedef struct tni_rules tni_rules;
tni_rules *tni_rules_retain(const tni_rules *rules); /* also casts const away */
void tni_rules_release(tni_rules *rules);
size_t tni_rules_count(const tni_rules *rules);
const tni_rule *tni_rules_at(const tni_rules *rules, size_t index);

/* Whether two required rules of one level are alternatives, of which a candidate must match one:
 * a rule and itself, and the names in one value of a setting other than `rules`. */
static inline bool tni_rules_are_alternatives(const tni_rule *a, const tni_rule *b)
{
    return a == b || (a->strength == TN_REQUIRE && b->strength == TN_REQUIRE &&
                      a->setting == b->setting && a->setting != TN_SETTING_RULES);
}

/* One rule to be added; the selector need not be canonical. */
typedef struct tni_rule_request {
    const char *selector;
    int32_t strength;
    tn_setting setting;
    const char *prefix; /* prepended to the selector: "matmul/library:"; may be NULL */
} tni_rule_request;

/* A change of the rules of one level. */
typedef struct tni_rules_edit {
    int32_t level;
    int32_t depth;
    const tn_setting *clear; /* settings whose rules of this depth are removed first */
    size_t clear_count;
    const tni_rule_request *add; /* appended in this order to the rules of this depth */
    size_t add_count;
} tni_rules_edit;

/* Applies the edit to `base`. Equal rules of one setting and depth become one; equal rules of two
 * settings are both kept. Fails with TN_REFUSED if rules of this depth contradict one another
 * (docs/rules.md lists the contradictions): the message names both with their settings. Fails with
 * TN_INVALID_ARGUMENT for an invalid selector or strength, and for more than TNI_RULES_MOST rules at
 * this depth. Other depths do not count, so an edit that was accepted once is always accepted. An
 * empty result is NULL. The caller releases *out. */
enum { TNI_RULES_MOST = 4096 };
tn_status tni_rules_derive(const tni_rules *base, const tni_rules_edit *edit, tni_rules **out,
                           tn_error *err);

/* What rules say about a candidate; of the hard rules of one level, the largest holds. */
enum {
    TNI_JUDGED_FREE = 0, /* permitted, or no rule speaks of it */
    TNI_JUDGED_PREFERRED,
    TNI_JUDGED_AVOIDED,
    TNI_JUDGED_REQUIRED,
    TNI_JUDGED_PASSED_OVER, /* another one is required */
    TNI_JUDGED_FORBIDDEN
};
typedef struct tni_judgement {
    int32_t says;
    int32_t order;            /* PREFERRED, AVOIDED or FREE; also if required or refused */
    const tni_rule *rule;     /* the rule that decided; NULL if none */
    const tni_rule *overrode; /* the nearest rule that `rule` overrides; NULL if none */
} tni_judgement;

/* Judges a candidate by the two sentences of docs/rules.md. A level is a depth; a larger depth is
 * nearer. A forbid or permit speaks of the candidates that its selector matches, a require of all
 * candidates of its op. Shadowed rules are ignored, and permits of settings other than `rules`.
 *
 * 1. The nearest level with a forbid, require or permit that speaks of the candidate decides whether
 *    it may run: not if a forbid of that level matches it, nor if it matches no alternative of a
 *    require.
 * 2. prefer and avoid only order: see tni_rules_compare. The nearest that matches is `order`.
 *
 * The first sentence applies twice, and a candidate must pass both: to attention's switches
 * (cuda.flash_sdp, ...) with the permits of `rules`, and to all other rules. So no require turns a
 * switch on.
 *
 * `says` is what the hard rules say, or, if that is FREE, `order`. `overrode` may be shadowed. */
void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out);

/* The same, but ignores the rules of the setting `but` (-1: none), which a nearer request
 * replaces. */
void tni_rules_judge_but(const tni_rules *rules, const tni_candidate *candidate, tn_setting but,
                         tni_judgement *out);
bool tni_judged_may_run(const tni_judgement *judged);

/* Orders two candidates by the first prefer or avoid of the list that matches only one of them.
 * Negative: `a` comes first; 0: no rule distinguishes them. A total preorder. */
int32_t tni_rules_compare(const tni_rules *rules, const tni_candidate *a, const tni_candidate *b,
                          tn_setting but);

#endif
