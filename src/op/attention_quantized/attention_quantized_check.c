/* How kernels of attention-quantized are checked: the problems. attention_quantized_bounds.c has the
 * error bound. */
#include "attention_quantized.h"

#include "op/op_check.h"

static const char *const smoke[] = {
    "b=2,h=3,l=65,d=64",
    "b=1,h=2,l=192,d=128,weights=u8",
    "!b=1,h=2,lq=17,lk=33,d=40,weights=i8",
    "b=1,h=1,l=1,d=1",
    "b=1,h=2,lq=5,lk=0,d=8,lse=1",
    "b=2,h=2,l=70,d=16,weights=f16,lse=1",
    "b=1,h=4,hk=2,l=150,d=32,weights=u8,mask=causal,scales=warp",
    "b=1,h=2,lq=70,lk=190,d=24,dv=40,weights=f8_e4m3fn,mask=causal-br,layout=blhd",
    "b=1,h=2,l=140,d=24,mask=window:9;3,scales=block,weights=u8,lse=1",
    "b=1,h=2,l=9,d=24,sq=432;216;48;2,out=$,smoothing=none",
    "b=1,h=2,l=130,d=96,weights=u8,lse=1",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("b=1,h=1,l=1,d=1", "b=2,h=3,l=65,d=64", "b=1,h=2,lq=17,lk=33,d=40",
                             "b=1,h=2,l=192,d=128", "b=1,h=1,lq=?q<300>,lk=?k<300>,d=64",
                             "b=?b<3>,h=?h<3>,lq=?q<90>,lk=?k<90>,d=?d<40>",
                             "b=1,h=1,l=?q<90>,d=?d<40>,scale=-0.3")},
    {"alignment",
     TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,align=&;&;&;&", "b=1,h=2,l=64,d=64,align=&;64;64;64")},
    {"window", TNI_TEMPLATES("b=1,h=2,l=64,d=128,mask=causal",
                             "b=1,h=2,lq=19,lk=67,d=32,mask=causal-br,weights=u8",
                             "b=2,h=2,l=270,d=16,mask=window:9;3",
                             "b=1,h=1,l=?q<400>,d=64,mask=causal,weights=u8",
                             "b=1,h=1,lq=?q<90>,lk=?k<90>,d=24,mask=causal-br")},
    {"groups",
     TNI_TEMPLATES("b=1,h=4,hk=1,lq=5,lk=300,d=64", "b=1,h=6,hk=3,l=?q<90>,d=64,weights=u8")},
    {"lse", TNI_TEMPLATES("b=1,h=2,l=35,d=24,lse=1", "b=1,h=2,lq=9,lk=0,d=24,lse=1",
                          "b=1,h=2,lq=?q<200>,lk=?k<200>,d=64,lse=1",
                          "b=1,h=2,l=?q<90>,d=64,weights=u8,lse=1,smoothing=none")},
    {"dv", TNI_TEMPLATES("b=2,h=2,l=70,d=48,dv=72", "b=1,h=2,l=?q<60>,d=64,dv=32",
                         "b=1,h=2,l=?q<60>,d=20,dv=?d<70>,weights=u8")},
    {"strides",
     TNI_TEMPLATES("b=2,h=2,l=33,d=48,layout=blhd", "b=1,h=2,l=9,d=24,sq=864;432;48;2",
                   "b=1,h=1,l=33,d=64,sk=4224;4224;128;2", "b=1,h=2,l=9,d=24,sv=432;216;24;-1",
                   "b=1,h=2,l=33,d=64,so=4224;2112;64;-1", "b=1,h=2,l=33,d=64,sk=4224;-2112;64;1")},
    {"out", TNI_TEMPLATES("b=1,h=2,l=35,d=24,out=f32", "b=1,h=2,l=?q<60>,d=64,out=f32,weights=u8")},
    {"raw", TNI_TEMPLATES("b=1,h=2,l=35,d=24,smoothing=none",
                          "b=1,h=2,l=?q<200>,d=64,smoothing=none,scales=warp,weights=u8")},
    {"f16", TNI_TEMPLATES("b=1,h=2,l=35,d=24,weights=f16",
                          "b=1,h=2,lq=?q<60>,lk=?k<300>,d=64,weights=f16")},
    {"f8", TNI_TEMPLATES("b=1,h=2,l=35,d=24,weights=f8_e4m3fn",
                         "b=1,h=2,lq=?q<60>,lk=?k<300>,d=64,weights=f8_e4m3fn,scales=block")},
    {"i8", TNI_TEMPLATES("b=1,h=2,l=35,d=24,weights=u8", "b=1,h=2,l=35,d=24,weights=i8",
                         "b=1,h=2,lq=?q<60>,lk=?k<300>,d=64,weights=u8,scales=warp",
                         "b=1,h=2,lq=?q<300>,lk=?k<60>,d=?d<70>,weights=i8",
                         "b=2,h=2,lq=?q<60>,lk=?k<60>,d=64,weights=u8,scales=block,layout=blhd")},
    {0},
};

/* Scales are shared by queries, so these are not split. */
static int32_t split_dims(const tn_op *op)
{
    (void)op;
    return 2;
}

const tni_op_check tni_attention_quantized_check = {
    .smoke = smoke,
    .aspects = aspects,
    .bound = tni_attention_quantized_bound,
    .bound_init = tni_attention_quantized_bounds_init,
    .bound_release = tni_attention_quantized_bounds_release,
    .split_dims = split_dims,
};
