/* From a problem to a kernel that runs: candidates, verdicts, choice, plan. */
#ifndef TNI_DISPATCH_DISPATCH_H
#define TNI_DISPATCH_DISPATCH_H

#include "device/device.h"
#include "kernels.h"
#include "ops/op.h"
#include "tenon/plan.h"

/* What is to be decided. The context is not NULL. */
typedef struct tni_question {
    const tn_context *context;
    const tn_op *op;
    tn_device *device;
    const tni_kernel
        *only;     /* the one kernel that may be taken, whatever rules, lock and trust say of
                               it: it is neither tested nor timed; NULL: any */
    bool recorded; /* for a graph: a plan that is not at hand is not made, which could run things */
} tni_question;

/* One candidate as it was judged. */
typedef struct tni_contender {
    const tni_kernel *kernel;
    int32_t verdict; /* TN_VERDICT_...; CHOSEN is given last, to the first candidate or to none */
    tni_judgement judged;
    double predicted_us;
    bool by_cost;    /* predicted_us, by the row's function */
    double order_us; /* predicted_us, or what does not depend on the sizes */
    double tuned_us; /* 0: not known */
    double level_us; /* what tuned_us is compared by: times that tie have one */
    uint64_t workspace;
    tn_refusal
        why; /* code 0 unless it is refused or in quarantine: then its text is the row's note */
} tni_contender;

/* The candidates, best first; those that are refused come last. */
enum { TNI_CANDIDATES_MOST = 64 };
typedef struct tni_choice {
    tni_contender candidates[TNI_CANDIDATES_MOST];
    size_t count;
    size_t admitted; /* so many could be taken */
} tni_choice;

/* Whether the choice may depend on neither sizes nor measured times: a kernel's results do not change with the
 * rest of a batch where each batch gets the same kernel. */
bool tni_choice_is_fixed(const tni_question *question);

/* Asks the system for instructions that it gives a process only on request, when a kernel that may be
 * taken for the question lacks nothing else. It is asked once; what tni_cpu_features says may change. */
void tni_decide_request(const tni_question *question);

/* Judges every kernel of the device's platform for the op, after such a request. Opens libraries of kernels that nothing else
 * speaks against, never on a device for planning only; compiles, times and tests nothing. Fails for
 * want of memory, and when modules cannot be asked. */
tn_status tni_decide(const tni_question *question, tni_choice *out, tn_error *err);

/* What a call ends with when nothing is admitted: TN_REFUSED when rules or settings stand in the way,
 * else TN_UNSUPPORTED, with the problem and the nearest candidate's reason. */
tn_status tni_choice_refused(const tni_question *question, const tni_choice *choice, tn_error *err);

/* An op bound to device and kernel. Immutable; counted. */
typedef struct tni_plan tni_plan;

/* The plan of a question, made without the cache: decides, tests what has to be tested, times what is
 * to be timed, asks the kernel for its own plan. The caller releases it. */
tn_status tni_plan_make(const tni_question *question, tni_plan **out, tn_error *err);
void tni_plan_release(tni_plan *plan); /* accepts NULL */
const tni_kernel *tni_plan_kernel(const tni_plan *plan);
uint64_t tni_plan_workspace(const tni_plan *plan);
tn_device *tni_plan_device(const tni_plan *plan);

/* The same from the cache, or made and kept; lent to the calling thread until it is ended. With
 * `preparing`, also when plan.only_prepared is set. */
typedef struct tni_lease {
    tni_plan *plan;
    int32_t *uses; /* of the thread's own place for it; NULL: the lease is counted */
    bool
        stands_in; /* for a plan that may not be made now: not to be remembered as the question's */
} tni_lease;
tn_status tni_lease_take(const tni_question *question, bool preparing, tni_lease *out,
                         tn_error *err);
void tni_lease_end(tni_lease *lease);

/* The state that a plan of a lease was chosen in, taken before anything was decided: the plan is stale as soon as one of
 * these has another value. */
typedef struct tni_epoch {
    int32_t life;        /* of the device */
    uint64_t generation; /* tni_dispatch_generation */
    uint64_t processor;  /* tni_cpu_stamp */
} tni_epoch;
tni_epoch tni_plan_epoch(const tni_plan *plan);

/* Sets the problem's alignments to those that the plan was made for, which are no larger than those of its
 * data: the kernel sees the same ones in every run of its plan. */
void tni_plan_fit(const tni_plan *plan, tni_problem *problem);

/* Fits the problem, whose op the plan was made for, and runs the plan on it. NULL stream: the calling thread's
 * current one of the device; NULL workspace: the stream's own. Enqueues, and waits only where debug.sync says
 * so. */
typedef struct tni_call_args {
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tni_call_args;
tn_status tni_plan_run(const tni_plan *plan, const tn_context *context, tni_problem *problem,
                       const tni_call_args *args, tn_error *err);

/* The same of a problem that is fitted, with what the kernel's `pack` made of B; or NULL. */
tn_status tni_plan_run_fitted(const tni_plan *plan, const tn_context *context,
                              const tni_problem *problem, const void *packed,
                              const tni_call_args *args, tn_error *err);

/* Problems of matmul, each fitted to its plan. All plans are of one kernel, which takes many at once:
 * tn_kernel_row.run_many. */
typedef struct tni_many {
    const tni_plan *const *plans;
    const tni_problem *const *problems;
    size_t count; /* at least 1 */
} tni_many;
/* *out_failed is the one that the kernel failed on; `count` where it was not that. */
tn_status tni_plan_run_many(const tni_many *many, const tn_context *context, tn_stream *on,
                            size_t *out_failed, tn_error *err);

/* Whether what is queued on the stream, NULL for the thread's current one of the device, becomes part of a graph:
 * Tenon's or the program's. */
bool tni_is_recorded(tn_stream *on, tn_device *device);

/* A call: a face's arguments, whose struct is the class's. */
typedef struct tni_asked {
    const tn_context *context; /* not NULL */
    const tni_op_class *class;
    const void *args; /* may be NULL, or wrong in any other way, until the problem is made */
} tni_asked;

/* Finds the plan of the problem that a call made, fits the problem, and runs the plan. */
tn_status tni_dispatch(const tni_asked *asked, tni_problem *problem, tn_error *err);

/* A problem's text and the device it names, as question and op. The device is "best" for none. */
tn_status tni_question_parse(const char *problem, tn_op *out_op, tn_device **out_device,
                             tn_error *err);

#endif
