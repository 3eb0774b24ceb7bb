/* The log. The library never prints: its messages go to the sink, are kept until they are taken, or
 * are dropped.
 * Thread-safety: Safe. */
#ifndef TENON_LOG_H
#define TENON_LOG_H

#include "base.h"

TN_BEGIN_DECLS

/* Receives one line without a newline. May be called from any thread, and from several at once.
 * `text` is UTF-8 without control characters, valid during the call. The sink may call Tenon, but
 * must not wait for another thread that does. Messages logged from inside the sink are dropped, so
 * that it cannot recurse. */
typedef void tn_log_fn(void *user, int32_t level, const char *text);

typedef struct tn_log_sink {
    size_t struct_size;
    tn_log_fn *write;
    void *user;
    int32_t level; /* TN_LOG_WARNING: warnings and anything more severe */
    int32_t reserved;
} tn_log_sink;
TN_ENDS_WITH(tn_log_sink, reserved);

/* Installs `sink` for the process; NULL disables logging. The struct and everything it points to
 * stay owned by the caller. They must stay valid as long as the process, or until every thread that
 * was inside Tenon when the sink was changed has left it: such a thread may still write to the old
 * sink. TN_INVALID_ARGUMENT for a sink without `write` or with an unknown level; then nothing
 * changes. */
TN_API tn_status tn_log_set(const tn_log_sink *sink, tn_error *err);

/* Keeps lines of `level` and more severe ones until tn_log_take takes them, beside any sink. For a
 * program whose sink would wait for a lock that other callers of Tenon hold, such as that of an
 * interpreter. At most 64 lines are kept; further ones are dropped. TN_LOG_OFF, the initial level,
 * keeps none. TN_INVALID_ARGUMENT for an unknown level. */
TN_API tn_status tn_log_keep(int32_t level, tn_error *err);

/* tn_log_kept returns the number of lines that are kept. tn_log_take removes the oldest: writes its
 * level and its text, truncated to `size` bytes, and returns 1; 0 if there is none. Neither waits. */
TN_API int32_t tn_log_kept(void);
TN_API int32_t tn_log_take(int32_t *out_level, char *out, size_t size);

/* "error", "warning", "info", "debug", "off"; "unknown" for any other number. Static text. */
TN_API const char *tn_log_level_name(int32_t level);

/* Parses the name of a level, as in TENON_LOG. TN_INVALID_ARGUMENT lists the valid names. */
TN_API tn_status tn_log_level_parse(const char *name, int32_t *out_level, tn_error *err);

TN_END_DECLS

#endif
