/* matmul: its entry points, class and validation. */
#include "matmul.h"

#include "base/dtype.h"
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static const char where[] = "tn_matmul";
static const char *const names[] = {"a", "b", "out", "bias", "scale_a", "scale_b", NULL};

static bool is_f8(tn_dtype dtype)
{
    return dtype == TN_F8_E4M3FN || dtype == TN_F8_E5M2;
}

/* Returns the features that the layout of an operand's last two dimensions requires. */
static uint64_t uses_of(const tn_layout *layout, bool output)
{
    int32_t r = layout->rank - 2, c = layout->rank - 1;
    int64_t rows = layout->shape[r], columns = layout->shape[c];
    bool by_rows = columns <= 1 || layout->stride[c] == 1;
    bool by_columns = rows <= 1 || layout->stride[r] == 1;
    bool apart = by_rows ? rows <= 1 || layout->stride[r] >= (columns > 0 ? columns : 1)
                         : columns <= 1 || layout->stride[c] >= (rows > 0 ? rows : 1);
    if ((!by_rows && !by_columns) || !apart)
        return TN_MATMUL_USES_STRIDES;
    return by_rows ? 0 : output ? TN_MATMUL_USES_STRIDES : TN_MATMUL_USES_TRANSPOSE;
}

static uint64_t uses_of_batch(const tn_op *op)
{
    uint64_t uses = TN_PARAMS(op, matmul)->matrices != 1 ? TN_MATMUL_USES_BATCH : 0;
    for (int32_t i = 0; i < TN_PARAMS(op, matmul)->batch_rank; i++) {
        bool shared =
            op->operand[TN_MATMUL_A].stride[i] == 0 || op->operand[TN_MATMUL_B].stride[i] == 0;
        if (op->operand[TN_MATMUL_OUT].shape[i] > 1 && shared)
            uses |= TN_MATMUL_USES_BROADCAST;
    }
    return uses;
}

/* Whether x is finite, not 0, and outside the range of normal f32 numbers. */
static bool is_far(double x)
{
    return isfinite(x) && x != 0 && (fabs(x) > (double)FLT_MAX || fabs(x) < (double)FLT_MIN);
}

/* Whether alpha and beta are applied in f32 or narrower. */
static bool is_finished_narrow(const tn_op *op)
{
    const tn_dtype acc = TN_PARAMS(op, matmul)->acc;
    return acc != TN_F64 && acc != TN_C128 && op->operand[TN_MATMUL_OUT].dtype != TN_I32;
}

static uint64_t all_uses(const tn_op *op)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_layout *a = &op->operand[TN_MATMUL_A];
    uint64_t uses = uses_of_batch(op) | uses_of(a, false) |
                    uses_of(&op->operand[TN_MATMUL_B], false) |
                    uses_of(&op->operand[TN_MATMUL_OUT], true);
    uses |= mm->alpha != 1 ? TN_MATMUL_USES_ALPHA : 0;
    uses |= mm->beta != 0 ? TN_MATMUL_USES_BETA : 0;
    uses |= op->operand[TN_MATMUL_BIAS].dtype ? TN_MATMUL_USES_BIAS : 0;
    uses |= mm->activation ? TN_MATMUL_USES_ACTIVATION : 0;
    uses |=
        op->operand[TN_MATMUL_OUT].dtype != tni_matmul_out(a->dtype) ? TN_MATMUL_USES_OUT_DTYPE : 0;
    uses |= mm->acc != tni_matmul_acc(a->dtype) ? TN_MATMUL_USES_ACC : 0;
    if (op->operand[TN_MATMUL_SCALE_A].dtype || op->operand[TN_MATMUL_SCALE_B].dtype)
        uses |= TN_MATMUL_USES_SCALES;
    if (is_finished_narrow(op) && (is_far(mm->alpha) || is_far(mm->beta)))
        uses |= TN_MATMUL_USES_FAR_FACTORS;
    return uses;
}

static bool is_computed(tn_dtype dtype)
{
    return dtype == TN_F64 || dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16 ||
           dtype == TN_I8 || dtype == TN_C64 || dtype == TN_C128 || is_f8(dtype);
}

/* Returns the end of a list of out's dtypes: those besides the default; "" if there are none. */
static const char *other_outs(tn_dtype a)
{
    return is_f8(a) ? ", f16 or bf16" : a == TN_F16 || a == TN_BF16 || a == TN_I8 ? " or f32" : "";
}

static bool is_out_of(tn_dtype a, tn_dtype out)
{
    return out == tni_matmul_out(a) ||
           (out == TN_F32 && (a == TN_F16 || a == TN_BF16 || a == TN_I8)) ||
           (is_f8(a) && (out == TN_F16 || out == TN_BF16));
}

static tn_status check_dtypes(const tn_op *op, tn_error *err)
{
    tn_dtype a = op->operand[TN_MATMUL_A].dtype, b = op->operand[TN_MATMUL_B].dtype;
    tn_dtype out = op->operand[TN_MATMUL_OUT].dtype, bias = op->operand[TN_MATMUL_BIAS].dtype;
    if (!is_computed(a))
        return tn_fail(
            err, TN_UNSUPPORTED, 0, where,
            "a: expected f64, f32, f16, bf16, i8, c64, c128, f8_e4m3fn or f8_e5m2, got %s",
            tn_dtype_name(a));
    if (b != a && !(is_f8(a) && is_f8(b)))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "b: expected the dtype of a, %s, got %s",
                       tn_dtype_name(a), tn_dtype_name(b));
    if (!is_out_of(a, out))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out of a product of %s: expected %s%s, got %s", tn_dtype_name(a),
                       tn_dtype_name(tni_matmul_out(a)), other_outs(a), tn_dtype_name(out));
    if (bias && bias != out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "bias: expected the dtype of out, %s, got %s", tn_dtype_name(out),
                       tn_dtype_name(bias));
    return TN_OK;
}

static tn_status check_numbers(const tn_op *op, tn_error *err)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    tn_dtype a = op->operand[TN_MATMUL_A].dtype;
    bool complex = a == TN_C64 || a == TN_C128;
    if (mm->activation < 0 || mm->activation >= TN_ACT_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "activation: expected 0 (none) to %d, got %d", TN_ACT_COUNT - 1,
                       (int)mm->activation);
    if (mm->activation && (complex || op->operand[TN_MATMUL_OUT].dtype == TN_I32))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "activation %s: expected real floats in out, got %s",
                       tni_matmul_activations[mm->activation],
                       tn_dtype_name(op->operand[TN_MATMUL_OUT].dtype));
    if (mm->acc != tni_matmul_acc(a) && !((a == TN_F16 || a == TN_BF16) && mm->acc == a) &&
        !(a == TN_F32 && mm->acc == TN_F64))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "acc: expected %s for products of %s, got %s",
                       tn_dtype_name(tni_matmul_acc(a)), tn_dtype_name(a),
                       tn_dtype_name(mm->acc) ? tn_dtype_name(mm->acc) : "no dtype");
    return TN_OK;
}

/* Checks the shapes, and broadcasts A, B and bias to out's batch. */
static tn_status check_shapes(tn_op *op, tn_error *err)
{
    tn_layout *a = &op->operand[TN_MATMUL_A], *b = &op->operand[TN_MATMUL_B];
    tn_layout *out = &op->operand[TN_MATMUL_OUT];
    int64_t shape[TN_OP_RANK_MAX];
    for (int32_t i = 0; i < TN_MATMUL_BIAS; i++) {
        if (op->operand[i].rank < 2)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "%s: expected at least 2 dimensions, got %d", names[i],
                           (int)op->operand[i].rank);
    }
    int64_t m = a->shape[a->rank - 2], k = a->shape[a->rank - 1], n = b->shape[b->rank - 1];
    if (b->shape[b->rank - 2] != k)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "b: expected %" PRId64 " rows, as many as a has columns, got %" PRId64, k,
                       b->shape[b->rank - 2]);
    if (out->shape[out->rank - 2] != m || out->shape[out->rank - 1] != n)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out: expected a %" PRId64 " x %" PRId64
                       " matrix, as a and b make, got %" PRId64 " x %" PRId64,
                       m, n, out->shape[out->rank - 2], out->shape[out->rank - 1]);
    if (a->rank > out->rank || b->rank > out->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s has %d dimensions, more than the %d of out",
                       a->rank > out->rank ? "a" : "b",
                       (int)(a->rank > out->rank ? a->rank : b->rank), (int)out->rank);
    memcpy(shape, out->shape, sizeof shape);
    shape[out->rank - 2] = m, shape[out->rank - 1] = k;
    tn_status status = tni_layout_broadcast(a, shape, out->rank, where, "a", err);
    shape[out->rank - 2] = k, shape[out->rank - 1] = n;
    if (!status)
        status = tni_layout_broadcast(b, shape, out->rank, where, "b", err);
    if (!status && op->operand[TN_MATMUL_BIAS].dtype)
        status = tni_layout_broadcast(&op->operand[TN_MATMUL_BIAS], out->shape, out->rank, where,
                                      "bias", err);
    return status;
}

/* Checks a scale, and broadcasts it to out's shape: that of A must be constant along n, that of B along m. */
static tn_status check_scale(tn_op *op, int32_t operand, tn_error *err)
{
    const tn_layout *out = &op->operand[TN_MATMUL_OUT];
    const tn_dtype a = op->operand[TN_MATMUL_A].dtype;
    tn_layout *scale = &op->operand[operand];
    const bool of_a = operand == TN_MATMUL_SCALE_A;
    const int32_t fixed = out->rank - (of_a ? 1 : 2);
    if (!scale->dtype)
        return TN_OK;
    if (!is_f8(a))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: f8_e4m3fn and f8_e5m2 have scales, and a is of %s", names[operand],
                       tn_dtype_name(a));
    if (scale->dtype != TN_F32)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: expected f32, got %s",
                       names[operand], tn_dtype_name(scale->dtype));
    tn_status status =
        tni_layout_broadcast(scale, out->shape, out->rank, where, names[operand], err);
    if (status || tni_layout_elements(out) == 0 || out->shape[fixed] <= 1 ||
        scale->stride[fixed] == 0)
        return status;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: expected one number for all, or one for each %s: %s", names[operand],
                   of_a ? "row" : "column", of_a ? "[..., m, 1]" : "[..., 1, n]");
}

static tn_status validate_matmul(tn_op *op, tn_error *err)
{
    tn_matmul_op *mm = TN_PARAMS_MUTABLE(op, matmul);
    tn_status status = check_dtypes(op, err);
    if (!status)
        status = check_numbers(op, err);
    if (!status)
        status = check_shapes(op, err);
    for (int32_t i = TN_MATMUL_SCALE_A; i <= TN_MATMUL_SCALE_B && !status; i++)
        status = check_scale(op, i, err);
    if (status)
        return status;
    const tn_layout *a = &op->operand[TN_MATMUL_A], *out = &op->operand[TN_MATMUL_OUT];
    mm->m = out->shape[out->rank - 2];
    mm->n = out->shape[out->rank - 1];
    mm->k = a->shape[a->rank - 1];
    mm->batch_rank = out->rank - 2;
    mm->matrices = 1;
    for (int32_t i = 0; i < mm->batch_rank; i++)
        mm->matrices *= out->shape[i];
    op->uses = all_uses(op);
    return TN_OK;
}

static tn_status check_args(const tn_matmul_args *args, tn_error *err)
{
    tn_status status =
        tni_elementwise_args(where, args, TN_UP_TO(tn_matmul_args, workspace_bytes), err);
    if (status)
        return status;
    if (args->reserved || (args->set & ~TN_MATMUL_SET_ALPHA))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->%s has bits that this version does not know",
                       args->reserved ? "reserved" : "set");
    if ((args->transpose_a | args->transpose_b) & ~1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "transpose_%s: expected 0 or 1, got %d",
                       args->transpose_a & ~1 ? "a" : "b",
                       (int)(args->transpose_a & ~1 ? args->transpose_a : args->transpose_b));
    return TN_OK;
}

tn_status tni_matmul_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_matmul_args *args = given;
    tn_status status = check_args(args, err);
    if (status)
        return status;
    const bool scales = TN_HAS(args, tn_matmul_args, scale_b);
    const tn_tensor *const tensors[] = {args->a,
                                        args->b,
                                        args->out,
                                        args->bias,
                                        scales ? args->scale_a : NULL,
                                        scales ? args->scale_b : NULL};
    status = tni_problem_init(out, &tni_matmul_class, tensors, err);
    if (status)
        return status;
    if (args->transpose_a)
        tni_matmul_transpose(&out->op.operand[TN_MATMUL_A]);
    if (args->transpose_b)
        tni_matmul_transpose(&out->op.operand[TN_MATMUL_B]);
    *TN_PARAMS_MUTABLE(&out->op, matmul) = (tn_matmul_op){
        .activation = args->activation,
        .acc = args->acc ? args->acc : tni_matmul_acc(out->op.operand[TN_MATMUL_A].dtype),
        .alpha = args->alpha != 0 || args->set & TN_MATMUL_SET_ALPHA ? args->alpha : 1,
        .beta = args->beta};
    return tni_op_validate(&out->op, err);
}

static void cost_matmul(const tn_op *op, double *out_flops, double *out_bytes)
{
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    bool complex =
        op->operand[TN_MATMUL_A].dtype == TN_C64 || op->operand[TN_MATMUL_A].dtype == TN_C128;
    *out_flops = 2.0 * (double)mm->m * (double)mm->n * (double)mm->k * (double)mm->matrices *
                 (complex ? 4 : 1);
    *out_bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        *out_bytes += tni_layout_bytes(&op->operand[i]);
    if (mm->beta != 0)
        *out_bytes += tni_layout_bytes(&op->operand[TN_MATMUL_OUT]);
}

static size_t key_words(const tn_op *op, uint64_t *out)
{
    out[0] = (uint64_t)TN_PARAMS(op, matmul)->activation;
    out[1] = TN_PARAMS(op, matmul)->acc;
    out[2] = (uint64_t)TN_PARAMS(op, matmul)->grouped;
    return 3;
}

static void free_dims(tn_op *op, uint64_t dims)
{
    tn_matmul_op *mm = TN_PARAMS_MUTABLE(op, matmul);
    int32_t rank = mm->batch_rank;
    static const uint64_t last[TN_MATMUL_OPERANDS][2] = {
        {TN_MATMUL_DIM_M, TN_MATMUL_DIM_K}, {TN_MATMUL_DIM_K, TN_MATMUL_DIM_N},
        {TN_MATMUL_DIM_M, TN_MATMUL_DIM_N}, {TN_MATMUL_DIM_M, TN_MATMUL_DIM_N},
        {TN_MATMUL_DIM_M, TN_MATMUL_DIM_N}, {TN_MATMUL_DIM_M, TN_MATMUL_DIM_N}};
    for (int32_t i = 0; i < TN_MATMUL_OPERANDS; i++) {
        tn_layout *layout = &op->operand[i];
        if (!layout->dtype)
            continue;
        for (int32_t d = 0; d < rank && dims & TN_MATMUL_DIM_BATCH; d++)
            layout->shape[d] = 0;
        for (int32_t d = 0; d < 2; d++)
            layout->shape[rank + d] = dims & last[i][d] ? 0 : layout->shape[rank + d];
    }
    mm->m = dims & TN_MATMUL_DIM_M ? 0 : mm->m;
    mm->n = dims & TN_MATMUL_DIM_N ? 0 : mm->n;
    mm->k = dims & TN_MATMUL_DIM_K ? 0 : mm->k;
    mm->matrices = dims & TN_MATMUL_DIM_BATCH ? 0 : mm->matrices;
}

/* By bit of TN_MATMUL_USES_.... */
static const char *const uses_words[] = {"batch",  "broadcast",   "transpose",  "strides", "alpha",
                                         "beta",   "bias",        "activation", "out",     "acc",
                                         "scales", "far-factors", NULL};

const tni_op_class tni_matmul_class = {
    .kind = TN_OP_MATMUL,
    .word = "matmul",
    .fields = "m n k ta tb batch bias act alpha beta out acc b scale_a scale_b grouped sa sb sc "
              "sbias sscale_a sscale_b align",
    .where = where,
    .args = {TNI_ARGS_FORM(matmul, alpha),
             .tensors = {offsetof(tn_matmul_args, a), offsetof(tn_matmul_args, b),
                         offsetof(tn_matmul_args, out), offsetof(tn_matmul_args, bias),
                         offsetof(tn_matmul_args, scale_a), offsetof(tn_matmul_args, scale_b)}},
    .check = &tni_matmul_check,
    .make = tni_matmul_make,
    .operands = names,
    .optional = 1U << TN_MATMUL_BIAS | 1U << TN_MATMUL_SCALE_A | 1U << TN_MATMUL_SCALE_B,
    .outputs = 1U << TN_MATMUL_OUT,
    .output = TN_MATMUL_OUT,
    .group = TNI_OPS_MATMUL,
    .settings = tni_matmul_settings,
    .uses = uses_words,
    .parse = tni_matmul_parse,
    .validate = validate_matmul,
    .write = tni_matmul_write,
    .cost = cost_matmul,
    .words = key_words,
    .free = free_dims};

tn_status tn_matmul(const tn_context *context, const tn_matmul_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_matmul_class, args, err);
}

tn_status tn_matmul_explain(const tn_context *context, const tn_matmul_args *args,
                            tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_matmul_class, args, out, err);
}

tn_status tn_matmul_prepare(const tn_context *context, const tn_matmul_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_matmul_class, args, err);
}
