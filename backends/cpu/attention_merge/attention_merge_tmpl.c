/* Merges two results of attention over different keys, a row at a time: their mean with the weights
 * exp(lse - the greater lse). A part that saw no key, whose lse is -infinity, is not read. */
#include "../shared/loop.h"

#include "tenon/module/op/attention_merge.h"

#include <math.h>

/* The share of a part in a row. */
typedef struct merge_share {
    bool is_read;
    double factor;
} merge_share;

#include "../shared/family_f32_inc.h"

#include "attention_merge_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "attention_merge_inc.h"

#include "../shared/family_end_inc.h"

/* In the order of the loop; lse, which may be absent, is the last. */
static const int32_t merge_operands[] = {TN_MERGE_OUT,    TN_MERGE_IN,        TN_MERGE_OTHER,
                                         TN_MERGE_LSE_IN, TN_MERGE_LSE_OTHER, TN_MERGE_LSE};
enum { MERGE_WHOLE = 3, MERGE_LSE_IN = 3, MERGE_LSE = 5 };

static double read_lse(tn_dtype dtype, const char *from)
{
    double wide;
    float narrow;
    if (dtype == TN_F64) {
        memcpy(&wide, from, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from, sizeof narrow);
    return narrow;
}

static void write_lse(tn_dtype dtype, double lse, char *to)
{
    const float narrow = (float)lse;
    memcpy(to, dtype == TN_F64 ? (const void *)&lse : (const void *)&narrow,
           dtype == TN_F64 ? sizeof lse : sizeof narrow);
}

/* Computes the share of each part in a row; returns the lse of the row. */
static double share_row(double a, double b, merge_share *out)
{
    const double nothing = -(double)INFINITY, greater = b > a ? b : a;
    out[0] = (merge_share){a != nothing, 0};
    out[1] = (merge_share){b != nothing, 0};
    if (a == nothing && b == nothing)
        return nothing;
    const double weight_a = exp(a - greater), weight_b = exp(b - greater);
    out[0].factor = weight_a / (weight_a + weight_b);
    out[1].factor = weight_b / (weight_a + weight_b);
    return greater + log(weight_a + weight_b);
}

static void merge_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    const tn_layout *operand = it->op->operand;
    const tn_dtype dtype = operand[TN_MERGE_IN].dtype, of_lse = operand[TN_MERGE_LSE_IN].dtype;
    (void)first;
    for (int64_t row = 0; row < n; row++) {
        char *begin[MERGE_LSE + 1];
        strand s[MERGE_WHOLE];
        merge_share share[2];
        for (int32_t i = 0; i < it->walk.count; i++)
            begin[i] = data[i] + row * it->walk.stride[i] * it->size[i];
        for (int32_t i = 0; i < MERGE_WHOLE; i++) {
            const tn_layout *layout = &operand[merge_operands[i]];
            s[i] = strand_of(layout, begin[i], layout->stride[layout->rank - 1]);
        }
        const double lse = share_row(read_lse(of_lse, begin[MERGE_LSE_IN]),
                                     read_lse(of_lse, begin[MERGE_LSE_IN + 1]), share);
        if (dtype == TN_F64)
            merge_row_f64(s, share, TN_PARAMS(it->op, elementwise)->size);
        else
            merge_row_f32(s, share, TN_PARAMS(it->op, elementwise)->size);
        if (it->walk.count > MERGE_LSE)
            write_lse(of_lse, lse, begin[MERGE_LSE]);
    }
}

ISA_KERNEL(attention_merge)
{
    const bool has_lse = run->op->operand[TN_MERGE_LSE].dtype != TN_DTYPE_NONE;
    loop it = {.body = merge_body};
    (void)err;
    loop_prepare(&it, run, merge_operands, has_lse ? MERGE_LSE + 1 : MERGE_LSE, 1,
                 TN_PARAMS(run->op, elementwise)->size);
    loop_run(&it);
    return TN_OK;
}
