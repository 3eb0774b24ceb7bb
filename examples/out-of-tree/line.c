#include "line.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char **environ;

enum { START_SECONDS = 5 };

/* A stream of one line waits for an event of another. */
typedef struct gate {
    struct gate *next;
    line *of; /* held */
    line_point at;
} gate;

struct line {
    const tn_host *host;
    _Atomic int32_t holders;
    int socket;
    pid_t server;
    ferry_segment *segment;
    pthread_mutex_t order;            /* of jobs: a number and its message go together */
    pthread_mutex_t requests;         /* one at a time */
    uint64_t queued[FERRY_STREAMS];   /* jobs so far; guarded by `order`, as is what follows */
    uint64_t turns[FERRY_EVENTS];     /* records so far */
    line_point records[FERRY_EVENTS]; /* the last of them */
    bool has_stream[FERRY_STREAMS];
    bool has_event[FERRY_EVENTS];
    gate *gates; /* that no one has come to yet */
    _Atomic uint64_t
        moves; /* chunks that were moved: who waits reads it, and sees what they hold */
    _Atomic bool is_lost;
    char cause[256]; /* written before that is set */
};

void line_hold(line *l)
{
    atomic_fetch_add(&l->holders, 1);
}

void line_release(line *l)
{
    if (atomic_fetch_sub(&l->holders, 1) > 1)
        return;
    if (l->segment)
        munmap(l->segment, sizeof *l->segment);
    if (l->socket >= 0)
        close(l->socket);
    pthread_mutex_destroy(&l->order);
    pthread_mutex_destroy(&l->requests);
    l->host->release(l->host->self, l);
}

ferry_segment *line_segment(line *l)
{
    return l->segment;
}

void line_cut(line *l)
{
    if (!atomic_load(&l->is_lost))
        kill(l->server, SIGKILL);
}

tn_status line_check(const line *l, const char *where, tn_error *err)
{
    return atomic_load(&l->is_lost) ? tn_fail(err, TN_DEVICE_LOST, 0, where, "%s", l->cause)
                                    : TN_OK;
}

/* What is known of the server's end. It has closed its socket, so it ends, or is made to. */
static void find_cause(line *l)
{
    int ending = 0;
    pid_t ended;
    kill(l->server, SIGKILL);
    do {
        ended = waitpid(l->server, &ending, 0);
    } while (ended < 0 && errno == EINTR);
    const char *own = l->segment->cause;
    l->segment->cause[sizeof l->segment->cause - 1] = '\0';
    if (own[0])
        snprintf(l->cause, sizeof l->cause, "the server (pid %d) ended: %s", (int)l->server, own);
    else if (ended == l->server && WIFSIGNALED(ending))
        snprintf(l->cause, sizeof l->cause, "the server (pid %d) ended by signal %d",
                 (int)l->server, WTERMSIG(ending));
    else
        snprintf(l->cause, sizeof l->cause, "the server (pid %d) ended", (int)l->server);
}

static bool send_all(const line *l, const ferry_message *message)
{
    ssize_t sent;
    do {
        sent = send(l->socket, message, sizeof *message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message;
}

static void move(const line *l, const ferry_message *note)
{
    unsigned char *chunk = l->segment->chunks[note->chunk % FERRY_CHUNKS];
    for (uint64_t row = 0; row < note->rows; row++) {
        if (note->kind == FERRY_FETCH)
            memcpy(chunk + row * note->bytes,
                   (const char *)(uintptr_t)note->from + row * note->from_pitch,
                   (size_t)note->bytes);
        else
            memcpy((char *)(uintptr_t)note->to + row * note->to_pitch, chunk + row * note->bytes,
                   (size_t)note->bytes);
    }
}

/* Takes a gate off the list, if it is still there: `wanted`, or any for NULL. */
static gate *gate_claim(line *l, const gate *wanted)
{
    pthread_mutex_lock(&l->order);
    gate **at = &l->gates;
    while (*at && wanted && *at != wanted)
        at = &(*at)->next;
    gate *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&l->order);
    return found;
}

static void gate_drop(const line *l, gate *g)
{
    line_release(g->of);
    l->host->release(l->host->self, g);
}

static void gate_pass(line *l, const gate *named)
{
    gate *g = gate_claim(l, named);
    if (!g)
        return;
    (void)line_wait(g->of, g->at, "ferry", NULL);
    gate_drop(l, g);
}

/* A gate is passed on a thread of its own: it may take as long as it likes. */
typedef struct errand {
    line *line;
    ferry_message note;
} errand;

static void *run_errand(void *user)
{
    errand *e = user;
    line *l = e->line;
    gate_pass(l, (const gate *)(uintptr_t)e->note.user);
    (void)send_all(l, &(ferry_message){.kind = FERRY_DONE, .stream = e->note.stream});
    l->host->release(l->host->self, e);
    line_release(l);
    return NULL;
}

/* A detached thread that leaves the program's signals to the program. */
static bool start_thread(void *(*run)(void *user), void *user)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool began = pthread_create(&thread, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (began)
        pthread_detach(thread);
    return began;
}

static bool run_call(line *l, const ferry_message *note)
{
    errand *e = l->host->alloc(l->host->self, sizeof *e, _Alignof(errand));
    if (!e)
        return false;
    *e = (errand){.line = l, .note = *note};
    line_hold(l);
    if (start_thread(run_errand, e))
        return true;
    l->host->release(l->host->self, e);
    line_release(l);
    return false;
}

/* Does what the server asks for, until it has ended. */
static bool serve(line *l, const ferry_message *note)
{
    if (note->kind == FERRY_RUN)
        return run_call(l, note);
    move(l, note);
    atomic_fetch_add(&l->moves, 1);
    return send_all(l, &(ferry_message){.kind = FERRY_DONE, .stream = note->stream});
}

static void *attend(void *user)
{
    line *l = user;
    ferry_message note;
    bool is_well = true;
    while (is_well) {
        ssize_t length = recv(l->socket, &note, sizeof note, 0);
        is_well = length == (ssize_t)sizeof note ? serve(l, &note) : length < 0 && errno == EINTR;
    }
    find_cause(l);
    atomic_store(&l->is_lost, true);
    ferry_tell(l->segment);
    for (gate *g = gate_claim(l, NULL); g; g = gate_claim(l, NULL))
        gate_drop(l, g);
    line_release(l);
    return NULL;
}

/* The message did not get through: the cause comes with whoever attends the line. */
static tn_status broken(line *l, const char *where, tn_error *err)
{
    while (!atomic_load(&l->is_lost)) {
        uint32_t seen = atomic_load(&l->segment->progress);
        if (!atomic_load(&l->is_lost))
            ferry_rest(l->segment, seen);
    }
    return line_check(l, where, err);
}

tn_status line_send(line *l, const ferry_message *message, const char *where, tn_error *err)
{
    return send_all(l, message) ? TN_OK : broken(l, where, err);
}

tn_status line_queue(line *l, ferry_message *job, const char *where, tn_error *err)
{
    pthread_mutex_lock(&l->order);
    job->number = ++l->queued[job->stream];
    if (job->kind == FERRY_RECORD) {
        job->turn = ++l->turns[job->event];
        l->records[job->event] = (line_point){job->stream, job->number};
    }
    bool sent = send_all(l, job);
    pthread_mutex_unlock(&l->order);
    return sent ? TN_OK : broken(l, where, err);
}

line_point line_last(line *l, uint32_t stream)
{
    pthread_mutex_lock(&l->order);
    line_point at = {stream, l->queued[stream]};
    pthread_mutex_unlock(&l->order);
    return at;
}

line_point line_recorded(line *l, uint32_t event)
{
    pthread_mutex_lock(&l->order);
    line_point at = l->records[event];
    pthread_mutex_unlock(&l->order);
    return at;
}

tn_status line_gate(line *l, uint32_t stream, line *of, uint32_t event, const char *where,
                    tn_error *err)
{
    gate *g = l->host->alloc(l->host->self, sizeof *g, _Alignof(gate));
    if (!g)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory for a wait");
    line_hold(of);
    *g = (gate){.of = of, .at = line_recorded(of, event)};
    pthread_mutex_lock(&l->order);
    g->next = l->gates;
    l->gates = g;
    pthread_mutex_unlock(&l->order);
    ferry_message job = {.kind = FERRY_CALL, .stream = stream, .user = (uint64_t)(uintptr_t)g};
    tn_status status = line_queue(l, &job, where, err);
    if (status && gate_claim(l, g))
        gate_drop(l, g);
    return status;
}

int32_t line_stream_take(line *l)
{
    int32_t found = -1;
    pthread_mutex_lock(&l->order);
    for (int32_t i = 1; i < FERRY_STREAMS && found < 0; i++) {
        if (!l->has_stream[i] && atomic_load(&l->segment->streams[i].done) >= l->queued[i])
            found = i;
    }
    if (found >= 0)
        l->has_stream[found] = true;
    pthread_mutex_unlock(&l->order);
    return found;
}

void line_stream_give(line *l, uint32_t stream)
{
    (void)send_all(l, &(ferry_message){.kind = FERRY_CLOSE, .stream = stream});
    pthread_mutex_lock(&l->order);
    l->has_stream[stream] = false;
    pthread_mutex_unlock(&l->order);
}

int32_t line_event_take(line *l)
{
    int32_t found = -1;
    pthread_mutex_lock(&l->order);
    for (int32_t i = 0; i < FERRY_EVENTS && found < 0; i++) {
        if (!l->has_event[i])
            found = i;
    }
    if (found >= 0)
        l->has_event[found] = true;
    pthread_mutex_unlock(&l->order);
    return found;
}

/* A record of it that is still queued stays what it is: those who wait for it wait for the job. */
void line_event_give(line *l, uint32_t event)
{
    pthread_mutex_lock(&l->order);
    l->has_event[event] = false;
    pthread_mutex_unlock(&l->order);
}

/* Waits until *number, which is in the segment, is at least `least`, or the line is lost. */
static tn_status wait_for(line *l, const _Atomic uint64_t *number, uint64_t least,
                          const char *where, tn_error *err)
{
    for (;;) {
        uint32_t seen = atomic_load(&l->segment->progress);
        if (atomic_load(number) >= least)
            return TN_OK;
        tn_status status = line_check(l, where, err);
        if (status)
            return status;
        ferry_rest(l->segment, seen);
    }
}

/* The server says how far it has come, but another thread of this process moved what was moved: reading
 * its count after the server's puts this thread behind that one. */
bool line_has(line *l, line_point at)
{
    bool is_done = atomic_load(&l->segment->streams[at.stream].done) >= at.number;
    (void)atomic_load(&l->moves);
    return is_done;
}

tn_status line_wait(line *l, line_point at, const char *where, tn_error *err)
{
    tn_status status = wait_for(l, &l->segment->streams[at.stream].done, at.number, where, err);
    (void)atomic_load(&l->moves);
    return status;
}

tn_status line_take(line *l, uint64_t bytes, const char *where, uint64_t *out, tn_error *err)
{
    pthread_mutex_lock(&l->requests);
    uint64_t next = atomic_load(&l->segment->answered) + 1;
    tn_status status =
        line_send(l, &(ferry_message){.kind = FERRY_ALLOC, .bytes = bytes}, where, err);
    if (!status)
        status = wait_for(l, &l->segment->answered, next, where, err);
    if (!status)
        *out = atomic_load(&l->segment->address);
    pthread_mutex_unlock(&l->requests);
    return status;
}

static tn_status fail_with(int code, const char *what, tn_error *err)
{
    return tn_fail(err, code == ENOMEM ? TN_OUT_OF_MEMORY : TN_UNAVAILABLE, code, "ferry: start",
                   "%s: %s", what, strerror(code));
}

/* The server's standard descriptors are the program's; of the others it gets its two alone. */
static int spawn(const line_plan *plan, int socket, int memory, pid_t *out)
{
    char bytes[24], server[] = "ferry-server";
    char *arguments[] = {server, bytes, (char *)(uintptr_t)plan->number, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)plan->memory);
    if (!plan->number[0])
        arguments[2] = NULL;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, socket, FERRY_SOCKET);
    posix_spawn_file_actions_adddup2(&actions, memory, FERRY_SEGMENT);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int code = posix_spawn(out, plan->server, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* A descriptor above those that the server gets, so that none of them is overwritten on the way. */
static int raise_descriptor(int low)
{
    int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FERRY_SEGMENT + 1);
    if (low >= 0)
        close(low);
    return high;
}

static tn_status start(line *l, const line_plan *plan, tn_error *err)
{
    int ends[2] = {-1, -1}, theirs, code;
    int memory = raise_descriptor(memfd_create("ferry", MFD_CLOEXEC));
    if (memory < 0 || ftruncate(memory, sizeof *l->segment) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        code = errno;
        if (memory >= 0)
            close(memory);
        return fail_with(code, "no memory or socket to share", err);
    }
    l->socket = ends[0];
    theirs = raise_descriptor(ends[1]);
    void *at = mmap(NULL, sizeof *l->segment, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    code = theirs < 0 || at == MAP_FAILED ? errno : 0;
    l->segment = at == MAP_FAILED ? NULL : at;
    if (!code)
        code = spawn(plan, theirs, memory, &l->server);
    if (theirs >= 0)
        close(theirs);
    close(memory);
    return code ? fail_with(code, plan->server, err) : TN_OK;
}

/* From here on someone attends the line; a server that does not come up is ended. */
static tn_status begin(line *l, tn_error *err)
{
    static const char where[] = "ferry: start";
    struct timespec now;
    line_hold(l);
    if (!start_thread(attend, l)) {
        line_release(l);
        kill(l->server, SIGKILL);
        waitpid(l->server, NULL, 0);
        return fail_with(EAGAIN, "no thread for the server", err);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t until = now.tv_sec + START_SECONDS; now.tv_sec <= until;) {
        uint32_t seen = atomic_load(&l->segment->progress);
        if (atomic_load(&l->segment->ready))
            return TN_OK;
        tn_status status = line_check(l, where, err);
        if (status)
            return status;
        ferry_rest(l->segment, seen);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    line_cut(l);
    return tn_fail(err, TN_TIMEOUT, 0, where, "the server was not up after %d s", START_SECONDS);
}

tn_status line_open(const line_plan *plan, line **out, tn_error *err)
{
    line *l = plan->host->alloc(plan->host->self, sizeof *l, _Alignof(line));
    if (!l)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "ferry: start", "no memory for a line");
    memset(l, 0, sizeof *l);
    l->host = plan->host;
    l->socket = -1;
    atomic_init(&l->holders, 1);
    pthread_mutex_init(&l->order, NULL);
    pthread_mutex_init(&l->requests, NULL);
    tn_status status = start(l, plan, err);
    if (!status)
        status = begin(l, err);
    if (status)
        line_release(l);
    else
        *out = l;
    return status;
}
