/* Hash table of blocks by address: one shelf of a device's allocation table. */
#include "memory.h"

#include "base/alloc.h"
#include "base/checked.h"

/* Multiplicative hash: addresses differ mostly in their middle bits, the product in its top
 * bits. */
static uint64_t hash(const void *address)
{
    return (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
}

tni_shelf *tni_memory_shelf(tni_memory *memory, const void *address)
{
    return &memory->shelves[hash(address) >> 60 & (TNI_SHELVES - 1)];
}

static tni_block **bucket(const tni_shelf *shelf, const void *address)
{
    return &shelf->buckets[hash(address) >> 28 & (shelf->bucket_count - 1)];
}

void tni_shelf_init(tni_shelf *shelf)
{
    shelf->buckets = shelf->first;
    shelf->bucket_count = TNI_SHELF_BUCKETS;
}

void tni_shelf_destroy(tni_shelf *shelf)
{
    if (shelf->buckets != shelf->first)
        tni_release(shelf->buckets);
}

tni_block *tni_shelf_find(const tni_shelf *shelf, const void *address)
{
    tni_block *block = *bucket(shelf, address);
    while (block && block->address != address)
        block = block->next;
    return block;
}

/* Doubles the buckets. If there is no memory for that, the chains grow instead. */
static void grow(tni_shelf *shelf)
{
    size_t count = shelf->bucket_count, doubled;
    tni_block **buckets = shelf->buckets;
    tni_block **grown =
        tni_mul_size(count, 2, &doubled) ? tni_alloc_zeroed(doubled, sizeof *grown) : NULL;
    if (!grown)
        return;
    shelf->buckets = grown;
    shelf->bucket_count = doubled;
    for (size_t i = 0; i < count; i++) {
        for (tni_block *block = buckets[i], *next; block; block = next) {
            tni_block **to = bucket(shelf, block->address);
            next = block->next;
            block->next = *to;
            *to = block;
        }
    }
    if (buckets != shelf->first)
        tni_release(buckets);
}

bool tni_shelf_add(tni_shelf *shelf, tni_block *block)
{
    if (tni_shelf_find(shelf, block->address))
        return false;
    if (shelf->blocks >= 2 * shelf->bucket_count)
        grow(shelf);
    tni_block **at = bucket(shelf, block->address);
    block->next = *at;
    *at = block;
    shelf->blocks++;
    return true;
}

void tni_shelf_remove(tni_shelf *shelf, tni_block *block)
{
    tni_block **at = bucket(shelf, block->address);
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
    shelf->blocks--;
}

void tni_shelf_count(tni_shelf *shelf, int64_t blocks)
{
    int64_t count = atomic_load_explicit(&shelf->count, memory_order_relaxed);
    int64_t made = atomic_load_explicit(&shelf->allocations, memory_order_relaxed);
    atomic_store_explicit(&shelf->count, count + blocks, memory_order_relaxed);
    if (blocks > 0)
        atomic_store_explicit(&shelf->allocations, made + blocks, memory_order_relaxed);
}

tni_block *tni_shelf_drain(tni_shelf *shelf, bool (*which)(const tni_block *block))
{
    tni_block *taken = NULL;
    for (size_t i = 0; i < shelf->bucket_count; i++) {
        tni_block **at = &shelf->buckets[i];
        while (*at) {
            tni_block *block = *at;
            if (which && !which(block)) {
                at = &block->next;
                continue;
            }
            *at = block->next;
            shelf->blocks--;
            block->under = taken;
            taken = block;
        }
    }
    return taken;
}
