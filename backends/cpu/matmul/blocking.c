#include "blocking.h"

#include <stdatomic.h>

/* Lines of a slab, and bytes that are packed before they are used: so much stays in a shared cache. */
enum { SLAB_LINES = 4096, SLAB_BYTES = 2 << 20 };
/* Of sums that cannot be kept in out. */
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

void tni_mm_slab_make(const tni_mm_set *set, const tni_mm_product *p, tni_mm_slab *out)
{
    int64_t depth = least(p->k, set->depth), chunks = p->k > 0 ? parts(p->k, set->depth) : 1;
    bool apart = chunks > 1 && (!tni_mm_out_is(p, set->acc) || p->op->uses & TN_MATMUL_USES_BETA);
    *out = (tni_mm_slab){.rows = least(p->m, apart ? SUMS_ROWS : SLAB_LINES),
                         .columns = least(p->n, apart ? SUMS_COLUMNS : SLAB_LINES)};
    out->a_panel = tni_mm_panel(set->rows, depth, set->group, set->a_size, set->a_more);
    out->b_panel = tni_mm_panel(set->columns, depth, set->group, set->b_size, set->b_more);
    out->a_chunk = parts(out->rows, set->rows) * out->a_panel;
    out->b_chunk = parts(out->columns, set->columns) * out->b_panel;
    int64_t fit = SLAB_BYTES / (out->a_chunk + out->b_chunk + 1);
    out->chunks = least(chunks, fit > 0 ? fit : 1);
    if (apart)
        out->sums = round_up(out->rows * round_up(out->columns, 16) * set->acc_size, 64);
    out->bytes = out->sums + out->chunks * (out->a_chunk + out->b_chunk);
}

/* About equal parts of `whole`, each a multiple of `tile` and at most `most`. */
static int64_t even(int64_t whole, int64_t most, int64_t tile)
{
    int64_t count = parts(whole, most < tile ? tile : most);
    return round_up(parts(whole, count), tile);
}

void tni_mm_cut_make(const tni_mm_set *set, int64_t rows, int64_t columns, int64_t depth,
                     int32_t threads, int64_t cache, tni_mm_cut *out)
{
    int64_t chunk = least(depth, set->depth) + 1;
    int64_t fit = cache / 2 / (chunk * set->b_size);
    double work = (double)rows * (double)columns * (double)(depth + 1) * set->cost;
    double worth = work / GRAIN_NS;
    int64_t wanted = threads > 1 ? (int64_t)threads * TASKS_OF_A_THREAD : 1;
    wanted = worth < (double)wanted ? (worth > 1 ? (int64_t)worth : 1) : wanted;
    out->columns = even(columns, fit, set->columns);
    out->across = parts(columns, out->columns);
    out->rows = even(rows, parts(rows, parts(wanted, out->across)), set->rows);
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
