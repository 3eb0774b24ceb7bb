/* Decisions: every kernel that could compute a problem, whether it is taken, and why not.
 *
 * A decision is made on the very path on which a call's kernel is found, and stops before anything is
 * compiled, timed or tested: what is not known yet is the verdict `untested`.
 *
 * A problem is an op with its sizes as text, the same that errors and logs end in:
 *
 *     matmul:f32:m=512,n=512,k=64,tb=1@cpu:0
 *
 * The device behind the '@' may be one that was described and is not here; left out, it is "best".
 *
 * Thread-safety: Safe; a decision is constant once made. */
#ifndef TENON_EXPLAIN_H
#define TENON_EXPLAIN_H

#include "context.h"
#include "device.h"
#include "module/kernel.h"

TN_BEGIN_DECLS

/*  What became of a candidate: name, number, word. CHOSEN has the first candidate, if it runs now, and no other. */
#define TN_VERDICT_LIST(X)                                                               \
    X(CHOSEN, 1, "chosen")     /* it comes first and runs now                         */ \
    X(ADMITTED, 2, "admitted") /* it may run now; another one comes before it         */ \
    X(UNTESTED, 3, "untested") /* it may run once it has passed its test              */ \
    X(REFUSED, 4, "refused")                                                             \
    X(QUARANTINED, 5, "quarantined") /* it gave wrong results on this machine         */
enum {
#define TN_VERDICT_ENUM_(NAME, number, word) TN_VERDICT_##NAME = number,
    TN_VERDICT_LIST(TN_VERDICT_ENUM_)
#undef TN_VERDICT_ENUM_
        TN_VERDICT_COUNT
};
TN_API const char *tn_verdict_name(int32_t verdict); /* "chosen"; "unknown" */
TN_API const char *tn_refusal_name(int32_t code);    /* "shape"; "unknown" */

/* One kernel. Texts are lent as long as the decision; "" for what it has not. */
typedef struct tn_candidate {
    size_t struct_size;
    const char *kernel; /* "cpu.matmul.openblas" */
    const char *library;
    const char *backend;
    const char *platform;
    const char *module;
    const char *rule; /* that orders it, or refuses it: "matmul/library:openblas"; "" for none */
    const char
        *overruled;      /* a farther rule that the one above goes before; "" for none           */
    int32_t verdict;     /* TN_VERDICT_...                                                       */
    int32_t standing;    /* 1: preferred, 0: free, -1: avoided                                   */
    double predicted_us; /* before anything is measured; see predicted_by                        */
    double tuned_us;     /* as measured; 0 when it was not                                       */
    uint64_t workspace_bytes;
    uint64_t numerics; /* TN_NUM_...                                                           */
    const tn_refusal
        *why; /* NULL unless it is refused or in quarantine                           */
    const char
        *predicted_by; /* "figures": the row's three; "cost": its own function of the problem */
    const char *note;  /* what it says of how it would compute the problem: "forms scores of ..." */
} tn_candidate;
TN_ENDS_WITH(tn_candidate, note);

typedef struct tn_decision tn_decision;

/* What would compute a problem. Succeeds also when nothing would: then no candidate is chosen, and
 * tn_decision_status says with which error a call would end. NULL context: the thread's. */
TN_API tn_status tn_explain(const tn_context *context, const char *problem, tn_decision **out,
                            tn_error *err);
TN_API void tn_decision_release(tn_decision *decision); /* accepts NULL */

/* Best first: what is chosen, what could be, in the order in which it would be; then what is not. */
TN_API size_t tn_decision_count(const tn_decision *decision); /* 0 for NULL */
TN_API const tn_candidate *tn_decision_candidate(const tn_decision *decision, size_t index);

/* The kernel that runs now: the first candidate that needs no test, as it is a reference, passed its test on this
 * machine, or is listed with this version as tested before the release. NULL when there is none. */
TN_API const tn_candidate *tn_decision_runs_now(const tn_decision *decision);

/* The kernel that runs once tested: the first candidate, if it has yet to pass its test. A call, or tn_prepare, tests it
 * first; if it passes, it computes that call too. If it fails, or cannot be tested now, the next candidate is considered
 * the same way, down to the one that runs now. NULL when the first candidate runs now, or there is none. */
TN_API const tn_candidate *tn_decision_runs_once_tested(const tn_decision *decision);

/* The first candidate: the one that runs once tested if there is one, else the one that runs now. NULL when there is
 * none. Its verdict is UNTESTED or CHOSEN. */
TN_API const tn_candidate *tn_decision_chosen(const tn_decision *decision);

/* TN_OK, or what a call would end with, whose words are in *out_message unless that is NULL. */
TN_API tn_status tn_decision_status(const tn_decision *decision, const char **out_message);

/* A rule that prefers what is not taken, as it was refused or is not here: "matmul/library:mkl"; "" for none.
 * Lent as long as the decision. */
TN_API const char *tn_decision_unmet(const tn_decision *decision);

TN_API const char *
tn_decision_problem(const tn_decision *decision); /* canonical, with its device */
TN_API tn_device *tn_decision_device(const tn_decision *decision);

TN_END_DECLS

#endif
