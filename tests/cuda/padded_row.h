#ifndef TESTS_CUDA_PADDED_ROW_H
#define TESTS_CUDA_PADDED_ROW_H

#include "tenon/module/kernel.h"

extern const tn_kernel_row padded_row;

#endif
