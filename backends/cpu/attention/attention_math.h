/* attention by its formula: the scores of some rows with all visible keys are formed, turned into
 * weights, and multiplied with the values. Both products use the matmul kernels. The number of rows
 * formed at once depends on the workspace limit of a run. It does not change a bit of the result,
 * because sums over keys are made in chunks that begin at multiples of their length, wherever a
 * block of rows begins. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_MATH_H
#define TENON_BACKENDS_CPU_ATTENTION_MATH_H

#include "../matmul/matmul_kernels.h"
#include "../matmul/matmul_lowp.h"
#include "attention_low.h"

/* A kernel row and the data of its functions: for f32 and f64, and the replacements in f32's for 16
 * bits. */
typedef struct tni_at_math_row {
    tn_kernel_row row; /* must be first: the functions get a pointer to it */
    const tni_at_set *f32, *f64;
    const tni_mm_kernels *mm_f32, *mm_f64;
    const tni_at_half *half_bf16, *half_f16;
    const tni_mm_packs *packs_bf16, *packs_f16;
    const tni_mm_set *own; /* for bf16 directly; NULL: 16 bits are widened */
    bool narrow; /* keeps scores and weights in the operands' 16 bits; always with `own` */
} tni_at_math_row;

/* Rows that are formed at once, and the number of concurrent tasks. */
typedef struct tni_at_math_size {
    int64_t rows, tasks;
    uint64_t bytes; /* of workspace; UINT64_MAX: overflow */
} tni_at_math_size;

/* For this number of threads and a limit in bytes. The minimum is one row of one task, whatever the
 * limit is. */
void tni_at_math_measure(const tni_at_math_row *row, const tn_op *op, int32_t threads,
                         uint64_t limit, tni_at_math_size *out);

tn_status tni_at_math(const tni_at_math_row *row, const tn_run *run, tn_error *err);

#endif
