/* The module `described`: devices that exist as a description only and run on the host's memory.
 * They can fail, stall, be lost and lie when their description asks for it.
 *
 * Thread-safety: Safe. A device is published whole by the count of them and never goes away; what
 * changes in it is guarded by a flag on which others spin, as modules get no locks from the host; it
 * is never held while something is allocated, copied or waited for. */
#ifndef DESCRIBED_H
#define DESCRIBED_H

#include "tenon/module/platform.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { DESCRIBED_MOST = 64 };

/* What a description asks for besides properties. Numbers count from 1; 0 is never. */
typedef struct described_behaviour {
    int64_t fail_alloc; /* this allocation finds no memory                */
    int64_t fail_copy;  /* this copy fails                                */
    int64_t lose_after; /* from this operation on the device is lost      */
    int64_t lie_copy;   /* this copy changes a byte on its way            */
    int64_t fail_run;   /* this run of a kernel fails                     */
    int64_t lie_every;  /* every so many-th run gives a wrong number      */
    int64_t stall_copy; /* nanoseconds that each copy waits               */
    int64_t lie_memory; /* bytes it says are available; -1 for the truth  */
    int64_t link;       /* TN_LINK_... to the others                      */
} described_behaviour;

/* Memory that was given out. */
typedef struct described_block {
    struct described_block *next;
    char *memory;
    uint64_t bytes;
} described_block;

typedef struct described_device {
    int32_t index;
    tn_device_properties properties;
    described_behaviour behaviour;

    atomic_flag guard; /* of all below */
    described_block *blocks;
    uint64_t in_use;
    int64_t operations; /* allocations and copies */
    int64_t allocations;
    int64_t copies;
    int64_t runs;  /* of kernels */
    char lost[96]; /* what it was lost at; "" while it is not; then never changed again */
} described_device;

/* What the host gets as `self`. */
typedef struct described {
    const tn_host *host;
    atomic_flag guard; /* of adding */
    _Atomic int32_t count;
    described_device *devices[DESCRIBED_MOST];
} described;

static inline void described_lock(atomic_flag *guard)
{
    while (atomic_flag_test_and_set_explicit(guard, memory_order_acquire))
        continue;
}

static inline void described_unlock(atomic_flag *guard)
{
    atomic_flag_clear_explicit(guard, memory_order_release);
}

/* Reads the entries of a description; refuses keys and values it does not know. */
tn_status described_behaviour_read(const tn_description *description, described_behaviour *out,
                                   tn_error *err);

/* The device of that number, or TN_INVALID_ARGUMENT. */
tn_status described_find(described *self, int32_t index, described_device **out, tn_error *err);

/* TN_DEVICE_LOST, with what the device was lost at. */
tn_status described_lost(const described_device *device, tn_error *err);

/* Waits at least that long. */
void described_pause(int64_t ns);

struct tn_kernel_row;
extern const struct tn_kernel_row described_matmul;

/* Functions of the row. */
tn_status described_probe(const tn_host *host, void **out_self, int32_t *out_devices,
                          tn_error *err);
tn_status described_describe(void *opaque, const tn_description *description, int32_t *out_device,
                             tn_error *err);
tn_status described_properties(void *opaque, int32_t index, tn_device_properties *out,
                               tn_error *err);
tn_status described_memory(void *opaque, int32_t index, tn_device_memory *out, tn_error *err);
tn_status described_link(void *opaque, int32_t from, int32_t to, int32_t *out_link, tn_error *err);
tn_status described_alloc(void *opaque, int32_t index, uint64_t bytes, void **out, tn_error *err);
void described_free(void *opaque, int32_t index, void *memory);
tn_status described_copy(void *opaque, const tn_copy_job *job, tn_error *err);

#endif
