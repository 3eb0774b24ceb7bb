/* The kernels of the module, and the parts that all instruction sets of an op share. */
#include "attention/attention_math.h"
#include "attention/attention_rows_low.h"
#include "cpu_module.h"
#include "matmul/matmul_lowp.h"
#include "shared/row_kernels.h"

#include <stdbool.h>

static const tn_dtype fillable[] = {TN_F32, TN_F64,  TN_BF16, TN_F16, TN_I8,  TN_I16,
                                    TN_I32, TN_I64,  TN_U8,   TN_U16, TN_U32, TN_U64,
                                    TN_C64, TN_C128, TN_BOOL, 0};
static const tn_dtype copyable[] = {
    TN_F32,  TN_F64,       TN_BF16,    TN_F16,         TN_I8,          TN_I16, TN_I32,
    TN_I64,  TN_U8,        TN_U16,     TN_U32,         TN_U64,         TN_C64, TN_C128,
    TN_BOOL, TN_F8_E4M3FN, TN_F8_E5M2, TN_F8_E4M3FNUZ, TN_F8_E5M2FNUZ, 0};
static const tn_dtype reals[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
static const tn_dtype castable[] = {TN_F32, TN_F64, TN_BF16, TN_F16, TN_I8, TN_U8, TN_I32, 0};

static bool is_among(tn_dtype dtype, const tn_dtype *list)
{
    while (*list && *list != dtype)
        list++;
    return *list != 0;
}

static tn_status refuse(tn_refusal *why, const char *what, tn_dtype needed, tn_dtype found,
                        const char *text)
{
    (void)tn_refuse(why, TN_REFUSE_DTYPE, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

static const char *name_of(int32_t op, int32_t operand)
{
    static const char *const names[][TN_OP_OPERANDS_MAX] = {
        {"in", "out", "other", "3", "4", "5"},
        {"in", "out", "weight", "bias", "4", "5"},
        {"in", "out", "cos", "sin", "4", "5"},
        {"in", "lse_in", "other", "lse_other", "out", "lse"},
    };
    const int32_t which = op == TN_OP_NORM              ? 1
                          : op == TN_OP_ROTARY          ? 2
                          : op == TN_OP_ATTENTION_MERGE ? 3
                                                        : 0;
    return names[which][operand];
}

/* For ops on reals: all operands must be f64, or none. */
static tn_status admit_reals(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    tn_dtype in = op->operand[TN_EACH_IN].dtype;
    for (int32_t i = 0; i < op->count; i++) {
        tn_dtype dtype = op->operand[i].dtype;
        if (dtype && (!is_among(dtype, reals) || (dtype == TN_F64) != (in == TN_F64)))
            return refuse(why, name_of(row->op, i), in == TN_F64 ? TN_F64 : TN_F32, dtype,
                          "either all operands are f64, or all are f32, f16 or bf16");
    }
    return TN_OK;
}

/* Products can exceed the range of f64 where sums do not. */
static tn_status admit_reduce(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int32_t kind = query->op->as.each.kind;
    if (kind != TN_REDUCE_PROD)
        return admit_reals(row, query, why);
    (void)tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_REDUCE_SUM, kind);
    if (why)
        tn_text_fit(why->text, sizeof why->text, "products are left to kernels with a wider range");
    return TN_UNSUPPORTED;
}

/* The rest of a row is copied unchanged, so out must have the dtype of in. */
static tn_status admit_rotary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_layout *operand = query->op->operand;
    tn_dtype in = operand[TN_EACH_IN].dtype, out = operand[TN_EACH_OUT].dtype;
    return in == out ? admit_reals(row, query, why)
                     : refuse(why, "out", in, out, "out is of in's dtype");
}

/* Only casts that can go through f32 without a second rounding. */
static tn_status admit_cast(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_layout *operand = query->op->operand;
    tn_dtype in = operand[TN_EACH_IN].dtype, out = operand[TN_EACH_OUT].dtype;
    (void)row;
    if (!is_among(out, castable))
        return refuse(why, "out", TN_F32, out, "f64, f32, f16, bf16, i32, i8 and u8 are cast to");
    if ((in == TN_F64 || in == TN_I32) && out != TN_F32)
        return refuse(why, "out", TN_F32, out, "f64 and i32 are cast to f32 alone");
    return TN_OK;
}

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_layout *operand = query->op->operand;
    tn_dtype in = operand[TN_EACH_IN].dtype, out = operand[TN_EACH_OUT].dtype;
    (void)row;
    return in == out ? TN_OK : refuse(why, "out", in, out, "out is of in's dtype");
}

#define ALONE  (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)
#define EXACT  (ALONE | TN_NUM_CROSS_DEVICE)
#define SHAPED (TN_EACH_USES_STRIDES | TN_EACH_USES_BROADCAST | TN_EACH_USES_IN_PLACE)
#define MIXED  (SHAPED | TN_EACH_USES_OUT_DTYPE)

/* Op, function, word, dtypes, numerics, supported features, admit, multiplier of the set's
 * bytes/us. */
#define OP_LIST(X, isa, needs, bytes)                                                             \
    X(PERMUTE, permute, "permute", copyable, EXACT, SHAPED, admit_permute, isa, needs,            \
      bytes * 0.9)                                                                                \
    X(CAST, cast, "cast", castable, EXACT, SHAPED, admit_cast, isa, needs, bytes)                 \
    X(FILL, fill, "fill", fillable, EXACT, SHAPED, NULL, isa, needs, bytes)                       \
    X(UNARY, unary, "unary", reals, ALONE, MIXED, admit_reals, isa, needs, bytes * 0.7)           \
    X(BINARY, binary, "binary", reals, ALONE, MIXED, admit_reals, isa, needs, bytes)              \
    X(REDUCE, reduce, "reduce", reals, TN_NUM_RUN_TO_RUN, MIXED, admit_reduce, isa, needs, bytes) \
    X(SOFTMAX, softmax, "softmax", reals, ALONE, MIXED | TN_EACH_USES_LOG, admit_reals, isa,      \
      needs, bytes * 0.6)                                                                         \
    X(NORM, norm, "norm", reals, ALONE, MIXED | TN_EACH_USES_WEIGHT | TN_EACH_USES_BIAS,          \
      admit_reals, isa, needs, bytes * 0.8)                                                       \
    X(ROTARY, rotary, "rotary", reals, ALONE, SHAPED | TN_EACH_USES_PARTIAL, admit_rotary, isa,   \
      needs, bytes * 0.7)                                                                         \
    X(ATTENTION_MERGE, merge, "attention-merge", reals, ALONE,                                    \
      TN_EACH_USES_STRIDES | TN_EACH_USES_OUT_DTYPE, admit_reals, isa, needs, bytes * 0.7)

#define ROW(NAME, function, word, types, numbers, uses, decide, isa, needs, bytes) \
    static const tn_kernel_row function##_##isa = {                                \
        .struct_size = sizeof(tn_kernel_row),                                      \
        .name = "cpu." word "." #isa,                                              \
        .platform = "cpu",                                                         \
        .op = TN_OP_##NAME,                                                        \
        .version = 1,                                                              \
        .dtypes = types,                                                           \
        .numerics = numbers,                                                       \
        .honours = uses,                                                           \
        .free_dims = TN_EACH_DIM_ALL,                                              \
        .cpu_needs = needs,                                                        \
        .flops_per_us = (bytes),                                                   \
        .bytes_per_us = (bytes),                                                   \
        .overhead_us = 0.1,                                                        \
        .admit = decide,                                                           \
        .run = tni_cpu_##function##_##isa,                                         \
    };

#define POINT(NAME, function, word, types, numbers, uses, decide, isa, needs, bytes) \
    &function##_##isa,

#define POINT_AT_LOW(dtype, isa)  &tni_at_low_##dtype##_##isa.row,
#define POINT_AT_BACK(dtype, isa) &tni_at_low_back_##dtype##_##isa.row,
#define POINT_AT_MATH(word, isa)  &tni_at_##word##_##isa.row,
#define POINT_LOW(dtype, isa)     &tni_mm_row_##dtype##_##isa.row,

OP_LIST(ROW, plain, 0, 6e3)
#if defined(TENON_ISA_AVX2)
OP_LIST(ROW, avx2, TENON_ISA_AVX2, 10e3)
#endif
#if defined(TENON_ISA_AVX512)
OP_LIST(ROW, avx512, TENON_ISA_AVX512, 12e3)
#endif

const tn_kernel_row *const tni_cpu_module_kernels[] = {
    &tni_cpu_module_matmul_openblas,
    &tni_cpu_module_matmul_mkl,
    &tni_cpu_module_matmul_blis,
    &tni_cpu_module_matmul_onednn,
    &tni_cpu_module_matmul_onednn_rounded,
    &tni_cpu_module_matmul_onednn_bf16,
    &tni_cpu_module_matmul_onednn_int8,
#if defined(TENON_ISA_AVX512)
    &tni_cpu_module_matmul_avx512,
    &tni_cpu_module_attention_avx512,
    &tni_cpu_module_attention_backward_avx512,
#endif
#if defined(TENON_ISA_AVX2)
    &tni_cpu_module_matmul_avx2,
    &tni_cpu_module_attention_avx2,
    &tni_cpu_module_attention_backward_avx2,
#endif
    &tni_cpu_module_matmul_plain,
    &tni_cpu_module_attention_plain,
    &tni_cpu_module_attention_backward_plain,
    TNI_AT_LOW_LIST(POINT_AT_LOW) TNI_AT_LOW_BACK_LIST(POINT_AT_BACK)
        TNI_AT_MATH_LIST(POINT_AT_MATH) TNI_MM_LOW_LIST(POINT_LOW)
#if defined(TENON_ISA_AVX512)
            OP_LIST(POINT, avx512, TENON_ISA_AVX512, 0)
#endif
#if defined(TENON_ISA_AVX2)
                OP_LIST(POINT, avx2, TENON_ISA_AVX2, 0)
#endif
                    OP_LIST(POINT, plain, 0, 0) NULL,
};
