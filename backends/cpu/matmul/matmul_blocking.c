#include "matmul_blocking.h"

#include "../shared/sizes.h"
#include "tenon/module/op/matmul.h"

#include <stdatomic.h>

/* A "deep" slab is packed for all of k at once, at most DEEP_BYTES so that it stays in a shared
 * cache. If that leaves too few lines, fewer chunks are packed, with more lines each. In a deep
 * slab, threads wait for each other once, and the accumulators stay in a core's own cache from
 * chunk to chunk. With few threads it brings nothing if the accumulators are kept in out. */
enum { DEEP_BYTES = 32 << 20, DEEP_THREADS = 8, DEEP_BLOCK = 256 };
/* Minimum number of lines of a deep slab: with fewer, operands are read again too often. */
enum { DEEP_LINES = 2560, DEEP_LINES_APART = 1024 };
enum { SLAB_LINES = 4096, SLAB_BYTES = 2 << 20 };
/* Largest slab with separate accumulators that is not deep. */
enum { SUMS_ROWS = 1024, SUMS_COLUMNS = 2048 };

enum { CACHE_GUESS = 1 << 20 };
enum { TASKS_OF_A_THREAD = 4 };

/* Number of block widths and of tasks per thread to try; the cost of a task, of distributing the
 * tasks, and of a byte that all threads read; the fraction of a task by which the last thread is
 * late. */
enum { WIDTHS = 16, ROUNDS = 6 };
#define TASK_NS  500.0
#define SHARE_NS 8e3
#define BYTE_NS  0.1
#define LATE     0.25

/* Size of about equal parts, each at most `most`. If there are several, they are multiples of
 * DEEP_BLOCK, as `most` is. */
static int64_t even(int64_t whole, int64_t most)
{
    return whole <= most ? whole : round_up(parts(whole, parts(whole, most)), DEEP_BLOCK);
}

/* Chooses the rows of A and columns of B in a slab, `most` lines together. B is packed once, but A
 * is packed again for every slab in the same row, so a slab is wide rather than high. */
static void share_lines(const tni_mm_product *p, int64_t most, tni_mm_slab *out)
{
    int64_t rows = least(p->m, most / 4 / DEEP_BLOCK * DEEP_BLOCK);
    out->columns = even(p->n, (most - rows) / DEEP_BLOCK * DEEP_BLOCK);
    int64_t more = (most - out->columns) / DEEP_BLOCK * DEEP_BLOCK;
    out->rows = even(p->m, more > rows ? more : rows);
}

static int64_t tasks_for(int32_t threads)
{
    return threads > 1 ? (int64_t)threads * TASKS_OF_A_THREAD : 1;
}

bool tni_mm_needs_accumulator(const tni_mm_set *set, const tni_mm_product *p)
{
    return p->k > set->depth && (!tni_mm_out_is(p, set->acc) || p->op->uses & TN_MATMUL_USES_BETA);
}

void tni_gemm_panel_layout(const tni_mm_set *set, const tni_mm_product *p, int32_t threads,
                           tni_mm_slab *out)
{
    int64_t depth = least(p->k, set->depth), chunks = p->k > 0 ? parts(p->k, set->depth) : 1;
    int64_t size = set->a_size > set->b_size ? set->a_size : set->b_size;
    int64_t lines = DEEP_BYTES / size / (chunks * (depth + 1));
    bool apart = tni_mm_needs_accumulator(set, p);
    *out = (tni_mm_slab){.rows = least(p->m, apart ? SUMS_ROWS : SLAB_LINES),
                         .columns = least(p->n, apart ? SUMS_COLUMNS : SLAB_LINES),
                         .deep = apart ? lines >= DEEP_LINES_APART
                                       : lines >= DEEP_LINES && threads >= DEEP_THREADS,
                         .apart = apart};
    if (out->deep)
        share_lines(p, lines, out);
    out->a_panel = tni_mm_panel(set->rows, depth, set->group, set->a_size, set->a_more);
    out->b_panel = tni_mm_panel(set->columns, depth, set->group, set->b_size, set->b_more);
    out->a_chunk = parts(out->rows, set->rows) * out->a_panel;
    out->b_chunk = parts(out->columns, set->columns) * out->b_panel;
    int64_t fit = SLAB_BYTES / (out->a_chunk + out->b_chunk + 1);
    out->chunks = out->deep ? chunks : least(chunks, fit > 0 ? fit : 1);
    if (apart && out->deep) {
        int64_t high = DEEP_BLOCK + set->rows, wide = round_up(DEEP_BLOCK + set->columns, 16);
        int64_t all = (out->rows + high) * (out->columns + wide);
        out->sums = round_up(least(tasks_for(threads) * high * wide, all) * set->acc_size, 64);
    } else if (apart) {
        out->sums = round_up(out->rows * round_up(out->columns, 16) * set->acc_size, 64);
    }
    out->bytes = out->sums + out->chunks * (out->a_chunk + out->b_chunk);
}

/* Estimated time of the thread with the most work. Operands of a task come from a shared cache. */
static double cut_ns(const tni_mm_set *set, const tni_mm_cut *cut, int64_t depth, int32_t threads)
{
    const int64_t tasks = cut->down * cut->across;
    const double rounds = (double)parts(tasks, most(threads, 1)), deep = (double)(depth + 1);
    const double products = (double)cut->rows * (double)cut->columns * deep * set->cost;
    const double bytes = (double)(cut->rows * set->a_size + cut->columns * set->b_size) * deep;
    return (rounds + LATE) * (products + bytes * BYTE_NS) + rounds * TASK_NS +
           (tasks > 1 ? SHARE_NS : 0);
}

/* Cuts into about down x across blocks, or more if a block would have more than rows_most rows
 * (rounded up to a tile). */
static tni_mm_cut cut_into(const tni_mm_set *set, int64_t rows, int64_t columns, int64_t down,
                           int64_t across, int64_t rows_most)
{
    tni_mm_cut cut = {.columns = round_up(parts(columns, across), set->columns)};
    cut.across = parts(columns, cut.columns);
    down = most(most(down, parts(rows, rows_most)), 1);
    cut.rows = round_up(parts(rows, down), set->rows);
    cut.down = parts(rows, cut.rows);
    return cut;
}

void tni_mm_cut_make(const tni_mm_set *set, const tni_mm_slab *slab, int64_t rows, int64_t columns,
                     int64_t depth, int32_t threads, int64_t cache, tni_mm_cut *out)
{
    int64_t chunk = least(depth, set->depth) + 1;
    int64_t fit = slab->deep ? DEEP_BLOCK : cache / 2 / (chunk * set->b_size);
    int64_t rows_most = slab->deep ? DEEP_BLOCK : rows;
    int64_t across = parts(columns, most(fit, set->columns));
    int64_t end = threads > 1 ? least(across + threads, parts(columns, set->columns)) : across;
    double best = 0;
    for (int64_t wide = across; wide <= end; wide += parts(end - across + 1, WIDTHS)) {
        for (int64_t rounds = 0; rounds <= (threads > 1 ? ROUNDS : 0); rounds++) {
            tni_mm_cut cut = cut_into(set, rows, columns, rounds * threads / wide, wide, rows_most);
            double ns = cut_ns(set, &cut, depth, threads);
            if (best == 0 || ns < best) {
                best = ns;
                *out = cut;
            }
        }
    }
}

int64_t tni_mm_cache(const tn_host *host)
{
    static _Atomic int64_t kept;
    int64_t bytes = atomic_load_explicit(&kept, memory_order_relaxed);
    if (bytes > 0)
        return bytes;
    tn_machine_facts facts = {.struct_size = sizeof facts};
    bool known = host->machine && host->machine(host->self, &facts, NULL) == TN_OK &&
                 facts.l2_cache.known && facts.l2_cache.value > 0;
    bytes = known ? facts.l2_cache.value : CACHE_GUESS;
    atomic_store_explicit(&kept, bytes, memory_order_relaxed);
    return bytes;
}
