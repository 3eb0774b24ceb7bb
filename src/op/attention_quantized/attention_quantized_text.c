/* The text form of attention-quantized problems:
 *
 *     b h hk  l | lq lk  d dv  layout=bhld|blhd   sizes; hk and dv are usually h and d
 *     mask=none|causal|causal-br|window:L;R|window-tl:L;R   visible keys by position
 *     weights=f32|f16|f8_e4m3fn|u8|i8   precision of the second product
 *     scales=thread|warp|block          rows that share a scale
 *     smoothing=k|none   lse=0|1   out=DTYPE   scale
 */
#include "attention_quantized.h"

#include "op/attention/attention_fields.h"
#include "tenon/dtype.h"

static const char *const stride_keys[] = {"sq", "sk", "sv", "so", "slse"};
static const char *const scales[] = {"thread", "warp", "block", NULL};
static const char *const smoothings[] = {"k", "none", NULL};

static void make_usual_layouts(const tni_attention_form *form, const tn_op *op, tn_dtype dtype,
                               tn_layout *out)
{
    (void)op;
    tni_attention_make_form(form, dtype, out);
}

/* Parses what attention does not have. */
static tn_status parse_precision(tni_fields *fields, tn_attention_quantized_op *out, tn_error *err)
{
    tn_status status = tni_fields_dtype(fields, "weights", &out->weights, err);
    if (!status)
        status = tni_fields_word(fields, "scales", scales, &out->scales, err);
    return status ? status : tni_fields_word(fields, "smoothing", smoothings, &out->smoothing, err);
}

tn_status tni_attention_quantized_parse(tni_fields *fields, tn_dtype dtype, tn_op *op,
                                        tn_error *err)
{
    tn_attention_quantized_op *quantized = TN_PARAMS_MUTABLE(op, attention_quantized);
    tni_attention_form form;
    *quantized = (tn_attention_quantized_op){.weights = TN_F32};
    tn_status status = tni_attention_parse_form(fields, dtype, &form, &quantized->at, err);
    if (!status)
        status = tni_fields_switch(fields, "lse", &form.lse, err);
    if (!status)
        status = parse_precision(fields, quantized, err);
    if (status)
        return status;
    make_usual_layouts(&form, op, dtype, op->operand);
    return tni_attention_parse_strides(fields, stride_keys, op, err);
}

static void write_precision(const tn_attention_quantized_op *quantized, tni_buffer *out)
{
    if (quantized->weights != TN_F32)
        tni_write_word(out, "weights", tn_dtype_name(quantized->weights));
    if (quantized->scales)
        tni_write_word(out, "scales", scales[quantized->scales]);
    if (quantized->smoothing)
        tni_write_word(out, "smoothing", smoothings[quantized->smoothing]);
}

void tni_attention_quantized_write(const tn_op *op, tni_buffer *out)
{
    const tn_attention_quantized_op *quantized = TN_PARAMS(op, attention_quantized);
    tn_layout nearest[TN_ATTENTION_QUANTIZED_OPERANDS];
    tni_attention_form form;
    tni_attention_take_form(op, &quantized->at, &form);
    tni_attention_make_nearest(&form, op, make_usual_layouts, nearest);
    tni_attention_write_sizes(&form, out);
    tni_attention_write_way(&form, out);
    write_precision(quantized, out);
    tni_attention_write_end(&form, op, stride_keys, nearest, out);
}
