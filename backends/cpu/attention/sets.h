/* The sets there are, each where its instruction set is. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SETS_H
#define TENON_BACKENDS_CPU_ATTENTION_SETS_H

#include "backward_kernels.h"

#define TNI_AT_DECLARE_(isa)                            \
    extern const tni_at_set tni_at_f32_##isa;           \
    extern const tni_at_set tni_at_f64_##isa;           \
    extern const tni_at_back_set tni_at_back_f32_##isa; \
    extern const tni_at_back_set tni_at_back_f64_##isa;
TNI_AT_DECLARE_(plain)
TNI_AT_DECLARE_(avx2)
TNI_AT_DECLARE_(avx512)
#undef TNI_AT_DECLARE_

#endif
