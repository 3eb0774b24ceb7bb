/* Rules: which candidates must, should, should not or must not be used, in one ordered list.
 *
 *     strength   require  only candidates that match may be used where the selector applies; if
 *                         several rules require the same kind, one of them must match
 *                prefer   used before others, in the order of the list
 *                avoid    used only if nothing else can be
 *                forbid   not used
 *                permit   in the row `rules`: cancels what farther levels say about the same
 *                         candidates; a farther require whose selector it covers completely is
 *                         cancelled for all candidates. In any other row: only replaces the
 *                         farther value of that row
 *     selector   [op/][kind:]name, where kind is kernel, library, backend, platform or language.
 *                "matmul/library:mkl"; "language:triton"; "cpu.matmul.avx2" (a name with a dot is
 *                a kernel); "matmul/mkl" (a name without a kind matches any kind). A name may end
 *                in '*'. Case is ignored; the list has lower case.
 *
 * Every setting that affects the choice of a kernel adds rules to this list: preferred libraries,
 * the SDP switches and their order, the quantized engine, `enabled` of a library. Setting a value
 * fails if, within one level, a rule forbids everything that another one requires, or if one row
 * has two strengths for one selector.
 *
 * The nearer value of a row replaces the farther value of the same row only: `cudnn.enabled=true`
 * in a scope replaces the process's `cudnn.enabled=false`, but not its
 * `rules=forbid:library:cudnn`. In the row `rules`, values are not replaced: the rules of all
 * levels add up.
 *
 * How the rules decide on a candidate:
 * - Each selector kind is evaluated separately, and hard rules (forbid, require) separately from
 *   soft rules (avoid, prefer). Soft rules only affect the order and cancel no hard rule. A permit
 *   counts as both.
 * - For each, the nearest level with a rule for the candidate decides. Within that level forbid
 *   overrides require, avoid overrides prefer, and all override permit. A candidate that matches
 *   none of the rules by which the level requires something of this kind is passed over, even if
 *   the level permits it.
 * - A name without a kind counts for each kind in which it matches. If it is required, not matching
 *   it is evaluated as a kind of its own.
 * - The results are combined; the first that applies holds: forbidden, passed over, required,
 *   avoided, preferred. So if a level forbids or requires by one kind, no nearer rule of another
 *   kind cancels that.
 * - The switches of attention (cuda.flash_sdp, ...) and their order are a kind of their own:
 *   requiring a backend turns none of them on, but a permit of backends applies to them too.
 * - If a library or a backend has several names, a rule may use any of them.
 *
 * Limits: 256 rules added by one call, 4096 rules per level, 159 bytes per selector.
 *
 * Thread-safety: Safe; a list is as constant as its context. */
#ifndef TENON_RULE_H
#define TENON_RULE_H

#include "context.h"

TN_BEGIN_DECLS

typedef struct tn_rule {
    size_t struct_size;
    int32_t strength;     /* TN_REQUIRE, ...                                               */
    int32_t level;        /* TN_LEVEL_...                                                  */
    tn_setting setting;   /* row it comes from: TN_SETTING_RULES, TN_SETTING_CUDNN_ENABLED */
    int32_t depth;        /* higher for nearer rules                                       */
    const char *selector; /* canonical: "attention/backend:flash"                          */
} tn_rule;
TN_ENDS_WITH(tn_rule, selector);

TN_API const char *tn_strength_name(int32_t strength); /* "require"; "unknown" */

/* The list, nearest first. `context` must not be NULL: the thread's own context may change between
 * two calls, so capture it. TN_NOT_FOUND past the end. The selector is valid as long as the
 * context. Set out->struct_size first. */
TN_API size_t tn_rule_count(const tn_context *context);
TN_API tn_status tn_rule_at(const tn_context *context, size_t index, tn_rule *out, tn_error *err);

/* Checks that the name in a selector is known: a kernel that a module offers, a library that a
 * module offers or Tenon knows, or, without a kind, anything of any kind. Fails with TN_NOT_FOUND
 * and the closest match: a rule with a misspelled name requires something that can never be used,
 * or forbids nothing. TN_INVALID_ARGUMENT for an invalid selector. Names that end in '*', and those
 * of other kinds, are not looked up. Finds modules first. */
TN_API tn_status tn_selector_check(const char *selector, tn_error *err);

TN_END_DECLS

#endif
