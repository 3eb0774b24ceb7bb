#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if !defined(_WIN32)
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { NS = 1000000000 };

typedef struct errand {
    void (*run)(void *user);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_over;
} errand;

static void *run_errand(void *opaque)
{
    errand *e = opaque;
    e->run(e->user);
    pthread_mutex_lock(&e->lock);
    e->is_over = true;
    pthread_cond_signal(&e->ended);
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static struct timespec moment_in(double seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (time_t)seconds;
    at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * NS);
    if (at.tv_nsec >= NS) {
        at.tv_sec++;
        at.tv_nsec -= NS;
    }
    return at;
}

static bool await(errand *e, double seconds)
{
    struct timespec until = moment_in(seconds);
    int code = 0;
    pthread_mutex_lock(&e->lock);
    while (!e->is_over && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&e->ended, &e->lock, &until);
    bool over = e->is_over;
    pthread_mutex_unlock(&e->lock);
    return over;
}

host_ending host_run_for(void (*run)(void *user), void *user, double seconds)
{
    pthread_t thread;
    errand *e = malloc(sizeof *e);
    if (!e)
        return HOST_NO_THREAD;
    e->run = run;
    e->user = user;
    e->is_over = false;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->ended, NULL);
    bool began = pthread_create(&thread, NULL, run_errand, e) == 0;
    if (began && !await(e, seconds)) {
        pthread_detach(thread);
        return HOST_LATE; /* the errand now belongs to the thread */
    }
    if (began)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&e->ended);
    pthread_mutex_destroy(&e->lock);
    free(e);
    return began ? HOST_ENDED : HOST_NO_THREAD;
}

typedef struct companion {
    void (*run)(void *user, size_t index);
    void *user;
    size_t index;
    pthread_t thread;
} companion;

static void *run_companion(void *opaque)
{
    companion *c = opaque;
    c->run(c->user, c->index);
    return NULL;
}

bool host_run_together(size_t count, void (*run)(void *user, size_t index), void *user)
{
    companion *all = calloc(count, sizeof *all);
    size_t begun = 0;
    for (; all && begun < count; begun++) {
        all[begun] = (companion){.run = run, .user = user, .index = begun};
        if (pthread_create(&all[begun].thread, NULL, run_companion, &all[begun]) != 0)
            break;
    }
    for (size_t i = 0; i < begun; i++)
        pthread_join(all[i].thread, NULL);
    bool is_whole = all && begun == count;
    free(all);
    return is_whole;
}

double host_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / NS;
}

void host_pause(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * NS)};
    nanosleep(&left, NULL);
}

#if defined(_WIN32)

bool host_command(const char *line, char *text, size_t size)
{
    int code = system(line);
    snprintf(text, size, "ended with exit code %d", code);
    return code == 0;
}

host_child host_fork(bool (*run)(void *user, char *text, size_t size), void *user, double seconds,
                     char *text, size_t size)
{
    (void)run, (void)user, (void)seconds, (void)text, (void)size;
    return HOST_NO_FORK;
}

static const char *_Atomic last_place;

void host_supervise(void) {}

void host_end(int code)
{
    _Exit(code);
}

void host_place(const char *place)
{
    atomic_store(&last_place, place);
}

#else

bool host_command(const char *line, char *text, size_t size)
{
    int ending = system(line);
    if (ending == -1)
        snprintf(text, size, "could not be run: %s", strerror(errno));
    else if (WIFSIGNALED(ending))
        snprintf(text, size, "was ended by signal %d", WTERMSIG(ending));
    else
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(ending));
    return ending == 0;
}

/* Runs in the child: sends one byte for the answer, then its text. */
static void be_child(bool (*run)(void *user, char *text, size_t size), void *user, double seconds,
                     int to)
{
    char answer[512] = "";
    alarm((unsigned)seconds + 1);
    answer[0] = run(user, answer + 1, sizeof answer - 1) ? '1' : '0';
    size_t length = 1 + strlen(answer + 1);
    _exit(write(to, answer, length) == (ssize_t)length ? 0 : 1);
}

static size_t read_all(int from, char *to, size_t size)
{
    size_t length = 0;
    while (length < size) {
        ssize_t got = read(from, to + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    return length;
}

static host_child answer_of(const char *answer, size_t length, int ending, char *text, size_t size)
{
    if (length > 0) {
        snprintf(text, size, "%.*s", (int)(length - 1), answer + 1);
        return answer[0] == '1' ? HOST_CHILD_TRUE : HOST_CHILD_FALSE;
    }
    if (WIFSIGNALED(ending) && WTERMSIG(ending) == SIGALRM)
        snprintf(text, size, "the child process did not finish in time");
    else if (WIFSIGNALED(ending))
        snprintf(text, size, "the child process was ended by signal %d", WTERMSIG(ending));
    else
        snprintf(text, size, "the child process ended without an answer");
    return HOST_CHILD_FALSE;
}

host_child host_fork(bool (*run)(void *user, char *text, size_t size), void *user, double seconds,
                     char *text, size_t size)
{
    int ends[2], ending = 0;
    char answer[512];
    if (pipe(ends) != 0)
        return HOST_NO_FORK;
    pid_t child = fork();
    if (child == 0)
        be_child(run, user, seconds, ends[1]);
    close(ends[1]);
    size_t length = child < 0 ? 0 : read_all(ends[0], answer, sizeof answer);
    close(ends[0]);
    if (child < 0)
        return HOST_NO_FORK;
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        continue;
    return answer_of(answer, length, ending, text, size);
}

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };
static struct sigaction before[CRASHES];
static const char *_Atomic last_place;

/* Safe in a signal handler. */
static void write_place(const char *what, const char *place)
{
    const char *const parts[] = {"tenon conformance: ", what, " ", place, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            return;
    }
}

/* Memory that the supervised process shares with the one that waits for it. */
typedef struct shared_state {
    bool has_ended;   /* the suite itself ends the process */
    char place[8192]; /* what foreign code runs; "": none */
} shared_state;
static shared_state *shared; /* NULL if no process waits */

static void share_place(const char *place)
{
    if (shared)
        snprintf(shared->place, sizeof shared->place, "%s", place ? place : "");
}

static volatile pid_t supervised;

static void forward_signal(int number)
{
    kill(supervised, number);
}

static int wait_for_supervised(void)
{
    struct sigaction forward = {.sa_handler = forward_signal}, ignore = {.sa_handler = SIG_IGN};
    int ending = 0;
    sigemptyset(&forward.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGTERM, &forward, NULL);
    sigaction(SIGHUP, &forward, NULL);
    sigaction(SIGINT, &ignore, NULL); /* the terminal sends these two to both */
    sigaction(SIGQUIT, &ignore, NULL);
    while (waitpid(supervised, &ending, 0) < 0 && errno == EINTR)
        continue;
    return ending;
}

/* Ends this process as the supervised one ended. */
static void end_like(int ending)
{
    const struct rlimit no_core = {0, 0};
    if (WIFSIGNALED(ending)) {
        setrlimit(RLIMIT_CORE, &no_core); /* the other one has written its own */
        signal(WTERMSIG(ending), SIG_DFL);
        raise(WTERMSIG(ending));
    }
    if (shared->has_ended || !shared->place[0])
        _exit(WEXITSTATUS(ending));
    write_place("the process was ended by a call of _exit", shared->place);
    _exit(1);
}

void host_supervise(void)
{
    const pid_t self = getpid();
    void *memory =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    shared = memory;
    supervised = fork();
    if (supervised > 0)
        end_like(wait_for_supervised());
#if defined(__linux__)
    if (supervised == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (supervised == 0 && getppid() != self)
        _exit(1);
#endif
    (void)self;
}

void host_end(int code)
{
    if (shared)
        shared->has_ended = true;
    _Exit(code);
}

static void on_crash(int number)
{
    const char *place = atomic_exchange(&last_place, NULL);
    if (place)
        write_place("crashed", place);
    for (size_t i = 0; i < CRASHES; i++) {
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    }
    raise(number);
}

static void on_exit_called(void)
{
    const char *place = atomic_exchange(&last_place, NULL);
    if (!place)
        return;
    write_place("the process was ended by a call of exit", place);
    host_end(1);
}

void host_place(const char *place)
{
    static bool is_watching;
    atomic_store(&last_place, place);
    share_place(place);
    if (is_watching)
        return;
    is_watching = true;
    struct sigaction action = {.sa_handler = on_crash};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
    (void)atexit(on_exit_called);
}

#endif

const char *host_place_now(void)
{
    const char *place = atomic_load(&last_place);
    return place ? place : "";
}
