/* What is compared between our declarations of cuFFT and NVIDIA's header. */
#ifndef TESTS_CUDA_CUFFT_HEADERS_H
#define TESTS_CUDA_CUFFT_HEADERS_H

#include "headers.h"

extern const header_number fft_vendor_numbers[]; /* ended by a NULL name */

#endif
