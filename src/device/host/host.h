/* Internals of the public machine and topology: what tests make them read, and how a topology is
 * built. Thread-safety: Safe. */
#ifndef TNI_DEVICE_HOST_H
#define TNI_DEVICE_HOST_H

#include "os/machine/machine.h"
#include "tenon/machine.h"
#include "tenon/module/platform.h"

/* As tn_machine_create, for the machine that `query` reads; all parts are read. */
tn_status tni_machine_snapshot(const tni_machine_query *query, tn_machine **out, tn_error *err);

/* A topology from the platform of `row`, whose probe returned `self`. Falls back to a basic reading
 * of the system if there is no row, if it has no topology function, or if that returns
 * TN_UNAVAILABLE. The platform's objects are validated: TN_INVALID_ARGUMENT names the invalid
 * one. */
tn_status tni_topology_collect(const tn_platform_row *row, void *self, tn_topology **out,
                               tn_error *err);

/* The basic reading, for a machine whose budget and topology were read; `why` there is no better
 * source. Offline processors are not included, as their position is unknown. */
tn_status tni_topology_basic(const tni_machine *machine, const char *why, tn_topology **out,
                             tn_error *err);

/* The same for this machine; reads its data first. */
tn_status tni_topology_read_basic(const char *why, tn_topology **out, tn_error *err);

/* The maximum cache level. */
enum { TNI_TOPOLOGY_LEVELS = 16 };

struct tn_topology {
    tn_topology_object *objects;
    size_t count;
    size_t capacity;
    char *source;
};

/* Creates an empty topology; adds an object, parents first; sets the source. Objects are validated
 * as above. */
tn_status tni_topology_create_empty(tn_topology **out, tn_error *err);
tn_status tni_topology_add(tn_topology *topology, const tn_topology_object *object, tn_error *err);
tn_status tni_topology_set_source(tn_topology *topology, const char *source, tn_error *err);

#endif
