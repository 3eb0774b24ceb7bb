#include "matmul_in_place.h"

#include "../shared/sizes.h"

#include <stdatomic.h>

/* Maximum span of A and B together, from the first elements to the last. */
enum { SPAN_BYTES = 1 << 20 };

/* "Skinny": few rows of A, and a B of at most SKINNY_BYTES with rows at most SKINNY_ROW bytes
 * apart; then the rows of its tiles, and how many rows of B are prefetched ahead. */
enum { SKINNY_ROWS = 192, SKINNY_COLUMNS = 32, SKINNY_BYTES = 16 << 20, SKINNY_ROW = 16 << 10 };
enum { SKINNY_HEIGHT = 10, AHEAD = 12 };

/* "Narrow": a small B of few columns, with an A of any size, which is read in place. */
enum { NARROW_ROWS = 32, NARROW_COLUMNS = 160, NARROW_BYTES = 1 << 20, NARROW_ROW = 2 << 10 };

/* Maximum columns that are computed separately beside whole vectors. Minimum depth for it: if there
 * are other columns, if none exist, and if there are more than COLUMNS_FEW. */
enum { COLUMNS_FEW = 3, COLUMNS_DEPTH = 16, COLUMNS_SHORT = 4, COLUMNS_DEEP = 32 };

/* Maximum depth for computing tiles one row of tiles after the other. Used if the first-level cache
 * holds B, or if no cache of a core holds out, which is then written sequentially. */
enum { SHORT = 32, SHORT_B_BYTES = 24 << 10, SHORT_OUT_BYTES = 1 << 20 };

/* Maximum depth for which threads get whole rows, so that each writes out sequentially. */
enum { BY_ROWS = 64 };

/* Limits of what the calling thread computes directly: rows, columns and k; or, for one chunk,
 * products, and elements of A and B. */
enum { PLAIN = 64, PLAIN_PRODUCTS = 1 << 18, PLAIN_ELEMENTS = 1 << 15 };

/* Minimum time of a task; time of a matrix besides its multiplications, which is less if one call
 * computes a queue of tiles. */
#define GRAIN_NS  6e3
#define MATRIX_NS 20.0
#define QUEUED_NS 3.0
enum { TASKS_OF_A_THREAD = 4 };

/* Maximum size of a packed panel of B that is kept on the stack. */
enum { PANEL_BYTES = 16 << 10 };

/* Matrices of one shape. */
typedef struct work {
    const tni_mm_kernels *kernels;
    const tni_mm_product *product;
    const tn_run *run;
    tni_mm_finish finish;
    bool pack;              /* packs B */
    size_t panel_bytes;     /* of a packed panel */
    atomic_bool *no_memory; /* set if allocating a panel failed */
    bool skinny;            /* B is so large that its rows are prefetched */
    int64_t vectors;        /* of columns, maximum of a tile */
    int64_t width, height;  /* of tiles: columns, in whole vectors; rows */
    int64_t rows;           /* of a task */
    int64_t down, across;   /* tasks of a matrix */
    int64_t group;          /* matrices of a task, if it has several */
} work;

/* Size of about equal parts, each at most `most`. */
static int64_t share(int64_t whole, int64_t most)
{
    if (whole <= most)
        return whole;
    if (whole > INT32_MAX) /* the 32-bit division below is faster */
        return parts(whole, parts(whole, most));
    uint32_t all = (uint32_t)whole, count = (all + (uint32_t)most - 1) / (uint32_t)most;
    return (all + count - 1) / count;
}

/* Columns of the widest tile when n columns are cut into tiles. */
static int64_t width_for(const tni_mm_kernels *kernels, int64_t n, int64_t most)
{
    return share(((n - 1) >> kernels->width_log2) + 1, most) << kernels->width_log2;
}

int64_t tni_mm_in_place_last(const tni_mm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                             int64_t a_step)
{
    const int64_t last = n & (((int64_t)1 << kernels->width_log2) - 1);
    const int64_t depth = last > COLUMNS_FEW ? COLUMNS_DEEP
                          : n > last         ? COLUMNS_DEPTH
                                             : COLUMNS_SHORT;
    const bool suits = last <= (n > last ? COLUMNS_FEW : kernels->columns_most) && a_step == 1 &&
                       m >= kernels->columns_rows && k >= depth;
    return suits && kernels->columns ? last : 0;
}

/* If the last columns of a matrix are to be computed separately, does so; returns their number.
 * `tile` must be at the first element of the matrix, and is restored to it. */
static int64_t compute_last(const tni_mm_kernels *kernels, int64_t m, int64_t n, tni_mm_tile *tile)
{
    const int64_t last = tni_mm_in_place_last(kernels, m, n, tile->depth, tile->a_step);
    const int64_t size = kernels->packed.acc_size, before = (n - last) * size;
    const int64_t whole = m >> kernels->width_log2 << kernels->width_log2;
    const char *const a = tile->a;
    char *const to = tile->to;
    if (last == 0)
        return 0;
    tile->b = (const char *)tile->b + before;
    tile->to = to + before;
    tile->last = last;
    kernels->columns(tile, whole);
    if (whole < m) {
        tile->a = a + whole * tile->a_row * size;
        tile->to = to + before + whole * tile->to_row * size;
        kernels->tile[0][m - whole - 1](tile);
        tile->a = a;
    }
    tile->b = (const char *)tile->b - before;
    tile->to = to;
    return last;
}

static bool is_short(int64_t m, int64_t n, int64_t k, int64_t size)
{
    return k <= SHORT && (n <= SHORT_B_BYTES / size / k || m > SHORT_OUT_BYTES / size / n);
}

/* Computes the tiles of whole width, one call for each row of tiles. Leaves `tile` at the first
 * element of the next column. */
static void compute_rows(const tni_mm_kernels *kernels, int64_t m, int64_t count, int64_t width,
                         tni_mm_tile *tile)
{
    const int64_t next = width * kernels->packed.acc_size;
    const int64_t more = (width >> kernels->width_log2) - 1;
    const int64_t height = share(m, kernels->tile_rows[more]);
    const tni_mm_queue queue = {.count = count, .b_next = next, .to_next = next};
    const char *const a = tile->a;
    char *const to = tile->to;
    tile->last = (int64_t)1 << kernels->width_log2;
    tile->queue = &queue;
    for (int64_t row = 0; row < m; row += height) {
        tile->a = a + row * tile->a_row * kernels->packed.acc_size;
        tile->to = to + row * tile->to_row * kernels->packed.acc_size;
        kernels->tile[more][least(height, m - row) - 1](tile);
    }
    tile->queue = NULL;
    tile->a = a;
    tile->b = (const char *)tile->b + count * next;
    tile->to = to + count * next;
}

/* Computes a matrix of one chunk whose sums are written to out unchanged, in tiles of at most
 * `vectors` vectors. `tile` must be at the first element of the matrix. */
static void compute_plain(const tni_mm_kernels *kernels, int64_t m, int64_t n, int64_t vectors,
                          tni_mm_tile *tile)
{
    const int32_t log2 = kernels->width_log2;
    const int64_t size = kernels->packed.acc_size;
    const char *const a = tile->a;
    char *const to = tile->to;
    n -= compute_last(kernels, m, n, tile);
    const int64_t width = n > 0 ? width_for(kernels, n, vectors) : 0;
    int64_t column = 0;
    if (n >= 2 * width && tile->depth > 0 && width > 0 && is_short(m, n, tile->depth, size)) {
        column = n / width * width;
        compute_rows(kernels, m, n / width, width, tile);
    }
    while (column < n) {
        const int64_t columns = least(width, n - column), more = (columns - 1) >> log2;
        const int64_t height = share(m, kernels->tile_rows[more]);
        const int64_t a_next = height * tile->a_row * size, to_next = height * tile->to_row * size;
        tni_mm_tile_fn *const *const sum = kernels->tile[more];
        int64_t left = m;
        tile->last = columns - (more << log2);
        for (; left > height; left -= height) {
            sum[height - 1](tile);
            tile->a = (const char *)tile->a + a_next;
            tile->to = (char *)tile->to + to_next;
        }
        sum[left - 1](tile);
        column += width;
        if (column >= n)
            break;
        tile->a = a;
        tile->b = (const char *)tile->b + width * size;
        tile->to = to + column * size;
    }
}

/* Makes the compiler store a number separately: storing several as one vector would delay them
 * until the products of the previous call are done. */
static inline int64_t alone(int64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* Whether a product takes little time though it is not small. Rows of B must be close to each
 * other. */
static bool is_light(int64_t m, int64_t n, int64_t k, int64_t b_row)
{
    return m <= PLAIN_ELEMENTS && n <= PLAIN_ELEMENTS && k <= TNI_MM_DEPTH &&
           (m + n) * k <= PLAIN_ELEMENTS && m * n <= PLAIN_PRODUCTS / k && b_row >= 0 &&
           b_row <= 2 * n;
}

static inline bool is_plain(const tn_op *op)
{
    const tn_matmul_op *matmul = TN_PARAMS(op, matmul);
    const tn_layout *b = &op->operand[TN_MATMUL_B], *out = &op->operand[TN_MATMUL_OUT];
    const int32_t column = out->rank - 1;
    const int64_t m = matmul->m, n = matmul->n, k = matmul->k;
    if (k <= 0 || b->stride[column] != 1 || out->stride[column] != 1)
        return false;
    return (m <= PLAIN && n <= PLAIN && k <= PLAIN) || is_light(m, n, k, b->stride[column - 1]);
}

bool tni_mm_is_plain(const tn_op *op)
{
    return is_plain(op);
}

bool tni_mm_plain_run(const tni_mm_kernels *kernels, const tn_run *run)
{
    const tn_op *op = run->op;
    const tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    const tn_layout *out = &op->operand[TN_MATMUL_OUT];
    const int64_t m = TN_PARAMS(op, matmul)->m, n = TN_PARAMS(op, matmul)->n,
                  k = TN_PARAMS(op, matmul)->k;
    const int32_t row = out->rank - 2, column = row + 1;
    if (!is_plain(op))
        return false;
    tni_mm_tile tile = {.a = run->data[TN_MATMUL_A],
                        .b = run->data[TN_MATMUL_B],
                        .a_row = alone(a->stride[row]),
                        .a_step = a->stride[column],
                        .b_step = alone(b->stride[row]),
                        .depth = k,
                        .last = n,
                        .to = run->data[TN_MATMUL_OUT],
                        .to_row = out->stride[row],
                        .from = NULL,
                        .from_row = 0,
                        .queue = NULL};
    const int64_t more = (n - 1) >> kernels->width_log2;
    if (more < kernels->tile_vectors && m <= kernels->tile_rows[more]) {
        tile.last = n - (more << kernels->width_log2);
        kernels->tile[more][m - 1](&tile);
    } else {
        compute_plain(kernels, m, n, kernels->tile_vectors, &tile);
    }
    return true;
}

static int64_t span(const tni_mm_side *side, int64_t rows, int64_t columns)
{
    int64_t row = side->row < 0 ? -side->row : side->row;
    int64_t column = side->column < 0 ? -side->column : side->column;
    if (row > SPAN_BYTES || column > SPAN_BYTES || rows > SPAN_BYTES || columns > SPAN_BYTES)
        return SPAN_BYTES + 1;
    return (rows * row + columns * column) * side->size;
}

static int64_t row_bytes(const tni_mm_side *b)
{
    return (b->row < 0 ? -b->row : b->row) * b->size;
}

/* Rows of B that are far apart share few sets of a cache. */
static bool is_near(const tni_mm_side *b, int64_t rows, int64_t columns)
{
    int64_t dense = columns * b->size, row = row_bytes(b);
    return rows == 1 || row <= 2 * dense + 64 || rows * row <= SPAN_BYTES / 64;
}

/* Whether both operands fit in the caches without packing. */
static bool is_small(const tni_mm_product *p)
{
    return span(&p->a, p->m, p->k) + span(&p->b, p->k, p->n) <= SPAN_BYTES &&
           is_near(&p->b, p->k, p->n);
}

/* Whether packing B would take longer than multiplying by it. */
static bool is_skinny(const tni_mm_product *p)
{
    const int64_t row = row_bytes(&p->b);
    return !is_small(p) && p->m > TNI_MM_THIN && p->m <= SKINNY_ROWS && p->n >= SKINNY_COLUMNS &&
           p->b.column == 1 && row <= SKINNY_ROW && p->k <= SKINNY_BYTES / most(row, 1);
}

/* Whether packing A would take longer than multiplying by it. */
static bool is_narrow(const tni_mm_product *p)
{
    const int64_t row = row_bytes(&p->b);
    return p->n > TNI_MM_THIN && p->n <= NARROW_COLUMNS && p->m >= NARROW_ROWS &&
           p->b.column == 1 && p->a.column == 1 && row <= NARROW_ROW &&
           p->k <= NARROW_BYTES / most(row, 1);
}

bool tni_mm_is_in_place(const tni_mm_product *p)
{
    if (p->k == 0 || is_skinny(p) || is_narrow(p))
        return true;
    if (p->b.column == 1 || p->n == 1)
        return is_small(p);
    return span(&p->a, p->m, p->k) + span(&p->b, p->k, p->n) <= SPAN_BYTES &&
           p->k <= TNI_MM_DEPTH && p->m <= 2 * PLAIN && p->n <= 2 * PLAIN;
}

static void pack(const work *w, const tni_mm_matrix *at, int64_t column, int64_t columns, char *to)
{
    tni_mm_pack job = tni_mm_pack_b(&w->product->b, at->b, column, 0);
    job.lines = columns;
    job.depth = w->product->k;
    job.to = to;
    w->kernels->packed.pack_b(&job);
}

/* Computes one tile, chunk by chunk; `tile` has the fields shared by a column of tiles. Sums are
 * kept on the stack until the epilogue, unless out can be written directly. */
static void compute_tile(const work *w, tni_mm_tile tile, const tni_mm_matrix *at, int64_t row,
                         int64_t column, int64_t rows, int64_t columns)
{
    _Alignas(64) char room[TNI_MM_TILE_BYTES];
    const tni_mm_product *p = w->product;
    const tni_mm_side *out = &p->out, *bias = &p->bias;
    const int64_t more = (columns - 1) >> w->kernels->width_log2;
    tni_mm_tile_fn *sum = w->kernels->tile[more][rows - 1];
    char *to = at->out + (row * out->row + column * out->column) * out->size;
    tile.a = at->a + row * p->a.row * p->a.size;
    tile.last = columns - (more << w->kernels->width_log2);
    tile.to = w->finish.plain ? to : room;
    tile.to_row = w->finish.plain ? out->row : w->width;
    tile.depth = least(p->k, TNI_MM_DEPTH);
    for (int64_t first = 0;;) {
        sum(&tile);
        first += TNI_MM_DEPTH;
        if (first >= p->k)
            break;
        tile.a = (const char *)tile.a + TNI_MM_DEPTH * p->a.column * p->a.size;
        tile.b = (const char *)tile.b + TNI_MM_DEPTH * p->b.row * p->b.size;
        tile.depth = least(p->k - first, TNI_MM_DEPTH);
        tile.from = tile.to;
        tile.from_row = tile.to_row;
    }
    if (!w->finish.plain)
        w->kernels->finish(
            &w->finish, room, w->width, rows, columns, to,
            at->bias ? at->bias + (row * bias->row + column * bias->column) * bias->size : NULL);
}

/* Computes the tiles of one column, chunk by chunk. The first tile of a chunk prefetches its rows
 * of B; the others find them in the first-level cache. Partial sums are kept in out. */
static void compute_chunks(const work *w, tni_mm_tile tile, const tni_mm_matrix *at, int64_t column,
                           int64_t columns)
{
    const tni_mm_product *p = w->product;
    const int64_t more = (columns - 1) >> w->kernels->width_log2;
    tile.last = columns - (more << w->kernels->width_log2);
    tile.to_row = tile.from_row = p->out.row;
    for (int64_t first = 0; first < p->k; first += TNI_MM_DEPTH) {
        tile.depth = least(p->k - first, TNI_MM_DEPTH);
        for (int64_t row = 0; row < p->m; row += w->height) {
            tile.a = at->a + (row * p->a.row + first * p->a.column) * p->a.size;
            tile.to = at->out + (row * p->out.row + column) * p->out.size;
            tile.from = first > 0 ? tile.to : NULL;
            tile.ahead = row == 0 ? AHEAD : 0;
            w->kernels->tile[more][least(w->height, p->m - row) - 1](&tile);
        }
        tile.b = (const char *)tile.b + TNI_MM_DEPTH * p->b.row * p->b.size;
    }
}

/* Computes rows `row` to `end` of the tiles that start at one column. If B is packed, it is packed
 * into `panel`. */
static void compute_column(const work *w, const tni_mm_matrix *at, int64_t column, int64_t row,
                           int64_t end, char *panel)
{
    const tni_mm_product *p = w->product;
    const int64_t columns = least(w->width, p->n - column);
    const tni_mm_tile tile = {.b = w->pack ? panel : at->b + column * p->b.column * p->b.size,
                              .a_row = p->a.row,
                              .a_step = p->a.column,
                              .b_step = w->pack ? w->kernels->packed.columns : p->b.row,
                              .from = NULL};
    if (w->pack && p->k > 0)
        pack(w, at, column, columns, panel);
    if (w->skinny && w->finish.plain && row == 0 && end == p->m) {
        compute_chunks(w, tile, at, column, columns);
        return;
    }
    for (; row < end; row += w->height)
        compute_tile(w, tile, at, row, column, least(w->height, end - row), columns);
}

/* With k = 0, A and B may be NULL: they are not read, but addresses are computed from them. */
static void place(const work *w, int64_t index, tni_mm_matrix *out)
{
    tni_mm_place(w->product, w->run, index, out);
    if (w->product->k == 0)
        out->a = out->b = out->out;
}

/* A task, with memory for a packed panel; `panel` is NULL if nothing is packed. */
typedef void panel_task(const work *w, int64_t index, char *panel);

/* A separate function, so that its stack frame is used only if B is packed. */
static __attribute__((noinline)) void run_on_stack(const work *w, int64_t index, panel_task *task)
{
    _Alignas(64) char panel[PANEL_BYTES];
    task(w, index, panel);
}

static void run_with_panel(const work *w, int64_t index, panel_task *task)
{
    const tn_host *host = w->run->host;
    if (!w->pack) {
        task(w, index, NULL);
    } else if (w->panel_bytes <= PANEL_BYTES) {
        run_on_stack(w, index, task);
    } else {
        char *panel = host->alloc(host->self, w->panel_bytes, 64);
        if (panel)
            task(w, index, panel);
        else
            atomic_store(w->no_memory, true);
        host->release(host->self, panel);
    }
}

/* Computes a part of one matrix. */
static void compute_part(const work *w, int64_t index, char *panel)
{
    int64_t part = index % (w->down * w->across), row = part / w->across * w->rows;
    tni_mm_matrix at;
    place(w, index / (w->down * w->across), &at);
    compute_column(w, &at, part % w->across * w->width, row, least(row + w->rows, w->product->m),
                   panel);
}

static void part_task(void *user, int64_t index)
{
    run_with_panel(user, index, compute_part);
}

static int64_t step_of(const work *w, const tni_mm_side *side)
{
    const tni_mm_product *p = w->product;
    return side->dtype ? p->op->operand[side->operand].stride[p->batch_rank - 1] * side->size : 0;
}

static void step(const work *w, tni_mm_matrix *at)
{
    const tni_mm_product *p = w->product;
    at->a += step_of(w, &p->a);
    at->b += step_of(w, &p->b);
    at->out += step_of(w, &p->out);
    at->bias = at->bias ? at->bias + step_of(w, &p->bias) : NULL;
}

/* Computes matrices that are consecutive in the innermost batch dimension. */
static void compute_row(const work *w, int64_t first, int64_t count, char *panel)
{
    const tni_mm_product *p = w->product;
    tni_mm_matrix at;
    place(w, first, &at);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t column = 0; column < p->n; column += w->width)
            compute_column(w, &at, column, 0, p->m, panel);
        if (i + 1 < count)
            step(w, &at);
    }
}

/* Whether matrices have one chunk and their sums are written to out unchanged. */
static bool is_one_chunk(const work *w)
{
    return w->finish.plain && !w->pack && w->product->k <= TNI_MM_DEPTH;
}

/* Whether threads get whole rows of a matrix; there must be enough rows. */
static bool is_by_rows(const work *w)
{
    const tni_mm_product *p = w->product;
    return is_one_chunk(w) && p->k > 0 && p->k <= BY_ROWS &&
           p->m >= 2 * w->run->threads * w->height;
}

/* Whether a matrix is one tile. */
static bool is_tile(const work *w)
{
    return w->product->n <= w->width && w->product->m <= w->height;
}

/* As compute_row, for matrices of one chunk (is_one_chunk). */
static void compute_plain_row(const work *w, int64_t first, int64_t count)
{
    const tni_mm_product *p = w->product;
    const bool one = count == 1;
    const tni_mm_queue queue = {.count = count,
                                .a_next = one ? 0 : step_of(w, &p->a),
                                .b_next = one ? 0 : step_of(w, &p->b),
                                .to_next = one ? 0 : step_of(w, &p->out)};
    const int64_t more = (p->n - 1) >> w->kernels->width_log2;
    tni_mm_matrix at;
    place(w, first, &at);
    tni_mm_tile tile = {.a = at.a,
                        .b = at.b,
                        .a_row = p->a.row,
                        .a_step = p->a.column,
                        .b_step = p->b.row,
                        .depth = p->k,
                        .last = p->n - (more << w->kernels->width_log2),
                        .to = at.out,
                        .to_row = p->out.row,
                        .queue = &queue};
    if (is_tile(w)) {
        w->kernels->tile[more][p->m - 1](&tile);
        return;
    }
    tile.queue = NULL;
    for (int64_t i = 0; i < count; i++) {
        tile.a = at.a + i * queue.a_next;
        tile.b = at.b + i * queue.b_next;
        tile.to = at.out + i * queue.to_next;
        compute_plain(w->kernels, p->m, p->n, w->vectors, &tile);
    }
}

/* Computes a group of matrices. */
static void compute_group(const work *w, int64_t index, char *panel)
{
    const tni_mm_product *p = w->product;
    int64_t inner = p->batch_rank > 0 ? p->op->operand[TN_MATMUL_OUT].shape[p->batch_rank - 1] : 1;
    int64_t at = index * w->group, end = least(at + w->group, p->matrices), count;
    for (; at < end; at += count) {
        count = least(end - at, inner - at % inner);
        if (is_one_chunk(w))
            compute_plain_row(w, at, count);
        else
            compute_row(w, at, count, panel);
    }
}

static void group_task(void *user, int64_t index)
{
    run_with_panel(user, index, compute_group);
}

/* Computes rows of a matrix of one chunk. */
static void rows_task(void *user, int64_t index)
{
    const work *w = user;
    const tni_mm_product *p = w->product;
    const int64_t row = index % w->down * w->rows;
    tni_mm_matrix at;
    place(w, index / w->down, &at);
    tni_mm_tile tile = {.a = at.a + row * p->a.row * p->a.size,
                        .b = at.b,
                        .a_row = p->a.row,
                        .a_step = p->a.column,
                        .b_step = p->b.row,
                        .depth = p->k,
                        .to = at.out + row * p->out.row * p->out.size,
                        .to_row = p->out.row};
    compute_plain(w->kernels, least(w->rows, p->m - row), p->n, w->vectors, &tile);
}

/* Maximum vectors of columns in a tile, and maximum rows of a tile with that many vectors. */
static int64_t vectors_most(const tni_mm_kernels *kernels, bool narrow)
{
    return narrow ? 2 : kernels->tile_vectors;
}

static int64_t rows_most(const tni_mm_kernels *kernels, bool skinny, int64_t vectors)
{
    const int64_t rows = kernels->tile_rows[vectors - 1];
    return skinny ? least(rows, SKINNY_HEIGHT) : rows;
}

static bool is_apart(const tni_mm_product *p)
{
    return p->b.column != 1 && p->n > 1;
}

int64_t tni_mm_in_place_vectors(const tni_mm_kernels *kernels, const tni_mm_product *p)
{
    return vectors_most(kernels, is_apart(p) || is_skinny(p));
}

int64_t tni_mm_in_place_rows(const tni_mm_kernels *kernels, const tni_mm_product *p,
                             int64_t vectors)
{
    return rows_most(kernels, is_skinny(p), vectors);
}

static void shape(work *w)
{
    const tni_mm_product *p = w->product;
    const tni_mm_kernels *kernels = w->kernels;
    w->pack = is_apart(p) && p->k > 0;
    w->panel_bytes = (size_t)(p->k * kernels->packed.columns * p->b.size);
    w->skinny = is_skinny(p);
    w->vectors = vectors_most(kernels, is_apart(p) || w->skinny);
    w->width = width_for(kernels, p->n, w->vectors);
    w->height = share(p->m, rows_most(kernels, w->skinny, w->width >> kernels->width_log2));
}

/* Splits the product into parts that are each large enough for a task, and runs them. */
static void share_out(work *w, double cost)
{
    const tni_mm_product *p = w->product;
    const tn_run *run = w->run;
    w->group = run->threads > 1 ? (int64_t)(GRAIN_NS / cost) + 1 : p->matrices;
    if (w->group > 1 || cost < 2 * GRAIN_NS || run->threads < 2 ||
        p->matrices >= run->threads * TASKS_OF_A_THREAD) {
        tni_mm_each(run->host, run->threads, parts(p->matrices, w->group), group_task, w);
        return;
    }
    if (is_by_rows(w)) {
        w->rows =
            parts(parts(p->m, (int64_t)run->threads * TASKS_OF_A_THREAD), w->height) * w->height;
        w->down = parts(p->m, w->rows);
        tni_mm_each(run->host, run->threads, p->matrices * w->down, rows_task, w);
        return;
    }
    int64_t wanted = least((int64_t)(cost / GRAIN_NS), (int64_t)run->threads * TASKS_OF_A_THREAD);
    w->across = parts(p->n, w->width);
    w->rows =
        w->skinny ? p->m : parts(parts(p->m, parts(wanted, w->across)), w->height) * w->height;
    w->down = parts(p->m, w->rows);
    tni_mm_each(run->host, run->threads, p->matrices * w->down * w->across, part_task, w);
}

bool tni_mm_in_place_run(const tni_mm_kernels *kernels, const tni_mm_product *p, const tn_run *run)
{
    atomic_bool no_memory = false;
    work w = {.kernels = kernels, .product = p, .run = run, .no_memory = &no_memory};
    double cost = (double)p->m * (double)p->n * (double)p->k * kernels->packed.cost;
    tni_mm_finish_make(p, kernels->packed.acc, &w.finish);
    shape(&w);
    cost += is_one_chunk(&w) && is_tile(&w) ? QUEUED_NS : MATRIX_NS;
    share_out(&w, cost);
    return !atomic_load_explicit(&no_memory, memory_order_relaxed);
}
