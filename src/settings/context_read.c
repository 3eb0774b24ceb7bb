/* Contexts and settings as a program reads them: of a given context, or of the calling thread. */
#include "views.h"

tn_status tn_context_derive(const tn_context *from, const tn_change *changes, size_t count,
                            tn_context **out, tn_error *err)
{
    static const char where[] = "tn_context_derive";
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    from = tni_context_or_current(from);
    return tni_context_change(from, changes, count, TN_LEVEL_CALL, tni_depth_within(from), where,
                              out, err);
}

tn_status tn_context_capture(tn_context **out, tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_context_capture", "out is NULL");
    *out = tn_context_retain((tn_context *)(uintptr_t)tni_context_current());
    return TN_OK;
}

int64_t tn_setting_value(const tn_context *context, tn_setting setting)
{
    tn_setting behind;
    context = tni_context_or_current(context);
    if (setting < 0 || setting >= TN_SETTING_COUNT)
        return 0;
    if (setting >= TNI_FIRST_VIEW && setting <= TNI_LAST_VIEW)
        return tni_view_read(context, setting, &behind);
    return setting == TN_SETTING_CUDA_SDP_PRIORITY ? 0 : context->value[setting];
}

int64_t tn_setting_resolved(const tn_context *context, tn_setting setting)
{
    tn_setting from;
    context = tni_context_or_current(context);
    if (setting == TN_SETTING_CUDNN_FP32_PRECISION)
        setting = TN_SETTING_CUDA_FP32_PRECISION;
    return tni_precision_is(setting) ? tni_precision_resolve(context, setting, &from)
                                     : tn_setting_value(context, setting);
}

static size_t write_value(const tn_context *context, tn_setting setting, bool resolved, char *out,
                          size_t size)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    if (!out)
        size = 0;
    if (!row)
        return (size_t)snprintf(out, size, "%s", "");
    context = tni_context_or_current(context);
    if (row->kind == TN_VALUE_RULE || row->kind == TN_VALUE_RULES)
        return tni_rules_write(context, setting, out, size);
    if (row->kind == TN_VALUE_ORDER)
        return tni_value_write(row, context->value[setting], out, size);
    return tni_value_write(
        row, resolved ? tn_setting_resolved(context, setting) : tn_setting_value(context, setting),
        out, size);
}

size_t tn_setting_write(const tn_context *context, tn_setting setting, char *out, size_t size)
{
    return write_value(context, setting, false, out, size);
}

size_t tn_setting_write_resolved(const tn_context *context, tn_setting setting, char *out,
                                 size_t size)
{
    return write_value(context, setting, true, out, size);
}
