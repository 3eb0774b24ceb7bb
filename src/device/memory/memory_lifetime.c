/* Lifetime of a device's memory: created on first use, destroyed with the device, emptied at a
 * reset, and kept consistent across fork(). */
#include "base/alloc.h"
#include "memory.h"
#include "os/fork.h"

/* A memory is put on the list at its first use, not when it is created: devices are created under
 * locks that a fork may be waiting for. */
static tni_mutex living_lock = TNI_MUTEX_INIT;
static tni_memory *living;

static void lock_all(void)
{
    tni_mutex_lock(&living_lock);
    for (tni_memory *memory = living; memory; memory = memory->next) {
        for (size_t i = 0; i < TNI_SHELVES; i++)
            tni_latch_lock(&memory->shelves[i].lock);
        tni_latch_lock(&memory->host_shelf.lock);
        tni_latch_lock(&memory->labels.lock);
    }
}

static void unlock_all(void)
{
    for (tni_memory *memory = living; memory; memory = memory->next) {
        tni_latch_unlock(&memory->labels.lock);
        tni_latch_unlock(&memory->host_shelf.lock);
        for (size_t i = 0; i < TNI_SHELVES; i++)
            tni_latch_unlock(&memory->shelves[i].lock);
    }
    tni_mutex_unlock(&living_lock);
}

static void watch_forks(void)
{
    static const tni_fork_hook hook = {lock_all, unlock_all, unlock_all};
    tni_fork_watch(&hook);
}

void tni_memory_watch(tni_memory *memory)
{
    static tni_once once = TNI_ONCE_INIT;
    if (atomic_load_explicit(&memory->watched, memory_order_acquire))
        return;
    tni_once_run(&once, watch_forks);
    tni_mutex_lock(&living_lock);
    if (!atomic_load_explicit(&memory->watched, memory_order_relaxed)) {
        memory->next = living;
        living = memory;
        atomic_store_explicit(&memory->watched, true, memory_order_release);
    }
    tni_mutex_unlock(&living_lock);
}

static void leave_list(tni_memory *memory)
{
    if (!atomic_load_explicit(&memory->watched, memory_order_acquire))
        return;
    tni_mutex_lock(&living_lock);
    tni_memory **at = &living;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    tni_mutex_unlock(&living_lock);
}

static tni_memory *create(tn_device *device)
{
    tni_memory *memory = tni_alloc_aligned(sizeof *memory, _Alignof(tni_memory));
    if (!memory)
        return NULL;
    memset(memory, 0, sizeof *memory);
    memory->device = device;
    memory->keeps = TN_MODULE_BUILT_WITH == 0;
    for (size_t i = 0; i < TNI_SHELVES; i++)
        tni_shelf_init(&memory->shelves[i]);
    tni_shelf_init(&memory->host_shelf);
    tni_labels_init(&memory->labels);
    return memory;
}

tni_memory *tni_memory_of(tn_device *device)
{
    tni_memory *memory = tni_memory_so_far(device);
    if (memory)
        return memory;
    tni_memory *made = create(device);
    if (made && atomic_compare_exchange_strong(&device->memory, &memory, made))
        return made;
    tni_release(made); /* another thread was first, or out of memory */
    return memory;
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
    leave_list(memory);
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
