/* Kernel rows with data of their own, and their functions. The rows are in attention_cpu.c. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_CPU_ROWS_H
#define TENON_BACKENDS_CPU_ATTENTION_CPU_ROWS_H

#include "attention_low.h"
#include "attention_math.h"

typedef struct tni_at_low_row {
    tn_kernel_row row;     /* must be first: the functions get a pointer to it */
    const tni_at_set *own; /* NULL: all is widened */
    const tni_at_set *base;
    const tni_at_half *half; /* replaces functions of base, if widened or for few rows */
} tni_at_low_row;

/* A row of attention-backward: always widened. */
typedef struct tni_at_low_back_row {
    tn_kernel_row row; /* must be first */
    const tni_at_back_set *base;
    const tni_at_half *half;
} tni_at_low_back_row;

tn_status tni_at_low_run(const tn_run *run, tn_error *err);
uint64_t tni_at_low_workspace(const tn_kernel_row *row, const tn_query *query);

tn_status tni_at_low_back_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status tni_at_low_back_run(const tn_run *run, tn_error *err);
uint64_t tni_at_low_back_workspace(const tn_kernel_row *row, const tn_query *query);

/* If it admits, `why` says how many rows it forms at once. */
tn_status tni_at_math_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status tni_at_math_run(const tn_run *run, tn_error *err);
uint64_t tni_at_math_workspace(const tn_kernel_row *row, const tn_query *query);

#endif
