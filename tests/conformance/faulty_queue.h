/* Streams that are threads, for the platform "faulty": what is queued on one is done in order, unless
 * the fault says otherwise. */
#ifndef TENON_TEST_FAULTY_QUEUE_H
#define TENON_TEST_FAULTY_QUEUE_H

#include "faults.h"

#include <stdbool.h>
#include <tenon/module/platform.h>

/* One record of an event. */
typedef struct faulty_mark {
    int32_t holders;
    bool is_reached;
    int64_t ns; /* when */
} faulty_mark;

/* Its owner and jobs that name it hold it. */
typedef struct faulty_event {
    int32_t holders;
    faulty_mark *latest; /* held; NULL until the first record */
} faulty_event;

typedef struct faulty_job {
    struct faulty_job *next;
    enum { JOB_COPY, JOB_FILL, JOB_RECORD, JOB_WAIT } kind;
    tn_copy_job copy;
    tn_fill_job fill;
    faulty_event *event; /* of a wait that is wrong */
    faulty_mark *mark;
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
bool queue_event_is_done(faulty_event *event);
void queue_event_wait(faulty_event *event);
int64_t queue_event_ns(faulty_event *event);

/* A new record, or the latest: held for the caller; NULL for want of memory, or when there is none. */
faulty_mark *queue_mark_create(faulty_event *event);
faulty_mark *queue_mark_latest(faulty_event *event);
void queue_mark_release(faulty_mark *mark);

/* The work itself, as wrong as it is to be. */
void faulty_copy(const tn_copy_job *job, fault wrong);
void faulty_fill(const tn_fill_job *job, fault wrong);

#endif
