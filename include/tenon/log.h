/* The log sink. The library prints nothing, ever: what it has to say goes here or nowhere.
 * Thread-safety: Safe. */
#ifndef TENON_LOG_H
#define TENON_LOG_H

#include "base.h"

TN_BEGIN_DECLS

/* Receives one line without a newline. Called from whichever thread has something to say, from
 * several at once; `text` is valid during the call, is UTF-8 and has no control characters. The sink
 * may call Tenon, but not wait for another thread that does; what that would log is dropped, so that
 * a sink cannot feed itself. */
typedef void tn_log_fn(void *user, int32_t level, const char *text);

typedef struct tn_log_sink {
    size_t struct_size;
    tn_log_fn *write;
    void *user;
    int32_t level; /* TN_LOG_WARNING: this and everything graver */
    int32_t reserved;
} tn_log_sink;
TN_ENDS_WITH(tn_log_sink, reserved);

/* Makes `sink` the process's sink; NULL ends logging. The struct and what it points to stay the
 * caller's and must live as long as the process, or until no thread that was inside Tenon during a
 * change is there any more: such a one may still write to the old sink.
 * TN_INVALID_ARGUMENT for a sink without `write` or with an unknown level; nothing is changed. */
TN_API tn_status tn_log_set(const tn_log_sink *sink, tn_error *err);

/* "error", "warning", "info", "debug", "off"; "unknown" for another number. Static text. */
TN_API const char *tn_log_level_name(int32_t level);

/* The level of a name, as TENON_LOG spells it. TN_INVALID_ARGUMENT names those there are. */
TN_API tn_status tn_log_level_parse(const char *name, int32_t *out_level, tn_error *err);

TN_END_DECLS

#endif
