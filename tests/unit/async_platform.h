/* A made-up module whose streams are real: platform "async", kind OOT, devices async:0 and async:1.
 *
 * Each stream is a thread that does what is queued on it, in order: copies, fills, records, waits,
 * calls. Device memory is the host's. Events are timed by the monotonic clock. The module has every
 * function of its row, and each can be made to fail; devices can be lost, and opened anew.
 *
 * There is one of it in a process. A suite has unit/async_platform.c, unit/async_queue.c and
 * unit/world.c among its sources. Thread-safety: Safe, but for async_end. */
#ifndef TENON_TEST_ASYNC_PLATFORM_H
#define TENON_TEST_ASYNC_PLATFORM_H

#include "world.h"

enum { ASYNC_DEVICES = 2 };

/* As a registry takes it. */
tni_builtin async_builtin(void);

/* A world of world.h's modules and this one. Ending it is async_end too. */
void async_world_make(world *out, unsigned modules);
void async_world_end(world *w);

/* Opens all gates, ends all streams after their work, and is as at the beginning. */
void async_end(void);

/* Makes the n-th call from now on (1 is the next one) of a function fail with `status`, once; with
 * TN_OK it says that it succeeded and has done nothing. `function` is its name in the row; NULL for
 * any that can fail. One fault at a time. `heal` takes it back and says whether it came to it. */
void async_fail(const char *function, long n, tn_status status);
bool async_heal(void);

/* How often the function was called; NULL: all of them together. */
long async_calls(const char *function);

/* The device is lost: whatever is queued on it is dropped, all who wait are woken, and every call
 * gives TN_DEVICE_LOST and this cause until device_reset. */
void async_lose(int32_t device, const char *cause);

/* A call on the stream that lets nothing behind it run until the gate is opened, once. The gate is
 * the module's. */
typedef struct async_gate async_gate;
async_gate *async_gate_put(tn_stream *on);
void async_gate_open(async_gate *gate);

/* What was created and not given back; and what was given back that the module does not know.
 * `nothing` prints what there is otherwise. */
typedef struct async_counts {
    int streams, events, blocks, host_blocks, wrong;
} async_counts;
async_counts async_held(void);
bool async_holds_nothing(void);

extern _Atomic uint64_t async_capacity; /* bytes of memory that each device has; 1 GiB at first */
extern _Atomic bool async_timeless;     /* the time between events is no number */
extern _Atomic bool async_sharing; /* events can be exported and imported, within this process */
extern _Atomic bool
    async_ordering; /* the row has memory in the order of streams, when it is made */
extern _Atomic bool async_initialized[ASYNC_DEVICES]; /* any use of a device initialises it */

/* What the latest stream and event were asked to be. */
extern _Atomic int32_t async_last_priority;
extern _Atomic uint32_t async_last_flags;

/* The device that is current for this thread in the module's own sense; -1 until one is. */
extern _Thread_local int32_t async_active;

#endif
