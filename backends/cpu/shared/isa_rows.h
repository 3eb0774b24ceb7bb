/* Kernel rows of an instruction set: ROW(isa, needs, ...), whose arguments are its name, what it
 * requires of the CPU, and `...`. TNI_CPU_BASE is of the architecture's base set, neon or plain; the
 * others define nothing if the build does not have the set. */
#ifndef TENON_BACKENDS_CPU_ISA_ROWS_H
#define TENON_BACKENDS_CPU_ISA_ROWS_H

#if defined(__aarch64__)
#define TNI_CPU_BASE(ROW, ...) ROW(neon, 0, __VA_ARGS__)
#else
#define TNI_CPU_BASE(ROW, ...) ROW(plain, 0, __VA_ARGS__)
#endif
#if defined(TENON_ISA_AVX2)
#define TNI_CPU_AVX2(ROW, ...) ROW(avx2, TENON_ISA_AVX2, __VA_ARGS__)
#else
#define TNI_CPU_AVX2(ROW, ...)
#endif
#if defined(TENON_ISA_AVX512)
#define TNI_CPU_AVX512(ROW, ...) ROW(avx512, TENON_ISA_AVX512, __VA_ARGS__)
#else
#define TNI_CPU_AVX512(ROW, ...)
#endif

#endif
