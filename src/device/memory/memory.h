/* A device's memory from inside: a book of what was given out, what is kept for later requests,
 * and who holds how much.
 *
 * Locks are taken in this order and held for a few instructions: that of the list of all memories,
 * the shelves as they stand, the host's shelf, the labels'. No module and no log sink is called
 * with one held. A fork() waits for all of them (life.c), so that its child can go on.
 *
 * A device that is lost, or was opened before a fork that it does not survive, is never called: what
 * is freed on it is forgotten. One that is withdrawn gets back what is freed, and nothing is kept. */
#ifndef TNI_DEVICE_MEMORY_H
#define TNI_DEVICE_MEMORY_H

#include "device/device.h"
#include "latch.h"
#include "tenon/memory.h"

enum {
    TNI_SHELVES = 16, /* parts of a book, each with a lock of its own */
    TNI_SHELF_BUCKETS = 8,
    TNI_CLASSES = 77, /* of sizes: 64 bytes to 32 MiB, four for each power of two */
    TNI_NO_CLASS = -1,
    TNI_LABELS = 64,
    TNI_LABEL_SLOTS = 2 * TNI_LABELS,
    TNI_LABEL_TEXT = 32, /* with its end */
    TNI_LABEL_WORDS = TNI_LABEL_TEXT / 8,
    TNI_CACHE_LINE = 64,
    TNI_ALIGNMENT = 64,
    TNI_STAGE_BYTES = 4 << 20
};

/* One allocation. Whoever finds it holds its shelf's lock until it is off the shelf. */
typedef struct tni_block {
    struct tni_block *next;  /* in its bucket */
    struct tni_block *under; /* in the one other list it is on: kept blocks, or blocks taken out */
    void *address;
    uint64_t bytes; /* as asked for */
    uint64_t room;  /* as taken from the platform */
    uint32_t life;  /* the memory's, when it was taken from there */
    int16_t size_class;
    uint8_t label;
    bool kept;
    bool pinned; /* of host memory: the platform's, to be given back to it */
} tni_block;

/* Blocks by address, with room for any number: adding one needs no memory. */
typedef struct tni_shelf {
    _Alignas(TNI_CACHE_LINE) tni_latch lock;
    tni_block **buckets; /* `first`, or owned */
    size_t bucket_count; /* a power of two */
    size_t blocks;
    _Atomic int64_t count;       /* of blocks held; written with the lock held, as the next two */
    _Atomic int64_t allocations; /* made so far */
    _Atomic int64_t kept;        /* bytes */
    int64_t kept_drawn;          /* of the bound on what all shelves keep; at least `kept` */
    tni_block *first[TNI_SHELF_BUCKETS];
} tni_shelf;

void tni_shelf_init(tni_shelf *shelf);
void tni_shelf_destroy(tni_shelf *shelf); /* it is empty */

/* With the lock held. Adding refuses an address that is there. */
tni_block *tni_shelf_find(const tni_shelf *shelf, const void *address);
bool tni_shelf_add(tni_shelf *shelf, tni_block *block);
void tni_shelf_remove(tni_shelf *shelf, tni_block *block);
void tni_shelf_count(tni_shelf *shelf, int64_t blocks); /* +1 counts as an allocation too */

/* Takes out every block that `which` says, or all for NULL: a list by `under`. With the lock
 * held. */
tni_block *tni_shelf_take(tni_shelf *shelf, bool (*which)(const tni_block *block));

/* Who holds memory: TNI_LABELS different labels, and one row for all others meanwhile. A row is a
 * label's until nothing is counted on it and another label needs one. */
enum { TNI_OF_DEVICE, TNI_OF_HOST, TNI_KINDS };
enum { TNI_LABEL_NONE = 0, TNI_LABEL_OTHERS = TNI_LABELS + 1, TNI_LABEL_ROWS };

typedef struct tni_labels {
    tni_latch lock;                         /* of adding */
    _Atomic uint8_t slots[TNI_LABEL_SLOTS]; /* by hash: a row, or 0 */
    struct {
        _Atomic uint64_t text[TNI_LABEL_WORDS];
        _Atomic int64_t bytes[TNI_KINDS]; /* of TNI_LABEL_NONE not counted; below 0: no label's */
    } rows[TNI_LABEL_ROWS];
} tni_labels;

void tni_labels_init(tni_labels *labels); /* it is zeroed */

/* Counts bytes on the label's row, which is returned, and takes them back. NULL and "" are
 * TNI_LABEL_NONE. */
uint8_t tni_labels_take(tni_labels *labels, const char *label, int32_t kind, int64_t bytes);
void tni_labels_give(tni_labels *labels, uint8_t row, int32_t kind, int64_t bytes);

/* Of a row that may become another's meanwhile, for a message. */
void tni_labels_text(const tni_labels *labels, uint8_t row, char out[TNI_LABEL_TEXT]);

/* "held most by kv-cache (8.0 GiB), weights (3.2 GiB)", of `held` bytes in all. */
typedef struct tni_memory_words {
    char text[192];
} tni_memory_words;
tni_memory_words tni_labels_words(const tni_labels *labels, int32_t kind, int64_t held);

/* Host memory through which copies go that no platform can do directly. */
typedef struct tni_stage {
    char *bytes; /* TNI_STAGE_BYTES */
    bool pinned;
    uint32_t life;          /* the memory's, when it was taken */
    struct tni_stage *next; /* of those that were left */
} tni_stage;

typedef struct tni_memory {
    _Alignas(TNI_CACHE_LINE) _Atomic int64_t current; /* a line that every allocation writes to */
    _Atomic int64_t peak;
    _Atomic int64_t limit;
    _Atomic int64_t host;
    _Atomic int64_t kept_drawn; /* by all shelves */
    _Atomic int64_t failures;
    _Atomic int64_t wrong_frees;
    tni_stage *_Atomic stage; /* one that is not in use, or NULL; in no statistic */

    tni_shelf shelves[TNI_SHELVES];
    tni_shelf host_shelf;
    tn_device *device;
    struct tni_memory *next; /* in the list of all that were ever used */
    tni_stage *_Atomic left; /* those that queued work may still use, by `next` */
    tni_labels labels;
    tni_block *kept_blocks[TNI_SHELVES][TNI_CLASSES]; /* guarded by the shelf's lock */
    _Atomic uint32_t filled[TNI_CLASSES]; /* a bit for each shelf that may keep such blocks */
    _Atomic uint32_t life; /* how often the device was reset; what is of an earlier one is gone */
    _Atomic bool watched;  /* it is on the list; its locks are not touched before */
    bool keeps;            /* false in builds with a sanitizer: what is kept hides wrong uses */
} tni_memory;

/* The device's book, made at the first need: a device that is never allocated from has none. NULL for want
 * of memory. */
tni_memory *tni_memory_of(tn_device *device);

/* The same without making one: NULL when there was no need yet. */
static inline tni_memory *tni_memory_so_far(const tn_device *device)
{
    return atomic_load_explicit(&device->memory, memory_order_acquire);
}

/* To be called before the first lock of the memory is taken, with no lock of Tenon's held. */
void tni_memory_watch(tni_memory *memory);

/* As tn_memory_alloc and tn_memory_free, for a holder that may outlive a reset: what is of an earlier
 * life is gone, and whatever has its address by now is another's and stays. Never a NULL device. */
tn_status tni_memory_take(tn_device *device, uint64_t bytes, const char *label, void **out,
                          uint32_t *out_life, tn_error *err);
void tni_memory_give(tn_device *device, void *memory, uint32_t life);

/* Its memory is the host's own: a copy to or from it is a copy of host memory. Never that of a device
 * for planning only. */
static inline bool tni_memory_is_host(const tn_device *device)
{
    return !device || (device->offer && device->offer->platform->row->kind == TN_PLATFORM_CPU &&
                       (device->properties.known & TN_DEVICE_KNOWS(is_integrated)) &&
                       device->properties.is_integrated == 1);
}

/* Adds to `current` what the limit allows; *out_sum is what it came to. Allocations that succeed
 * show the sum to the peak; others take it back. */
bool tni_memory_reserve(tni_memory *memory, int64_t bytes, int64_t *out_sum);
void tni_memory_unreserve(tni_memory *memory, int64_t bytes);
void tni_memory_peak(tni_memory *memory, int64_t sum);

/* TN_OUT_OF_MEMORY with what was asked, what is free, the limit, who holds most, and what was
 * said about it, if anything. */
tn_status tni_memory_refuse(tni_memory *memory, int32_t kind, const char *where, uint64_t bytes,
                            const tn_error *said, tn_error *err);

/* Sizes of one class share what is kept; TNI_NO_CLASS for what is too large to be kept. */
int32_t tni_class_of(uint64_t bytes);
uint64_t tni_class_bytes(int32_t size_class);

tni_shelf *tni_memory_shelf(tni_memory *memory, const void *address);

/* A kept block of that life becomes one that is held: its address, or NULL. */
void *tni_keep_take(tni_memory *memory, uint32_t life, int32_t size_class, uint64_t bytes,
                    uint8_t label);

/* Keeps a block that is on the shelf, if it may; with the shelf's lock held. */
bool tni_keep_put(tni_memory *memory, tni_shelf *shelf, tni_block *block);

int64_t tni_keep_bytes(const tni_memory *memory);

/* The shelf keeps no block any more; with its lock held. */
void tni_keep_none(tni_memory *memory, tni_shelf *shelf);

/* Gives kept blocks back by `call`, or forgets them for NULL. */
void tni_keep_trim(tni_memory *memory, const tni_call *call);

/* Frees host memory whose block is on no shelf, and the block. What is the platform's goes back by
 * `call`, or is forgotten for NULL. */
void tni_host_give(tni_memory *memory, tni_block *block, const tni_call *call);

/* A stage for copies to `device`, pinned for it where that can be done, NULL for want of memory; and
 * back, when nothing uses it. What is queued and could not be waited for may still do: then it is
 * left, until the device is reset or ends. */
tni_stage *tni_stage_take(tn_device *device, const tni_call *call, const char *where);
void tni_stage_give(tn_device *device, tni_stage *stage);
void tni_stage_leave(tn_device *device, tni_stage *stage);
void tni_stage_trim(tni_memory *memory, const tni_call *call); /* NULL: as above */
void tni_stage_end(tni_memory *memory, const tni_call *call);  /* those that were left too */

/* One side of a copy. */
typedef struct tni_side {
    tn_device *device; /* NULL: the host's memory */
    tni_call call;
    char *at;
    uint64_t pitch;
} tni_side;

/* Rows that are copied; `bytes` and `rows` are not 0. */
typedef struct tni_copy {
    tni_side to;
    tni_side from;
    uint64_t bytes;
    uint64_t rows;
} tni_copy;

/* Through host memory, piece by piece; done when it returns. */
tn_status tni_copy_staged(const tni_copy *copy, tn_stream *to_stream, tn_stream *from_stream,
                          const char *where, tn_error *err);

/* The row's own copy. Of two devices' the loss is kept with the one that says it is lost. */
tn_status tni_copy_call(const tni_copy *copy, const tn_stream *stream, tn_error *err);

#endif
