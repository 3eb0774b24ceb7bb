/* Contexts: a whole set of settings as a value; scopes: one thread's changes, for a while.
 *
 * A call takes a context. NULL is the calling thread's: its scopes over the process's settings, as they
 * are at that moment. Any other is used exactly as it is, so pools, fibres and tasks pass one.
 *
 * Thread-safety: a context never changes and may be used from any thread; a scope belongs to the thread
 * that entered it. */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include "setting.h"

TN_BEGIN_DECLS

typedef struct tn_context tn_context;

/* `from` with changes, which are of the level "call". The caller releases it. */
TN_API tn_status tn_context_derive(const tn_context *from, const tn_change *changes, size_t count,
                                   tn_context **out, tn_error *err);

/* What holds for the calling thread now, to be handed to another. The caller releases it. */
TN_API tn_status tn_context_capture(tn_context **out, tn_error *err);

TN_API tn_context *tn_context_retain(tn_context *context); /* accepts NULL; returns it */
TN_API void tn_context_release(tn_context *context);       /* accepts NULL             */

/* Begins as {0}. Frozen at two words. */
typedef struct tn_scope {
    void *inside;
    uint64_t reserved;
} tn_scope;

/* From now until tn_scope_leave the calling thread, and no other, sees the changes; what they do not
 * name stays what it is, and follows the process. Scopes nest. On failure nothing is entered, and
 * leaving does nothing, so one exit can leave. TN_BUSY for a scope that is entered already.
 *
 * Leaving in another order than the reverse one takes away the changes of that scope alone. A scope
 * left on another thread ends on its own one at that thread's next reading. A scope that is never left,
 * because of longjmp or a missing call, holds until its thread ends; its memory is Tenon's, not the
 * tn_scope's. One that its thread ended inside keeps only a small block, with the changes, until someone
 * leaves it; never left, that block stays. After fork() the child's thread is in the scopes of the one
 * that forked. */
TN_API tn_status tn_scope_enter(tn_scope *scope, const tn_change *changes, size_t count,
                                tn_error *err);

/* The same with a captured or derived context in place of all that held before: changes of the
 * process are not seen inside. */
TN_API tn_status tn_scope_enter_context(tn_scope *scope, tn_context *context, tn_error *err);
TN_API void tn_scope_leave(tn_scope *scope); /* accepts NULL, {0}, and a scope that was left */

TN_END_DECLS

#endif
