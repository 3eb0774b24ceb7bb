/* The conditions under which a choice was made: the device with its software, and the settings. */
#ifndef TNI_POLICY_TUNING_SETUP_H
#define TNI_POLICY_TUNING_SETUP_H

#include "dispatch/dispatch.h"
#include "selection.h"

/* Describes a device as it is now, without libraries. The texts belong to the device, except the
 * driver's, which is stored in `room`. */
enum { TNI_SETUP_DRIVER = 160 };
void tni_setup_of(const tn_device *device, char room[TNI_SETUP_DRIVER], tni_setup *out);

/* Appends a library of the device's kernels to a list: "openblas 0.3.21". Skips a library whose
 * version is unknown, as on a device for planning only. */
void tni_setup_add_library(const char *name, const tn_device *device, tni_buffer *out);

/* Writes "key=value; ..." for the settings that are part of the op's plan keys and differ from the
 * table's defaults. With `times`, only those that can affect a kernel's time, not those that only
 * decide which kernels may be taken. */
void tni_settings_differing(const tn_context *context, const tn_op *op, bool times,
                            tni_buffer *out);

/* Returns the version of a kernel's library as dispatch uses it: -1 if it has no library, if the
 * version is unknown, if the library is not open, and on a device for planning only. */
int64_t tni_kernel_library_version(const tni_kernel *kernel, const tn_device *device);

#endif
