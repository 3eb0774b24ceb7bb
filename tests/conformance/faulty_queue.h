/* Streams that are threads, for the platform "faulty": what is queued on one is done in order, unless
 * the fault says otherwise. */
#ifndef TENON_TEST_FAULTY_QUEUE_H
#define TENON_TEST_FAULTY_QUEUE_H

#include "faults.h"

#include <stdbool.h>
#include <tenon/module/platform.h>

/* Owned by its creator; jobs that name it hold it too. */
typedef struct faulty_event {
    int32_t holders;
    uint64_t asked;   /* records queued         */
    uint64_t reached; /* the latest that has run */
    int64_t ns;       /* when                   */
} faulty_event;

typedef struct faulty_job {
    struct faulty_job *next;
    enum { JOB_COPY, JOB_FILL, JOB_RECORD, JOB_WAIT, JOB_CALL } kind;
    tn_copy_job copy;
    tn_fill_job fill;
    faulty_event *event;
    uint64_t turn; /* of the event's records */
    void (*call)(void *user);
    void *user;
} faulty_job;

typedef struct faulty_stream faulty_stream;

/* NULL for want of memory or threads. Closing lets its work end. */
faulty_stream *queue_open(fault wrong);
void queue_close(faulty_stream *stream);
bool queue_add(faulty_stream *stream, const faulty_job *job);
bool queue_is_done(faulty_stream *stream);
void queue_wait(faulty_stream *stream);
void queue_wait_all(void);

faulty_event *queue_event_create(void);
void queue_event_release(faulty_event *event);
uint64_t queue_event_ask(faulty_event *event); /* the turn of a new record */
bool queue_event_is_done(faulty_event *event);
void queue_event_wait(faulty_event *event);
int64_t queue_event_ns(faulty_event *event);

/* The work itself, as wrong as it is to be. */
void faulty_copy(const tn_copy_job *job, fault wrong);
void faulty_fill(const tn_fill_job *job, fault wrong);

#endif
