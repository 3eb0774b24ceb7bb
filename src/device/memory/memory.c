/* Allocation from devices. */
#include "memory.h"

#include "base/alloc.h"
#include "base/log.h"

static const char where[] = "tn_memory_alloc";

typedef struct request {
    tni_memory *memory;
    tni_call call;
    uint64_t bytes;
    uint8_t label;
    uint32_t life; /* of the memory, when it was made */
} request;

static tn_status ask(const request *r, tni_block *block, tn_error *out_said)
{
    memset(out_said, 0, sizeof *out_said);
    return r->call.row->memory_alloc(r->call.self, r->call.device, block->room, &block->address,
                                     out_said);
}

/* Takes `room` from the platform. When it has none, what is kept is given back, and what was asked
 * for is tried once more, to the byte. */
static tn_status ask_twice(const request *r, tni_block *block, tn_error *out_said)
{
    tni_memory *memory = r->memory;
    int64_t limit = atomic_load(&memory->limit);
    uint64_t exact = r->bytes ? r->bytes : 1;
    block->size_class = (int16_t)(memory->keeps ? tni_class_of(r->bytes) : TNI_NO_CLASS);
    block->room = block->size_class == TNI_NO_CLASS ? exact : tni_class_bytes(block->size_class);
    if (limit > 0 && atomic_load(&memory->current) + tni_keep_bytes(memory) > limit)
        tni_keep_trim(memory, &r->call);
    tn_status status = ask(r, block, out_said);
    if (status != TN_OUT_OF_MEMORY)
        return status;
    tni_keep_trim(memory, &r->call);
    tni_stage_trim(memory, &r->call);
    block->size_class = TNI_NO_CLASS;
    block->room = exact;
    return ask(r, block, out_said);
}

/* Puts what the platform gave on its shelf, if it is sound. */
static tn_status enter(const request *r, tni_block *block, tn_error *out_said)
{
    tni_shelf *shelf = tni_memory_shelf(r->memory, block->address);
    if (!block->address || (uintptr_t)block->address % TNI_ALIGNMENT != 0) {
        if (block->address)
            r->call.row->memory_free(r->call.self, r->call.device, block->address);
        return tn_fail(out_said, TN_INTERNAL, 0, "",
                       "memory is to be aligned to %d bytes, and it gave %p", TNI_ALIGNMENT,
                       block->address);
    }
    tni_latch_lock(&shelf->lock);
    bool gone = r->life != atomic_load(&r->memory->life);
    bool added = !gone && tni_shelf_add(shelf, block);
    if (added)
        tni_shelf_count(shelf, 1);
    tni_latch_unlock(&shelf->lock);
    if (gone)
        return tn_fail(out_said, TN_CANCELLED, 0, "", "it was reset meanwhile");
    if (!added)
        return tn_fail(out_said, TN_INTERNAL, 0, "", "it gave %p, which it has given before",
                       block->address);
    return TN_OK;
}

static tn_status take_new(const request *r, void **out, tn_error *out_said)
{
    tni_block *block = tni_alloc(sizeof *block);
    if (!block)
        return tn_fail(out_said, TN_OUT_OF_MEMORY, 0, "", "the host has no memory for its book");
    *block = (tni_block){.bytes = r->bytes, .life = r->life, .label = r->label};
    tn_status status = ask_twice(r, block, out_said);
    void *address = block->address; /* on its shelf the block is anyone's */
    if (!status) {
        (void)tni_device_described(r->call.of); /* its size bounds what is kept */
        status = enter(r, block, out_said);
    }
    if (status)
        tni_release(block);
    else
        *out = address;
    return status;
}

/* From the platform; for want of memory with what can be said about it, when the request counts no
 * longer. */
static tn_status allocate_new(const request *r, void **out, tn_error *err)
{
    tni_memory *memory = r->memory;
    tn_error said = {0};
    tn_status status = take_new(r, out, &said);
    if (!status)
        return TN_OK;
    tni_labels_give(&memory->labels, r->label, TNI_OF_DEVICE, (int64_t)r->bytes);
    tni_memory_unreserve(memory, (int64_t)r->bytes);
    return status == TN_OUT_OF_MEMORY
               ? tni_memory_refuse(memory, TNI_OF_DEVICE, where, r->bytes, &said, err)
               : tni_device_settle(&r->call, where, status, &said, err);
}

static tn_status allocate(request *r, const char *label, void **out, tn_error *err)
{
    tni_memory *memory = r->memory;
    void *address = NULL;
    int64_t bytes = (int64_t)r->bytes, sum;
    int32_t size_class = tni_class_of(r->bytes);
    if (r->bytes > INT64_MAX || !tni_memory_reserve(memory, bytes, &sum))
        return tni_memory_refuse(memory, TNI_OF_DEVICE, where, r->bytes, NULL, err);
    r->label = tni_labels_take(&memory->labels, label, TNI_OF_DEVICE, bytes);
    if (size_class != TNI_NO_CLASS)
        address = tni_keep_take(memory, r->life, size_class, r->bytes, r->label);
    tn_status status = address ? TN_OK : allocate_new(r, &address, err);
    if (status)
        return status;
    tni_memory_peak(memory, sum);
    *out = address;
    return TN_OK;
}

tn_status tni_memory_take(tn_device *device, uint64_t bytes, const char *label, void **out,
                          uint32_t *out_life, tn_error *err)
{
    request r = {.memory = tni_memory_of(device), .bytes = bytes};
    if (!r.memory)
        return tni_no_memory(err, where, "the book of a device's memory");
    tn_status status = tni_device_open(device, where, &r.call, err);
    if (!status) {
        tni_memory_watch(r.memory);
        r.life = atomic_load(&r.memory->life);
        status = allocate(&r, label, out, err);
    }
    if (status)
        atomic_fetch_add(&r.memory->failures, 1);
    else
        *out_life = r.life;
    return status;
}

tn_status tn_memory_alloc(tn_device *device, uint64_t bytes, const char *label, void **out,
                          tn_error *err)
{
    uint32_t life;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = tni_device_or_default(device, &device, err);
    return status ? status : tni_memory_take(device, bytes, label, out, &life, err);
}

/* What a free does, found out under the shelf's lock. */
typedef struct farewell {
    bool held;        /* else it is none of the program's */
    bool freed;       /* and it was, as it is kept */
    tni_block *block; /* off its shelf, or NULL */
    int64_t bytes;
    uint8_t label;
} farewell;

/* `life` is that of the block which is meant; NULL: whichever has the address. */
static farewell part(tni_memory *memory, const void *address, const uint32_t *life, bool usable)
{
    tni_shelf *shelf = tni_memory_shelf(memory, address);
    farewell out = {.held = false};
    tni_latch_lock(&shelf->lock);
    tni_block *block = tni_shelf_find(shelf, address);
    if (block && life && block->life != *life)
        block = NULL;
    out.freed = block && block->kept;
    if (block && !block->kept) {
        out.held = true;
        out.bytes = (int64_t)block->bytes;
        out.label = block->label;
        tni_shelf_count(shelf, -1);
        if (!usable || tni_offer_is_withdrawn(memory->device->offer) ||
            !tni_keep_put(memory, shelf, block)) {
            tni_shelf_remove(shelf, block);
            out.block = block;
        }
    }
    tni_latch_unlock(&shelf->lock);
    return out;
}

static void give(tn_device *device, void *memory, const uint32_t *life)
{
    tni_call call;
    farewell done = {.held = false};
    tni_memory *book = tni_memory_of(device);
    if (!book)
        return; /* nothing was ever taken */
    bool usable = tni_device_open_to_return(device, &call);
    if (atomic_load_explicit(&book->watched, memory_order_acquire))
        done = part(book, memory, life, usable);
    if (!done.held && life && *life != atomic_load(&book->life))
        return;
    if (!done.held) {
        atomic_fetch_add(&book->wrong_frees, 1);
        tni_log(TN_LOG_ERROR, "%s: %p is not freed: it %s", device->id, memory,
                done.freed ? "was freed before" : "is no allocation of this device that is held");
        return;
    }
    if (done.block && usable)
        call.row->memory_free(call.self, call.device, memory);
    tni_release(done.block);
    tni_labels_give(&book->labels, done.label, TNI_OF_DEVICE, done.bytes);
    tni_memory_unreserve(book, done.bytes);
}

void tni_memory_give(tn_device *device, void *memory, uint32_t life)
{
    give(device, memory, &life);
}

void tn_memory_free(tn_device *device, void *memory)
{
    if (!memory)
        return;
    if (tni_device_or_default(device, &device, NULL))
        tni_log(TN_LOG_ERROR, "%p is not freed: no device is named, and none is current", memory);
    else
        give(device, memory, NULL);
}
