#include "cudnn_dropout.h"

#include "../../attention/attention_dropout.h"

static double weights_of(const tn_op *op)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    return op->uses & TN_ATTENTION_USES_DROPOUT
               ? (double)at->batch * (double)at->heads * (double)at->queries * (double)at->keys
               : 0;
}

double dnn_kept_bytes(const tn_op *op)
{
    return weights_of(op) * sizeof(uint16_t);
}

dnn_desc dnn_kept(const dnn_sdpa *s)
{
    dnn_layout layout = s->scores;
    layout.type = dnn_type_of(s->op->operand[TN_ATTENTION_Q].dtype);
    return dnn_tensor(s->graph, &layout, DNN_FROM_KEPT);
}

tn_status dnn_keeper_get(const tn_run *run, cuda_kernel **out, tn_error *err)
{
    return cuda_kernel_beside(run, &cuda_dropout_case, "dropout", out, err);
}

tn_status dnn_keeper_run(const tn_run *run, cuda_kernel *kernel, void *to, tn_error *err)
{
    enum { ONE_F16 = 0x3C00, ONE_BF16 = 0x3F80, IN_BLOCK = 4 };
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    const bool is_f16 = run->op->operand[TN_ATTENTION_Q].dtype == TN_F16;
    cuda_dropout_args args =
        cuda_dropout_args_of(at, to, (int64_t)weights_of(run->op), is_f16 ? ONE_F16 : ONE_BF16);
    const int64_t each = IN_BLOCK * CUDA_THREADS;
    return cuda_plan_launch(run, kernel, cuda_blocks_for(run, (args.elements + each - 1) / each),
                            &args, err);
}
