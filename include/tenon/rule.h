/* Rules: what must, should, should not or may not be taken, in one ordered list.
 *
 *     strength   require  nothing else may be taken for what the selector speaks of; several of one
 *                         kind: one of them
 *                prefer   taken before others, in the order of the list
 *                avoid    taken only when nothing else can
 *                forbid   not taken
 *                permit   takes back what farther levels say of the same; a require that it covers
 *                         whole, for all candidates. So in the row `rules`; in any other it only
 *                         takes the place of what that row says farther away
 *     selector   [op/][kind:]name, where kind is kernel, library, backend, platform or language.
 *                "matmul/library:mkl"; "language:triton"; "cpu.matmul.avx2" (a name with a dot is a
 *                kernel's); "matmul/mkl" (a name alone is of any kind). A name may end in '*'.
 *                Case does not count; the list has lower case.
 *
 * Every switch that chooses writes here: preferred libraries, SDP switches and their order, the
 * quantized engine, a library's `enabled`. Within one level a rule that forbids all that another one
 * requires is refused when it is set, and so are two strengths for one selector in one row.
 *
 * The nearer value of a row takes the place of its farther one, and of nothing else: `cudnn.enabled=true`
 * in a scope takes back the process's `cudnn.enabled=false`, not its `rules=forbid:library:cudnn`. The
 * row `rules` has no such values: what all levels say in it adds up.
 *
 * Each kind is judged on its own, and by hard rules (forbid, require) apart from soft ones (avoid,
 * prefer), which order and lift no hard one; a permit is of both. The nearest level that speaks of a
 * candidate by that kind decides, and there forbid comes before require, avoid before prefer, and all
 * before permit; what is none of those that the level requires of the kind is passed over, whatever it
 * permits. A name alone speaks by the kinds it matches by, and to miss it where it is required is a kind
 * of its own. Then the first of these holds: forbidden, passed over, required, avoided, preferred. So
 * what a level forbids or requires by one kind, no nearer rule of another kind lifts. The switches of
 * attention (cuda.flash_sdp, ...) and their order are a kind of their own: who requires a backend turns none
 * of them on, and a permit of backends is of them too. Where a library or a backend has several names, a rule
 * may use any.
 *
 * At most 256 rules are added by one call, a level has 4096, a selector 159 bytes.
 *
 * Thread-safety: Safe; a list is as constant as its context. */
#ifndef TENON_RULE_H
#define TENON_RULE_H

#include "context.h"

TN_BEGIN_DECLS

typedef struct tn_rule {
    size_t struct_size;
    int32_t strength;     /* TN_REQUIRE, ...                            */
    int32_t level;        /* TN_LEVEL_...                               */
    tn_setting setting;   /* the row that wrote it: TN_SETTING_RULES, TN_SETTING_CUDNN_ENABLED */
    int32_t depth;        /* nearer rules have the higher one           */
    const char *selector; /* canonical: "attention/backend:flash"       */
} tn_rule;
TN_ENDS_WITH(tn_rule, selector);

TN_API const char *tn_strength_name(int32_t strength); /* "require"; "unknown" */

/* The list, nearest first; `context` is not NULL: the thread's own may change between two calls, so
 * capture it. TN_NOT_FOUND past the end. The selector is lent as long as the context lives. Set
 * out->struct_size first. */
TN_API size_t tn_rule_count(const tn_context *context);
TN_API tn_status tn_rule_at(const tn_context *context, size_t index, tn_rule *out, tn_error *err);

/* Whether what a selector names is known: a kernel that a module offers, a library that a module offers
 * or Tenon knows, a name alone of any kind. TN_NOT_FOUND with the nearest, as a rule of a misspelt name
 * asks for what can never be taken and forbids nothing; TN_INVALID_ARGUMENT for what is no selector. Names
 * that end in '*', and those of the other kinds, are not looked up. Finds modules first. */
TN_API tn_status tn_selector_check(const char *selector, tn_error *err);

TN_END_DECLS

#endif
