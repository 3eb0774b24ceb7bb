/* What the module and its server share: messages over a socket, and one segment of memory.
 *
 * A device is a server process. Its memory is its own: the module knows addresses in it and never
 * reads them. Jobs go to the server by messages, and its threads, one for each stream, do them in
 * order. How far they have come stands in the segment, where the module looks, or waits. When a job
 * needs the host's memory, the server asks for it chunk by chunk, as a device fetches by DMA: the
 * module copies between the chunk, which lies in the segment, and the host's memory, and says so.
 *
 * Both sides are built together, from this file. */
#ifndef FERRY_H
#define FERRY_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FERRY_SOCKET = 3, /* the server's ends */
    FERRY_SEGMENT = 4,
    FERRY_STREAMS = 256, /* number 0 is the default one */
    FERRY_EVENTS = 4096,
    FERRY_CHUNKS = 16,
    FERRY_CHUNK = 1 << 18
};

typedef enum ferry_kind {
    /* From the module. */
    FERRY_ALLOC, /* `bytes`; answered in the segment            */
    FERRY_FREE,  /* `to`                                        */
    FERRY_CLOSE, /* `stream` ends when its work is done          */
    FERRY_COPY,  /* jobs of `stream`, number `number` of it     */
    FERRY_FILL,
    FERRY_RECORD,
    FERRY_WAIT,
    FERRY_CALL,
    FERRY_DONE, /* what `stream` asked the module for           */
    /* From the server. */
    FERRY_FETCH, /* the host's memory to the chunk              */
    FERRY_STORE, /* the chunk to the host's memory              */
    FERRY_RUN    /* a call                                      */
} ferry_kind;

/* What a copy is between. */
enum { FERRY_WITHIN, FERRY_IN, FERRY_OUT };

typedef struct ferry_message {
    uint32_t kind; /* ferry_kind */
    uint32_t stream;
    uint64_t number;
    uint64_t to; /* addresses: the server's, or the host's */
    uint64_t from;
    uint64_t bytes; /* of a row */
    uint64_t rows;
    uint64_t to_pitch;
    uint64_t from_pitch;
    uint64_t pattern; /* its bytes as they lie in memory, from the first on */
    uint64_t user;    /* the module's own: the gate that it opens */
    uint64_t after;   /* of a wait: a job of `after_stream` */
    uint64_t turn;    /* of a record: which one of its event */
    uint32_t after_stream;
    uint32_t event;
    uint32_t pattern_bytes;
    uint32_t way; /* FERRY_WITHIN, ... */
    uint32_t chunk;
    uint32_t reserved;
} ferry_message;

/* Numbers only ever grow: what is waited for is that one has come so far. An event is the job that recorded
 * it last, so that who waits for a record waits for that one, whatever is recorded later. */
typedef struct ferry_segment {
    _Atomic uint32_t progress; /* changes after every other change: a futex */
    _Atomic uint64_t ready;    /* 1 when the server is up                   */
    _Atomic uint64_t in_use;   /* bytes of its memory                       */
    _Atomic uint64_t answered; /* requests for memory so far                */
    _Atomic uint64_t address;  /* the answer to the last one; 0 for none    */
    char cause[160];           /* why the server ends by itself; or ""      */
    struct {
        _Atomic uint64_t done; /* jobs */
    } streams[FERRY_STREAMS];
    struct {
        _Atomic uint64_t turn; /* the latest record that has run          */
        _Atomic int64_t ns;    /* when that was, by the monotonic clock    */
    } events[FERRY_EVENTS];
    unsigned char chunks[FERRY_CHUNKS][FERRY_CHUNK];
} ferry_segment;

/* Tells everyone who waits that something has changed. */
static inline void ferry_tell(ferry_segment *segment)
{
    atomic_fetch_add(&segment->progress, 1);
    syscall(SYS_futex, &segment->progress, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits until `progress` is no longer `seen`, or for a tenth of a second: whoever waits looks again. */
static inline void ferry_rest(ferry_segment *segment, uint32_t seen)
{
    const struct timespec most = {.tv_nsec = 100000000};
    syscall(SYS_futex, &segment->progress, FUTEX_WAIT, seen, &most, NULL, 0);
}

#endif
