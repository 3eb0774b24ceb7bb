/* How kernels of attention-merge are checked. */
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/attention_merge.h"

static const char *const smoke[] = {
    "b=2,h=3,l=17,d=64,lse=1",
    "b=1,h=2,l=33,d=40",
    "!b=1,h=1,l=7,d=5,lse=1",
    "b=2,h=3,l=17,d=64,layout=blhd",
    "b=1,h=2,l=9,d=24,si=864;432;48;2,lse=1",
    "b=1,h=2,l=9,d=24,out=f32",
    "b=1,h=2,l=9,d=24,out=bf16",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("b=1,h=1,l=1,d=1", "b=2,h=3,l=17,d=64,lse=1", "b=1,h=2,l=33,d=40",
                             "b=?b<3>,h=?h<4>,l=?l<60>,d=?d<90>,lse=1")},
    {"alignment",
     TNI_TEMPLATES("b=1,h=1,l=7,d=5,align=&;8;&;8;&", "b=1,h=2,l=33,d=64,align=&;64;&;64;64",
                   "b=1,h=1,l=7,d=5,lse=1,align=&;8;&;8;&;8")},
    {"strides",
     TNI_TEMPLATES("b=2,h=3,l=17,d=64,layout=blhd", "b=1,h=2,l=9,d=24,si=864;432;48;2,lse=1",
                   "b=1,h=2,l=?l<60>,d=64,layout=blhd,lse=1",
                   "b=1,h=2,l=9,d=24,si=432;216;-24;1,lse=1",
                   "b=1,h=2,l=9,d=24,si=432;216;24;-1,lse=1",
                   "b=1,h=2,l=9,d=24,so=432;216;-24;1,lse=1", "b=1,h=2,l=9,d=24,si=216;0;24;1")},
    {"out", TNI_TEMPLATES("b=1,h=2,l=9,d=24,out=f32", "b=1,h=2,l=?l<60>,d=64,out=f32,lse=1")},
    {0},
};

static double size_at(const tni_bounds *bounds, int32_t operand, const tni_place *place)
{
    double x = tni_bounds_input(bounds, operand, place).re;
    return tni_is_infinite(x) ? 0 : fabs(x);
}

static double bound_merge(tni_bounds *bounds, const tni_place *place, double size)
{
    bool lse = bounds->output == TN_MERGE_LSE;
    double a = size_at(bounds, lse ? TN_MERGE_LSE_IN : TN_MERGE_IN, place);
    double b = size_at(bounds, lse ? TN_MERGE_LSE_OTHER : TN_MERGE_OTHER, place);
    if (lse)
        return tni_is_infinite(size) ? 0 : 16 * bounds->work * (1 + a + b);
    return 64 * bounds->work * (a + b);
}

const tni_op_check tni_attention_merge_check = {
    .smoke = smoke,
    .aspects = aspects,
    .bound = bound_merge,
    .split_dims = tni_split_rows,
};
