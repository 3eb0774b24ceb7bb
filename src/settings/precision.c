/* float32 precision: a tree of settings, in which the nearest ancestor with a value applies, and
 * the older switches as views of it. */
#include "views.h"

#include "tenon/module/op/matmul.h"

typedef struct node {
    tn_setting parent; /* -1 at the root                                  */
    bool cuda;         /* an inherited bf16 means ieee here */
    int32_t unset;     /* effective value if no setting up to the root has one */
} node;

/* The precision settings are the first of the table. */
static const node nodes[] = {
    [TN_SETTING_FP32_PRECISION] = {-1, false, TN_FP32_IEEE},
    [TN_SETTING_CUDA_FP32_PRECISION] = {TN_SETTING_FP32_PRECISION, true, TN_FP32_IEEE},
    [TN_SETTING_CUDA_MATMUL_FP32_PRECISION] = {TN_SETTING_CUDA_FP32_PRECISION, true, TN_FP32_IEEE},
    [TN_SETTING_CUDNN_CONV_FP32_PRECISION] = {TN_SETTING_CUDA_FP32_PRECISION, true, TN_FP32_TF32},
    [TN_SETTING_CUDNN_RNN_FP32_PRECISION] = {TN_SETTING_CUDA_FP32_PRECISION, true, TN_FP32_TF32},
    [TN_SETTING_MKLDNN_FP32_PRECISION] = {TN_SETTING_FP32_PRECISION, false, TN_FP32_IEEE},
    [TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION] = {TN_SETTING_MKLDNN_FP32_PRECISION, false,
                                                 TN_FP32_IEEE},
    [TN_SETTING_MKLDNN_CONV_FP32_PRECISION] = {TN_SETTING_MKLDNN_FP32_PRECISION, false,
                                               TN_FP32_IEEE},
    [TN_SETTING_MKLDNN_RNN_FP32_PRECISION] = {TN_SETTING_MKLDNN_FP32_PRECISION, false,
                                              TN_FP32_IEEE},
};
enum { NODES = sizeof nodes / sizeof nodes[0] };

bool tni_precision_is(tn_setting setting)
{
    return setting >= 0 && setting < NODES;
}

int32_t tni_precision_resolve(const tn_context *context, tn_setting setting, tn_setting *out_from)
{
    const node *asked = &nodes[setting];
    while (context->value[setting] == TN_FP32_NONE && nodes[setting].parent >= 0)
        setting = nodes[setting].parent;
    int32_t value = (int32_t)context->value[setting];
    *out_from = value == TN_FP32_NONE ? -1 : setting;
    if (value == TN_FP32_NONE)
        return asked->unset;
    return asked->cuda && value == TN_FP32_BF16 ? TN_FP32_IEEE : value;
}

static int32_t resolve(const tn_context *context, tn_setting setting)
{
    tn_setting from;
    return tni_precision_resolve(context, setting, &from);
}

static int64_t read_matmul(const tn_context *context)
{
    int32_t cuda = resolve(context, TN_SETTING_CUDA_MATMUL_FP32_PRECISION);
    int32_t mkldnn = resolve(context, TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION);
    if (cuda == TN_FP32_IEEE && mkldnn == TN_FP32_IEEE)
        return TN_MATMUL_PRECISION_HIGHEST;
    if (cuda == TN_FP32_TF32 && mkldnn == TN_FP32_TF32)
        return TN_MATMUL_PRECISION_HIGH;
    return cuda == TN_FP32_TF32 && mkldnn == TN_FP32_BF16 ? TN_MATMUL_PRECISION_MEDIUM
                                                          : TN_MATMUL_PRECISION_MIXED;
}

int64_t tni_view_read(const tn_context *context, tn_setting view, tn_setting *out_behind)
{
    switch (view) {
    case TN_SETTING_CUDNN_FP32_PRECISION:
        *out_behind = TN_SETTING_CUDA_FP32_PRECISION;
        return context->value[*out_behind];
    case TN_SETTING_CUDA_MATMUL_ALLOW_TF32:
        *out_behind = TN_SETTING_CUDA_MATMUL_FP32_PRECISION;
        return resolve(context, *out_behind) == TN_FP32_TF32;
    case TN_SETTING_MKLDNN_ALLOW_TF32:
        *out_behind = TN_SETTING_MKLDNN_FP32_PRECISION;
        return resolve(context, *out_behind) == TN_FP32_TF32;
    case TN_SETTING_CUDNN_ALLOW_TF32:
        *out_behind = resolve(context, TN_SETTING_CUDNN_CONV_FP32_PRECISION) == TN_FP32_TF32
                          ? TN_SETTING_CUDNN_RNN_FP32_PRECISION
                          : TN_SETTING_CUDNN_CONV_FP32_PRECISION;
        return resolve(context, *out_behind) == TN_FP32_TF32;
    default: *out_behind = TN_SETTING_CUDA_MATMUL_FP32_PRECISION; return read_matmul(context);
    }
}

size_t tni_view_write(tn_setting view, int64_t value, tn_change out[TNI_VIEW_MOST])
{
    int32_t tf32 = value ? TN_FP32_TF32 : TN_FP32_IEEE;
    switch (view) {
    case TN_SETTING_CUDNN_FP32_PRECISION:
        out[0] = tn_with_cuda_fp32_precision((int32_t)value);
        return 1;
    case TN_SETTING_CUDA_MATMUL_ALLOW_TF32:
        out[0] = tn_with_cuda_matmul_fp32_precision(tf32);
        return 1;
    case TN_SETTING_MKLDNN_ALLOW_TF32: out[0] = tn_with_mkldnn_fp32_precision(tf32); return 1;
    case TN_SETTING_CUDNN_ALLOW_TF32:
        out[0] = tn_with_cudnn_conv_fp32_precision(tf32);
        out[1] = tn_with_cudnn_rnn_fp32_precision(tf32);
        return 2;
    default:
        out[0] = tn_with_cuda_matmul_fp32_precision(tf32);
        out[1] = tn_with_mkldnn_matmul_fp32_precision(
            value == TN_MATMUL_PRECISION_MEDIUM ? TN_FP32_BF16 : tf32);
        return 2;
    }
}

size_t tni_change_rows(const tn_change *change, tn_change out[TNI_VIEW_MOST])
{
    if (tni_setting_row_of(change->setting)->facts.view)
        return tni_view_write(change->setting, change->value, out);
    out[0] = *change;
    return 1;
}
