/* Plans: the kernel and its preparation for a problem, kept for later calls with the same problem.
 *
 * Thread-safety: Safe. */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include "explain.h"

TN_BEGIN_DECLS

/* Makes the plan of a problem ahead of time: opens the library, tests the kernel if a test is due,
 * times candidates if the settings request it. With plan.only_prepared, a call fails unless a plan
 * made by this function or by an earlier call serves it. A plan serves memory of every alignment at
 * which its kernel can run and which no kernel of the op distinguishes when one is chosen. */
TN_API tn_status tn_prepare(const tn_context *context, const char *problem, tn_error *err);

/* The state of the plan cache of a device. */
typedef struct tn_plan_cache_state {
    size_t struct_size;
    int64_t size;      /* number of cached plans                           */
    int64_t max_size;  /* limit: the context's plan.cache_size; with a device and an op that has
                          one, its own limit: tn_plan_cache_limit_set */
    int64_t bytes;     /* bytes that the plans hold                        */
    int64_t max_bytes; /* limit: the context's plan.cache_bytes            */
    int64_t hits;      /* calls that found their plan, since process start */
    int64_t misses;    /* calls that did not                               */
    int64_t shared;    /* misses served by the plan of another problem     */
    int64_t evictions; /* plans evicted                                    */
} tn_plan_cache_state;
TN_ENDS_WITH(tn_plan_cache_state, evictions);

/* For one device, or all if NULL; for one op (TN_OP_...), or all if 0. With an op, `size` and
 * `bytes` are for that op, but the counters are for all ops. `hits` is always the total of all
 * devices. Limits are enforced when a plan is added. Set out->struct_size first. */
TN_API tn_status tn_plan_cache_state_get(const tn_context *context, tn_device *device, int32_t op,
                                         tn_plan_cache_state *out, tn_error *err);

/* Limits how many plans of an op are kept for a device, besides plan.cache_size; 0 keeps none. -1: the
 * limit that the op's setting has: for fft cpu.fft_plan_cache.max_size or cuda.cufft_plan_cache.max_size;
 * other ops have none. Evicts the oldest plans beyond the limit at once. A new plan evicts only after it was
 * made. */
TN_API tn_status tn_plan_cache_limit_set(tn_device *device, int32_t op, int64_t max_size,
                                         tn_error *err);

/* Discards plans; a plan in use is released after its last run. */
TN_API void tn_plan_cache_clear(tn_device *device, int32_t op);

/* Counts of fallbacks. Each counts plans, not calls. */
typedef struct tn_fallbacks {
    size_t struct_size;
    int64_t preferred;   /* a preferred kernel was refused or is not available   */
    int64_t avoided;     /* an avoided kernel was used because no other could be */
    int64_t unavailable; /* the best kernel lacks its library or device, or its library rejected
                            the problem */
    int64_t quarantined; /* the best kernel is quarantined or known to be bad      */
    int64_t reference;   /* the reference, the slowest kernel, was used            */
    char last[512];      /* the last such problem and the kernel used; "" for none */
} tn_fallbacks;
TN_ENDS_WITH(tn_fallbacks, last);

/* Counted since process start or the last reset. Set out->struct_size first. */
TN_API tn_status tn_fallbacks_get(tn_fallbacks *out, tn_error *err);
TN_API void tn_fallbacks_reset(void);

TN_END_DECLS

#endif
