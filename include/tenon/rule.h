/* Rules: which candidates must, should, should not or must not be used, in one ordered list.
 *
 * 1. The nearest forbid, permit or require that speaks of a candidate decides whether it may run.
 * 2. Then prefer and avoid order those that may run, the nearest rule first.
 *
 *     nearest    by level: call, scope (inner before outer), process, environment, file
 *     strength   forbid   speaks of the candidates that match: they may not run
 *                permit   speaks of the candidates that match: they may run
 *                require  speaks of all candidates of its op: those that match may run, others not
 *                prefer   candidates that match come before others
 *                avoid    candidates that match come after others
 *     selector   [op/][kind:]name, where kind is kernel, library, backend, platform or language.
 *                "matmul/library:mkl"; "language:triton"; "cpu.matmul.avx2" (a name with a dot is
 *                a kernel); "matmul/mkl" (a name without a kind matches any kind). A name may end
 *                in '*'. Case is ignored; the list has lower case. If a library or a backend has
 *                several names, each of them matches.
 *
 * If several rules of the nearest level speak of a candidate, it may not run if a forbid matches it,
 * nor if it does not match each require. Of two candidates, the first prefer or avoid of the list
 * that matches only one of them decides which comes first. docs/rules.md has examples.
 *
 * Every setting that affects the choice of a kernel adds rules to this list: preferred libraries,
 * the SDP switches and their order, the quantized engine, `enabled` of a library. The names in one
 * value of such a setting are alternatives: if they are required, a candidate must match one.
 *
 * In the row `rules`, the rules of all levels add up. The nearer value of any other row replaces its
 * farther value, and nothing else: `cudnn.enabled=true` in a scope replaces the process's
 * `cudnn.enabled=false`, but not its `rules=forbid:library:cudnn`. A permit of such a row is in the
 * list only to mark that.
 *
 * The switches of attention (cuda.flash_sdp, ...) are judged apart from all other rules: requiring a
 * backend turns none of them on, but a nearer permit of the row `rules` overrides one.
 *
 * Contradictions within one level are refused when they are set: a forbid that covers a require or a
 * permit, requires that no candidate can match together, prefer and avoid of one selector, and two
 * strengths of one selector in one row.
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
