/* Predicted times of products by cuBLAS and cuBLASLt, which depend on the alignment of their operands. */
#ifndef CUDA_CUBLAS_COST_H
#define CUDA_CUBLAS_COST_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* Returns the bytes, at most 16, to which all contiguous lines of a matrix operand are aligned. */
int64_t cuda_blas_aligned(const tn_layout *layout);

/* Returns whether it is a product of 16 bits, and lines of A, B or out begin or end at less than 16 bytes. */
bool cuda_blas_is_misaligned(const tn_op *op);

/* Returns the microseconds that a product takes on the device, for rows whose `cost` adds to them: by the row's figures,
 * which are those of aligned operands. If 16-bit operands are misaligned, it is a part of that speed. */
double cuda_blas_work_us(const tn_kernel_row *row, const tn_op *op);

#endif
