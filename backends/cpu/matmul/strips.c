#include "strips.h"

#include "../sizes.h"
#include "blocking.h"

#include <stdatomic.h>

/* Of B, packed at once; less on a core whose own cache is smaller. */
enum { B_BYTES = 1 << 20 };
/* More threads were not measured. What is left of a round is taken in so many parts for each. */
enum { THREADS_MOST = 4, PARTS_OF_A_THREAD = 4 };

/* What packing a byte takes, and the part of the products' time that packing B again may take. */
#define PACK_NS 0.05
#define AGAIN   (1.0 / 16)

/* A round: some columns and one chunk of k, for all rows. */
typedef struct round {
    const tni_mm_set *set;
    const tni_mm_product *product;
    const tni_mm_matrix *at;
    const tni_mm_finish *finish;
    char *room;
    int64_t room_bytes, b_bytes; /* of a thread, and of B therein */
    int64_t a_panel, b_panel;
    int32_t threads;
    int64_t column, columns;
    int64_t first, depth;
    _Atomic int64_t next; /* strip that nobody has taken */
} round;

bool tni_mm_strips_suit(const tni_mm_set *set, const tni_mm_product *p, int32_t threads)
{
    const double again = (double)(threads - 1) * set->b_size * PACK_NS / set->cost;
    return threads > 1 && threads <= THREADS_MOST && p->k > 0 && p->n > set->columns &&
           again < AGAIN * (double)p->m && !tni_mm_sums_apart(set, p);
}

/* Columns of a round: as many as fit, in about equal parts. */
static int64_t columns_for(const tni_mm_set *set, const tni_mm_product *p, int64_t bytes)
{
    const int64_t panel =
        tni_mm_panel(set->columns, least(p->k, set->depth), set->group, set->b_size, set->b_more);
    const int64_t fit = most(bytes / panel, 1) * set->columns;
    return round_up(parts(p->n, parts(p->n, fit)), set->columns);
}

static void measure(const tni_mm_set *set, const tni_mm_product *p, int64_t cache, round *out)
{
    const int64_t depth = least(p->k, set->depth);
    out->columns = columns_for(set, p, least(B_BYTES, cache / 2));
    out->a_panel = tni_mm_panel(set->rows, depth, set->group, set->a_size, set->a_more);
    out->b_panel = tni_mm_panel(set->columns, depth, set->group, set->b_size, set->b_more);
    out->b_bytes = out->columns / set->columns * out->b_panel;
    out->room_bytes = out->b_bytes + out->a_panel;
}

int64_t tni_mm_strips_bytes(const tni_mm_set *set, const tni_mm_product *p)
{
    round widest;
    measure(set, p, 2 * B_BYTES, &widest);
    return widest.room_bytes;
}

static void pack_b(const round *it, char *to)
{
    tni_mm_pack job = tni_mm_pack_b(&it->product->b, it->at->b, it->column, it->first);
    job.lines = it->columns;
    job.depth = it->depth;
    job.to = to;
    job.panel = it->b_panel;
    it->set->pack_b(&job);
}

static void pack_a(const round *it, int64_t row, char *to)
{
    tni_mm_pack job = tni_mm_pack_a(&it->product->a, it->at->a, row, it->first);
    job.lines = least(it->set->rows, it->product->m - row);
    job.depth = it->depth;
    job.to = to;
    job.panel = it->a_panel;
    it->set->pack_a(&job);
}

/* One strip: the rows of a tile. */
static void multiply(const round *it, int64_t row, const char *a, const char *b)
{
    const tni_mm_side *out = &it->product->out, *bias = &it->product->bias;
    tni_mm_block job = {.a = a,
                        .b = b,
                        .a_panel = it->a_panel,
                        .b_panel = it->b_panel,
                        .rows = least(it->set->rows, it->product->m - row),
                        .columns = it->columns,
                        .depth = it->depth,
                        .first = it->first == 0,
                        .last = it->first + it->depth == it->product->k,
                        .sums_row = out->row,
                        .finish = it->finish,
                        .out =
                            it->at->out + (row * out->row + it->column * out->column) * out->size};
    job.sums = job.out;
    if (it->at->bias)
        job.bias = it->at->bias + (row * bias->row + it->column * bias->column) * bias->size;
    it->set->block(&job);
}

/* Takes strips, many at first and then fewer, so that all threads end at about the same time. False when none is
 * left. */
static bool take(round *it, int64_t *first, int64_t *end)
{
    const int64_t all = parts(it->product->m, it->set->rows);
    int64_t next = atomic_load_explicit(&it->next, memory_order_relaxed);
    do {
        *first = next;
        *end = next + most((all - next) / (PARTS_OF_A_THREAD * (int64_t)it->threads), 1);
    } while (next < all && !atomic_compare_exchange_weak_explicit(
                               &it->next, &next, *end, memory_order_relaxed, memory_order_relaxed));
    return *first < all;
}

static void round_task(void *user, int64_t index)
{
    round *it = user;
    char *b = it->room + index * it->room_bytes, *a = b + it->b_bytes;
    int64_t strip, end;
    bool packed = false;
    while (take(it, &strip, &end)) {
        if (!packed)
            pack_b(it, b);
        packed = true;
        for (; strip < end; strip++) {
            const int64_t row = strip * it->set->rows;
            pack_a(it, row, a);
            multiply(it, row, a, b);
        }
    }
}

void tni_mm_strips_run(const tni_mm_set *set, const tni_mm_product *p, const tni_mm_matrix *at,
                       const tni_mm_finish *finish, const tn_host *host, int32_t threads,
                       char *room)
{
    round it = {
        .set = set, .product = p, .at = at, .finish = finish, .room = room, .threads = threads};
    measure(set, p, tni_mm_cache(host), &it);
    const int64_t columns = it.columns;
    for (it.column = 0; it.column < p->n; it.column += columns) {
        it.columns = least(columns, p->n - it.column);
        for (it.first = 0; it.first < p->k; it.first += set->depth) {
            it.depth = least(set->depth, p->k - it.first);
            atomic_store_explicit(&it.next, 0, memory_order_relaxed);
            host->parallel_for(host->self, threads, round_task, &it);
        }
    }
}
