/* Iteration over the elements of a layout, the last dimension fastest. */
#ifndef TNI_OP_WALK_H
#define TNI_OP_WALK_H

#include "tenon/module/op.h"

#include <stdbool.h>

/* The indices of an element. Zero-initialized, it is at the first element, if there is one. */
typedef struct tni_place {
    int64_t index[TN_OP_RANK_MAX];
} tni_place;

/* Moves to the next element. After the last one, returns false and is at the first element again. */
static inline bool tni_place_next(tni_place *place, const tn_layout *layout)
{
    for (int32_t d = layout->rank; d-- > 0;) {
        if (++place->index[d] < layout->shape[d])
            return true;
        place->index[d] = 0;
    }
    return false;
}

/* Returns the offset of the element from the first one, in elements. */
static inline int64_t tni_place_in(const tni_place *place, const tn_layout *layout)
{
    int64_t at = 0;
    for (int32_t d = 0; d < layout->rank; d++)
        at += place->index[d] * layout->stride[d];
    return at;
}

#endif
