/* attention-quantized: its entry points and class, and the validation. */
#include "attention_quantized.h"

#include "dispatch/call.h"
#include "op/elementwise.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const names[] = {"q", "k", "v", "out", "lse", NULL};

#define WHERE tni_attention_quantized_class.where

static bool has(const tn_op *op, int32_t operand)
{
    return op->operand[operand].dtype != TN_DTYPE_NONE;
}

static tn_status check_dtypes(const tn_op *op, tn_error *err)
{
    const tn_dtype q = op->operand[TN_ATTENTION_QUANTIZED_Q].dtype;
    if (q != TN_F32 && q != TN_F16 && q != TN_BF16)
        return tn_fail(err, TN_UNSUPPORTED, 0, WHERE, "q: expected f32, f16 or bf16, got %s",
                       tn_dtype_name(q));
    for (int32_t i = TN_ATTENTION_QUANTIZED_K; i < op->count; i++) {
        const tn_dtype found = op->operand[i].dtype;
        const tn_dtype needed = i == TN_ATTENTION_QUANTIZED_LSE ? (tn_dtype)TN_F32 : q;
        const tn_dtype other =
            i == TN_ATTENTION_QUANTIZED_OUT ? tni_elementwise_wider(q) : (tn_dtype)TN_DTYPE_NONE;
        if (found && found != needed && (!other || found != other))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE,
                           "%s: expected %s%s for q of %s, got %s", names[i], tn_dtype_name(needed),
                           other ? " or f32" : "", tn_dtype_name(q), tn_dtype_name(found));
    }
    return TN_OK;
}

static tn_status check_ranks(const tn_op *op, tn_error *err)
{
    for (int32_t i = 0; i < op->count; i++) {
        const int32_t rank = i == TN_ATTENTION_QUANTIZED_LSE ? 3 : 4;
        if (has(op, i) && op->operand[i].rank != rank)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE, "%s: expected %d dimensions, got %d",
                           names[i], (int)rank, (int)op->operand[i].rank);
    }
    return TN_OK;
}

/* Checks the parameters that are not attention's. */
static tn_status check_precision(const tn_attention_quantized_op *quantized, tn_error *err)
{
    const tn_dtype weights = quantized->weights;
    if (weights != TN_F32 && weights != TN_F16 && weights != TN_F8_E4M3FN && weights != TN_U8 &&
        weights != TN_I8)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE,
                       "weights: expected f32, f16, f8_e4m3fn, u8 or i8, got %s",
                       tn_dtype_name(weights));
    if (quantized->scales < 0 || quantized->scales >= TN_SCALES_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE,
                       "scales: expected 0 (thread) to %d, got %d", TN_SCALES_COUNT - 1,
                       (int)quantized->scales);
    if (quantized->smoothing < 0 || quantized->smoothing >= TN_SMOOTHING_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE,
                       "smoothing: expected 0 (k) or %d (none), got %d", TN_SMOOTHING_COUNT - 1,
                       (int)quantized->smoothing);
    return TN_OK;
}

/* Sets the sizes that follow from the shapes of Q, K and V. */
static tn_status set_sizes(tn_op *op, tn_error *err)
{
    tn_attention_op *at = &TN_PARAMS_MUTABLE(op, attention_quantized)->at;
    const int64_t *q = op->operand[TN_ATTENTION_QUANTIZED_Q].shape;
    const int64_t *k = op->operand[TN_ATTENTION_QUANTIZED_K].shape;
    if (k[0] != q[0])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, WHERE,
                       "k: expected %" PRId64 ", the batch of q, got %" PRId64, q[0], k[0]);
    if (q[3] > TN_QUANTIZED_SIZE_MOST)
        return tn_fail(err, TN_UNSUPPORTED, 0, WHERE,
                       "q: expected a head size of at most %d, got %" PRId64,
                       TN_QUANTIZED_SIZE_MOST, q[3]);
    at->batch = q[0];
    at->heads = q[1];
    at->groups = k[1];
    at->queries = q[2];
    at->keys = k[2];
    at->size = q[3];
    at->value_size = op->operand[TN_ATTENTION_QUANTIZED_V].shape[3];
    if (at->left < 0 && at->right < 0) /* position restricts nothing */
        at->corner = TN_CORNER_TOP_LEFT;
    return TN_OK;
}

static uint64_t uses_of_weights(tn_dtype weights)
{
    return weights == TN_F16         ? TN_ATTENTION_QUANTIZED_USES_F16
           : weights == TN_F8_E4M3FN ? TN_ATTENTION_QUANTIZED_USES_F8
           : weights == TN_F32       ? 0
                                     : TN_ATTENTION_QUANTIZED_USES_I8;
}

static uint64_t uses_of(const tn_op *op)
{
    const tn_attention_quantized_op *quantized = TN_PARAMS(op, attention_quantized);
    const tn_attention_op *at = &quantized->at;
    const tn_layout *o = op->operand;
    uint64_t uses = uses_of_weights(quantized->weights);
    uses |= at->left >= 0 || at->right >= 0 ? TN_ATTENTION_QUANTIZED_USES_WINDOW : 0;
    uses |= at->groups != at->heads ? TN_ATTENTION_QUANTIZED_USES_GROUPS : 0;
    uses |= has(op, TN_ATTENTION_QUANTIZED_LSE) ? TN_ATTENTION_QUANTIZED_USES_LSE : 0;
    uses |= at->size != at->value_size ? TN_ATTENTION_QUANTIZED_USES_VALUE_SIZE : 0;
    uses |= o[TN_ATTENTION_QUANTIZED_OUT].dtype != o[TN_ATTENTION_QUANTIZED_Q].dtype
                ? TN_ATTENTION_QUANTIZED_USES_OUT_DTYPE
                : 0;
    uses |= quantized->smoothing == TN_SMOOTHING_NONE ? TN_ATTENTION_QUANTIZED_USES_RAW : 0;
    for (int32_t i = 0; i <= TN_ATTENTION_QUANTIZED_OUT; i++) {
        if (o[i].shape[3] > 1 && o[i].stride[3] != 1)
            uses |= TN_ATTENTION_QUANTIZED_USES_STRIDES;
    }
    return uses;
}

static tn_status validate_quantized(tn_op *op, tn_error *err)
{
    tn_status status = check_dtypes(op, err);
    if (!status)
        status = check_precision(TN_PARAMS(op, attention_quantized), err);
    if (!status)
        status = check_ranks(op, err);
    if (!status)
        status = tni_attention_check_shapes(op, err);
    if (!status)
        status = tni_attention_check_numbers(op, err);
    if (!status)
        status = set_sizes(op, err);
    if (!status)
        op->uses = uses_of(op);
    return status;
}

static void cost_quantized(const tn_op *op, double *out_flops, double *out_bytes)
{
    const tn_attention_op *at = &TN_PARAMS(op, attention_quantized)->at;
    const double rows = (double)at->batch * (double)at->heads;
    *out_flops = 2 * rows * tni_attention_pairs(at) * (double)(at->size + at->value_size);
    *out_bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        *out_bytes += tni_layout_bytes(&op->operand[i]);
}

static size_t words_quantized(const tn_op *op, uint64_t *out)
{
    const tn_attention_quantized_op *quantized = TN_PARAMS(op, attention_quantized);
    const size_t count = tni_attention_words(op, out);
    out[4] = (uint64_t)quantized->weights | (uint64_t)quantized->scales << 32 |
             (uint64_t)quantized->smoothing << 40; /* the shift is 0 */
    return count;
}

static void free_quantized(tn_op *op, uint64_t dims)
{
    (void)op;
    (void)dims;
}

tn_status tni_attention_quantized_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_quantized_args *args = given;
    const tni_op_class *class = &tni_attention_quantized_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = {.scale = args->scale,
                                           .left = args->window_left,
                                           .right = args->window_right,
                                           .mask = args->mask,
                                           .layout = args->layout,
                                           .set = args->set};
    const tn_tensor *const tensors[] = {args->q, args->k, args->v, args->out, args->lse};
    status = tni_problem_init(out, class, tensors, err);
    tn_attention_quantized_op *quantized = TN_PARAMS_MUTABLE(&out->op, attention_quantized);
    if (!status)
        status = tni_attention_read_numbers(class, &numbers, &quantized->at, err);
    if (status)
        return status;
    quantized->weights = args->weights ? args->weights : (tn_dtype)TN_F32;
    quantized->scales = args->scales;
    quantized->smoothing = args->smoothing;
    for (int32_t i = 0; i <= TN_ATTENTION_QUANTIZED_OUT; i++)
        tni_attention_turn(&out->op.operand[i], args->layout);
    const tn_layout *q = &out->op.operand[TN_ATTENTION_QUANTIZED_Q];
    if (quantized->at.scale == 0 && !(args->set & TN_ATTENTION_SET_SCALE) && q->rank == 4)
        quantized->at.scale = tni_attention_scale(q->shape[3]);
    return tni_op_validate(&out->op, err);
}

/* By bit of TN_ATTENTION_QUANTIZED_USES_.... */
static const char *const uses[] = {"window", "groups", "lse", "dv", "strides", "out",
                                   "raw",    "f16",    "f8",  "i8", NULL};

#define AT(field) offsetof(tn_attention_quantized_args, field)

const tni_op_class tni_attention_quantized_class = {
    .kind = TN_OP_ATTENTION_QUANTIZED,
    .word = "attention-quantized",
    .fields = "b h hk l lq lk d dv layout mask weights scales smoothing lse out scale sq sk sv so "
              "slse align",
    .where = "tn_attention_quantized",
    .args = {TNI_ARGS_FORM(attention_quantized, scale),
             .tensors = {AT(q), AT(k), AT(v), AT(out), AT(lse)}},
    .check = &tni_attention_quantized_check,
    .make = tni_attention_quantized_make,
    .operands = names,
    .optional = 1U << TN_ATTENTION_QUANTIZED_LSE,
    .outputs = 1U << TN_ATTENTION_QUANTIZED_OUT | 1U << TN_ATTENTION_QUANTIZED_LSE,
    .output = TN_ATTENTION_QUANTIZED_OUT,
    .group = TNI_OPS_ATTENTION,
    .settings = tni_attention_settings,
    .uses = uses,
    .parse = tni_attention_quantized_parse,
    .validate = validate_quantized,
    .write = tni_attention_quantized_write,
    .cost = cost_quantized,
    .words = words_quantized,
    .free = free_quantized};

tn_status tn_attention_quantized(const tn_context *context, const tn_attention_quantized_args *args,
                                 tn_error *err)
{
    return tni_call_run(context, &tni_attention_quantized_class, args, err);
}

tn_status tn_attention_quantized_explain(const tn_context *context,
                                         const tn_attention_quantized_args *args, tn_decision **out,
                                         tn_error *err)
{
    return tni_call_explain(context, &tni_attention_quantized_class, args, out, err);
}

tn_status tn_attention_quantized_prepare(const tn_context *context,
                                         const tn_attention_quantized_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_quantized_class, args, err);
}
