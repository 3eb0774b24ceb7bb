/* What is compared between our declarations of cuDNN and NVIDIA's header. */
#ifndef TESTS_CUDA_CUDNN_HEADERS_H
#define TESTS_CUDA_CUDNN_HEADERS_H

#include "headers.h"

extern const header_number dnn_vendor_numbers[]; /* ended by a NULL name */

#endif
