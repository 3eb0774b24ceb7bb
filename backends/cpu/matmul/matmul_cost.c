#include "matmul_cost.h"

#include "matmul_in_place.h"
#include "matmul_thin.h"

enum { LINE = 64, FIRST_CACHE = 40 << 10, SECOND_CACHE = 2 << 20 };

/* Time to wake other threads and wait for them; and the efficiency of each further thread, since
 * threads share caches, memory and the machine. */
#define WAKE_NS 4000.0
#define FURTHER 0.7

#define CALL_NS 80.0

/* Minimum time of a tile's step of k if B comes from the second-level cache and its rows are far
 * apart: Arm cores prefetch little of it. */
#if defined(__aarch64__)
#define FETCH_NS 8.0
#else
#define FETCH_NS 0.0
#endif

static double beyond(double bytes, double cache)
{
    return bytes > cache ? (bytes - cache) / LINE : 0;
}

double tni_mm_cost_shared(double ns, double tasks, int32_t threads)
{
    double ways = tasks < (double)threads ? tasks : (double)threads;
    return (ways >= 2 ? ns / (1 + FURTHER * (ways - 1)) + WAKE_NS : ns) / 1e3;
}

void tni_mm_traffic_of(const tni_mm_product *p, tni_mm_traffic *out)
{
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const double read = m * k * (double)p->a.size + k * n * (double)p->b.size;
    const double written = m * n * (double)p->out.size;
    *out = (tni_mm_traffic){.near = beyond(read + written, FIRST_CACHE),
                            .read = beyond(read, SECOND_CACHE),
                            .written = beyond(written, (double)SECOND_CACHE / 2)};
}

/* Tiles of a product that is computed in place, as cut by matmul_in_place.c. */
typedef struct tiling {
    double tiles;
    double steps;  /* vector multiply-adds, or whatever else limits a step of k */
    double first;  /* steps of the tiles that are the first to read a part of B */
    double parts;  /* of B that tiles read */
    double stores; /* number of vector stores */
} tiling;

static int64_t even(int64_t whole, int64_t most)
{
    const int64_t count = (whole + most - 1) / most;
    return (whole + count - 1) / count;
}

/* Steps of one tile. A step is limited by its multiply-adds, by its loads, or by the latency of the
 * accumulator. */
static double steps_of(const tni_mm_product *p, int64_t rows, double vectors)
{
    enum { CHAIN = 8 };
    const double products = (double)rows * vectors, loads = (double)rows + vectors;
    const double most = products > loads ? products : loads;
    return (double)p->k * (most > CHAIN ? most : CHAIN);
}

/* Adds `many` tiles of these rows and vectors. */
static void add_rows(const tni_mm_product *p, int64_t rows, double vectors, double many, tiling *to)
{
    to->tiles += many;
    to->steps += many * steps_of(p, rows, vectors);
    to->stores += many * (double)rows * vectors;
}

/* Adds the tiles of a product. */
static void cut(const tni_mm_kernels *kernels, const tni_mm_product *p, tiling *out)
{
    const int64_t all = ((p->n - 1) >> kernels->width_log2) + 1;
    const int64_t width = even(all, tni_mm_in_place_vectors(kernels, p));
    const int64_t last = all % width ? all % width : width;
    for (int32_t i = 0; i < 2; i++) {
        const int64_t vectors = i == 0 ? width : last, many = i == 0 ? (all - last) / width : 1;
        const int64_t height = even(p->m, tni_mm_in_place_rows(kernels, p, vectors));
        const int64_t whole = many * (p->m / height);
        add_rows(p, height, (double)vectors, (double)whole, out);
        out->first += (double)many * steps_of(p, height, (double)vectors);
        out->parts += (double)many;
        if (p->m % height)
            add_rows(p, p->m % height, (double)vectors, (double)many, out);
    }
}

/* Time that tiles of few rows wait for B, in addition to their own steps, if B exceeds the
 * first-level cache. */
static double fetch_ns(const tni_mm_product *p, const tiling *it, double step_ns)
{
    const double bytes = (double)p->k * (double)p->n * (double)p->b.size;
    const double wait = FETCH_NS * it->parts * (double)p->k, taken = step_ns * it->first;
    return bytes > FIRST_CACHE && wait > taken ? wait - taken : 0;
}

/* Time of the last columns if they are computed separately: vectors hold rows, and are stored
 * element by element. */
static double last_columns(const tni_mm_kernels *kernels, double step_ns, const tni_mm_product *p,
                           int64_t last)
{
    const int64_t lanes = (int64_t)1 << kernels->width_log2, rest = p->m % lanes;
    const int64_t steps = p->m / lanes * (5 + last) + (rest > 0 ? most(rest, 8) : 0);
    return step_ns * (double)steps * (double)p->k + 0.35 * (double)(p->m * last);
}

/* Rows in one vector, if a half or a quarter of a 64-byte vector holds all columns. */
static double folds(const tni_mm_kernels *kernels, const tni_mm_product *p)
{
    const int64_t lanes = (int64_t)1 << kernels->width_log2;
    if (lanes * kernels->packed.acc_size < LINE)
        return 1;
    return p->n == lanes / 2 ? 2 : p->n == lanes / 4 ? 4 : 1;
}

/* One matrix in place. `plain`: sums are written to out unchanged. */
static double in_place(const tni_mm_kernels *kernels, double step_ns, const tni_mm_product *p,
                       bool plain)
{
    const bool packs = p->b.column != 1 && p->n > 1;
    const double chunks = tni_mm_parts(p->k, TNI_MM_DEPTH), k = (double)p->k;
    const double lines = (double)(p->m + p->n) * k * (double)p->b.size / LINE;
    tni_mm_traffic traffic;
    tiling it = {0};
    const int64_t last = plain && !packs && p->k <= TNI_MM_DEPTH
                             ? tni_mm_in_place_last(kernels, p->m, p->n, p->k, p->a.column)
                             : 0;
    tni_mm_product whole = *p;
    whole.n -= last;
    tni_mm_traffic_of(p, &traffic);
    if (whole.n > 0)
        cut(kernels, &whole, &it);
    double ns = last > 0 ? last_columns(kernels, step_ns, p, last) : 0;
    ns += 4 * chunks * it.tiles + step_ns * it.steps + 0.7 * chunks * it.stores / folds(kernels, p);
    ns += packs ? 100 + 20 * (double)(p->n >> kernels->width_log2) +
                      2 * k * tni_mm_parts(p->n, (int64_t)1 << kernels->width_log2)
                : 0.25 * lines + 0.42 * traffic.near + fetch_ns(p, &it, step_ns);
    return ns;
}

/* Few rows: B is read once, by dot products if it is contiguous along k. */
static double thin(const tni_mm_kernels *kernels, double step_ns, const tni_mm_product *p)
{
    const int64_t width = (int64_t)1 << kernels->width_log2;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const double lines = n * k * (double)p->b.size / LINE;
    const double chunks = tni_mm_parts(p->k, TNI_MM_DEPTH);
    tni_mm_traffic traffic;
    tni_mm_traffic_of(p, &traffic);
    if (p->b.column != 1 && p->n > 1)
        return 400 + 2.2 * step_ns * m * n * tni_mm_parts(p->k, width) + 1.2 * lines +
               traffic.read + chunks * n * (1 + 0.7 * m) + (p->k % width ? 3 * n : 0);
    return 400 + 1.5 * step_ns * m * k * tni_mm_parts(p->n, width) + 0.6 * lines +
           1.8 * traffic.read + 10 * chunks * m;
}

/* Packed operands. The last tiles have fewer rows, but take at least the latency of the
 * accumulator. */
static double packed(const tni_mm_set *set, double step_ns, int64_t lanes, const tni_mm_product *p)
{
    enum { FEWEST = 4 };
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const int64_t rest = p->m % set->rows;
    const double rows = m + (double)(rest > 0 && rest < FEWEST ? FEWEST - rest : 0);
    const double packing = 0.055 * m * k * (double)p->a.size +
                           (p->b.column == 1 ? 0.06 : 0.03) * n * k * (double)p->b.size;
    const double narrow =
        0.5 + LINE / 2.0 / (double)(lanes * p->b.size); /* vectors shorter than a cache line */
    tni_mm_traffic traffic;
    tni_mm_traffic_of(p, &traffic);
    const double tiles = tni_mm_parts(p->m, set->rows) * tni_mm_parts(p->n, set->columns);
    return 350 + 15 * tiles * tni_mm_parts(p->k, TNI_MM_DEPTH) +
           1.16 * step_ns * rows * tni_mm_parts(p->n, lanes) * k + narrow * packing +
           0.8 * m * n * (double)p->out.size / LINE + 0.3 * traffic.near;
}

/* Traffic of one matrix to memory that all threads share: packing writes again everything it reads,
 * but out is then written while it is in a cache. */
static double far(const tni_mm_product *p, bool in_place)
{
    tni_mm_traffic traffic;
    tni_mm_traffic_of(p, &traffic);
    return 3 * traffic.read + (in_place ? 3.5 : 2) * traffic.written;
}

/* Number of tasks that a product is worth, each of grain_ns nanoseconds by the set's own
 * estimate. */
static double tasks_of(const tni_mm_set *set, const tni_mm_product *p, double grain_ns)
{
    return (double)p->m * (double)p->n * (double)p->k * set->cost * (double)p->matrices / grain_ns;
}

static double thin_us(const tni_mm_kernels *kernels, double step_ns, const tni_mm_product *p,
                      int32_t threads)
{
    enum { SHARED_BYTES = 256 * 1024 };
    const double bytes = (double)p->n * (double)p->k * (double)p->b.size;
    const bool shared = bytes >= SHARED_BYTES && threads > 1;
    const double ns = CALL_NS + (double)p->matrices * thin(kernels, step_ns, p);
    /* Threads are woken twice: for the sums, then to add them. */
    return tni_mm_cost_shared(ns, shared ? threads : 1, threads) + (shared ? WAKE_NS / 1e3 : 0);
}

double tni_mm_cost(const tni_mm_kernels *kernels, double step_ns, const tn_query *query)
{
    const tni_mm_set *set = &kernels->packed;
    const tn_op *op = query->op;
    tni_mm_product p;
    tni_mm_describe(op, &p);
    if (p.m == 0 || p.n == 0 || p.matrices == 0)
        return CALL_NS / 1e3;
    if (!(op->uses & ~(uint64_t)TNI_MM_PLAIN_USES) && tni_mm_is_plain(op))
        return (CALL_NS + in_place(kernels, step_ns, &p, true)) / 1e3;
    if (tni_mm_is_thin(&p))
        return thin_us(kernels, step_ns, &p, query->threads);
    const bool there = tni_mm_is_in_place(&p);
    const int64_t lanes = (int64_t)1 << kernels->width_log2;
    const bool plain = !(op->uses & ~(uint64_t)(TNI_MM_PLAIN_USES | TN_MATMUL_USES_BATCH |
                                                TN_MATMUL_USES_BROADCAST));
    const double matrix =
        there ? in_place(kernels, step_ns, &p, plain) : packed(set, step_ns, lanes, &p);
    const double tasks = tasks_of(set, &p, there ? 6e3 : 20e3), matrices = (double)p.matrices;
    return tni_mm_cost_shared(CALL_NS + matrices * matrix, tasks, query->threads) +
           matrices * far(&p, there) / 1e3;
}
