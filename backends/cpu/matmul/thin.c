#include "thin.h"

#include "../sizes.h"
#include "in_place.h"

/* Bytes of a row of B that a task reads, columns of one that is together along k, and how much of those. */
enum { STRIP_BYTES = 4096, STRIP_TURNED = 32, CHUNKS_TURNED = 16, CHUNKS_NARROW = 64 };

/* Fewer bytes of B than this are not shared out. */
enum { PARALLEL_BYTES = 256 * 1024 };

/* Columns that are finished at once. */
enum { FINISH_COLUMNS = 64 };

/* Elements of B from which it is better read so than packed; where A and B have changed places, rows of A up to
 * which, and columns of B from which, that is better than in place. */
enum { TURNED_LEAST = 2048, TURNED_ROWS = 2, TURNED_COLUMNS = 16 };

/* So few sums of so many products are better made chunk beside chunk. */
enum { FEW = 16, CHAIN = 8 * TNI_MM_DEPTH };

/* One matrix under way. */
typedef struct work {
    const tni_mm_kernels *kernels;
    const tni_mm_product *product;
    const tn_run *run;
    tni_mm_matrix at;
    tni_mm_finish finish;
    bool turned, narrow; /* how B lies                          */
    bool parallel;
    int64_t chunks;        /* of k                                */
    int64_t strip, strips; /* columns of a task                   */
    int64_t group, groups; /* chunks of a task                    */
    const char *x;
    int64_t x_row;
    char *sums; /* [chunk][row][column] */
} work;

static bool is_together(const tni_mm_product *p)
{
    return p->b.column == 1 || p->n == 1;
}

static bool is_turned(const tni_mm_product *p)
{
    return !is_together(p) && (p->b.row == 1 || p->k == 1);
}

bool tni_mm_is_thin(tni_mm_product *p)
{
    if (p->k < 1 || (p->m > TNI_MM_THIN && p->n > TNI_MM_THIN))
        return false;
    tni_mm_product it = *p;
    bool changed = it.m > it.n;
    if (changed)
        tni_mm_turn(&it);
    if (changed && (it.m > TURNED_ROWS || it.n < TURNED_COLUMNS) && is_turned(&it) &&
        tni_mm_is_in_place(p))
        return false;
    bool few = it.m * it.n <= FEW && it.k >= CHAIN;
    bool thin = is_together(&it) ? few || !tni_mm_is_in_place(&it)
                                 : is_turned(&it) && it.n >= TURNED_LEAST / it.k;
    if (thin)
        *p = it;
    return thin;
}

static int64_t x_bytes(const tni_mm_product *p)
{
    return p->a.column == 1 || p->k == 1 ? 0 : round_up(p->m * p->k * p->a.size, 64);
}

uint64_t tni_mm_thin_workspace(const tni_mm_product *p)
{
    int64_t chunks = parts(p->k, TNI_MM_DEPTH);
    return (uint64_t)(x_bytes(p) + chunks * p->m * p->n * p->out.size);
}

static void each(const work *w, int64_t count, tn_task *task)
{
    void *user = (void *)(uintptr_t)w;
    if (w->parallel && count > 1)
        w->run->host->parallel_for(w->run->host->self, count, task, user);
    else
        for (int64_t i = 0; i < count; i++)
            task(user, i);
}

static void sum_task(void *user, int64_t index)
{
    const work *w = user;
    const tni_mm_product *p = w->product;
    const int64_t size = p->b.size, column = index % w->strips * w->strip;
    const int64_t first = index / w->strips * w->group;
    const int64_t k = first * TNI_MM_DEPTH, end = least(k + w->group * TNI_MM_DEPTH, p->k);
    tni_mm_thin job = {.x = w->x + k * size,
                       .x_row = w->x_row,
                       .b = w->at.b + (k * p->b.row + column * p->b.column) * size,
                       .b_row = p->b.row,
                       .b_column = p->b.column,
                       .rows = p->m,
                       .columns = least(w->strip, p->n - column),
                       .depth = end - k,
                       .to = w->sums + (first * p->m * p->n + column) * size,
                       .to_row = p->n,
                       .to_chunk = p->m * p->n};
    if (w->narrow) {
        w->kernels->thin_narrow(&job);
        return;
    }
    for (int64_t at = k; at < end; at += TNI_MM_DEPTH) {
        job.depth = least(TNI_MM_DEPTH, end - at);
        (w->turned ? w->kernels->thin_turned : w->kernels->thin_wide)(&job);
        job.x = (const char *)job.x + TNI_MM_DEPTH * size;
        job.b = (const char *)job.b + TNI_MM_DEPTH * p->b.row * size;
        job.to = (char *)job.to + job.to_chunk * size;
    }
}

/* Columns of all rows: sums of chunks are added and finished. */
static void finish_task(void *user, int64_t index)
{
    _Alignas(64) double room[FINISH_COLUMNS];
    const work *w = user;
    const tni_mm_product *p = w->product;
    const tni_mm_side *out = &p->out, *bias = &p->bias;
    const int64_t end = least((index + 1) * w->strip, p->n);
    for (int64_t column = index * w->strip; column < end; column += FINISH_COLUMNS) {
        const int64_t n = least(FINISH_COLUMNS, end - column);
        for (int64_t r = 0; r < p->m; r++) {
            w->kernels->thin_total(w->sums + (r * p->n + column) * out->size, p->m * p->n,
                                   w->chunks, n, room);
            w->kernels->finish(&w->finish, room, FINISH_COLUMNS, 1, n,
                               w->at.out + (r * out->row + column * out->column) * out->size,
                               w->at.bias ? w->at.bias +
                                                (r * bias->row + column * bias->column) * bias->size
                                          : NULL);
        }
    }
}

/* A together along k: where it is, or copied. */
static void lay_x(work *w, char *room)
{
    const tni_mm_side *a = &w->product->a;
    w->x = w->at.a;
    w->x_row = a->row;
    if (x_bytes(w->product) == 0)
        return;
    for (int64_t r = 0; r < w->product->m; r++) {
        const char *from = w->at.a + r * a->row * a->size;
        char *to = room + r * w->product->k * a->size;
        for (int64_t p = 0; p < w->product->k; p++, from += a->column * a->size, to += a->size)
            memcpy(to, from, (size_t)a->size);
    }
    w->x = room;
    w->x_row = w->product->k;
}

static void cut(work *w)
{
    const tni_mm_product *p = w->product;
    w->turned = is_turned(p);
    w->narrow = !w->turned && p->n <= (int64_t)1 << w->kernels->width_log2;
    w->chunks = parts(p->k, TNI_MM_DEPTH);
    w->strip = w->turned ? STRIP_TURNED : STRIP_BYTES / p->b.size;
    w->strips = parts(p->n, w->strip);
    w->group = w->turned ? CHUNKS_TURNED : w->narrow ? CHUNKS_NARROW : 1;
    w->groups = parts(w->chunks, w->group);
    w->parallel = w->run->threads > 1 && p->n * p->k >= PARALLEL_BYTES / p->b.size;
}

void tni_mm_thin_run(const tni_mm_kernels *kernels, const tni_mm_product *product,
                     const tn_run *run)
{
    work w = {.kernels = kernels, .product = product, .run = run};
    char *room = run->workspace;
    w.sums = room + x_bytes(product);
    tni_mm_finish_make(product, kernels->packed.acc, &w.finish);
    cut(&w);
    for (int64_t i = 0; i < product->matrices; i++) {
        tni_mm_place(product, run, i, &w.at);
        lay_x(&w, room);
        each(&w, w.strips * w.groups, sum_task);
        each(&w, w.strips, finish_task);
    }
}
