/* The machine behind async_platform.h: streams that are threads, events, gates. One lock guards
 * everything; all functions but the gates' are called with it held. */
#ifndef TENON_TEST_ASYNC_QUEUE_H
#define TENON_TEST_ASYNC_QUEUE_H

#include "async_platform.h"

/* Released when neither a creator nor an op names it any more. */
typedef struct event {
    struct event *next;
    int32_t device;
    uint32_t flags;
    int owners, ops;
    uint64_t number;
    uint64_t asked;   /* records queued so far   */
    uint64_t reached; /* the latest that has run */
    int64_t ns;       /* when that was           */
} event;

typedef struct op {
    struct op *next;
    enum { OP_COPY, OP_FILL, OP_RECORD, OP_WAIT, OP_CALL } kind;
    tn_copy_job copy;
    tn_fill_job fill;
    event *event;
    uint64_t turn; /* which of the event's records */
    void (*call)(void *user);
    void *user;
} op;

/* Ended and released by its own thread. */
typedef struct stream {
    struct stream *next;
    int32_t device;
    op *first, **last;
    bool busy, closing;
} stream;

typedef struct queue_device {
    stream *standard; /* NULL until something is queued on it */
    bool lost;
    char cause[128];
} queue_device;

extern tni_mutex queue_lock;
extern queue_device queue_devices[ASYNC_DEVICES];

void queue_change_wait(void);
void queue_change_tell(void);

/* NULL when the system gives no memory or thread. */
stream *queue_stream_start(int32_t device);
void queue_stream_close(stream *s);

/* Ends all streams of the device, of all for -1, and waits for that. Returns how many of them were
 * neither closed nor standard. */
int queue_streams_end(int32_t device);

/* NULL stands for the standard stream. */
bool queue_is_idle(int32_t device, const stream *s);
bool queue_device_is_idle(int32_t device);

/* Puts a copy of the op at the end of a stream. */
tn_status queue_add(int32_t device, stream *s, const op *what, tn_error *err);

event *queue_event_create(int32_t device, uint32_t flags); /* NULL for want of memory */
event *queue_event_find(int32_t device, uint64_t number);  /* with one more owner; or NULL */
void queue_event_disown(event *e);
int queue_events_give_up(int32_t device); /* nobody owns them; returns how many did */

/* Takes the lock itself. */
void queue_gate_pass(void *user); /* a gate */
async_gate *queue_gate_create(void);
void queue_gates_open(void);
void queue_gates_release(void);

#endif
