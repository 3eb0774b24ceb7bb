/* How kernels of permute are checked. */
#include "op/op_check.h"

static const char *const smoke[] = {
    "shape=1000",
    "shape=16x256",
    "!shape=77",
    "shape=64x64,order=1;0",
    "shape=37x53,order=1;0",
    "shape=7x5x3,order=2;0;1",
    "shape=4x3x5x6,order=0;2;1;3",
    "shape=9x11,si=22;2",
    "shape=9x11,so=33;3",
    "shape=9x11,si=0;1",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("shape=1", "shape=1000", "shape=16x256", "shape=?a<70>x?b<70>",
                             "shape=?a<20>x?b<20>x?c<20>")},
    {"alignment",
     TNI_TEMPLATES("shape=77,align=&;&", "shape=16x256,align=&;64", "shape=16x256,align=64;&")},
    {"strides",
     TNI_TEMPLATES("shape=64x64,order=1;0", "shape=?a<90>x?b<90>,order=1;0",
                   "shape=?a<20>x?b<20>x?c<20>,order=2;0;1", "shape=4x3x5x6,order=0;2;1;3",
                   "shape=?a<30>x?b<30>,si=?b*2;2", "shape=?a<30>x?b<30>,so=?b*3;3",
                   "shape=?a<30>x?b<30>,si=?b+5;1", "shape=?a<30>x?b<30>,so=?b+5;1",
                   "shape=9x11,si=-11;-1", "shape=64x64,si=64;-1", "shape=?a<30>x?b<30>,si=-?b;1",
                   "shape=?a<30>x?b<30>,so=?b;-1", "shape=?a<30>x?b<30>,si=1;-?a")},
    {"broadcast", TNI_TEMPLATES("shape=9x11,si=0;1", "shape=?a<30>x?b<30>,si=0;1",
                                "shape=9x11,si=1;0", "shape=9x11,si=0;0",
                                "shape=?a<30>x?b<30>,si=1;0", "shape=?a<30>x?b<30>,si=0;-1")},
    {0},
};

const tni_op_check tni_permute_check = {
    .smoke = smoke,
    .aspects = aspects,
    .bits = TNI_BITS_ALWAYS,
    .copies = true,
};
