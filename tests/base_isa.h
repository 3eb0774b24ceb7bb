/* The instruction set that every processor of this architecture has, as kernels are named for it. */
#ifndef TENON_TESTS_BASE_ISA_H
#define TENON_TESTS_BASE_ISA_H

#if defined(__aarch64__)
#define BASE_ISA "neon"
#else
#define BASE_ISA "plain"
#endif

#endif
