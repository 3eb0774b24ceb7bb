/* Memory of devices: taken, given back, counted, copied, filled.
 *
 * Thread-safety: Safe. */
#ifndef TENON_MEMORY_H
#define TENON_MEMORY_H

#include "stream.h"

TN_BEGIN_DECLS

/* At least `bytes` bytes on the device, aligned to 64 or more; 0 bytes give a pointer that can be
 * freed. NULL device: the current one. `label` says who holds it in reports ("kv-cache"); NULL for no
 * one in particular; kept as its first 31 bytes. TN_OUT_OF_MEMORY says what was asked, what is free,
 * the limit, and which labels hold most. What was freed may be kept for the next request of its size:
 * tn_memory_trim gives it back. */
TN_API tn_status tn_memory_alloc(tn_device *device, uint64_t bytes, const char *label, void **out,
                                 tn_error *err);

/* Accepts NULL. What is not an allocation of this device, or was freed before, changes nothing: it is
 * logged as an error and counted (tn_memory_stats.wrong_frees). The caller sees to it that no queued
 * work uses it any more. */
TN_API void tn_memory_free(tn_device *device, void *memory);

/* The same in the order of a stream, without waiting: memory of the stream's device that what is queued there after
 * the allocation, and before the free, may use. NULL stream: the current one of the current device.
 *
 * Another stream has to be ordered by the caller: it uses the memory after an event of this stream that is recorded
 * behind the allocation, and this stream frees it after an event of the other. Either free takes memory of either
 * allocation; tn_memory_free only when the stream has come past the allocation, as past any other use. Where the
 * platform has no such order, allocating is as above, and freeing waits for the stream. Allocating waits for it when
 * there is no memory otherwise.
 *
 * On a stream that is recorded or captured both are refused with TN_UNSUPPORTED: what a graph uses is taken before. A
 * free that is refused changes nothing, and the memory stays held. Freeing accepts NULL; what is no allocation of the
 * stream's device is counted and logged as above, and TN_INVALID_ARGUMENT. On a device that is lost the memory is gone
 * already, and freeing it is TN_OK. */
TN_API tn_status tn_memory_alloc_on(tn_stream *stream, uint64_t bytes, const char *label,
                                    void **out, tn_error *err);
TN_API tn_status tn_memory_free_on(tn_stream *stream, void *memory, tn_error *err);

/* Memory of the host that the device copies from and to fastest. Ordinary memory where there is no
 * difference. */
TN_API tn_status tn_memory_host_alloc(tn_device *device, uint64_t bytes, const char *label,
                                      void **out, tn_error *err);
TN_API void tn_memory_host_free(tn_device *device, void *memory);

typedef struct tn_memory_stats {
    size_t struct_size;
    int64_t current;     /* bytes held by the program, as asked for   */
    int64_t peak;        /* the most it held since the peak was reset */
    int64_t count;       /* allocations held                          */
    int64_t allocations; /* made so far                               */
    int64_t kept;        /* bytes freed but kept for later requests   */
    int64_t host;        /* bytes of the host held for this device    */
    int64_t limit;       /* bytes; 0: none                            */
    int64_t failures;    /* requests that were refused                */
    int64_t wrong_frees;
} tn_memory_stats;
TN_ENDS_WITH(tn_memory_stats, wrong_frees);

/* Set out->struct_size first. Reading changes nothing; only the program resets its peak. */
TN_API tn_status tn_memory_stats_get(const tn_device *device, tn_memory_stats *out, tn_error *err);
TN_API void tn_memory_peak_reset(tn_device *device);

/* Refuses what would bring `current` above it; 0 for none. What is held stays. */
TN_API tn_status tn_memory_limit_set(tn_device *device, int64_t bytes, tn_error *err);

/* Gives what is kept back to the platform, and has it give back to the system what it keeps itself: other
 * processes can have it then. */
TN_API void tn_memory_trim(tn_device *device);

/* Copies rows of bytes between any two devices: directly where their platform can, else through host
 * memory; within one device by its platform alone. Overlapping sides are refused where that can be
 * seen. */
typedef struct tn_memory_copy_args {
    size_t struct_size;
    tn_device *to_device; /* NULL: the host's memory */
    void *to;
    tn_device *from_device; /* NULL: the host's memory */
    const void *from;
    uint64_t bytes;      /* of one row */
    uint64_t rows;       /* 0: one row */
    uint64_t to_pitch;   /* bytes from row to row; 0: `bytes` */
    uint64_t from_pitch; /* the same */
    tn_stream *stream;   /* NULL: the current one of to_device, else of from_device */
} tn_memory_copy_args;
TN_ENDS_WITH(tn_memory_copy_args, stream);

/* Queued on the stream where the platform has streams; host memory must then stay as it is until the
 * stream has come that far. A copy through the host waits. */
TN_API tn_status tn_memory_copy(const tn_memory_copy_args *args, tn_error *err);

/* Sets bytes to a pattern of 1, 2, 4 or 8 bytes, over and over. */
typedef struct tn_memory_fill_args {
    size_t struct_size;
    tn_device *device; /* NULL: the host's memory */
    void *to;
    uint64_t bytes;         /* a multiple of pattern_bytes */
    uint64_t pattern;       /* its lowest bytes            */
    uint32_t pattern_bytes; /* 0: 1                        */
    uint32_t reserved;
    tn_stream *stream; /* NULL: the current one of `device` */
} tn_memory_fill_args;
TN_ENDS_WITH(tn_memory_fill_args, stream);

TN_API tn_status tn_memory_fill(const tn_memory_fill_args *args, tn_error *err);

TN_END_DECLS

#endif
