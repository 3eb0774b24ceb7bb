/* Plans: what a call's problem was bound to, kept for the next call of the same problem.
 *
 * Thread-safety: Safe. */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include "explain.h"

TN_BEGIN_DECLS

/* Makes the plan of a problem ahead: opens the library, tests the kernel where that is due, times
 * candidates where that is wished. With plan.only_prepared, what no plan serves that was made so, or by an earlier
 * call, is refused. A plan serves memory of every alignment that its kernel can run at and that no kernel
 * of the op is chosen by. */
TN_API tn_status tn_prepare(const tn_context *context, const char *problem, tn_error *err);

/* How the plans of a device stand. */
typedef struct tn_plan_cache_state {
    size_t struct_size;
    int64_t size;      /* plans kept                                               */
    int64_t max_size;  /* that the context's plan.cache_size allows                */
    int64_t bytes;     /* that they hold                                           */
    int64_t max_bytes; /* that the context's plan.cache_bytes allows               */
    int64_t hits;      /* calls that found their plan, since the process began     */
    int64_t misses;    /* that did not                                             */
    int64_t shared;    /* misses that another problem's plan served                */
    int64_t evictions; /* plans given up for others                                */
} tn_plan_cache_state;
TN_ENDS_WITH(tn_plan_cache_state, evictions);

/* Of a device, or of all for NULL; of one op, TN_OP_..., or of all for 0: `size` and `bytes` are of that op
 * then, the counts of all; hits are counted for all devices together. Bounds are kept when a plan is added. Set out->struct_size first. */
TN_API tn_status tn_plan_cache_state_get(const tn_context *context, tn_device *device, int32_t op,
                                         tn_plan_cache_state *out, tn_error *err);

/* Gives plans up; those that run meanwhile end with their last run. */
TN_API void tn_plan_cache_clear(tn_device *device, int32_t op);

/* Did anything fall back? Each counts plans, not calls. */
typedef struct tn_fallbacks {
    size_t struct_size;
    int64_t preferred;   /* what is preferred was refused or is not here, and another taken   */
    int64_t avoided;     /* an avoided kernel was taken, as nothing else could be             */
    int64_t unavailable; /* a kernel that would have been first lacks its library or device, or
                            its library would not take the problem when asked               */
    int64_t quarantined; /* one that would have been first is in quarantine or known to be bad */
    int64_t reference;   /* the reference was taken, the slowest of all                       */
    char last[512];      /* the last such problem, and what was taken; "" for none             */
} tn_fallbacks;
TN_ENDS_WITH(tn_fallbacks, last);

/* Since the process began, or the last reset. Set out->struct_size first. */
TN_API tn_status tn_fallbacks_get(tn_fallbacks *out, tn_error *err);
TN_API void tn_fallbacks_reset(void);

TN_END_DECLS

#endif
