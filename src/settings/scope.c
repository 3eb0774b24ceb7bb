/* The context of a thread: the process's settings plus the scopes that the thread is in. */
#include "base/alloc.h"
#include "os/thread.h"
#include "process.h"
#include "table.h"

typedef struct node node;

_Thread_local tni_thread_view tni_view;

/* State of one thread. */
typedef struct thread {
    node *innermost;
    node *outermost;
    tni_reader reader;
    tni_thread_end end;
} thread;

/* NULL until the thread is registered as a reader and its end is observed. The first thread uses
 * static memory. */
static _Thread_local thread *mine;
static thread first;
static _Atomic bool first_taken;

/* An entered scope. Owned by its thread until that ends; then whoever leaves it frees it. */
struct node {
    thread *_Atomic owner;
    _Atomic bool left; /* left by another thread */
    node *outer;
    node *inner;
    tn_context *before; /* the context outside, as last computed; holds a reference */
    tn_context *whole;  /* replaces everything outside; holds a reference, or NULL */
    size_t count;
    tn_change changes[]; /* followed by their texts */
};

static void empty_node(node *scope)
{
    tn_context_release(scope->before);
    tn_context_release(scope->whole);
    scope->before = scope->whole = NULL;
}

static void free_node(node *scope)
{
    empty_node(scope);
    tni_release(scope);
}

static void unlink_node(thread *of, node *scope)
{
    *(scope->inner ? &scope->inner->outer : &of->innermost) = scope->outer;
    *(scope->outer ? &scope->outer->inner : &of->outermost) = scope->inner;
}

static thread *make_thread(void)
{
    if (!atomic_exchange(&first_taken, true))
        return &first;
    return tni_alloc_zeroed(1, sizeof(thread));
}

static void free_thread(thread *unused)
{
    if (unused != &first) {
        tni_release(unused);
        return;
    }
    first = (thread){0};
    atomic_store(&first_taken, false);
}

/* Scopes that were not left stay allocated for whoever leaves them later, as a tn_scope points to
 * them. */
static void end_thread(tni_thread_end *end)
{
    thread *ending = (thread *)(void *)((char *)end - offsetof(thread, end));
    tni_reader_remove(&ending->reader);
    tni_settings_lock();
    for (node *scope = ending->innermost; scope;) {
        node *outer = scope->outer;
        if (atomic_load(&scope->left)) {
            free_node(scope);
        } else {
            empty_node(scope);
            atomic_store(&scope->owner, NULL);
        }
        scope = outer;
    }
    tni_settings_unlock();
    tn_context_release(tni_view.context);
    tni_view = (tni_thread_view){0};
    mine = NULL;
    free_thread(ending);
}

/* Registers the thread as a lock-free reader. If out of memory it stays unregistered, and reads
 * under the lock. */
static void get_known(void)
{
    thread *known = make_thread();
    if (!known)
        return;
    known->end.run = end_thread;
    if (!tni_thread_end_add(&known->end)) {
        free_thread(known);
        return;
    }
    tni_reader_add(&known->reader);
    tni_reader_use(&known->reader);
    mine = known;
}

static void drop_left(void)
{
    for (node *scope = mine ? mine->innermost : NULL; scope;) {
        node *outer = scope->outer;
        if (atomic_load(&scope->left)) {
            unlink_node(mine, scope);
            free_node(scope);
        }
        scope = outer;
    }
}

/* The context inside `scope` if `outside` is the one around it; the caller releases it. Fails only
 * if out of memory (NULL): its changes were validated when it was entered. */
static tn_context *inside_of(const node *scope, const tn_context *outside)
{
    tn_context *made = NULL;
    if (scope->whole)
        return tn_context_retain(scope->whole);
    (void)tni_context_change(outside, scope->changes, scope->count, TN_LEVEL_SCOPE,
                             tni_depth_within(outside), "tn_scope_enter", &made, NULL);
    return made;
}

/* Applies every scope to the process's settings. If out of memory, the thread keeps its old
 * context, and the next read tries again. */
const tn_context *tni_context_refresh(void)
{
    tni_settings_load();
    if (!mine)
        get_known();
    uint64_t generation = atomic_load(&tni_settings_generation);
    tn_context *view = tni_process_context();
    drop_left();
    for (node *scope = mine ? mine->outermost : NULL; scope && view; scope = scope->inner) {
        tn_context *made = inside_of(scope, view);
        tn_context_release(scope->before);
        scope->before = view;
        view = made;
    }
    if (!view)
        return tni_view.context;
    tn_context_release(tni_view.context);
    tni_view.context = view;
    tni_view.generation = generation;
    return view;
}

static size_t text_size(const tn_change *change)
{
    bool has = change->text && tni_setting_row_of(change->setting)->kind >= TN_VALUE_ORDER;
    return has ? strlen(change->text) + 1 : 0;
}

/* The changes must be validated. Returns NULL if out of memory, or if the thread's end cannot be
 * observed. */
static node *make_node(const tn_change *changes, size_t count)
{
    size_t size = sizeof(node) + count * sizeof(tn_change);
    for (size_t i = 0; i < count; i++)
        size += text_size(&changes[i]);
    node *scope = mine ? tni_alloc(size) : NULL;
    if (!scope)
        return NULL;
    atomic_init(&scope->owner, mine);
    atomic_init(&scope->left, false);
    scope->before = scope->whole = NULL;
    scope->count = count;
    char *text = (char *)&scope->changes[count];
    for (size_t i = 0; i < count; i++) {
        size_t length = text_size(&changes[i]);
        scope->changes[i] = changes[i];
        scope->changes[i].text = length ? text : NULL;
        if (length)
            memcpy(text, changes[i].text, length);
        text += length;
    }
    return scope;
}

/* Makes `scope` the innermost, with `view` as its context; takes over the caller's reference to
 * `view`. */
static void push_scope(tn_scope *out, node *scope, tn_context *view)
{
    scope->outer = mine->innermost;
    scope->inner = NULL;
    *(mine->innermost ? &mine->innermost->inner : &mine->outermost) = scope;
    mine->innermost = scope;
    scope->before = tni_view.context;
    tni_view.context = view;
    out->inside = scope;
}

static tn_status check_scope(const tn_scope *scope, const char *where, tn_error *err)
{
    if (!scope)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the scope is NULL");
    if (scope->inside)
        return tn_fail(
            err, TN_BUSY, 0, where,
            "this scope was entered already; leave it first, or use another scope initialized "
            "with {0}");
    return TN_OK;
}

tn_status tn_scope_enter(tn_scope *scope, const tn_change *changes, size_t count, tn_error *err)
{
    static const char where[] = "tn_scope_enter";
    tn_context *view = NULL;
    tn_status status = check_scope(scope, where, err);
    if (status)
        return status;
    const tn_context *outside = tni_context_current();
    status = tni_context_change(outside, changes, count, TN_LEVEL_SCOPE, tni_depth_within(outside),
                                where, &view, err);
    if (status)
        return status;
    node *made = make_node(changes, count);
    if (!made) {
        tn_context_release(view);
        return tni_no_memory(err, where, "a scope");
    }
    push_scope(scope, made, view);
    return TN_OK;
}

tn_status tn_scope_enter_context(tn_scope *scope, tn_context *context, tn_error *err)
{
    static const char where[] = "tn_scope_enter_context";
    tn_status status = check_scope(scope, where, err);
    if (status)
        return status;
    if (!context)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the context is NULL");
    (void)tni_context_current();
    node *made = make_node(NULL, 0);
    if (!made)
        return tni_no_memory(err, where, "a scope");
    made->whole = tn_context_retain(context);
    push_scope(scope, made, tn_context_retain(context));
    return TN_OK;
}

/* Leaving the innermost scope restores the context from before; changes by other threads are
 * noticed at the next read. Leaving another scope invalidates the context, as the inner ones must
 * be rebuilt on a new outside. */
static void leave_own(node *scope)
{
    tn_context **outside = scope->inner ? &scope->inner->before : &tni_view.context;
    unlink_node(mine, scope);
    tn_context_release(*outside);
    *outside = scope->before;
    scope->before = NULL;
    if (scope->inner)
        tni_view.generation = 0;
    free_node(scope);
}

static void leave_foreign(node *scope)
{
    tni_settings_lock();
    bool orphan = !atomic_load(&scope->owner);
    if (!orphan) {
        atomic_store(&scope->left, true);
        tni_settings_invalidate();
    }
    tni_settings_unlock();
    if (orphan)
        free_node(scope);
}

void tn_scope_leave(tn_scope *scope)
{
    node *inside = scope ? scope->inside : NULL;
    if (!inside)
        return;
    scope->inside = NULL;
    if (mine && atomic_load_explicit(&inside->owner, memory_order_relaxed) == mine)
        leave_own(inside);
    else
        leave_foreign(inside);
}
