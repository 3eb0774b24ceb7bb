/* attention-merge: combines two results of attention over different keys. */
#include "dispatch/call.h"
#include "op/attention/attention.h"
#include "op/elementwise.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const names[] = {"in", "lse_in", "other", "lse_other", "out", "lse", NULL};
static const char *const stride_keys[] = {"si", "slsei", "s2", "slse2", "so", "slse"};
static const char *const ways[] = {"bhld", "blhd", NULL};

static bool is_whole(int32_t operand)
{
    return operand == TN_MERGE_IN || operand == TN_MERGE_OTHER || operand == TN_MERGE_OUT;
}

static tn_status check_dtypes(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_MERGE_IN].dtype;
    for (int32_t i = TN_MERGE_LSE_IN; i < op->count; i++) {
        tn_dtype found = op->operand[i].dtype, needed = is_whole(i) ? in : tni_attention_lse(in);
        bool wide = i == TN_MERGE_OUT && found == tni_elementwise_wider(in);
        if (found && found != needed && !wide)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_attention_merge_class.where,
                           "%s: expected %s%s for in of %s, got %s", names[i],
                           tn_dtype_name(needed),
                           i == TN_MERGE_OUT && tni_elementwise_wider(in) ? " or f32" : "",
                           tn_dtype_name(in), tn_dtype_name(found));
    }
    return TN_OK;
}

static tn_status check_shapes(const tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_MERGE_IN];
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        int32_t rank = is_whole(i) ? 4 : 3;
        if (layout->dtype && layout->rank != rank)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_attention_merge_class.where,
                           "%s: expected %d dimensions, got %d", names[i], (int)rank,
                           (int)layout->rank);
        for (int32_t d = 0; d < rank && layout->dtype; d++) {
            if (layout->shape[d] != in->shape[d])
                return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_attention_merge_class.where,
                               "%s: dimension %d: expected %" PRId64
                               ", the size of in, got %" PRId64,
                               names[i], (int)d, in->shape[d], layout->shape[d]);
        }
    }
    return TN_OK;
}

static tn_status validate_merge(tn_op *op, tn_error *err)
{
    tn_status status = tni_elementwise_check_floats(op, err);
    if (!status)
        status = check_dtypes(op, err);
    if (!status)
        status = check_shapes(op, err);
    if (status)
        return status;
    const tn_layout *in = &op->operand[TN_MERGE_IN];
    *TN_PARAMS_MUTABLE(op, elementwise) =
        (tn_elementwise_op){.elements = tni_layout_elements(in), .size = in->shape[3]};
    TN_PARAMS_MUTABLE(op, elementwise)->rows = in->shape[0] * in->shape[1] * in->shape[2];
    op->uses = op->operand[TN_MERGE_OUT].dtype != in->dtype ? TN_ELEMENTWISE_USES_OUT_DTYPE : 0;
    for (int32_t i = 0; i < op->count; i++) {
        tn_layout dense = op->operand[i];
        tni_layout_dense(&dense);
        if (dense.dtype && !tni_strides_same(&op->operand[i], &dense))
            op->uses |= TN_ELEMENTWISE_USES_STRIDES;
    }
    return TN_OK;
}

tn_status tni_attention_merge_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_merge_args *args = given;
    const tni_op_class *class = &tni_attention_merge_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (!status)
        status = tni_elementwise_switch(class->where, "layout", args->layout, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in,        args->lse_in, args->other,
                                        args->lse_other, args->out,    args->lse};
    status = tni_problem_init(out, class, tensors, err);
    if (status)
        return status;
    for (int32_t i = 0; i < TN_MERGE_OPERANDS; i++)
        tni_attention_turn(&out->op.operand[i], is_whole(i) ? args->layout : TN_LAYOUT_BHLD);
    return tni_op_validate(&out->op, err);
}

/* Makes the default layouts for a shape. */
static void make_usual_layouts(const int64_t shape[4], int32_t way, tn_dtype dtype, tn_dtype to,
                               bool lse, tn_layout *out)
{
    const int64_t turned[] = {shape[0], shape[way ? 2 : 1], shape[way ? 1 : 2], shape[3]};
    for (int32_t i = 0; i < TN_MERGE_OPERANDS; i++) {
        out[i].dtype = TN_DTYPE_NONE;
        if (is_whole(i)) {
            tni_layout_make(&out[i], i == TN_MERGE_OUT ? to : dtype, turned, 4);
            tni_attention_turn(&out[i], way);
        } else if (i != TN_MERGE_LSE || lse)
            tni_layout_make(&out[i], tni_attention_lse(dtype), shape, 3);
    }
}

static tn_status parse_merge(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    static const char *const keys[] = {"b", "h", "l", "d"};
    int64_t shape[] = {1, -1, -1, -1}, lse = 0;
    int32_t way = 0;
    tn_dtype to = dtype;
    tn_status status = TN_OK;
    for (size_t i = 0; i < 4 && !status; i++) {
        status = tni_fields_integer(fields, keys[i], 0, &shape[i], err);
        if (!status && shape[i] < 0)
            status = tni_fields_missing(fields, keys[i], err);
    }
    if (!status)
        status = tni_fields_switch(fields, "lse", &lse, err);
    if (!status)
        status = tni_fields_word(fields, "layout", ways, &way, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &to, err);
    if (status)
        return status;
    make_usual_layouts(shape, way, dtype, to, lse, op->operand);
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype)
            status = tni_fields_strides(fields, stride_keys[i], &op->operand[i], err);
    }
    return status;
}

static void write_merge(const tn_op *op, tni_buffer *out)
{
    static const char *const keys[] = {"b", "h", "l", "d"};
    const tn_layout *in = &op->operand[TN_MERGE_IN], *to = &op->operand[TN_MERGE_OUT];
    bool lse = op->operand[TN_MERGE_LSE].dtype != TN_DTYPE_NONE;
    tn_layout dense[TN_MERGE_OPERANDS];
    int32_t way = TN_LAYOUT_BLHD;
    make_usual_layouts(in->shape, way, in->dtype, to->dtype, lse, dense);
    if (!tni_strides_same(in, &dense[TN_MERGE_IN]) || !tni_strides_same(to, &dense[TN_MERGE_OUT]))
        way = TN_LAYOUT_BHLD;
    make_usual_layouts(in->shape, TN_LAYOUT_BHLD, in->dtype, to->dtype, lse, dense);
    if (tni_strides_same(in, &dense[TN_MERGE_IN]) && tni_strides_same(to, &dense[TN_MERGE_OUT]))
        way = TN_LAYOUT_BHLD;
    make_usual_layouts(in->shape, way, in->dtype, to->dtype, lse, dense);
    for (size_t i = 0; i < 4; i++)
        tni_write_integer(out, keys[i], in->shape[i]);
    if (way)
        tni_write_word(out, "layout", ways[way]);
    if (lse)
        tni_write_integer(out, "lse", 1);
    if (to->dtype != in->dtype)
        tni_write_word(out, "out", tn_dtype_name(to->dtype));
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype)
            tni_write_strides(out, stride_keys[i], &op->operand[i], &dense[i]);
    }
}

static void cost_merge(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = 3 * (double)TN_PARAMS(op, elementwise)->elements;
    *out_bytes = 0;
    for (int32_t i = 0; i < op->count; i++)
        *out_bytes += tni_layout_bytes(&op->operand[i]);
}

#define AT(field) offsetof(tn_attention_merge_args, field)

const tni_op_class tni_attention_merge_class = {
    .kind = TN_OP_ATTENTION_MERGE,
    .word = "attention-merge",
    .fields = "b h l d layout lse out si slsei s2 slse2 so slse align",
    .where = "tn_attention_merge",
    .args = {TNI_ARGS_FORM(attention_merge, layout),
             .tensors = {AT(in), AT(lse_in), AT(other), AT(lse_other), AT(out), AT(lse)}},
    .check = &tni_attention_merge_check,
    .make = tni_attention_merge_make,
    .operands = names,
    .optional = 1U << TN_MERGE_LSE,
    .outputs = 1U << TN_MERGE_OUT | 1U << TN_MERGE_LSE,
    .output = TN_MERGE_OUT,
    .group = TNI_OPS_ATTENTION,
    .settings = tni_attention_settings,
    .uses = tni_elementwise_uses,
    .parse = parse_merge,
    .validate = validate_merge,
    .write = write_merge,
    .cost = cost_merge,
    .words = tni_elementwise_words,
    .free = tni_elementwise_free};

tn_status tn_attention_merge(const tn_context *context, const tn_attention_merge_args *args,
                             tn_error *err)
{
    return tni_call_run(context, &tni_attention_merge_class, args, err);
}

tn_status tn_attention_merge_explain(const tn_context *context, const tn_attention_merge_args *args,
                                     tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_attention_merge_class, args, out, err);
}

tn_status tn_attention_merge_prepare(const tn_context *context, const tn_attention_merge_args *args,
                                     tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_merge_class, args, err);
}
