/* The functions that the rows of instruction sets run: one for each op and set, as built. */
#ifndef TENON_BACKENDS_CPU_ROWS_H
#define TENON_BACKENDS_CPU_ROWS_H

#include "tenon/module/kernel.h"

/*  Op, its name in functions, word. */
#define TNI_CPU_OP_LIST(X)         \
    X(PERMUTE, permute, "permute") \
    X(CAST, cast, "cast")          \
    X(FILL, fill, "fill")          \
    X(UNARY, unary, "unary")       \
    X(BINARY, binary, "binary")    \
    X(REDUCE, reduce, "reduce")    \
    X(SOFTMAX, softmax, "softmax") \
    X(NORM, norm, "norm")          \
    X(ROTARY, rotary, "rotary")

#define TNI_CPU_DECLARE_(NAME, name, word)                              \
    tn_status tni_cpu_##name##_plain(const tn_run *run, tn_error *err); \
    tn_status tni_cpu_##name##_avx2(const tn_run *run, tn_error *err);  \
    tn_status tni_cpu_##name##_avx512(const tn_run *run, tn_error *err);
TNI_CPU_OP_LIST(TNI_CPU_DECLARE_)
#undef TNI_CPU_DECLARE_

#endif
