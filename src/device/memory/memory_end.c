/* The end of a device's memory: destroyed with the device, emptied at a reset. */
#include "base/alloc.h"
#include "memory.h"

void tni_host_free(tni_memory *memory, tni_block *block, const tni_call *call)
{
    if (!block->pinned)
        tni_release(block->address);
    else if (call)
        call->row->host_free(call->self, call->device, block->address);
    tni_labels_subtract(&memory->labels, block->label, TNI_OF_HOST, (int64_t)block->bytes);
    atomic_fetch_sub_explicit(&memory->host, (int64_t)block->bytes, memory_order_relaxed);
    tni_release(block);
}

static bool is_pinned(const tni_block *block)
{
    return block->pinned;
}

/* Removes a list of blocks from all statistics, and returns each to the platform by `call`; NULL:
 * only forgets it. */
static void drop_blocks(tni_memory *memory, tni_block *taken, const tni_call *call)
{
    for (tni_block *block = taken, *under; block; block = under) {
        under = block->under;
        if (call)
            call->row->memory_free(call->self, call->device, block->address);
        if (!block->kept) {
            tni_labels_subtract(&memory->labels, block->label, TNI_OF_DEVICE,
                                (int64_t)block->bytes);
            tni_memory_unreserve(memory, (int64_t)block->bytes);
        }
        tni_release(block);
    }
}

static void drop_shelf(tni_memory *memory, size_t number, const tni_call *call)
{
    tni_shelf *shelf = &memory->shelves[number];
    tni_latch_lock(&shelf->lock);
    tni_block *taken = tni_shelf_drain(shelf, NULL);
    memset(memory->kept_blocks[number], 0, sizeof memory->kept_blocks[number]);
    tni_keep_none(memory, shelf);
    atomic_store(&shelf->count, 0);
    atomic_store(&shelf->allocations, 0);
    tni_latch_unlock(&shelf->lock);
    drop_blocks(memory, taken, call);
}

/* Drops host memory: all of it, or only the platform's. */
static void drop_host(tni_memory *memory, bool all, const tni_call *call)
{
    tni_shelf *shelf = &memory->host_shelf;
    tni_latch_lock(&shelf->lock);
    tni_block *block = tni_shelf_drain(shelf, all ? NULL : is_pinned);
    tni_latch_unlock(&shelf->lock);
    for (tni_block *under; block; block = under) {
        under = block->under;
        tni_host_free(memory, block, call);
    }
}

void tni_memory_destroy(tni_memory *memory)
{
    tni_call call;
    if (!memory)
        return;
    bool usable = tni_device_open_to_return(memory->device, &call);
    tni_memory_unwatch(memory);
    for (size_t i = 0; i < TNI_SHELVES; i++) {
        drop_shelf(memory, i, usable ? &call : NULL);
        tni_shelf_destroy(&memory->shelves[i]);
    }
    drop_host(memory, true, usable ? &call : NULL);
    tni_shelf_destroy(&memory->host_shelf);
    tni_stage_end(memory, usable ? &call : NULL);
    tni_release(memory);
}

/* Subtracts what it removes, so that an allocation in progress on another thread stays counted
 * until it finds its epoch has ended. The limit stays, as it was set by the program; so does host
 * memory that is not the platform's. */
void tni_memory_forget(tni_memory *memory)
{
    if (!memory)
        return;
    tni_memory_watch(memory);
    atomic_fetch_add(&memory->epoch, 1);
    for (size_t i = 0; i < TNI_SHELVES; i++)
        drop_shelf(memory, i, NULL);
    drop_host(memory, false, NULL);
    tni_stage_end(memory, NULL);
    atomic_store(&memory->failures, 0);
    atomic_store(&memory->wrong_frees, 0);
    tn_memory_peak_reset(memory->device);
}
