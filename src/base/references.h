/* Reference counts. The first reference belongs to the creator. Thread-safety: Safe. */
#ifndef TNI_BASE_REFERENCES_H
#define TNI_BASE_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tni_references {
    _Atomic int64_t count;
} tni_references;

static inline void tni_references_init(tni_references *references)
{
    atomic_init(&references->count, 1);
}

static inline void tni_references_add(tni_references *references)
{
    atomic_fetch_add_explicit(&references->count, 1, memory_order_relaxed);
}

/* Returns true for the last reference: then the caller releases the object. */
static inline bool tni_references_drop(tni_references *references)
{
    return atomic_fetch_sub_explicit(&references->count, 1, memory_order_acq_rel) == 1;
}

#endif
