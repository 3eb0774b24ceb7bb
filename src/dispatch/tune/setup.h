/* What a choice was made under: the device with what drives it, and settings. */
#ifndef TNI_DISPATCH_SETUP_H
#define TNI_DISPATCH_SETUP_H

#include "dispatch/dispatch.h"
#include "selection.h"

/* A device as it is now, without libraries. Texts are the device's; the driver's lies in `room`. */
enum { TNI_SETUP_DRIVER = 160 };
void tni_setup_of(const tn_device *device, char room[TNI_SETUP_DRIVER], tni_setup *out);

/* Adds a library of the device's kernels to a list: "openblas 0.3.21". One whose version is unknown here,
 * as on a device for planning only, is not added. */
void tni_setup_add_library(const char *name, const tn_device *device, tni_buffer *out);

/* "key=value; ..." of the settings that plans of the op are told apart by and that differ from the
 * table's defaults; with `times`, only of those that a kernel's time may depend on, which are not those
 * that say which kernels may be taken. */
void tni_settings_differing(const tn_context *context, const tn_op *op, bool times,
                            tni_buffer *out);

/* The version of a kernel's library, as dispatch asks by it: -1 for none, unknown, not open, and on a
 * device for planning only. */
int64_t tni_kernel_library_version(const tni_kernel *kernel, const tn_device *device);

#endif
