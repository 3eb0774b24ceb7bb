/* Properties of a device, as its platform reports them and as a program reads them.
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_DEVICE_H
#define TENON_MODULE_DEVICE_H

#include "dtype.h"

TN_BEGIN_DECLS

/* Hardware generation: 9.0 is {9, 0}. Comparable only between devices of one platform. Frozen. */
typedef struct tn_capability {
    int32_t major;
    int32_t minor;
} tn_capability;

/* A number that may be unknown. `origin` is one line for reports: the source of the value, or why
 * it is unknown. Frozen at 128 bytes. */
typedef struct tn_fact {
    int64_t value; /* 0 unless known */
    int32_t known;
    int32_t reserved;
    char origin[112];
} tn_fact;

TN_STATIC_ASSERT(sizeof(tn_fact) == 128, "tn_fact is frozen at 128 bytes");

static inline tn_fact tn_fact_of(int64_t value, const char *origin)
{
    tn_fact fact;
    memset(&fact, 0, sizeof fact);
    fact.value = value;
    fact.known = 1;
    tn_text_fit(fact.origin, sizeof fact.origin, origin);
    return fact;
}

static inline tn_fact tn_fact_unknown(const char *why)
{
    tn_fact fact = tn_fact_of(0, why);
    fact.known = 0;
    return fact;
}

/* Numbers that a device may have: field, word in descriptions and reports, unit, meaning. */
#define TN_DEVICE_NUMBER_LIST(X)                                                               \
    X(memory_bytes, "memory", "bytes", "total memory of the device")                           \
    X(numa_node, "numa_node", "", "NUMA node that the device is attached to")                  \
    X(physical_index, "physical_index", "",                                                    \
      "index of the device before a visibility variable hides any")                            \
    X(multi_processor_count, "multi_processor_count", "", "compute units; cores of a CPU")     \
    X(max_threads_per_multi_processor, "max_threads_per_multi_processor", "",                  \
      "resident threads per compute unit")                                                     \
    X(max_threads_per_block, "max_threads_per_block", "", "threads per block")                 \
    X(warp_size, "warp_size", "", "threads that execute in lockstep")                          \
    X(registers_per_multi_processor, "registers_per_multi_processor", "",                      \
      "32-bit registers per compute unit")                                                     \
    X(shared_memory_per_block, "shared_memory_per_block", "bytes",                             \
      "shared memory limit per block")                                                         \
    X(shared_memory_per_multi_processor, "shared_memory_per_multi_processor", "bytes",         \
      "shared memory per compute unit")                                                        \
    X(l2_cache_bytes, "l2_cache", "bytes", "size of the last cache before device memory")      \
    X(clock_khz, "clock", "kHz", "highest clock of the compute units")                         \
    X(memory_bandwidth, "memory_bandwidth", "bytes/s", "memory bandwidth from the data sheet") \
    X(is_integrated, "is_integrated", "", "1: the device shares the host's memory")            \
    X(pinned_memory, "pinned_memory", "", "1: host memory can be pinned for it")               \
    X(triton_capable, "triton_capable", "", "1: Triton kernels can run on it")

/* Bits of tn_device_properties.known: numbers from bit 0 upwards, other properties from bit 63
 * downwards. */
enum {
#define TN_DEVICE_NUMBER_INDEX_(field, word, unit, meaning) TN_DEVICE_NUMBER_INDEX_##field,
    TN_DEVICE_NUMBER_LIST(TN_DEVICE_NUMBER_INDEX_)
#undef TN_DEVICE_NUMBER_INDEX_
        TN_DEVICE_NUMBER_COUNT,
    TN_DEVICE_NUMBER_INDEX_capability = 63
};
#define TN_DEVICE_KNOWS(field) (UINT64_C(1) << TN_DEVICE_NUMBER_INDEX_##field)

/* Maximum number of dtypes that a device lists. */
#define TN_DEVICE_DTYPES_MAX 32

/* Properties that do not change while the process runs. Unknown strings are ""; numbers whose bit
 * in `known` is not set are 0. */
typedef struct tn_device_properties {
    size_t struct_size;
    uint64_t known;        /* TN_DEVICE_KNOWS(clock_khz) | ..., TN_DEVICE_KNOWS(capability) */
    char name[128];        /* "NVIDIA H200"                                                 */
    char uuid[48];         /* "GPU-8-4-4-4-12" or 8-4-4-4-12                                */
    char bus[32];          /* "0000:3b:00.0"                                                */
    char architecture[32]; /* "sm_90a", "gfx942", "x86_64"                                  */
    tn_capability capability;
    tn_dtype dtypes[TN_DEVICE_DTYPES_MAX]; /* supported; default first; ends with 0 */
#define TN_DEVICE_NUMBER_FIELD_(field, word, unit, meaning) int64_t field;
    TN_DEVICE_NUMBER_LIST(TN_DEVICE_NUMBER_FIELD_)
#undef TN_DEVICE_NUMBER_FIELD_
} tn_device_properties;
TN_ENDS_WITH(tn_device_properties, triton_capable);

/* The current state of memory. Reading it changes no statistics. */
typedef struct tn_device_memory {
    size_t struct_size;
    tn_fact total;     /* most that this process can have: the device's, or a limit */
    tn_fact available; /* available now                                             */
    tn_fact in_use;    /* used by this process now                                  */
} tn_device_memory;
TN_ENDS_WITH(tn_device_memory, in_use);

/* How data is copied from one device to another of the same platform. */
enum {
    TN_LINK_UNKNOWN = 0,
    TN_LINK_STAGED, /* through host memory             */
    TN_LINK_BUS,    /* directly, over the system's bus */
    TN_LINK_FABRIC  /* directly, over dedicated links  */
};

TN_END_DECLS

#endif
