/* The line to one server: how it is started, spoken to, waited for, and found dead.
 *
 * A line is never repaired: when its server has ended it is lost, for good and with the cause, and
 * whoever waits on it comes back at once. A new server has a new line.
 *
 * Thread-safety: Safe. A line is held by everyone who uses it. */
#ifndef FERRY_LINE_H
#define FERRY_LINE_H

#include "ferry.h"

#include <tenon/module/platform.h>

typedef struct line line;

/* What a server is started with. */
typedef struct line_plan {
    const tn_host *host;
    const char *server; /* its file                            */
    uint64_t memory;    /* bytes                               */
    const char *number; /* a file for its process number; or "" */
} line_plan;

/* Starts a server and waits until it is up. The caller holds the line. */
tn_status line_open(const line_plan *plan, line **out, tn_error *err);

void line_hold(line *l);
void line_release(line *l);

/* Ends the server. */
void line_cut(line *l);

/* TN_DEVICE_LOST and the cause, once the server has ended. */
tn_status line_check(const line *l, const char *where, tn_error *err);

ferry_segment *line_segment(line *l);

/* Numbers of streams, from 1 on, and of events, from 0 on; -1 when all are taken. A stream's number is
 * free again when its work has ended. */
int32_t line_stream_take(line *l);
void line_stream_give(line *l, uint32_t stream);
int32_t line_event_take(line *l);
void line_event_give(line *l, uint32_t event);

/* Gives a job the next number of its stream, and a record the next turn of its event, and sends it. */
tn_status line_queue(line *l, ferry_message *job, const char *where, tn_error *err);

/* A point in a stream's work: that a job of it is done. */
typedef struct line_point {
    uint32_t stream;
    uint64_t number;
} line_point;
line_point line_last(line *l, uint32_t stream);    /* its last job so far       */
line_point line_recorded(line *l, uint32_t event); /* its last record so far    */

/* Whether a point is reached: then what the server did until there is to be seen. */
bool line_has(line *l, line_point at);

/* Waits until a point is reached, or the line is lost. */
tn_status line_wait(line *l, line_point at, const char *where, tn_error *err);

/* Makes a stream wait for the latest record of another line's event. */
tn_status line_gate(line *l, uint32_t stream, line *of, uint32_t event, const char *where,
                    tn_error *err);

/* Sends what is no job. */
tn_status line_send(line *l, const ferry_message *message, const char *where, tn_error *err);

/* Asks for memory: *out is its address, or 0 when there is none. */
tn_status line_take(line *l, uint64_t bytes, const char *where, uint64_t *out, tn_error *err);

#endif
