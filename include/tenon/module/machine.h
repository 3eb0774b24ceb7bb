/* Information about the machine that the host provides to modules, so that all of them use the same
 * values for memory, threads and instruction sets and none has to query the system.
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_MACHINE_H
#define TENON_MODULE_MACHINE_H

#include "device.h"

TN_BEGIN_DECLS

/* Unknown strings are "". */
typedef struct tn_machine_facts {
    size_t struct_size;
    char model[128];       /* of the processor: "AMD EPYC 9654 96-Core Processor"     */
    char architecture[32]; /* "x86_64", "aarch64"                                     */
    char uuid[48];         /* stable across boots                                     */
    char uuid_source[112]; /* "/etc/machine-id"; may say that equal machines share it */
    char hypervisor[32];   /* "kvm"                                                   */
    char features[512];    /* usable instruction sets: "sse2,avx2,..."                */
    int32_t threads;       /* threads that can run at the same time; at least 1       */
    int32_t reserved;      /* 0                                                       */
    tn_fact packages;
    tn_fact cores;
    tn_fact hardware_threads;
    tn_fact nodes;    /* memory nodes            */
    tn_fact max_khz;  /* of the fastest core     */
    tn_fact l2_cache; /* bytes of one such cache */
    tn_fact l3_cache;
    tn_fact memory_total; /* usable by this process: the smallest of system and limits */
    tn_fact memory_available;
    tn_fact memory_in_use; /* resident memory of this process */
} tn_machine_facts;
TN_ENDS_WITH(tn_machine_facts, memory_in_use);

/* Parts of a machine. */
enum {
    TN_TOPOLOGY_MACHINE = 0,
    TN_TOPOLOGY_PACKAGE,
    TN_TOPOLOGY_DIE,
    TN_TOPOLOGY_NODE, /* memory nodes */
    TN_TOPOLOGY_CACHE,
    TN_TOPOLOGY_CORE,
    TN_TOPOLOGY_THREAD, /* of hardware */
    TN_TOPOLOGY_TYPE_COUNT
};

/* One part. Parents come before their children; the machine is the first object. */
typedef struct tn_topology_object {
    size_t struct_size;
    int32_t type;        /* TN_TOPOLOGY_...                                              */
    int32_t parent;      /* index of the parent object; -1 for the machine               */
    int32_t number;      /* the system's number, or -1                                   */
    int32_t level;       /* cache: 1, 2, 3; else 0                                       */
    int64_t bytes;       /* cache or node: size; 0 if unknown, and for others            */
    int32_t usable;      /* thread: 1 if this process may run on it, else 0              */
    int32_t speed_class; /* core: 0 for the fastest kind, 1 for the next ...; -1 unknown */
} tn_topology_object;
TN_ENDS_WITH(tn_topology_object, speed_class);

/* Receives the objects that a platform finds. `add` copies; if it fails, the platform must stop and
 * return that status. `source` sets the source of the information: "hwloc 2.9.0". */
typedef struct tn_topology_sink {
    size_t struct_size;
    void *self;
    tn_status (*add)(void *self, const tn_topology_object *object, tn_error *err);
    tn_status (*source)(void *self, const char *text, tn_error *err);
} tn_topology_sink;
TN_ENDS_WITH(tn_topology_sink, source);

TN_END_DECLS

#endif
