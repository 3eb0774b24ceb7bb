#include "faulty_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* One lock and one condition for all: this is a test. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

struct faulty_stream {
    faulty_stream *next; /* of all */
    fault wrong;
    faulty_job *first;
    bool is_busy, is_closed;
};

static faulty_stream *streams;

static int64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

/* With the lock held, as is what follows. */
static void mark_drop(faulty_mark *mark)
{
    if (mark && --mark->holders == 0)
        free(mark);
}

static void event_drop(faulty_event *event)
{
    if (!event || --event->holders > 0)
        return;
    mark_drop(event->latest);
    free(event);
}

static bool is_pending(const faulty_job *job)
{
    const faulty_mark *mark = job->event ? job->event->latest : job->mark;
    return mark && !mark->is_reached;
}

/* The next job: the first or, backwards, the last. */
static faulty_job *take(faulty_stream *stream)
{
    faulty_job **at = &stream->first;
    while (stream->wrong == FAULT_STREAM_BACKWARDS && (*at)->next)
        at = &(*at)->next;
    faulty_job *job = *at;
    *at = job->next;
    return job;
}

/* With the lock held but for the work. Work is slow, so that who does not wait for it is early. */
static void perform(const faulty_stream *stream, faulty_job *job)
{
    if (job->kind == JOB_WAIT) {
        while (is_pending(job))
            pthread_cond_wait(&change, &lock);
    } else if (job->kind == JOB_RECORD) {
        job->mark->is_reached = true;
        job->mark->ns = now();
    } else {
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        if (job->kind == JOB_COPY)
            faulty_copy(&job->copy, stream->wrong);
        else
            faulty_fill(&job->fill, stream->wrong);
        pthread_mutex_lock(&lock);
    }
}

static void *work(void *user)
{
    faulty_stream *stream = user, **at = &streams;
    pthread_mutex_lock(&lock);
    while (stream->first || !stream->is_closed) {
        if (!stream->first) {
            pthread_cond_wait(&change, &lock);
            continue;
        }
        faulty_job *job = take(stream);
        stream->is_busy = true;
        perform(stream, job);
        stream->is_busy = false;
        event_drop(job->event);
        mark_drop(job->mark);
        free(job);
        pthread_cond_broadcast(&change);
    }
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream);
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    return NULL;
}

faulty_stream *queue_open(fault wrong)
{
    pthread_t thread;
    faulty_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->wrong = wrong;
    pthread_mutex_lock(&lock);
    bool began = pthread_create(&thread, NULL, work, stream) == 0;
    if (began) {
        pthread_detach(thread);
        stream->next = streams;
        streams = stream;
    }
    pthread_mutex_unlock(&lock);
    if (!began)
        free(stream);
    return began ? stream : NULL;
}

void queue_close(faulty_stream *stream)
{
    pthread_mutex_lock(&lock);
    stream->is_closed = true;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

bool queue_add(faulty_stream *stream, const faulty_job *job)
{
    faulty_job *copy = malloc(sizeof *copy), **at;
    if (!copy)
        return false;
    *copy = *job;
    copy->next = NULL;
    pthread_mutex_lock(&lock);
    for (at = &stream->first; *at; at = &(*at)->next)
        continue;
    *at = copy;
    if (copy->event)
        copy->event->holders++;
    if (copy->mark)
        copy->mark->holders++;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    return true;
}

bool queue_is_done(faulty_stream *stream)
{
    pthread_mutex_lock(&lock);
    bool done = !stream->first && !stream->is_busy;
    pthread_mutex_unlock(&lock);
    return done;
}

void queue_wait(faulty_stream *stream)
{
    pthread_mutex_lock(&lock);
    while (stream->first || stream->is_busy)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

static bool are_all_done(void)
{
    for (const faulty_stream *stream = streams; stream; stream = stream->next) {
        if (stream->first || stream->is_busy)
            return false;
    }
    return true;
}

void queue_wait_all(void)
{
    pthread_mutex_lock(&lock);
    while (!are_all_done())
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

faulty_event *queue_event_create(void)
{
    faulty_event *event = calloc(1, sizeof *event);
    if (event)
        event->holders = 1;
    return event;
}

void queue_event_release(faulty_event *event)
{
    pthread_mutex_lock(&lock);
    event_drop(event);
    pthread_mutex_unlock(&lock);
}

faulty_mark *queue_mark_create(faulty_event *event)
{
    faulty_mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return NULL;
    mark->holders = 2;
    pthread_mutex_lock(&lock);
    mark_drop(event->latest);
    event->latest = mark;
    pthread_mutex_unlock(&lock);
    return mark;
}

faulty_mark *queue_mark_latest(faulty_event *event)
{
    pthread_mutex_lock(&lock);
    faulty_mark *mark = event->latest;
    if (mark)
        mark->holders++;
    pthread_mutex_unlock(&lock);
    return mark;
}

void queue_mark_release(faulty_mark *mark)
{
    pthread_mutex_lock(&lock);
    mark_drop(mark);
    pthread_mutex_unlock(&lock);
}

bool queue_event_is_done(faulty_event *event)
{
    pthread_mutex_lock(&lock);
    bool done = !event->latest || event->latest->is_reached;
    pthread_mutex_unlock(&lock);
    return done;
}

void queue_event_wait(faulty_event *event)
{
    faulty_mark *mark = queue_mark_latest(event);
    pthread_mutex_lock(&lock);
    while (mark && !mark->is_reached)
        pthread_cond_wait(&change, &lock);
    mark_drop(mark);
    pthread_mutex_unlock(&lock);
}

int64_t queue_event_ns(faulty_event *event)
{
    pthread_mutex_lock(&lock);
    int64_t ns = event->latest ? event->latest->ns : 0;
    pthread_mutex_unlock(&lock);
    return ns;
}

static void crash(void)
{
    (void)raise(SIGSEGV);
}

void faulty_copy(const tn_copy_job *job, fault wrong)
{
    char *to = job->to;
    const char *from = job->from;
    uint64_t rows = wrong == FAULT_COPY_ONE_ROW ? 1 : job->rows;
    uint64_t to_pitch = wrong == FAULT_COPY_FLAT ? job->bytes : job->to_pitch;
    for (uint64_t row = 0; row < rows; row++)
        memcpy(to + row * to_pitch, from + row * job->from_pitch,
               (size_t)job->bytes - (wrong == FAULT_COPY_SHORT));
    if (wrong == FAULT_COPY_LONG && job->to_device >= 0 && job->from_device >= 0)
        to[job->bytes] = (char)~to[job->bytes];
    if (wrong == FAULT_COPY_FLIPS && job->to_device < 0)
        to[job->bytes / 2] = (char)~to[job->bytes / 2];
    if (wrong == FAULT_CRASHES && job->bytes > 50000)
        crash();
}

void faulty_fill(const tn_fill_job *job, fault wrong)
{
    char *to = job->to;
    uint32_t size = wrong == FAULT_FILL_HALF && job->pattern_bytes == 8 ? 4 : job->pattern_bytes;
    memcpy(to, &job->pattern, size);
    for (uint64_t done = size, more; done < job->bytes; done += more) {
        more = done < job->bytes - done ? done : job->bytes - done;
        memcpy(to + done, to, (size_t)more);
    }
    if (wrong == FAULT_FILL_LONG)
        to[job->bytes] = (char)~to[job->bytes];
}
