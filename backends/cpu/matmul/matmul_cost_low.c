#include "matmul_cost.h"

#include "matmul_lowp_narrow.h"

/* Few rows; kernels exist for 1, 4 and 8 rows. Reading B costs most if it is contiguous along k and
 * must be transposed. */
static double thin(const tni_mm_row *row, const tni_mm_product *p)
{
    enum { LANES = 16 };
    const double rows = p->m == 1 ? 1 : p->m <= 4 ? 4 : TNI_MM_FEW;
    const double n = (double)p->n, k = (double)p->k, vectors = n * k / LANES;
    /* The tail of each row of B takes one load if there are masks. */
    const double end = row->row.cpu_needs & TN_CPU_BIT(AVX512BW) ? 1.5 : 8;
    if (p->b.column == 1 || p->n == 1)
        return 300 + (row->thin_ns + 0.1) * rows * vectors + 0.6 * vectors + n + end * k;
    return 300 + row->thin_ns * rows * vectors + 0.6 * vectors + 11 * n + 1.5 * k + rows * n;
}

/* Every row ends with a tile that is finished element by element. If elements are widened while
 * packing, an incomplete panel is also read element by element. */
static double packed(const tni_mm_row *row, const tni_mm_product *p)
{
    enum { LANES = 16, LINE = 64 };
    const tni_mm_set *set = row->set;
    const double down = tni_mm_parts(p->m, set->rows), across = tni_mm_parts(p->n, set->columns);
    const double k = tni_mm_parts(p->k, set->group) * set->group;
    const double panels = (down * set->rows + across * set->columns) * k / LANES;
    const double out = (double)p->m * (double)p->n * (double)p->out.size / LINE;
    const bool by_elements = row->packs && p->n % set->columns;
    return row->call_ns + (by_elements ? 4.0 * 32 / set->columns * k : 0) +
           down * across * (12 + row->step_ns * k) + 1.4 * 32 / set->columns * panels + 3 * out +
           row->row_ns * (double)p->m;
}

/* A is read once in place, which takes longer than multiplying. */
static double narrow(const tni_mm_row *row, const tni_mm_product *p)
{
    enum { LANES = 16, LINE = 64 };
    const double across = tni_mm_parts(p->n, row->set->columns);
    const double k = (double)p->k, lines = (double)p->m * k * (double)p->a.size / LINE;
    tni_mm_traffic traffic;
    tni_mm_traffic_of(p, &traffic);
    return row->call_ns + 1.4 * across * row->set->columns * k / LANES +
           (2.5 + 0.4 * (across - 1)) * lines + traffic.read + 0.8 * row->row_ns * (double)p->m;
}

double tni_mm_low_cost(const tn_kernel_row *row, const tn_query *query)
{
    const tni_mm_row *it = (const tni_mm_row *)row;
    tni_mm_product p;
    tni_mm_describe(query->op, &p);
    if (p.m == 0 || p.n == 0 || p.matrices == 0)
        return it->call_ns / 1e3;
    const bool few = it->thin && tni_mm_low_is_thin(&p);
    const bool there = !few && tni_mm_low_is_narrow(it->set, &p);
    const double matrix = few ? thin(it, &p) : there ? narrow(it, &p) : packed(it, &p);
    const double ns = matrix * (double)p.matrices;
    const double tasks = few || there ? ns / 10e3
                                      : (double)p.m * (double)p.n * (double)p.k * it->set->cost *
                                            (double)p.matrices / 20e3;
    return tni_mm_cost_shared(ns, tasks, query->threads);
}
