/* The worker view: information about devices for a process that must not use a driver, such as one
 * forked to compile kernels. It answers from a snapshot and never calls a module.
 *
 * A forked child has its parent's snapshot; a newly started process loads one from text.
 *
 * Thread-safety: Safe. The worker's current device is per process, unlike tn_device_current. */
#ifndef TENON_WORKER_H
#define TENON_WORKER_H

#include "device.h"

TN_BEGIN_DECLS

/* Takes the snapshot: all devices found, and their properties. The worker's current devices start
 * as those of the calling thread. Replaces an existing snapshot. Fails with TN_REFUSED in a process
 * that was forked after the last snapshot. */
TN_API tn_status tn_worker_snapshot_take(tn_error *err);

/* Convert the snapshot to Tenon's text form and back. The caller must free the text of `save` with
 * tn_worker_text_release. `load` replaces the current snapshot, or fails with TN_CORRUPT, also for
 * a truncated text, and changes nothing. */
TN_API tn_status tn_worker_snapshot_save(char **out_text, tn_error *err);
TN_API tn_status tn_worker_snapshot_load(const char *text, tn_error *err);
TN_API void tn_worker_text_release(char *text);

/* Without a snapshot all of these fail with TN_UNAVAILABLE. `platform` is the platform's name.
 * Indices work as in tn_device_set; `set` is only recorded and does not change the vendor's current
 * device. */
TN_API tn_status tn_worker_device_count(const char *platform, int32_t *out, tn_error *err);
TN_API tn_status tn_worker_set_device(const char *platform, int32_t index, tn_error *err);
TN_API tn_status tn_worker_current_device(const char *platform, int32_t *out, tn_error *err);

/* Index -1: the worker's current device. Set out->struct_size first. */
TN_API tn_status tn_worker_properties(const char *platform, int32_t index,
                                      tn_device_properties *out, tn_error *err);

/* As tn_device_plans_only: 1 if nothing can run on it. */
TN_API tn_status tn_worker_plans_only(const char *platform, int32_t index, int32_t *out,
                                      tn_error *err);

TN_END_DECLS

#endif
