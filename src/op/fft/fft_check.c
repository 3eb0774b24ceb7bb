/* How kernels of fft are checked. */
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/fft.h"

static const char *const smoke[] = {
    "shape=4x64",
    "shape=3x60",
    "!shape=3x77",
    "shape=2x67",
    "shape=2x1009",
    "shape=2x4096",
    "shape=3x45,dir=inverse",
    "shape=3x45,norm=ortho",
    "shape=3x45,norm=forward",
    "shape=2x12x10,dims=2",
    "shape=2x6x5x8,dims=3,dir=inverse",
    "shape=7x20,si=40;2",
    "shape=7x20,so=1;9",
    "shape=3x64,out=f32,dir=inverse", /* of c64 alone, and the next of c128 */
    "shape=3x64,out=f64,dir=inverse",
    "shape=2x45,out=f32",
    "shape=2x45,out=f64",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes",
     TNI_TEMPLATES("shape=1", "shape=7x1", "shape=2x2", "shape=3x3", "shape=3x4", "shape=8",
                   "shape=5x16", "shape=3x64", "shape=?a<9>x?b<20>", "shape=?a<9>x?b<300>",
                   "shape=3x?b<4099>", "shape=2x1024", "shape=2x8192", "shape=65536")},
    {"lengths", TNI_TEMPLATES("shape=3x5", "shape=3x7", "shape=3x11", "shape=2x13", "shape=2x25",
                              "shape=2x343", "shape=2x360", "shape=2x1331", "shape=2x17",
                              "shape=2x97", "shape=2x211", "shape=2x2003", "shape=1x2310",
                              "shape=2x15625", "shape=1x3125", "shape=30030")},
    {"alignment",
     TNI_TEMPLATES("shape=3x77,align=&;&", "shape=4x256,align=&;64", "shape=4x256,align=64;&")},
    {"strides",
     TNI_TEMPLATES("shape=9x12,si=24;2", "shape=9x12,so=36;3", "shape=?a<30>x?b<60>,si=?b+5;1",
                   "shape=?a<30>x?b<60>,so=?b+5;1", "shape=?a<30>x?b<60>,si=1;?a",
                   "shape=?a<30>x?b<60>,so=1;?a", "shape=9x12,si=-12;-1",
                   "shape=?a<30>x?b<60>,si=-?b;1", "shape=?a<30>x?b<60>,so=?b;-1",
                   "shape=6x5x8,dims=2,si=1;6;30", "shape=6x5x8,dims=2,so=1;6;30")},
    {"broadcast", TNI_TEMPLATES("shape=9x12,si=0;1", "shape=9x12,si=1;0", "shape=9x12,si=0;0",
                                "shape=3x4x12,dims=2,si=0;12;1", "shape=3x4x12,dims=2,si=48;0;1")},
    {"in-place", TNI_TEMPLATES("shape=5x67,inplace=1", "shape=5x64,inplace=1,dir=inverse",
                               "shape=?a<9>x?b<200>,inplace=1", "shape=2x12x10,dims=2,inplace=1")},
    {"dims", TNI_TEMPLATES("shape=8x8,dims=2", "shape=3x12x10,dims=2", "shape=2x6x5x8,dims=3",
                           "shape=?a<5>x?b<20>x?c<20>,dims=2", "shape=7x1x9,dims=3",
                           "shape=2x128x96,dims=2,dir=inverse", "shape=2x17x67,dims=2")},
    {"norms",
     TNI_TEMPLATES("shape=3x45,norm=ortho", "shape=3x45,norm=forward", "shape=3x64,dir=inverse",
                   "shape=3x64,dir=inverse,norm=ortho", "shape=3x64,dir=inverse,norm=forward",
                   "shape=2x8x9,dims=2,norm=ortho")},
    /* Templates with out=c64 are for c64 and f32, and so on. */
    {"real",
     TNI_TEMPLATES(
         "shape=8,out=c64", "shape=8,out=f32,dir=inverse", "shape=8,out=c128",
         "shape=8,out=f64,dir=inverse", "shape=3x1,out=f32,dir=inverse",
         "shape=3x2,out=f64,dir=inverse", "shape=3x45,out=f32,dir=inverse", "shape=3x45,out=f64",
         "shape=?a<9>x?b<300>,out=f32,dir=inverse", "shape=?a<9>x?b<300>,out=f64,dir=inverse",
         "shape=?a<9>x?b<300>,out=c64", "shape=?a<9>x?b<300>,out=c128,dir=inverse",
         "shape=2x67,out=f32", "shape=2x1009,out=f64,dir=inverse",
         "shape=2x8192,out=f32,dir=inverse", "shape=3x64,out=f64,dir=inverse,norm=ortho",
         "shape=3x64,out=f32,norm=forward", "shape=3x12x10,dims=2,out=f32,dir=inverse",
         "shape=7x9,dims=2,out=f64,dir=inverse", "shape=3x12x10,dims=2,out=c128",
         "shape=2x6x5x8,dims=3,out=f64,dir=inverse", "shape=9x12,out=f32,dir=inverse,si=14;2",
         "shape=9x12,out=f64,dir=inverse,so=36;3", "shape=9x12,out=f32,dir=inverse,si=1;9,so=1;9",
         "shape=?a<9>x?b<300>,out=c64,so=1;?a", "shape=?a<9>x?b<300>,out=f64,dir=inverse,si=1;?a")},
    {0},
};

/* Sets bounds->total to the sum of |x| of the transform that begins at the place. */
static void read_transform(tni_bounds *b, tni_place place)
{
    const tn_fft_op *fft = TN_PARAMS(b->op, fft);
    const tn_layout *in = &b->op->operand[TN_FFT_IN];
    b->total = 0;
    for (bool more = true; more;) {
        b->total += tni_number_size(tni_bounds_input(b, TN_FFT_IN, &place));
        more = false;
        for (int32_t d = in->rank; d-- > in->rank - fft->dims && !more;) {
            more = ++place.index[d] < in->shape[d];
            place.index[d] = more ? place.index[d] : 0;
        }
    }
    b->total *= fft->kind == TN_FFT_COMPLEX_TO_REAL ? 2 : 1;
}

static double bound_fft(tni_bounds *b, const tni_place *place, double size)
{
    const tn_fft_op *fft = TN_PARAMS(b->op, fft);
    const int32_t rank = b->op->operand[TN_FFT_OUT].rank;
    bool first = true;
    (void)size;
    for (int32_t d = rank - fft->dims; d < rank; d++)
        first = first && place->index[d] == 0;
    if (first)
        read_transform(b, *place);
    return 4 * (4 + log2((double)fft->points)) * b->work * b->total * fft->scale;
}

static int32_t split_batch(const tn_op *op)
{
    return op->operand[TN_FFT_OUT].rank - TN_PARAMS(op, fft)->dims;
}

const tni_op_check tni_fft_check = {
    .smoke = smoke,
    .aspects = aspects,
    .bound = bound_fft,
    .split_dims = split_batch,
};
