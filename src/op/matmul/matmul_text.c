/* The text form of matmul problems. */
#include "matmul.h"
#include "op/fields.h"
#include "tenon/dtype.h"

const char *const tni_matmul_activations[] = {
    [TN_ACT_NONE] = "none",           [TN_ACT_RELU] = "relu", [TN_ACT_GELU] = "gelu",
    [TN_ACT_GELU_TANH] = "gelu-tanh", [TN_ACT_SILU] = "silu", [TN_ACT_COUNT] = NULL};

static const char *const stride_keys[] = {"sa", "sb", "sc", "sbias", "sscale_a", "sscale_b"};

/* Granularity of a scale: one number for the tensor, or one for each row of A or column of B. */
enum { SCALE_NONE, SCALE_ONE, SCALE_EACH };
static const char *const scale_keys[] = {"scale_a", "scale_b"};
static const char *const scale_words[][4] = {{"none", "tensor", "rows", NULL},
                                             {"none", "tensor", "columns", NULL}};

typedef struct sizes {
    int64_t m, n, k, ta, tb, bias;
    int64_t batch[TN_OP_RANK_MAX];
    int32_t batch_rank;
    tn_dtype of_b;
    int32_t scale[2]; /* SCALE_..., of A and B */
} sizes;

/* Makes the default layout of a scale: dense, with stride 0 where it is broadcast. */
static void usual_scale(const sizes *size, int32_t which, tn_layout *out)
{
    const int32_t rank = size->batch_rank + 2, fixed = rank - (which == 0 ? 1 : 2);
    int64_t shape[TN_OP_RANK_MAX];
    memcpy(shape, size->batch, sizeof shape);
    shape[rank - 2] = size->m;
    shape[rank - 1] = size->n;
    const int64_t whole = shape[fixed];
    shape[fixed] = 1;
    tni_layout_make(out, TN_F32, shape, rank);
    out->shape[fixed] = whole;
    out->stride[fixed] = 0;
    if (size->scale[which] == SCALE_ONE)
        memset(out->stride, 0, (size_t)rank * sizeof shape[0]);
}

/* Makes the default layouts for an op of these sizes. */
static void make_usual_layouts(const sizes *size, tn_dtype dtype, tn_dtype out_dtype,
                               tn_layout out[TN_MATMUL_OPERANDS])
{
    const int64_t ends[][2] = {{size->ta ? size->k : size->m, size->ta ? size->m : size->k},
                               {size->tb ? size->n : size->k, size->tb ? size->k : size->n},
                               {size->m, size->n}};
    int64_t shape[TN_OP_RANK_MAX];
    int32_t rank = size->batch_rank + 2;
    memcpy(shape, size->batch, sizeof shape);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        shape[rank - 2] = ends[i][0];
        shape[rank - 1] = ends[i][1];
        tni_layout_make(&out[i],
                        i == TN_MATMUL_OUT ? out_dtype
                        : i == TN_MATMUL_B ? size->of_b
                                           : dtype,
                        shape, rank);
    }
    if (size->ta)
        tni_matmul_transpose(&out[TN_MATMUL_A]);
    if (size->tb)
        tni_matmul_transpose(&out[TN_MATMUL_B]);
    for (int32_t i = 0; i < 2; i++) {
        if (size->scale[i])
            usual_scale(size, i, &out[TN_MATMUL_SCALE_A + i]);
    }
    if (!size->bias)
        return;
    tni_layout_make(&out[TN_MATMUL_BIAS], out_dtype, shape, rank);
    memset(out[TN_MATMUL_BIAS].stride, 0, (size_t)(rank - 1) * sizeof shape[0]);
}

static tn_status parse_sizes(tni_fields *fields, sizes *out, tn_error *err)
{
    static const char *const keys[] = {"m", "n", "k"}, *const switches[] = {"ta", "tb", "bias"};
    *out = (sizes){.m = -1, .n = -1, .k = -1};
    int64_t *const to[] = {&out->m, &out->n, &out->k}, *const set[] = {&out->ta, &out->tb,
                                                                       &out->bias};
    tn_status status = TN_OK;
    for (size_t i = 0; i < 3 && !status; i++) {
        status = tni_fields_integer(fields, keys[i], 0, to[i], err);
        if (!status && *to[i] < 0)
            status = tni_fields_missing(fields, keys[i], err);
        if (!status)
            status = tni_fields_switch(fields, switches[i], set[i], err);
    }
    if (!status)
        status = tni_fields_list(fields, "batch", 'x', 0, out->batch, TN_OP_RANK_MAX - 2,
                                 &out->batch_rank, err);
    return status;
}

/* Parses B's dtype, if it differs from A's, and the scales. */
static tn_status parse_scales(tni_fields *fields, tn_dtype dtype, sizes *out, tn_error *err)
{
    out->of_b = dtype;
    tn_status status = tni_fields_dtype(fields, "b", &out->of_b, err);
    for (int32_t i = 0; i < 2 && !status; i++)
        status = tni_fields_word(fields, scale_keys[i], scale_words[i], &out->scale[i], err);
    return status;
}

static tn_status parse_numbers(tni_fields *fields, tn_matmul_op *out, tn_error *err)
{
    int64_t grouped = 0;
    tn_status status = tni_fields_dtype(fields, "acc", &out->acc, err);
    if (!status)
        status = tni_fields_switch(fields, "grouped", &grouped, err);
    out->grouped = (int32_t)grouped;
    if (!status)
        status = tni_fields_real(fields, "alpha", &out->alpha, err);
    if (!status)
        status = tni_fields_real(fields, "beta", &out->beta, err);
    if (!status)
        status = tni_fields_word(fields, "act", tni_matmul_activations, &out->activation, err);
    return status;
}

tn_status tni_matmul_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    tn_dtype out = tni_matmul_out(dtype);
    sizes size;
    *TN_PARAMS_MUTABLE(op, matmul) = (tn_matmul_op){.acc = tni_matmul_acc(dtype), .alpha = 1};
    tn_status status = parse_sizes(fields, &size, err);
    if (!status)
        status = parse_scales(fields, dtype, &size, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &out, err);
    if (!status)
        status = parse_numbers(fields, TN_PARAMS_MUTABLE(op, matmul), err);
    if (status)
        return status;
    make_usual_layouts(&size, dtype, out, op->operand);
    for (int32_t i = 0; i < TN_MATMUL_OPERANDS && !status; i++) {
        if (op->operand[i].dtype)
            status = tni_fields_strides(fields, stride_keys[i], &op->operand[i], err);
    }
    return status;
}

/* Whether an operand is a transposed dense matrix. */
static bool is_transposed(const tn_layout *layout, const tn_layout *dense)
{
    tn_layout other = *dense;
    tni_matmul_transpose(&other);
    tni_layout_dense(&other);
    tni_matmul_transpose(&other);
    return !tni_strides_same(layout, dense) && tni_strides_same(layout, &other);
}

static int32_t scale_of(const tn_layout *layout)
{
    int32_t moving = 0;
    for (int32_t i = 0; i < layout->rank; i++)
        moving += layout->shape[i] > 1 && layout->stride[i] != 0;
    return !layout->dtype ? SCALE_NONE : moving ? SCALE_EACH : SCALE_ONE;
}

/* Writes the fields that only products of 8-bit floats have. */
static void write_scales(const sizes *size, tn_dtype dtype, tni_buffer *out)
{
    if (size->of_b != dtype)
        tni_write_word(out, "b", tn_dtype_name(size->of_b));
    for (int32_t i = 0; i < 2; i++) {
        if (size->scale[i])
            tni_write_word(out, scale_keys[i], scale_words[i][size->scale[i]]);
    }
}

static void write_numbers(const tn_op *op, tni_buffer *out)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    const tn_dtype to = op->operand[TN_MATMUL_OUT].dtype;
    if (mm->activation)
        tni_write_word(out, "act", tni_matmul_activations[mm->activation]);
    if (mm->alpha != 1)
        tni_write_real(out, "alpha", mm->alpha);
    if (mm->beta != 0)
        tni_write_real(out, "beta", mm->beta);
    if (to != tni_matmul_out(dtype))
        tni_write_word(out, "out", tn_dtype_name(to));
    if (mm->acc != tni_matmul_acc(dtype))
        tni_write_word(out, "acc", tn_dtype_name(mm->acc));
    if (mm->grouped)
        tni_write_integer(out, "grouped", 1);
}

void tni_matmul_write(const tn_op *op, tni_buffer *out)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_layout *to = &op->operand[TN_MATMUL_OUT];
    tn_dtype dtype = op->operand[TN_MATMUL_A].dtype;
    tn_layout dense[TN_MATMUL_OPERANDS];
    sizes size = {.m = mm->m,
                  .n = mm->n,
                  .k = mm->k,
                  .batch_rank = mm->batch_rank,
                  .bias = op->operand[TN_MATMUL_BIAS].dtype != TN_DTYPE_NONE,
                  .of_b = op->operand[TN_MATMUL_B].dtype,
                  .scale = {scale_of(&op->operand[TN_MATMUL_SCALE_A]),
                            scale_of(&op->operand[TN_MATMUL_SCALE_B])}};
    memcpy(size.batch, to->shape, (size_t)mm->batch_rank * sizeof size.batch[0]);
    make_usual_layouts(&size, dtype, to->dtype, dense);
    size.ta = is_transposed(&op->operand[TN_MATMUL_A], &dense[TN_MATMUL_A]);
    size.tb = is_transposed(&op->operand[TN_MATMUL_B], &dense[TN_MATMUL_B]);
    make_usual_layouts(&size, dtype, to->dtype, dense);
    tni_write_integer(out, "m", mm->m);
    tni_write_integer(out, "n", mm->n);
    tni_write_integer(out, "k", mm->k);
    if (mm->batch_rank > 0)
        tni_write_list(out, "batch", 'x', size.batch, mm->batch_rank);
    if (size.ta)
        tni_write_integer(out, "ta", 1);
    if (size.tb)
        tni_write_integer(out, "tb", 1);
    if (size.bias)
        tni_write_integer(out, "bias", 1);
    write_scales(&size, dtype, out);
    write_numbers(op, out);
    for (int32_t i = 0; i < TN_MATMUL_OPERANDS; i++) {
        if (op->operand[i].dtype)
            tni_write_strides(out, stride_keys[i], &op->operand[i], &dense[i]);
    }
}
