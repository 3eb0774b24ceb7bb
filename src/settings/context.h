/* Internals of contexts. */
#ifndef TNI_SETTINGS_CONTEXT_H
#define TNI_SETTINGS_CONTEXT_H

#include "base/references.h"
#include "rules.h"
#include "tenon/context.h"

#include <stdatomic.h>

/* Views are contiguous in the table, so that a reader recognizes them by their number. */
enum {
    TNI_FIRST_VIEW = TN_SETTING_CUDNN_FP32_PRECISION,
    TNI_LAST_VIEW = TN_SETTING_FLOAT32_MATMUL_PRECISION
};

/* Depth of the changes of a level: equal to the level up to the process; scopes and calls are
 * deeper, each one by 1 than the context it was made from. */
enum { TNI_DEPTH_PROCESS = TN_LEVEL_PROCESS };

/* Numbers that higher layers derive from a context and cache in it; 0: not derived yet. */
enum { TNI_CONTEXT_NOTES = 8 };

struct tn_context {
    tni_references references;
    tni_rules *rules;
    struct tn_context *next; /* in the list of replaced contexts that a reader may still use */
    int32_t depth;           /* the deepest that it contains */
    uint8_t level[TN_SETTING_COUNT];
    int64_t value[TN_SETTING_COUNT];
    _Atomic uint64_t notes[TNI_CONTEXT_NOTES];
};

static inline uint64_t tni_context_note(const tn_context *context, int32_t note)
{
    return atomic_load_explicit(&context->notes[note], memory_order_relaxed);
}

/* The value must be one that every caller derives identically, so that it does not matter whose is
 * stored. */
static inline void tni_context_note_set(const tn_context *context, int32_t note, uint64_t value)
{
    tn_context *its = (tn_context *)(uintptr_t)context;
    atomic_store_explicit(&its->notes[note], value, memory_order_relaxed);
}

/* The depth of a context that is made from `context`. */
static inline int32_t tni_depth_within(const tn_context *context)
{
    int32_t depth = context->depth > TNI_DEPTH_PROCESS ? context->depth : TNI_DEPTH_PROCESS;
    return depth < INT32_MAX ? depth + 1 : depth;
}

/* The table's defaults; static, never freed. */
const tn_context *tni_context_defaults(void);

/* Makes `from` with changes of `level` at `depth`, validated; the caller releases *out. Fails with
 * TN_REFUSED if rules of that depth contradict one another, and with TN_UNSUPPORTED if a
 * process-only setting is changed at a scope or call. */
tn_status tni_context_change(const tn_context *from, const tn_change *changes, size_t count,
                             int32_t level, int32_t depth, const char *where, tn_context **out,
                             tn_error *err);

/* Makes `from` with its value of one setting replaced by that of `base`; of its rules only those of
 * `depth` are removed. */
tn_status tni_context_restore(const tn_context *from, const tn_context *base, tn_setting setting,
                              int32_t depth, const char *where, tn_context **out, tn_error *err);

/* Incremented after every published change of the process's settings; never 0 once the settings are
 * initialized. */
extern _Atomic uint64_t tni_settings_generation;

/* Cached context of a thread; holds a reference. `generation` is that of the process's settings
 * when it was made; 0: must be made again. */
typedef struct tni_thread_view {
    tn_context *context;
    uint64_t generation;
} tni_thread_view;
extern _Thread_local tni_thread_view tni_view;
const tn_context *tni_context_refresh(void);

/* Returns the calling thread's context. Borrowed: valid until the thread's next call into the
 * settings. */
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
