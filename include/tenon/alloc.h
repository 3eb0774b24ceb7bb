/* The allocator for all host memory that the library itself allocates.
 * Thread-safety: Safe, except tn_allocator_set: no other call of Tenon may run at the same time. */
#ifndef TENON_ALLOC_H
#define TENON_ALLOC_H

#include "base.h"

TN_BEGIN_DECLS

/* `alloc` returns NULL if there is no memory. It may be called from any thread. `align` is a power
 * of two, at least the alignment of a pointer. `release` gets a pointer that `alloc` returned,
 * never NULL. Neither function may call Tenon, because Tenon may hold locks while it calls them. */
typedef struct tn_allocator {
    size_t struct_size;
    void *self;
    void *(*alloc)(void *self, size_t size, size_t align);
    void (*release)(void *self, void *memory);
} tn_allocator;
TN_ENDS_WITH(tn_allocator, release);

/* Installs a copy of `allocator` for the whole process; NULL restores the system allocator. Fails
 * with TN_BUSY, and the number of blocks, while any memory that the library allocated is in use,
 * because each block must be released by the allocator it came from. So call this before you use
 * anything else. */
TN_API tn_status tn_allocator_set(const tn_allocator *allocator, tn_error *err);

/* Number of blocks allocated and not yet released. If it is 0, an allocator can be set. */
TN_API int64_t tn_allocator_blocks(void);

TN_END_DECLS

#endif
