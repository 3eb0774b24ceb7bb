#include "process.h"

#include "base/log.h"
#include "os/fork.h"
#include "os/parallel.h"
#include "os/thread.h"
#include "views.h"

_Atomic uint64_t tni_settings_generation;

/* Hazard pointers. A reader announces the context that it is about to retain, then checks that it
 * is still the published one. A writer publishes the new context, then checks the announcements
 * before it releases the old one. So either the reader sees the new context, or the writer sees the
 * reader. */
static struct {
    tni_mutex turn; /* serializes changes */
    tni_mutex lock; /* guards `readers`; lock order: `turn` before `lock` */
    tn_context *_Atomic published;
    tn_context *retired; /* replaced while a reader was using them */
    tni_reader *readers;
    tni_sources sources; /* its context may be published repeatedly, and is never retired */
    _Atomic bool frozen;
    tni_pool *ended; /* pool that the first read ended, or NULL */
} process = {.turn = TNI_MUTEX_INIT, .lock = TNI_MUTEX_INIT};

static _Thread_local tni_reader *mine; /* the calling thread's, or NULL */

void tni_settings_lock(void)
{
    tni_mutex_lock(&process.lock);
}

void tni_settings_unlock(void)
{
    tni_mutex_unlock(&process.lock);
}

static void before_fork(void)
{
    tni_mutex_lock(&process.turn);
}

static void after_fork_in_parent(void)
{
    tni_mutex_unlock(&process.turn);
}

/* The lock may have been held by a thread that does not exist in the child: reinitializes it and
 * everything it guards. */
static void after_fork_in_child(void)
{
    tni_mutex_init(&process.lock);
    process.readers = NULL;
    if (mine) {
        atomic_store(&mine->sees, NULL);
        tni_reader_add(mine);
    }
    tni_mutex_unlock(&process.turn);
}

/* Registers the hook of parallel loops first: a change may set their number of threads while it
 * holds `turn`. */
static void watch_forks(void)
{
    static const tni_fork_hook hook = {before_fork, after_fork_in_parent, after_fork_in_child};
    tni_parallel_watch_forks();
    tni_fork_watch(&hook);
}

static void init_process(void)
{
    tn_error err;
    watch_forks();
    tni_sources_read(&process.sources);
    tn_context *context = process.sources.context;
    if (context != tni_context_defaults() &&
        tni_settings_force(context, true, &process.ended, &err) != TN_OK)
        tni_sources_add_problem(&process.sources, err.message);
    atomic_store(&process.published, tn_context_retain(context));
    atomic_store(&tni_settings_generation, 1);
}

void tni_settings_load(void)
{
    static tni_once once = TNI_ONCE_INIT;
    static _Atomic bool told;
    if (atomic_load_explicit(&tni_settings_generation, memory_order_acquire) != 0)
        return;
    tni_once_run(&once, init_process);
    if (atomic_exchange(&told, true))
        return;
    tni_pool_destroy(process.ended);
    for (size_t i = 0; i < process.sources.problem_count; i++)
        tni_log(TN_LOG_WARNING, "settings: %s", process.sources.problems[i]);
}

const tni_sources *tni_settings_sources(void)
{
    tni_settings_load();
    return &process.sources;
}

void tni_reader_add(tni_reader *reader)
{
    tni_settings_lock();
    reader->before = NULL;
    reader->next = process.readers;
    if (reader->next)
        reader->next->before = reader;
    process.readers = reader;
    tni_settings_unlock();
}

void tni_reader_remove(tni_reader *reader)
{
    tni_settings_lock();
    if (reader->next)
        reader->next->before = reader->before;
    if (reader->before)
        reader->before->next = reader->next;
    else
        process.readers = reader->next;
    tni_settings_unlock();
    if (mine == reader)
        mine = NULL;
}

void tni_reader_use(tni_reader *reader)
{
    mine = reader;
}

tn_context *tni_process_context(void)
{
    tn_context *seen;
    if (!mine) {
        tni_settings_lock();
        seen = tn_context_retain(atomic_load(&process.published));
        tni_settings_unlock();
        return seen;
    }
    do {
        seen = atomic_load(&process.published);
        atomic_store(&mine->sees, seen);
    } while (seen != atomic_load(&process.published));
    tn_context_retain(seen);
    atomic_store(&mine->sees, NULL);
    return seen;
}

static bool is_seen(const tn_context *context)
{
    for (tni_reader *reader = process.readers; reader; reader = reader->next) {
        if (atomic_load(&reader->sees) == context)
            return true;
    }
    return false;
}

/* Releases replaced contexts that no reader uses. Must be called with `turn` and `lock` held. */
static void retire_context(tn_context *old)
{
    tn_context **at = &process.retired;
    if (old == process.sources.context) {
        tn_context_release(old);
    } else {
        old->next = process.retired;
        process.retired = old;
    }
    while (*at) {
        tn_context *context = *at;
        if (is_seen(context)) {
            at = &context->next;
            continue;
        }
        *at = context->next;
        tn_context_release(context);
    }
}

/* Takes over the caller's reference to `context`. Must be called with `turn` held. */
static void publish_context(tn_context *context)
{
    tn_context *old = atomic_exchange(&process.published, context);
    atomic_fetch_add(&tni_settings_generation, 1);
    tni_settings_lock();
    retire_context(old);
    tni_settings_unlock();
}

void tni_settings_invalidate(void)
{
    atomic_fetch_add(&tni_settings_generation, 1);
}

static tn_status check_frozen(const char *where, tn_error *err)
{
    if (!atomic_load(&process.frozen))
        return TN_OK;
    return tn_fail(err, TN_REFUSED, 0, where,
                   "the settings are frozen (tn_settings_freeze); change them for a thread with a "
                   "scope, or for a call with a context");
}

static bool names_setting(const tn_change *changes, size_t count, tn_setting setting)
{
    for (size_t i = 0; i < count; i++) {
        if (changes[i].setting == setting)
            return true;
    }
    return false;
}

/* Applies a made context to the lower layers and publishes it, if all before succeeded; otherwise
 * releases it. Must be called with `turn` held, which it gives up. */
static tn_status finish_change(tn_status status, tn_context *made, bool threads, tn_error *err)
{
    tni_pool *ended = NULL;
    if (!status)
        status = tni_settings_force(made, threads, &ended, err);
    if (status)
        tn_context_release(made);
    else
        publish_context(made);
    tni_mutex_unlock(&process.turn);
    tni_pool_destroy(ended);
    return status;
}

tn_status tn_settings_change(const tn_change *changes, size_t count, tn_error *err)
{
    static const char where[] = "tn_settings_change";
    tn_context *made = NULL;
    tni_settings_load();
    tni_mutex_lock(&process.turn);
    tn_status status = check_frozen(where, err);
    if (!status)
        status = tni_context_change(atomic_load(&process.published), changes, count,
                                    TN_LEVEL_PROCESS, TNI_DEPTH_PROCESS, where, &made, err);
    const bool threads = !status && names_setting(changes, count, TN_SETTING_CPU_THREADS);
    return finish_change(status, made, threads, err);
}

tn_status tn_settings_set(const char *text, tn_error *err)
{
    tn_change change;
    tn_status status = tn_setting_parse(text, &change, err);
    return status ? status : tn_settings_change(&change, 1, err);
}

/* Whether the context changes the number of threads. Must be called with `turn` held. */
static bool other_threads(const tn_context *context)
{
    const tn_context *now = atomic_load(&process.published);
    return now->value[TN_SETTING_CPU_THREADS] != context->value[TN_SETTING_CPU_THREADS];
}

/* Whether no process-level value remains once `setting` (-1: all) is reset. */
static bool is_last(const tn_context *now, tn_setting setting)
{
    const tn_change change = {.setting = setting};
    tn_change rows[TNI_VIEW_MOST];
    if (setting < 0)
        return true;
    size_t count = tni_change_rows(&change, rows);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (now->level[i] == TN_LEVEL_PROCESS && !names_setting(rows, count, i))
            return false;
    }
    return true;
}

/* If no process-level value remains, reuses the context that was read, which needs no memory. */
static tn_status reset_setting(tn_setting setting, const char *where, tn_error *err)
{
    tn_context *made = NULL;
    tni_settings_load();
    tni_mutex_lock(&process.turn);
    const tn_context *now = atomic_load(&process.published);
    tn_status status = check_frozen(where, err);
    if (!status && is_last(now, setting))
        made = tn_context_retain(process.sources.context);
    else if (!status)
        status = tni_context_restore(now, process.sources.context, setting, TNI_DEPTH_PROCESS,
                                     where, &made, err);
    const bool threads = !status && (setting == TN_SETTING_CPU_THREADS || other_threads(made));
    return finish_change(status, made, threads, err);
}

tn_status tn_settings_reset(const char *key, tn_error *err)
{
    static const char where[] = "tn_settings_reset";
    tn_setting setting = key ? tni_setting_find(key) : -1;
    return key && setting < 0 ? tni_setting_unknown(key, where, err)
                              : reset_setting(setting, where, err);
}

void tn_settings_freeze(void)
{
    tni_mutex_lock(&process.turn);
    atomic_store(&process.frozen, true);
    tni_mutex_unlock(&process.turn);
}

int32_t tn_settings_frozen(void)
{
    return atomic_load(&process.frozen);
}

const char *tn_settings_problem(size_t index)
{
    const tni_sources *sources = tni_settings_sources();
    return index < sources->problem_count ? sources->problems[index] : NULL;
}

const char *tn_settings_file(void)
{
    const char *file = tni_settings_sources()->file;
    return file ? file : "";
}
