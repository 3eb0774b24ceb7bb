#include "row_kernels.h"

const tn_dtype tni_cpu_reals[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

bool tni_cpu_is_real(tn_dtype dtype)
{
    const tn_dtype *real = tni_cpu_reals;
    while (*real && *real != dtype)
        real++;
    return *real != 0;
}

static tn_status reject(tn_refusal *why, int32_t code, const char *what, int64_t needed,
                        int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

tn_status tni_cpu_reject_dtype(tn_refusal *why, const char *what, tn_dtype needed, tn_dtype found,
                               const char *text)
{
    return reject(why, TN_REFUSE_DTYPE, what, needed, found, text);
}

tn_status tni_cpu_reject_kind(tn_refusal *why, int32_t needed, int32_t found, const char *text)
{
    return reject(why, TN_REFUSE_FEATURE, "kind", needed, found, text);
}

tn_status tni_cpu_admit_one_dtype(const tn_query *query, const char *const *names, tn_refusal *why)
{
    const tn_op *op = query->op;
    for (int32_t i = 1; i < op->count; i++) {
        if (op->operand[i].dtype && op->operand[i].dtype != op->operand[0].dtype)
            return tni_cpu_reject_dtype(why, names[i], op->operand[0].dtype, op->operand[i].dtype,
                                        "requires that all operands have one dtype");
    }
    return TN_OK;
}

tn_status tni_cpu_admit_reals(const tn_query *query, const char *const *names, tn_refusal *why)
{
    const tn_op *op = query->op;
    const bool is_f64 = op->operand[0].dtype == TN_F64;
    for (int32_t i = 0; i < op->count; i++) {
        const tn_dtype dtype = op->operand[i].dtype;
        if (dtype && (!tni_cpu_is_real(dtype) || (dtype == TN_F64) != is_f64))
            return tni_cpu_reject_dtype(
                why, names[i], is_f64 ? TN_F64 : TN_F32, dtype,
                "requires that all operands are f64, or all are f32, f16 or bf16");
    }
    return TN_OK;
}
