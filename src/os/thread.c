#include "thread.h"

#include <errno.h>
#include <time.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>
#endif

/* Lock functions fail only if misused, so their results are ignored. */
void tni_mutex_init(tni_mutex *mutex)
{
    (void)pthread_mutex_init(&mutex->native, NULL);
}

void tni_mutex_destroy(tni_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->native);
}

void tni_mutex_lock(tni_mutex *mutex)
{
    (void)pthread_mutex_lock(&mutex->native);
}

void tni_mutex_unlock(tni_mutex *mutex)
{
    (void)pthread_mutex_unlock(&mutex->native);
}

/* Clock for waits with a time limit; follows changes of the date on systems without a better
 * one. */
#if defined(_WIN32) || defined(__APPLE__)
enum { WAIT_CLOCK = CLOCK_REALTIME };

void tni_condition_init(tni_condition *condition)
{
    (void)pthread_cond_init(&condition->native, NULL);
}
#else
enum { WAIT_CLOCK = CLOCK_MONOTONIC };

void tni_condition_init(tni_condition *condition)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, WAIT_CLOCK);
    (void)pthread_cond_init(&condition->native, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}
#endif

void tni_condition_destroy(tni_condition *condition)
{
    (void)pthread_cond_destroy(&condition->native);
}

void tni_condition_wait(tni_condition *condition, tni_mutex *mutex)
{
    (void)pthread_cond_wait(&condition->native, &mutex->native);
}

bool tni_condition_wait_for(tni_condition *condition, tni_mutex *mutex, int64_t ns)
{
    enum { SECOND = 1000000000 };
    struct timespec end;
    (void)clock_gettime(WAIT_CLOCK, &end);
    int64_t left = end.tv_nsec + ns;
    end.tv_sec += (time_t)(left / SECOND);
    end.tv_nsec = (long)(left % SECOND);
    return pthread_cond_timedwait(&condition->native, &mutex->native, &end) != ETIMEDOUT;
}

void tni_condition_wake_one(tni_condition *condition)
{
    (void)pthread_cond_signal(&condition->native);
}

void tni_condition_wake_all(tni_condition *condition)
{
    (void)pthread_cond_broadcast(&condition->native);
}

void tni_once_run(tni_once *once, void (*run)(void))
{
    (void)pthread_once(&once->native, run);
}

static void *run_thread(void *made)
{
    const tni_thread *thread = made;
    thread->run(thread->user);
    return NULL;
}

#if defined(_WIN32)

static int spawn(tni_thread *out)
{
    return pthread_create(&out->native, NULL, run_thread, out);
}

#else

/* A new thread inherits the signal mask of its creator, so the creator sets the new mask
 * temporarily. Signals for a thread's own faults are not blocked: that would only prevent the
 * program's crash handler from running. */
static int spawn(tni_thread *out)
{
    static const int own_faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own_faults / sizeof own_faults[0]; i++)
        sigdelset(&blocked, own_faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int error = tni_sys_thread_create(&out->native, run_thread, out);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif

tn_status tni_thread_create(tni_thread *out, void (*run)(void *), void *user, tn_error *err)
{
    const char *where = "pthread_create";
    *out = (tni_thread){.run = run, .user = user};
    int error = spawn(out);
    if (error != 0)
        return tn_fail(
            err, error == ENOMEM ? TN_OUT_OF_MEMORY : TN_BUSY, error, where,
            "the system could not create a thread (error %d); check its limits on memory "
            "and on the number of threads",
            error);
    return TN_OK;
}

void tni_thread_join(tni_thread thread)
{
    (void)pthread_join(thread.native, NULL);
}

void tni_thread_detach_self(void)
{
    (void)pthread_detach(pthread_self());
}

/* Each thread's list is stored under the key, not in a thread-local variable: those may already be
 * destroyed when the list runs. */
static pthread_key_t ends;
static bool has_ends;

static void run_ends(void *first)
{
    for (tni_thread_end *end = first, *next; end; end = next) {
        next = end->next;
        end->run(end);
    }
}

static void make_ends(void)
{
    has_ends = pthread_key_create(&ends, run_ends) == 0;
}

static bool ends_exist(void)
{
    static tni_once once = TNI_ONCE_INIT;
    tni_once_run(&once, make_ends);
    return has_ends;
}

bool tni_thread_end_add(tni_thread_end *end)
{
    if (!ends_exist())
        return false;
    end->next = pthread_getspecific(ends);
    return pthread_setspecific(ends, end) == 0;
}

void tni_thread_end_remove(tni_thread_end *end)
{
    tni_thread_end *first = pthread_getspecific(ends), **link = &first;
    while (*link && *link != end)
        link = &(*link)->next;
    if (*link)
        *link = end->next;
    (void)pthread_setspecific(ends, first);
}

void tni_thread_ends_run(void)
{
    void *first = ends_exist() ? pthread_getspecific(ends) : NULL;
    if (first) {
        (void)pthread_setspecific(ends, NULL);
        run_ends(first);
    }
}

uint64_t tni_thread_id(void)
{
    static _Thread_local char mine;
    return (uint64_t)(uintptr_t)&mine;
}

#if defined(_WIN32)

int32_t tni_thread_processors(void)
{
    DWORD_PTR mine = 0, all = 0;
    int32_t count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all))
        for (; mine != 0; mine &= mine - 1)
            count++;
    return count > 0 ? count : 1;
}

#else

/* Returns 0 if the system does not report it. The mask is the calling thread's, which threads it
 * creates inherit; it has room for 65536 processors, eight times the maximum of Linux. */
static long affinity(void)
{
#if defined(__linux__)
    cpu_set_t sets[64];
    if (sched_getaffinity(0, sizeof sets, sets) == 0)
        return CPU_COUNT_S(sizeof sets, sets);
#endif
    return 0;
}

int32_t tni_thread_processors(void)
{
    long count = affinity();
    if (count < 1)
        count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int32_t)count : 1;
}

#endif
