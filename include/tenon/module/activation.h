/* Activation functions that an operator may apply to its result.
 *
 *     relu       max(x, 0)
 *     gelu       x/2 (1 + erf(x/sqrt 2))
 *     gelu-tanh  the tanh approximation of gelu
 *     silu       x / (1 + exp(-x))
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_ACTIVATION_H
#define TENON_MODULE_ACTIVATION_H

/* Numbers are never reused. */
enum {
    TN_ACT_NONE = 0,
    TN_ACT_RELU = 1,
    TN_ACT_GELU = 2,
    TN_ACT_GELU_TANH = 3,
    TN_ACT_SILU = 4,
    TN_ACT_COUNT
};

#endif
