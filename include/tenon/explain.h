/* Decisions: all kernels that could compute a problem, which one is chosen, and why the others are
 * not.
 *
 * A decision uses the same code path as a call that selects a kernel, but stops before anything is
 * compiled, timed or tested. Results that are not known yet have the verdict `untested`.
 *
 * A problem is an op with its sizes as text, the same text that errors and logs end with:
 *
 *     matmul:f32:m=512,n=512,k=64,tb=1@cpu:0
 *
 * The device after '@' may be a described device that is not present. If it is omitted, it is
 * "best".
 *
 * Thread-safety: Safe; a decision is constant once created. */
#ifndef TENON_EXPLAIN_H
#define TENON_EXPLAIN_H

#include "context.h"
#include "device.h"
#include "module/kernel.h"

TN_BEGIN_DECLS

/* The verdict on a candidate: name, number, word. CHOSEN is given only to the first candidate, and
 * only if it runs now. */
#define TN_VERDICT_LIST(X)                                                               \
    X(CHOSEN, 1, "chosen")     /* the first candidate, and it runs now                */ \
    X(ADMITTED, 2, "admitted") /* it can run now, but another is preferred            */ \
    X(UNTESTED, 3, "untested") /* it can run once it has passed its test              */ \
    X(REFUSED, 4, "refused")                                                             \
    X(QUARANTINED, 5, "quarantined") /* it gave wrong results on this machine */
enum {
#define TN_VERDICT_ENUM_(NAME, number, word) TN_VERDICT_##NAME = number,
    TN_VERDICT_LIST(TN_VERDICT_ENUM_)
#undef TN_VERDICT_ENUM_
        TN_VERDICT_COUNT
};
TN_API const char *tn_verdict_name(int32_t verdict); /* "chosen"; "unknown" */
TN_API const char *tn_refusal_name(int32_t code);    /* "shape"; "unknown" */

/* One kernel. Strings are valid as long as the decision; "" if not applicable. */
typedef struct tn_candidate {
    size_t struct_size;
    const char *kernel; /* "cpu.matmul.openblas" */
    const char *library;
    const char *backend;
    const char *platform;
    const char *module;
    const char *rule; /* rule that orders or refuses it: "matmul/library:openblas"; "" for none */
    const char *overruled; /* rule of a farther level that `rule` overrides; "" for none */
    int32_t verdict;       /* TN_VERDICT_...                                             */
    int32_t standing;      /* 1: preferred, 0: neutral, -1: avoided                      */
    double predicted_us;   /* predicted time; see predicted_by                           */
    double tuned_us;       /* measured time; 0 if not measured                           */
    uint64_t workspace_bytes;
    uint64_t numerics;     /* TN_NUM_... */
    const tn_refusal *why; /* NULL unless refused or quarantined */
    const char
        *predicted_by; /* "figures": from the row's three numbers; "cost": from its function */
    const char *note;  /* how it would compute the problem: "forms scores of ..." */
} tn_candidate;
TN_ENDS_WITH(tn_candidate, note);

typedef struct tn_decision tn_decision;

/* Decides which kernel would compute a problem. Succeeds even if no kernel can: then no candidate
 * is chosen, and tn_decision_status has the error that a call would return. NULL context: the
 * calling thread's. */
TN_API tn_status tn_explain(const tn_context *context, const char *problem, tn_decision **out,
                            tn_error *err);
TN_API void tn_decision_release(tn_decision *decision); /* accepts NULL */

/* Candidates, best first: those that could be used, in order of preference, starting with the
 * chosen one; then those that could not. */
TN_API size_t tn_decision_count(const tn_decision *decision); /* 0 for NULL */
TN_API const tn_candidate *tn_decision_candidate(const tn_decision *decision, size_t index);

/* The kernel that runs now: the first candidate that needs no test, because it is a reference, has
 * passed its test on this machine, or is listed with this version as tested before the release.
 * NULL if none exists. */
TN_API const tn_candidate *tn_decision_runs_now(const tn_decision *decision);

/* The kernel that runs once tested: the first candidate, if it has not passed its test yet. A call,
 * or tn_prepare, tests it first; if it passes, it computes that call too. If it fails, or cannot be
 * tested now, the next candidate is handled the same way, down to the one that runs now. NULL if
 * the first candidate runs now, or none exists. */
TN_API const tn_candidate *tn_decision_runs_once_tested(const tn_decision *decision);

/* The first candidate: the one that runs once tested if there is one, else the one that runs now.
 * NULL if none exists. Its verdict is UNTESTED or CHOSEN. */
TN_API const tn_candidate *tn_decision_chosen(const tn_decision *decision);

/* TN_OK, or the status that a call would return; *out_message, unless out_message is NULL, gets its
 * message. */
TN_API tn_status tn_decision_status(const tn_decision *decision, const char **out_message);

/* A rule that prefers a kernel that is not used, because it was refused or is not present:
 * "matmul/library:mkl"; "" for none. Valid as long as the decision. */
TN_API const char *tn_decision_unmet(const tn_decision *decision);

TN_API const char *
tn_decision_problem(const tn_decision *decision); /* canonical, with its device */
TN_API tn_device *tn_decision_device(const tn_decision *decision);

/* Receives the next part of a text: UTF-8, `length` bytes, not followed by a zero. */
typedef void tn_print_fn(void *user, const char *text, size_t length);

/* How a text is printed. */
typedef struct tn_print_args {
    size_t struct_size;
    int32_t columns; /* width of the lines, at least 60; 0: 100 */
    int32_t colors;  /* 1: with the escape sequences of terminals */
    int32_t full;    /* 1: with a line for each kernel that computes with other dtypes only */
    int32_t reserved;
} tn_print_args;
TN_ENDS_WITH(tn_print_args, reserved);

/* Prints a decision as `tenon explain` does: the problem, a table of the candidates with the reason
 * why each is not used, for attention its backends, and what runs. `write` is called with each part
 * in turn, on the calling thread. NULL how: 100 columns, no colours. */
TN_API tn_status tn_decision_print(const tn_decision *decision, const tn_print_args *how,
                                   tn_print_fn *write, void *user, tn_error *err);

TN_END_DECLS

#endif
