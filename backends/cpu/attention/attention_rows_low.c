/* Attention of bf16 and f16: the functions of its kernel rows.
 *
 * The bf16 instructions of avx512_bf16 and amx flush subnormals to 0; weights have a relative error
 * of up to 2^-18 before they are rounded to bf16. Everything else is computed as f32. */
#include "attention_cpu_rows.h"
#include "attention_forward_pass.h"
#include "attention_sets.h"

/* The kernel row with the data of its functions. */
static const tni_at_low_row *low_of(const tn_kernel_row *row)
{
    return (const tni_at_low_row *)row;
}

void tni_at_widen(const tni_at_set *base, const tni_at_half *half, tn_dtype dtype, tni_at_set *out)
{
    *out = *base;
    out->pack_rows = half->pack_rows;
    out->pack = half->pack;
    out->few_step = dtype == TN_BF16 ? base->few_step_bf16 : base->few_step_f16;
    out->finish = half->finish;
    out->in_place = false;
    out->room_more = out->keys * (int64_t)sizeof(float);
}

/* The set of the row, which may point to `thin`. */
static void set_of(const tn_kernel_row *row, tni_at_set *thin, tni_at_set *out)
{
    const tni_at_low_row *low = low_of(row);
    tni_at_widen(low->base, low->half, row->dtypes[0], thin);
    *out = low->own ? *low->own : *thin;
    if (low->own) {
        out->few = thin->few;
        out->thin = thin;
    }
}

uint64_t tni_at_low_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_set thin, set;
    set_of(row, &thin, &set);
    return tni_at_forward_workspace(&set, query->op, query->threads);
}

tn_status tni_at_low_run(const tn_run *run, tn_error *err)
{
    tni_at_set thin, set;
    set_of(run->row, &thin, &set);
    return tni_at_forward(&set, run, err);
}
