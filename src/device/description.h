/* Device descriptions: devices that are described in a file, in Tenon's text form
 * (docs/descriptions.md).
 * Thread-safety: Safe. What was read never changes. */
#ifndef TNI_DEVICE_DESCRIPTION_H
#define TNI_DEVICE_DESCRIPTION_H

#include "tenon/module/platform.h"

typedef struct tni_description {
    const char *platform;            /* "cuda", "described": valid, but may be unknown */
    const char *platform_origin;     /* "file:line" of the platform */
    tn_device_properties properties; /* what `view` points to */
    uint64_t cpu_features;           /* of a CPU: TN_CPU_BIT(...) */
    tn_description view;
} tni_description;

typedef struct tni_descriptions tni_descriptions;

/* All or nothing. Fails with TN_CORRUPT for errors of the text form, and with TN_INVALID_ARGUMENT
 * and the message "FILE:LINE: ..." with the key, the value found, what is required and, for an
 * unknown key, the nearest one. A description without a device is an error too. */
tn_status tni_descriptions_parse(const char *text, size_t length, const char *origin,
                                 tni_descriptions **out, tn_error *err);
tn_status tni_descriptions_read(const char *path, tni_descriptions **out, tn_error *err);
void tni_descriptions_release(tni_descriptions *descriptions); /* accepts NULL */

size_t tni_descriptions_count(const tni_descriptions *descriptions);
const tni_description *tni_descriptions_get(const tni_descriptions *descriptions, size_t index);

#endif
