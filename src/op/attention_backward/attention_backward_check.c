/* How kernels of attention-backward are checked. */
#include "attention_backward.h"
#include "op/attention/attention.h"
#include "op/attention/attention_bounds.h"
#include "op/attention/attention_templates.h"

static const char *const smoke[] = {
    "b=2,h=3,l=65,d=64",
    "b=1,h=2,l=64,d=128,mask=causal",
    "!b=1,h=2,lq=17,lk=33,d=40",
    "b=1,h=1,l=1,d=1",
    "b=2,h=2,l=35,d=24,mask=bool",
    "b=2,h=2,l=35,d=24,mask=causal;additive",
    "b=2,h=2,l=40,d=16,mask=window:9;3",
    "b=2,h=2,lq=33,lk=40,d=16,mask=window-tl:-1;7,shift=5",
    "b=1,h=4,hk=2,lq=19,lk=37,d=32,mask=causal-br",
    "b=2,h=2,l=40,d=48,dv=72,layout=blhd",
    "b=1,h=2,l=9,d=24,sq=864;432;48;2",
    "b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=device",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES(ATTENTION_SHAPES, "b=1,h=2,l=35,d=24,scale=0.5")},
    {"pitches", TNI_TEMPLATES("b=2,h=2,l=33,d=48,layout=blhd", "b=1,h=2,l=?q<60>,d=64,layout=blhd",
                              ATTENTION_PITCHES)},
    {"alignment", TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,align=&;&;&;&;8;&;&;&;&",
                                "b=1,h=2,l=64,d=64,align=&;64;64;64;64;64;64;64;64",
                                "b=1,h=2,l=64,d=64,align=64;64;64;64;64;64;&;&;&")},
    {"window", TNI_TEMPLATES(ATTENTION_WINDOWS)},
    {"mask",
     TNI_TEMPLATES("b=2,h=2,l=35,d=24,mask=bool", "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=bool")},
    {"additive", TNI_TEMPLATES("b=2,h=2,l=35,d=24,mask=additive",
                               "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=additive")},
    {"groups", TNI_TEMPLATES("b=1,h=4,hk=2,lq=19,lk=37,d=32", "b=1,h=6,hk=3,l=?q<40>,d=64")},
    {"softcap", TNI_TEMPLATES("b=1,h=2,l=35,d=24,softcap=5", "b=1,h=2,l=?q<60>,d=64,softcap=5")},
    {"dropout", TNI_TEMPLATES("b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
                              "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=9")},
    {"seed", TNI_TEMPLATES("b=1,h=2,l=35,d=24,dropout=0.25,seed=device",
                           "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=device")},
    {"dv", TNI_TEMPLATES("b=2,h=2,l=40,d=48,dv=72", "b=1,h=2,l=?q<60>,d=64,dv=32")},
    {"strides", TNI_TEMPLATES(ATTENTION_STRIDES)},
    {"shift", TNI_TEMPLATES("b=2,h=2,lq=33,lk=40,d=16,mask=window-tl:-1;7,shift=5",
                            "b=1,h=1,lq=5,lk=40,d=64,mask=causal,shift=20")},
    {"together", TNI_TEMPLATES("b=2,h=4,hk=2,l=35,d=24,mask=causal;additive",
                               "b=1,h=4,hk=2,lq=19,lk=37,d=32,mask=causal-br,softcap=5")},
    {0},
};

/* Gradients are split by batch, and by head if no heads share keys. Dropout depends on positions in
 * the whole problem. */
static int32_t split_dims(const tn_op *op)
{
    if (op->uses & TN_ATTENTION_USES_DROPOUT)
        return 0;
    return op->uses & TN_ATTENTION_USES_GROUPS ? 1 : 2;
}

static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    return d < split_dims(op) && operand != TN_ATTENTION_SEED;
}

const tni_op_check tni_attention_backward_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = tni_attention_spread,
    .is_table = tni_attention_is_table,
    .fill_table = tni_attention_fill_table,
    .finish_inputs = tni_attention_forward_fill,
    .bound = tni_attention_bound,
    .bound_init = tni_attention_bounds_init,
    .bound_release = tni_attention_bounds_release,
    .split_dims = split_dims,
    .is_split = is_split,
};
