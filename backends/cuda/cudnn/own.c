#include "own.h"

#include "../kernels/attention.h"

tn_status dnn_own_get(const tn_run *run, const cuda_case *wanted, const char *what,
                      cuda_kernel **out, tn_error *err)
{
    const cuda_nvrtc *compiler = cuda_compiler(run->platform);
    if (!compiler)
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name,
                       "%s needs a kernel of Tenon's own, and NVIDIA's compiler, nvrtc, does not "
                       "serve here: see `tenon libraries`",
                       what);
    tn_error said = {0};
    tn_status status = cuda_kernel_get(run->platform, compiler, run->device, wanted, out, &said);
    if (!status)
        return TN_OK;
    const bool passes = status == TN_DEVICE_LOST || status == TN_OUT_OF_MEMORY;
    return tn_fail(err, passes ? status : TN_UNSUPPORTED, said.native_code, said.where,
                   "the kernel for %s: %s", what, said.message);
}

tn_status dnn_empty_get(const tn_run *run, cuda_kernel **out, tn_error *err)
{
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_case wanted;
    cuda_attention_empty_case(run->op, options, &wanted);
    return dnn_own_get(run, &wanted, "sequences without keys", out, err);
}

tn_status dnn_empty_run(const tn_run *run, cuda_kernel *kernel, tn_error *err)
{
    const tn_attention_op *at = &run->op->as.attention;
    cuda_attention_args args = {0};
    cuda_attention_put(run, &args);
    cuda_attention_put_tables(run, &args);
    return cuda_plan_launch(run, kernel, cuda_blocks_for(run, at->batch * at->heads), &args, err);
}
