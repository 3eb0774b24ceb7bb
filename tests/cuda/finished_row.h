#ifndef TESTS_CUDA_FINISHED_ROW_H
#define TESTS_CUDA_FINISHED_ROW_H

#include "tenon/module/kernel.h"

extern const tn_kernel_row finished_row;

#endif
