/* Streams: threads that do their jobs in order. */
#include "server.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    struct job *next;
    ferry_message message;
} job;

typedef struct stream {
    uint32_t number;
    job *first, **last;
    bool is_closed;
    bool is_answered; /* the module has done what was asked for */
} stream;

static stream *streams[FERRY_STREAMS]; /* NULL until the first job */
static bool taken[FERRY_CHUNKS];

static void change_tell(void)
{
    pthread_cond_broadcast(&change);
    ferry_tell(segment);
}

/* Sends the message and waits for the module. */
static void ask(stream *s, ferry_message *message)
{
    message->stream = s->number;
    pthread_mutex_lock(&lock);
    s->is_answered = false;
    pthread_mutex_unlock(&lock);
    send_message(message);
    pthread_mutex_lock(&lock);
    while (!s->is_answered)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

void stream_done(uint32_t number)
{
    if (number >= FERRY_STREAMS || !streams[number])
        give_up("the module answers a stream that is not there");
    streams[number]->is_answered = true;
    pthread_cond_broadcast(&change);
}

static uint32_t chunk_take(void)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (taken[i]) {
        if (++i < FERRY_CHUNKS)
            continue;
        pthread_cond_wait(&change, &lock);
        i = 0;
    }
    taken[i] = true;
    pthread_mutex_unlock(&lock);
    return i;
}

static void chunk_give(uint32_t chunk)
{
    pthread_mutex_lock(&lock);
    taken[chunk] = false;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* Rows that are dense on one side, from or to a chunk. */
static void copy_rows(char *to, uint64_t to_pitch, const char *from, uint64_t from_pitch,
                      uint64_t bytes, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++)
        memcpy(to + row * to_pitch, from + row * from_pitch, (size_t)bytes);
}

/* One part of a copy that fits a chunk: `rows` rows of `bytes` bytes, from both sides' addresses. */
static void cross(stream *s, const ferry_message *part, uint32_t chunk)
{
    char *bytes = (char *)segment->chunks[chunk];
    ferry_message note = *part;
    note.chunk = chunk;
    note.kind = part->way == FERRY_IN ? FERRY_FETCH : FERRY_STORE;
    if (part->way == FERRY_IN)
        ask(s, &note);
    if (part->way == FERRY_IN)
        copy_rows(at(part->to), part->to_pitch, bytes, part->bytes, part->bytes, part->rows);
    else
        copy_rows(bytes, part->bytes, at(part->from), part->from_pitch, part->bytes, part->rows);
    if (part->way == FERRY_OUT)
        ask(s, &note);
}

/* Rows that fit a chunk go together; one that does not goes in pieces. */
static void copy_through(stream *s, const ferry_message *m)
{
    uint32_t chunk = chunk_take();
    uint64_t together = m->bytes < FERRY_CHUNK ? FERRY_CHUNK / m->bytes : 1;
    for (uint64_t row = 0; row < m->rows; row += together) {
        uint64_t left = m->rows - row;
        for (uint64_t done = 0; done < m->bytes; done += FERRY_CHUNK) {
            uint64_t more = m->bytes - done;
            ferry_message part = *m;
            part.to += row * m->to_pitch + done;
            part.from += row * m->from_pitch + done;
            part.rows = left < together ? left : together;
            part.bytes = more < FERRY_CHUNK ? more : FERRY_CHUNK;
            cross(s, &part, chunk);
        }
    }
    chunk_give(chunk);
}

static void copy(stream *s, const ferry_message *m)
{
    if (m->way != FERRY_IN)
        memory_check(m->from, m, m->from_pitch);
    if (m->way != FERRY_OUT)
        memory_check(m->to, m, m->to_pitch);
    if (m->way == FERRY_WITHIN)
        copy_rows(at(m->to), m->to_pitch, at(m->from), m->from_pitch, m->bytes, m->rows);
    else
        copy_through(s, m);
}

static void fill(const ferry_message *m)
{
    char *to = at(m->to);
    memory_check(m->to, m, m->bytes);
    memcpy(to, &m->pattern, m->pattern_bytes);
    for (uint64_t done = m->pattern_bytes, more; done < m->bytes; done += more) {
        more = done < m->bytes - done ? done : m->bytes - done;
        memcpy(to + done, to, (size_t)more);
    }
}

/* Of two records that run in another order than they were queued in, the later queued one counts. */
static void record(const ferry_message *m)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    if (m->turn > atomic_load(&segment->events[m->event].turn)) {
        atomic_store(&segment->events[m->event].ns, now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
        atomic_store(&segment->events[m->event].turn, m->turn);
    }
    pthread_mutex_unlock(&lock);
}

static void wait_for(const ferry_message *m)
{
    pthread_mutex_lock(&lock);
    while (atomic_load(&segment->streams[m->after_stream].done) < m->after)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

static void perform(stream *s, ferry_message *m)
{
    switch (m->kind) {
    case FERRY_COPY: copy(s, m); break;
    case FERRY_FILL: fill(m); break;
    case FERRY_RECORD: record(m); break;
    case FERRY_WAIT: wait_for(m); break;
    default: {
        ferry_message note = *m;
        note.kind = FERRY_RUN;
        ask(s, &note);
        break;
    }
    }
}

static void *work(void *user)
{
    stream *s = user;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!s->first && !s->is_closed)
            pthread_cond_wait(&change, &lock);
        job *next = s->first;
        if (!next)
            break;
        s->first = next->next;
        if (!s->first)
            s->last = &s->first;
        pthread_mutex_unlock(&lock);
        perform(s, &next->message);
        pthread_mutex_lock(&lock);
        atomic_store(&segment->streams[s->number].done, next->message.number);
        free(next);
        change_tell();
    }
    streams[s->number] = NULL;
    free(s);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static stream *stream_open(uint32_t number)
{
    pthread_t thread;
    stream *s = calloc(1, sizeof *s);
    if (!s)
        give_up("it has no memory for a stream");
    s->number = number;
    s->last = &s->first;
    streams[number] = s;
    if (pthread_create(&thread, NULL, work, s) != 0)
        give_up("the system gives it no thread for a stream");
    pthread_detach(thread);
    return s;
}

void stream_add(const ferry_message *message)
{
    stream *s = message->stream < FERRY_STREAMS ? streams[message->stream] : NULL;
    if (message->stream >= FERRY_STREAMS || message->after_stream >= FERRY_STREAMS ||
        message->event >= FERRY_EVENTS)
        give_up("the module names a stream or an event that cannot be");
    if (message->kind == FERRY_CLOSE) {
        if (s)
            s->is_closed = true;
        pthread_cond_broadcast(&change);
        return;
    }
    job *added = malloc(sizeof *added);
    if (!added)
        give_up("it has no memory for a job");
    *added = (job){.message = *message};
    if (!s)
        s = stream_open(message->stream);
    *s->last = added;
    s->last = &added->next;
    pthread_cond_broadcast(&change);
}
