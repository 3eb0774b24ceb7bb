/* Two made-up platforms with memory that no one but they can reach: an address is one of the host's
 * with bits changed that no address has, so that whoever touches it by himself crashes. Around
 * every block are guards.
 *     north  2 devices; only what a platform must have
 *     south  2 devices; streams, fills, pinned memory, resets; tells its memory. What is queued on
 *            a stream runs when someone waits for the stream, and not before; when waiting fails it
 *            stays queued.
 *
 * There is one set of them in a process. Thread-safety: Safe, but for spaces_make and
 * spaces_end. */
#ifndef TENON_TEST_MEMORY_SPACES_H
#define TENON_TEST_MEMORY_SPACES_H

#include "test.h"

#include "device/memory/memory.h"
#include "device/platform/platforms.h"
#include "tenon/tenon.h"

enum { NORTH, SOUTH, SPACES, SPACE_DEVICES = 2 };

typedef struct spaces {
    tni_registry *registry;
    tni_platforms *set;
    tn_device *cpu; /* the real one */
    tn_device *north[SPACE_DEVICES];
    tn_device *south[SPACE_DEVICES];
} spaces;

void spaces_make(spaces *out);
void spaces_end(spaces *s); /* what is on devices that are lost goes with them */

/* A device keeps what it freed even in builds with a sanitizer, or nothing in any. */
void spaces_keep(tn_device *device, bool keeps);

/* What each space was asked so far, and what it has given and not got back. */
typedef struct space_counts {
    int blocks, host_blocks;
    int allocs, frees, copies, fills, waits;
    int queued; /* now */
    int wrong;  /* memory that is not there, in a copy or a free; a guard that was written to */
    uint64_t in_use;
    uint64_t last_bytes; /* the latest allocation */
} space_counts;
space_counts space_look(int space);
void space_forgive(int space); /* what was wrong so far */
bool spaces_are_empty(void);   /* nothing given, nothing wrong; prints what there is otherwise */

/* Makes the n-th call from now on (1 is the next one) that can fail do so, once. `heal` takes it
 * back and says whether it came to it. */
void space_fail(long n, tn_status status);
bool space_heal(void);

void space_lose(int space, int32_t device);

/* Where the bytes of an address really are. */
unsigned char *space_bytes(int space, const void *address);

extern _Atomic uint64_t space_capacity; /* bytes of each device; a GiB, once a set is made */
extern _Atomic bool space_apart;        /* devices of one space cannot copy to each other */
extern _Atomic bool space_stuck;        /* no one can wait for a stream: TN_IO */
/* Called once by the next allocation (host memory too) or copy before it returns, with no lock
 * held; or NULL. */
typedef void space_call(void);
extern space_call *_Atomic space_meanwhile;
void space_reset_meanwhile(tn_device *device); /* that call resets the device */

extern void *_Atomic space_gives; /* what every allocation of a device gives instead; or NULL */

#endif
