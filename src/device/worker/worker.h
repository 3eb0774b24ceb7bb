/* Internals of the worker view. */
#ifndef TNI_DEVICE_WORKER_H
#define TNI_DEVICE_WORKER_H

#include "snapshot.h"

/* As tn_worker_snapshot_take, for one set; NULL: the process's. */
tn_status tni_worker_snapshot_take(tni_platforms *set, tn_error *err);

#endif
