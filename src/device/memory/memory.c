/* Allocation of device memory, immediate and stream-ordered. */
#include "memory.h"

#include "base/alloc.h"
#include "base/log.h"
#include "device/stream/stream.h"

typedef struct request {
    const char *where;
    tni_memory *memory;
    tni_call call;
    const tn_stream *stream; /* for stream-ordered allocation; NULL: immediate */
    uint64_t bytes;
    uint8_t label;
    uint32_t epoch; /* epoch of the memory when the request was made */
} request;

/* Whether the platform has stream-ordered allocation. Rows of older modules end before these
 * fields. */
static bool has_order(const tn_platform_row *row)
{
    return TN_HAS(row, tn_platform_row, memory_free_on) && row->memory_alloc_on;
}

static tn_status request_block(const request *r, tni_block *block, tn_error *out_said)
{
    const tni_call *call = &r->call;
    memset(out_said, 0, sizeof *out_said);
    return r->stream ? call->row->memory_alloc_on(call->self, call->device, r->stream->native,
                                                  block->room, &block->address, out_said)
                     : call->row->memory_alloc(call->self, call->device, block->room,
                                               &block->address, out_said);
}

/* Returns memory to the platform that the caller never received. */
static void return_block(const request *r, void *address)
{
    tn_error said;
    if (r->stream)
        (void)r->call.row->memory_free_on(r->call.self, r->call.device, r->stream->native, address,
                                          &said);
    else
        r->call.row->memory_free(r->call.self, r->call.device, address);
}

/* Allocates `room` bytes from the platform. If it is out of memory, releases what is kept and
 * retries once with the exact size. Stream-ordered memory is never kept: the thread that frees it may be
 * ahead of the stream. */
static tn_status request_with_retry(const request *r, tni_block *block, tn_error *out_said)
{
    tni_memory *memory = r->memory;
    int64_t limit = atomic_load(&memory->limit);
    uint64_t exact = r->bytes ? r->bytes : 1;
    block->size_class =
        (int16_t)(memory->keeps && !r->stream ? tni_class_of(r->bytes) : TNI_NO_CLASS);
    block->room = block->size_class == TNI_NO_CLASS ? exact : tni_class_bytes(block->size_class);
    if (limit > 0 && atomic_load(&memory->current) + tni_keep_bytes(memory) > limit)
        tni_keep_trim(memory, &r->call);
    tn_status status = request_block(r, block, out_said);
    if (status != TN_OUT_OF_MEMORY)
        return status;
    tni_keep_trim(memory, &r->call);
    tni_stage_trim(memory, &r->call);
    block->size_class = TNI_NO_CLASS;
    block->room = exact;
    return request_block(r, block, out_said);
}

/* Validates what the platform returned and puts it on its shelf. */
static tn_status shelve_block(const request *r, tni_block *block, tn_error *out_said)
{
    tni_shelf *shelf = tni_memory_shelf(r->memory, block->address);
    if (!block->address || (uintptr_t)block->address % TNI_ALIGNMENT != 0) {
        if (block->address)
            return_block(r, block->address);
        return tn_fail(out_said, TN_INTERNAL, 0, "", "expected memory aligned to %d bytes, got %p",
                       TNI_ALIGNMENT, block->address);
    }
    tni_latch_lock(&shelf->lock);
    bool gone = r->epoch != atomic_load(&r->memory->epoch);
    bool added = !gone && tni_shelf_add(shelf, block);
    if (added)
        tni_shelf_count(shelf, 1);
    tni_latch_unlock(&shelf->lock);
    if (gone)
        return tn_fail(out_said, TN_CANCELLED, 0, "", "the device was reset meanwhile");
    if (!added)
        return tn_fail(out_said, TN_INTERNAL, 0, "", "it returned %p, which is already allocated",
                       block->address);
    return TN_OK;
}

static tn_status alloc_new_block(const request *r, void **out, tn_error *out_said)
{
    tni_block *block = tni_alloc(sizeof *block);
    if (!block)
        return tn_fail(out_said, TN_OUT_OF_MEMORY, 0, "",
                       "the host has no memory for its accounting");
    *block = (tni_block){.bytes = r->bytes, .epoch = r->epoch, .label = r->label};
    tn_status status = request_with_retry(r, block, out_said);
    void *address = block->address; /* once on its shelf, other threads may free the block */
    if (!status) {
        (void)tni_device_described(r->call.of); /* the memory size bounds what is kept */
        status = shelve_block(r, block, out_said);
    }
    if (status)
        tni_release(block);
    else
        *out = address;
    return status;
}

/* Allocates from the platform. On failure undoes the counts first; TN_OUT_OF_MEMORY then gets a
 * detailed message. */
static tn_status allocate_new(const request *r, void **out, tn_error *err)
{
    tni_memory *memory = r->memory;
    tn_error said = {0};
    tn_status status = alloc_new_block(r, out, &said);
    if (!status)
        return TN_OK;
    tni_labels_subtract(&memory->labels, r->label, TNI_OF_DEVICE, (int64_t)r->bytes);
    tni_memory_unreserve(memory, (int64_t)r->bytes);
    return status == TN_OUT_OF_MEMORY
               ? tni_memory_fail(memory, TNI_OF_DEVICE, r->where, r->bytes, &said, err)
               : tni_device_result_check(&r->call, r->where, status, &said, err);
}

static tn_status allocate_memory(request *r, const char *label, void **out, tn_error *err)
{
    tni_memory *memory = r->memory;
    void *address = NULL;
    int64_t bytes = (int64_t)r->bytes, sum;
    int32_t size_class = tni_class_of(r->bytes);
    if (r->bytes > INT64_MAX || !tni_memory_reserve(memory, bytes, &sum))
        return tni_memory_fail(memory, TNI_OF_DEVICE, r->where, r->bytes, NULL, err);
    r->label = tni_labels_add(&memory->labels, label, TNI_OF_DEVICE, bytes);
    if (size_class != TNI_NO_CLASS)
        address = tni_keep_reuse(memory, r->epoch, size_class, r->bytes, r->label);
    tn_status status = address ? TN_OK : allocate_new(r, &address, err);
    if (status)
        return status;
    tni_memory_peak(memory, sum);
    *out = address;
    return TN_OK;
}

/* `stream`: for stream-ordered allocation, or NULL. */
static tn_status alloc_block(tn_device *device, const tn_stream *stream, const char *where,
                             uint64_t bytes, const char *label, void **out, uint32_t *out_epoch,
                             tn_error *err)
{
    request r = {.where = where, .memory = tni_memory_of(device), .bytes = bytes};
    if (!r.memory)
        return tni_no_memory(err, where, "the memory accounting of a device");
    tn_status status = tni_device_open(device, where, &r.call, err);
    if (!status) {
        tni_memory_watch(r.memory);
        r.epoch = atomic_load(&r.memory->epoch);
        r.stream = stream && has_order(r.call.row) ? stream : NULL;
        status = allocate_memory(&r, label, out, err);
    }
    if (status)
        atomic_fetch_add(&r.memory->failures, 1);
    else
        *out_epoch = r.epoch;
    return status;
}

static const char alloc_where[] = "tn_memory_alloc";

tn_status tni_memory_acquire(tn_device *device, uint64_t bytes, const char *label, void **out,
                             uint32_t *out_epoch, tn_error *err)
{
    return alloc_block(device, NULL, alloc_where, bytes, label, out, out_epoch, err);
}

tn_status tni_memory_alloc_on(tn_stream *stream, const char *where, uint64_t bytes,
                              const char *label, void **out, tn_error *err)
{
    uint32_t epoch;
    return alloc_block(stream->device, stream, where, bytes, label, out, &epoch, err);
}

/* Result of a free, determined under the shelf's lock. */
typedef struct farewell {
    bool held;        /* false: not an allocation in use */
    bool freed;       /* it was already freed and is kept */
    tni_block *block; /* removed from its shelf, or NULL */
    int64_t bytes;
    uint8_t label;
} farewell;

/* `epoch` is the expected epoch of the block; NULL: any. */
static farewell unshelve_block(tni_memory *memory, const void *address, const uint32_t *epoch,
                               bool may_keep)
{
    tni_shelf *shelf = tni_memory_shelf(memory, address);
    farewell out = {.held = false};
    tni_latch_lock(&shelf->lock);
    tni_block *block = tni_shelf_find(shelf, address);
    if (block && epoch && block->epoch != *epoch)
        block = NULL;
    out.freed = block && block->kept;
    if (block && !block->kept) {
        out.held = true;
        out.bytes = (int64_t)block->bytes;
        out.label = block->label;
        tni_shelf_count(shelf, -1);
        if (!may_keep || tni_offer_is_withdrawn(memory->device->offer) ||
            !tni_keep_put(memory, shelf, block)) {
            tni_shelf_remove(shelf, block);
            out.block = block;
        }
    }
    tni_latch_unlock(&shelf->lock);
    return out;
}

/* The platform did not free the block: puts it back in use. Returns false if a reset ended its
 * epoch. */
static bool put_back(tni_memory *memory, tni_block *block)
{
    tni_shelf *shelf = tni_memory_shelf(memory, block->address);
    tni_latch_lock(&shelf->lock);
    bool added = block->epoch == atomic_load(&memory->epoch) && tni_shelf_add(shelf, block);
    if (added)
        atomic_fetch_add_explicit(&shelf->count, 1, memory_order_relaxed);
    tni_latch_unlock(&shelf->lock);
    return added;
}

static void uncount_block(tni_memory *memory, const farewell *done)
{
    tni_release(done->block);
    tni_labels_subtract(&memory->labels, done->label, TNI_OF_DEVICE, done->bytes);
    tni_memory_unreserve(memory, done->bytes);
}

/* Reports a free of memory that is not in use. */
static tn_status report_wrong_free(tni_memory *book, const void *memory, const farewell *done,
                                   const char *where, tn_error *err)
{
    const char *id = book->device->id;
    const char *why = done->freed ? "was already freed" : "is not an allocation of this device";
    atomic_fetch_add(&book->wrong_frees, 1);
    tni_log(TN_LOG_ERROR, "%s: %p is not freed: it %s", id, memory, why);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: %p is not freed: it %s", id, memory,
                   why);
}

static tn_status free_block(tn_device *device, void *memory, const uint32_t *epoch,
                            const char *where, tn_error *err)
{
    tni_call call;
    farewell done = {.held = false};
    tni_memory *book = tni_memory_of(device);
    if (!book)
        return TN_OK; /* nothing was ever allocated */
    bool usable = tni_device_open_to_return(device, &call);
    if (atomic_load_explicit(&book->watched, memory_order_acquire))
        done = unshelve_block(book, memory, epoch, usable);
    if (!done.held && epoch && *epoch != atomic_load(&book->epoch))
        return TN_OK;
    if (!done.held)
        return report_wrong_free(book, memory, &done, where, err);
    if (done.block && usable)
        call.row->memory_free(call.self, call.device, memory);
    uncount_block(book, &done);
    return TN_OK;
}

void tni_memory_release(tn_device *device, void *memory, uint32_t epoch)
{
    (void)free_block(device, memory, &epoch, "", NULL);
}

void tni_memory_free(tn_device *device, void *memory)
{
    (void)free_block(device, memory, NULL, "", NULL);
}

/* Frees on the platform in stream order. If that reports TN_DEVICE_LOST, the memory counts as
 * freed. */
static tn_status free_in_order(const tn_stream *stream, const tni_call *call, void *memory,
                               const char *where, tn_error *err)
{
    tn_error said = {0};
    farewell done = {.held = false};
    tni_memory *book = tni_memory_of(stream->device);
    if (!book)
        return tni_no_memory(err, where, "the memory accounting of a device");
    if (atomic_load_explicit(&book->watched, memory_order_acquire))
        done = unshelve_block(book, memory, NULL, false);
    if (!done.held)
        return report_wrong_free(book, memory, &done, where, err);
    tn_status status =
        call->row->memory_free_on(call->self, call->device, stream->native, memory, &said);
    if (!status || status == TN_DEVICE_LOST || !put_back(book, done.block))
        uncount_block(book, &done);
    return tni_device_result_check(call, where, status, &said, err);
}

/* Waits for the stream, if the platform has streams, then frees. */
static tn_status free_after_stream(const tn_stream *stream, const tni_call *call, void *memory,
                                   const char *where, tn_error *err)
{
    tn_error said = {0};
    tn_status status = TN_OK;
    if (tni_row_has_streams(call->row))
        status = tni_device_result_check(
            call, where,
            call->row->stream_synchronize(call->self, call->device, stream->native, &said), &said,
            err);
    if (status == TN_DEVICE_LOST)
        (void)free_block(stream->device, memory, NULL, where, NULL);
    return status ? status : free_block(stream->device, memory, NULL, where, err);
}

tn_status tni_memory_free_on(tn_stream *stream, void *memory, const char *where, tn_error *err)
{
    tni_call call;
    if (!tni_device_open_to_return(stream->device, &call))
        return free_block(stream->device, memory, NULL, where, err);
    return has_order(call.row) ? free_in_order(stream, &call, memory, where, err)
                               : free_after_stream(stream, &call, memory, where, err);
}
