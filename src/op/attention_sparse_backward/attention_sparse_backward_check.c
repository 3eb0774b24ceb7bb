/* How kernels of attention-sparse-backward are checked. */
#include "op/attention_backward/attention_backward.h"
#include "op/attention_sparse/attention_sparse.h"
#include "op/attention_sparse/attention_sparse_templates.h"

static const char *const smoke[] = {
    SPARSE_SMOKE,
    "b=2,h=2,l=70,d=16,bq=32,bk=24,sizes=1",
    "b=1,h=2,l=9,d=24,bq=4,sq=432;216;48;2",
    "b=1,h=2,l=130,d=96,bq=128,bk=64",
    NULL,
};

static const tn_check_aspect aspects[] = {
    {"shapes", TNI_TEMPLATES(SPARSE_SHAPES)},
    {"alignment", TNI_TEMPLATES("b=1,h=2,lq=17,lk=33,d=40,bq=16,align=&;&;&;&;8;1;&;&;&;&",
                                "b=1,h=2,l=64,d=64,bq=32,align=&;64;64;64;64;1;64;64;64;64",
                                "b=1,h=2,l=64,d=64,bq=32,align=64;64;64;64;64;1;64;&;&;&")},
    {"window", TNI_TEMPLATES(SPARSE_WINDOWS)},
    {"mask", TNI_TEMPLATES(SPARSE_MASKS)},
    {"lists", TNI_TEMPLATES(SPARSE_LISTS)},
    {"sizes", TNI_TEMPLATES(SPARSE_SIZES)},
    {"groups", TNI_TEMPLATES("b=1,h=4,hk=1,lq=5,lk=300,d=64,bq=4,bk=64",
                             "b=1,h=6,hk=3,l=?q<60>,d=64,bq=16,entries=40")},
    {"out", TNI_TEMPLATES(SPARSE_OUTS)},
    {"dv", TNI_TEMPLATES(SPARSE_VALUE_SIZES)},
    {"strides", TNI_TEMPLATES(SPARSE_STRIDES,
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
