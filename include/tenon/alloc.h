/* The allocator behind everything that the library itself allocates on the host.
 * Thread-safety: Safe, but for tn_allocator_set, during which no other call of Tenon may run. */
#ifndef TENON_ALLOC_H
#define TENON_ALLOC_H

#include "base.h"

TN_BEGIN_DECLS

/* `alloc` returns NULL when there is no memory and is called from any thread. `align` is a power
 * of two and at least that of a pointer. `release` gets what `alloc` gave, never NULL. Neither may
 * call Tenon, whose locks may be held. */
typedef struct tn_allocator {
    size_t struct_size;
    void *self;
    void *(*alloc)(void *self, size_t size, size_t align);
    void (*release)(void *self, void *memory);
} tn_allocator;
TN_ENDS_WITH(tn_allocator, release);

/* Makes a copy of `allocator` the process's; NULL returns to the system's own.
 * TN_BUSY, with the count, while anything that the library allocated is still in use: memory must
 * go back where it came from, so a program sets its allocator before it uses anything else. */
TN_API tn_status tn_allocator_set(const tn_allocator *allocator, tn_error *err);

/* Blocks allocated and not yet released: 0 means that an allocator may be set. */
TN_API int64_t tn_allocator_blocks(void);

TN_END_DECLS

#endif
