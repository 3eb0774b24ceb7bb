/* Products of 16-bit operands that are not aligned to 16 bytes, for which cuBLASLt's fastest kernels cannot be used:
 * such operands are copied to aligned workspace by a kernel of our own, and multiplied there. */
#ifndef CUDA_CUBLAS_PAD_H
#define CUDA_CUBLAS_PAD_H

#include "../../matmul/matmul_pad.h"
#include "tenon/module/kernel.h"

#include <stdbool.h>

enum { LT_PADS = 3 }; /* A, B and out, by the op's numbers */

typedef struct lt_pads {
    tn_layout from[LT_PADS]; /* the operands before */
    bool copied[LT_PADS];
    uint64_t at[LT_PADS]; /* where copies begin; multiples of 256 */
    bool impossible;      /* a size cannot be rounded up, because of the epilogue */
    double bytes;         /* their size together, which no size of an op overflows */
} lt_pads;

/* Replaces the misaligned operands of a product of 16 bits by aligned copies. Sizes along which the elements of an
 * operand are contiguous become multiples of 8, so all operands that have such a size are copied. `own_out`: out is in
 * workspace already, with aligned lines that have room for that. Does nothing with other products and with empty ones. */
void lt_pad(tn_op *io, bool own_out, lt_pads *out);
bool lt_pads_any(const lt_pads *pads);

/* Fails with TN_UNSUPPORTED and the reason if nothing is to be copied, or too much; otherwise adds a note to
 * `why`. `op` is the product as given to the library. */
tn_status lt_admit_pads(const tn_op *op, bool own_out, tn_refusal *why);

/* Returns the predicted microseconds of the copies and of the product with copies. */
double lt_pads_us(const tn_kernel_row *row, const tn_op *op, bool own_out);

/* The copies of a plan. */
typedef struct lt_pad_plan {
    cuda_kernel *kernel;
    bool copied[LT_PADS];
    uint64_t at[LT_PADS];
    cuda_pad_args in[LT_PADS]; /* of out: only with beta */
    cuda_pad_args back;
} lt_pad_plan;

/* Plans the copies; `product` is the op that lt_pad made. */
tn_status lt_pad_plan_make(const tn_run *run, const lt_pads *pads, const tn_op *product,
                           lt_pad_plan *out, tn_error *err);

/* Returns an operand of the product, whose copies begin at `room`; `direct` is the operand without a copy. */
void *lt_pad_operand(const lt_pad_plan *plan, int32_t operand, void *room, void *direct);

/* Queue the copies before the product, and that of out after it. `out` is the product's destination. */
tn_status lt_pad_before(const tn_run *run, const lt_pad_plan *plan, void *room, void *out,
                        tn_error *err);
tn_status lt_pad_after(const tn_run *run, const lt_pad_plan *plan, void *room, void *out,
                       tn_error *err);

#endif
