/* The worker view: what is known of devices in a process that may not touch a driver, such as one
 * that was forked to compile kernels. It answers from a snapshot and never calls a module.
 *
 * A forked child has its parent's snapshot; a process that was started anew reads one from text.
 *
 * Thread-safety: Safe. The worker's current device is the process's, unlike tn_device_current. */
#ifndef TENON_WORKER_H
#define TENON_WORKER_H

#include "device.h"

TN_BEGIN_DECLS

/* Takes the snapshot: every device that was found and its properties; the worker's current devices
 * begin as those of the calling thread. Anew, when there is one. Not in
 * a process that was forked after the last one: there TN_REFUSED. */
TN_API tn_status tn_worker_snapshot_take(tn_error *err);

/* The snapshot as text, in Tenon's text form, and back. `save` gives a text to be freed by
 * tn_worker_text_release; `load` replaces what is there, or fails with TN_CORRUPT and changes
 * nothing: also for a text that was cut off. */
TN_API tn_status tn_worker_snapshot_save(char **out_text, tn_error *err);
TN_API tn_status tn_worker_snapshot_load(const char *text, tn_error *err);
TN_API void tn_worker_text_release(char *text);

/* Without a snapshot all of these give TN_UNAVAILABLE. `platform` by its name. Numbers follow the
 * rule of tn_device_set; `set` is recorded, and moves no device. */
TN_API tn_status tn_worker_device_count(const char *platform, int32_t *out, tn_error *err);
TN_API tn_status tn_worker_set_device(const char *platform, int32_t index, tn_error *err);
TN_API tn_status tn_worker_current_device(const char *platform, int32_t *out, tn_error *err);

/* Index -1: the worker's current device. Set out->struct_size first. */
TN_API tn_status tn_worker_properties(const char *platform, int32_t index,
                                      tn_device_properties *out, tn_error *err);

/* As tn_device_plans_only: 1 when nothing can run on it. */
TN_API tn_status tn_worker_plans_only(const char *platform, int32_t index, int32_t *out,
                                      tn_error *err);

TN_END_DECLS

#endif
