/* How kernels of binary are checked. */
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/binary.h"

static const char *const smoke[] = {
    "kind=add,shape=16x256",       "kind=add,shape=5x67",
    "kind=sub,shape=5x67",         "kind=mul,shape=5x67",
    "kind=div,shape=5x67",         "kind=max,shape=5x67",
    "kind=min,shape=5x67",         "!kind=add,shape=77",
    "kind=add,shape=9x11,si=22;2", "kind=add,shape=9x11,so=33;3",
    "kind=mul,shape=9x11,s2=0;1",  "kind=mul,shape=9x11,s2=1;0",
    "kind=sub,shape=9x11,s2=0;0",  "kind=add,shape=5x67,inplace=1",
    "kind=add,shape=5x67,out=f32", NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("kind=add,shape=1", "kind=add,shape=16x256", "kind=add,shape=?a<50>x?b<90>",
                   "kind=sub,shape=?a<50>x?b<90>", "kind=mul,shape=?a<50>x?b<90>",
                   "kind=div,shape=?a<50>x?b<90>", "kind=max,shape=?a<50>x?b<90>",
                   "kind=min,shape=?a<50>x?b<90>", "kind=mul,shape=8x16x64")},
    {"alignment",
     TNI_TEMPLATES("kind=add,shape=77,align=&;&;&", "kind=mul,shape=16x256,align=&;64;64",
                   "kind=mul,shape=16x256,align=64;64;&")},
    {"strides",
     TNI_TEMPLATES("kind=add,shape=9x11,si=22;2", "kind=add,shape=9x11,so=33;3",
                   "kind=sub,shape=?a<30>x?b<30>,s2=?b+5;1", "kind=sub,shape=?a<30>x?b<30>,si=1;?a",
                   "kind=mul,shape=?a<30>x?b<30>,so=?b+5;1", "kind=sub,shape=9x11,si=-11;-1",
                   "kind=sub,shape=?a<30>x?b<30>,si=?b;-1", "kind=sub,shape=?a<30>x?b<30>,s2=-?b;1",
                   "kind=add,shape=?a<30>x?b<30>,s2=?b;-1",
                   "kind=add,shape=?a<30>x?b<30>,so=?b;-1")},
    {"broadcast",
     TNI_TEMPLATES("kind=mul,shape=9x11,s2=0;1", "kind=mul,shape=9x11,s2=1;0",
                   "kind=sub,shape=9x11,s2=0;0", "kind=sub,shape=?a<30>x?b<30>,s2=0;1",
                   "kind=div,shape=?a<30>x?b<30>,si=0;1", "kind=add,shape=?a<30>x?b<30>,si=1;0",
                   "kind=add,shape=9x11,si=0;0", "kind=sub,shape=?a<30>x?b<30>,s2=0;-1")},
    {"out", TNI_TEMPLATES("kind=add,shape=5x67,out=f32", "kind=mul,shape=?a<30>x?b<30>,out=f32")},
    {"in-place",
     TNI_TEMPLATES("kind=add,shape=5x67,inplace=1", "kind=sub,shape=?a<30>x?b<30>,inplace=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)op, (void)operand;
    return (tni_spread){.low = -4, .high = 4, .special = true};
}

static double bound_binary(tni_bounds *b, const tni_place *place, double size)
{
    (void)place;
    bool complex = tni_dtype_is_complex(b->op->operand[TN_ELEMENTWISE_IN].dtype);
    switch (TN_PARAMS(b->op, elementwise)->kind) {
    case TN_BINARY_MUL: return complex ? 8 * b->work * size : 0;
    case TN_BINARY_DIV: return (complex ? 32 : 4) * b->work * size;
    default: return 0;
    }
}

const tni_op_check tni_binary_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .bound = bound_binary,
};
