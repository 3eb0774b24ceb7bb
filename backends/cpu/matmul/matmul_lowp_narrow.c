#include "matmul_lowp_narrow.h"

#include "../shared/sizes.h"

/* Maximum columns, minimum rows; maximum bytes of the panels of B, so that they stay in the
 * second-level cache; minimum products for which packing B pays off. */
enum { COLUMNS_MOST = 64, ROWS_LEAST = 64, B_BYTES = 1 << 20, PRODUCTS_LEAST = 1 << 20 };

/* Minimum bytes of A for a task. */
enum { TASK_BYTES = 128 << 10 };

/* The matrix being computed. */
typedef struct work {
    const tni_mm_set *set;
    const tni_mm_product *product;
    tni_mm_matrix at;
    tni_mm_finish finish;
    char *b; /* packed */
    int64_t b_panel;
    int64_t rows; /* of a task */
} work;

static int64_t panel_of(const tni_mm_set *set, const tni_mm_product *p)
{
    return tni_mm_panel(set->columns, p->k, set->group, set->b_size, set->b_more);
}

/* One matrix only: the matrices of a batch are computed in parallel elsewhere. */
static bool suits(const tni_mm_set *set, const tni_mm_product *p)
{
    return p->matrices == 1 && p->a.column == 1 && p->a.row != 0 && p->n <= COLUMNS_MOST &&
           p->m >= ROWS_LEAST && p->k >= 2 * set->group &&
           p->k <= B_BYTES / set->b_size / COLUMNS_MOST && p->m >= PRODUCTS_LEAST / (p->n * p->k);
}

bool tni_mm_low_is_narrow(const tni_mm_set *set, tni_mm_product *product)
{
    tni_mm_product transposed = *product;
    if (!set->in_place || product->n == 0 || product->k == 0)
        return false;
    if (suits(set, product))
        return true;
    tni_mm_transpose(&transposed);
    const bool narrow = transposed.n > 0 && suits(set, &transposed);
    if (narrow)
        *product = transposed;
    return narrow;
}

uint64_t tni_mm_low_narrow_workspace(const tni_mm_set *set, const tni_mm_product *p)
{
    return (uint64_t)(parts(p->n, set->columns) * panel_of(set, p));
}

static void pack_b(const work *w)
{
    tni_mm_pack job = tni_mm_pack_b(&w->product->b, w->at.b, 0, 0);
    job.lines = w->product->n;
    job.depth = w->product->k;
    job.to = w->b;
    job.panel = w->b_panel;
    w->set->pack_b(&job);
}

static void compute_rows(const work *w, int64_t row, int64_t rows)
{
    const tni_mm_product *p = w->product;
    const tni_mm_side *out = &p->out, *bias = &p->bias;
    const tni_mm_block job = {.a = w->at.a + row * p->a.row * p->a.size,
                              .a_row = p->a.row * p->a.size,
                              .b = w->b,
                              .b_panel = w->b_panel,
                              .rows = rows,
                              .columns = p->n,
                              .depth = p->k,
                              .first = true,
                              .last = true,
                              .finish = &w->finish,
                              .out = w->at.out + row * out->row * out->size,
                              .bias =
                                  w->at.bias ? w->at.bias + row * bias->row * bias->size : NULL};
    w->set->block(&job);
}

/* Blocks with the rows of a tile, then with at most half as many. */
static void task(void *user, int64_t index)
{
    const work *w = user;
    const int64_t end = least((index + 1) * w->rows, w->product->m), half = w->set->rows / 2;
    for (int64_t row = index * w->rows, rows; row < end; row += rows) {
        rows = end - row >= w->set->rows ? w->set->rows : least(end - row, half);
        compute_rows(w, row, rows);
    }
}

void tni_mm_low_narrow_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run)
{
    work w = {.set = set, .product = product, .b = run->workspace};
    const int64_t lines = TASK_BYTES / (product->k * product->a.size);
    w.b_panel = panel_of(set, product);
    w.rows = round_up(most(lines, 1), set->rows);
    const int64_t count = parts(product->m, w.rows);
    tni_mm_finish_make(product, set->acc, &w.finish);
    tni_mm_place(product, run, 0, &w.at);
    pack_b(&w);
    tni_mm_each(run->host, run->threads, count, task, &w);
}
