/* Internals of a device's memory: a table of its allocations (the "book"), the freed blocks that
 * are kept (cached) for later requests, and how much each label holds.
 *
 * Lock order: the list of all memories, the shelves in index order, the host shelf, the labels.
 * Locks are held for a few instructions. No module and no log sink is called with one held. fork()
 * takes all of them (memory_lifetime.c), so that the child can continue.
 *
 * A device that is lost, or that was opened before a fork it does not survive, is never called:
 * memory freed on it is only forgotten. On a withdrawn device, freed memory is returned to the
 * platform and nothing is kept. */
#ifndef TNI_DEVICE_MEMORY_H
#define TNI_DEVICE_MEMORY_H

#include "device/device.h"
#include "latch.h"
#include "tenon/memory.h"

enum {
    TNI_SHELVES = 16, /* parts of the table, each with its own lock */
    TNI_SHELF_BUCKETS = 8,
    TNI_CLASSES = 77, /* size classes: 64 bytes to 32 MiB, four per power of two */
    TNI_NO_CLASS = -1,
    TNI_LABELS = 64,
    TNI_LABEL_SLOTS = 2 * TNI_LABELS,
    TNI_LABEL_TEXT = 32, /* including the final NUL */
    TNI_LABEL_WORDS = TNI_LABEL_TEXT / 8,
    TNI_CACHE_LINE = 64,
    TNI_ALIGNMENT = 64,
    TNI_STAGE_BYTES = 4 << 20
};

/* One allocation. To use a block that is on a shelf, hold that shelf's lock. */
typedef struct tni_block {
    struct tni_block *next;  /* in the bucket */
    struct tni_block *under; /* in its other list: of kept or of removed blocks */
    void *address;
    uint64_t bytes; /* as requested */
    uint64_t room;  /* as allocated from the platform */
    uint32_t epoch; /* epoch of the memory when it was allocated */
    int16_t size_class;
    uint8_t label;
    bool kept;
    bool pinned; /* host memory only: allocated by the platform, and must be freed by it */
} tni_block;

/* Hash table of blocks by address. Adding a block never fails for lack of memory. */
typedef struct tni_shelf {
    _Alignas(TNI_CACHE_LINE) tni_latch lock;
    tni_block **buckets; /* `first`, or a heap array that the shelf owns */
    size_t bucket_count; /* a power of two */
    size_t blocks;
    _Atomic int64_t count;       /* blocks in use; writing these three needs the lock */
    _Atomic int64_t allocations; /* total so far */
    _Atomic int64_t kept;        /* bytes */
    int64_t kept_drawn;          /* share of the bound on kept bytes; at least `kept` */
    tni_block *first[TNI_SHELF_BUCKETS];
} tni_shelf;

void tni_shelf_init(tni_shelf *shelf);
void tni_shelf_destroy(tni_shelf *shelf); /* must be empty */

/* Must be called with the lock held. tni_shelf_add returns false if the address is already
 * present. */
tni_block *tni_shelf_find(const tni_shelf *shelf, const void *address);
bool tni_shelf_add(tni_shelf *shelf, tni_block *block);
void tni_shelf_remove(tni_shelf *shelf, tni_block *block);
void tni_shelf_count(tni_shelf *shelf, int64_t blocks); /* positive: counts as allocations too */

/* Removes every block for which `which` is true (NULL: all) and returns them as a list linked by
 * `under`. Must be called with the lock held. */
tni_block *tni_shelf_drain(tni_shelf *shelf, bool (*which)(const tni_block *block));

/* Memory per label: up to TNI_LABELS labels at a time, and one row shared by all others. A row
 * belongs to its label until its count is 0 and another label needs a row. */
enum { TNI_OF_DEVICE, TNI_OF_HOST, TNI_KINDS };
enum { TNI_LABEL_NONE = 0, TNI_LABEL_OTHERS = TNI_LABELS + 1, TNI_LABEL_ROWS };

typedef struct tni_labels {
    tni_latch lock;                         /* held while a label is added */
    _Atomic uint8_t slots[TNI_LABEL_SLOTS]; /* hash table of row numbers; 0 is empty */
    struct {
        _Atomic uint64_t text[TNI_LABEL_WORDS];
        _Atomic int64_t bytes[TNI_KINDS]; /* unused for TNI_LABEL_NONE; negative: free row */
    } rows[TNI_LABEL_ROWS];
} tni_labels;

void tni_labels_init(tni_labels *labels); /* must be zeroed */

/* tni_labels_add adds bytes to the label's row and returns the row; tni_labels_subtract subtracts
 * them. NULL and "" are TNI_LABEL_NONE. */
uint8_t tni_labels_add(tni_labels *labels, const char *label, int32_t kind, int64_t bytes);
void tni_labels_subtract(tni_labels *labels, uint8_t row, int32_t kind, int64_t bytes);

/* The row's label, for messages only: the row may be reassigned concurrently. */
void tni_labels_text(const tni_labels *labels, uint8_t row, char out[TNI_LABEL_TEXT]);

/* "held most by kv-cache (8.0 GiB), weights (3.2 GiB)"; `held` is the total in bytes. */
typedef struct tni_memory_words {
    char text[192];
} tni_memory_words;
tni_memory_words tni_labels_words(const tni_labels *labels, int32_t kind, int64_t held);

/* Host staging buffer for copies that no platform can do directly. */
typedef struct tni_stage {
    char *bytes; /* TNI_STAGE_BYTES */
    bool pinned;
    uint32_t epoch;         /* epoch of the memory when it was allocated */
    struct tni_stage *next; /* in the list `left` */
} tni_stage;

typedef struct tni_memory {
    _Alignas(TNI_CACHE_LINE) _Atomic int64_t current; /* cache line written by all allocations */
    _Atomic int64_t peak;
    _Atomic int64_t limit;
    _Atomic int64_t host;
    _Atomic int64_t kept_drawn; /* sum over all shelves */
    _Atomic int64_t failures;
    _Atomic int64_t wrong_frees;
    tni_stage *_Atomic stage; /* one idle staging buffer, or NULL; not in the statistics */

    tni_shelf shelves[TNI_SHELVES];
    tni_shelf host_shelf;
    tn_device *device;
    struct tni_memory *next; /* in the list of all memories that were ever used */
    tni_stage *_Atomic left; /* buffers that queued work may still use, linked by `next` */
    tni_labels labels;
    tni_block *kept_blocks[TNI_SHELVES][TNI_CLASSES]; /* guarded by the shelf's lock */
    _Atomic uint32_t filled[TNI_CLASSES]; /* one bit per shelf that may keep blocks of the class */
    _Atomic uint32_t epoch; /* epoch: resets so far; memory of earlier epochs is gone */
    _Atomic bool watched;   /* on the list of memories; its locks must not be used before */
    bool keeps;             /* false in sanitizer builds: kept blocks would hide use after free */
} tni_memory;

/* Returns the device's memory, which is created on first use. NULL if the host is out of memory. */
tni_memory *tni_memory_of(tn_device *device);

/* The same, but never creates it: NULL before the first use. */
static inline tni_memory *tni_memory_so_far(const tn_device *device)
{
    return atomic_load_explicit(&device->memory, memory_order_acquire);
}

/* Must be called before the first lock of the memory is taken, with no lock of Tenon held. */
void tni_memory_watch(tni_memory *memory);

/* Ends that, before the memory is destroyed. */
void tni_memory_unwatch(tni_memory *memory);

/* As tn_memory_alloc and tn_memory_free, for a holder that may outlive a reset: a block of an
 * earlier epoch is already gone, and tni_memory_release does not free a newer block at the same
 * address. `device` must not be NULL. */
tn_status tni_memory_acquire(tn_device *device, uint64_t bytes, const char *label, void **out,
                             uint32_t *out_epoch, tn_error *err);
void tni_memory_release(tn_device *device, void *memory, uint32_t epoch);

/* As tn_memory_alloc_on, tn_memory_free and tn_memory_free_on. `device` and `stream` must not be
 * NULL, and no graph may be recorded on the stream. */
tn_status tni_memory_alloc_on(tn_stream *stream, const char *where, uint64_t bytes,
                              const char *label, void **out, tn_error *err);
void tni_memory_free(tn_device *device, void *memory);
tn_status tni_memory_free_on(tn_stream *stream, void *memory, const char *where, tn_error *err);

/* Whether the device's memory is host memory, so that a copy to or from it is a plain host copy.
 * False for devices that are for planning only. */
static inline bool tni_memory_is_host(const tn_device *device)
{
    return !device || (device->offer && device->offer->platform->row->kind == TN_PLATFORM_CPU &&
                       (device->properties.known & TN_DEVICE_KNOWS(is_integrated)) &&
                       device->properties.is_integrated == 1);
}

/* tni_memory_reserve adds to `current` unless that exceeds the limit, and sets *out_sum to the sum.
 * If the allocation succeeds, pass the sum to tni_memory_peak; if not, call
 * tni_memory_unreserve. */
bool tni_memory_reserve(tni_memory *memory, int64_t bytes, int64_t *out_sum);
void tni_memory_unreserve(tni_memory *memory, int64_t bytes);
void tni_memory_peak(tni_memory *memory, int64_t sum);

/* Fails with TN_OUT_OF_MEMORY. The message has the bytes requested, the free memory, the limit, the
 * largest holders, and the message of `said`, if any. */
tn_status tni_memory_fail(tni_memory *memory, int32_t kind, const char *where, uint64_t bytes,
                          const tn_error *said, tn_error *err);

/* Sizes of one class share kept blocks. TNI_NO_CLASS: too large to be kept. */
int32_t tni_class_of(uint64_t bytes);
uint64_t tni_class_bytes(int32_t size_class);

tni_shelf *tni_memory_shelf(tni_memory *memory, const void *address);

/* Takes a kept block of that epoch back into use. Returns its address, or NULL. */
void *tni_keep_reuse(tni_memory *memory, uint32_t epoch, int32_t size_class, uint64_t bytes,
                     uint8_t label);

/* Keeps a block that is on the shelf; false if it may not be kept. Must be called with the shelf's
 * lock held. */
bool tni_keep_put(tni_memory *memory, tni_shelf *shelf, tni_block *block);

int64_t tni_keep_bytes(const tni_memory *memory);

/* Resets the shelf's counts of kept bytes. Must be called with its lock held. */
void tni_keep_none(tni_memory *memory, tni_shelf *shelf);

/* Returns kept blocks to the platform by `call`; NULL: only forgets them. */
void tni_keep_trim(tni_memory *memory, const tni_call *call);

/* Frees host memory whose block is on no shelf, and the block itself. Memory of the platform is
 * returned by `call`; NULL: only forgotten. */
void tni_host_free(tni_memory *memory, tni_block *block, const tni_call *call);

/* tni_stage_acquire returns a staging buffer for copies to `device`, pinned if possible; NULL if out
 * of memory. tni_stage_release returns it when nothing uses it any more. If queued work that could not
 * be waited for may still use it, call tni_stage_leave instead: it is then kept until the device is
 * reset or destroyed. */
tni_stage *tni_stage_acquire(tn_device *device, const tni_call *call, const char *where);
void tni_stage_release(tn_device *device, tni_stage *stage);
void tni_stage_leave(tn_device *device, tni_stage *stage);
void tni_stage_trim(tni_memory *memory, const tni_call *call); /* NULL: forgets pinned memory */
void tni_stage_end(tni_memory *memory, const tni_call *call);  /* includes those left */

/* One side of a copy. */
typedef struct tni_side {
    tn_device *device; /* NULL: host memory */
    tni_call call;
    char *at;
    uint64_t pitch;
} tni_side;

/* A copy of rows. `bytes` (per row) and `rows` are not 0. */
typedef struct tni_copy {
    tni_side to;
    tni_side from;
    uint64_t bytes;
    uint64_t rows;
} tni_copy;

/* Copies in pieces through a host buffer. Complete when it returns. */
tn_status tni_copy_staged(const tni_copy *copy, tn_stream *to_stream, tn_stream *from_stream,
                          const char *where, tn_error *err);

/* Calls the platform's copy function. If two devices are involved, the loss is recorded for the one
 * that reports itself lost. */
tn_status tni_copy_call(const tni_copy *copy, const tn_stream *stream, tn_error *err);

#endif
