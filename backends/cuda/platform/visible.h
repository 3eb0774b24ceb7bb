/* CUDA_VISIBLE_DEVICES as the driver reads it, for those who count without the driver. Pure. */
#ifndef CUDA_VISIBLE_H
#define CUDA_VISIBLE_H

#include "nvml.h"

enum { CUDA_MOST = 64 };

/* Every device of the machine that this process may use, in the order of the bus. */
typedef struct cuda_listing {
    cuda_found all[CUDA_MOST];
    int32_t count;
} cuda_listing;

/* Which of `all`, and in which order, can be seen with `value` (NULL: not set) and `order`
 * (CUDA_DEVICE_ORDER, or NULL). Numbers, UUIDs and beginnings of one; what is neither ends the list, and so
 * does a number that no device has; one that stands twice hides all.
 *
 * False when only the driver knows: devices that are split, a list of MIG ids, or numbers of devices that
 * differ and that the driver puts in an order of its own. */
int cuda_visible(const cuda_found *all, int32_t count, const char *value, const char *order,
                 int32_t out[CUDA_MOST], int32_t *out_count);

#endif
