/* How kernels of cast are checked. */
#include "op/op_check.h"

static const char *const smoke[] = {
    "shape=16x256,to=f32",
    "shape=16x256,to=bf16",
    "shape=37x13,to=f64",
    "shape=37x13,to=f32",
    "shape=37x13,to=f16",
    "shape=37x13,to=bf16",
    "shape=37x13,to=i8",
    "shape=37x13,to=u8",
    "shape=37x13,to=i32",
    "shape=37x13,to=i64",
    "shape=37x13,to=bool",
    "!shape=77,to=f32",
    "!shape=77,to=bf16",
    "shape=9x11,si=22;2,to=f32",
    "shape=9x11,so=33;3,to=f32",
    "shape=9x11,si=0;1,to=bf16",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("shape=16x256,to=f32", "shape=16x256,to=bf16", "shape=37x13,to=f64",
                   "shape=37x13,to=f32", "shape=37x13,to=f16", "shape=37x13,to=bf16",
                   "shape=37x13,to=i8", "shape=37x13,to=u8", "shape=37x13,to=i32",
                   "shape=37x13,to=i64", "shape=37x13,to=bool", "shape=?a<70>x?b<70>,to=f32",
                   "shape=?a<70>x?b<70>,to=bf16", "shape=?a<70>x?b<70>,to=i32")},
    {"alignment",
     TNI_TEMPLATES("shape=77,to=f32,align=&;4", "shape=77,to=bf16,align=&;2",
                   "shape=16x256,to=f32,align=&;64", "shape=16x256,to=f32,align=64;4")},
    {"strides",
     TNI_TEMPLATES("shape=9x11,si=22;2,to=f32", "shape=9x11,so=33;3,to=f32",
                   "shape=?a<30>x?b<30>,si=?b+5;1,to=f32", "shape=?a<30>x?b<30>,so=?b*2;2,to=bf16",
                   "shape=9x11,si=-11;-1,to=f32", "shape=?a<30>x?b<30>,si=?b;-1,to=f32",
                   "shape=?a<30>x?b<30>,so=-?b;1,to=bf16")},
    {"broadcast", TNI_TEMPLATES("shape=9x11,si=0;1,to=bf16", "shape=?a<30>x?b<30>,si=0;1,to=f32",
                                "shape=?a<30>x?b<30>,si=1;0,to=f32", "shape=9x11,si=0;0,to=bf16",
                                "shape=9x11,si=0;-1,to=f32")},
    {"in-place", TNI_TEMPLATES("shape=5x67,to=$,inplace=1", "shape=16x64,to=$,inplace=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)op, (void)operand;
    return (tni_spread){.low = -300, .high = 300, .special = true};
}

const tni_op_check tni_cast_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .bits = TNI_BITS_OF_INTEGERS,
};
