#include "matmul_thin.h"

#include "../shared/sizes.h"
#include "matmul_in_place.h"

/* Of a task: bytes of a row of B; columns if B is contiguous along k; chunks of k in that case, and
 * if B is narrow. */
enum { STRIP_BYTES = 4096, STRIP_TRANSPOSED = 16, CHUNKS_TRANSPOSED = 16, CHUNKS_NARROW = 64 };

/* Bytes of the sums of all rows, so that they stay in the first-level cache. */
enum { SUMS_BYTES = 32 << 10, LINE_BYTES = 64 };

/* Below this many bytes of B, one thread does all. */
enum { PARALLEL_BYTES = 256 * 1024 };

/* Columns that are finished at once. */
enum { FINISH_COLUMNS = 64 };

/* Minimum elements of B for reading it in place instead of packing. If A and B are exchanged:
 * maximum rows of A and minimum columns of B for which this is faster than computing in place. */
enum { TRANSPOSED_LEAST = 2048, TRANSPOSED_ROWS = 2, TRANSPOSED_COLUMNS = 16 };

/* Maximum bytes of a B, contiguous along k, for which packing is faster if there are more rows than
 * are summed at once. */
enum { TRANSPOSED_PACKED = 900 << 10 };

/* At most FEW sums of at least CHAIN products are faster with chunks side by side. */
enum { FEW = 16, CHAIN = 8 * TNI_MM_DEPTH };

/* The matrix being computed. */
typedef struct work {
    const tni_mm_kernels *kernels;
    const tni_mm_product *product;
    const tn_run *run;
    tni_mm_matrix at;
    tni_mm_finish finish;
    bool transposed, narrow; /* layout of B */
    int32_t threads;
    int64_t chunks;        /* of k */
    int64_t strip, strips; /* columns of a task */
    int64_t group, groups; /* chunks of a task */
    const char *x;
    int64_t x_row;
    char *sums; /* [chunk][row][column] */
    int64_t sums_row;
} work;

static bool is_together(const tni_mm_product *p)
{
    return p->b.column == 1 || p->n == 1;
}

static bool is_transposed(const tni_mm_product *p)
{
    return !is_together(p) && (p->b.row == 1 || p->k == 1);
}

/* Whether B, which is contiguous along k, is better read in place. */
static bool is_worth_transposing(const tni_mm_product *p)
{
    return p->n >= TRANSPOSED_LEAST / p->k &&
           (p->m <= TNI_MM_THIN || p->n > TRANSPOSED_PACKED / p->b.size / p->k);
}

bool tni_mm_is_thin(tni_mm_product *p)
{
    if (p->k < 1 || (p->m > TNI_MM_THIN_WIDE && p->n > TNI_MM_THIN_WIDE))
        return false;
    tni_mm_product it = *p;
    bool changed = it.m > it.n;
    if (changed)
        tni_mm_transpose(&it);
    if (changed && (it.m > TRANSPOSED_ROWS || it.n < TRANSPOSED_COLUMNS) && is_transposed(&it) &&
        tni_mm_is_in_place(p))
        return false;
    bool few = it.m * it.n <= FEW && it.k >= CHAIN;
    bool thin = is_together(&it) ? few || !tni_mm_is_in_place(&it)
                                 : is_transposed(&it) && is_worth_transposing(&it);
    if (thin)
        *p = it;
    return thin;
}

/* Row stride of the sums, and of a copy of A. One cache line is added: rows whose size is a power
 * of two would share few sets of a cache. */
static int64_t row_of(int64_t columns, int64_t size)
{
    return (line(columns * size) + (columns * size > LINE_BYTES ? LINE_BYTES : 0)) / size;
}

static int64_t x_bytes(const tni_mm_product *p)
{
    const bool there = (p->a.column == 1 || p->k == 1) && p->m <= TNI_MM_THIN;
    return there ? 0 : p->m * row_of(p->k, p->a.size) * p->a.size;
}

uint64_t tni_mm_thin_workspace(const tni_mm_product *p)
{
    int64_t chunks = parts(p->k, TNI_MM_DEPTH);
    return (uint64_t)(x_bytes(p) + chunks * p->m * row_of(p->n, p->out.size) * p->out.size);
}

/* At most TNI_MM_THIN rows at a time; the part of B is in a cache for the next ones. */
static void sum_transposed(const work *w, tni_mm_thin job)
{
    for (int64_t left = job.rows; left > 0; left -= job.rows) {
        job.rows = least(left, TNI_MM_THIN);
        w->kernels->thin_transposed(&job);
        job.x = (const char *)job.x + job.rows * job.x_row * w->product->b.size;
        job.to = (char *)job.to + job.rows * job.to_row * w->product->b.size;
    }
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
                       .to = w->sums + (first * p->m * w->sums_row + column) * size,
                       .to_row = w->sums_row,
                       .to_chunk = p->m * w->sums_row};
    if (w->narrow) {
        w->kernels->thin_narrow(&job);
        return;
    }
    for (int64_t at = k; at < end; at += TNI_MM_DEPTH) {
        job.depth = least(TNI_MM_DEPTH, end - at);
        if (w->transposed)
            sum_transposed(w, job);
        else
            w->kernels->thin_wide(&job);
        job.x = (const char *)job.x + TNI_MM_DEPTH * size;
        job.b = (const char *)job.b + TNI_MM_DEPTH * p->b.row * size;
        job.to = (char *)job.to + job.to_chunk * size;
    }
}

/* Columns of all rows: adds the sums of the chunks and applies the epilogue. */
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
            w->kernels->thin_total(w->sums + (r * w->sums_row + column) * out->size,
                                   p->m * w->sums_row, w->chunks, n, room);
            w->kernels->finish(&w->finish, room, FINISH_COLUMNS, 1, n,
                               w->at.out + (r * out->row + column * out->column) * out->size,
                               w->at.bias ? w->at.bias +
                                                (r * bias->row + column * bias->column) * bias->size
                                          : NULL);
        }
    }
}

/* Copies elements that are `step` bytes apart to contiguous memory. */
static void gather(char *to, const char *from, int64_t step, int64_t size, int64_t count)
{
    if (step == size)
        memcpy(to, from, (size_t)(count * size));
    else if (size == 4)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * 4, from + i * step, 4);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * 8, from + i * step, 8);
}

/* Makes A contiguous along k: in place if it already is, else by a copy. */
static void lay_x(work *w, char *room)
{
    const tni_mm_side *a = &w->product->a;
    w->x = w->at.a;
    w->x_row = a->row;
    if (x_bytes(w->product) == 0)
        return;
    w->x = room;
    w->x_row = row_of(w->product->k, a->size);
    for (int64_t r = 0; r < w->product->m; r++)
        gather(room + r * w->x_row * a->size, w->at.a + r * a->row * a->size, a->column * a->size,
               a->size, w->product->k);
}

static void cut(work *w)
{
    const tni_mm_product *p = w->product;
    w->transposed = is_transposed(p);
    w->narrow = !w->transposed && p->n <= (int64_t)1 << w->kernels->width_log2;
    w->chunks = parts(p->k, TNI_MM_DEPTH);
    w->sums_row = row_of(p->n, p->out.size);
    w->strip = w->transposed ? STRIP_TRANSPOSED
                             : least(STRIP_BYTES, SUMS_BYTES / p->m / 64 * 64) / p->b.size;
    w->strips = parts(p->n, w->strip);
    w->group = w->transposed ? CHUNKS_TRANSPOSED : w->narrow ? CHUNKS_NARROW : 1;
    w->groups = parts(w->chunks, w->group);
    w->threads = p->n * p->k < PARALLEL_BYTES / p->b.size ? 1 : w->run->threads;
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
        tni_mm_each(run->host, w.threads, w.strips * w.groups, sum_task, &w);
        tni_mm_each(run->host, w.threads, w.strips, finish_task, &w);
    }
}
