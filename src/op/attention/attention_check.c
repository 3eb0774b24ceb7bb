/* How kernels of attention are checked. */
#include "attention.h"
#include "attention_bounds.h"
#include "attention_templates.h"
#include "base/dtype.h"
#include "op/op_check.h"

static const char *const smoke[] = {
    "b=2,h=3,l=65,d=64",
    "b=1,h=2,l=64,d=128,mask=causal",
    "!b=1,h=2,lq=17,lk=33,d=40",
    "b=1,h=1,l=1,d=1",
    "b=1,h=2,lq=9,lk=0,d=24,lse=1",
    "b=2,h=2,l=35,d=24,mask=bool,lse=1",
    "b=3,h=2,l=35,d=24,mask=padding,lse=1",
    "b=2,h=2,l=35,d=24,mask=causal;additive",
    "b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",
    "b=2,h=2,l=70,d=16,mask=window:9;3",
    "b=2,h=2,lq=33,lk=70,d=16,mask=window-tl:-1;7,shift=5",
    "b=1,h=4,hk=1,lq=1,lk=300,d=64,lse=1",
    "b=1,h=4,hk=2,lq=19,lk=67,d=32,mask=causal-br",
    "b=2,h=2,l=70,d=48,dv=72,layout=blhd",
    "b=1,h=2,l=9,d=24,sq=864;432;48;2",
    "b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
    "b=1,h=2,l=35,d=24,sink=1,lse=1",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=device",
    "b=1,h=2,l=35,d=24,out=f32",
    "h=2,varlen=33;0;1;20,d=24,mask=causal-br,lse=1",
    "h=2,varlen=33;5,varlenk=40;17,d=24,layout=blhd",
    "b=3,h=2,l=35,d=24,used=1,lse=1",
    "b=3,h=4,hk=2,lq=3,lk=35,d=24,page=16,mask=causal-br",
    "b=1,h=1,l=130,d=256",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES(ATTENTION_SHAPES, "b=1,h=2,l=35,d=24,scale=0.5", "b=1,h=4,lq=1,lk=300,d=64")},
    {"pitches", TNI_TEMPLATES("b=2,h=2,l=33,d=48,layout=blhd", "b=2,h=2,l=64,d=64,layout=blhd",
                              "b=1,h=2,l=?q<60>,d=64,layout=blhd", ATTENTION_PITCHES)},
    {"alignment",
     TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,align=&;&;&;&", "b=1,h=2,l=64,d=64,align=&;64;64;64",
                   "b=1,h=2,l=64,d=64,align=64;64;64;&")},
    {"window", TNI_TEMPLATES(ATTENTION_WINDOWS)},
    {"mask", TNI_TEMPLATES("b=2,h=2,l=35,d=24,mask=bool", "b=3,h=2,l=35,d=24,mask=padding",
                           "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=bool")},
    {"additive",
     TNI_TEMPLATES("b=2,h=2,l=35,d=24,mask=additive", "b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",
                   "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=additive")},
    {"groups", TNI_TEMPLATES("b=1,h=4,hk=1,lq=1,lk=300,d=64", "b=1,h=4,hk=2,lq=19,lk=67,d=32",
                             "b=1,h=6,hk=3,l=?q<60>,d=64")},
    {"softcap", TNI_TEMPLATES("b=1,h=2,l=35,d=24,softcap=5", "b=1,h=2,l=?q<60>,d=64,softcap=5")},
    {"sinks", TNI_TEMPLATES("b=1,h=2,l=35,d=24,sink=1", "b=1,h=2,l=?q<60>,d=64,sink=1")},
    {"lse", TNI_TEMPLATES("b=1,h=2,l=35,d=24,lse=1", "b=1,h=2,lq=9,lk=0,d=24,lse=1",
                          "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,lse=1")},
    {"dropout", TNI_TEMPLATES("b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
                              "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=9")},
    {"seed", TNI_TEMPLATES("b=1,h=2,l=35,d=24,dropout=0.25,seed=device",
                           "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=device")},
    {"packed", TNI_TEMPLATES("h=2,varlen=33;0;1;20,d=24", "h=2,varlen=33;5,varlenk=40;17,d=24",
                             "h=2,varlen=?q<40>;?k<40>,d=64")},
    {"lengths", TNI_TEMPLATES("b=3,h=2,l=35,d=24,used=1", "b=2,h=1,lq=5,lk=?k<90>,d=64,used=1")},
    {"pages",
     TNI_TEMPLATES("b=3,h=4,lq=3,lk=35,d=24,page=16", "b=2,h=2,lq=1,lk=?k<90>,d=64,page=16")},
    {"dv", TNI_TEMPLATES("b=2,h=2,l=70,d=48,dv=72", "b=1,h=2,l=?q<60>,d=64,dv=32")},
    {"strides", TNI_TEMPLATES(ATTENTION_STRIDES)},
    {"out", TNI_TEMPLATES("b=1,h=2,l=35,d=24,out=f32", "b=1,h=2,l=?q<60>,d=64,out=f32")},
    {"shift", TNI_TEMPLATES("b=2,h=2,lq=33,lk=70,d=16,mask=window-tl:-1;7,shift=5",
                            "b=1,h=1,lq=5,lk=40,d=64,mask=causal,shift=20")},
    {"together", TNI_TEMPLATES("b=2,h=4,hk=2,l=35,d=24,mask=causal;additive,lse=1",
                               "h=2,varlen=33;0;1;20,d=24,mask=causal-br,lse=1",
                               "b=3,h=4,hk=2,lq=3,lk=35,d=24,page=16,mask=causal-br")},
    {"nonfinite",
     TNI_TEMPLATES("b=1,h=2,l=35,d=24", "b=1,h=2,l=64,d=128,mask=causal",
                   "b=2,h=2,l=70,d=16,mask=window:9;3",
                   "b=1,h=4,hk=2,lq=19,lk=67,d=32,mask=causal-br", "b=2,h=2,l=35,d=24,mask=bool",
                   "b=3,h=2,l=35,d=24,mask=padding", "b=3,h=2,l=35,d=24,used=1",
                   "b=3,h=4,lq=3,lk=35,d=24,page=16", "h=2,varlen=33;0;1;20,d=24",
                   "b=1,h=2,lq=?q<40>,lk=?k<90>,d=64", "b=1,h=2,l=?q<90>,d=64,mask=causal")},
    {0},
};

/* Without a forward pass, LSE is such that the weights sum to about 1. */
tni_spread tni_attention_spread(const tn_op *op, int32_t operand)
{
    double keys = log((double)TN_PARAMS(op, attention)->keys + 1);
    if (operand == TN_ATTENTION_MASK)
        return (tni_spread){.low = -4, .high = 0};
    return operand == TN_ATTENTION_LSE ? (tni_spread){.low = keys, .high = keys + 1}
                                       : (tni_spread){.low = -1, .high = 1};
}

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    switch (operand) {
    case TN_ATTENTION_Q: return (tni_reads){(double)at->size, true};
    case TN_ATTENTION_K: return (tni_reads){(double)at->size * (double)at->keys, true};
    case TN_ATTENTION_V: return (tni_reads){(double)at->keys, false};
    default: return (tni_reads){0, true};
    }
}

/* Rows outside all packed sequences are not written. */
static bool leaves_output(const tn_op *op)
{
    return op->uses & TN_ATTENTION_USES_PACKED;
}

/* Dropout depends on positions in the whole problem. Sequences of tables are split by head. */
static int32_t split_dims(const tn_op *op)
{
    const uint64_t tables =
        TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PAGES;
    if (op->uses & TN_ATTENTION_USES_DROPOUT)
        return 0;
    return op->uses & tables ? 2 : 3;
}

/* The batch of a problem with tables stays whole; heads that share keys are split by the heads of
 * the keys. */
static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    if (d >= split_dims(op) || operand >= TN_ATTENTION_SINKS)
        return false;
    if (d == 0)
        return !(op->uses & (TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS));
    return d == 1 || (operand != TN_ATTENTION_K && operand != TN_ATTENTION_V);
}

/* Sets the positions of the part's queries, and its sinks. */
static void shift_part(const tn_op *op, const tni_part *part, tn_op *out, void **out_data)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_layout *sinks = &out->operand[TN_ATTENTION_SINKS];
    int64_t bytes = tni_dtype_bytes(sinks->dtype);
    bool corner = at->corner == TN_CORNER_BOTTOM_RIGHT;
    if (split_dims(op) > 2)
        TN_PARAMS_MUTABLE(out, attention)->shift +=
            part->begin[2] + (corner ? part->count[2] - at->queries : 0);
    if (sinks->dtype && split_dims(op) > 1) {
        out_data[TN_ATTENTION_SINKS] =
            (char *)out_data[TN_ATTENTION_SINKS] + part->begin[1] * sinks->stride[0] * bytes;
        sinks->shape[0] = part->count[1];
        sinks->alignment = sinks->alignment < bytes ? sinks->alignment : bytes;
    }
}

const tni_op_check tni_attention_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = tni_attention_spread,
    .reads = count_reads,
    .leaves_output = leaves_output,
    .is_table = tni_attention_is_table,
    .fill_table = tni_attention_fill_table,
    .bound = tni_attention_bound,
    .bound_init = tni_attention_bounds_init,
    .bound_release = tni_attention_bounds_release,
    .split_dims = split_dims,
    .is_split = is_split,
    .shift_part = shift_part,
};
