#include "../shared/loop.h"
#include "../shared/vector_math.h"

#include "../shared/family_f32_inc.h"

#include "unary_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "unary_inc.h"

#include "../shared/family_end_inc.h"

static void unary_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *in = &it->op->operand[TN_ELEMENTWISE_IN];
    strand y = strand_out(it, data[0], it->walk.stride[0]);
    strand x = strand_in(it, in, data[1], it->walk.stride[1]);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        if (in->dtype == TN_F64)
            unary_part_f64(&x, &y, TN_PARAMS(it->op, elementwise)->kind, at, m);
        else
            unary_part_f32(&x, &y, TN_PARAMS(it->op, elementwise)->kind, at, m);
    }
}

ISA_KERNEL(unary)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    loop it = {.body = unary_body};
    (void)err;
    loop_prepare(&it, run, operands, 2, 0, 1);
    loop_run(&it);
    return TN_OK;
}
