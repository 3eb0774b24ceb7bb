#include "blocking.h"

#include <stdatomic.h>

/* Bytes that are packed at once for all of k, so that they stay in a cache that is shared; where few lines
 * would be left, fewer chunks are packed, of more lines. Then threads wait for each other once, and sums stay in
 * a core's own cache from chunk to chunk. Few threads gain nothing by it when out has the sums. */
enum { DEEP_BYTES = 32 << 20, DEEP_LINES = 1024, DEEP_THREADS = 8, DEEP_BLOCK = 256 };
enum { SLAB_LINES = 4096, SLAB_BYTES = 2 << 20 };
/* Of a slab whose sums are apart and not of all of k. */
enum { SUMS_ROWS = 1024, SUMS_COLUMNS = 2048 };

enum { CACHE_GUESS = 1 << 20 };
enum { TASKS_OF_A_THREAD = 4 };
#define GRAIN_NS 20e3 /* what is worth a task */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return parts(n, to) * to;
}

/* Lines of both operands of a slab, as many as `most` together. B is packed once, A again for every slab
 * beside another: a slab is wide rather than high. */
static void share_lines(const tni_mm_product *p, int64_t most, tni_mm_slab *out)
{
    int64_t rows = least(p->m, most / 4 / DEEP_BLOCK * DEEP_BLOCK);
    out->columns = least(p->n, (most - rows) / DEEP_BLOCK * DEEP_BLOCK);
    int64_t more = (most - out->columns) / DEEP_BLOCK * DEEP_BLOCK;
    out->rows = least(p->m, more > rows ? more : rows);
}

static int64_t tasks_for(int32_t threads)
{
    return threads > 1 ? (int64_t)threads * TASKS_OF_A_THREAD : 1;
}

void tni_mm_slab_make(const tni_mm_set *set, const tni_mm_product *p, int32_t threads,
                      tni_mm_slab *out)
{
    int64_t depth = least(p->k, set->depth), chunks = p->k > 0 ? parts(p->k, set->depth) : 1;
    int64_t size = set->a_size > set->b_size ? set->a_size : set->b_size;
    int64_t lines = DEEP_BYTES / size / (chunks * (depth + 1));
    bool apart = chunks > 1 && (!tni_mm_out_is(p, set->acc) || p->op->uses & TN_MATMUL_USES_BETA);
    *out = (tni_mm_slab){.rows = least(p->m, apart ? SUMS_ROWS : SLAB_LINES),
                         .columns = least(p->n, apart ? SUMS_COLUMNS : SLAB_LINES),
                         .deep = lines >= DEEP_LINES && (apart || threads >= DEEP_THREADS),
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

/* About equal parts of `whole`, each a multiple of `tile` and at most `most`. */
static int64_t even(int64_t whole, int64_t most, int64_t tile)
{
    int64_t count = parts(whole, most < tile ? tile : most);
    return round_up(parts(whole, count), tile);
}

void tni_mm_cut_make(const tni_mm_set *set, const tni_mm_slab *slab, int64_t rows, int64_t columns,
                     int64_t depth, int32_t threads, int64_t cache, tni_mm_cut *out)
{
    int64_t chunk = least(depth, set->depth) + 1;
    int64_t fit = slab->deep ? DEEP_BLOCK : cache / 2 / (chunk * set->b_size);
    double work = (double)rows * (double)columns * (double)(depth + 1) * set->cost;
    double worth = work / GRAIN_NS;
    int64_t wanted = tasks_for(threads);
    wanted = worth < (double)wanted ? (worth > 1 ? (int64_t)worth : 1) : wanted;
    out->columns = even(columns, fit, set->columns);
    out->across = parts(columns, out->columns);
    int64_t high = parts(rows, parts(wanted, out->across));
    out->rows = even(rows, slab->deep ? least(high, DEEP_BLOCK) : high, set->rows);
    out->down = parts(rows, out->rows);
    if (out->down * out->across < wanted) {
        out->columns = even(columns, parts(columns, parts(wanted, out->down)), set->columns);
        out->across = parts(columns, out->columns);
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
