#include "ref_elementwise.h"

const tn_dtype tni_ref_all_dtypes[] = {
#define NAME(name, word, code, bits) name,
    TN_DTYPE_LIST(NAME)
#undef NAME
        TN_DTYPE_NONE};

const tn_dtype tni_ref_number_dtypes[] = {
    TN_F64,       TN_F32,         TN_BF16,    TN_F16,         TN_C64,       TN_C128, TN_I8,
    TN_I16,       TN_I32,         TN_I64,     TN_U8,          TN_U16,       TN_U32,  TN_U64,
    TN_F8_E4M3FN, TN_F8_E4M3FNUZ, TN_F8_E5M2, TN_F8_E5M2FNUZ, TN_DTYPE_NONE};

const tn_dtype tni_ref_float_dtypes[] = {TN_F64, TN_F32, TN_BF16, TN_F16, TN_DTYPE_NONE};

tn_status tni_ref_admit_floats(const tn_query *query, const char *const *names, int32_t count,
                               tn_refusal *why)
{
    const tn_op *op = query->op;
    for (int32_t o = 0; o < op->count && o < count; o++) {
        tn_dtype dtype = op->operand[o].dtype;
        const tn_dtype *one = tni_ref_float_dtypes;
        while (dtype && *one && *one != dtype)
            one++;
        if (!*one)
            return tni_ref_refuse(why, TN_REFUSE_DTYPE, names[o],
                                  op->operand[TN_ELEMENTWISE_IN].dtype, dtype,
                                  "needs f64, f32, bf16 or f16: cast it");
    }
    return TN_OK;
}
