/* How kernels of norm are checked. */
#include "op/bounds.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/module/op/norm.h"

static const char *const smoke[] = {
    "kind=layer,shape=8x1024,weight=1",
    "kind=rms,shape=8x1024,weight=1",
    "kind=layer,shape=5x67",
    "kind=layer,shape=5x67,weight=1",
    "kind=layer,shape=3x1000,weight=1,bias=1",
    "kind=rms,shape=5x67",
    "kind=rms,shape=5x67,weight=1",
    "kind=rms,shape=3x1000,weight=1,bias=1",
    "!kind=rms,shape=3x77,weight=1",
    "kind=layer,shape=9x11,si=22;2",
    "kind=rms,shape=9x11,so=33;3",
    "kind=rms,shape=9x11,si=0;1",
    "kind=layer,shape=5x67,inplace=1",
    "kind=rms,shape=5x67,out=f32",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("kind=layer,shape=5x67", "kind=rms,shape=5x67",
                             "kind=layer,shape=?a<40>x?b<300>", "kind=rms,shape=?a<40>x?b<300>",
                             "kind=rms,shape=8x1024", "kind=layer,shape=2x3x64",
                             "kind=rms,shape=3x?b<4099>,eps=0.01")},
    {"alignment",
     TNI_TEMPLATES("kind=rms,shape=3x77,align=&;&", "kind=layer,shape=16x256,align=&;64",
                   "kind=layer,shape=16x256,align=64;&",
                   "kind=rms,shape=3x77,weight=1,align=&;&;&")},
    {"strides",
     TNI_TEMPLATES("kind=layer,shape=9x11,si=22;2", "kind=rms,shape=9x11,so=33;3",
                   "kind=rms,shape=?a<30>x?b<60>,si=?b+5;1",
                   "kind=layer,shape=?a<30>x?b<60>,so=?b+5;1", "kind=layer,shape=9x11,si=-11;-1",
                   "kind=rms,shape=?a<30>x?b<60>,si=-?b;1",
                   "kind=rms,shape=?a<30>x?b<60>,weight=1,si=?b;-1",
                   "kind=layer,shape=?a<30>x?b<60>,weight=1,so=?b;-1",
                   "kind=rms,shape=?a<30>x?b<60>,so=-?b;1")},
    {"broadcast",
     TNI_TEMPLATES("kind=rms,shape=9x11,si=0;1", "kind=layer,shape=?a<30>x?b<60>,si=0;1",
                   "kind=rms,shape=?a<30>x?b<60>,si=1;0", "kind=rms,shape=9x11,si=0;-1")},
    {"out", TNI_TEMPLATES("kind=rms,shape=5x67,out=f32", "kind=layer,shape=?a<30>x?b<60>,out=f32")},
    {"in-place",
     TNI_TEMPLATES("kind=layer,shape=5x67,inplace=1", "kind=rms,shape=?a<30>x?b<60>,inplace=1")},
    {"weight", TNI_TEMPLATES("kind=layer,shape=5x67,weight=1", "kind=rms,shape=8x1024,weight=1",
                             "kind=rms,shape=?a<40>x?b<300>,weight=1",
                             "kind=layer,shape=?a<40>x?b<300>,weight=1",
                             "kind=rms,shape=?a<30>x?b<60>,weight=f32")},
    {"bias", TNI_TEMPLATES("kind=layer,shape=3x1000,weight=1,bias=1",
                           "kind=rms,shape=3x1000,weight=1,bias=1",
                           "kind=layer,shape=?a<40>x?b<300>,bias=1")},
    {"nonfinite",
     TNI_TEMPLATES("kind=layer,shape=9x11", "kind=rms,shape=9x11", "kind=rms,shape=8x1024",
                   "kind=layer,shape=?a<40>x?b<300>", "kind=rms,shape=?a<40>x?b<300>",
                   "kind=rms,shape=?a<40>x?b<300>,weight=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)op;
    return operand == TN_NORM_WEIGHT ? (tni_spread){.low = 0.5, .high = 1.5}
                                     : (tni_spread){.low = -1, .high = 1};
}

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    return (tni_reads){
        .elements = operand == TN_ELEMENTWISE_IN ? (double)TN_PARAMS(op, elementwise)->size : 0};
}

static double bound_norm(tni_bounds *b, const tni_place *place, double size)
{
    tni_bounds_enter_row(b, place);
    const tn_elementwise_op *each = TN_PARAMS(b->op, elementwise);
    double variance = each->kind == TN_NORM_LAYER ? b->square - b->mean * b->mean : b->square;
    double by = (variance > 0 ? variance : 0) + each->value;
    double x = tni_number_size(tni_bounds_input(b, TN_ELEMENTWISE_IN, place)), weight = 1, bias = 0;
    if (b->op->operand[TN_NORM_WEIGHT].dtype)
        weight = tni_number_size(tni_bounds_input(b, TN_NORM_WEIGHT, place));
    if (b->op->operand[TN_NORM_BIAS].dtype)
        bias = tni_number_size(tni_bounds_input(b, TN_NORM_BIAS, place));
    double scaled = (sqrt(b->square) + x) / sqrt(by) * (1 + b->square / by);
    return (b->sum + 16) * b->work * scaled * weight + 4 * b->work * (size + bias);
}

const tni_op_check tni_norm_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .reads = count_reads,
    .bound = bound_norm,
    .terms = tni_elementwise_terms,
    .split_dims = tni_split_rows,
};
