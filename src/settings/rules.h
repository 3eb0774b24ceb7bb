/* The rules of a context: an immutable, counted list, nearest first, and what it says of a candidate. */
#ifndef TNI_SETTINGS_RULES_H
#define TNI_SETTINGS_RULES_H

#include "tenon/rule.h"

#include <stdbool.h>

/* What a selector says, in parts. */
enum {
    TNI_SELECT_ANY = 0, /* a name alone */
    TNI_SELECT_KERNEL,
    TNI_SELECT_LIBRARY,
    TNI_SELECT_BACKEND,
    TNI_SELECT_PLATFORM,
    TNI_SELECT_LANGUAGE,
    TNI_SELECT_MEMBER, /* a backend, of the rules that attention's switches and order write; never parsed */
    TNI_SELECT_COUNT
};

enum { TNI_SELECTOR_MAX = 160 };

typedef struct tni_selector {
    int32_t kind;
    const char *op; /* "" for every op */
    const char *name;
    bool open; /* the name ended in '*', which is gone */
} tni_selector;

/* Parses `text`, of which `room` keeps the parts. TN_INVALID_ARGUMENT says which character, word or
 * length is wrong, and the nearest kind. Case does not count. The canonical form is lower case and
 * drops what is said twice: a name with a dot and no kind is a kernel's. */
tn_status tni_selector_parse(const char *text, char room[TNI_SELECTOR_MAX], tni_selector *out,
                             tn_error *err);
size_t tni_selector_write(const tni_selector *selector, char *out, size_t size);

/* Everything that `b` can match, `a` matches too. */
bool tni_selector_covers(const tni_selector *a, const tni_selector *b);

/* A candidate as rules see it; "" where it has no such thing. */
typedef struct tni_candidate {
    const char *op, *kernel, *library, *backend, *platform, *language;
    const char *library_other;         /* another name of the library; either one is matched */
    const char *op_other;              /* an op whose rules hold for it too; NULL: none        */
    const char *const *backend_others; /* what else the backend goes by, NULL-ended; NULL: none */
} tni_candidate;

/* Whether a rule of the selector's op, or of every op, holds for the candidate's. */
bool tni_selector_speaks_of(const tni_selector *selector, const tni_candidate *candidate);

/* The case of the candidate's names does not count; its op is lower case. */
bool tni_selector_matches(const tni_selector *selector, const tni_candidate *candidate);

typedef struct tni_rule {
    tni_selector selector; /* its texts lie in the list        */
    const char *text;      /* the whole selector, canonical    */
    int32_t strength;
    int32_t level;
    int32_t depth;
    tn_setting setting;
    bool shadowed; /* a nearer depth has a value of this row; never of TN_SETTING_RULES */
} tni_rule;

/* NULL is the empty list everywhere. */
typedef struct tni_rules tni_rules;
tni_rules *tni_rules_retain(const tni_rules *rules); /* returns it, no longer const */
void tni_rules_release(tni_rules *rules);
size_t tni_rules_count(const tni_rules *rules);
const tni_rule *tni_rules_at(const tni_rules *rules, size_t index);

/* Whether a rule is one of attention's switches, or of its family's order. */
bool tni_rule_is_of_members(const tni_rule *rule);

/* One rule to be written; the selector needs not be canonical. */
typedef struct tni_rule_wish {
    const char *selector;
    int32_t strength;
    tn_setting setting;
    const char *prefix; /* put before the selector: "matmul/library:"; may be NULL */
} tni_rule_wish;

/* What one level says from now on. */
typedef struct tni_rules_edit {
    int32_t level;
    int32_t depth;
    const tn_setting *clear; /* rows whose rules of this depth are taken away first */
    size_t clear_count;
    const tni_rule_wish *add; /* in this order, behind those that this depth has already */
    size_t add_count;
} tni_rules_edit;

/* `base` with the edit. The same rule twice in one row of one depth is one; two rows that say the same
 * keep one each. TN_REFUSED when, at this depth, one forbids all that another requires, of whatever
 * rows, or a row gives one selector two strengths: both are named with the row they came from.
 * TN_INVALID_ARGUMENT for a selector or a strength that is none, and for more than TNI_RULES_MOST at
 * this depth; what other depths have does not count, so that an edit which was taken once is taken
 * whatever becomes of them. An empty result is NULL. The caller releases *out. */
enum { TNI_RULES_MOST = 4096 };
tn_status tni_rules_derive(const tni_rules *base, const tni_rules_edit *edit, tni_rules **out,
                           tn_error *err);

/* What the list says of a candidate. A rule is heard unless it is shadowed: the nearer value of a row
 * takes the place of its farther one, and of nothing else. So a permit that another row than
 * TN_SETTING_RULES wrote is never heard; all it does is to shadow.
 *
 * Each kind, kernel to language, is judged on its own, by hard rules (forbid, require) and by soft ones
 * (avoid, prefer) apart; a permit is of both:
 *
 * - A rule speaks by its kind, a name alone by every kind it matches by. The rules of attention's switches
 *   and of its order are a kind apart from backends that are asked for; a permit of backends, or of a name
 *   alone, is of it too.
 * - The nearest depth that speaks decides: forbid before require before permit, avoid before prefer
 *   before permit.
 * - A depth whose requires of the kind, for this op, all miss the candidate speaks too: it is passed
 *   over, which only forbid comes before. A require of a name alone does not make good for them. None
 *   is passed over for a require that a nearer permit covers.
 * - Requires of a name alone are missed by a kind of their own. There, too, the nearest depth that has
 *   any decides, but to meet them says no more than it does by the kinds they match by.
 *
 * Then the first of these holds that any of them says: forbidden, passed over, required, avoided,
 * preferred, free. So a nearer rule lifts farther ones of its kind alone, a soft one no hard one, and
 * hard rules of other kinds stand: where a nearer level requires a kernel and a farther one a library,
 * what is not both is passed over, be it everything.
 *
 * Of several rules that say what holds, `rule` is the nearest. `overrode` is, of the judgements that
 * `rule` decided, the nearest rule by which another depth, its shadowed ones included, would have said
 * otherwise; where no rule decided anything, of all of them. */
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
    int32_t order;        /* what soft rules say of it, also of a required one: avoided,
                                 preferred or free                                           */
    int32_t rank;         /* where the order is preferred: that rule's place in the list */
    int32_t member_rank;  /* the place of the rule that prefers it as a member; INT32_MAX: none */
    bool wished;          /* it is preferred in another way than as a member             */
    const tni_rule *rule; /* that decided; NULL when free of rules                       */
    const tni_rule *overrode; /* or NULL                                                     */
} tni_judgement;
void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out);

/* The same without what one row says: whoever asks nearer has taken its place. -1: none. */
void tni_rules_judge_but(const tni_rules *rules, const tni_candidate *candidate, tn_setting but,
                         tni_judgement *out);

#endif
