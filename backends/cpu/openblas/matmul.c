#include "../cpu.h"
#include "finish.h"
#include "openblas.h"

#include <limits.h>
#include <stdbool.h>

/* Products of at most so many multiplications get one thread from any OpenBLAS, unasked: below the
 * threshold of its gemv, which newer ones take for a single row or column. */
enum { ALWAYS_ALONE = 8192 };

/* Multiplications that are worth a task of their own. */
#define GRAIN 0x1p21

/* Tiles of out to begin with: what is packed for one fits the second cache. */
enum {
    TILE_ROWS = 256,
    TILE_COLUMNS = 512,
    TILE_LEAST = 64,
    TILE_MOST = 1 << 30,
    TILES_WISHED = 8
};

/* One operand's matrices. */
typedef struct side {
    int64_t rows, columns;
    int64_t row_stride, column_stride;
    int64_t leading;
    bool by_columns;
} side;

typedef struct product {
    const tn_run *run;
    const tn_matmul_op *op;
    side a, b, out;
    int64_t m, n, k;
    int64_t matrices;
    int32_t batch_rank; /* of what is not folded into m */
    int32_t size;       /* of an element                */
    int order, transpose_a, transpose_b;
    int64_t tile_rows, tile_columns;
    int64_t tiles, tiles_across; /* of one matrix        */
    int64_t group;               /* matrices of one task */
    double work;                 /* multiplications of one matrix */
} product;

/* Strides of single rows and columns mean nothing. False for what cblas cannot say; `leading` is then
 * what is at fault. */
static bool lay(side *it)
{
    int64_t rows = it->rows, columns = it->columns;
    bool empty = rows == 0 || columns == 0;
    it->by_columns = false;
    it->leading = rows == 1 || empty ? (columns > 0 ? columns : 1) : it->row_stride;
    if (empty || ((it->column_stride == 1 || columns == 1) && it->leading >= columns))
        return it->leading <= INT_MAX;
    if (it->row_stride != 1 && rows != 1)
        return false;
    it->by_columns = true;
    it->leading = columns == 1 ? rows : it->column_stride;
    return it->leading >= rows && it->leading <= INT_MAX;
}

/* Matrices of a batch that one B serves, and whose rows follow each other, are one matrix. */
static void fold(const tn_op *op, product *out)
{
    const tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    const tn_layout *c = &op->operand[TN_MATMUL_OUT], *bias = &op->operand[TN_MATMUL_BIAS];
    while (out->batch_rank > 0 && out->m > 0) {
        int32_t d = out->batch_rank - 1, row = c->rank - 2;
        if (b->stride[d] != 0 || a->stride[d] != out->m * a->stride[row] ||
            c->stride[d] != out->m * c->stride[row] ||
            (bias->dtype && bias->stride[d] != out->m * bias->stride[row]))
            return;
        out->m *= c->shape[d];
        out->matrices /= c->shape[d] > 0 ? c->shape[d] : 1;
        out->batch_rank = d;
    }
}

static side side_of(const tn_layout *layout, int64_t rows, int64_t columns)
{
    return (side){.rows = rows,
                  .columns = columns,
                  .row_stride = layout->stride[layout->rank - 2],
                  .column_stride = layout->stride[layout->rank - 1]};
}

static tn_status refuse_side(tn_refusal *why, const char *name, const side *it)
{
    bool great = it->leading > INT_MAX;
    int64_t least = it->by_columns ? it->rows : it->columns;
    (void)tn_refuse(why, TN_REFUSE_STRIDE, name, great ? INT_MAX : least, it->leading);
    if (why)
        tn_text_fit(why->text, sizeof why->text,
                    great
                        ? "cblas counts in 32 bits"
                        : "rows or columns must be together and may not overlap or run backwards");
    return TN_UNSUPPORTED;
}

/* All that does not depend on data but for how it is split; TN_UNSUPPORTED for what cblas cannot say. */
static tn_status describe(const tn_op *op, product *out, tn_refusal *why)
{
    const tn_matmul_op *matmul = &op->as.matmul;
    out->op = matmul;
    out->m = matmul->m;
    out->n = matmul->n;
    out->k = matmul->k;
    out->matrices = matmul->matrices;
    out->batch_rank = matmul->batch_rank;
    out->size = (int32_t)(op->operand[TN_MATMUL_OUT].dtype >> 8 & 255) / 8;
    if (out->batch_rank > 0)
        fold(op, out);
    if (out->k > INT_MAX)
        return tn_refuse(why, TN_REFUSE_SHAPE, "k", INT_MAX, out->k);
    out->a = side_of(&op->operand[TN_MATMUL_A], out->m, out->k);
    out->b = side_of(&op->operand[TN_MATMUL_B], out->k, out->n);
    out->out = side_of(&op->operand[TN_MATMUL_OUT], out->m, out->n);
    if (!lay(&out->a))
        return refuse_side(why, "a.stride", &out->a);
    if (!lay(&out->b))
        return refuse_side(why, "b.stride", &out->b);
    if (!lay(&out->out))
        return refuse_side(why, "out.stride", &out->out);
    bool columns = out->out.by_columns;
    out->order = columns ? TNI_BLAS_COLUMNS : TNI_BLAS_ROWS;
    out->transpose_a = out->a.by_columns == columns ? TNI_BLAS_PLAIN : TNI_BLAS_TRANSPOSED;
    out->transpose_b = out->b.by_columns == columns ? TNI_BLAS_PLAIN : TNI_BLAS_TRANSPOSED;
    return TN_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static int64_t half(int64_t tile)
{
    return parts(tile, 2 * TILE_LEAST) * TILE_LEAST;
}

/* Depends on m, n and k alone, so that sums do too. */
static void split(product *p)
{
    double k = (double)(p->k > 0 ? p->k : 1);
    int64_t rows = TILE_ROWS, columns = TILE_COLUMNS;
    while ((double)rows * (double)columns * k < GRAIN && columns < p->n && columns < TILE_MOST)
        columns *= 2;
    while ((double)least(rows, p->m) * (double)least(columns, p->n) * k < GRAIN && rows < p->m &&
           rows < TILE_MOST)
        rows *= 2;
    rows = least(rows, p->m);
    columns = least(columns, p->n);
    while (parts(p->m, rows) * parts(p->n, columns) < TILES_WISHED &&
           (double)rows * (double)columns * k > 2 * GRAIN &&
           (rows > TILE_LEAST || columns > TILE_LEAST)) {
        if (rows > columns)
            rows = half(rows);
        else
            columns = half(columns);
    }
    p->tile_rows = rows;
    p->tile_columns = columns;
    p->tiles_across = parts(p->n, columns);
    p->tiles = parts(p->m, rows) * p->tiles_across;
}

/* The first element of a matrix of the batch. */
static char *matrix_of(const product *p, int32_t operand, int64_t index)
{
    const tn_layout *layout = &p->run->op->operand[operand];
    int64_t offset = 0;
    for (int32_t d = p->batch_rank - 1; d >= 0; d--) {
        offset += index % layout->shape[d] * layout->stride[d];
        index /= layout->shape[d];
    }
    char *data = tn_operand(p->run, operand);
    return data ? data + offset * p->size : NULL;
}

/* out = alpha A B + beta out, of m rows and n columns at most. */
static void multiply(const product *p, const void *a, const void *b, void *out, int64_t rows,
                     int64_t columns)
{
    const tni_openblas *blas = p->run->library;
    int m = (int)rows, n = (int)columns, k = (int)p->k, order = p->order;
    int ta = p->transpose_a, tb = p->transpose_b;
    int lda = (int)p->a.leading, ldb = (int)p->b.leading, ldc = (int)p->out.leading;
    double alpha = p->op->alpha, beta = p->op->beta;
    switch (p->run->op->operand[TN_MATMUL_OUT].dtype) {
    case TN_F32:
        blas->sgemm(order, ta, tb, m, n, k, (float)alpha, a, lda, b, ldb, (float)beta, out, ldc);
        break;
    case TN_F64: blas->dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, out, ldc); break;
    case TN_C64: {
        const float ca[] = {(float)alpha, 0}, cb[] = {(float)beta, 0};
        blas->cgemm(order, ta, tb, m, n, k, ca, a, lda, b, ldb, cb, out, ldc);
        break;
    }
    default: {
        const double ca[] = {alpha, 0}, cb[] = {beta, 0};
        blas->zgemm(order, ta, tb, m, n, k, ca, a, lda, b, ldb, cb, out, ldc);
    }
    }
}

/* A bias has the strides of its layout, whichever way out lies. */
static void finish(const product *p, char *out, const char *bias, int64_t rows, int64_t columns)
{
    const tn_layout *layout = &p->run->op->operand[TN_MATMUL_BIAS];
    int64_t bias_row = bias ? layout->stride[layout->rank - 2] : 0;
    int64_t bias_column = bias ? layout->stride[layout->rank - 1] : 0;
    bool swap = p->out.by_columns;
    tni_finish_job job = {.dtype = p->run->op->operand[TN_MATMUL_OUT].dtype,
                          .activation = p->op->activation,
                          .out = out,
                          .bias = bias,
                          .rows = swap ? columns : rows,
                          .columns = swap ? rows : columns,
                          .out_stride = p->out.leading,
                          .bias_row = swap ? bias_column : bias_row,
                          .bias_column = swap ? bias_row : bias_column};
    tni_matmul_finish(&job);
}

/* The tile of a matrix that begins at that row and column. */
static void compute_tile(const product *p, int64_t matrix, int64_t row, int64_t column)
{
    int64_t rows = least(p->tile_rows, p->m - row), columns = least(p->tile_columns, p->n - column);
    const char *a = matrix_of(p, TN_MATMUL_A, matrix), *b = matrix_of(p, TN_MATMUL_B, matrix);
    char *out = matrix_of(p, TN_MATMUL_OUT, matrix);
    if (a && b) {
        a += row * p->a.row_stride * p->size;
        b += column * p->b.column_stride * p->size;
    }
    out += (row * p->out.row_stride + column * p->out.column_stride) * p->size;
    multiply(p, a, b, out, rows, columns);
    if (!(p->run->op->uses & (TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION)))
        return;
    const tn_layout *layout = &p->run->op->operand[TN_MATMUL_BIAS];
    const char *bias = matrix_of(p, TN_MATMUL_BIAS, matrix);
    if (bias)
        bias +=
            (row * layout->stride[layout->rank - 2] + column * layout->stride[layout->rank - 1]) *
            p->size;
    finish(p, out, bias, rows, columns);
}

/* One tile, or a group of whole matrices. */
static void task(void *user, int64_t index)
{
    const product *p = user;
    tni_openblas *blas = p->run->library;
    bool alone = p->work <= ALWAYS_ALONE;
    int before = alone ? 0 : tni_openblas_enter(blas);
    if (p->tiles > 1) {
        int64_t tile = index % p->tiles;
        compute_tile(p, index / p->tiles, tile / p->tiles_across * p->tile_rows,
                     tile % p->tiles_across * p->tile_columns);
    } else {
        int64_t end = least((index + 1) * p->group, p->matrices);
        for (int64_t i = index * p->group; i < end; i++)
            compute_tile(p, i, 0, 0);
    }
    if (!alone)
        tni_openblas_leave(blas, before);
}

static tn_status fail(const tn_run *run, tn_error *err)
{
    product p;
    tn_refusal why = {.struct_size = sizeof why};
    (void)describe(run->op, &p, &why);
    return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "%s is %lld, needed %lld: %s", why.what,
                   (long long)why.found, (long long)why.needed, why.text);
}

/* Small products are not split. */
static void cut(product *p)
{
    p->tiles = p->group = 1;
    p->tile_rows = p->m;
    p->tile_columns = p->n;
    if (p->work > 2 * GRAIN || p->m > TILE_MOST || p->n > TILE_MOST)
        split(p);
    else if (p->matrices > 1 && p->work < GRAIN)
        p->group = (int64_t)(GRAIN / (p->work + 64));
}

static tn_status run(const tn_run *run, tn_error *err)
{
    product p;
    if (describe(run->op, &p, NULL))
        return fail(run, err);
    p.run = run;
    p.work = (double)p.m * (double)p.n * (double)p.k;
    cut(&p);
    if (p.matrices == 1 && p.tiles == 1) {
        task(&p, 0);
        return TN_OK;
    }
    int64_t count = p.tiles > 1 ? p.matrices * p.tiles : parts(p.matrices, p.group);
    if (count > 1 && run->threads > 1)
        run->host->parallel_for(run->host->self, count, task, &p);
    else
        for (int64_t i = 0; i < count; i++)
            task(&p, i);
    return TN_OK;
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    (void)row;
    for (int32_t i = 0; i < op->count; i++) {
        static const char *const names[] = {"a", "b", "out", "bias"};
        if (op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    if (op->as.matmul.activation != TN_ACT_NONE && dtype != TN_F32 && dtype != TN_F64)
        return tn_refuse(why, TN_REFUSE_DTYPE, "activation", TN_F32, dtype);
    product p;
    return describe(op, &p, why);
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_C64, TN_C128, 0};

/* Sums are made in one order for each m, n and k, whatever the threads and the batch's size, but rows
 * may be summed otherwise at the end of a tile than within. */
const tn_kernel_row tni_cpu_module_matmul_openblas = {
    .struct_size = sizeof tni_cpu_module_matmul_openblas,
    .name = "cpu.matmul.openblas",
    .platform = "cpu",
    .library = "openblas",
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
               TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA | TN_MATMUL_USES_BIAS |
               TN_MATMUL_USES_ACTIVATION,
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH,
    .flops_per_us = 6e4,
    .bytes_per_us = 8e3,
    .overhead_us = 0.3,
    .admit = admit,
    .run = run,
};
