#include "../shared/loop.h"

#include "../shared/family_f32_inc.h"

#include "binary_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "binary_inc.h"

#include "../shared/family_end_inc.h"

static void binary_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *operand = it->op->operand;
    strand z = strand_out(it, data[0], it->walk.stride[0]);
    strand x = strand_in(it, &operand[TN_ELEMENTWISE_IN], data[1], it->walk.stride[1]);
    strand y = strand_in(it, &operand[TN_ELEMENTWISE_OTHER], data[2], it->walk.stride[2]);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        if (x.dtype == TN_F64)
            binary_part_f64(&x, &y, &z, TN_PARAMS(it->op, elementwise)->kind, at, m);
        else
            binary_part_f32(&x, &y, &z, TN_PARAMS(it->op, elementwise)->kind, at, m);
    }
}

ISA_KERNEL(binary)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OTHER};
    loop it = {.body = binary_body};
    (void)err;
    loop_prepare(&it, run, operands, 3, 0, 1);
    loop_run(&it);
    return TN_OK;
}
