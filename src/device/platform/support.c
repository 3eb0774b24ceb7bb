/* Whether a platform supports a quantization, a model architecture or asynchronous output. */
#include "base/words.h"
#include "platforms.h"

static tn_status verify_support(const tn_platform *platform, const char *where, const char *what,
                                const char *name, const char *const *list, tn_error *err)
{
    char there[200];
    size_t count = 0;
    if (!name)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the %s is NULL", what);
    if (!platform->set)
        return tni_platform_unready(platform, where, err);
    for (; list[count]; count++) {
        if (strcmp(list[count], name) == 0)
            return TN_OK;
    }
    if (count == 0)
        return TN_OK;
    tni_words_join(list, count, there, sizeof there);
    char hint[TNI_HINT];
    const char *nearest = tni_words_nearest(name, list, count);
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "platform %s does not support the %s \"%.60s\"; it supports %s%s",
                   platform->name, what, name, there, tni_words_hint(nearest, hint));
}

tn_status tn_platform_verify_quantization(const tn_platform *platform, const char *name,
                                          tn_error *err)
{
    return verify_support(tni_platform_or_unspecified(platform), "tn_platform_verify_quantization",
                          "quantization", name, tn_platform_supported_quantization(platform), err);
}

tn_status tn_platform_verify_model_arch(const tn_platform *platform, const char *name,
                                        tn_error *err)
{
    return verify_support(tni_platform_or_unspecified(platform), "tn_platform_verify_model_arch",
                          "model architecture", name, tn_platform_supported_model_arch(platform),
                          err);
}

tn_status tn_platform_is_async_output_supported(const tn_platform *platform, int32_t enforce_eager,
                                                int32_t *out, const char **out_reason,
                                                tn_error *err)
{
    static const char where[] = "tn_platform_is_async_output_supported";
    const tn_platform *p = tni_platform_or_unspecified(platform);
    const tn_platform_row *row = tni_platform_row_of(p);
    uint32_t needed = enforce_eager ? TN_PLATFORM_ASYNC_OUTPUT | TN_PLATFORM_ASYNC_OUTPUT_EAGER
                                    : TN_PLATFORM_ASYNC_OUTPUT;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    if (!row)
        return tni_platform_unready(p, where, err);
    *out = (row->flags & needed) == needed;
    if (out_reason)
        *out_reason =
            row->async_output_reason ? row->async_output_reason : "the platform gives no reason";
    return TN_OK;
}
