/* Rows for numbers.c in which one of our own kernels takes the place of a library's. */
#ifndef TESTS_CUDA_TEST_ROWS_H
#define TESTS_CUDA_TEST_ROWS_H

#include "tenon/module/kernel.h"

/* Products of misaligned operands, which are copied as those of cuBLASLt are; products with an epilogue like those of
 * cuBLASLt; attention by two products; transforms with operands that are copied as those of cuFFT are. */
extern const tn_kernel_row padded_row, finished_row, math_row, math16_row, fft_row;

#endif
