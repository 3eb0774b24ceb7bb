/* The public functions of the operators: every call makes its problem and takes the same path. */
#include "cross.h"
#include "decision.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "recall.h"
#include "settings/context.h"

/* Defines tn_X, tn_X_explain and tn_X_prepare of one operator. */
#define FACES(noun)                                                                             \
    tn_status tn_##noun(const tn_context *context, const tn_##noun##_args *args, tn_error *err) \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tni_crossing crossing;                                                                  \
        tn_status status;                                                                       \
        tni_asked asked = {tni_context_or_current(context), &tni_##noun##_class, args};         \
        if (tni_recall(&asked, &status, err))                                                   \
            return status;                                                                      \
        status = tni_cross_begin(&asked, true, &crossing, err);                                 \
        if (!status)                                                                            \
            status = tni_##noun##_make(asked.args, &problem, err);                              \
        if (!status)                                                                            \
            status = tni_dispatch(&asked, &problem, err);                                       \
        tni_cross_end(&crossing);                                                               \
        return status;                                                                          \
    }                                                                                           \
    static tn_status noun##_problem(const tn_context *context, const tn_##noun##_args *args,    \
                                    tni_problem *out, tn_error *err)                            \
    {                                                                                           \
        tni_crossing crossing;                                                                  \
        tni_asked asked = {tni_context_or_current(context), &tni_##noun##_class, args};         \
        tn_status status = tni_cross_begin(&asked, false, &crossing, err);                      \
        if (!status)                                                                            \
            status = tni_##noun##_make(asked.args, out, err);                                   \
        tni_cross_end(&crossing);                                                               \
        return status;                                                                          \
    }                                                                                           \
    tn_status tn_##noun##_explain(const tn_context *context, const tn_##noun##_args *args,      \
                                  tn_decision **out, tn_error *err)                             \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tn_status status = noun##_problem(context, args, &problem, err);                        \
        const tni_asked asked = {tni_context_or_current(context), &tni_##noun##_class, args};   \
        return status ? status : tni_explain_call(&asked, &problem, out, err);                  \
    }                                                                                           \
    tn_status tn_##noun##_prepare(const tn_context *context, const tn_##noun##_args *args,      \
                                  tn_error *err)                                                \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tn_status status = noun##_problem(context, args, &problem, err);                        \
        return status ? status : tni_prepare(context, &problem.op, problem.device, err);        \
    }

FACES(matmul)
FACES(permute)
FACES(cast)
FACES(fill)
FACES(unary)
FACES(binary)
FACES(reduce)
FACES(softmax)
FACES(norm)
FACES(rotary)
FACES(attention)
FACES(attention_backward)
FACES(attention_merge)
