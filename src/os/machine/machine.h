/* The machine as the system reports it: how many threads may run, how much memory is available, the
 * topology of processors, caches and memory nodes, and the machine's identity. Only reads files and
 * queries the system; changes nothing and opens no library. Thread-safety: Safe. A result never
 * changes and may be shared. */
#ifndef TNI_OS_MACHINE_H
#define TNI_OS_MACHINE_H

#include "base/buffer.h"
#include "tenon/module/machine.h"

/* Whether a value is known. Only known values count. */
enum {
    TNI_FACT_UNKNOWN, /* the system does not report it or does not permit reading it */
    TNI_FACT_KNOWN,
    TNI_FACT_UNLIMITED, /* of a limit: no limit is set */
    TNI_FACT_MALFORMED  /* the text that was read is invalid */
};

/* A number. `origin` is one line for reports: the source of the value with the text that was read
 * ("cgroup v2 /sys/fs/cgroup/a cpu.max 150000 100000"), or the reason why it is not known. */
typedef struct tni_fact {
    int64_t value; /* 0 unless known */
    uint32_t state;
    const char *origin;
} tni_fact;

/* A text; NULL if unknown. */
typedef struct tni_fact_text {
    const char *text;
    const char *origin;
} tni_fact_text;

/* The name of a state: "unknown", "known", "unlimited", "malformed". Static text. */
const char *tni_fact_word(uint32_t state);

/* A set of processors or memory nodes, by the system's numbers. Zero-initialized is empty. */
enum { TNI_CPUS_LIMIT = 65536 }; /* all numbers are below this */
typedef struct tni_cpus {
    int32_t count;
    int32_t room; /* all members are below this; a multiple of 64 */
    uint64_t *bits;
} tni_cpus;

bool tni_cpus_has(const tni_cpus *set, int32_t number);
int32_t tni_cpus_shared(const tni_cpus *a, const tni_cpus *b); /* size of the intersection */
int32_t tni_cpus_next(const tni_cpus *set, int32_t from);      /* first member >= from, or -1 */
void tni_cpus_write(const tni_cpus *set, tni_buffer *to);      /* "0-3,8" */

/* Limits on the number of threads, with their names in reports. */
#define TNI_LIMIT_LIST(X)          \
    X(ONLINE, "online processors") \
    X(AFFINITY, "affinity")        \
    X(CPUSET, "cgroup cpuset")     \
    X(QUOTA, "cgroup quota")       \
    X(REQUEST, "requested")
enum {
#define TNI_LIMIT_INDEX_(name, word) TNI_LIMIT_##name,
    TNI_LIMIT_LIST(TNI_LIMIT_INDEX_) TNI_LIMIT_COUNT
#undef TNI_LIMIT_INDEX_
};
const char *tni_limit_name(int32_t limit); /* NULL out of range */

/* How many threads can run at once without time sharing: the smallest known limit. Affinity and
 * cpuset count only online processors. The quota is the smallest one of the process's control group
 * and its ancestors; `limits` holds it in whole processors, rounded down but at least 1. */
typedef struct tni_machine_budget {
    int32_t threads; /* at least 1 */
    int32_t least;   /* TNI_LIMIT_...; -1 if none is known, then `threads` is 1 */
    tni_fact limits[TNI_LIMIT_COUNT];
    int64_t quota_us; /* the exact quota: this time in every `period_us`; 0 unless known */
    int64_t period_us;
    tni_cpus online; /* empty if only the number of processors is known */
    tni_cpus affinity;
    tni_cpus cpuset;
} tni_machine_budget;

/* In bytes. Swap is not counted. */
typedef struct tni_machine_memory {
    tni_fact total;            /* minimum of system_total, limit, allowed nodes and ulimits */
    tni_fact available;        /* minimum of total, system_available and limit_available */
    tni_fact system_total;     /* of the whole machine */
    tni_fact system_available; /* available by evicting only file cache */
    tni_fact limit;            /* minimum over the process's control group and its ancestors */
    tni_fact limit_available;  /* minimum over those of limit - (usage - file cache) */
    tni_fact resident;         /* memory that this process uses now */
} tni_machine_memory;

/* A hardware thread. Indices refer to the topology; -1 if unknown, which all are for an offline
 * thread. Packages, dies and cores are numbered in the order of their first processor. */
typedef struct tni_machine_cpu {
    int32_t id; /* the system's number */
    bool online;
    int32_t package;
    int32_t die;
    int32_t core;
    int32_t node;       /* index into `nodes` */
    int32_t core_class; /* index into `classes` */
} tni_machine_cpu;

enum { TNI_CACHE_UNKNOWN, TNI_CACHE_DATA, TNI_CACHE_INSTRUCTION, TNI_CACHE_UNIFIED };
typedef struct tni_machine_cache {
    int32_t level;
    uint32_t type;   /* TNI_CACHE_... */
    int64_t size;    /* 0 if unknown */
    int32_t line;    /* 0 if unknown */
    tni_cpus shared; /* processors that use it */
} tni_machine_cache;

typedef struct tni_machine_node {
    int32_t id;               /* the system's number; numbers may have gaps */
    tni_cpus cpus;            /* may be empty */
    tni_fact total;           /* bytes; only for reports: limits and balloons may reduce it */
    tni_fact free;            /* entirely unused: excludes file cache */
    const int32_t *distances; /* to each of `nodes`, 10 to itself; NULL if unknown */
} tni_machine_node;

/* Cores of one kind. The fastest kind is first if the kinds were distinguished by speed. */
typedef struct tni_machine_class {
    const char *name; /* "performance", "Cortex-A76", "capacity 446" */
    int64_t capacity; /* relative speed, 1024 for the fastest; 0 if unknown */
    int64_t max_khz;  /* 0 if unknown */
    tni_cpus cpus;
} tni_machine_class;

/* Counts include only what is online. An empty list means unknown. */
typedef struct tni_machine_topology {
    tni_fact_text architecture; /* the system's name: "x86_64", "aarch64" */
    tni_fact_text model;        /* "AMD EPYC 9654 96-Core Processor" */
    tni_fact_text hypervisor;   /* "kvm"; NULL if none was detected */
    tni_cpus online;
    tni_cpus present;
    tni_cpus possible;
    tni_fact packages;
    tni_fact dies;
    tni_fact cores;
    tni_fact threads;
    tni_fact threads_per_core; /* maximum over all cores */
    tni_fact caches_known;     /* number of caches */
    tni_fact nodes_known;      /* number of nodes */
    tni_fact classes_known;    /* number of classes; `origin` is the evidence */
    bool classes_by_speed;     /* the first is the fastest: distinguished by speed, or only one */
    const tni_machine_cpu *cpus;
    const tni_machine_cache *caches; /* sorted by level, type, first processor */
    const tni_machine_node *nodes;
    const tni_machine_class *classes;
    size_t cpu_count; /* processors that are present or online */
    size_t cache_count;
    size_t node_count;
    size_t class_count;
} tni_machine_topology;

/* Stays the same across boots while the source does not change. */
enum { TNI_UUID_SIZE = 37 };
typedef struct tni_machine_identity {
    char uuid[TNI_UUID_SIZE]; /* 8-4-4-4-12, lower case, RFC 9562 version 8 */
    const char *source;       /* "/etc/machine-id"; or says that similar machines may share it */
} tni_machine_identity;

/* The budget alone reads only a few files. Identity also reads the topology if the system has no
 * id. */
enum {
    TNI_MACHINE_BUDGET = 1,
    TNI_MACHINE_MEMORY = 2,
    TNI_MACHINE_TOPOLOGY = 4,
    TNI_MACHINE_IDENTITY = 8,
    TNI_MACHINE_ALL = 15
};

typedef struct tni_machine_query {
    const char *root;     /* NULL or "/": the running system, also queried by system calls;
                           * another folder: only the files below it */
    const char *affinity; /* a list to use instead of the calling thread's affinity; NULL with
                           * another root: unknown */
    int32_t request;      /* requested threads; 0: no request */
    uint32_t parts;       /* TNI_MACHINE_... */
} tni_machine_query;

/* `parts` says which parts were read; the others are zero. `notes` has one line for each file that
 * exists but could not be read or is malformed, at most the first 32. */
typedef struct tni_machine {
    uint32_t parts;
    tni_machine_budget budget;
    tni_machine_memory memory;
    tni_machine_topology topology;
    tni_machine_identity identity;
    const char *const *notes;
    size_t note_count;
    void *blocks; /* memory that holds all of this */
} tni_machine;

/* What cannot be read is unknown; that is not a failure. Fails with TN_OUT_OF_MEMORY, or with
 * TN_INVALID_ARGUMENT for a malformed affinity or a negative `request`. */
tn_status tni_machine_read(const tni_machine_query *query, tni_machine **out, tn_error *err);
void tni_machine_release(tni_machine *machine); /* accepts NULL */

/* Converts a number to the form shared with modules: every state except known becomes unknown. */
tn_fact tni_fact_shown(const tni_fact *fact);

/* Writes the facts shared with modules, from a machine of which all parts were read. Fills as much
 * of *out as out->struct_size covers, and sets out->struct_size to the size filled. */
void tni_machine_facts_fill(const tni_machine *machine, tn_machine_facts *out);

/* Reads the running system and fills *out; the caller sets its struct_size. Topology and identity
 * are read once per process, the current state at every call. Fails only if out of memory, or with
 * TN_INVALID_ARGUMENT if struct_size does not cover `model`. */
tn_status tni_machine_facts_read(tn_machine_facts *out, tn_error *err);

#endif
