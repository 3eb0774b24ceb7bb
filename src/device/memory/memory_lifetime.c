/* A device's memory is created on first use, and kept consistent across fork(). */
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

void tni_memory_unwatch(tni_memory *memory)
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
