#include "../shared/loop.h"

#include "../shared/family_f32_inc.h"

#include "rotary_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "rotary_inc.h"

#include "../shared/family_end_inc.h"

static void rotary_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN, TN_ROTARY_COS,
                                       TN_ROTARY_SIN};
    for (int64_t row = 0; row < n; row++) {
        strand s[4];
        for (int32_t i = 0; i < 4; i++) {
            const tn_layout *layout = &it->op->operand[operands[i]];
            char *begin = data[i] + row * it->walk.stride[i] * it->size[i];
            s[i] = strand_of(layout, begin, layout->stride[layout->rank - 1]);
        }
        int64_t last = it->op->operand[TN_ELEMENTWISE_OUT].rank - 1;
        int64_t width = it->op->operand[TN_ELEMENTWISE_OUT].shape[last];
        if (s[0].dtype == TN_F64)
            rotary_row_f64(s, TN_PARAMS(it->op, elementwise), width);
        else
            rotary_row_f32(s, TN_PARAMS(it->op, elementwise), width);
    }
}

ISA_KERNEL(rotary)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN, TN_ROTARY_COS,
                                       TN_ROTARY_SIN};
    const tn_layout *out = &run->op->operand[TN_ELEMENTWISE_OUT];
    loop it = {.body = rotary_body};
    (void)err;
    loop_prepare(&it, run, operands, 4, 1, out->shape[out->rank - 1]);
    loop_run(&it);
    return TN_OK;
}
