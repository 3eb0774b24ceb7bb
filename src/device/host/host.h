/* The machine's public faces, from inside: what tests give them to read, and how a topology comes
 * about. Thread-safety: Safe. */
#ifndef TNI_DEVICE_HOST_H
#define TNI_DEVICE_HOST_H

#include "os/machine/machine.h"
#include "tenon/machine.h"
#include "tenon/module/platform.h"

/* As tn_machine_create, of the machine that `query` reads; all parts are read. */
tn_status tni_machine_snapshot(const tni_machine_query *query, tn_machine **out, tn_error *err);

/* A topology by the platform of `row`, whose probe gave `self`; by a basic reading of the system
 * when there is no row, when it does not tell, and when it says TN_UNAVAILABLE. What it tells is
 * checked: TN_INVALID_ARGUMENT names the object that makes no sense. */
tn_status tni_topology_collect(const tn_platform_row *row, void *self, tn_topology **out,
                               tn_error *err);

/* The basic reading, of a machine whose budget and topology were read; `why` it is not told better.
 * What is offline is no part of it, as nothing tells where it belongs. */
tn_status tni_topology_basic(const tni_machine *machine, const char *why, tn_topology **out,
                             tn_error *err);

/* The same of the machine that this is, which it reads. */
tn_status tni_topology_read_basic(const char *why, tn_topology **out, tn_error *err);

/* The greatest level of a cache. */
enum { TNI_TOPOLOGY_LEVELS = 16 };

/* An empty one; what it is made of, parents first; who told. Objects are checked as above. */
tn_status tni_topology_begin(tn_topology **out, tn_error *err);
tn_status tni_topology_add(tn_topology *topology, const tn_topology_object *object, tn_error *err);
tn_status tni_topology_tell_source(tn_topology *topology, const char *source, tn_error *err);

#endif
