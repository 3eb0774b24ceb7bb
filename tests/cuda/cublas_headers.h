/* What is compared between our declarations of cuBLAS and cuBLASLt and NVIDIA's headers. */
#ifndef TESTS_CUDA_CUBLAS_HEADERS_H
#define TESTS_CUDA_CUBLAS_HEADERS_H

#include "headers.h"

extern const header_number lt_vendor_numbers[]; /* ended by a NULL name */

#endif
