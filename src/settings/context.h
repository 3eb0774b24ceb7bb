/* Contexts from inside. */
#ifndef TNI_SETTINGS_CONTEXT_H
#define TNI_SETTINGS_CONTEXT_H

#include "rules.h"
#include "tenon/context.h"

#include <stdatomic.h>

/* Views stand together in the table, so that a reading can tell them by their number. */
enum {
    TNI_FIRST_VIEW = TN_SETTING_CUDNN_FP32_PRECISION,
    TNI_LAST_VIEW = TN_SETTING_FLOAT32_MATMUL_PRECISION
};

/* What a level's changes have as their depth; scopes and calls come above the process, each one above
 * what it was made from. */
enum { TNI_DEPTH_PROCESS = TN_LEVEL_PROCESS };

/* Numbers that floors above derive from a context, kept with it; 0 when not derived yet. */
enum { TNI_CONTEXT_NOTES = 8 };

struct tn_context {
    _Atomic int64_t references;
    tni_rules *rules;
    struct tn_context *next; /* of those that the process has given up and a reader may still see */
    int32_t depth;           /* the highest that it has */
    uint8_t level[TN_SETTING_COUNT];
    int64_t value[TN_SETTING_COUNT];
    _Atomic uint64_t notes[TNI_CONTEXT_NOTES];
};

static inline uint64_t tni_context_note(const tn_context *context, int32_t note)
{
    return atomic_load_explicit(&context->notes[note], memory_order_relaxed);
}

/* What every caller derives alike, so that it does not matter whose is kept. */
static inline void tni_context_note_set(const tn_context *context, int32_t note, uint64_t value)
{
    tn_context *its = (tn_context *)(uintptr_t)context;
    atomic_store_explicit(&its->notes[note], value, memory_order_relaxed);
}

/* The depth of what is made from `context`. */
static inline int32_t tni_depth_within(const tn_context *context)
{
    int32_t depth = context->depth > TNI_DEPTH_PROCESS ? context->depth : TNI_DEPTH_PROCESS;
    return depth < INT32_MAX ? depth + 1 : depth;
}

/* The table's defaults; static, lives for ever. */
const tn_context *tni_context_defaults(void);

/* Whether the rules of a change, which was checked, can be made where nothing else is said. */
tn_status tni_change_try(const tn_change *change, const char *where, tn_error *err);

/* `from` with changes of `level` at `depth`, checked; the caller releases it. TN_REFUSED for rules
 * that contradict one another at that depth, TN_UNSUPPORTED for a row that only the process has when
 * the level is nearer than that. */
tn_status tni_context_change(const tn_context *from, const tn_change *changes, size_t count,
                             int32_t level, int32_t depth, const char *where, tn_context **out,
                             tn_error *err);

/* `from` with what it has of one setting replaced by what `base` has; only rules of `depth` are given
 * up. */
tn_status tni_context_restore(const tn_context *from, const tn_context *base, tn_setting setting,
                              int32_t depth, const char *where, tn_context **out, tn_error *err);

/* Goes up with every change of the process's settings, after it is published; never 0 once settings
 * have begun. */
extern _Atomic uint64_t tni_settings_generation;

/* What holds for a thread. The context is counted, and was made when the process's settings had that
 * generation; 0 when it has to be made again. */
typedef struct tni_thread_view {
    tn_context *context;
    uint64_t generation;
} tni_thread_view;
extern _Thread_local tni_thread_view tni_view;
const tn_context *tni_context_refresh(void);

/* The one that holds for the calling thread. Lent until the thread's next call of anything here. */
static inline const tn_context *tni_context_current(void)
{
    uint64_t now = atomic_load_explicit(&tni_settings_generation, memory_order_acquire);
    return tni_view.generation != 0 && tni_view.generation == now ? tni_view.context
                                                                  : tni_context_refresh();
}

/* `context`, or the calling thread's for NULL. */
static inline const tn_context *tni_context_or_current(const tn_context *context)
{
    return context ? context : tni_context_current();
}

#endif
