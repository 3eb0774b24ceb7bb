/* The faces of operators: every call makes its problem and takes the one path. */
#include "decision.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "recall.h"
#include "settings/context.h"

/* tn_X, tn_X_explain and tn_X_prepare of one operator. */
#define FACES(noun)                                                                             \
    tn_status tn_##noun(const tn_context *context, const tn_##noun##_args *args, tn_error *err) \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tn_status status;                                                                       \
        const tni_asked asked = {tni_context_or_current(context), &tni_##noun##_class, args};   \
        if (tni_recall(&asked, &status, err))                                                   \
            return status;                                                                      \
        status = tni_##noun##_make(args, &problem, err);                                        \
        return status ? status : tni_dispatch(&asked, &problem, err);                           \
    }                                                                                           \
    tn_status tn_##noun##_explain(const tn_context *context, const tn_##noun##_args *args,      \
                                  tn_decision **out, tn_error *err)                             \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tn_status status = tni_##noun##_make(args, &problem, err);                              \
        return status ? status : tni_explain(context, &problem.op, problem.device, out, err);   \
    }                                                                                           \
    tn_status tn_##noun##_prepare(const tn_context *context, const tn_##noun##_args *args,      \
                                  tn_error *err)                                                \
    {                                                                                           \
        tni_problem problem;                                                                    \
        tn_status status = tni_##noun##_make(args, &problem, err);                              \
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
