/* Validates the rows that a module offers. */
#ifndef TNI_REGISTRY_ROWS_H
#define TNI_REGISTRY_ROWS_H

#include "tenon/module/kernel.h"
#include "tenon/module/module.h"

#include <stdbool.h>

/* Maximum number of platforms of one module: its record has room for their probes' results. */
enum { TNI_PLATFORMS_MAX = 16 };

/* Returns the name of a platform kind, TN_PLATFORM_...: it is also the name of its platform, except
 * for TN_PLATFORM_OOT, whose platforms have their own names. "unknown" for an invalid kind. Static
 * text. */
const char *tni_kind_word(int32_t kind);

/* Number of rows in a NULL-terminated list of pointers; 0 for a NULL list. */
int32_t tni_rows_count(const void *list);

/* Checks every row of every list. On failure, the message of TN_INVALID_ARGUMENT names the list,
 * the row, the field, what was expected and what was found. */
tn_status tni_rows_check(const tn_module *module, tn_error *err);

/* Writes which kernels are ignored because this version does not know their operator: "kernel
 * acme.sort is ignored: ...". Returns false and writes "" if no row is ignored. */
enum { TNI_ROWS_UNKNOWN_TEXT = 256 };
bool tni_rows_unknown(const tn_kernel_row *const *rows, char out[TNI_ROWS_UNKNOWN_TEXT]);

#endif
