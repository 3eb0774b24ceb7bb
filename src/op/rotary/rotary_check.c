/* How kernels of rotary are checked. */
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/rotary.h"

static const char *const smoke[] = {
    "kind=halves,shape=4x8x128",        "kind=pairs,shape=4x8x128",
    "kind=halves,shape=3x5x16",         "kind=pairs,shape=3x5x16",
    "kind=halves,shape=3x5x70,size=34", "kind=pairs,shape=3x5x70,size=34",
    "!kind=halves,shape=7x18",          "kind=halves,shape=5x16,si=32;2",
    "kind=pairs,shape=5x16,so=48;3",    "kind=halves,shape=5x16,inplace=1",
    "kind=halves,shape=5x16,out=f32",   NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("kind=halves,shape=4x8x128", "kind=pairs,shape=4x8x128",
                   "kind=halves,shape=3x5x2", "kind=halves,shape=?a<12>x?b<12>x?c<40>*2",
                   "kind=pairs,shape=?a<12>x?b<12>x?c<40>*2", "kind=halves,shape=?a<30>x?c<40>*2")},
    {"alignment",
     TNI_TEMPLATES("kind=halves,shape=7x18,align=&;&;&;&", "kind=pairs,shape=8x64,align=&;64;64;64",
                   "kind=pairs,shape=8x64,align=64;&;64;64")},
    {"strides", TNI_TEMPLATES("kind=halves,shape=5x16,si=32;2", "kind=pairs,shape=5x16,so=48;3",
                              "kind=halves,shape=?a<30>x?c<40>*2,si=?c*2+6;1",
                              "kind=pairs,shape=?a<30>x?c<40>*2,so=?c*2+6;1",
                              "kind=halves,shape=5x16,si=-16;-1", "kind=pairs,shape=5x16,si=16;-1",
                              "kind=halves,shape=?a<30>x?c<40>*2,si=-?c*2;1",
                              "kind=pairs,shape=?a<30>x?c<40>*2,so=?c*2;-1")},
    {"broadcast",
     TNI_TEMPLATES("kind=halves,shape=5x16,si=0;1", "kind=pairs,shape=?a<30>x?c<40>*2,si=0;1",
                   "kind=halves,shape=?a<30>x?c<40>*2,si=1;0", "kind=pairs,shape=5x16,si=0;0")},
    {"out",
     TNI_TEMPLATES("kind=halves,shape=5x16,out=f32", "kind=pairs,shape=?a<30>x?c<40>*2,out=f32")},
    {"in-place", TNI_TEMPLATES("kind=halves,shape=5x16,inplace=1",
                               "kind=pairs,shape=?a<30>x?c<40>*2,inplace=1")},
    {"partial", TNI_TEMPLATES("kind=halves,shape=3x5x70,size=34", "kind=pairs,shape=3x5x70,size=34",
                              "kind=halves,shape=?a<20>x?c<40>*4,size=?c*2",
                              "kind=pairs,shape=?a<20>x?c<40>*4,size=?c*2")},
    {"nonfinite", TNI_TEMPLATES("kind=halves,shape=5x16", "kind=pairs,shape=5x16",
                                "kind=halves,shape=?a<12>x?b<12>x?c<40>*2",
                                "kind=pairs,shape=?a<12>x?b<12>x?c<40>*2")},
    {0},
};

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    (void)op;
    return (tni_reads){.elements = operand == TN_ELEMENTWISE_IN ? 4 : 0};
}

static double bound_rotary(tni_bounds *b, const tni_place *place, double size)
{
    const tn_elementwise_op *each = TN_PARAMS(b->op, elementwise);
    int32_t last = b->op->operand[TN_ELEMENTWISE_IN].rank - 1;
    int64_t i = place->index[last], half = each->size / 2;
    (void)size;
    tni_place other = *place, angle = *place;
    if (i >= each->size)
        return 0;
    bool pairs = each->kind == TN_ROTARY_PAIRS;
    other.index[last] = pairs ? i ^ 1 : i < half ? i + half : i - half;
    angle.index[last] = pairs ? i / 2 : i % half;
    double c = tni_number_size(tni_bounds_input(b, TN_ROTARY_COS, &angle));
    double s = tni_number_size(tni_bounds_input(b, TN_ROTARY_SIN, &angle));
    double sizes = tni_number_size(tni_bounds_input(b, TN_ELEMENTWISE_IN, place)) +
                   tni_number_size(tni_bounds_input(b, TN_ELEMENTWISE_IN, &other));
    return 4 * b->work * sizes * (c > s ? c : s);
}

const tni_op_check tni_rotary_check = {
    .smoke = smoke,
    .aspects = aspects,
    .reads = count_reads,
    .bound = bound_rotary,
    .split_dims = tni_split_rows,
};
