/* Device memory: allocation, statistics, copying, filling.
 *
 * Thread-safety: Safe. */
#ifndef TENON_MEMORY_H
#define TENON_MEMORY_H

#include "stream.h"

TN_BEGIN_DECLS

/* Allocates at least `bytes` bytes on the device, aligned to 64 bytes or more; 0 bytes return a
 * pointer that can be freed. NULL device: the current one. `label` names the owner in reports
 * ("kv-cache"), may be NULL, and is truncated to 31 bytes. The message of TN_OUT_OF_MEMORY has the
 * requested size, the free memory, the limit and the labels that hold the most. Freed memory may be
 * kept for later requests of the same size; tn_memory_trim returns it. */
TN_API tn_status tn_memory_alloc(tn_device *device, uint64_t bytes, const char *label, void **out,
                                 tn_error *err);

/* Accepts NULL. A pointer that is not an allocation of this device, or was already freed, changes
 * nothing: it is logged as an error and counted in tn_memory_stats.wrong_frees. The caller must
 * make sure that no queued work uses the memory any more. */
TN_API void tn_memory_free(tn_device *device, void *memory);

/* Stream-ordered allocation and free, without waiting: work that is queued on the stream after the
 * allocation and before the free may use the memory. The memory is on the stream's device. NULL
 * stream: the current stream of the current device.
 *
 * To use the memory on another stream, the caller must order the two: the other stream waits for an
 * event that this stream recorded after the allocation, and this stream frees the memory after an
 * event of the other stream. Both free functions accept memory of both allocation functions; but
 * call tn_memory_free only after the stream has passed the allocation and every other use. If the
 * platform has no stream-ordered memory, allocation works as tn_memory_alloc, and freeing waits for
 * the stream. Allocation also waits for the stream if there is no memory otherwise.
 *
 * On a stream that is being recorded or captured, both fail with TN_UNSUPPORTED: allocate the
 * memory of a graph before. A free that fails changes nothing, and the memory stays allocated.
 * Freeing accepts NULL. A pointer that is not an allocation of the stream's device is counted and
 * logged as above, and fails with TN_INVALID_ARGUMENT. On a lost device the memory is already gone,
 * and freeing it returns TN_OK. */
TN_API tn_status tn_memory_alloc_on(tn_stream *stream, uint64_t bytes, const char *label,
                                    void **out, tn_error *err);
TN_API tn_status tn_memory_free_on(tn_stream *stream, void *memory, tn_error *err);

/* Host memory that the device can copy from and to fastest (pinned). Ordinary memory if the
 * platform makes no difference. */
TN_API tn_status tn_memory_host_alloc(tn_device *device, uint64_t bytes, const char *label,
                                      void **out, tn_error *err);
TN_API void tn_memory_host_free(tn_device *device, void *memory);

typedef struct tn_memory_stats {
    size_t struct_size;
    int64_t current;     /* bytes allocated by the program, as requested    */
    int64_t peak;        /* largest value of `current` since the last reset */
    int64_t count;       /* number of current allocations                   */
    int64_t allocations; /* number of allocations so far                    */
    int64_t kept;        /* bytes freed but kept for later requests         */
    int64_t host;        /* bytes of host memory allocated for this device  */
    int64_t limit;       /* bytes; 0: none                                  */
    int64_t failures;    /* number of failed requests                       */
    int64_t wrong_frees;
} tn_memory_stats;
TN_ENDS_WITH(tn_memory_stats, wrong_frees);

/* Set out->struct_size first. Reading changes nothing; the peak is reset only by
 * tn_memory_peak_reset. */
TN_API tn_status tn_memory_stats_get(const tn_device *device, tn_memory_stats *out, tn_error *err);
TN_API void tn_memory_peak_reset(tn_device *device);

/* Allocations that would bring `current` above this limit fail; 0: no limit. Existing allocations
 * stay. */
TN_API tn_status tn_memory_limit_set(tn_device *device, int64_t bytes, tn_error *err);

/* Returns kept memory to the platform, and makes the platform return its own kept memory to the
 * system, so that other processes can use it. */
TN_API void tn_memory_trim(tn_device *device);

/* Copies rows of bytes between any two devices: directly if their platform can, else through host
 * memory. Copies within one device are done by its platform. Overlapping source and destination are
 * refused if this can be detected. */
typedef struct tn_memory_copy_args {
    size_t struct_size;
    tn_device *to_device; /* NULL: host memory */
    void *to;
    tn_device *from_device; /* NULL: host memory */
    const void *from;
    uint64_t bytes;      /* bytes of one row */
    uint64_t rows;       /* 0: one row */
    uint64_t to_pitch;   /* bytes from row to row; 0: `bytes` */
    uint64_t from_pitch; /* the same */
    tn_stream *stream;   /* NULL: the current stream of to_device, else of from_device */
} tn_memory_copy_args;
TN_ENDS_WITH(tn_memory_copy_args, stream);

/* Queued on the stream if the platform has streams; host memory must then stay valid and unchanged
 * until the stream has completed the copy. A copy through the host waits until it is done. */
TN_API tn_status tn_memory_copy(const tn_memory_copy_args *args, tn_error *err);

/* Fills memory with a repeated pattern of 1, 2, 4 or 8 bytes. */
typedef struct tn_memory_fill_args {
    size_t struct_size;
    tn_device *device; /* NULL: host memory */
    void *to;
    uint64_t bytes;         /* a multiple of pattern_bytes          */
    uint64_t pattern;       /* the low pattern_bytes bytes are used */
    uint32_t pattern_bytes; /* 0: 1                                 */
    uint32_t reserved;
    tn_stream *stream; /* NULL: the current stream of `device` */
} tn_memory_fill_args;
TN_ENDS_WITH(tn_memory_fill_args, stream);

TN_API tn_status tn_memory_fill(const tn_memory_fill_args *args, tn_error *err);

TN_END_DECLS

#endif
