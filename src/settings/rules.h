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
    TNI_SELECT_MEMBER, /* backend, in rules of attention's switches and order; never parsed */
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

/* Whether `a` matches everything that `b` can match. */
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

/* Whether a rule comes from one of attention's switches, or from its backend order. */
bool tni_rule_is_of_members(const tni_rule *rule);

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
 * settings are both kept. Fails with TN_REFUSED if, at this depth, a rule forbids all that another
 * one requires, whatever their settings, or if a setting gives one selector two strengths: the
 * message names both with their settings. Fails with TN_INVALID_ARGUMENT for an invalid selector or
 * strength, and for more than TNI_RULES_MOST rules at this depth. Other depths do not count, so an
 * edit that was accepted once is always accepted. An empty result is NULL. The caller releases
 * *out. */
enum { TNI_RULES_MOST = 4096 };
tn_status tni_rules_derive(const tni_rules *base, const tni_rules_edit *edit, tni_rules **out,
                           tn_error *err);

/* Determines the verdict of the list on a candidate. Shadowed rules are ignored: the nearer value
 * of a setting replaces its farther one, and nothing else. So a permit of any setting but
 * TN_SETTING_RULES has no effect but to shadow.
 *
 * Each kind, kernel to language, is judged separately, and within it hard rules (forbid, require)
 * separately from soft ones (avoid, prefer); a permit belongs to both:
 *
 * - A rule applies to its kind, a bare name to every kind that it matches. The rules of attention's
 *   switches and order are a kind separate from requested backends; permits of backends and of bare
 *   names apply to it too.
 * - The nearest depth with an applicable rule decides. Precedence within it: forbid, require,
 *   permit; avoid, prefer, permit.
 * - A depth also decides if it has requires of the kind for this op and none matches the candidate:
 *   the candidate is passed over, to which only forbid takes precedence. A matching require of a
 *   bare name does not prevent that. A require that a nearer permit covers passes nothing over.
 * - Requires of bare names count as a kind of their own for this: the nearest depth that has any
 *   decides whether the candidate is passed over. Matching them has no effect beyond that in the
 *   kinds they match.
 *
 * The first of these verdicts that any kind has is the result: forbidden, passed over, required,
 * avoided, preferred, free. So a nearer rule overrides only farther ones of its kind, a soft rule
 * never a hard one, and hard rules of other kinds remain: if a nearer level requires a kernel and a
 * farther one a library, a candidate that is not both is passed over, even if none is left.
 *
 * If several rules have the resulting verdict, `rule` is the nearest. `overrode` is the nearest
 * rule, shadowed ones included, by which another depth would have decided differently; only the
 * judgements that `rule` decided are considered, or all if no rule decided. */
enum {
    TNI_JUDGED_FREE = 0,
    TNI_JUDGED_REQUIRED,
    TNI_JUDGED_PREFERRED,
    TNI_JUDGED_AVOIDED,
    TNI_JUDGED_PASSED_OVER,
    TNI_JUDGED_FORBIDDEN
};
typedef struct tni_judgement {
    int32_t says;
    int32_t order;            /* verdict of the soft rules, also if required */
    int32_t rank;             /* if preferred: index of that rule in the list */
    int32_t member_rank;      /* index of the rule that prefers it as a member; or INT32_MAX */
    bool wished;              /* preferred other than as a member */
    const tni_rule *rule;     /* the rule that decided; NULL if none */
    const tni_rule *overrode; /* or NULL */
} tni_judgement;
void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out);

/* The same, but ignores the rules of the setting `but` (-1: none), which a nearer request
 * replaces. */
void tni_rules_judge_but(const tni_rules *rules, const tni_candidate *candidate, tn_setting but,
                         tni_judgement *out);

#endif
