/* How kernels of softmax are checked. */
#include "op/bounds.h"
#include "op/elementwise.h"
#include "op/op_check.h"

static const char *const smoke[] = {
    "shape=8x1024",      "shape=5x67",           "shape=3x1000",       "shape=7x1",
    "!shape=3x77",       "shape=5x67,log=1",     "shape=9x11,si=22;2", "shape=9x11,so=33;3",
    "shape=9x11,si=0;1", "shape=5x67,inplace=1", "shape=5x67,out=f32", NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("shape=7x1", "shape=8x1024", "shape=3x1000", "shape=?a<40>x?b<300>",
                             "shape=2x3x64", "shape=3x?b<4099>", "shape=?a<300>x?b<8>")},
    {"alignment",
     TNI_TEMPLATES("shape=3x77,align=&;&", "shape=16x256,align=&;64", "shape=16x256,align=64;&")},
    {"strides", TNI_TEMPLATES("shape=9x11,si=22;2", "shape=9x11,so=33;3",
                              "shape=?a<30>x?b<60>,si=?b+5;1", "shape=?a<30>x?b<60>,so=?b+5;1",
                              "shape=?a<30>x?b<60>,si=1;?a", "shape=9x11,si=-11;-1",
                              "shape=?a<30>x?b<60>,si=-?b;1", "shape=?a<30>x?b<60>,si=?b;-1",
                              "shape=?a<30>x?b<60>,so=?b;-1", "shape=?a<30>x?b<60>,so=-?b;1")},
    {"broadcast",
     TNI_TEMPLATES("shape=9x11,si=0;1", "shape=?a<30>x?b<60>,si=0;1", "shape=?a<30>x?b<60>,si=1;0",
                   "shape=9x11,si=0;0", "shape=9x11,si=0;-1")},
    {"out", TNI_TEMPLATES("shape=5x67,out=f32", "shape=?a<30>x?b<60>,out=f32")},
    {"in-place", TNI_TEMPLATES("shape=5x67,inplace=1", "shape=?a<30>x?b<60>,inplace=1")},
    {"log", TNI_TEMPLATES("shape=5x67,log=1", "shape=8x1024,log=1", "shape=?a<30>x?b<300>,log=1")},
    {"nonfinite", TNI_TEMPLATES("shape=9x11", "shape=8x1024", "shape=?a<40>x?b<300>",
                                "shape=?a<300>x?b<8>", "shape=?a<40>x?b<300>,log=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)op, (void)operand;
    return (tni_spread){.low = -4, .high = 4};
}

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    return (tni_reads){
        .elements = operand == TN_ELEMENTWISE_IN ? (double)TN_PARAMS(op, elementwise)->size : 0};
}

static double bound_softmax(tni_bounds *b, const tni_place *place, double size)
{
    tni_bounds_enter_row(b, place);
    double factor = (32 + b->sum + 4 * b->greatest) * b->work;
    return factor * (b->op->uses & TN_ELEMENTWISE_USES_LOG ? 1 + size : size);
}

const tni_op_check tni_softmax_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .reads = count_reads,
    .bound = bound_softmax,
    .terms = tni_elementwise_terms,
    .split_dims = tni_split_rows,
};
