#include "ref_function.h"

#include "ref.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/unary.h"

#include <tgmath.h>

static const long double root_half = 0.707106781186547524400844362104849039L;
static const long double root_2_over_pi = 0.797884560802865355879892119868763737L;

/* The formulas are written so that nothing cancels: erfc for 1 + erf, and 2 / (1 + exp(-2 u)) for 1
 * + tanh u. */
#define FUNCTION(name, type)                                                                     \
    type name(int32_t kind, type x)                                                              \
    {                                                                                            \
        switch (kind) {                                                                          \
        case TN_UNARY_NEG: return -x;                                                            \
        case TN_UNARY_ABS: return fabs(x);                                                       \
        case TN_UNARY_SQRT: return (type)sqrt((double)x); /* correctly rounded, and only once */ \
        case TN_UNARY_RSQRT: return 1 / sqrt(x);                                                 \
        case TN_UNARY_EXP: return exp(x);                                                        \
        case TN_UNARY_LOG: return log(x);                                                        \
        case TN_UNARY_TANH: return tanh(x);                                                      \
        case TN_UNARY_SIGMOID: return 1 / (1 + exp(-x));                                         \
        case TN_UNARY_RELU: return x < 0 ? 0 : x;                                                \
        case TN_UNARY_GELU: return x * (type)0.5 * erfc(-x * (type)root_half);                   \
        case TN_UNARY_GELU_TANH:                                                                 \
            return x / (1 + exp(-2 * (type)root_2_over_pi * (x + (type)0.044715L * x * x * x))); \
        case TN_UNARY_SILU: return x / (1 + exp(-x));                                            \
        default: return x;                                                                       \
        }                                                                                        \
    }
FUNCTION(tni_ref_function, double)
FUNCTION(tni_ref_function_long, long double)

int32_t tni_ref_activation(int32_t activation)
{
    switch (activation) {
    case TN_ACT_RELU: return TN_UNARY_RELU;
    case TN_ACT_GELU: return TN_UNARY_GELU;
    case TN_ACT_GELU_TANH: return TN_UNARY_GELU_TANH;
    case TN_ACT_SILU: return TN_UNARY_SILU;
    default: return -1;
    }
}

bool tni_ref_is_libm(int32_t kind)
{
    switch (kind) {
    case TN_UNARY_NEG:
    case TN_UNARY_ABS:
    case TN_UNARY_SQRT:
    case TN_UNARY_RELU: return false;
    default: return kind >= 0;
    }
}

tn_status tni_ref_admit_function(const tn_query *query, int32_t kind, tn_refusal *why)
{
    enum { CROSS_DEVICE = 3 }; /* the number of that value */
    int64_t determinism = 0;
    if (!tni_ref_is_libm(kind) || query->setting(query, "determinism", &determinism) ||
        determinism != CROSS_DEVICE)
        return TN_OK;
    return tni_ref_refuse(why, TN_REFUSE_DETERMINISM, "determinism", CROSS_DEVICE - 1, determinism,
                          "the last bit of libm's functions differs between machines: ask for "
                          "batch-invariant");
}
