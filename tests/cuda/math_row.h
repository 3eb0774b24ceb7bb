#ifndef TESTS_CUDA_MATH_ROW_H
#define TESTS_CUDA_MATH_ROW_H

#include "tenon/module/kernel.h"

extern const tn_kernel_row math_row;

#endif
