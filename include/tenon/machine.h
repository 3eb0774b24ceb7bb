/* The machine as this process may use it: processors, caches, memory and limits, each value with
 * its source.
 *
 * Thread-safety: Safe. A snapshot never changes and may be shared. */
#ifndef TENON_MACHINE_H
#define TENON_MACHINE_H

#include "base.h"
#include "module/machine.h"

TN_BEGIN_DECLS

/* A limit on the number of threads. */
typedef struct tn_machine_limit {
    size_t struct_size;
    /* "online processors", "affinity", "cgroup cpuset", "cgroup quota" or "requested" */
    const char *name;
    const char *state;  /* "known", "unknown", "unlimited", "malformed" */
    const char *origin; /* where it was read, and the text found there  */
    int64_t value;      /* threads; 0 unless known                      */
    int32_t least;      /* 1: the smallest limit, which applies         */
    int32_t reserved;
} tn_machine_limit;
TN_ENDS_WITH(tn_machine_limit, reserved);

/* A NUMA memory node. */
typedef struct tn_machine_node {
    size_t struct_size;
    const char *cpus; /* "0-3,8": its local processors, numbered as by the system; "" for none */
    tn_fact total;
    tn_fact free;
    int32_t number; /* numbered as by the system */
    int32_t cpu_count;
} tn_machine_node;
TN_ENDS_WITH(tn_machine_node, cpu_count);

/* Cores of one kind; fastest first if their speeds are known. */
typedef struct tn_machine_class {
    size_t struct_size;
    const char *name; /* "performance", "Cortex-A76" */
    const char *cpus;
    int64_t capacity; /* relative speed, 1024 for the fastest; 0 unknown */
    int64_t max_khz;  /* 0 unknown */
    int32_t cpu_count;
    int32_t reserved;
} tn_machine_class;
TN_ENDS_WITH(tn_machine_class, reserved);

/* Reads the current state of the system. The caller must release it. Fails only if out of
 * memory. */
typedef struct tn_machine tn_machine;
TN_API tn_status tn_machine_create(tn_machine **out, tn_error *err);
TN_API void tn_machine_release(tn_machine *machine);

/* Borrowed until the machine is released; NULL past the end, 0 for a NULL machine. */
TN_API const tn_machine_facts *tn_machine_facts_get(const tn_machine *machine);
TN_API size_t tn_machine_limit_count(const tn_machine *machine);
TN_API const tn_machine_limit *tn_machine_limit_get(const tn_machine *machine, size_t index);
TN_API size_t tn_machine_node_count(const tn_machine *machine);
TN_API const tn_machine_node *tn_machine_node_get(const tn_machine *machine, size_t index);
TN_API size_t tn_machine_class_count(const tn_machine *machine);
TN_API const tn_machine_class *tn_machine_class_get(const tn_machine *machine, size_t index);
TN_API size_t tn_machine_note_count(const tn_machine *machine); /* what could not be read */
TN_API const char *tn_machine_note_get(const tn_machine *machine, size_t index);

/* The topology of the machine, from the cpu platform (which uses hwloc) or, if that is not
 * available, from a basic reading of the system. The caller must release it. */
typedef struct tn_topology tn_topology;
TN_API tn_status tn_topology_create(tn_topology **out, tn_error *err);

/* The same from the basic reading only; opens no library. */
TN_API tn_status tn_topology_create_basic(tn_topology **out, tn_error *err);
TN_API void tn_topology_release(tn_topology *topology);
TN_API size_t tn_topology_count(const tn_topology *topology);
TN_API const tn_topology_object *tn_topology_get(const tn_topology *topology, size_t index);

/* "hwloc 2.9.0", or "a basic reading of the system: " and why hwloc was not used. */
TN_API const char *tn_topology_source(const tn_topology *topology);

/* "machine", "package", "die", "node", "cache", "core", "thread"; "unknown" otherwise. */
TN_API const char *tn_topology_type_name(int32_t type);

TN_END_DECLS

#endif
