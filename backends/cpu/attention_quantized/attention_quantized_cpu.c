/* The kernels of attention-quantized: attention-quantized.ISA, for all dtypes. */
#include "attention_quantized_pass.h"

#include "../shared/isa_rows.h"

#include <math.h>

/* Maximum magnitude of the binary exponent of the scale, and maximum number of queries and keys. */
enum { POWER_MOST = 100, LENGTH_MOST = 1 << 30 };

#define HONOURS                                                                    \
    (TN_ATTENTION_QUANTIZED_USES_WINDOW | TN_ATTENTION_QUANTIZED_USES_GROUPS |     \
     TN_ATTENTION_QUANTIZED_USES_LSE | TN_ATTENTION_QUANTIZED_USES_VALUE_SIZE |    \
     TN_ATTENTION_QUANTIZED_USES_STRIDES | TN_ATTENTION_QUANTIZED_USES_OUT_DTYPE | \
     TN_ATTENTION_QUANTIZED_USES_RAW | TN_ATTENTION_QUANTIZED_USES_F16 |           \
     TN_ATTENTION_QUANTIZED_USES_F8 | TN_ATTENTION_QUANTIZED_USES_I8)

static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F16, 0};

static const tni_aq_set *set_of(const tn_kernel_row *row)
{
    return ((const tni_aq_row *)row)->set;
}

static tn_status admit_length(int64_t length, const char *what, tn_refusal *why)
{
    return length <= LENGTH_MOST ? TN_OK
                                 : tn_refuse(why, TN_REFUSE_SHAPE, what, LENGTH_MOST, length);
}

/* Checks that f32 can represent scores with this scale. */
static tn_status admit_scale(double scale, tn_refusal *why)
{
    const int64_t power = scale == 0 ? 0 : ilogb(scale);
    if (power >= -POWER_MOST && power <= POWER_MOST)
        return TN_OK;
    (void)tn_refuse(why, TN_REFUSE_FEATURE, "scale", power < 0 ? -POWER_MOST : POWER_MOST, power);
    if (why)
        tn_text_fit(why->text, sizeof why->text,
                    "expected a binary exponent from -100 to 100: scores would overflow or "
                    "underflow");
    return TN_UNSUPPORTED;
}

static tn_status admit_quantized(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_attention_op *at = &TN_PARAMS(query->op, attention_quantized)->at;
    (void)row;
    if (admit_length(at->queries, "queries", why) || admit_length(at->keys, "keys", why) ||
        admit_length(at->value_size, "value_size", why))
        return TN_UNSUPPORTED;
    return admit_scale(at->scale, why);
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    return tni_aq_workspace(set_of(row), query->op, query->threads);
}

static tn_status run_quantized(const tn_run *run, tn_error *err)
{
    return tni_aq_forward(set_of(run->row), run, err);
}

/* Operations and bytes per microsecond of a core. */
#define ROW(isa, needs, flops, bytes)                                   \
    extern const tni_aq_set tni_aq_##isa;                               \
    const tni_aq_row tni_aq_row_##isa = {                               \
        .row = {.struct_size = sizeof(tn_kernel_row),                   \
                .name = "cpu.attention-quantized." #isa,                \
                .platform = "cpu",                                      \
                .op = TN_OP_ATTENTION_QUANTIZED,                        \
                .version = 1,                                           \
                .dtypes = dtypes,                                       \
                .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT, \
                .honours = HONOURS,                                     \
                .cpu_needs = needs,                                     \
                .flops_per_us = (flops),                                \
                .bytes_per_us = (bytes),                                \
                .overhead_us = 1,                                       \
                .admit = admit_quantized,                               \
                .workspace = size_workspace,                            \
                .run = run_quantized},                                  \
        .set = &tni_aq_##isa};

TNI_CPU_BASE(ROW, 1e4, 8e3)
TNI_CPU_AVX2(ROW, 8e4, 1e4)
TNI_CPU_AVX512(ROW, 1.3e5, 1e4)
#if defined(TENON_ISA_AVX512_VNNI)
ROW(avx512_vnni, TENON_ISA_AVX512_VNNI, 2.5e5, 1e4)
#endif
