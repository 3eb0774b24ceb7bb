/* Predicted time of a product, from its shape: counts of operations times the time of each. Times
 * are in nanoseconds on a core of about 3 GHz with operands in cache. On another processor all are
 * wrong by a similar factor, so the ranking of kernels stays the same. The functions are pure. */
#ifndef TENON_BACKENDS_CPU_MATMUL_COST_H
#define TENON_BACKENDS_CPU_MATMUL_COST_H

#include "matmul_kernels.h"
#include "matmul_lowp.h"

/* Number of parts needed to cover the whole, rounded up. */
static inline double tni_mm_parts(int64_t whole, int64_t part)
{
    const int64_t count = (whole + part - 1) / part;
    return (double)count;
}

/* Microseconds for f32 or f64, by kernels whose multiply-add of a vector takes step_ns. */
double tni_mm_cost(const tni_mm_kernels *kernels, double step_ns, const tn_query *query);

/* Microseconds of a low-precision kernel row. */
double tni_mm_low_cost(const tn_kernel_row *row, const tn_query *query);

/* Microseconds that `ns` of single-threaded work takes when it is split into `tasks` tasks. */
double tni_mm_cost_shared(double ns, double tasks, int32_t threads);

/* Traffic that is not hidden behind the multiplications, in cache lines: operands and out beyond
 * the first-level cache, lines read beyond the second level, and lines written beyond it. */
typedef struct tni_mm_traffic {
    double near, read, written;
} tni_mm_traffic;
void tni_mm_traffic_of(const tni_mm_product *product, tni_mm_traffic *out);

#endif
