/* The run functions of the kernel rows: one for each op and instruction set, as built. */
#ifndef TENON_BACKENDS_CPU_ROW_KERNELS_H
#define TENON_BACKENDS_CPU_ROW_KERNELS_H

#include "tenon/module/kernel.h"

/* Ops, as functions name them. */
#define TNI_CPU_OP_LIST(X) \
    X(permute)             \
    X(cast)                \
    X(fill)                \
    X(unary)               \
    X(binary)              \
    X(reduce)              \
    X(softmax)             \
    X(norm)                \
    X(rotary)              \
    X(merge)

#define TNI_CPU_DECLARE_(name)                                          \
    tn_status tni_cpu_##name##_plain(const tn_run *run, tn_error *err); \
    tn_status tni_cpu_##name##_avx2(const tn_run *run, tn_error *err);  \
    tn_status tni_cpu_##name##_avx512(const tn_run *run, tn_error *err);
TNI_CPU_OP_LIST(TNI_CPU_DECLARE_)
#undef TNI_CPU_DECLARE_

#endif
