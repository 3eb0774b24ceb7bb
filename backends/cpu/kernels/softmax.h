/* Softmax and its logarithm, a row at a time: the greatest, the sum of exponentials, the quotients. Sums
 * of a block are made in lanes, those of blocks in f64; a row's result depends on that row alone. */
#include "../rows.h"
#include "each.h"
#include "math.h"

/* Rows that fit are kept in f32 between the passes; longer ones that are not f32 are read again. */
enum { ROW_ROOM = 4096 };

#include "family_f32.h"

#include "softmax_rows.h"

#include "family_end.h"

#include "family_f64.h"

#include "softmax_rows.h"

#include "family_end.h"

static void softmax_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *out = &it->op->operand[TN_EACH_OUT], *in = &it->op->operand[TN_EACH_IN];
    int64_t size = it->op->as.each.size;
    bool log_wanted = it->op->uses & TN_EACH_USES_LOG;
    for (int64_t row = 0; row < n; row++) {
        char *to = data[0] + row * it->walk.stride[0] * it->size[0];
        char *from = data[1] + row * it->walk.stride[1] * it->size[1];
        strand y = strand_out(it, to, out->stride[out->rank - 1]);
        strand x = strand_of(in, from, in->stride[in->rank - 1]);
        x.next = it->walk.stride[1] * it->size[1];
        if (in->dtype == TN_F64)
            softmax_row_f64(&x, &y, size, log_wanted);
        else
            softmax_row_f32(&x, &y, size, log_wanted);
    }
}

tn_status ISA_NAME(softmax)(const tn_run *run, tn_error *err)
{
    static const int32_t operands[] = {TN_EACH_OUT, TN_EACH_IN};
    loop it = {.body = softmax_body};
    (void)err;
    loop_prepare(&it, run, operands, 2, 1, run->op->as.each.size);
    loop_run(&it);
    return TN_OK;
}
