/* Attention on Hopper's tensor cores: which variant of the kernel computes a problem, and what it costs. */
#ifndef CUDA_HOPPER_H
#define CUDA_HOPPER_H

#include "../kernels/layout.h"
#include "tenon/module/op/attention.h"

/* On the device these texts follow one another in this order. */
#include "attention_args.h"

#include "hopper_schedule.h"

#include "hopper_args.h"

/* What a kernel is compiled for: see attention_hopper.cuh. */
typedef struct hopper_variant {
    int size, values, width, groups, stages;
    int bounds, tables, mask, scores;
} hopper_variant;

/* hopper.cuh, hopper_tiles.cuh, hopper_schedule.h and hopper_args.h, which units for Hopper have after mma.cuh; and
 * attention_hopper.cuh, which may follow. */
extern const cuda_text cuda_text_of_hopper, cuda_text_of_hopper_tiles, cuda_text_of_hopper_schedule,
    cuda_text_of_hopper_args, cuda_text_of_attention_hopper;
#define CUDA_HOPPER_PARTS                                                            \
    &cuda_text_of_hopper, &cuda_text_of_hopper_tiles, &cuda_text_of_hopper_schedule, \
        &cuda_text_of_hopper_args

/* Writes the options of a unit that has these parts; `out` must have CUDA_HOPPER_OPTIONS bytes. */
enum { CUDA_HOPPER_OPTIONS = 256 };
void cuda_hopper_options(const hopper_variant *variant, tn_dtype dtype, char *out);

/* Makes the tensor maps of Q, K and V. */
tn_status cuda_hopper_describe(const tn_run *run, const hopper_variant *variant, hopper_args *to,
                               tn_error *err);

/* Depends only on what the key of plans has. */
void cuda_hopper_variant_of(const tn_op *op, hopper_variant *out);

/* Rows of a block, threads of a block, its bytes of shared memory. */
int cuda_hopper_rows(const hopper_variant *variant);
unsigned cuda_hopper_threads(const hopper_variant *variant);
unsigned cuda_hopper_shared(const hopper_variant *variant);

void cuda_hopper_counts_of(const tn_op *op, const hopper_variant *variant, hopper_counts *out);

/* Check what kernels for Hopper share: capability 9.0, and an operand that TMA can copy: rows that begin at multiples of 16
 * bytes, and strides of at least a row. */
tn_status cuda_hopper_admit_device(const tn_query *query, tn_refusal *why);
tn_status cuda_hopper_admit_operand(const tn_op *op, int32_t operand, const char *name,
                                    tn_refusal *why);

tn_status cuda_hopper_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
double cuda_hopper_cost(const tn_kernel_row *row, const tn_query *query);

#endif
