/* Contexts: a complete set of settings as a value. Scopes: temporary changes for one thread.
 *
 * Calls take a context. NULL means the calling thread's: its scopes on top of the process's
 * settings at that moment. Any other context is used exactly as it is, so thread pools, fibers and
 * tasks should pass one.
 *
 * Thread-safety: a context is immutable and may be used from any thread; a scope belongs to the
 * thread that entered it. */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include "setting.h"

TN_BEGIN_DECLS

typedef struct tn_context tn_context;

/* Creates a copy of `from` with changes at the level "call". The caller must release it. */
TN_API tn_status tn_context_derive(const tn_context *from, const tn_change *changes, size_t count,
                                   tn_context **out, tn_error *err);

/* Captures the settings of the calling thread now, to pass them to another thread. The caller must
 * release it. */
TN_API tn_status tn_context_capture(tn_context **out, tn_error *err);

TN_API tn_context *tn_context_retain(tn_context *context); /* accepts NULL; returns it */
TN_API void tn_context_release(tn_context *context);       /* accepts NULL             */

/* Initialize with {0}. Frozen at two words. */
typedef struct tn_scope {
    void *inside;
    uint64_t reserved;
} tn_scope;

/* Applies the changes to the calling thread only, until tn_scope_leave. Settings that the changes
 * do not name keep following the process. Scopes nest. If this fails, no scope is entered and
 * tn_scope_leave does nothing, so one cleanup path can always call it. Fails with TN_BUSY if the
 * scope is already entered.
 *
 * Scopes may be left in any order: leaving one removes only its own changes. If a scope is left on
 * another thread, it ends on its own thread the next time that thread reads a setting. A scope that
 * is never left (longjmp, a missing call) stays active until its thread ends. Its memory is
 * allocated by Tenon, not inside the tn_scope. If the thread ends inside a scope, a small block
 * with the changes is kept until the scope is left, or forever if it never is. After fork(), the
 * child's thread is in the same scopes as the thread that forked. */
TN_API tn_status tn_scope_enter(tn_scope *scope, const tn_change *changes, size_t count,
                                tn_error *err);

/* The same with a captured or derived context that replaces all settings: changes of the process
 * are not visible inside. */
TN_API tn_status tn_scope_enter_context(tn_scope *scope, tn_context *context, tn_error *err);
TN_API void tn_scope_leave(tn_scope *scope); /* accepts NULL, {0} and a scope already left */

TN_END_DECLS

#endif
