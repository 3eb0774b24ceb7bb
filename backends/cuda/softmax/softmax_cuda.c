/* softmax and log-softmax along the last dimension. */
#include "../kernels/rowwise.h"

#include "tenon/module/op/softmax.h"

CUDA_TEXT_DECLARE(softmax_cu);
static const cuda_text text = CUDA_TEXT(softmax_cu, "softmax.cu");
static const cuda_unit unit = {
    {&cuda_text_of_args, &cuda_text_of_common, &cuda_text_of_functions, CUDA_ROWWISE_PARTS, &text}};

static tn_status plan_softmax(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_op *op = run->op;
    const cuda_sharing sharing = cuda_rowwise_sharing(op);
    char options[32];
    snprintf(options, sizeof options, "-DLOG=%d\n-DNARROW=%d\n",
             (op->uses & TN_ELEMENTWISE_USES_LOG) != 0,
             cuda_bytes_of(op->operand[TN_ELEMENTWISE_OUT].dtype) == 2);
    const cuda_rowwise variant = {&unit, "softmax_rows", options, sharing,
                                  TN_PARAMS(op, elementwise)->rows * sharing.group};
    return cuda_rowwise_plan(run, &variant, out, out_bytes, err);
}

const tn_kernel_row cuda_softmax_row = {
    .name = "cuda.softmax.own",
    .op = TN_OP_SOFTMAX,
    CUDA_ROW,
    .dtypes = cuda_float_dtypes,
    .numerics = CUDA_ROWWISE_NUMERICS,
    .honours = CUDA_ROWWISE_USES | TN_ELEMENTWISE_USES_LOG,
    .admit = cuda_rowwise_admit,
    .plan = plan_softmax,
    .run = cuda_rowwise_run,
};
