/* Values in descriptions: a number with a unit, a list of types, an address.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_DESCRIPTION_VALUES_H
#define TNI_DEVICE_DESCRIPTION_VALUES_H

#include "base/schema.h"
#include "tenon/module/device.h"

/* Whether a number of TN_DEVICE_NUMBER_LIST is a boolean, 1 or 0. */
#define TNI_NUMBER_IS_SWITCH(field)                                            \
    (TN_DEVICE_NUMBER_INDEX_##field == TN_DEVICE_NUMBER_INDEX_is_integrated || \
     TN_DEVICE_NUMBER_INDEX_##field == TN_DEVICE_NUMBER_INDEX_pinned_memory || \
     TN_DEVICE_NUMBER_INDEX_##field == TN_DEVICE_NUMBER_INDEX_triton_capable)

/* Each function consumes all of `text`, or returns false with `out` unchanged and `need` set. */

/* A number from `least` to `most` in `unit`: "bytes", "bytes/s", "kHz", or "" for none. The value
 * is exact: "4.8 TB/s" is 4800000000000 bytes/s; a value that is not a multiple of the unit is
 * rejected. Only bytes may be written without a unit. */
bool tni_value_number(const char *text, const char *unit, int64_t least, int64_t most, int64_t *out,
                      tni_need *need);

/* 8-4-4-4-12 hexadecimal digits, optionally after a word and '-' ("GPU-..."); the digits become
 * lower case. */
bool tni_value_uuid(const char *text, char *out, size_t size, tni_need *need);

/* "0000:3b:00.0", in lower case. */
bool tni_value_bus(const char *text, char *out, size_t size, tni_need *need);

/* Names of TN_DTYPE_LIST separated by commas, each once; `out` ends with 0. */
bool tni_value_dtypes(const char *text, tn_dtype out[TN_DEVICE_DTYPES_MAX], tni_need *need);

/* Names of TN_CPU_FEATURE_LIST separated by commas; `out` has their bits. */
bool tni_value_features(const char *text, uint64_t *out, tni_need *need);

#endif
