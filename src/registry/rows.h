/* The rows a module offers: are they sound? */
#ifndef TNI_REGISTRY_ROWS_H
#define TNI_REGISTRY_ROWS_H

#include "tenon/module/module.h"

/* Platforms that one module may offer: its record has room for what their probes find. */
enum { TNI_PLATFORMS_MAX = 16 };

/* The word of a kind of platforms, TN_PLATFORM_...: the name of its platform, but for
 * TN_PLATFORM_OOT, whose platforms have their own. "unknown" for what is no kind. Static text. */
const char *tni_kind_word(int32_t kind);

/* How many rows a NULL-ended list of pointers has; 0 for a NULL list. */
int32_t tni_rows_count(const void *list);

/* Checks every row of every list. TN_INVALID_ARGUMENT names list, row, field, what it needs and
 * what was found. */
tn_status tni_rows_check(const tn_module *module, tn_error *err);

#endif
