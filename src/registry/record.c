#include "record.h"

#include "base/alloc.h"
#include "base/words.h"

const char *tni_origin_name(tni_origin origin)
{
    static const char *const names[] = {"built-in", "program", "module folder",
                                        "TENON_MODULE_PATH"};
    return names[origin];
}

const char *tn_module_stage_name(tn_module_stage stage)
{
    static const char *const names[] = {"found", "opened", "negotiated", "probed", "ready"};
    return stage >= TN_STAGE_FOUND && stage <= TN_STAGE_READY ? names[stage] : "unknown";
}

void tni_record_name_of(const char *path, char *out, size_t size)
{
    static const char prefix[] = "tenon-";
    const char *file = tni_path_name(path);
    size_t length = strlen(file), before = sizeof prefix - 1, after = strlen(TNI_LIBRARY_SUFFIX);
    if (length > before + after && strncmp(file, prefix, before) == 0 &&
        strcmp(file + length - after, TNI_LIBRARY_SUFFIX) == 0 && length - before - after < size) {
        memcpy(out, file + before, length - before - after);
        out[length - before - after] = '\0';
    } else {
        tn_text_fit(out, size, file);
    }
}

tni_record *tni_record_create(const char *path, tni_origin origin)
{
    tni_record *record = tni_alloc_zeroed(1, sizeof *record);
    if (!record)
        return NULL;
    record->origin = origin;
    record->platforms = tni_alloc_zeroed(TNI_PLATFORMS_MAX, sizeof *record->platforms);
    if (path) {
        tni_record_name_of(path, record->name, sizeof record->name);
        tni_words_clean(record->name);
        record->path = tni_text_copy(path);
    }
    if (!record->platforms || (path && !record->path)) {
        tni_record_destroy(record);
        return NULL;
    }
    return record;
}

void tni_record_fit(tni_record *record)
{
    size_t count = (size_t)record->platform_count;
    tni_platform *platforms = tni_alloc_zeroed(count, sizeof *platforms);
    if (!platforms)
        return;
    memcpy(platforms, record->platforms, count * sizeof *platforms);
    tni_release(record->platforms);
    record->platforms = platforms;
}

void tni_record_destroy(tni_record *record)
{
    if (!record)
        return;
    tni_release(record->platforms);
    tni_release(record->path);
    tni_release(record);
}

tn_status tni_record_stop(tni_record *record, tn_status status, const char *remedy,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(record->message, sizeof record->message, format, arguments);
    va_end(arguments);
    record->status = status;
    tn_text_fit(record->remedy, sizeof record->remedy,
                remedy[0] || status == TN_OK ? remedy : "report this to the module's author");
    tn_text_escape(record->message, sizeof record->message);
    tn_text_escape(record->remedy, sizeof record->remedy);
    return status;
}
