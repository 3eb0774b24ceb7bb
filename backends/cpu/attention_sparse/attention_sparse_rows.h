/* What the rows of attention-sparse and of its backward pass share. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SPARSE_ROWS_H
#define TENON_BACKENDS_CPU_ATTENTION_SPARSE_ROWS_H

#include "../attention/attention_cpu_rows.h"
#include "../attention/attention_sets.h"
#include "../shared/isa_rows.h"
#include "tenon/module/op/attention_sparse_backward.h"

/* Features that the rows of both passes support. */
#define TNI_SPARSE_HONOURS                                                   \
    (TN_ATTENTION_SPARSE_USES_WINDOW | TN_ATTENTION_SPARSE_USES_MASK |       \
     TN_ATTENTION_SPARSE_USES_LISTS | TN_ATTENTION_SPARSE_USES_SIZES |       \
     TN_ATTENTION_SPARSE_USES_GROUPS | TN_ATTENTION_SPARSE_USES_VALUE_SIZE | \
     TN_ATTENTION_SPARSE_USES_STRIDES)

extern const tn_dtype tni_sparse_dtypes[];

/* Checks that the op's operands have a supported combination of dtypes: one of f32 and f64, or 16
 * bits. */
tn_status tni_sparse_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

/* The members of a row of all dtypes: a tn_kernel_row that begins with the further fields, and the
 * sets of `pass` of an instruction set. Operations and bytes are per microsecond of a core. */
#define TNI_SPARSE_ROW(pass, isa, needs, flops, bytes, ...)                              \
    .row = {__VA_ARGS__,                                                                 \
            .struct_size = sizeof(tn_kernel_row),                                        \
            .platform = "cpu",                                                           \
            .version = 1,                                                                \
            .dtypes = tni_sparse_dtypes,                                                 \
            .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,                      \
            .cpu_needs = needs,                                                          \
            .flops_per_us = (flops),                                                     \
            .bytes_per_us = (bytes),                                                     \
            .overhead_us = 1,                                                            \
            .admit = tni_sparse_admit},                                                  \
    .f32 = &pass##_f32_##isa, .f64 = &pass##_f64_##isa, .bf16 = &tni_at_half_bf16_##isa, \
    .f16 = &tni_at_half_f16_##isa

#endif
