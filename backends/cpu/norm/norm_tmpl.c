/* Layer norm and RMS norm, a row at a time: the mean, the variance, the normalized values. Sums of
 * a block are made in lanes, those of blocks in f64; a row's result depends only on that row. */
#include "../shared/loop.h"
#include "../shared/pieces.h"

#include "../shared/family_f32_inc.h"

#include "norm_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "norm_inc.h"

#include "../shared/family_end_inc.h"

/* Weight and bias have stride 0 except in the last dimension: each is one row. */
static void norm_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *operand = it->op->operand;
    strand row[TN_NORM_BIAS + 1];
    for (int32_t i = 0; i <= TN_NORM_BIAS; i++) {
        const tn_layout *layout = &operand[i];
        row[i] = layout->dtype
                     ? strand_of(layout, tn_operand(it->run, i), layout->stride[layout->rank - 1])
                     : (strand){.data = NULL};
    }
    row[TN_ELEMENTWISE_IN] =
        strand_row(&operand[TN_ELEMENTWISE_IN], NULL, TN_PARAMS(it->op, elementwise)->size,
                   it->walk.stride[1] * it->size[1]);
    for (int64_t j = 0; j < n; j++) {
        row[TN_ELEMENTWISE_OUT] = strand_out(it, data[0] + j * it->walk.stride[0] * it->size[0],
                                             row[TN_ELEMENTWISE_OUT].stride);
        row[TN_ELEMENTWISE_IN].data = data[1] + j * it->walk.stride[1] * it->size[1];
        if (operand[TN_ELEMENTWISE_IN].dtype == TN_F64)
            norm_row_f64(row, TN_PARAMS(it->op, elementwise));
        else
            norm_row_f32(row, TN_PARAMS(it->op, elementwise));
    }
}

ISA_KERNEL(norm)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    loop it = {.body = norm_body};
    (void)err;
    loop_prepare(&it, run, operands, 2, 1, TN_PARAMS(run->op, elementwise)->size);
    loop_run(&it);
    return TN_OK;
}
