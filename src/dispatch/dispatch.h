/* From a problem to a kernel that runs: candidates, verdicts, choice, plan. */
#ifndef TNI_DISPATCH_DISPATCH_H
#define TNI_DISPATCH_DISPATCH_H

#include "device/device.h"
#include "kernels.h"
#include "op/op.h"
#include "tenon/plan.h"

/* The input of a decision. The context must not be NULL. */
typedef struct tni_question {
    const tn_context *context;
    const tn_op *op;
    tn_device *device;
    const tni_kernel
        *only;     /* if not NULL, the only kernel that may be taken; rules, lock and trust are
                    * ignored, and it is neither tested nor timed */
    bool recorded; /* for a graph: makes no plan, because that could run work */
} tni_question;

/* A candidate and its verdict. */
typedef struct tni_contender {
    const tni_kernel *kernel;
    int32_t verdict; /* TN_VERDICT_...; CHOSEN is set last, on the first candidate or on none */
    tni_judgement judged;
    double predicted_us;
    bool by_cost;    /* predicted_us comes from the row's function */
    double order_us; /* predicted_us, or a value that does not depend on the sizes */
    double tuned_us; /* 0: unknown */
    double level_us; /* compared instead of tuned_us: times that tie have the same level */
    uint64_t workspace;
    tn_refusal
        why; /* code is 0 unless refused or in quarantine; with code 0, text is the row's note */
} tni_contender;

/* The candidates, best first; refused ones last. */
enum { TNI_CANDIDATES_MOST = 64 };
typedef struct tni_choice {
    tni_contender candidates[TNI_CANDIDATES_MOST];
    size_t count;
    size_t admitted; /* number of candidates that could be taken */
} tni_choice;

/* Whether the choice must not depend on sizes or measured times: results are independent of the
 * rest of a batch only if every batch gets the same kernel. */
bool tni_choice_is_fixed(const tni_question *question);

/* Requests CPU features that the operating system grants a process only on request, if nothing else
 * keeps a kernel from being taken for the question. The request is made once; the result of
 * tni_cpu_features may change. */
void tni_decide_request(const tni_question *question);

/* Calls tni_decide_request, then judges every kernel of the device's platform for the op. Opens the
 * libraries of kernels that passed all other tests, but never on a device for planning only.
 * Compiles, times and tests nothing. Fails if out of memory or if the modules cannot be queried. */
tn_status tni_decide(const tni_question *question, tni_choice *out, tn_error *err);

/* Returns the status of a call for which no candidate is admitted: TN_REFUSED if rules or settings
 * are the cause, otherwise TN_UNSUPPORTED. The message has the problem and the reason of the
 * candidate that passed the most tests. */
tn_status tni_choice_refused(const tni_question *question, const tni_choice *choice, tn_error *err);

/* An op bound to a device and a kernel. Immutable; reference counted. */
typedef struct tni_plan tni_plan;

/* Makes the plan of a question without the cache: decides, runs the tests and timings that are due,
 * and asks the kernel for its own plan. The caller releases it. */
tn_status tni_plan_make(const tni_question *question, tni_plan **out, tn_error *err);
void tni_plan_release(tni_plan *plan); /* accepts NULL */
const tni_kernel *tni_plan_kernel(const tni_plan *plan);
uint64_t tni_plan_workspace(const tni_plan *plan);
tn_device *tni_plan_device(const tni_plan *plan);

/* A plan from the cache; if none exists, it is made and cached. The calling thread may use it
 * until tni_lease_end. With `preparing`, the plan is also made if plan.only_prepared is set. */
typedef struct tni_lease {
    tni_plan *plan;
    bool stands_in; /* replaces a plan that may not be made now: must not be remembered for the
                     * question */
} tni_lease;
tn_status tni_lease_acquire(const tni_question *question, bool preparing, tni_lease *out,
                            tn_error *err);
void tni_lease_end(tni_lease *lease);

/* Sets the problem's alignments to those that the plan was made for. They do not exceed those of
 * the data. The kernel sees the same alignments in every run of its plan. */
void tni_plan_fit(const tni_plan *plan, tni_problem *problem);

/* Fits the problem (tni_plan_fit) and runs the plan on it. The plan must have been made for the
 * problem's op. A NULL stream means the calling thread's current stream of the device; a NULL
 * workspace, the stream's own. Enqueues the work; waits only if debug.sync is set. */
typedef struct tni_call_args {
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tni_call_args;
tn_status tni_plan_run(const tni_plan *plan, const tn_context *context, tni_problem *problem,
                       const tni_call_args *args, tn_error *err);

/* Like tni_plan_run for a problem that is already fitted. `packed` is the result of the kernel's
 * `pack` for B, or NULL. */
tn_status tni_plan_run_fitted(const tni_plan *plan, const tn_context *context,
                              const tni_problem *problem, const void *packed,
                              const tni_call_args *args, tn_error *err);

/* Matmul problems, each fitted to its plan. All plans must have the same kernel, which runs many at
 * once: tn_kernel_row.run_many. */
typedef struct tni_many {
    const tni_plan *const *plans;
    const tni_problem *const *problems;
    size_t count; /* at least 1 */
} tni_many;
/* *out_failed is the index of the problem that the kernel failed on; `count` if the failure is not
 * specific to one problem. */
tn_status tni_plan_run_many(const tni_many *many, const tn_context *context, tn_stream *on,
                            size_t *out_failed, tn_error *err);

/* Whether work queued on the stream is recorded into a graph, either Tenon's or the program's. A
 * NULL stream means the thread's current stream of the device. */
bool tni_is_recorded(tn_stream *on, tn_device *device);

/* A call: the arguments of a public function, whose struct type belongs to the class. */
typedef struct tni_asked {
    const tn_context *context; /* not NULL */
    const tni_op_class *class;
    const void *args; /* may be NULL or invalid until the problem is made */
} tni_asked;

/* Parses a problem's text into an op and a device. Without a device in the text, uses "best". */
tn_status tni_question_parse(const char *problem, tn_op *out_op, tn_device **out_device,
                             tn_error *err);

#endif
