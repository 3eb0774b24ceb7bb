/* Attention that forms the scores: the functions of its kernel rows. */
#include "attention_cpu_rows.h"
#include "attention_sets.h"

#include <inttypes.h>
#include <stdio.h>

static const tni_at_math_row *math_of(const tn_kernel_row *row)
{
    return (const tni_at_math_row *)row;
}

/* Maximum workspace bytes of a call. */
static uint64_t limit_of(const tn_query *query)
{
    int64_t limit = -1;
    if (query->setting && query->setting(query, "workspace.limit", &limit))
        limit = -1;
    return limit < 0 ? UINT64_MAX : (uint64_t)limit;
}

static void measure(const tn_kernel_row *row, const tn_query *query, tni_at_math_size *out)
{
    tni_at_math_measure(math_of(row), query->op, query->threads, limit_of(query), out);
}

/* If it admits, `why` says how many rows it forms at once. */
tn_status tni_at_math_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_ATTENTION_Q].dtype;
    const bool real = dtype == TN_F32 || dtype == TN_F64;
    const tn_status status =
        real ? tni_at_admit(row, query, why) : tni_at_low_admit(row, query, why);
    tni_at_math_size size;
    if (status)
        return status;
    if (TN_PARAMS(query->op, attention)->size < 1)
        return tn_refuse(why, TN_REFUSE_SHAPE, "head size", 1,
                         TN_PARAMS(query->op, attention)->size);
    if (!why)
        return TN_OK;
    measure(row, query, &size);
    (void)snprintf(why->text, sizeof why->text,
                   "forms scores of %" PRId64 " row%s at once on each of %" PRId64 " thread%s",
                   size.rows, size.rows == 1 ? "" : "s", size.tasks, size.tasks == 1 ? "" : "s");
    return TN_OK;
}

uint64_t tni_at_math_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_math_size size;
    measure(row, query, &size);
    return size.bytes;
}

tn_status tni_at_math_run(const tn_run *run, tn_error *err)
{
    return tni_at_math(math_of(run->row), run, err);
}
