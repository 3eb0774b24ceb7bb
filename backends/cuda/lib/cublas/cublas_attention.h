/* Attention by two products of cuBLASLt. */
#ifndef CUDA_CUBLAS_ATTENTION_H
#define CUDA_CUBLAS_ATTENTION_H

#include "tenon/module/kernel.h"

extern const tn_kernel_row cuda_lt_attention_row, cuda_lt_attention16_row;

#endif
