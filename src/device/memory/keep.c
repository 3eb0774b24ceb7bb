/* Freed blocks that are kept for reuse, by size class, on the shelf of their address.
 *
 * At most 64 MiB are kept if the device's memory is host memory or its size is unknown, else a
 * sixteenth of its size; never a block above 32 MiB. Shelves reserve more of that bound than they
 * need, so that small blocks come and go without writing to a word shared by all threads. */
#include "base/alloc.h"
#include "memory.h"

/* Exponents of the size classes: the first class is 64 bytes, each power of two has four. */
enum { FIRST_POWER = 6, LAST_POWER = 25 };
enum { PORTION = 64 << 10, MOST_UNUSED = 256 << 10 };
TN_STATIC_ASSERT(TNI_CLASSES == (LAST_POWER - FIRST_POWER) * 4 + 1, "the last is a power of two");

/* The shelf where this thread last freed: its block is the most likely to be in a cache. */
static _Thread_local uint32_t recent;

static int32_t power_of(uint64_t number) /* must be below 2^32 */
{
    int32_t power = 0;
    for (int32_t step = 16; step > 0; step /= 2) {
        if (number >> step) {
            number >>= step;
            power += step;
        }
    }
    return power;
}

int32_t tni_class_of(uint64_t bytes)
{
    if (bytes <= UINT64_C(1) << FIRST_POWER)
        return 0;
    if (bytes > UINT64_C(1) << LAST_POWER)
        return TNI_NO_CLASS;
    int32_t power = power_of(bytes - 1); /* 2^power < bytes <= 2^(power+1) */
    return (power - FIRST_POWER) * 4 + (int32_t)((bytes - 1) >> (power - 2)) - 3;
}

uint64_t tni_class_bytes(int32_t size_class)
{
    return (UINT64_C(4) + (uint64_t)size_class % 4) << (size_class / 4 + FIRST_POWER - 2);
}

static int64_t max_kept_bytes(const tn_device *device)
{
    const tn_device_properties *p = tni_device_known(device);
    bool told = (p->known & TN_DEVICE_KNOWS(memory_bytes)) && !tni_memory_is_host(device);
    return told ? p->memory_bytes / 16 : INT64_C(64) << 20;
}

static bool draw_kept_bytes(tni_memory *memory, int64_t bytes)
{
    int64_t bound = max_kept_bytes(memory->device);
    int64_t drawn = atomic_load_explicit(&memory->kept_drawn, memory_order_relaxed);
    do {
        if (bytes > bound - drawn)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&memory->kept_drawn, &drawn, drawn + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Adds bytes (may be negative) to what the shelf keeps. Returns false if the bound forbids it. Must
 * be called with the lock held. */
static bool count_kept(tni_memory *memory, tni_shelf *shelf, int64_t bytes)
{
    int64_t kept = atomic_load_explicit(&shelf->kept, memory_order_relaxed) + bytes;
    int64_t lacks = kept - shelf->kept_drawn;
    if (lacks > 0) {
        int64_t more = bytes <= PORTION ? PORTION : 0;
        if (more > 0 && !draw_kept_bytes(memory, lacks + more))
            more = 0;
        if (more == 0 && !draw_kept_bytes(memory, lacks))
            return false;
        shelf->kept_drawn += lacks + more;
    } else if (lacks < -MOST_UNUSED) {
        atomic_fetch_add_explicit(&memory->kept_drawn, lacks, memory_order_relaxed);
        shelf->kept_drawn = kept;
    }
    atomic_store_explicit(&shelf->kept, kept, memory_order_relaxed);
    return true;
}

void tni_keep_none(tni_memory *memory, tni_shelf *shelf)
{
    atomic_fetch_sub_explicit(&memory->kept_drawn, shelf->kept_drawn, memory_order_relaxed);
    atomic_store_explicit(&shelf->kept, 0, memory_order_relaxed);
    shelf->kept_drawn = 0;
}

int64_t tni_keep_bytes(const tni_memory *memory)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < TNI_SHELVES; i++)
        bytes += atomic_load_explicit(&memory->shelves[i].kept, memory_order_relaxed);
    return bytes;
}

bool tni_keep_put(tni_memory *memory, tni_shelf *shelf, tni_block *block)
{
    if (block->size_class == TNI_NO_CLASS || !count_kept(memory, shelf, (int64_t)block->room))
        return false;
    uint32_t number = (uint32_t)(shelf - memory->shelves);
    _Atomic uint32_t *filled = &memory->filled[block->size_class];
    block->kept = true;
    block->under = memory->kept_blocks[number][block->size_class];
    memory->kept_blocks[number][block->size_class] = block;
    if (!(atomic_load_explicit(filled, memory_order_relaxed) >> number & 1))
        atomic_fetch_or_explicit(filled, UINT32_C(1) << number, memory_order_relaxed);
    recent = number;
    return true;
}

/* Removes the last kept block of the class from its list on one shelf and returns it, or NULL. Must
 * be called with the lock held. */
static tni_block *pop_kept_block(tni_memory *memory, uint32_t number, int32_t size_class)
{
    tni_block *block = memory->kept_blocks[number][size_class];
    if (block) {
        memory->kept_blocks[number][size_class] = block->under;
        (void)count_kept(memory, &memory->shelves[number], -(int64_t)block->room);
    }
    return block;
}

/* Leaves blocks of an earlier epoch to the reset that is about to remove them. */
static void *pop_block(tni_memory *memory, uint32_t number, uint32_t epoch, int32_t size_class,
                       uint64_t bytes, uint8_t label)
{
    tni_shelf *shelf = &memory->shelves[number];
    void *address = NULL;
    tni_latch_lock(&shelf->lock);
    tni_block *block = memory->kept_blocks[number][size_class];
    if (block && block->epoch == epoch) {
        (void)pop_kept_block(memory, number, size_class);
        block->kept = false;
        block->bytes = bytes;
        block->label = label;
        address = block->address;
        tni_shelf_count(shelf, 1);
    } else if (!block) {
        atomic_fetch_and_explicit(&memory->filled[size_class], ~(UINT32_C(1) << number),
                                  memory_order_relaxed);
    }
    tni_latch_unlock(&shelf->lock);
    return address;
}

void *tni_keep_reuse(tni_memory *memory, uint32_t epoch, int32_t size_class, uint64_t bytes,
                     uint8_t label)
{
    void *address = NULL;
    uint32_t filled = atomic_load_explicit(&memory->filled[size_class], memory_order_relaxed);
    for (uint32_t number = recent; filled && !address; number = (number + 1) % TNI_SHELVES) {
        if (filled >> number & 1)
            address = pop_block(memory, number, epoch, size_class, bytes, label);
        filled &= ~(UINT32_C(1) << number);
    }
    return address;
}

void tni_keep_trim(tni_memory *memory, const tni_call *call)
{
    if (tni_keep_bytes(memory) == 0)
        return;
    for (uint32_t number = 0; number < TNI_SHELVES; number++) {
        tni_shelf *shelf = &memory->shelves[number];
        tni_block *taken = NULL, *block;
        tni_latch_lock(&shelf->lock);
        for (int32_t i = 0; i < TNI_CLASSES; i++) {
            while ((block = pop_kept_block(memory, number, i)) != NULL) {
                tni_shelf_remove(shelf, block);
                block->under = taken;
                taken = block;
            }
        }
        tni_keep_none(memory, shelf);
        tni_latch_unlock(&shelf->lock);
        while ((block = taken) != NULL) {
            taken = block->under;
            if (call)
                call->row->memory_free(call->self, call->device, block->address);
            tni_release(block);
        }
    }
}
