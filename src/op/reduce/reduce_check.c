/* How kernels of reduce are checked. */
#include "op/bounds.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/module/op/reduce.h"

static const char *const smoke[] = {
    "kind=sum,shape=16x256,axes=1",       "kind=max,shape=16x256,axes=1",
    "kind=sum,shape=5x67,axes=1",         "kind=mean,shape=5x67,axes=1",
    "kind=max,shape=5x67,axes=1",         "kind=min,shape=5x67,axes=1",
    "kind=prod,shape=5x67,axes=1",        "kind=sum,shape=3x5x7,axes=2",
    "kind=sum,shape=1000,axes=1",         "kind=max,shape=9x11,axes=1,si=1;9",
    "!kind=sum,shape=77,axes=1",          "kind=sum,shape=9x11,axes=1,si=0;1",
    "kind=sum,shape=5x67,axes=1,out=f32", NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("kind=sum,shape=1,axes=1", "kind=sum,shape=1000,axes=1",
                   "kind=sum,shape=16x256,axes=1", "kind=sum,shape=?a<40>x?b<300>,axes=1",
                   "kind=mean,shape=?a<40>x?b<300>,axes=1", "kind=max,shape=?a<40>x?b<300>,axes=1",
                   "kind=min,shape=?a<40>x?b<300>,axes=1", "kind=prod,shape=?a<40>x?b<40>,axes=1",
                   "kind=sum,shape=3x5x7,axes=2", "kind=mean,shape=3x5x7,axes=3",
                   "kind=sum,shape=3x?b<4099>,axes=1")},
    {"alignment",
     TNI_TEMPLATES("kind=sum,shape=77,axes=1,align=&;&", "kind=max,shape=16x256,axes=1,align=&;64",
                   "kind=max,shape=16x256,axes=1,align=64;&")},
    {"strides",
     TNI_TEMPLATES(
         "kind=max,shape=9x11,axes=1,si=1;9", "kind=sum,shape=?a<30>x?b<60>,axes=1,si=?b+5;1",
         "kind=sum,shape=?a<30>x?b<60>,axes=1,si=1;?a",
         "kind=min,shape=?a<30>x?b<60>,axes=1,si=?b*2;2", "kind=sum,shape=9x11,axes=1,si=-11;-1",
         "kind=max,shape=?a<30>x?b<60>,axes=1,si=-?b;1",
         "kind=sum,shape=?a<30>x?b<60>,axes=1,si=?b;-1", "kind=sum,shape=3x5x7,axes=2,si=35;-7;1")},
    {"broadcast",
     TNI_TEMPLATES(
         "kind=sum,shape=9x11,axes=1,si=0;1", "kind=mean,shape=?a<30>x?b<60>,axes=1,si=0;1",
         "kind=sum,shape=9x11,axes=1,si=1;0", "kind=sum,shape=?a<30>x?b<60>,axes=1,si=1;0",
         "kind=max,shape=9x11,axes=1,si=0;0", "kind=sum,shape=3x5x7,axes=2,si=7;0;1")},
    {"out", TNI_TEMPLATES("kind=sum,shape=5x67,axes=1,out=f32",
                          "kind=mean,shape=?a<30>x?b<60>,axes=1,out=f32")},
    {"nonfinite",
     TNI_TEMPLATES("kind=sum,shape=9x11,axes=1", "kind=sum,shape=?a<40>x?b<300>,axes=1",
                   "kind=mean,shape=?a<40>x?b<300>,axes=1", "kind=max,shape=?a<40>x?b<300>,axes=1",
                   "kind=min,shape=?a<40>x?b<300>,axes=1", "kind=prod,shape=?a<40>x?b<40>,axes=1",
                   "kind=max,shape=16x256,axes=1", "kind=min,shape=13x5x7,axes=2",
                   "kind=max,shape=?a<30>x?b<60>,axes=1,si=1;?a")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)operand;
    return TN_PARAMS(op, elementwise)->kind == TN_REDUCE_PROD
               ? (tni_spread){.low = 0.5, .high = 1.5}
               : (tni_spread){.low = -1, .high = 1};
}

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    return (tni_reads){
        .elements = operand == TN_ELEMENTWISE_IN ? (double)TN_PARAMS(op, elementwise)->size : 0};
}

static double bound_reduce(tni_bounds *b, const tni_place *place, double size)
{
    const tn_elementwise_op *each = TN_PARAMS(b->op, elementwise);
    if (each->kind == TN_REDUCE_MAX || each->kind == TN_REDUCE_MIN)
        return 0;
    if (each->kind == TN_REDUCE_PROD)
        return 2 * b->sum * b->work * size;
    tni_bounds_read_row(b, *place, each->axes);
    double bound = b->sum * b->work * b->total + 2 * b->work * size;
    return each->kind == TN_REDUCE_MEAN && each->size > 0 ? bound / (double)each->size : bound;
}

static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    return d < op->operand[operand].rank - TN_PARAMS(op, elementwise)->axes;
}

const tni_op_check tni_reduce_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .reads = count_reads,
    .bound = bound_reduce,
    .terms = tni_elementwise_terms,
    .is_split = is_split,
};
