#include "cudnn_empty.h"

#include "../../attention/attention_cuda.h"
#include "tenon/module/op/attention.h"

tn_status dnn_empty_get(const tn_run *run, cuda_kernel **out, tn_error *err)
{
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_case wanted;
    cuda_attention_empty_case(run->op, options, &wanted);
    return cuda_kernel_beside(run, &wanted, "sequences without keys", out, err);
}

tn_status dnn_empty_run(const tn_run *run, cuda_kernel *kernel, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    cuda_attention_args args = {0};
    cuda_attention_put(run, &args);
    cuda_attention_put_tables(run, &args);
    return cuda_plan_launch(run, kernel, cuda_blocks_for(run, at->batch * at->heads), &args, err);
}
