/* Where a value comes from. */
#include "base/form.h"
#include "process.h"
#include "views.h"

static void write_origin(const tn_context *context, tn_setting setting, char *out, size_t size)
{
    const tni_sources *sources = tni_settings_sources();
    int32_t level = context->level[setting];
    char place[TNI_FORM_PLACE];
    if (level == TN_LEVEL_FILE)
        snprintf(out, size, "file: %s",
                 tni_form_place(sources->file, sources->line[setting], place));
    else if (level == TN_LEVEL_ENVIRONMENT)
        snprintf(out, size, "environment: %s",
                 tni_setting_row_of(sources->variable[setting])->facts.environment);
    else
        snprintf(out, size, "%s", tn_level_name(level));
}

/* The setting that provides the effective value of `setting`. */
static tn_setting source_of(const tn_context *context, tn_setting setting)
{
    tn_setting from = setting;
    if (tni_setting_row_of(setting)->facts.view)
        (void)tni_view_read(context, setting, &from);
    if (tni_precision_is(from)) {
        tn_setting said;
        (void)tni_precision_resolve(context, from, &said);
        if (said >= 0)
            from = said;
    }
    return from;
}

tn_status tn_setting_origin(const tn_context *context, tn_setting setting, tn_origin *out,
                            tn_error *err)
{
    static const char where[] = "tn_setting_origin";
    char words[224], text[sizeof out->text + 96];
    const tni_setting_row *row = tni_setting_row_of(setting);
    if (!out || !row)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       out ? "unknown setting number %d" : "out is NULL", (int)setting);
    if (!TN_HAS(out, tn_origin, text))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_origin, text), out->struct_size);
    context = tni_context_or_current(context);
    tn_setting from = source_of(context, setting);
    write_origin(context, from, words, sizeof words);
    bool through = from != setting && context->level[from] != TN_LEVEL_DEFAULT;
    snprintf(text, sizeof text, "%s%s%s", words, through ? ", through " : "",
             through ? tni_setting_row_of(from)->facts.key : "");
    out->level = context->level[from];
    out->from = from;
    tn_text_fit(out->text, sizeof out->text, text);
    return TN_OK;
}
