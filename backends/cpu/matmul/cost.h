/* What a product is predicted to take, by its shape: the sum of what is done so often, times what doing it once
 * takes. Times are nanoseconds of a core at about 3 GHz whose operands were used just before; on another
 * processor they are wrong alike, so that the order of kernels stays. Pure. */
#ifndef TENON_BACKENDS_CPU_MATMUL_COST_H
#define TENON_BACKENDS_CPU_MATMUL_COST_H

#include "kernels.h"
#include "lowp.h"

/* How many parts cover the whole. */
static inline double tni_mm_parts(int64_t whole, int64_t part)
{
    const int64_t count = (whole + part - 1) / part;
    return (double)count;
}

/* Microseconds of f32 or f64, by kernels whose multiply-add of a vector takes step_ns. */
double tni_mm_cost(const tni_mm_kernels *kernels, double step_ns, const tn_query *query);

/* Microseconds of a row of low precision. */
double tni_mm_low_cost(const tn_kernel_row *row, const tn_query *query);

/* Microseconds that work of one thread takes when it is shared out to as many tasks. */
double tni_mm_cost_shared(double ns, double tasks, int32_t threads);

/* What it takes to bring operands and out near, beyond what multiplying waits for anyway: cache lines that are
 * too many for the first cache, read ones that are too many for the second, written ones likewise. */
typedef struct tni_mm_traffic {
    double near, read, written;
} tni_mm_traffic;
void tni_mm_traffic_of(const tni_mm_product *product, tni_mm_traffic *out);

#endif
