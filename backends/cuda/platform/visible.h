/* Interprets CUDA_VISIBLE_DEVICES like the driver, for counting without the driver. Pure. */
#ifndef CUDA_VISIBLE_H
#define CUDA_VISIBLE_H

#include "nvml.h"

enum { CUDA_MOST = 64 };

/* Every device of the machine that this process may use, in bus order. */
typedef struct cuda_listing {
    cuda_found all[CUDA_MOST];
    int32_t count;
} cuda_listing;

/* Writes which of `all` are visible, and in which order, given `value` (NULL: not set) and `order`
 * (CUDA_DEVICE_ORDER, or NULL). Entries are numbers, UUIDs or prefixes of UUIDs. An invalid entry or an
 * out-of-range number ends the list; a duplicate hides all devices.
 *
 * Returns false if only the driver knows: devices that are split, a list of MIG ids, or numbers for devices
 * that differ, which the driver orders in its own way. */
int cuda_visible(const cuda_found *all, int32_t count, const char *value, const char *order,
                 int32_t out[CUDA_MOST], int32_t *out_count);

#endif
