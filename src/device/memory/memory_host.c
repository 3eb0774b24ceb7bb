/* Host memory for a device: from the platform if it provides such memory (pinned), else ordinary.
 * Freed host memory is never kept. */
#include "base/alloc.h"
#include "base/log.h"
#include "memory.h"

/* Sets the block's address, from the platform if it provides host memory. */
static tn_status alloc_host_block(const tni_call *call, tni_block *block, tn_error *out_said)
{
    block->pinned = call->row->host_alloc != NULL;
    if (block->pinned)
        return call->row->host_alloc(call->self, call->device, block->room, &block->address,
                                     out_said);
    block->address =
        block->room > SIZE_MAX ? NULL : tni_alloc_aligned((size_t)block->room, TNI_ALIGNMENT);
    return block->address ? TN_OK : TN_OUT_OF_MEMORY;
}

/* Validates the block and puts it on the shelf. */
static tn_status shelve_host_block(tni_memory *memory, uint32_t epoch, tni_block *block,
                                   tn_error *out_said)
{
    if (!block->address)
        return tn_fail(out_said, TN_INTERNAL, 0, "", "it returned NULL for host memory");
    tni_latch_lock(&memory->host_shelf.lock);
    bool gone = block->pinned && epoch != atomic_load(&memory->epoch);
    bool added = !gone && tni_shelf_add(&memory->host_shelf, block);
    tni_latch_unlock(&memory->host_shelf.lock);
    if (gone)
        return tn_fail(out_said, TN_CANCELLED, 0, "", "the device was reset meanwhile");
    return added ? TN_OK
                 : tn_fail(out_said, TN_INTERNAL, 0, "",
                           "it returned %p, which is already allocated", block->address);
}

/* Counts the bytes before the block is on the shelf: from then on, other threads may free it. */
static tn_status count_and_allocate(tni_memory *memory, const tni_call *call, tni_block *block,
                                    void **out, tn_error *out_said)
{
    int64_t bytes = (int64_t)block->bytes;
    uint32_t epoch = atomic_load(&memory->epoch);
    tn_status status = alloc_host_block(call, block, out_said);
    void *address = block->address;
    if (status)
        return status;
    atomic_fetch_add_explicit(&memory->host, bytes, memory_order_relaxed);
    status = shelve_host_block(memory, epoch, block, out_said);
    if (status) {
        atomic_fetch_sub_explicit(&memory->host, bytes, memory_order_relaxed);
        return status;
    }
    *out = address;
    return TN_OK;
}

static tn_status host_alloc(tni_memory *memory, const tni_call *call, uint64_t bytes,
                            const char *label, const char *where, void **out, tn_error *err)
{
    tn_error said = {0};
    tni_block *block = bytes > INT64_MAX ? NULL : tni_alloc(sizeof *block);
    if (!block)
        return tni_memory_fail(memory, TNI_OF_HOST, where, bytes, NULL, err);
    *block =
        (tni_block){.bytes = bytes,
                    .room = bytes ? bytes : 1,
                    .size_class = TNI_NO_CLASS,
                    .label = tni_labels_add(&memory->labels, label, TNI_OF_HOST, (int64_t)bytes)};
    tn_status status = count_and_allocate(memory, call, block, out, &said);
    if (!status)
        return TN_OK;
    tni_labels_subtract(&memory->labels, block->label, TNI_OF_HOST, (int64_t)bytes);
    tni_release(block);
    return status == TN_OUT_OF_MEMORY
               ? tni_memory_fail(memory, TNI_OF_HOST, where, bytes, &said, err)
               : tni_device_result_check(call, where, status, &said, err);
}

tn_status tn_memory_host_alloc(tn_device *device, uint64_t bytes, const char *label, void **out,
                               tn_error *err)
{
    static const char where[] = "tn_memory_host_alloc";
    tni_call call;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = tni_device_or_default(device, &device, err);
    if (status)
        return status;
    tni_memory *memory = tni_memory_of(device);
    if (!memory)
        return tni_no_memory(err, where, "the memory accounting of a device");
    status = tni_device_open(device, where, &call, err);
    if (!status) {
        tni_memory_watch(memory);
        status = host_alloc(memory, &call, bytes, label, where, out, err);
    }
    if (status)
        atomic_fetch_add(&memory->failures, 1);
    return status;
}

static tni_block *remove_host_block(tni_memory *memory, const void *address)
{
    tni_latch_lock(&memory->host_shelf.lock);
    tni_block *block = tni_shelf_find(&memory->host_shelf, address);
    if (block)
        tni_shelf_remove(&memory->host_shelf, block);
    tni_latch_unlock(&memory->host_shelf.lock);
    return block;
}

void tn_memory_host_free(tn_device *device, void *memory)
{
    tni_call call;
    tni_block *block = NULL;
    if (!memory)
        return;
    if (tni_device_or_default(device, &device, NULL)) {
        tni_log(TN_LOG_ERROR, "%p is not freed: no device was given, and none is current", memory);
        return;
    }
    tni_memory *book = tni_memory_of(device);
    if (!book)
        return; /* nothing was ever allocated */
    bool usable = tni_device_open_to_return(device, &call);
    if (atomic_load_explicit(&book->watched, memory_order_acquire))
        block = remove_host_block(book, memory);
    if (block) {
        tni_host_free(book, block, usable ? &call : NULL);
        return;
    }
    atomic_fetch_add(&book->wrong_frees, 1);
    tni_log(TN_LOG_ERROR, "%s: %p is not freed: it is not allocated host memory of this device",
            device->id, memory);
}
