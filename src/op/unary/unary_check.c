/* How kernels of unary are checked. */
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/unary.h"

static const char *const smoke[] = {
    "kind=neg,shape=16x256",       "kind=neg,shape=5x67",
    "kind=abs,shape=5x67",         "kind=sqrt,shape=5x67",
    "kind=rsqrt,shape=5x67",       "kind=exp,shape=5x67",
    "kind=log,shape=5x67",         "kind=tanh,shape=5x67",
    "kind=sigmoid,shape=5x67",     "kind=relu,shape=5x67",
    "kind=gelu,shape=5x67",        "kind=gelu-tanh,shape=5x67",
    "kind=silu,shape=5x67",        "!kind=neg,shape=77",
    "kind=abs,shape=9x11,si=22;2", "kind=abs,shape=9x11,so=33;3",
    "kind=neg,shape=9x11,si=0;1",  "kind=neg,shape=5x67,inplace=1",
    "kind=exp,shape=5x67,out=f32", NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("kind=neg,shape=1", "kind=neg,shape=16x256", "kind=neg,shape=?a<50>x?b<90>",
                   "kind=abs,shape=?a<50>x?b<90>", "kind=sqrt,shape=?a<50>x?b<90>",
                   "kind=rsqrt,shape=?a<50>x?b<90>", "kind=exp,shape=?a<50>x?b<90>",
                   "kind=log,shape=?a<50>x?b<90>", "kind=tanh,shape=?a<50>x?b<90>",
                   "kind=sigmoid,shape=?a<50>x?b<90>", "kind=relu,shape=?a<50>x?b<90>",
                   "kind=gelu,shape=?a<50>x?b<90>", "kind=gelu-tanh,shape=?a<50>x?b<90>",
                   "kind=silu,shape=?a<50>x?b<90>", "kind=relu,shape=8x16x64")},
    {"alignment", TNI_TEMPLATES("kind=neg,shape=77,align=&;&", "kind=relu,shape=16x256,align=&;64",
                                "kind=relu,shape=16x256,align=64;&")},
    {"strides",
     TNI_TEMPLATES("kind=abs,shape=9x11,si=22;2", "kind=abs,shape=9x11,so=33;3",
                   "kind=neg,shape=?a<30>x?b<30>,si=?b+5;1",
                   "kind=neg,shape=?a<30>x?b<30>,so=?b+5;1", "kind=exp,shape=?a<30>x?b<30>,si=1;?a",
                   "kind=abs,shape=9x11,si=-11;-1", "kind=neg,shape=?a<30>x?b<30>,si=?b;-1",
                   "kind=relu,shape=?a<30>x?b<30>,si=-?b;1",
                   "kind=neg,shape=?a<30>x?b<30>,so=?b;-1")},
    {"broadcast",
     TNI_TEMPLATES("kind=neg,shape=9x11,si=0;1", "kind=relu,shape=?a<30>x?b<30>,si=1;0",
                   "kind=neg,shape=9x11,si=0;0", "kind=neg,shape=?a<30>x?b<30>,si=0;-1")},
    {"out", TNI_TEMPLATES("kind=exp,shape=5x67,out=f32", "kind=silu,shape=?a<30>x?b<30>,out=f32")},
    {"in-place",
     TNI_TEMPLATES("kind=neg,shape=5x67,inplace=1", "kind=gelu,shape=?a<30>x?b<30>,inplace=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)operand;
    switch (TN_PARAMS(op, elementwise)->kind) {
    case TN_UNARY_SQRT:
    case TN_UNARY_RSQRT:
    case TN_UNARY_LOG: return (tni_spread){.low = 0, .high = 4, .special = true};
    case TN_UNARY_RELU:
    case TN_UNARY_GELU:
    case TN_UNARY_GELU_TANH:
    case TN_UNARY_SILU: return (tni_spread){.low = -4, .high = 4};
    default: return (tni_spread){.low = -4, .high = 4, .special = true};
    }
}

static double bound_unary(tni_bounds *b, const tni_place *place, double size)
{
    double u = b->work;
    switch (TN_PARAMS(b->op, elementwise)->kind) {
    case TN_UNARY_SQRT: return 2 * u * size;
    case TN_UNARY_RSQRT:
    case TN_UNARY_EXP: return 8 * u * size;
    case TN_UNARY_LOG: return 8 * u * size + 2 * u;
    case TN_UNARY_TANH: return 8 * u * size + 4 * u;
    case TN_UNARY_SIGMOID:
    case TN_UNARY_SILU: return 16 * u * size;
    case TN_UNARY_GELU:
    case TN_UNARY_GELU_TANH:
        return 16 * u * tni_number_size(tni_bounds_input(b, TN_ELEMENTWISE_IN, place));
    default: return 0;
    }
}

const tni_op_check tni_unary_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .bound = bound_unary,
};
