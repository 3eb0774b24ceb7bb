#include "log.h"

#include "words.h"

#include <stdatomic.h>

static const tn_log_sink *_Atomic current;
static _Thread_local int speaking; /* this thread is inside a sink */

static const char *const level_names[] = {"off", "error", "warning", "info", "debug"};
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

tn_status tn_log_set(const tn_log_sink *sink, tn_error *err)
{
    const char *where = "tn_log_set";
    if (sink && !TN_HAS(sink, tn_log_sink, level))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "sink->struct_size needs at least %zu, found %zu",
                       TN_UP_TO(tn_log_sink, level), sink->struct_size);
    if (sink && !sink->write)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "sink->write is NULL");
    if (sink && (sink->level < TN_LOG_OFF || sink->level > TN_LOG_DEBUG))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "sink->level needs %d (off) to %d (debug), found %d", TN_LOG_OFF,
                       TN_LOG_DEBUG, (int)sink->level);
    atomic_store(&current, sink);
    return TN_OK;
}

const char *tn_log_level_name(int32_t level)
{
    return level >= 0 && level < LEVELS ? level_names[level] : "unknown";
}

tn_status tn_log_level_parse(const char *name, int32_t *out_level, tn_error *err)
{
    const char *where = "tn_log_level_parse";
    if (!name || !out_level)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       name ? "out_level" : "name");
    for (int32_t i = 0; i < LEVELS; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out_level = i;
            return TN_OK;
        }
    }
    char hint[TNI_HINT];
    const char *near = tni_words_nearest(name, level_names, LEVELS);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "unknown log level \"%.40s\": expected off, error, warning, info or debug%s",
                   name, tni_words_hint(near, hint));
}

void tni_log(int32_t level, const char *format, ...)
{
    char text[1024], whole[sizeof text + 8]; /* larger, so that truncation shows */
    va_list arguments;
    const tn_log_sink *sink = atomic_load_explicit(&current, memory_order_acquire);
    if (!sink || level > sink->level || speaking)
        return;
    va_start(arguments, format);
    int length = vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    tn_text_fit(text, sizeof text, whole);
    tn_text_escape(text, sizeof text);
    speaking = 1;
    sink->write(sink->user, level, text);
    speaking = 0;
}

bool tni_log_inside(void)
{
    return speaking != 0;
}
