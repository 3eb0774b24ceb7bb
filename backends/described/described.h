/* The module `described`: devices that exist only as a description and run in host memory. They can
 * fail, stall, be lost and return wrong results if their description asks for it.
 *
 * Thread-safety: Safe. A device is complete before the device count publishes it, and it is never
 * removed. Its mutable state is guarded by a spin flag, because the host gives modules no locks.
 * The flag is never held during an allocation, a copy or a wait. */
#ifndef DESCRIBED_H
#define DESCRIBED_H

#include "tenon/module/platform.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { DESCRIBED_MOST = 64 };

/* Behaviour that a description requests besides properties. Numbers count from 1; 0 is never. */
typedef struct described_behaviour {
    int64_t fail_alloc; /* this allocation fails: out of memory */
    int64_t fail_copy;  /* this copy fails                                */
    int64_t lose_after; /* the device is lost from this operation on */
    int64_t lie_copy;   /* this copy corrupts a byte */
    int64_t fail_run;   /* this kernel run fails */
    int64_t lie_every;  /* every n-th run gives a wrong number */
    int64_t stall_copy; /* delay of each copy, in nanoseconds */
    int64_t lie_memory; /* bytes reported as available; -1: the true value */
    int64_t link;       /* TN_LINK_... to the other devices */
} described_behaviour;

/* An allocation. */
typedef struct described_block {
    struct described_block *next;
    char *memory;
    uint64_t bytes;
} described_block;

typedef struct described_device {
    int32_t index;
    tn_device_properties properties;
    described_behaviour behaviour;

    atomic_flag guard; /* guards everything below */
    described_block *blocks;
    uint64_t in_use;
    int64_t operations; /* allocations and copies */
    int64_t allocations;
    int64_t copies;
    int64_t runs;  /* kernel runs */
    char lost[96]; /* operation at which it was lost, then never changed; "" if not lost */
} described_device;

/* The host gets a pointer to it as `self`. */
typedef struct described {
    const tn_host *host;
    atomic_flag guard; /* guards adding devices */
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

/* Reads the entries of a description. Rejects unknown keys and values. */
tn_status described_behaviour_read(const tn_description *description, described_behaviour *out,
                                   tn_error *err);

/* Finds the device with that index, or fails with TN_INVALID_ARGUMENT. */
tn_status described_find(described *self, int32_t index, described_device **out, tn_error *err);

/* Fails with TN_DEVICE_LOST; the message names the operation at which the device was lost. */
tn_status described_lost(const described_device *device, tn_error *err);

/* Waits at least `ns` nanoseconds. */
void described_pause(int64_t ns);

struct tn_kernel_row;
extern const struct tn_kernel_row described_matmul;

/* Functions of the platform row. */
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
