/* Predicted time of oneDNN: mainly the cost of a call, then packing of operands that do not fill
 * its tiles. The row's figures state the peak speed of the code that it compiles for a shape. */
#include "../../matmul/matmul_cost.h"
#include "../cblas/cblas_side.h"
#include "onednn_matmul.h"

double tni_dnnl_cost(const tn_kernel_row *row, const tn_query *query)
{
    enum { ROWS = 8, COLUMNS = 16, LANES = 16 };
    tni_mm_product p;
    tni_sides sides;
    tni_mm_traffic traffic;
    if (tni_sides_describe(query->op, &p, &sides, NULL) || p.m == 0 || p.n == 0 || p.matrices == 0)
        return 0;
    tni_mm_traffic_of(&p, &traffic);
    const double k = (double)p.k, tiles = tni_mm_parts(p.m, ROWS) * tni_mm_parts(p.n, COLUMNS);
    const double work = 2 * tiles * ROWS * COLUMNS * k;
    const double packed = ((double)p.m + (double)p.n) * k / LANES;
    const double ns = 1e3 * work / row->flops_per_us + packed + 0.4 * traffic.near +
                      3 * (traffic.read + traffic.written);
    const double tasks = work / 2 > 0x1p22 ? work / 0x1p22 : 1;
    const double matrices = (double)p.matrices;
    return tni_mm_cost_shared(1e3 * row->overhead_us + matrices * ns, tasks * matrices,
                              query->threads);
}
