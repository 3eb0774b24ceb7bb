#include "alloc.h"

#include "checked.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <malloc.h>
#endif

static void *system_alloc(void *self, size_t size, size_t align)
{
    (void)self;
#if defined(_WIN32)
    return _aligned_malloc(size ? size : 1, align);
#else
    size_t rounded;
    if (align <= _Alignof(max_align_t))
        return malloc(size ? size : 1);
    return tni_align_size(size ? size : 1, align, &rounded) ? aligned_alloc(align, rounded) : NULL;
#endif
}

static void system_release(void *self, void *memory)
{
    (void)self;
#if defined(_WIN32)
    _aligned_free(memory);
#else
    free(memory);
#endif
}

static const tn_allocator system_allocator = {
    .struct_size = sizeof system_allocator, .alloc = system_alloc, .release = system_release};

/* Written only while no block is in use and no other call runs, as the contract of tn_allocator_set
 * requires, so reading it needs no lock. */
static tn_allocator current = {
    .struct_size = sizeof current, .alloc = system_alloc, .release = system_release};
static _Atomic int64_t blocks;

tn_status tn_allocator_set(const tn_allocator *allocator, tn_error *err)
{
    const char *where = "tn_allocator_set";
    int64_t used = atomic_load(&blocks);
    if (allocator && !TN_HAS(allocator, tn_allocator, release))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "allocator->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_allocator, release), allocator->struct_size);
    if (allocator && (!allocator->alloc || !allocator->release))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "allocator->%s is NULL",
                       allocator->alloc ? "release" : "alloc");
    if (used != 0)
        return tn_fail(err, TN_BUSY, 0, where,
                       "%lld blocks are in use; set the allocator before any other call",
                       (long long)used);
    current = allocator ? *allocator : system_allocator;
    return TN_OK;
}

int64_t tn_allocator_blocks(void)
{
    return atomic_load(&blocks);
}

void *tni_alloc_aligned(size_t size, size_t align)
{
    size_t least = sizeof(void *);
    void *memory = current.alloc(current.self, size ? size : 1, align > least ? align : least);
    if (memory)
        atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    return memory;
}

void *tni_alloc(size_t size)
{
    return tni_alloc_aligned(size, _Alignof(max_align_t));
}

void *tni_alloc_zeroed(size_t count, size_t size)
{
    size_t bytes;
    void *memory = tni_mul_size(count, size, &bytes) ? tni_alloc(bytes) : NULL;
    return memory ? memset(memory, 0, bytes) : NULL;
}

void tni_release(void *memory)
{
    if (!memory)
        return;
    current.release(current.self, memory);
    atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
}

char *tni_text_copy_part(const char *text, size_t length)
{
    size_t bytes;
    char *copy = tni_add_size(length, 1, &bytes) ? tni_alloc(bytes) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *tni_text_copy(const char *text)
{
    return tni_text_copy_part(text, strlen(text));
}

int tni_array_reserve(void **array, size_t *capacity, size_t used, size_t needed, size_t size)
{
    size_t wanted = *capacity + *capacity / 2 + 4, bytes;
    if (needed <= *capacity)
        return 1;
    if (wanted < needed)
        wanted = needed;
    void *grown = tni_mul_size(wanted, size, &bytes) ? tni_alloc(bytes) : NULL;
    if (!grown)
        return 0;
    if (used)
        memcpy(grown, *array, used * size);
    tni_release(*array);
    *array = grown;
    *capacity = wanted;
    return 1;
}

tn_status tni_no_memory(tn_error *err, const char *where, const char *what)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory for %s", what);
}
