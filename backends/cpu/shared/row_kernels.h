/* What the kernel rows of elementwise and row operators share. Their kernels loop over operands of
 * any rank (loop.h), and compute in f64, or in f32 for f32, f16 and bf16. */
#ifndef TENON_BACKENDS_CPU_ROW_KERNELS_H
#define TENON_BACKENDS_CPU_ROW_KERNELS_H

#include "isa_rows.h"
#include "tenon/module/kernel.h"
#include "tenon/module/op/elementwise.h"

#include <stdbool.h>

/* Numerics: an element's bits depend only on its own inputs; they are also the same on every
 * device. */
#define TNI_CPU_INVARIANT (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)
#define TNI_CPU_EXACT     (TNI_CPU_INVARIANT | TN_NUM_CROSS_DEVICE)

/* Features: any layout of the operands; also another dtype of out. */
#define TNI_CPU_LAYOUTS \
    (TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_IN_PLACE)
#define TNI_CPU_MIXED (TNI_CPU_LAYOUTS | TN_ELEMENTWISE_USES_OUT_DTYPE)

extern const tn_dtype tni_cpu_reals[]; /* f32, f64, bf16, f16; ends with 0 */

/* Writes a refusal for an operand's dtype, with a text. Returns TN_UNSUPPORTED. */
tn_status tni_cpu_reject_dtype(tn_refusal *why, const char *what, tn_dtype needed, tn_dtype found,
                               const char *text);

/* The same for an operator's kind. */
tn_status tni_cpu_reject_kind(tn_refusal *why, int32_t needed, int32_t found, const char *text);

bool tni_cpu_is_real(tn_dtype dtype); /* whether tni_cpu_reals has it */

/* Admits operands of one dtype. `names` are those of the operands. */
tn_status tni_cpu_admit_one_dtype(const tn_query *query, const char *const *names, tn_refusal *why);

/* Admits operands that are all f64, or all f32, f16 or bf16. `names` are those of the operands. */
tn_status tni_cpu_admit_reals(const tn_query *query, const char *const *names, tn_refusal *why);

/* Defines the row tni_cpu_<op>_row_<isa>, whose kernel is tni_cpu_<op>_<isa>, and declares the
 * kernel. `rate` are the bytes per microsecond of a core; `...` are the operator's own fields. */
#define TNI_CPU_ROW(op_name, isa, needs, rate, ...)                                            \
    tn_status tni_cpu_##op_name##_##isa(const tn_run *run, tn_error *err);                     \
    const tn_kernel_row tni_cpu_##op_name##_row_##isa = {.struct_size = sizeof(tn_kernel_row), \
                                                         .platform = "cpu",                    \
                                                         .version = 1,                         \
                                                         .free_dims = TN_ELEMENTWISE_DIM_ALL,  \
                                                         .cpu_needs = needs,                   \
                                                         .flops_per_us = (rate),               \
                                                         .bytes_per_us = (rate),               \
                                                         .overhead_us = 0.1,                   \
                                                         .run = tni_cpu_##op_name##_##isa,     \
                                                         __VA_ARGS__};

/* Defines rows by ROW(isa, needs, rate), of all instruction sets of isa_rows.h. */
#define TNI_CPU_ROWS(ROW, rate_base, rate_avx2, rate_avx512) \
    TNI_CPU_BASE(ROW, rate_base) TNI_CPU_AVX2(ROW, rate_avx2) TNI_CPU_AVX512(ROW, rate_avx512)

#endif
