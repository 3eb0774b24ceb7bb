#include "log.h"

#include "words.h"

#include <stdatomic.h>

enum { LINE = 1024, KEPT_LINES = 64 };

/* Lines that are kept: a queue without locks, so that neither a fork nor the caller's locks matter.
 * A line's turn is twice the number of its earlier uses while it is free, and one more while it is
 * filled. */
typedef struct kept_line {
    _Atomic uint32_t turn;
    int32_t level;
    char text[LINE];
} kept_line;
static struct {
    _Atomic int32_t level;
    _Atomic uint32_t begin, end;
    kept_line lines[KEPT_LINES];
} kept;

static const tn_log_sink *_Atomic current;
static _Thread_local int speaking; /* this thread is inside a sink */

static const char *const level_names[] = {"off", "error", "warning", "info", "debug"};
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

tn_status tn_log_set(const tn_log_sink *sink, tn_error *err)
{
    const char *where = "tn_log_set";
    if (sink && !TN_HAS(sink, tn_log_sink, level))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "sink->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_log_sink, level), sink->struct_size);
    if (sink && !sink->write)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "sink->write is NULL");
    if (sink && (sink->level < TN_LOG_OFF || sink->level > TN_LOG_DEBUG))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "sink->level: expected %d (off) to %d (debug), got %d", TN_LOG_OFF,
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

tn_status tn_log_keep(int32_t level, tn_error *err)
{
    if (level < TN_LOG_OFF || level > TN_LOG_DEBUG)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_log_keep",
                       "expected a level from %d (off) to %d (debug), got %d", TN_LOG_OFF,
                       TN_LOG_DEBUG, (int)level);
    atomic_store(&kept.level, level);
    return TN_OK;
}

int32_t tn_log_kept(void)
{
    const uint32_t begin = atomic_load(&kept.begin); /* first: the end is never before it */
    return (int32_t)(atomic_load(&kept.end) - begin);
}

/* Returns the line at *position if its turn there is `wanted`, and moves past it; NULL if it is not. */
static kept_line *claim_line(_Atomic uint32_t *position, uint32_t wanted)
{
    uint32_t at = atomic_load(position);
    for (;;) {
        kept_line *line = &kept.lines[at % KEPT_LINES];
        const bool has_turn =
            atomic_load_explicit(&line->turn, memory_order_acquire) == at / KEPT_LINES * 2 + wanted;
        if (has_turn && atomic_compare_exchange_weak(position, &at, at + 1))
            return line;
        const uint32_t now = atomic_load(position);
        if (!has_turn && now == at)
            return NULL;
        at = now;
    }
}

static void keep_line(int32_t level, const char *text)
{
    kept_line *line = claim_line(&kept.end, 0);
    if (!line)
        return;
    line->level = level;
    tn_text_fit(line->text, sizeof line->text, text);
    atomic_fetch_add_explicit(&line->turn, 1, memory_order_release);
}

int32_t tn_log_take(int32_t *out_level, char *out, size_t size)
{
    if (!out_level || !out || size == 0)
        return 0;
    kept_line *line = claim_line(&kept.begin, 1);
    if (!line)
        return 0;
    *out_level = line->level;
    tn_text_fit(out, size, line->text);
    atomic_fetch_add_explicit(&line->turn, 1, memory_order_release);
    return 1;
}

void tni_log(int32_t level, const char *format, ...)
{
    char text[LINE], whole[sizeof text + 8]; /* larger, so that truncation shows */
    va_list arguments;
    const tn_log_sink *sink = atomic_load_explicit(&current, memory_order_acquire);
    const bool heard = sink && level <= sink->level && !speaking;
    const bool keeps = level <= atomic_load_explicit(&kept.level, memory_order_relaxed);
    if (!heard && !keeps)
        return;
    va_start(arguments, format);
    int length = vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    tn_text_fit(text, sizeof text, whole);
    tn_text_escape(text, sizeof text);
    if (keeps)
        keep_line(level, text);
    if (!heard)
        return;
    speaking = 1;
    sink->write(sink->user, level, text);
    speaking = 0;
}

bool tni_log_inside(void)
{
    return speaking != 0;
}
