/* norm along the last dimension: layer norm and rms norm, with weight and bias. */
#include "../kernels/rowwise.h"

#include "tenon/module/op/norm.h"

CUDA_TEXT_DECLARE(norm_cu);
static const cuda_text text = CUDA_TEXT(norm_cu, "norm.cu");
static const cuda_unit unit = {
    {&cuda_text_of_args, &cuda_text_of_common, &cuda_text_of_functions, CUDA_ROWWISE_PARTS, &text}};

static tn_status plan_norm(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_op *op = run->op;
    const tn_dtype weight = op->operand[TN_NORM_WEIGHT].dtype;
    const tn_dtype bias = op->operand[TN_NORM_BIAS].dtype;
    cuda_sharing sharing = cuda_rowwise_sharing(op);
    char options[160];
    sharing.packed = sharing.at_once &&
                     cuda_rowwise_has_vectors(op, TN_NORM_WEIGHT, sharing.vector) &&
                     cuda_rowwise_has_vectors(op, TN_NORM_BIAS, sharing.vector);
    snprintf(options, sizeof options,
             "-DLAYER=%d\n-DHAS_WEIGHT=%d\n-DHAS_BIAS=%d\n-DWEIGHT=%s\n-DBIAS=%s\n",
             TN_PARAMS(op, elementwise)->kind == TN_NORM_LAYER, weight != 0, bias != 0,
             cuda_rowwise_type(weight), cuda_rowwise_type(bias));
    const cuda_rowwise variant = {&unit, "norm_rows", options, sharing,
                                  TN_PARAMS(op, elementwise)->rows * sharing.group};
    return cuda_rowwise_plan(run, &variant, out, out_bytes, err);
}

const tn_kernel_row cuda_norm_row = {
    .name = "cuda.norm.own",
    .op = TN_OP_NORM,
    CUDA_ROW,
    .dtypes = cuda_float_dtypes,
    .numerics = CUDA_ROWWISE_NUMERICS,
    .honours = CUDA_ROWWISE_USES | TN_ELEMENTWISE_USES_WEIGHT | TN_ELEMENTWISE_USES_BIAS,
    .admit = cuda_rowwise_admit,
    .plan = plan_norm,
    .run = cuda_rowwise_run,
};
