/* rotary position embedding: a thread rotates some pairs of a row, or copies as many elements of its rest. */
#include "../kernels/rowwise.h"

#include "tenon/module/op/rotary.h"

CUDA_TEXT_DECLARE(rotary_cu);
static const cuda_text text = CUDA_TEXT(rotary_cu, "rotary.cu");
static const cuda_unit unit = {
    {&cuda_text_of_args, &cuda_text_of_common, CUDA_ROWWISE_PARTS, &text}};

/* Determines how many pairs a thread rotates: what it reads of in must be aligned to its total size. */
static cuda_sharing share_pairs(const tn_op *op)
{
    const int64_t size = TN_PARAMS(op, elementwise)->size,
                  in_bytes = cuda_bytes_of(op->operand[TN_ELEMENTWISE_IN].dtype);
    const int64_t neighbours = TN_PARAMS(op, elementwise)->kind == TN_ROTARY_HALVES ? 1 : 2;
    const int64_t out_bytes = cuda_bytes_of(op->operand[TN_ELEMENTWISE_OUT].dtype);
    int64_t vector = 16 / neighbours / (in_bytes > out_bytes ? in_bytes : out_bytes);
    while (vector > 1 && (size / 2 % vector != 0 ||
                          !cuda_rowwise_has_vectors(op, TN_ELEMENTWISE_IN, vector * neighbours) ||
                          !cuda_rowwise_has_vectors(op, TN_ELEMENTWISE_OUT, vector * neighbours) ||
                          !cuda_rowwise_has_vectors(op, TN_ROTARY_COS, vector) ||
                          !cuda_rowwise_has_vectors(op, TN_ROTARY_SIN, vector)))
        vector /= 2;
    return (cuda_sharing){
        .group = 32, .vector = (int)(vector > 1 ? vector : 1), .at_once = vector > 1};
}

static tn_status plan_rotary(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_op *op = run->op;
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    const cuda_sharing sharing = share_pairs(op);
    const int64_t in_row =
        (in->shape[in->rank - 1] - TN_PARAMS(op, elementwise)->size / 2) / sharing.vector;
    char options[160];
    snprintf(options, sizeof options, "-DHALVES=%d\n-DCOS=%s\n-DSIN=%s\n",
             TN_PARAMS(op, elementwise)->kind == TN_ROTARY_HALVES,
             cuda_rowwise_type(op->operand[TN_ROTARY_COS].dtype),
             cuda_rowwise_type(op->operand[TN_ROTARY_SIN].dtype));
    const cuda_rowwise variant = {&unit, "rotary_rows", options, sharing,
                                  TN_PARAMS(op, elementwise)->rows * in_row};
    return cuda_rowwise_plan(run, &variant, out, out_bytes, err);
}

const tn_kernel_row cuda_rotary_row = {
    .name = "cuda.rotary.own",
    .op = TN_OP_ROTARY,
    CUDA_ROW,
    .dtypes = cuda_float_dtypes,
    .numerics = CUDA_ROWWISE_NUMERICS,
    .honours = CUDA_ROWWISE_USES | TN_ELEMENTWISE_USES_PARTIAL,
    .admit = cuda_rowwise_admit,
    .plan = plan_rotary,
    .run = cuda_rowwise_run,
};
