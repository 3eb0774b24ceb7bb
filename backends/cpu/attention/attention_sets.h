/* The sets of all instruction sets of this build. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SETS_H
#define TENON_BACKENDS_CPU_ATTENTION_SETS_H

#include "attention_backward_kernels.h"

/* Features that the rows support: all, but only rows of 16-bit floats support an out of another
 * dtype. */
#define TNI_AT_HONOURS_BACK                                                             \
    (TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |   \
     TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_DROPOUT | \
     TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OFFSET)
#define TNI_AT_HONOURS                                                       \
    (TNI_AT_HONOURS_BACK | TN_ATTENTION_USES_SINKS | TN_ATTENTION_USES_LSE | \
     TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PAGES)

/* Dimensions that may change without choosing a row again. */
#define TNI_AT_DIMS                                                               \
    (TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS | TN_ATTENTION_DIM_QUERIES | \
     TN_ATTENTION_DIM_KEYS)

/* Check that the op's operands have a supported combination of dtypes: f32 and f64, or 16 bits.
 * Masks, sinks and tables may have any dtype. */
tn_status tni_at_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status tni_at_low_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

#define TNI_AT_DECLARE_(isa)                            \
    extern const tni_at_set tni_at_f32_##isa;           \
    extern const tni_at_set tni_at_f64_##isa;           \
    extern const tni_at_back_set tni_at_back_f32_##isa; \
    extern const tni_at_back_set tni_at_back_f64_##isa;
TNI_AT_DECLARE_(plain)
TNI_AT_DECLARE_(neon)
TNI_AT_DECLARE_(avx2)
TNI_AT_DECLARE_(avx512)
#undef TNI_AT_DECLARE_

#endif
