/* The variables that select devices (CUDA_VISIBLE_DEVICES and similar), parsed as their runtimes
 * do.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_PLATFORM_VISIBLE_H
#define TNI_DEVICE_PLATFORM_VISIBLE_H

#include "tenon/base.h"

#include <stdbool.h>

enum { TNI_VISIBLE_MAX = 256, TNI_VISIBLE_UUID = 64 };

/* A device by number, or by UUID or a prefix of one; then the number is -1. */
typedef struct tni_visible_entry {
    int32_t number;
    char uuid[TNI_VISIBLE_UUID];
} tni_visible_entry;

typedef struct tni_visible {
    bool is_set;
    size_t count;
    tni_visible_entry entries[TNI_VISIBLE_MAX];
} tni_visible;

/* "0,2", "GPU-8932f937-d72c", "": entries up to the first invalid one, as CUDA's driver parses
 * them: a number ends at the first non-digit, a negative number is invalid, and a device named
 * twice hides all. NULL: not set. */
void tni_visible_parse(const char *value, tni_visible *out);

#endif
