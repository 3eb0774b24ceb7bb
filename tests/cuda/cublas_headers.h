/* What is compared between our declarations of cuBLASLt and NVIDIA's header. */
#ifndef TESTS_CUDA_CUBLAS_HEADERS_H
#define TESTS_CUDA_CUBLAS_HEADERS_H

#include "headers.h"

extern const header_number lt_vendor_numbers[]; /* ended by a NULL name */

#endif
