#include "matmul_lowp.h"

#include "../shared/sizes.h"

/* Of a task: minimum columns; minimum bytes of B; minimum bytes of a row of B if its rows are
 * contiguous; maximum sums, so that they stay in the second-level cache. */
enum { COLUMNS_LEAST = 32, TASK_BYTES = 64 * 1024, RUN_BYTES = 512, SUMS_MOST = 32768 };
enum { TASKS_OF_A_THREAD = 4, FINISH_COLUMNS = 64 };

/* Smaller products are packed; those of a batch are then computed in parallel. */
enum { PRODUCTS_LEAST = 1 << 12, PRODUCTS_LEAST_OF_BATCH = 1 << 18 };

/* The matrix being computed. */
typedef struct work {
    const tni_mm_thin_set *set;
    const tni_mm_product *product;
    tni_mm_finish finish;
    tni_mm_matrix at;
    char *x, *sums, *room;
    int64_t x_row, sums_row;
    int64_t columns; /* of a task */
} work;

bool tni_mm_low_is_thin(tni_mm_product *p)
{
    const double products = (double)p->m * (double)p->n * (double)p->k;
    if (p->k < 1 || (p->m > TNI_MM_FEW && p->n > TNI_MM_FEW) ||
        products < (p->matrices > 1 ? PRODUCTS_LEAST_OF_BATCH : PRODUCTS_LEAST))
        return false;
    if (p->m > p->n)
        tni_mm_transpose(p);
    return true;
}

/* Rows that are computed: the next number of rows that a set has code for. */
static int64_t laid_rows(const tni_mm_product *p)
{
    return p->m == 1 ? 1 : p->m <= 4 ? 4 : TNI_MM_FEW;
}

static int64_t row_bytes(const tni_mm_thin_set *set, const tni_mm_product *p)
{
    return round_up(round_up(p->k, set->square) * set->x_size, 64) + TNI_MM_FEW_MORE;
}

/* One cache line is added, so that consecutive rows do not map to the same cache sets. */
static int64_t sums_bytes(const tni_mm_product *p)
{
    return round_up(4 * p->n, 64) + 64;
}

uint64_t tni_mm_low_thin_workspace(const tni_mm_thin_set *set, const tni_mm_product *p)
{
    return (uint64_t)(laid_rows(p) * (row_bytes(set, p) + 2 * sums_bytes(p)));
}

static void finish_columns(const work *w, int64_t column, int64_t columns)
{
    const tni_mm_side *out = &w->product->out, *bias = &w->product->bias;
    for (int64_t j = column; j < column + columns; j += FINISH_COLUMNS)
        w->set->finish(&w->finish, w->sums + 4 * j, w->sums_row / 4, w->product->m,
                       least(FINISH_COLUMNS, column + columns - j),
                       w->at.out + j * out->column * out->size,
                       w->at.bias ? w->at.bias + j * bias->column * bias->size : NULL);
}

static void task(void *user, int64_t index)
{
    const work *w = user;
    const tni_mm_product *p = w->product;
    const int64_t column = index * w->columns, columns = least(w->columns, p->n - column);
    const tni_mm_few job = {.b = {.from = w->at.b + column * p->b.column * p->b.size,
                                  .across = p->b.column * p->b.size,
                                  .along = p->b.row * p->b.size,
                                  .lines = columns,
                                  .depth = p->k},
                            .rows = p->m,
                            .x = w->x,
                            .x_row = w->x_row,
                            .sums = w->sums + 4 * column,
                            .room = w->room + 4 * column,
                            .sums_row = w->sums_row};
    w->set->sum(&job);
    finish_columns(w, column, columns);
}

static void lay(const work *w)
{
    const tni_mm_side *a = &w->product->a;
    const tni_mm_pack job = {.from = w->at.a,
                             .across = a->row * a->size,
                             .along = a->column * a->size,
                             .lines = w->product->m,
                             .depth = w->product->k,
                             .to = w->x,
                             .panel = w->x_row};
    memset(w->x, 0, (size_t)(laid_rows(w->product) * w->x_row));
    w->set->lay(&job);
}

/* Columns of a task. The bits of the result do not depend on them. */
static int64_t cut(const tni_mm_product *p, int32_t threads)
{
    const bool together = p->b.column == 1;
    int64_t columns = p->n / (threads > 1 ? (int64_t)threads * TASKS_OF_A_THREAD : 1);
    int64_t worth = TASK_BYTES / (p->k * p->b.size) + 1;
    int64_t wide = together ? RUN_BYTES / p->b.size : COLUMNS_LEAST;
    columns = columns > worth ? columns : worth;
    columns = columns > wide ? columns : wide;
    return least(round_up(columns, COLUMNS_LEAST), SUMS_MOST / laid_rows(p));
}

void tni_mm_low_thin_run(const tni_mm_thin_set *set, tn_dtype acc, const tni_mm_product *product,
                         const tn_run *run)
{
    work w = {.set = set,
              .product = product,
              .x = run->workspace,
              .x_row = row_bytes(set, product),
              .sums_row = sums_bytes(product),
              .columns = cut(product, run->threads)};
    w.sums = w.x + laid_rows(product) * w.x_row;
    w.room = w.sums + laid_rows(product) * w.sums_row;
    const int64_t count = parts(product->n, w.columns);
    tni_mm_finish_make(product, acc, &w.finish);
    for (int64_t i = 0; i < product->matrices; i++) {
        tni_mm_place(product, run, i, &w.at);
        lay(&w);
        tni_mm_each(run->host, run->threads, count, task, &w);
    }
}
