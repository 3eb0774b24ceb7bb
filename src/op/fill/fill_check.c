/* How kernels of fill are checked. */
#include "op/op_check.h"

static const char *const smoke[] = {"shape=1000,value=1", "!shape=77,value=3",
                                    "shape=9x11,so=33;3,value=2", NULL};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("shape=1,value=2", "shape=1000,value=1", "shape=?a<70>x?b<70>,value=3")},
    {"alignment", TNI_TEMPLATES("shape=77,value=3,align=&", "shape=?a<300>,value=1,align=&")},
    {"strides",
     TNI_TEMPLATES("shape=9x11,so=33;3,value=2", "shape=?a<30>x?b<30>,so=?b+5;1,value=1",
                   "shape=9x11,so=-11;-1,value=2", "shape=?a<30>x?b<30>,so=?b;-1,value=3")},
    {0},
};

const tni_op_check tni_fill_check = {
    .smoke = smoke,
    .aspects = aspects,
};
