/* PyTorch's switches for precision, as a policy: checks the numerics that a kernel row declares
 * against the settings of the vendors' libraries. */
#include "dispatch/judge.h"
#include "dispatch/policy.h"

#include "settings/table.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/matmul.h"

/* Significant bits of the format that f32 operands are read as. */
enum { BITS_IEEE = 24, BITS_TF32 = 11, BITS_BF16 = 8 };

/* Which precision setting governs a group of ops, by the backend that runs it. */
static const struct {
    tn_setting cuda;
    tn_setting mkldnn;
} precision_rows[TNI_OPS_GROUPS] = {
    [TNI_OPS_MATMUL] = {TN_SETTING_CUDA_MATMUL_FP32_PRECISION,
                        TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION},
    [TNI_OPS_ELEMENTWISE] = {TN_SETTING_FP32_PRECISION, TN_SETTING_FP32_PRECISION},
    [TNI_OPS_ATTENTION] = {TN_SETTING_CUDA_MATMUL_FP32_PRECISION,
                           TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION},
    [TNI_OPS_FFT] = {TN_SETTING_FP32_PRECISION, TN_SETTING_FP32_PRECISION},
};

static bool is_cuda(const tni_kernel *kernel)
{
    return strcmp(kernel->row->platform, "cuda") == 0 || strcmp(kernel->row->platform, "rocm") == 0;
}

static const char *key_of(tn_setting setting)
{
    return tni_setting_row_of(setting)->facts.key;
}

static bool precision_permits(const tni_question *question, const tni_kernel *kernel,
                              tn_refusal *why)
{
    const uint64_t rounds =
        kernel->row->numerics & (TN_NUM_ROUNDS_F32_TF32 | TN_NUM_ROUNDS_F32_BF16);
    tn_dtype dtype = question->op->operand[0].dtype;
    int32_t group = tni_op_class_of(question->op->kind)->group;
    if (!rounds || (dtype != TN_F32 && dtype != TN_C64))
        return true;
    tn_setting setting = is_cuda(kernel) ? precision_rows[group].cuda
                         : strcmp(kernel->names.library, "mkldnn") == 0
                             ? precision_rows[group].mkldnn
                             : TN_SETTING_FP32_PRECISION;
    int64_t allowed = tn_setting_resolved(question->context, setting);
    int64_t keeps = rounds & TN_NUM_ROUNDS_F32_BF16 ? BITS_BF16 : BITS_TF32;
    int64_t needs = allowed == TN_FP32_IEEE   ? BITS_IEEE
                    : allowed == TN_FP32_TF32 ? BITS_TF32
                                              : BITS_BF16;
    if (keeps >= needs)
        return true;
    return tni_refuse(why, TN_REFUSE_PRECISION, "bits of f32", needs, keeps, "%s=%s permits it",
                      key_of(setting), keeps == BITS_BF16 ? "bf16" : "tf32");
}

/* Returns the library's own determinism setting, if it asks for run-to-run determinism; otherwise
 * -1. */
static tn_setting repeating_switch(const tni_question *question, const tni_kernel *kernel)
{
    const char *library = kernel->names.library;
    tn_setting setting = strcmp(library, "mkldnn") == 0  ? TN_SETTING_MKLDNN_DETERMINISTIC
                         : strcmp(library, "cudnn") == 0 ? TN_SETTING_CUDNN_DETERMINISTIC
                                                         : -1;
    return setting >= 0 && tn_setting_value(question->context, setting) ? setting : -1;
}

static bool repeating_permits(const tni_question *question, const tni_kernel *kernel,
                              tn_refusal *why)
{
    const tn_setting setting = repeating_switch(question, kernel);
    if (setting < 0 || kernel->row->numerics & TN_NUM_RUN_TO_RUN)
        return true;
    return tni_refuse(why, TN_REFUSE_DETERMINISM, "run-to-run", 1, 0,
                      "it does not guarantee run-to-run, which %s=true requires", key_of(setting));
}

/* Returns the setting that governs split-k reductions of a product; -1 if none. */
static tn_setting switch_of_splits(const tn_op *op)
{
    const tn_dtype dtype = op->operand[0].dtype;
    if (op->kind != TN_OP_MATMUL)
        return -1;
    return dtype == TN_F16 ? TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION_SPLIT_K
           : dtype == TN_BF16
               ? TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION_SPLIT_K
               : -1;
}

static bool splits_permit(const tni_question *question, const tni_kernel *kernel, tn_refusal *why)
{
    const tn_setting setting = switch_of_splits(question->op);
    if (!(kernel->row->numerics & TN_NUM_SPLIT_SUMS) || setting < 0 ||
        tn_setting_value(question->context, setting))
        return true;
    return tni_refuse(why, TN_REFUSE_PRECISION, "split sums", 0, 1, "%s=true permits it",
                      key_of(setting));
}

/* An accumulator type that the op requests itself needs no permission. */
static bool f16_sums_permit(const tni_question *question, const tni_kernel *kernel, tn_refusal *why)
{
    const tn_setting setting = TN_SETTING_CUDA_MATMUL_ALLOW_FP16_ACCUMULATION;
    const tn_matmul_op *mm = tn_op_matmul(question->op);
    if (!(kernel->row->numerics & TN_NUM_F16_SUMS) || !mm || mm->acc == TN_F16 ||
        tn_setting_value(question->context, setting))
        return true;
    return tni_refuse(why, TN_REFUSE_PRECISION, "bits of sums", 32, 16, "%s=true permits it",
                      key_of(setting));
}

/* Returns the setting that governs narrow accumulators of an op; -1 if none. */
static tn_setting switch_of_sums(const tn_op *op)
{
    tn_dtype dtype = op->operand[0].dtype;
    if (dtype != TN_F16 && dtype != TN_BF16)
        return -1;
    if (tn_op_attention(op))
        return TN_SETTING_CUDA_ALLOW_FP16_BF16_REDUCTION_MATH_SDP;
    if (op->kind != TN_OP_MATMUL)
        return -1;
    return dtype == TN_F16 ? TN_SETTING_CUDA_MATMUL_ALLOW_FP16_REDUCED_PRECISION_REDUCTION
                           : TN_SETTING_CUDA_MATMUL_ALLOW_BF16_REDUCED_PRECISION_REDUCTION;
}

static bool sums_permit(const tni_question *question, const tni_kernel *kernel, tn_refusal *why)
{
    tn_setting setting = switch_of_sums(question->op);
    if (!(kernel->row->numerics & TN_NUM_REDUCED_REDUCTION) || setting < 0 ||
        tn_setting_value(question->context, setting))
        return true;
    return tni_refuse(why, TN_REFUSE_PRECISION, "bits of sums", 32, 16, "%s=true permits it",
                      key_of(setting));
}

static bool permit_candidate(const tni_question *question, tni_contender *to)
{
    const tni_kernel *kernel = to->kernel;
    return precision_permits(question, kernel, &to->why) &&
           repeating_permits(question, kernel, &to->why) &&
           sums_permit(question, kernel, &to->why) && splits_permit(question, kernel, &to->why) &&
           f16_sums_permit(question, kernel, &to->why);
}

const tni_policy tni_torch_numerics_policy = {.name = "precision switches",
                                              .permit = permit_candidate};
