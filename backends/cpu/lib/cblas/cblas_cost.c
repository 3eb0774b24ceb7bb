/* Predicted time of a gemm library. The shapes and constants are those of OpenBLAS 0.3: on x86 it
 * has separate code for small products, on Arm one code for all. The other libraries differ by the
 * cost of a call, and by the operations per microsecond that their rows state. */
#include "../../matmul/matmul_cost.h"
#include "cblas.h"
#include "cblas_side.h"

#include <math.h>

/* The shape of a product, as relevant to a library. */
typedef struct shape {
    double m, n, k;
    double down, across, along; /* vectors of m, n and k */
    double rest;                /* elements of k that do not fill a vector */
    double groups;              /* of rows: of four, then two, then one; each has its own latency */
    bool transposed;            /* B is contiguous along k */
    tni_mm_traffic traffic;
} shape;

static int64_t lanes_of(const tn_query *query, int64_t size)
{
    const uint64_t wide = TN_CPU_BIT(AVX512F), half = TN_CPU_BIT(AVX2);
    const int64_t bytes = query->cpu_features & wide ? 64 : query->cpu_features & half ? 32 : 16;
    return bytes > size ? bytes / size : 1;
}

static void look(const tn_query *query, const tni_mm_product *p, shape *out)
{
    const int64_t lanes = lanes_of(query, p->a.size);
    const int64_t groups = p->m / 4 + (p->m % 4 >= 2) + p->m % 2;
    *out = (shape){.m = (double)p->m,
                   .n = (double)p->n,
                   .k = (double)p->k,
                   .down = tni_mm_parts(p->m, lanes),
                   .across = tni_mm_parts(p->n, lanes),
                   .along = tni_mm_parts(p->k, lanes),
                   .rest = (double)(p->k % lanes),
                   .groups = (double)groups,
                   .transposed = p->b.column != 1 && p->n > 1 && p->k > 1};
    tni_mm_traffic_of(p, &out->traffic);
}

/* A single column: every row of A is read, and its tail that does not fill a vector element by
 * element. */
static double column(const shape *s, const tni_mm_product *p)
{
    enum { LINE = 64 };
    const double lines = s->m * s->k * (double)p->a.size / LINE;
    return (1.1 + 0.13 * s->rest) * s->m + 0.6 * lines + 0.55 * s->k + 0.4 * s->traffic.near +
           (s->m * s->k > 1e6 ? 4 : 2.5) * s->traffic.read;
}

/* Few columns and a large k, several rows at once: four columns at a time, then two, then one. A
 * large A has left the first-level cache when it is read again. */
static double few_columns(const shape *s, const tni_mm_product *p)
{
    enum { STAY = 4000 };
    const int64_t fours = p->n / 4;
    const double columns = 1.4 * (double)fours + (p->n % 4 >= 2) + 0.93 * (double)(p->n % 2);
    const int64_t lanes = 64 / p->a.size, rest = p->m % lanes;
    const int64_t passes = p->m / lanes + rest / 4 + (rest % 4 >= 2) + rest % 2;
    const int64_t again = fours + (p->n % 4 >= 2) + p->n % 2 - 1;
    const double gone = s->traffic.near > STAY ? s->traffic.near - STAY : 0;
    const double down = p->a.size == 4 ? (p->m <= 4 ? 0.6 : s->down)
                        : p->m < 4     ? 0.8
                                       : (double)passes;
    return columns * s->k * down + 0.4 * s->m * s->n + (0.3 + 1.3 * (double)again) * gone +
           2.5 * s->traffic.read;
}

/* Without packing. */
static double small(const shape *s, const tni_mm_product *p)
{
    enum { FEW = 8, MUCH = 45, LOW = 16, LINES_OF_B = 512, LINE = 64 };
    if (s->transposed)
        return s->groups * s->n * s->along + 1.2 * s->m * s->n;
    if (s->n <= FEW && s->k >= MUCH)
        return few_columns(s, p);
    const bool wide = s->across > 2;
    const double b = p->m <= LOW && p->n * p->k > LINES_OF_B * LINE / p->a.size
                         ? 0.5 * s->groups * s->n * s->k * (double)p->a.size / LINE
                         : 0; /* few rows wait for B if it exceeds the first-level cache */
    const double step = wide ? (p->m <= LOW ? 0.85 : 0.67) : p->a.size == 8 ? 1.5 : 1.2;
    return b + step * s->groups * s->k * s->across +
           (s->across > 1 ? 1.1 : 0.45) * s->m * s->across + (wide ? 0.65 : 0.4) * s->traffic.near +
           s->traffic.read + 4.6 * s->traffic.written;
}

/* Both operands are packed, for tiles of four rows. */
static double large(const shape *s, const tni_mm_product *p)
{
    enum { ROWS = 4, LINE = 64 };
    const double rows = tni_mm_parts(p->m, ROWS) * ROWS, size = (double)p->a.size;
    const double step = 0.14 + 0.015 * size, pack = 0.17 + 0.012 * size;
    return (s->transposed ? 160 : 95) + step * rows * s->across * s->k + pack * s->m * s->k +
           (s->transposed ? 0.45 : 0.2) * s->n * s->k +
           1.6 * s->m * s->n * (double)p->out.size / LINE + 3 * s->traffic.read +
           3.5 * s->traffic.written;
}

/* On Arm, both operands of every product are packed, even for a single column. */
static double any_arm(const shape *s, const tni_mm_product *p)
{
    enum { ROWS = 4 };
    const double rows = tni_mm_parts(p->m, ROWS) * ROWS, size = (double)p->a.size;
    const double pack_b = s->transposed ? 0.25 + 0.042 * size : 0.045 * size;
    return 0.23 * rows * s->across * s->k + 0.12 * size * s->m * s->k + pack_b * s->n * s->k +
           0.14 * size * s->m * s->n + 3 * s->traffic.read + 3.5 * s->traffic.written;
}

static bool is_arm(const tn_query *query)
{
    return (query->cpu_features & TN_CPU_BIT(NEON)) != 0;
}

/* Cost of a call besides its multiplications. */
static double call_of(const tn_query *query)
{
    return is_arm(query) ? 300 : 140;
}

/* Nanoseconds of one matrix on x86. If B is contiguous along k, the small-product code is used only
 * if dot products pay off. */
static double any_x86(const shape *s, const tni_mm_product *p)
{
    const double products = s->m * s->n * s->k;
    if (p->n == 1)
        return column(s, p);
    if (products <= 1e6 && (!s->transposed || (s->m * s->n <= 1200 && s->k >= 32)))
        return small(s, p);
    return large(s, p);
}

/* As cut by cblas_tiles.c: tasks of 2^21 multiplications, of at least 64 rows and columns. */
static double tasks_of(const tni_mm_product *p)
{
    const double work = (double)p->m * (double)p->n * (double)p->k;
    const double most = tni_mm_parts(p->m, 64) * tni_mm_parts(p->n, 64);
    const double target = work > 0x1p22 ? work / 0x1p21 : 1;
    const double whole = (double)p->matrices * (work < 0x1p21 ? work / 0x1p21 : 1);
    return (target < most ? target : most) * (whole > 1 ? whole : 1);
}

/* Tiles of one product each pack the data they share, and also load it again from the shared
 * memory. */
static double repeated_us(const shape *s, const tni_mm_product *p, int32_t threads)
{
    const double tasks = tasks_of(p) / (double)p->matrices;
    const double ways = tasks < (double)threads ? tasks : (double)threads;
    return ways >= 2 ? sqrt(ways) * 3 * s->traffic.read * (double)p->matrices / 1e3 : 0;
}

double tni_cblas_cost(const tn_kernel_row *row, const tn_query *query)
{
    static const double openblas_rate = 6e4, openblas_call = 0.3;
    const tn_dtype dtype = query->op->operand[TN_MATMUL_A].dtype;
    tni_mm_product p;
    tni_sides sides;
    shape s;
    if ((dtype != TN_F32 && dtype != TN_F64) || tni_sides_describe(query->op, &p, &sides, NULL) ||
        p.m == 0 || p.n == 0 || p.matrices == 0)
        return 0;
    look(query, &p, &s);
    const double matrix = is_arm(query) ? any_arm(&s, &p) : any_x86(&s, &p);
    const double ns = matrix * openblas_rate / row->flops_per_us;
    const double call = call_of(query) + 1e3 * (row->overhead_us - openblas_call);
    return tni_mm_cost_shared(call + (double)p.matrices * ns, tasks_of(&p), query->threads) +
           repeated_us(&s, &p, query->threads);
}
