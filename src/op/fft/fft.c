/* fft: discrete Fourier transforms of 1 to 3 dimensions. */
#include "tenon/fft.h"
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/dtype.h"

#include <inttypes.h>
#include <math.h>

static const char where[] = "tn_fft";
static const char *const names[] = {"in", "out", NULL};
static const char *const directions[] = {"forward", "inverse", NULL};
static const char *const norms[] = {"backward", "ortho", "forward", NULL};

/* Returns the dtype of the numbers that a transform turns `dtype` into: c64 for f32, and so on. */
static tn_dtype other_side(tn_dtype dtype)
{
    return dtype == TN_F32 ? TN_C64 : dtype == TN_F64 ? TN_C128 : dtype == TN_C64 ? TN_F32 : TN_F64;
}

static bool is_real(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F64;
}

static tn_status check_dtypes(const tn_op *op, int32_t *out_kind, tn_error *err)
{
    const tn_dtype in = op->operand[TN_FFT_IN].dtype, out = op->operand[TN_FFT_OUT].dtype;
    if (!is_real(in) && in != TN_C64 && in != TN_C128)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "in: expected f32, f64, c64 or c128, got %s; cast it first",
                       tn_dtype_name(in));
    if (out != other_side(in) && (is_real(in) || out != in))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out: expected %s%s%s for in of %s, got %s",
                       tn_dtype_name(is_real(in) ? other_side(in) : in), is_real(in) ? "" : " or ",
                       is_real(in) ? "" : tn_dtype_name(other_side(in)), tn_dtype_name(in),
                       tn_dtype_name(out));
    *out_kind = is_real(in)    ? TN_FFT_REAL_TO_COMPLEX
                : is_real(out) ? TN_FFT_COMPLEX_TO_REAL
                               : TN_FFT_COMPLEX;
    return TN_OK;
}

static tn_status check_numbers(const tn_op *op, tn_error *err)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const int32_t rank = op->operand[TN_FFT_IN].rank, found = op->operand[TN_FFT_OUT].rank;
    if (fft->direction < TN_FFT_FORWARD || fft->direction > TN_FFT_INVERSE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "direction: expected 0 (forward) or 1 (inverse), got %d",
                       (int)fft->direction);
    if (fft->norm < TN_FFT_BACKWARD || fft->norm > TN_FFT_BY_FORWARD)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "norm: expected 0 (backward), 1 (ortho) or 2 (forward), got %d",
                       (int)fft->norm);
    if (found != rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out: expected %d dimensions, as many as in has, got %d", (int)rank,
                       (int)found);
    if (fft->dims < 1 || fft->dims > TN_FFT_DIMS_MAX)
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "expected 1 to %d dimensions to transform, got %d; transform more by several "
            "calls",
            TN_FFT_DIMS_MAX, (int)fft->dims);
    if (fft->dims > rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "in: expected at least %d dimensions, as many as are transformed, got %d",
                       (int)fft->dims, (int)rank);
    return TN_OK;
}

/* Checks the transformed dimension `at` of `dims`, whose length is n. */
static tn_status check_length(const tn_op *op, int32_t at, int64_t n, tn_error *err)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN], *out = &op->operand[TN_FFT_OUT];
    const int32_t d = in->rank - fft->dims + at;
    const bool half = at == fft->dims - 1 && fft->kind != TN_FFT_COMPLEX;
    if (n < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "transformed dimension %d: expected a length of at least 1, got %" PRId64,
                       (int)at, n);
    if (n > INT32_MAX)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "transformed dimension %d: expected a length up to %d, got %" PRId64,
                       (int)at, INT32_MAX, n);
    if (!half && out->shape[d] != in->shape[d])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out: transformed dimension %d: expected %" PRId64
                       " elements, as many as in has, got %" PRId64,
                       (int)at, in->shape[d], out->shape[d]);
    const bool to_real = fft->kind == TN_FFT_COMPLEX_TO_REAL;
    const int64_t found = to_real ? in->shape[d] : out->shape[d];
    if (half && found != n / 2 + 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "%s: last transformed dimension: expected %" PRId64 " elements for %" PRId64
                       " real numbers (half and one), got %" PRId64,
                       to_real ? "in" : "out", n / 2 + 1, n, found);
    return TN_OK;
}

static tn_status check_shapes(tn_op *op, tn_error *err)
{
    tn_fft_op *fft = TN_PARAMS_MUTABLE(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN], *out = &op->operand[TN_FFT_OUT];
    const int32_t before = in->rank - fft->dims;
    const tn_layout *whole = fft->kind == TN_FFT_COMPLEX_TO_REAL ? out : in;
    fft->batch = fft->points = 1;
    for (int32_t d = 0; d < before; d++) {
        fft->batch *= in->shape[d];
        if (out->shape[d] != in->shape[d])
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "out: dimension %d of the batch: expected %" PRId64
                           " elements, as many as in has, got %" PRId64,
                           (int)d, in->shape[d], out->shape[d]);
    }
    for (int32_t i = 0; i < TN_FFT_DIMS_MAX; i++) {
        fft->length[i] = i < fft->dims ? whole->shape[before + i] : 0;
        tn_status status = i < fft->dims ? check_length(op, i, fft->length[i], err) : TN_OK;
        if (status)
            return status;
        fft->points *= i < fft->dims ? fft->length[i] : 1;
    }
    return TN_OK;
}

/* Returns the bits that an operand's strides require. */
static uint64_t uses_of_strides(const tn_layout *layout)
{
    uint64_t uses = 0;
    int64_t step = 1;
    for (int32_t d = layout->rank; d-- > 0;) {
        if (layout->shape[d] > 1 && layout->stride[d] == 0) {
            uses |= TN_FFT_USES_BROADCAST;
            continue;
        }
        uses |= layout->shape[d] > 1 && layout->stride[d] != step ? TN_FFT_USES_STRIDES : 0;
        step *= layout->shape[d];
    }
    return uses;
}

static double scale_of(const tn_fft_op *fft)
{
    const bool scales = fft->direction == TN_FFT_FORWARD ? fft->norm == TN_FFT_BY_FORWARD
                                                         : fft->norm == TN_FFT_BACKWARD;
    if (fft->norm == TN_FFT_ORTHO)
        return 1 / sqrt((double)fft->points);
    return scales ? 1 / (double)fft->points : 1;
}

static tn_status validate_fft(tn_op *op, tn_error *err)
{
    tn_fft_op *fft = TN_PARAMS_MUTABLE(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN], *out = &op->operand[TN_FFT_OUT];
    tn_status status = check_dtypes(op, &fft->kind, err);
    if (!status)
        status = check_numbers(op, err);
    if (!status)
        status = check_shapes(op, err);
    if (status)
        return status;
    if (op->uses & TN_FFT_USES_IN_PLACE && in->dtype != out->dtype)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "inplace: expected a complex transform, got %s to %s",
                       tn_dtype_name(in->dtype), tn_dtype_name(out->dtype));
    const bool same = in->alignment == out->alignment && tni_strides_same(in, out);
    if (op->uses & TN_FFT_USES_IN_PLACE && !same)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "in place, out needs the strides and alignment of in");
    op->uses &= TN_FFT_USES_IN_PLACE;
    op->uses |= uses_of_strides(in) | uses_of_strides(out);
    op->uses |= fft->kind != TN_FFT_COMPLEX ? TN_FFT_USES_REAL : 0;
    op->uses |= fft->dims > 1 ? TN_FFT_USES_DIMS : 0;
    fft->scale = scale_of(fft);
    return TN_OK;
}

static tn_status check_axes(const int32_t *axes, int32_t count, int32_t rank, tn_error *err)
{
    uint32_t seen = 0;
    for (int32_t i = 0; i < count; i++) {
        if (axes[i] < 0 || axes[i] >= rank)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "axes[%d]: expected a dimension of in, 0 to %d, got %d", (int)i,
                           (int)rank - 1, (int)axes[i]);
        if (seen >> axes[i] & 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "axes[%d] is %d: duplicate dimension", (int)i, (int)axes[i]);
        seen |= UINT32_C(1) << axes[i];
    }
    return TN_OK;
}

/* Moves the axes behind the other dimensions, in their order. */
static void put_axes_last(tn_layout *layout, const int32_t *axes, int32_t count)
{
    const tn_layout from = *layout;
    uint64_t moved = 0;
    for (int32_t i = 0; i < count; i++)
        moved |= UINT64_C(1) << axes[i];
    tni_layout_put_last(layout, moved);
    for (int32_t i = 0; i < count; i++) {
        layout->shape[from.rank - count + i] = from.shape[axes[i]];
        layout->stride[from.rank - count + i] = from.stride[axes[i]];
    }
}

static tn_status check_args(const tn_fft_args *args, tn_error *err)
{
    tn_status status =
        tni_elementwise_args(where, args, TN_UP_TO(tn_fft_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_reserved(where, "reserved", (uint32_t)args->reserved, err);
    if (!status && !args->axes && args->axes_count)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                         "axes_count: expected 0, as axes is NULL, got %d", (int)args->axes_count);
    if (!status && args->axes && (args->axes_count < 1 || args->axes_count > TN_FFT_DIMS_MAX))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                         "axes_count: expected 1 to %d, got %d; transform more by several calls",
                         TN_FFT_DIMS_MAX, (int)args->axes_count);
    return status;
}

tn_status tni_fft_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_fft_args *args = given;
    tn_status status = check_args(args, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    const int32_t count = args->axes ? args->axes_count : 1;
    status = tni_problem_init(out, &tni_fft_class, tensors, err);
    if (status)
        return status;
    *TN_PARAMS_MUTABLE(&out->op, fft) =
        (tn_fft_op){.direction = args->direction, .norm = args->norm, .dims = count};
    const tn_layout *in = &out->op.operand[TN_FFT_IN];
    if (args->axes && in->rank == out->op.operand[TN_FFT_OUT].rank) {
        status = check_axes(args->axes, count, in->rank, err);
        for (int32_t i = 0; i < TN_FFT_OPERANDS && !status; i++)
            put_axes_last(&out->op.operand[i], args->axes, count);
    }
    return status ? status : tni_op_validate(&out->op, err);
}

/* Makes the dense layouts of a problem whose full shape is given. */
static void make_usual_layouts(const int64_t *shape, int32_t rank, tn_dtype in, tn_dtype out,
                               tn_layout *to)
{
    const tn_dtype dtypes[] = {in, out};
    for (int32_t i = 0; i < TN_FFT_OPERANDS; i++) {
        int64_t its[TN_OP_RANK_MAX];
        memcpy(its, shape, (size_t)rank * sizeof *its);
        if (in != out && !is_real(dtypes[i]) && rank > 0)
            its[rank - 1] = its[rank - 1] / 2 + 1;
        tni_layout_make(&to[i], dtypes[i], its, rank);
    }
}

static tn_status parse_fft(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    tn_fft_op *fft = TN_PARAMS_MUTABLE(op, fft);
    tn_dtype to = is_real(dtype) ? other_side(dtype) : dtype;
    int64_t shape[TN_OP_RANK_MAX], dims = 1;
    int32_t rank = -1;
    *fft = (tn_fft_op){.direction = TN_FFT_FORWARD};
    tn_status status = tni_fields_list(fields, "shape", 'x', 0, shape, TN_OP_RANK_MAX, &rank, err);
    if (!status && rank < 0)
        status = tni_fields_missing(fields, "shape", err);
    if (!status)
        status = tni_fields_integer(fields, "dims", 1, &dims, err);
    if (!status)
        status = tni_fields_word(fields, "dir", directions, &fft->direction, err);
    if (!status)
        status = tni_fields_word(fields, "norm", norms, &fft->norm, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &to, err);
    if (status)
        return status;
    fft->dims = dims < INT32_MAX ? (int32_t)dims : INT32_MAX;
    make_usual_layouts(shape, rank, dtype, to, op->operand);
    status = tni_fields_strides(fields, "si", &op->operand[TN_FFT_IN], err);
    return status ? status : tni_fields_strides(fields, "so", &op->operand[TN_FFT_OUT], err);
}

static void write_fft(const tn_op *op, tni_buffer *out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const tn_layout *in = &op->operand[TN_FFT_IN], *to = &op->operand[TN_FFT_OUT];
    const tn_layout *whole = fft->kind == TN_FFT_COMPLEX_TO_REAL ? to : in;
    tn_layout usual[TN_FFT_OPERANDS];
    make_usual_layouts(whole->shape, whole->rank, in->dtype, to->dtype, usual);
    tni_write_list(out, "shape", 'x', whole->shape, whole->rank);
    if (fft->dims > 1)
        tni_write_integer(out, "dims", fft->dims);
    if (fft->direction)
        tni_write_word(out, "dir", directions[fft->direction]);
    if (fft->norm)
        tni_write_word(out, "norm", norms[fft->norm]);
    if (fft->kind == TN_FFT_COMPLEX_TO_REAL)
        tni_write_word(out, "out", tn_dtype_name(to->dtype));
    tni_write_strides(out, "si", in, &usual[TN_FFT_IN]);
    tni_write_strides(out, "so", to, &usual[TN_FFT_OUT]);
}

/* The usual count of the field: 5 n log2 n for n complex numbers, half of that for real ones. */
static void cost_fft(const tn_op *op, double *out_flops, double *out_bytes)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    const double points = (double)fft->points;
    *out_flops = (fft->kind == TN_FFT_COMPLEX ? 5 : 2.5) * points * log2(points > 2 ? points : 2) *
                 (double)fft->batch;
    *out_bytes =
        tni_layout_bytes(&op->operand[TN_FFT_IN]) + tni_layout_bytes(&op->operand[TN_FFT_OUT]);
}

static size_t key_words(const tn_op *op, uint64_t *out)
{
    const tn_fft_op *fft = TN_PARAMS(op, fft);
    out[0] = (uint64_t)fft->direction;
    out[1] = (uint64_t)fft->norm;
    out[2] = (uint64_t)fft->dims;
    return 3;
}

static void free_dims(tn_op *op, uint64_t dims)
{
    tn_fft_op *fft = TN_PARAMS_MUTABLE(op, fft);
    if (!(dims & TN_FFT_DIM_BATCH))
        return;
    for (int32_t i = 0; i < op->count; i++) {
        for (int32_t d = 0; d < op->operand[i].rank - fft->dims; d++)
            op->operand[i].shape[d] = 0;
    }
    fft->batch = 0;
}

/* By bit of TN_FFT_USES_.... */
static const char *const uses_words[] = {"strides", "broadcast", "real", "in-place", "dims", NULL};

static const tni_plan_limit plan_limits[] = {{"cpu", TN_SETTING_CPU_FFT_PLAN_CACHE_MAX_SIZE},
                                             {"cuda", TN_SETTING_CUDA_CUFFT_PLAN_CACHE_MAX_SIZE},
                                             {NULL, -1}};

const tni_op_class tni_fft_class = {
    .kind = TN_OP_FFT,
    .word = "fft",
    .fields = "shape dims dir norm out si so inplace align",
    .where = where,
    .args = {TNI_ARGS_FORM(fft, axes_count),
             .tensors = {offsetof(tn_fft_args, in), offsetof(tn_fft_args, out)},
             .list = offsetof(tn_fft_args, axes)},
    .check = &tni_fft_check,
    .make = tni_fft_make,
    .operands = names,
    .outputs = 1U << TN_FFT_OUT,
    .output = TN_FFT_OUT,
    .may_be_in_place = true,
    .group = TNI_OPS_FFT,
    .settings = tni_fft_settings,
    .plan_limits = plan_limits,
    .uses = uses_words,
    .parse = parse_fft,
    .validate = validate_fft,
    .write = write_fft,
    .cost = cost_fft,
    .words = key_words,
    .free = free_dims};

tn_status tn_fft(const tn_context *context, const tn_fft_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_fft_class, args, err);
}

tn_status tn_fft_explain(const tn_context *context, const tn_fft_args *args, tn_decision **out,
                         tn_error *err)
{
    return tni_call_explain(context, &tni_fft_class, args, out, err);
}

tn_status tn_fft_prepare(const tn_context *context, const tn_fft_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_fft_class, args, err);
}
