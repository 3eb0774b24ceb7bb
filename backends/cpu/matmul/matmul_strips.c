#include "matmul_strips.h"

#include "../shared/sizes.h"
#include "matmul_blocking.h"

#include <stdatomic.h>

/* Bytes of B that each thread packs at once; less on a core with a smaller cache, and with many
 * threads, since two of them may share a core. */
enum { B_BYTES = 1 << 20, B_BYTES_OF_MANY = 512 << 10, FEW_THREADS = 4 };
/* A claim takes 1 / (PARTS_OF_A_THREAD x threads of the group) of the remaining strips. */
enum { GROUPS_MOST = 32, PARTS_OF_A_THREAD = 4 };

/* Time to pack a byte, and the maximum fraction of the multiplication time that may be spent on
 * packing the same data again. Many threads gain more by not waiting for each other. */
#define PACK_NS       0.05
#define AGAIN         (1.0 / 16)
#define AGAIN_OF_MANY (1.0 / 4)

/* The next unclaimed strip of a group, in its own cache line. */
typedef struct claim {
    _Alignas(64) _Atomic int64_t next;
} claim;

/* A round: some columns for each group, and one chunk of k, for all rows. */
typedef struct round {
    const tni_mm_set *set;
    const tni_mm_product *product;
    const tni_mm_matrix *at;
    const tni_mm_finish *finish;
    char *room;
    int64_t room_bytes, b_bytes; /* of a thread, and the part of it for B */
    int64_t a_panel, b_panel;
    int32_t threads;
    int64_t groups;
    int64_t column, columns; /* start of the first group's columns; columns per group */
    int64_t first, depth;
    claim claims[GROUPS_MOST];
} round;

/* Bytes of B that a thread packs at once. */
static int64_t b_bytes(int64_t cache, int32_t threads)
{
    return least(threads > FEW_THREADS ? B_BYTES_OF_MANY : B_BYTES, cache / 2);
}

/* Columns of B that fit in `bytes`. */
static int64_t columns_within(const tni_mm_set *set, const tni_mm_product *p, int64_t bytes)
{
    const int64_t panel =
        tni_mm_panel(set->columns, least(p->k, set->depth), set->group, set->b_size, set->b_more);
    return most(bytes / panel, 1) * set->columns;
}

/* Columns of each group: as many as fit, in about equal parts. */
static int64_t columns_for(const tni_mm_set *set, const tni_mm_product *p, int64_t bytes,
                           int64_t groups)
{
    const int64_t fit = columns_within(set, p, bytes) * groups;
    return round_up(parts(p->n, parts(p->n, fit) * groups), set->columns);
}

/* Packing time as a fraction of the multiplication time, if A is packed `a` times and B `b`
 * times. */
static double packing(const tni_mm_set *set, const tni_mm_product *p, double a, double b)
{
    return (a * set->a_size / (double)p->n + b * set->b_size / (double)p->m) * PACK_NS / set->cost;
}

/* Chooses the number of groups with the least packing: with few groups B is packed more often, with
 * many A is. */
static int64_t groups_for(const tni_mm_set *set, const tni_mm_product *p, int64_t bytes,
                          int32_t threads, double *least_packing)
{
    int64_t best = 1;
    for (int64_t groups = 1; groups <= least(threads, GROUPS_MOST); groups++) {
        const double across = (double)p->n / (double)columns_for(set, p, bytes, groups);
        const double each = packing(set, p, across, (double)parts(threads, groups));
        if (groups == 1 || each < *least_packing) {
            *least_packing = each;
            best = groups;
        }
    }
    return best;
}

bool tni_mm_strips_suit(const tni_mm_set *set, const tni_mm_product *p, int32_t threads)
{
    if (threads < 2 || p->k == 0 || p->n <= set->columns || tni_mm_needs_accumulator(set, p))
        return false;
    if (threads <= FEW_THREADS)
        return packing(set, p, 0, threads - 1) < AGAIN;
    double all;
    (void)groups_for(set, p, b_bytes(INT64_MAX, threads), threads, &all);
    return all - packing(set, p, 1, 1) < AGAIN_OF_MANY;
}

/* Computes the memory for `columns` columns of B and a strip of A. */
static void make_room(const tni_mm_set *set, const tni_mm_product *p, int64_t columns, round *out)
{
    const int64_t depth = least(p->k, set->depth);
    out->columns = columns;
    out->a_panel = tni_mm_panel(set->rows, depth, set->group, set->a_size, set->a_more);
    out->b_panel = tni_mm_panel(set->columns, depth, set->group, set->b_size, set->b_more);
    out->b_bytes = columns / set->columns * out->b_panel;
    out->room_bytes = out->b_bytes + out->a_panel;
}

/* Enough for any number of columns that the detected cache sizes can lead to. */
int64_t tni_mm_strips_bytes(const tni_mm_set *set, const tni_mm_product *p, int32_t threads)
{
    round widest;
    const int64_t fit = columns_within(set, p, b_bytes(INT64_MAX, threads));
    make_room(set, p, least(fit, round_up(p->n, set->columns)), &widest);
    return widest.room_bytes;
}

/* Returns the number of columns of a group, and where they begin. */
static int64_t columns_of(const round *it, int64_t group, int64_t *column)
{
    *column = it->column + group * it->columns;
    return most(least(it->columns, it->product->n - *column), 0);
}

static void pack_b(const round *it, int64_t group, char *to)
{
    int64_t column, columns = columns_of(it, group, &column);
    tni_mm_pack job = tni_mm_pack_b(&it->product->b, it->at->b, column, it->first);
    job.lines = columns;
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

/* Multiplies one strip: the rows of a tile. */
static void multiply(const round *it, int64_t group, int64_t row, const char *a, const char *b)
{
    int64_t column, columns = columns_of(it, group, &column);
    const tni_mm_side *out = &it->product->out, *bias = &it->product->bias;
    tni_mm_block job = {.a = a,
                        .b = b,
                        .a_panel = it->a_panel,
                        .b_panel = it->b_panel,
                        .rows = least(it->set->rows, it->product->m - row),
                        .columns = columns,
                        .depth = it->depth,
                        .first = it->first == 0,
                        .last = it->first + it->depth == it->product->k,
                        .sums_row = out->row,
                        .finish = it->finish,
                        .out = it->at->out + (row * out->row + column * out->column) * out->size};
    job.sums = job.out;
    if (it->at->bias)
        job.bias = it->at->bias + (row * bias->row + column * bias->column) * bias->size;
    it->set->block(&job);
}

/* Claims strips of a group, many at first and then fewer, so that all threads end at about the same
 * time. Returns false if none is left. */
static bool claim_strips(round *it, int64_t group, int64_t *first, int64_t *end)
{
    const int64_t all = parts(it->product->m, it->set->rows);
    const int64_t shares = PARTS_OF_A_THREAD * parts(it->threads, it->groups);
    _Atomic int64_t *claimed = &it->claims[group].next;
    int64_t next = atomic_load_explicit(claimed, memory_order_relaxed);
    do {
        *first = next;
        *end = next + most((all - next) / shares, 1);
    } while (next < all && !atomic_compare_exchange_weak_explicit(
                               claimed, &next, *end, memory_order_relaxed, memory_order_relaxed));
    return *first < all;
}

static void compute_strips(round *it, int64_t group, char *a, char *b)
{
    int64_t strip, end;
    bool packed = false;
    while (claim_strips(it, group, &strip, &end)) {
        if (!packed)
            pack_b(it, group, b);
        packed = true;
        for (; strip < end; strip++) {
            const int64_t row = strip * it->set->rows;
            pack_a(it, row, a);
            multiply(it, group, row, a, b);
        }
    }
}

/* Computes strips of the thread's own group, then strips left by other groups. */
static void round_task(void *user, int64_t index)
{
    round *it = user;
    char *b = it->room + index * it->room_bytes, *a = b + it->b_bytes;
    for (int64_t turn = 0; turn < it->groups; turn++) {
        int64_t column, group = (index + turn) % it->groups;
        if (columns_of(it, group, &column) > 0)
            compute_strips(it, group, a, b);
    }
}

void tni_mm_strips_run(const tni_mm_set *set, const tni_mm_product *p, const tni_mm_matrix *at,
                       const tni_mm_finish *finish, const tn_host *host, int32_t threads,
                       char *room)
{
    round it = {
        .set = set, .product = p, .at = at, .finish = finish, .room = room, .threads = threads};
    const int64_t bytes = b_bytes(tni_mm_cache(host), threads);
    double all;
    it.groups = groups_for(set, p, bytes, threads, &all);
    make_room(set, p, columns_for(set, p, bytes, it.groups), &it);
    for (it.column = 0; it.column < p->n; it.column += it.groups * it.columns) {
        for (it.first = 0; it.first < p->k; it.first += set->depth) {
            it.depth = least(set->depth, p->k - it.first);
            for (int64_t group = 0; group < it.groups; group++)
                atomic_store_explicit(&it.claims[group].next, 0, memory_order_relaxed);
            host->parallel_for(host->self, threads, round_task, &it);
        }
    }
}
