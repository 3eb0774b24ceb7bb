#include "../../fork_gate.h"
#include "cblas.h"
#include "cblas_finish.h"
#include "cblas_side.h"
#include "cblas_tiles.h"

typedef struct job {
    const tn_run *run;
    tni_mm_product product;
    tni_tiles tiles;
    tni_sides sides;
} job;

/* out = alpha A B + beta out. */
static void multiply(const job *j, const tni_mm_matrix *at, int64_t rows, int64_t columns)
{
    const tni_cblas *blas = j->run->library;
    const tn_matmul_op *op = TN_PARAMS(j->product.op, matmul);
    const void *a = at->a, *b = at->b;
    void *out = at->out;
    int m = (int)rows, n = (int)columns, k = (int)j->product.k, order = TNI_CBLAS_ROWS;
    int ta = j->sides.a.by_columns ? TNI_CBLAS_TRANSPOSED : TNI_CBLAS_PLAIN;
    int tb = j->sides.b.by_columns ? TNI_CBLAS_TRANSPOSED : TNI_CBLAS_PLAIN;
    int lda = (int)j->sides.a.leading, ldb = (int)j->sides.b.leading,
        ldc = (int)j->sides.out.leading;
    double alpha = op->alpha, beta = op->beta;
    switch (j->product.out.dtype) {
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

static void finish(const job *j, const tni_mm_matrix *at, int64_t rows, int64_t columns)
{
    const tni_mm_product *p = &j->product;
    const tni_finish_job work = {.dtype = p->out.dtype,
                                 .activation = p->activation,
                                 .out = at->out,
                                 .bias = at->bias,
                                 .rows = rows,
                                 .columns = columns,
                                 .out_stride = j->sides.out.leading,
                                 .bias_row = p->bias.row,
                                 .bias_column = p->bias.column};
    tni_cblas_finish(&work);
}

static void compute(void *user, const tni_tile *tile)
{
    const job *j = user;
    const tni_mm_product *p = &j->product;
    tni_mm_matrix at;
    tni_mm_place(p, j->run, tile->matrix, &at);
    if (at.a && at.b) {
        at.a += tile->row * p->a.row * p->a.size;
        at.b += tile->column * p->b.column * p->b.size;
    }
    at.out += (tile->row * p->out.row + tile->column * p->out.column) * p->out.size;
    if (at.bias)
        at.bias += (tile->row * p->bias.row + tile->column * p->bias.column) * p->bias.size;
    multiply(j, &at, tile->rows, tile->columns);
    if (p->op->uses & (TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION))
        finish(j, &at, tile->rows, tile->columns);
}

static void task(void *user, int64_t index)
{
    job *j = user;
    tni_cblas *blas = j->run->library;
    const tni_mm_product *p = &j->product;
    bool alone = (double)p->m * (double)p->n * (double)p->k <= blas->alone;
    int before = 1;
    if (alone)
        tni_fork_gate_enter();
    else
        before = tni_vendor_threads_enter(&blas->threads, blas);
    tni_tiles_of_task(&j->tiles, index, compute, j);
    if (alone)
        tni_fork_gate_leave();
    else
        tni_vendor_threads_leave(&blas->threads, blas, before);
}

static tn_status fail(const tn_run *run, tn_error *err)
{
    job j;
    tn_refusal why = {.struct_size = sizeof why};
    (void)tni_sides_describe(run->op, &j.product, &j.sides, &why);
    return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name, "%s is %lld, needed %lld: %s", why.what,
                   (long long)why.found, (long long)why.needed, why.text);
}

tn_status tni_cblas_run(const tn_run *run, tn_error *err)
{
    job j;
    if (tni_sides_describe(run->op, &j.product, &j.sides, NULL))
        return fail(run, err);
    j.run = run;
    tni_tiles_cut(&j.product, ((const tni_cblas *)run->library)->tiles_target, &j.tiles);
    tni_tiles_loop(&j.tiles, run, task, &j);
    return TN_OK;
}

tn_status tni_cblas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"a", "b", "out", "bias", "scale_a", "scale_b"};
    const tn_op *op = query->op;
    tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    job j;
    (void)row;
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    if (TN_PARAMS(op, matmul)->activation != TN_ACT_NONE && dtype != TN_F32 && dtype != TN_F64)
        return tn_refuse(why, TN_REFUSE_DTYPE, "activation", TN_F32, dtype);
    return tni_sides_describe(op, &j.product, &j.sides, why);
}

const tn_dtype tni_cblas_dtypes[] = {TN_F32, TN_F64, TN_C64, TN_C128, 0};
const tn_dtype tni_cblas_reals[] = {TN_F32, TN_F64, 0};
