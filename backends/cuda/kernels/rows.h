/* The kernel rows of all operators: CMake collects them from the files NAME_cuda.c (cmake/TenonRows.cmake). */
#ifndef CUDA_KERNELS_ROWS_H
#define CUDA_KERNELS_ROWS_H

#include "cuda_rows.h"
#include "tenon/module/kernel.h"

#define CUDA_ROW_DECLARE(row) extern const tn_kernel_row row;
CUDA_ROWS(CUDA_ROW_DECLARE)
#undef CUDA_ROW_DECLARE

#endif
