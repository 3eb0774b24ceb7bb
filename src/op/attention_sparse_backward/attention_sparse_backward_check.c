/* How kernels of attention-sparse-backward are checked. */
#include "op/attention_backward/attention_backward.h"
#include "op/attention_sparse/attention_sparse.h"

static const char *const smoke[] = {
    "b=2,h=3,l=65,d=64,bq=16",
    "b=1,h=2,l=192,d=128,bq=64,entries=13",
    "!b=1,h=2,lq=17,lk=33,d=40,bq=5,bk=7",
    "b=1,h=1,l=1,d=1,bq=1",
    "b=2,h=2,l=70,d=16,bq=32,bk=24,sizes=1",
    "b=1,h=4,hk=2,l=100,d=32,bq=16,bk=32,mask=causal,entries=60",
    "b=1,h=2,lq=70,lk=90,d=24,dv=40,bq=64,mask=causal-br,layout=blhd",
    "b=1,h=2,l=9,d=24,bq=4,sq=432;216;48;2",
    "b=1,h=2,l=130,d=96,bq=128,bk=64",
    NULL,
};

/* Small problems first: their failures are the easiest to analyse. */
static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES("b=1,h=1,l=1,d=1,bq=1", "b=2,h=3,l=65,d=64,bq=16",
                             "b=1,h=2,lq=17,lk=33,d=40,bq=5,bk=7", "b=1,h=2,l=192,d=128,bq=64",
                             "b=1,h=1,lq=?q<90>,lk=?k<200>,d=64,bq=?m<40>,bk=?n<70>",
                             "b=?b<3>,h=?h<3>,lq=?q<90>,lk=?k<90>,d=?d<40>,bq=?m<40>")},
    {"alignment", TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,bq=16,align=&;&;&;&;8;1;&;&;&;&",
                                "b=1,h=2,l=64,d=64,bq=32,align=&;64;64;64;64;1;64;64;64;64",
                                "b=1,h=2,l=64,d=64,bq=32,align=64;64;64;64;64;1;64;&;&;&")},
    {"window", TNI_TEMPLATES("b=1,h=2,l=64,d=128,bq=16,mask=causal",
                             "b=1,h=2,lq=19,lk=67,d=32,bq=8,bk=16,mask=causal-br",
                             "b=2,h=2,l=70,d=16,bq=16,mask=window:9;3",
                             "b=1,h=1,l=?q<90>,d=64,bq=?m<40>,bk=?n<40>,mask=causal")},
    {"mask", TNI_TEMPLATES("b=2,h=2,l=35,d=24,bq=8", "b=2,h=2,l=35,d=24,bq=7,smask=0;0;5;1",
                           "b=1,h=2,lq=?q<90>,lk=?k<90>,d=64,bq=16,bk=32")},
    {"lists", TNI_TEMPLATES("b=2,h=2,l=35,d=24,bq=8,entries=50",
                            "b=2,h=2,l=35,d=24,bq=7,entries=13,sstarts=0;0;1",
                            "b=1,h=2,lq=?q<90>,lk=?k<90>,d=64,bq=16,bk=32,entries=?e<20>")},
    {"sizes", TNI_TEMPLATES("b=2,h=2,l=35,d=24,bq=8,sizes=1",
                            "b=2,h=1,lq=?q<90>,lk=?k<190>,d=64,bq=16,bk=64,sizes=1,entries=?e<20>",
                            "b=2,h=1,l=64,d=64,bq=32,sizes=1,ssizes=0;1")},
    {"groups", TNI_TEMPLATES("b=1,h=4,hk=1,lq=5,lk=300,d=64,bq=4,bk=64",
                             "b=1,h=6,hk=3,l=?q<60>,d=64,bq=16,entries=40")},
    {"out", TNI_TEMPLATES("b=1,h=2,l=35,d=24,bq=8,out=f32", "b=1,h=2,l=?q<60>,d=64,bq=16,out=f32")},
    {"dv", TNI_TEMPLATES("b=2,h=2,l=70,d=48,dv=72,bq=32", "b=1,h=2,l=?q<60>,d=64,dv=32,bq=16")},
    {"strides",
     TNI_TEMPLATES("b=2,h=2,l=33,d=48,bq=16,layout=blhd", "b=1,h=2,l=9,d=24,bq=4,sq=864;432;48;2",
                   "b=1,h=1,l=33,d=64,bq=16,sk=4224;4224;128;2",
                   "b=1,h=2,l=9,d=24,bq=4,sv=432;216;24;-1",
                   "b=1,h=2,l=33,d=64,bq=16,sdo=4224;2112;64;-1,sdk=8448;4224;128;2",
                   "b=1,h=2,l=33,d=64,bq=16,sdq=4224;-2112;64;1,sdv=4224;2112;64;-1")},
    {0},
};

static tn_status finish_inputs(const struct tni_operands *operands, tn_error *err)
{
    return tni_attention_forward_fill_by(&tni_attention_sparse_class, operands, err);
}

/* Gradients are split by batch, and by head if no heads share keys. Blocks of queries are not split. */
static int32_t split_dims(const tn_op *op)
{
    return op->uses & TN_ATTENTION_SPARSE_USES_GROUPS ? 1 : 2;
}

/* Entries of lists are not split. */
static bool is_split(const tn_op *op, int32_t operand, int32_t d)
{
    if (operand == TN_ATTENTION_SPARSE_BLOCKS)
        return false;
    return d < (operand == TN_ATTENTION_SPARSE_SIZES ? 1 : split_dims(op));
}

const tni_op_check tni_attention_sparse_backward_check = {
    .smoke = smoke,
    .aspects = aspects,
    .is_table = tni_attention_sparse_is_table,
    .fill_table = tni_attention_sparse_fill_table,
    .finish_inputs = finish_inputs,
    .bound = tni_attention_sparse_bound,
    .bound_init = tni_attention_sparse_bound_init,
    .bound_release = tni_attention_sparse_bound_release,
    .split_dims = split_dims,
    .is_split = is_split,
};
