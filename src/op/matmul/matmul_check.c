/* How kernels of matmul are checked. */
#include "base/alloc.h"
#include "op/bounds.h"
#include "op/op_check.h"
#include "tenon/module/op/matmul.h"

static const char *const smoke[] = {
    "m=17,n=13,k=31",
    "!m=17,n=13,k=31",
    "m=1,n=33,k=65",
    "m=33,n=1,k=7,ta=1",
    "m=1,n=1,k=1",
    "m=3,n=4,k=0",
    "m=16,n=16,k=32,tb=1",
    "m=19,n=23,k=29,ta=1,tb=1",
    "m=5,n=7,k=3,batch=2x3",
    "m=64,n=32,k=16,batch=4",
    "m=16,n=24,k=8,batch=3,sa=0;8;1",
    "m=9,n=8,k=5,batch=2,sb=0;8;1",
    "m=9,n=11,k=13,sa=39;3,sb=22;2,sc=33;3",
    "m=9,n=11,k=13,sa=20;1,sb=24;1,sc=16;1",
    "m=8,n=12,k=10,sc=1;8",
    "m=15,n=17,k=19,alpha=0.75",
    "m=15,n=17,k=19,beta=0.5",
    "m=15,n=17,k=0,beta=0.5",
    "m=32,n=32,k=32,alpha=-1.5,beta=1",
    "m=15,n=17,k=19,bias=1",
    "m=15,n=17,k=19,bias=1,act=relu",
    "m=15,n=17,k=19,act=gelu",
    "m=15,n=17,k=19,act=gelu-tanh",
    "m=15,n=17,k=19,alpha=0.5,bias=1,act=silu",
    "m=15,n=17,k=19,out=f32",
    "m=15,n=17,k=19,acc=$",
    "m=15,n=17,k=19,acc=f64",
    "m=17,n=13,k=31,grouped=1",
    "m=32,n=24,k=16,tb=1,alpha=0.5,beta=1,grouped=1",
    "m=64,n=64,k=64",
    "m=64,n=64,k=64,out=f32",
    "m=128,n=96,k=256",
    "m=128,n=128,k=128",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. Sizes on both sides of powers of
 * two, single rows and columns, one large dimension at a time, and multiples of 16 and 64 for
 * kernels that require them. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("m=1,n=1,k=1", "m=3,n=4,k=0", "m=17,n=13,k=31", "m=16,n=16,k=16",
                             "m=64,n=64,k=64", "m=63,n=65,k=33", "m=1,n=?n<300>,k=?k<300>",
                             "m=?m<300>,n=1,k=?k<300>", "m=?m<300>,n=?n<300>,k=1",
                             "m=?m<40>,n=?n<40>,k=?k<40>", "m=?m<160>,n=?n<160>,k=?k<160>",
                             "m=?m<8>*16,n=?n<8>*16,k=?k<8>*16", "m=?m<3>*64,n=?n<3>*64,k=?k<3>*64",
                             "m=1025,n=9,k=17", "m=9,n=1031,k=17", "m=7,n=5,k=4099",
                             "m=1024,n=16,k=64", "m=16,n=1024,k=64", "m=16,n=16,k=2048",
                             "m=257,n=129,k=65", "m=?m<80>,n=?n<80>,k=?k<80>,grouped=1")},
    {"pitches",
     TNI_TEMPLATES("m=9,n=11,k=13,sa=20;1,sb=24;1,sc=16;1", "m=?m<90>,n=?n<90>,k=?k<90>,sa=?k+5;1",
                   "m=?m<90>,n=?n<90>,k=?k<90>,sb=?n+3;1", "m=?m<90>,n=?n<90>,k=?k<90>,sc=?n+7;1",
                   "m=?m<6>*16,n=?n<6>*16,k=?k<6>*16,sa=?k*16+64;1,sb=?n*16+64;1,sc=?n*16+64;1",
                   "m=64,n=64,k=64,sa=80;1,sb=80;1,sc=80;1")},
    {"alignment", TNI_TEMPLATES("m=17,n=13,k=31,align=&;&;~", "m=64,n=64,k=64,align=&;64;64",
                                "m=64,n=64,k=64,align=64;&;64", "m=64,n=64,k=64,align=64;64;~",
                                "m=33,n=40,k=48,align=16;16;16", "m=32,n=32,k=32,align=32;32;32",
                                "m=?m<80>,n=?n<80>,k=?k<80>,align=&;&;~")},
    {"batch", TNI_TEMPLATES("m=5,n=7,k=3,batch=2x3", "m=64,n=32,k=16,batch=4",
                            "m=32,n=48,k=64,batch=2x2x2", "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>",
                            "m=5,n=7,k=3,batch=3,sa=-15;3;1,sc=-35;7;1",
                            "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>,sb=-?k*?n;?n;1")},
    {"broadcast", TNI_TEMPLATES("m=16,n=24,k=8,batch=3,sa=0;8;1", "m=9,n=8,k=5,batch=2,sb=0;8;1",
                                "m=32,n=32,k=64,batch=4,sa=0;64;1",
                                "m=?m<50>,n=?n<50>,k=?k<50>,batch=?b<4>,sa=0;?k;1",
                                "m=?m<50>,n=?n<50>,k=?k<50>,batch=?b<4>,sb=0;?n;1")},
    {"transpose",
     TNI_TEMPLATES("m=33,n=5,k=7,ta=1", "m=16,n=16,k=32,tb=1", "m=64,n=64,k=64,ta=1,tb=1",
                   "m=?m<90>,n=?n<90>,k=?k<90>,ta=1", "m=?m<90>,n=?n<90>,k=?k<90>,tb=1",
                   "m=?m<90>,n=?n<90>,k=?k<90>,ta=1,tb=1")},
    {"strides",
     TNI_TEMPLATES("m=9,n=11,k=13,sa=39;3,sb=22;2,sc=33;3", "m=8,n=12,k=10,sc=1;8",
                   "m=64,n=64,k=64,sa=128;2", "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k*2;2",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sb=?n*3;3", "m=?m<50>,n=?n<50>,k=?k<50>,sc=?n*2;2",
                   "m=9,n=11,k=13,sa=13;-1,sb=-11;1,sc=-11;-1", "m=64,n=64,k=64,sa=64;-1",
                   "m=64,n=64,k=64,sb=-64;1", "m=64,n=64,k=64,sc=-64;1",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k;-1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=-?k;1",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sb=?n;-1", "m=?m<50>,n=?n<50>,k=?k<50>,sb=1;-?k",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sc=?n;-1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=-?k*2;-2",
                   "m=9,n=11,k=13,sa=0;1,sb=1;0", "m=9,n=11,k=13,sa=0;0", "m=64,n=64,k=64,sa=0;1",
                   "m=64,n=64,k=64,sb=0;1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=0;1",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sa=1;0", "m=?m<50>,n=?n<50>,k=?k<50>,sb=0;1",
                   "m=?m<50>,n=?n<50>,k=?k<50>,sb=1;0")},
    {"alpha", TNI_TEMPLATES("m=15,n=17,k=19,alpha=0.75", "m=64,n=64,k=64,alpha=-1.5",
                            "m=15,n=17,k=19,alpha=0", "m=?m<90>,n=?n<90>,k=?k<90>,alpha=2.5")},
    {"beta", TNI_TEMPLATES("m=15,n=17,k=19,beta=0.5", "m=15,n=17,k=0,beta=0.5",
                           "m=64,n=64,k=64,beta=1", "m=?m<90>,n=?n<90>,k=?k<90>,beta=-0.75")},
    {"bias", TNI_TEMPLATES("m=15,n=17,k=19,bias=1", "m=64,n=64,k=64,bias=1",
                           "m=?m<90>,n=?n<90>,k=?k<90>,bias=1",
                           "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=1;0",
                           "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=?n;1",
                           "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=0;-1",
                           "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=-?n;1",
                           "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=0;0")},
    {"activation", TNI_TEMPLATES("m=15,n=17,k=19,act=relu", "m=15,n=17,k=19,act=gelu",
                                 "m=15,n=17,k=19,act=gelu-tanh", "m=15,n=17,k=19,act=silu",
                                 "m=64,n=64,k=64,act=relu", "m=64,n=64,k=64,act=gelu",
                                 "m=64,n=64,k=64,act=gelu-tanh", "m=64,n=64,k=64,act=silu",
                                 "m=?m<90>,n=?n<90>,k=?k<90>,act=relu")},
    {"out",
     TNI_TEMPLATES("m=15,n=17,k=19,out=f32", "m=15,n=17,k=19,out=f16", "m=15,n=17,k=19,out=bf16",
                   "m=15,n=17,k=19,out=f64", "m=64,n=64,k=64,out=f32", "m=64,n=64,k=64,out=bf16",
                   "m=?m<90>,n=?n<90>,k=?k<90>,out=f32")},
    {"acc",
     TNI_TEMPLATES("m=15,n=17,k=19,acc=$", "m=15,n=17,k=19,acc=f64", "m=15,n=17,k=19,acc=f32",
                   "m=64,n=64,k=64,acc=$", "m=64,n=64,k=64,acc=f64")},
    {"scales",
     TNI_TEMPLATES("m=16,n=16,k=32,scale_a=tensor,scale_b=tensor", "m=17,n=13,k=31,scale_a=rows",
                   "m=17,n=13,k=31,scale_b=columns", "m=64,n=64,k=64,scale_a=rows,scale_b=columns",
                   "m=64,n=64,k=64,tb=1,scale_a=tensor,scale_b=tensor")},
    {"far-factors",
     TNI_TEMPLATES("m=15,n=17,k=19,alpha=1e-60", "m=64,n=64,k=64,alpha=1e-60,beta=0.5")},
    {"together", TNI_TEMPLATES("m=32,n=24,k=16,tb=1,alpha=0.5,beta=1",
                               "m=15,n=17,k=19,alpha=0.5,bias=1,act=silu",
                               "m=33,n=20,k=17,ta=1,alpha=0.5,beta=-1,bias=1,act=relu",
                               "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<4>,tb=1,bias=1,act=gelu",
                               "m=?m<60>,n=?n<60>,k=?k<60>,ta=1,tb=1,alpha=-0.5,beta=0.25",
                               "m=?m<60>,n=?n<60>,k=?k<60>,tb=1,bias=1,out=f32")},
    {"nonfinite",
     TNI_TEMPLATES("m=9,n=11,k=13", "m=33,n=40,k=48", "m=64,n=64,k=64", "m=257,n=129,k=65",
                   "m=1,n=?n<300>,k=?k<300>", "m=?m<300>,n=1,k=?k<300>",
                   "m=?m<90>,n=?n<90>,k=?k<90>", "m=?m<90>,n=?n<90>,k=?k<90>,ta=1",
                   "m=?m<90>,n=?n<90>,k=?k<90>,tb=1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k*2;2",
                   "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>", "m=?m<90>,n=?n<90>,k=?k<90>,alpha=2.5",
                   "m=?m<90>,n=?n<90>,k=?k<90>,beta=0.5", "m=?m<90>,n=?n<90>,k=?k<90>,bias=1")},
    {0},
};

static tni_spread spread_floats(const tn_op *op, int32_t operand)
{
    (void)op;
    return operand >= TN_MATMUL_SCALE_A ? (tni_spread){.low = 0.25, .high = 2}
                                        : (tni_spread){.low = -1, .high = 1};
}

static tni_reads count_reads(const tn_op *op, int32_t operand)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    if (operand == TN_MATMUL_A || operand == TN_MATMUL_B)
        return (tni_reads){.elements = mm->alpha != 0 ? (double)mm->k : 0};
    return (tni_reads){.elements = operand == TN_MATMUL_OUT || operand == TN_MATMUL_BIAS ? 4 : 0};
}

static bool reads_output(const tn_op *op)
{
    return TN_PARAMS(op, matmul)->beta != 0;
}

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

/* Norms of the rows of A and of the columns of B, of the current matrices. */
typedef struct norms {
    double *rows, *columns;
} norms;

/* The norm of a row of A or a column of B: the elements of one matrix along one dimension. */
static double norm_of(const tni_bounds *b, int32_t operand, tni_place place, int32_t along)
{
    double squares = 0;
    for (int64_t i = 0; i < TN_PARAMS(b->op, matmul)->k; i++) {
        place.index[along] = i;
        tni_number x = tni_bounds_input(b, operand, &place);
        squares += x.re * x.re + x.im * x.im;
    }
    return sqrt(squares);
}

/* Computes the norms of the matrices at a place of the batch. */
static void read_matrices(tni_bounds *b, const tni_place *place)
{
    norms *of = b->own;
    const tn_matmul_op *mm = TN_PARAMS(b->op, matmul);
    int32_t row = mm->batch_rank, column = mm->batch_rank + 1;
    tni_place at = *place;
    for (int64_t i = 0; i < mm->m; i++) {
        at.index[row] = i;
        of->rows[i] = norm_of(b, TN_MATMUL_A, at, column);
    }
    at = *place;
    for (int64_t i = 0; i < mm->n; i++) {
        at.index[column] = i;
        of->columns[i] = norm_of(b, TN_MATMUL_B, at, row);
    }
}

/* Returns the relative error of the products if operands are rounded when they are read: both may be, and
 * possibly by truncation. Such errors of k products add up only like sqrt(k). */
static double rounded_inputs(const tni_bounds *b)
{
    const tn_matmul_op *mm = TN_PARAMS(b->op, matmul);
    tn_dtype dtype = b->op->operand[TN_MATMUL_A].dtype;
    double u = 0;
    if (dtype == TN_F32 || dtype == TN_C64)
        u = b->numerics & TN_NUM_ROUNDS_F32_BF16   ? 0x1p-8
            : b->numerics & TN_NUM_ROUNDS_F32_TF32 ? 0x1p-11
                                                   : 0;
    return mm->k > 0 ? 4 * u * least_of(1, 8 / sqrt((double)mm->k)) : 0;
}

/* Returns the relative error of rounding the product before a bias or beta c is added; 0 if that is not done. */
static double rounded_product(const tni_bounds *b)
{
    const bool added = TN_PARAMS(b->op, matmul)->beta != 0 || b->op->operand[TN_MATMUL_BIAS].dtype;
    return added && b->numerics & TN_NUM_ROUNDS_PRODUCT
               ? tni_dtype_roundoff(b->op->operand[TN_MATMUL_OUT].dtype)
               : 0;
}

static double matmul_integers(const tn_matmul_op *mm, double size)
{
    bool whole = mm->alpha == rint(mm->alpha) && mm->beta == rint(mm->beta);
    return whole ? 0 : 1 + 0x1p-22 * size;
}

/* Both scales of an output together; 1 where none exist. */
static double scales_at(const tni_bounds *b, const tni_place *place)
{
    double scale = 1;
    for (int32_t i = TN_MATMUL_SCALE_A; i <= TN_MATMUL_SCALE_B; i++) {
        if (i < b->op->count && b->op->operand[i].dtype)
            scale *= tni_number_size(tni_bounds_input(b, i, place));
    }
    return scale;
}

static double bound_matmul(tni_bounds *b, const tni_place *place, double size)
{
    const norms *of = b->own;
    const tn_matmul_op *mm = TN_PARAMS(b->op, matmul);
    int32_t row = mm->batch_rank, column = mm->batch_rank + 1;
    if (tni_dtype_is_integer(b->op->operand[TN_MATMUL_OUT].dtype))
        return matmul_integers(mm, size);
    if (place->index[row] == 0 && place->index[column] == 0)
        read_matrices(b, place);
    double products = fabs(mm->alpha) * scales_at(b, place) * of->rows[place->index[row]] *
                      of->columns[place->index[column]];
    double rest = size;
    if (mm->beta != 0)
        rest += fabs(mm->beta) * tni_number_size(tni_bounds_input(b, TN_MATMUL_OUT, place));
    if (b->op->operand[TN_MATMUL_BIAS].dtype)
        rest += tni_number_size(tni_bounds_input(b, TN_MATMUL_BIAS, place));
    double each = (b->sum + 8) * b->work + rounded_inputs(b) + rounded_product(b);
    double bound = products * each + 4 * b->work * rest;
    if (mm->activation)
        bound = 1.2 * bound + 8 * b->work * (products + rest);
    return bound;
}

static double count_terms(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    return (double)mm->k * (tni_dtype_is_complex(mm->acc) ? 4 : 1);
}

/* Returns the roundoff of sums with fewer bits than f32: that of the inputs, or 2^-13 for 8-bit inputs, since devices
 * keep at least 13 bits. */
static double narrow_roundoff(tn_dtype in)
{
    return tni_dtype_bytes(in) == 1 ? 0x1p-13 : tni_dtype_roundoff(in);
}

static double roundoff_of_sums(const tn_op *op, uint64_t numerics)
{
    const bool narrow = numerics & (TN_NUM_REDUCED_REDUCTION | TN_NUM_F16_SUMS);
    tn_dtype acc = TN_PARAMS(op, matmul)->acc;
    if (narrow && acc == TN_F32)
        return narrow_roundoff(op->operand[TN_MATMUL_A].dtype);
    return tni_dtype_roundoff(
        tni_dtype_is_integer(acc) ? tni_dtype_work(op->operand[TN_MATMUL_OUT].dtype) : acc);
}

static tn_status init_norms(tni_bounds *b, tn_error *err)
{
    const tn_matmul_op *mm = TN_PARAMS(b->op, matmul);
    norms *made = tni_alloc_zeroed(1, sizeof *made);
    double *rows = made ? tni_alloc_zeroed((size_t)(mm->m + mm->n), sizeof *rows) : NULL;
    if (!rows) {
        tni_release(made);
        return tni_no_memory(err, "tn_check", "the norms of rows and columns");
    }
    *made = (norms){rows, rows + mm->m};
    b->own = made;
    return TN_OK;
}

static void release_norms(tni_bounds *b)
{
    norms *of = b->own;
    tni_release(of->rows);
    tni_release(of);
}

/* Dimensions that are summed over are not split. */
static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    int32_t rank = op->operand[operand].rank;
    return !(operand == TN_MATMUL_A && d == rank - 1) && !(operand == TN_MATMUL_B && d == rank - 2);
}

static int64_t line_cost(const tn_op *op)
{
    return TN_PARAMS(op, matmul)->k;
}

const tni_op_check tni_matmul_check = {
    .smoke = smoke,
    .aspects = aspects,
    .floats = spread_floats,
    .bits = TNI_BITS_OF_INTEGERS,
    .computes_f8 = true,
    .reads = count_reads,
    .reads_output = reads_output,
    .bound = bound_matmul,
    .terms = count_terms,
    .roundoff = roundoff_of_sums,
    .bound_init = init_norms,
    .bound_release = release_norms,
    .bounds_integers = true,
    .is_split = is_split,
    .line_cost = line_cost,
};
