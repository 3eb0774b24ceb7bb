/* What the host has found out about the machine and lends to modules, so that none of them has to
 * read the system itself: one truth about memory, threads and instruction sets.
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_MACHINE_H
#define TENON_MODULE_MACHINE_H

#include "device.h"

TN_BEGIN_DECLS

/* Texts that are unknown are "". */
typedef struct tn_machine_facts {
    size_t struct_size;
    char model[128];       /* of the processor: "AMD EPYC 9654 96-Core Processor"        */
    char architecture[32]; /* "x86_64", "aarch64"                                       */
    char uuid[48];         /* the same across boots                                     */
    char uuid_source[112]; /* "/etc/machine-id"; may say that equal machines share it    */
    char hypervisor[32];   /* "kvm"                                                     */
    char features[512];    /* usable instruction sets: "sse2,avx2,..."                  */
    int32_t threads;       /* that may run at once without taking turns; at least 1      */
    int32_t reserved;      /* 0                                                         */
    tn_fact packages;
    tn_fact cores;
    tn_fact hardware_threads;
    tn_fact nodes;    /* of memory                                                 */
    tn_fact max_khz;  /* of the fastest core                                       */
    tn_fact l2_cache; /* bytes of one such cache                                   */
    tn_fact l3_cache;
    tn_fact memory_total; /* what this process may have: the least of system and limits */
    tn_fact memory_available;
    tn_fact memory_in_use; /* what this process has resident                            */
} tn_machine_facts;
TN_ENDS_WITH(tn_machine_facts, memory_in_use);

/* What a machine is made of. */
enum {
    TN_TOPOLOGY_MACHINE = 0,
    TN_TOPOLOGY_PACKAGE,
    TN_TOPOLOGY_DIE,
    TN_TOPOLOGY_NODE, /* of memory */
    TN_TOPOLOGY_CACHE,
    TN_TOPOLOGY_CORE,
    TN_TOPOLOGY_THREAD, /* of hardware */
    TN_TOPOLOGY_TYPE_COUNT
};

/* One part of it. Parents come before what they hold; the machine is the first. */
typedef struct tn_topology_object {
    size_t struct_size;
    int32_t type;   /* TN_TOPOLOGY_...                                                    */
    int32_t parent; /* how many objects came before the one that holds it; -1 for the machine */
    int32_t number; /* the system's, or -1                                                */
    int32_t level;  /* of a cache: 1, 2, 3; else 0                                        */
    int64_t bytes;  /* of a cache or node; 0 when unknown and for others                  */
    int32_t usable; /* of a thread: 1 when this process may run on it, 0 when not         */
    int32_t speed_class; /* of a core: 0 for the fastest kind, 1 for the next ...; -1 unknown */
} tn_topology_object;
TN_ENDS_WITH(tn_topology_object, speed_class);

/* Where a platform puts what it finds. `add` copies; a failure of it ends the walk and is returned.
 * `source` says who told: "hwloc 2.9.0". */
typedef struct tn_topology_sink {
    size_t struct_size;
    void *self;
    tn_status (*add)(void *self, const tn_topology_object *object, tn_error *err);
    tn_status (*source)(void *self, const char *text, tn_error *err);
} tn_topology_sink;
TN_ENDS_WITH(tn_topology_sink, source);

TN_END_DECLS

#endif
