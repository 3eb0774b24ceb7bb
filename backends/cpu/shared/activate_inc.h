/* Applies the activation of a product to its sums, in f32 or f64. Parameters: those of a family
 * (family_f32_inc.h); include after vector_math.h. */
#include "tenon/module/op/matmul.h"

INLINE VECTOR F(activated)(int32_t activation, VECTOR v)
{
    const VECTOR zero = {0};
    switch (activation) {
    case TN_ACT_RELU: return F(choose)(v < zero, zero, v);
    case TN_ACT_GELU: return F(gelu)(v);
    case TN_ACT_GELU_TANH: return F(gelu_tanh)(v);
    case TN_ACT_SILU: return F(silu)(v);
    default: return v;
    }
}

/* Applies it to n elements; whole vectors may be read and written. */
static void F(activate)(int32_t activation, REAL *x, int64_t n)
{
    for (int64_t i = 0; i < n && activation != TN_ACT_NONE; i += WIDTH)
        F(store)(x + i, F(activated)(activation, F(load)(x + i)));
}
