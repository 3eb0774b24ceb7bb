#include "matmul_stream.h"

#include "../shared/sizes.h"
#include "matmul_blocking.h"
#include "tenon/module/op/matmul.h"

#include <stdatomic.h>

/* Minimum bytes of B: a smaller one stays in a cache however it is read. Below PARALLEL_BYTES of A,
 * one thread packs it. */
enum { B_BYTES = 256 << 10, PARALLEL_BYTES = 256 << 10 };

/* Bytes of a strip for one chunk: it must stay in a core's own cache, beside A. Strips of a thread,
 * so that all threads end at about the same time. */
enum { PIECE_BYTES = 512 << 10, STRIPS_OF_A_THREAD = 4 };

/* Minimum bytes of a row of B in a strip, if rows are contiguous. */
enum { RUN_BYTES = 512 };

/* Of a B that is packed beforehand: maximum panels of a strip, and the number of strips above which
 * they have more than one. The layout must not depend on the threads. */
enum { PACKED_PANELS = 4, PACKED_STRIPS = 64 };

/* How a product is cut. Sizes are in bytes unless stated otherwise. */
typedef struct layout {
    int64_t depth, chunks;    /* of k: elements, and their number */
    int64_t a_panel, b_panel; /* of a whole chunk */
    int64_t a_chunk;          /* all panels of A for one chunk */
    int64_t strip, strips;    /* panels of a strip, and their number */
    int64_t piece;            /* a strip for one chunk */
    int64_t sums;             /* accumulators of a strip; 0: sums are kept in out */
} layout;

/* The matrix being computed. */
typedef struct work {
    const tni_mm_set *set;
    const tni_mm_product *product;
    const tn_run *run;
    layout cut;
    tni_mm_matrix at;
    tni_mm_finish finish;
    const char *packed; /* B packed beforehand; or NULL */
    char *a, *room;
    int64_t room_bytes; /* of a thread */
    _Atomic int64_t next;
} work;

static int64_t b_bytes(const tni_mm_product *p)
{
    return p->n * p->k * p->b.size;
}

bool tni_mm_stream_suits(const tni_mm_set *set, const tni_mm_product *p)
{
    return p->k > 0 && p->m > 0 && p->m <= TNI_MM_STREAM_ROWS && p->n >= 4 * set->columns &&
           b_bytes(p) >= B_BYTES;
}

bool tni_mm_stream_packs(const tni_mm_set *set, const tni_mm_product *p, int64_t rows_least)
{
    return p->k > 0 && p->m >= rows_least && p->m <= TNI_MM_STREAM_ROWS && p->n >= set->columns &&
           p->matrices == 1 && p->b.operand == TN_MATMUL_B && b_bytes(p) >= B_BYTES;
}

static int64_t panel_of(const tni_mm_set *set, int64_t depth)
{
    return tni_mm_panel(set->columns, depth, set->group, set->b_size, set->b_more);
}

/* Panels of a strip that is packed while it is used: as many as fit, but enough strips for the
 * threads. */
static int64_t strip_for(const tni_mm_set *set, const tni_mm_product *p, const layout *cut,
                         int32_t threads)
{
    const int64_t panels = parts(p->n, set->columns);
    const int64_t run = p->b.column == 1 ? parts(RUN_BYTES, set->columns * p->b.size) : 1;
    const int64_t wanted = panels / ((int64_t)threads * STRIPS_OF_A_THREAD);
    return least(least(most(wanted, run), parts(panels, threads)),
                 most(PIECE_BYTES / cut->b_panel, 1));
}

static int64_t packed_strip_for(const tni_mm_set *set, const tni_mm_product *p)
{
    return most(least(parts(p->n, set->columns) / PACKED_STRIPS, PACKED_PANELS), 1);
}

static void cut_product(const tni_mm_set *set, const tni_mm_product *p, int32_t threads,
                        bool packed, layout *out)
{
    const int64_t depth = least(p->k, set->depth);
    *out = (layout){.depth = depth,
                    .chunks = parts(p->k, depth),
                    .a_panel = tni_mm_panel(set->rows, depth, set->group, set->a_size, set->a_more),
                    .b_panel = panel_of(set, depth)};
    out->a_chunk = parts(p->m, set->rows) * out->a_panel;
    out->strip = packed ? packed_strip_for(set, p) : strip_for(set, p, out, threads);
    out->strips = parts(parts(p->n, set->columns), out->strip);
    out->piece = out->strip * out->b_panel;
    if (tni_mm_needs_accumulator(set, p))
        out->sums = round_up(p->m * round_up(out->strip * set->columns, 16) * set->acc_size, 64);
}

static int64_t room_of(const layout *cut, bool packed)
{
    return (packed ? 0 : cut->piece) + cut->sums;
}

uint64_t tni_mm_stream_packed_workspace(const tni_mm_set *set, const tni_mm_product *p,
                                        int32_t threads)
{
    layout cut;
    cut_product(set, p, 1, true, &cut);
    return (uint64_t)(cut.chunks * cut.a_chunk + most(threads, 1) * room_of(&cut, true));
}

/* Fewer threads have wider strips, so each number of threads is tried: a run may get fewer. */
uint64_t tni_mm_stream_workspace(const tni_mm_set *set, const tni_mm_product *p, int32_t threads)
{
    layout cut;
    int64_t bytes = 0;
    for (int32_t i = 1; i <= most(threads, 1); i++) {
        cut_product(set, p, i, false, &cut);
        bytes = most(bytes, i * room_of(&cut, false));
    }
    return (uint64_t)(cut.chunks * cut.a_chunk + bytes);
}

static int64_t depth_of(const work *w, int64_t chunk)
{
    return least(w->cut.depth, w->product->k - chunk * w->cut.depth);
}

static void pack_a_task(void *user, int64_t chunk)
{
    const work *w = user;
    tni_mm_pack job = tni_mm_pack_a(&w->product->a, w->at.a, 0, chunk * w->cut.depth);
    job.lines = w->product->m;
    job.depth = depth_of(w, chunk);
    job.to = w->a + chunk * w->cut.a_chunk;
    job.panel = w->cut.a_panel;
    w->set->pack_a(&job);
}

/* Packs a strip from this column on, for one chunk. */
static void pack_piece(const work *w, int64_t column, int64_t columns, int64_t chunk, char *to)
{
    tni_mm_pack job = tni_mm_pack_b(&w->product->b, w->at.b, column, chunk * w->cut.depth);
    job.lines = columns;
    job.depth = depth_of(w, chunk);
    job.to = to;
    job.panel = panel_of(w->set, job.depth);
    w->set->pack_b(&job);
}

/* Panels of the packed B before a strip, and bytes of a panel for all chunks. */
static int64_t panels_before(const work *w, int64_t strip)
{
    return strip * w->cut.strip;
}

static int64_t deep_panel(const work *w)
{
    return (w->cut.chunks - 1) * w->cut.b_panel + panel_of(w->set, depth_of(w, w->cut.chunks - 1));
}

static int64_t columns_of(const work *w, int64_t strip, int64_t *column)
{
    const int64_t columns = w->cut.strip * w->set->columns;
    *column = strip * columns;
    return least(columns, w->product->n - *column);
}

static void compute_strip(const work *w, int64_t strip, char *room)
{
    const tni_mm_side *out = &w->product->out, *bias = &w->product->bias;
    int64_t column;
    const int64_t columns = columns_of(w, strip, &column), panels = parts(columns, w->set->columns);
    const char *ready = w->packed ? w->packed + panels_before(w, strip) * deep_panel(w) : NULL;
    char *const piece = room + w->cut.sums;
    tni_mm_block job = {.a_panel = w->cut.a_panel,
                        .rows = w->product->m,
                        .columns = columns,
                        .finish = &w->finish,
                        .out = w->at.out + column * out->column * out->size};
    if (w->at.bias)
        job.bias = w->at.bias + column * bias->column * bias->size;
    job.sums = w->cut.sums ? room : job.out;
    job.sums_row = w->cut.sums ? round_up(w->cut.strip * w->set->columns, 16) : out->row;
    for (int64_t chunk = 0; chunk < w->cut.chunks; chunk++) {
        job.depth = depth_of(w, chunk);
        job.b_panel = panel_of(w->set, job.depth);
        job.first = chunk == 0;
        job.last = chunk + 1 == w->cut.chunks;
        job.a = w->a + chunk * w->cut.a_chunk;
        job.b = ready ? ready : piece;
        if (ready)
            ready += panels * job.b_panel;
        else
            pack_piece(w, column, columns, chunk, piece);
        job.next_a = job.last ? NULL : job.a + w->cut.a_chunk;
        job.next_b = job.last ? NULL : ready;
        w->set->block(&job);
    }
}

static void strips_task(void *user, int64_t index)
{
    work *w = user;
    char *room = w->room + index * w->room_bytes;
    int64_t strip;
    while ((strip = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < w->cut.strips)
        compute_strip(w, strip, room);
}

/* Cuts for the largest number of threads, at most `threads`, that fits the workspace. */
static int32_t cut_within(work *w, int32_t threads)
{
    for (;; threads--) {
        cut_product(w->set, w->product, threads, w->packed != NULL, &w->cut);
        w->room_bytes = room_of(&w->cut, w->packed != NULL);
        const int64_t bytes = w->cut.chunks * w->cut.a_chunk + threads * w->room_bytes;
        if (threads == 1 || bytes <= (int64_t)w->run->workspace_bytes)
            return threads;
    }
}

void tni_mm_stream_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run)
{
    work w = {.set = set, .product = product, .run = run, .packed = run->packed};
    const int32_t threads = cut_within(&w, (int32_t)most(run->threads, 1));
    const int64_t a_bytes = w.cut.chunks * w.cut.a_chunk;
    w.a = run->workspace;
    w.room = w.a + a_bytes;
    tni_mm_finish_make(product, set->acc, &w.finish);
    for (int64_t i = 0; i < product->matrices; i++) {
        tni_mm_place(product, run, i, &w.at);
        tni_mm_each(run->host, a_bytes < PARALLEL_BYTES ? 1 : threads, w.cut.chunks, pack_a_task,
                    &w);
        atomic_store_explicit(&w.next, 0, memory_order_relaxed);
        tni_mm_each(run->host, threads, least(threads, w.cut.strips), strips_task, &w);
    }
}

uint64_t tni_mm_stream_packed_bytes(const tni_mm_set *set, const tni_mm_product *product)
{
    work w = {.set = set, .product = product};
    cut_product(set, product, 1, true, &w.cut);
    return (uint64_t)(parts(product->n, set->columns) * deep_panel(&w));
}

/* Packs one strip beforehand. */
static void pack_strip_task(void *user, int64_t strip)
{
    const work *w = user;
    int64_t column;
    const int64_t columns = columns_of(w, strip, &column), panels = parts(columns, w->set->columns);
    char *to = w->room + panels_before(w, strip) * deep_panel(w);
    for (int64_t chunk = 0; chunk < w->cut.chunks; chunk++) {
        pack_piece(w, column, columns, chunk, to);
        to += panels * panel_of(w->set, depth_of(w, chunk));
    }
}

void tni_mm_stream_pack(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run,
                        char *to)
{
    work w = {.set = set, .product = product, .run = run, .room = to};
    cut_product(set, product, 1, true, &w.cut);
    w.at.b = tn_operand(run, TN_MATMUL_B);
    tni_mm_each(run->host, run->threads, w.cut.strips, pack_strip_task, &w);
}
