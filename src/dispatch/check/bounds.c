#include "bounds.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "bounds_attention.h"

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static double size_of(tni_number x)
{
    return x.im == 0 ? fabs(x.re) : hypot(x.re, x.im);
}

/* The norm of a row of A or a column of B: the elements of one matrix along one dimension. */
static double norm_of(const tni_bounds *b, int32_t operand, tni_place place, int32_t along)
{
    double squares = 0;
    for (int64_t i = 0; i < b->op->as.matmul.k; i++) {
        place.index[along] = i;
        tni_number x = tni_bounds_input(b, operand, &place);
        squares += x.re * x.re + x.im * x.im;
    }
    return sqrt(squares);
}

/* Takes up the matrices of a batch's place. */
static void take_matrices(tni_bounds *b, const tni_place *place)
{
    const tn_matmul_op *mm = &b->op->as.matmul;
    int32_t row = mm->batch_rank, column = mm->batch_rank + 1;
    tni_place at = *place;
    for (int64_t i = 0; i < mm->m; i++) {
        at.index[row] = i;
        b->rows[i] = norm_of(b, TN_MATMUL_A, at, column);
    }
    at = *place;
    for (int64_t i = 0; i < mm->n; i++) {
        at.index[column] = i;
        b->columns[i] = norm_of(b, TN_MATMUL_B, at, row);
    }
}

/* What each product may be off by, of its size, when operands are rounded before they are read. Both
 * are, perhaps by cutting; such errors of k products do not add up but like their root. */
static double rounded_inputs(const tni_bounds *b)
{
    const tn_matmul_op *mm = &b->op->as.matmul;
    tn_dtype dtype = b->op->operand[TN_MATMUL_A].dtype;
    double u = 0;
    if (dtype == TN_F32 || dtype == TN_C64)
        u = b->numerics & TN_NUM_ROUNDS_F32_BF16   ? 0x1p-8
            : b->numerics & TN_NUM_ROUNDS_F32_TF32 ? 0x1p-11
                                                   : 0;
    return mm->k > 0 ? 4 * u * least_of(1, 8 / sqrt((double)mm->k)) : 0;
}

/* One rounding of the product, where something is added to it after. */
static double rounded_product(const tni_bounds *b)
{
    const bool added = b->op->as.matmul.beta != 0 || b->op->operand[TN_MATMUL_BIAS].dtype;
    return added && b->numerics & TN_NUM_ROUNDS_PRODUCT
               ? tni_dtype_roundoff(b->op->operand[TN_MATMUL_OUT].dtype)
               : 0;
}

static double matmul_integers(const tn_matmul_op *mm, double size)
{
    bool whole = mm->alpha == rint(mm->alpha) && mm->beta == rint(mm->beta);
    return whole ? 0 : 1 + 0x1p-22 * size;
}

/* Both scales of an output together; 1 where none exist. */
static double scales_at(const tni_bounds *b, const tni_place *place)
{
    double scale = 1;
    for (int32_t i = TN_MATMUL_SCALE_A; i <= TN_MATMUL_SCALE_B; i++) {
        if (i < b->op->count && b->op->operand[i].dtype)
            scale *= size_of(tni_bounds_input(b, i, place));
    }
    return scale;
}

static double of_matmul(tni_bounds *b, const tni_place *place, double size)
{
    const tn_matmul_op *mm = &b->op->as.matmul;
    int32_t row = mm->batch_rank, column = mm->batch_rank + 1;
    if (tni_dtype_is_integer(b->op->operand[TN_MATMUL_OUT].dtype))
        return matmul_integers(mm, size);
    if (place->index[row] == 0 && place->index[column] == 0)
        take_matrices(b, place);
    double products = fabs(mm->alpha) * scales_at(b, place) * b->rows[place->index[row]] *
                      b->columns[place->index[column]];
    double rest = size;
    if (mm->beta != 0)
        rest += fabs(mm->beta) * size_of(tni_bounds_input(b, TN_MATMUL_OUT, place));
    if (b->op->operand[TN_MATMUL_BIAS].dtype)
        rest += size_of(tni_bounds_input(b, TN_MATMUL_BIAS, place));
    double each = (b->sum + 8) * b->work + rounded_inputs(b) + rounded_product(b);
    double bound = products * each + 4 * b->work * rest;
    if (mm->activation)
        bound = 1.2 * bound + 8 * b->work * (products + rest);
    return bound;
}

static double of_unary(const tni_bounds *b, const tni_place *place, double size)
{
    double u = b->work;
    switch (b->op->as.each.kind) {
    case TN_UNARY_SQRT: return 2 * u * size;
    case TN_UNARY_RSQRT:
    case TN_UNARY_EXP: return 8 * u * size;
    case TN_UNARY_LOG: return 8 * u * size + 2 * u;
    case TN_UNARY_TANH: return 8 * u * size + 4 * u;
    case TN_UNARY_SIGMOID:
    case TN_UNARY_SILU: return 16 * u * size;
    case TN_UNARY_GELU:
    case TN_UNARY_GELU_TANH: return 16 * u * size_of(tni_bounds_input(b, TN_EACH_IN, place));
    default: return 0;
    }
}

static double of_binary(const tni_bounds *b, double size)
{
    bool complex = tni_dtype_is_complex(b->op->operand[TN_EACH_IN].dtype);
    switch (b->op->as.each.kind) {
    case TN_BINARY_MUL: return complex ? 8 * b->work * size : 0;
    case TN_BINARY_DIV: return (complex ? 32 : 4) * b->work * size;
    default: return 0;
    }
}

/* Takes up the row of in that begins at the place: its last `kept` dimensions. */
static void take_row(tni_bounds *b, tni_place place, int32_t kept)
{
    const tn_layout *in = &b->op->operand[TN_EACH_IN];
    double squares = 0, sum = 0, count = 0;
    bool more = b->op->as.each.size > 0;
    b->greatest = b->total = 0;
    while (more) {
        tni_number x = tni_bounds_input(b, TN_EACH_IN, &place);
        double size = size_of(x);
        if (size > b->greatest && !tni_is_infinite(size))
            b->greatest = size;
        b->total += size;
        sum += x.re;
        squares += size * size;
        count += 1;
        more = false;
        for (int32_t d = in->rank; d-- > in->rank - kept && !more;) {
            more = ++place.index[d] < in->shape[d];
            place.index[d] = more ? place.index[d] : 0;
        }
    }
    b->mean = count > 0 ? sum / count : 0;
    b->square = count > 0 ? squares / count : 0;
}

static double of_reduce(tni_bounds *b, const tni_place *place, double size)
{
    const tn_each_op *each = &b->op->as.each;
    if (each->kind == TN_REDUCE_MAX || each->kind == TN_REDUCE_MIN)
        return 0;
    if (each->kind == TN_REDUCE_PROD)
        return 2 * b->sum * b->work * size;
    take_row(b, *place, each->axes);
    double bound = b->sum * b->work * b->total + 2 * b->work * size;
    return each->kind == TN_REDUCE_MEAN && each->size > 0 ? bound / (double)each->size : bound;
}

static double of_softmax(const tni_bounds *b, double size)
{
    double factor = (32 + b->sum + 4 * b->greatest) * b->work;
    return factor * (b->op->uses & TN_EACH_USES_LOG ? 1 + size : size);
}

static double of_norm(const tni_bounds *b, const tni_place *place, double size)
{
    const tn_each_op *each = &b->op->as.each;
    double variance = each->kind == TN_NORM_LAYER ? b->square - b->mean * b->mean : b->square;
    double by = (variance > 0 ? variance : 0) + each->value;
    double x = size_of(tni_bounds_input(b, TN_EACH_IN, place)), weight = 1, bias = 0;
    if (b->op->operand[TN_NORM_WEIGHT].dtype)
        weight = size_of(tni_bounds_input(b, TN_NORM_WEIGHT, place));
    if (b->op->operand[TN_NORM_BIAS].dtype)
        bias = size_of(tni_bounds_input(b, TN_NORM_BIAS, place));
    double scaled = (sqrt(b->square) + x) / sqrt(by) * (1 + b->square / by);
    return (b->sum + 16) * b->work * scaled * weight + 4 * b->work * (size + bias);
}

static double of_rotary(const tni_bounds *b, const tni_place *place)
{
    const tn_each_op *each = &b->op->as.each;
    int32_t last = b->op->operand[TN_EACH_IN].rank - 1;
    int64_t i = place->index[last], half = each->size / 2;
    tni_place other = *place, angle = *place;
    if (i >= each->size)
        return 0;
    bool pairs = each->kind == TN_ROTARY_PAIRS;
    other.index[last] = pairs ? i ^ 1 : i < half ? i + half : i - half;
    angle.index[last] = pairs ? i / 2 : i % half;
    double c = size_of(tni_bounds_input(b, TN_ROTARY_COS, &angle));
    double s = size_of(tni_bounds_input(b, TN_ROTARY_SIN, &angle));
    double sizes = size_of(tni_bounds_input(b, TN_EACH_IN, place)) +
                   size_of(tni_bounds_input(b, TN_EACH_IN, &other));
    return 4 * b->work * sizes * (c > s ? c : s);
}

/* Before the last rounding. */
static double inner_bound(tni_bounds *b, const tni_place *place, double size)
{
    const tn_layout *in = &b->op->operand[TN_EACH_IN];
    switch (b->op->kind) {
    case TN_OP_MATMUL: return of_matmul(b, place, size);
    case TN_OP_UNARY: return of_unary(b, place, size);
    case TN_OP_BINARY: return of_binary(b, size);
    case TN_OP_REDUCE: return of_reduce(b, place, size);
    case TN_OP_SOFTMAX:
    case TN_OP_NORM:
        if (in->rank == 0 || place->index[in->rank - 1] == 0)
            take_row(b, *place, in->rank > 0);
        return b->op->kind == TN_OP_NORM ? of_norm(b, place, size) : of_softmax(b, size);
    case TN_OP_ROTARY: return of_rotary(b, place);
    case TN_OP_ATTENTION:
    case TN_OP_ATTENTION_BACKWARD: return tni_attention_bound(b, place, size);
    case TN_OP_ATTENTION_MERGE: return tni_merge_bound(b, place, size);
    default: return 0;
    }
}

double tni_bounds_at(tni_bounds *bounds, const tni_place *place, tni_number expected)
{
    tn_dtype out = bounds->op->operand[bounds->output].dtype;
    double size = size_of(expected);
    if (tni_dtype_is_integer(out) && bounds->op->kind != TN_OP_MATMUL)
        return 0;
    double bound = inner_bound(bounds, place, size);
    if (bound == 0 || tni_dtype_is_integer(out))
        return bound;
    bound += 2 * tni_dtype_roundoff(out) * size + tni_dtype_least(out);
    return tni_is_nan(bound) ? INFINITY : bound;
}

/* Of sums in fewer bits than those of f32: those of the inputs; of 8-bit floats devices keep 13 and more. */
static double narrow_roundoff(tn_dtype in)
{
    return tni_dtype_bytes(in) == 1 ? 0x1p-13 : tni_dtype_roundoff(in);
}

/* u */
static double work_of(const tn_op *op, uint64_t numerics)
{
    const tn_layout *out = &op->operand[tni_op_class_of(op->kind)->output];
    const bool narrow = numerics & (TN_NUM_REDUCED_REDUCTION | TN_NUM_F16_SUMS);
    tn_dtype in = op->operand[0].dtype ? op->operand[0].dtype : out->dtype;
    tn_dtype work = op->kind == TN_OP_MATMUL ? op->as.matmul.acc : tni_dtype_work(in);
    if (op->kind == TN_OP_MATMUL && narrow && work == TN_F32)
        return narrow_roundoff(in);
    return tni_dtype_roundoff(tni_dtype_is_integer(work) ? tni_dtype_work(out->dtype) : work);
}

tn_status tni_bounds_begin(tni_bounds *bounds, const tni_comparand *what, tn_error *err)
{
    const tn_op *op = what->op;
    const tn_matmul_op *mm = tn_op_matmul(op);
    double *norms = NULL;
    if (mm) {
        norms = tni_alloc_zeroed((size_t)(mm->m + mm->n), sizeof *norms);
        if (!norms)
            return tni_no_memory(err, "tn_check", "the norms of rows and columns");
    }
    double count = (double)(mm ? mm->k : tn_op_each(op) ? op->as.each.size : 0);
    *bounds = (tni_bounds){
        .op = op,
        .output = what->output,
        .data = what->data,
        .numerics = what->numerics,
        .work = work_of(op, what->numerics),
        .sum = tni_bounds_gathered(mm && tni_dtype_is_complex(mm->acc) ? 4 * count : count),
        .rows = norms,
        .columns = norms ? norms + mm->m : NULL};
    return tn_op_attention(op) ? tni_attention_bounds_begin(bounds, err) : TN_OK;
}

void tni_bounds_end(tni_bounds *bounds)
{
    tni_attention_bounds_end(bounds);
    tni_release(bounds->rows);
    bounds->rows = bounds->columns = NULL;
}
