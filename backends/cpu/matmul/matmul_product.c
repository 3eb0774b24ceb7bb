#include "matmul_product.h"

#include "../shared/sizes.h"
#include "tenon/module/op/matmul.h"

/* Folds matrices of a batch that share one B, and whose rows follow each other, into one matrix. */
static void fold(const tn_op *op, tni_mm_product *out)
{
    const tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    const tn_layout *c = &op->operand[TN_MATMUL_OUT], *bias = &op->operand[TN_MATMUL_BIAS];
    while (out->batch_rank > 0 && out->m > 0) {
        int32_t d = out->batch_rank - 1, row = c->rank - 2;
        if (b->stride[d] != 0 || a->stride[d] != out->m * a->stride[row] ||
            c->stride[d] != out->m * c->stride[row] ||
            (out->bias.dtype && bias->stride[d] != out->m * bias->stride[row]))
            return;
        out->m *= c->shape[d];
        out->matrices /= c->shape[d] > 0 ? c->shape[d] : 1;
        out->batch_rank = d;
    }
}

static tni_mm_side side_of(const tn_op *op, int32_t operand)
{
    const tn_layout *layout = &op->operand[operand];
    if (operand >= op->count || !layout->dtype)
        return (tni_mm_side){.operand = operand};
    return (tni_mm_side){.operand = operand,
                         .dtype = layout->dtype,
                         .size = dtype_bytes(layout->dtype),
                         .row = layout->stride[layout->rank - 2],
                         .column = layout->stride[layout->rank - 1]};
}

static void tidy(tni_mm_side *it, int64_t rows, int64_t columns)
{
    it->row = rows > 1 ? it->row : 0;
    it->column = columns > 1 ? it->column : 0;
}

static void transpose(tni_mm_side *it)
{
    int64_t row = it->row;
    it->row = it->column;
    it->column = row;
}

void tni_mm_transpose(tni_mm_product *p)
{
    int64_t m = p->m;
    tni_mm_side a = p->a;
    p->m = p->n;
    p->n = m;
    p->a = p->b;
    p->b = a;
    transpose(&p->a);
    transpose(&p->b);
    transpose(&p->out);
    transpose(&p->bias);
    p->transposed = !p->transposed;
}

void tni_mm_describe(const tn_op *op, tni_mm_product *out)
{
    const tn_matmul_op *matmul = TN_PARAMS(op, matmul);
    *out = (tni_mm_product){.op = op,
                            .m = matmul->m,
                            .n = matmul->n,
                            .k = matmul->k,
                            .matrices = matmul->matrices,
                            .batch_rank = matmul->batch_rank,
                            .activation = matmul->activation,
                            .a = side_of(op, TN_MATMUL_A),
                            .b = side_of(op, TN_MATMUL_B),
                            .out = side_of(op, TN_MATMUL_OUT),
                            .bias = side_of(op, TN_MATMUL_BIAS)};
    if (out->batch_rank > 0)
        fold(op, out);
    tidy(&out->a, out->m, out->k);
    tidy(&out->b, out->k, out->n);
    tidy(&out->out, out->m, out->n);
    if (out->m > 1 && out->n > 1 && out->out.row == 1 && out->out.column != 1)
        tni_mm_transpose(out);
}

/* Bytes from the first matrix of an operand to matrix `index`. */
static int64_t offset_of(const tni_mm_product *p, const tni_mm_side *side, int64_t index)
{
    const tn_layout *layout = &p->op->operand[side->operand];
    int64_t offset = 0;
    for (int32_t d = p->batch_rank - 1; d >= 0; d--) {
        offset += index % layout->shape[d] * layout->stride[d];
        index /= layout->shape[d];
    }
    return offset * side->size;
}

static char *find(const tni_mm_product *p, const tn_run *run, const tni_mm_side *side,
                  int64_t index)
{
    char *data = side->dtype ? tn_operand(run, side->operand) : NULL;
    return data && index > 0 ? data + offset_of(p, side, index) : data;
}

void tni_mm_place(const tni_mm_product *product, const tn_run *run, int64_t index,
                  tni_mm_matrix *out)
{
    out->a = find(product, run, &product->a, index);
    out->b = find(product, run, &product->b, index);
    out->out = find(product, run, &product->out, index);
    out->bias = find(product, run, &product->bias, index);
}
