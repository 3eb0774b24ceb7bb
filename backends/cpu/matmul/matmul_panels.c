#include "matmul_panels.h"

#include "../shared/sizes.h"
#include "matmul_blocking.h"
#include "matmul_strips.h"
#include "tenon/module/op/matmul.h"

/* Bytes packed by one task. */
enum { PIECE_BYTES = 128 * 1024 };

/* In a batch, matrices with small packed slabs are computed in parallel, each by one thread. */
enum { SIDE_BY_SIDE_BYTES = 2 << 20, SLOTS_OF_A_THREAD = 2 };

/* The matrix being computed. */
typedef struct work {
    const tni_mm_set *set;
    const tni_mm_product *product;
    const tn_host *host;
    int32_t threads; /* 1: only the calling thread */
    tni_mm_slab slab;
    tni_mm_matrix at;
    tni_mm_finish finish;
    char *a, *b, *sums;
    int64_t row, column, rows, columns; /* of the slab */
    int64_t first, depth;               /* along k, of the packed part */
    int64_t a_lines, b_lines;           /* of a piece of packing */
    int64_t a_pieces, b_pieces;         /* of one chunk */
    tni_mm_cut cut;
    int64_t tasks; /* that share its blocks */
    int64_t slot;  /* bytes of the accumulators of a task */
} work;

static int64_t chunk_depth(const work *w, int64_t chunk)
{
    return least(w->set->depth, w->depth - chunk * w->set->depth);
}

static void pack_a(const work *w, int64_t chunk, int64_t line)
{
    const int64_t step = w->first + chunk * w->set->depth;
    tni_mm_pack job = tni_mm_pack_a(&w->product->a, w->at.a, w->row + line, step);
    job.lines = least(w->a_lines, w->rows - line);
    job.depth = chunk_depth(w, chunk);
    job.to = w->a + chunk * w->slab.a_chunk + line / w->set->rows * w->slab.a_panel;
    job.panel = w->slab.a_panel;
    w->set->pack_a(&job);
}

static void pack_b(const work *w, int64_t chunk, int64_t line)
{
    const int64_t step = w->first + chunk * w->set->depth;
    tni_mm_pack job = tni_mm_pack_b(&w->product->b, w->at.b, w->column + line, step);
    job.lines = least(w->b_lines, w->columns - line);
    job.depth = chunk_depth(w, chunk);
    job.to = w->b + chunk * w->slab.b_chunk + line / w->set->columns * w->slab.b_panel;
    job.panel = w->slab.b_panel;
    w->set->pack_b(&job);
}

static void pack_task(void *user, int64_t index)
{
    const work *w = user;
    int64_t pieces = w->a_pieces + w->b_pieces, piece = index % pieces;
    if (piece < w->b_pieces)
        pack_b(w, index / pieces, piece * w->b_lines);
    else
        pack_a(w, index / pieces, (piece - w->b_pieces) * w->a_lines);
}

/* Sets where the partial sums of a block are kept: in out, in the slab's accumulators or in the
 * task's own. */
static void place_sums(const work *w, int64_t task, int64_t row, int64_t column, tni_mm_block *job)
{
    const tni_mm_slab *slab = &w->slab;
    if (!slab->apart) {
        job->sums = job->out;
        job->sums_row = w->product->out.row;
    } else if (slab->deep) {
        job->sums = w->sums + task * w->slot;
        job->sums_row = round_up(w->cut.columns, 16);
    } else {
        job->sums_row = round_up(slab->columns, 16);
        job->sums = w->sums + (row * job->sums_row + column) * w->set->acc_size;
    }
}

/* First panels of a block, for one chunk. */
static const char *a_of(const work *w, int64_t block, int64_t chunk)
{
    int64_t row = block / w->cut.across * w->cut.rows;
    return w->a + chunk * w->slab.a_chunk + row / w->set->rows * w->slab.a_panel;
}

static const char *b_of(const work *w, int64_t block, int64_t chunk)
{
    int64_t column = block % w->cut.across * w->cut.columns;
    return w->b + chunk * w->slab.b_chunk + column / w->set->columns * w->slab.b_panel;
}

/* Sets the panels to prefetch: those of the next chunk, or of the next block of the task. */
static void place_next(const work *w, int64_t block, int64_t chunk, int64_t chunks,
                       tni_mm_block *job)
{
    int64_t after = chunk + 1 < chunks ? chunk + 1 : 0;
    block += after > 0 ? 0 : w->tasks;
    bool any = block < w->cut.down * w->cut.across;
    job->next_a = any ? a_of(w, block, after) : NULL;
    job->next_b = any ? b_of(w, block, after) : NULL;
}

/* Computes one block of the slab for all packed chunks. */
static void compute_block(const work *w, int64_t task, int64_t index)
{
    const tni_mm_side *out = &w->product->out, *bias = &w->product->bias;
    int64_t row = index / w->cut.across * w->cut.rows;
    int64_t column = index % w->cut.across * w->cut.columns;
    int64_t down = w->row + row, over = w->column + column;
    tni_mm_block job = {.a_panel = w->slab.a_panel,
                        .b_panel = w->slab.b_panel,
                        .rows = least(w->cut.rows, w->rows - row),
                        .columns = least(w->cut.columns, w->columns - column),
                        .finish = &w->finish,
                        .out = w->at.out + (down * out->row + over * out->column) * out->size};
    if (w->at.bias)
        job.bias = w->at.bias + (down * bias->row + over * bias->column) * bias->size;
    place_sums(w, task, row, column, &job);
    int64_t chunks = w->depth > 0 ? parts(w->depth, w->set->depth) : 1;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        job.a = a_of(w, index, chunk);
        job.b = b_of(w, index, chunk);
        place_next(w, index, chunk, chunks, &job);
        job.depth = chunk_depth(w, chunk);
        job.first = w->first == 0 && chunk == 0;
        job.last = w->first + w->depth == w->product->k && chunk + 1 == chunks;
        w->set->block(&job);
    }
}

/* Computes every w->tasks-th block of the slab. */
static void block_task(void *user, int64_t index)
{
    const work *w = user;
    for (int64_t block = index; block < w->cut.down * w->cut.across; block += w->tasks)
        compute_block(w, index, block);
}

static int64_t piece_lines(int64_t panel, int64_t lines)
{
    int64_t panels = panel > 0 ? PIECE_BYTES / panel : 0;
    return (panels > 0 ? panels : 1) * lines;
}

/* Chooses the blocks, and the number of tasks that share them, for the packed chunks. */
static void cut_slab(work *w)
{
    tni_mm_cut_make(w->set, &w->slab, w->rows, w->columns, w->depth, w->threads,
                    tni_mm_cache(w->host), &w->cut);
    w->tasks = w->cut.down * w->cut.across;
    w->slot = w->cut.rows * round_up(w->cut.columns, 16) * w->set->acc_size;
    if (w->slab.apart && w->slab.deep)
        w->tasks = least(w->tasks, w->slab.sums / w->slot);
}

static void compute_slab(work *w)
{
    int64_t k = w->product->k, step = w->slab.chunks * w->set->depth;
    w->a_lines = piece_lines(w->slab.a_panel, w->set->rows);
    w->b_lines = piece_lines(w->slab.b_panel, w->set->columns);
    w->a_pieces = parts(w->rows, w->a_lines);
    w->b_pieces = w->slab.deep && w->row > 0 ? 0 : parts(w->columns, w->b_lines); /* still packed */
    for (w->first = 0; w->first == 0 || w->first < k; w->first += step) {
        w->depth = least(step, k - w->first);
        if (w->depth > 0)
            tni_mm_each(w->host, w->threads,
                        (w->a_pieces + w->b_pieces) * parts(w->depth, w->set->depth), pack_task, w);
        if (w->first == 0 || w->depth < step)
            cut_slab(w);
        tni_mm_each(w->host, w->threads, w->tasks, block_task, w);
    }
}

/* `room` has slab.bytes bytes, and may be NULL if that is 0. */
static void compute_matrix(work *w, char *room)
{
    const tni_mm_product *p = w->product;
    static char none; /* never accessed; NULL plus an offset would be undefined behavior */
    w->sums = room ? room : &none;
    w->a = w->sums + w->slab.sums;
    w->b = w->a + w->slab.chunks * w->slab.a_chunk;
    for (w->column = 0; w->column < p->n; w->column += w->slab.columns) {
        w->columns = least(w->slab.columns, p->n - w->column);
        for (w->row = 0; w->row < p->m; w->row += w->slab.rows) {
            w->rows = least(w->slab.rows, p->m - w->row);
            compute_slab(w);
        }
    }
}

void tni_mm_finish_make(const tni_mm_product *p, tn_dtype acc, tni_mm_finish *out)
{
    const tn_matmul_op *op = TN_PARAMS(p->op, matmul);
    *out = (tni_mm_finish){.out_dtype = p->out.dtype,
                           .bias_dtype = p->bias.dtype,
                           .activation = p->activation,
                           .alpha = op->alpha,
                           .beta = op->beta,
                           .out_row = p->out.row,
                           .out_column = p->out.column,
                           .bias_row = p->bias.row,
                           .bias_column = p->bias.column};
    out->plain = tni_mm_out_is(p, acc) && !p->bias.dtype && p->activation == TN_ACT_NONE &&
                 op->alpha == 1 && op->beta == 0;
}

/* How matrices are computed: `slots` matrices at a time, each by one thread with its own slab; or
 * one by all threads, with one slab or in strips. */
typedef struct layout {
    int64_t slots;
    bool strips;
    int64_t bytes; /* of workspace */
    tni_mm_slab slab;
} layout;

static void lay_out(const tni_mm_set *set, const tni_mm_product *p, int32_t threads, layout *out)
{
    *out = (layout){.slots = 1, .strips = tni_mm_strips_suit(set, p, threads)};
    tni_gemm_panel_layout(set, p, 1, &out->slab);
    if (p->matrices > 1 && threads > 1 && out->slab.bytes <= SIDE_BY_SIDE_BYTES) {
        out->slots = least(p->matrices, (int64_t)threads * SLOTS_OF_A_THREAD);
        out->strips = false;
    } else {
        tni_gemm_panel_layout(set, p, threads, &out->slab);
    }
    out->bytes =
        out->strips ? threads * tni_mm_strips_bytes(set, p, threads) : out->slots * out->slab.bytes;
}

/* Also enough for one thread: a run on more threads than planned uses as many as fit. */
uint64_t tni_mm_packed_workspace(const tni_mm_set *set, const tni_mm_product *product,
                                 int32_t threads)
{
    layout all, one;
    lay_out(set, product, threads, &all);
    lay_out(set, product, 1, &one);
    return (uint64_t)most(all.bytes, one.bytes);
}

/* Matrices of a batch, distributed to slots of the workspace. */
typedef struct batch {
    const work *like;
    const tn_run *run;
    int64_t slots;
} batch;

static void slot_task(void *user, int64_t slot)
{
    const batch *all = user;
    work w = *all->like;
    int64_t matrices = w.product->matrices;
    int64_t first = matrices * slot / all->slots, end = matrices * (slot + 1) / all->slots;
    for (int64_t i = first; i < end; i++) {
        tni_mm_place(w.product, all->run, i, &w.at);
        char *room = all->run->workspace;
        compute_matrix(&w, room ? room + slot * w.slab.bytes : NULL);
    }
}

/* Chooses the layout for the largest number of threads, at most `threads`, that fits the run's
 * workspace. Returns that number. */
static int32_t lay_out_within(const tni_mm_set *set, const tni_mm_product *p, const tn_run *run,
                              int32_t threads, layout *out)
{
    for (lay_out(set, p, threads, out); threads > 1 && out->bytes > (int64_t)run->workspace_bytes;
         lay_out(set, p, threads, out))
        threads--;
    return threads;
}

/* Computes the matrices one after the other. */
static void compute_matrices(work *w, const tn_run *run, bool strips)
{
    for (int64_t i = 0; i < w->product->matrices; i++) {
        tni_mm_place(w->product, run, i, &w->at);
        if (strips)
            tni_mm_strips_run(w->set, w->product, &w->at, &w->finish, run->host, w->threads,
                              run->workspace);
        else
            compute_matrix(w, run->workspace);
    }
}

/* Whether one thread would finish before a second one has started. */
static bool is_light(const tni_mm_set *set, const tni_mm_product *p)
{
    const double begin_ns = 6e3, element_ns = 0.25;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return (double)p->matrices * (m * n * k * set->cost + (m * k + k * n + m * n) * element_ns) <
           begin_ns;
}

void tni_mm_packed_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run)
{
    layout it;
    work w = {.set = set, .product = product, .host = run->host, .threads = 1};
    const int32_t wanted = run->threads > 1 && is_light(set, product) ? 1 : run->threads;
    const int32_t threads = lay_out_within(set, product, run, wanted, &it);
    w.slab = it.slab;
    tni_mm_finish_make(product, set->acc, &w.finish);
    if (it.slots > 1) {
        batch all = {.like = &w, .run = run, .slots = it.slots};
        run->host->parallel_for(run->host->self, it.slots, slot_task, &all);
    } else {
        w.threads = it.strips ? threads : wanted;
        compute_matrices(&w, run, it.strips);
    }
}
