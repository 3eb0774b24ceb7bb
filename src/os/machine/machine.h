/* What the system says of the machine: how many threads may run, how much memory there really is,
 * how processors, caches and memory nodes hang together, and which machine this is. Files are read
 * and the system is asked; nothing is changed and no library opened.
 * Thread-safety: Safe. A result never changes and may be shared. */
#ifndef TNI_OS_MACHINE_H
#define TNI_OS_MACHINE_H

#include "base/buffer.h"
#include "tenon/module/machine.h"

/* How a value is known. Only a known one counts. */
enum {
    TNI_FACT_UNKNOWN, /* the system does not say, or does not let it be read */
    TNI_FACT_KNOWN,
    TNI_FACT_UNLIMITED, /* of a limit: there is none */
    TNI_FACT_MALFORMED  /* what was read makes no sense */
};

/* A number. `origin` is one line for reports: where the value is from, with the text it was read
 * from ("cgroup v2 /sys/fs/cgroup/a cpu.max 150000 100000"), or else why there is none. */
typedef struct tni_fact {
    int64_t value; /* 0 unless known */
    uint32_t state;
    const char *origin;
} tni_fact;

/* A text, NULL when unknown. */
typedef struct tni_fact_text {
    const char *text;
    const char *origin;
} tni_fact_text;

/* The word for a state: "unknown", "known", "unlimited", "malformed". Static text. */
const char *tni_fact_word(uint32_t state);

/* Processors, or memory nodes, by the system's numbers. Zeroed is empty. */
enum { TNI_CPUS_LIMIT = 65536 }; /* numbers are below */
typedef struct tni_cpus {
    int32_t count;
    int32_t room; /* members are below; a multiple of 64 */
    uint64_t *bits;
} tni_cpus;

bool tni_cpus_has(const tni_cpus *set, int32_t number);
bool tni_cpus_same(const tni_cpus *a, const tni_cpus *b);
int32_t tni_cpus_shared(const tni_cpus *a, const tni_cpus *b); /* how many are in both       */
int32_t tni_cpus_next(const tni_cpus *set, int32_t from);      /* at or after; -1 at the end */
void tni_cpus_write(const tni_cpus *set, tni_buffer *to);      /* "0-3,8"                    */

/* What holds the number of threads down, as reports list it. */
#define TNI_LIMIT_LIST(X)          \
    X(ONLINE, "online processors") \
    X(AFFINITY, "affinity")        \
    X(CPUSET, "cgroup cpuset")     \
    X(QUOTA, "cgroup quota")       \
    X(WISH, "wish")
enum {
#define TNI_LIMIT_INDEX_(name, word) TNI_LIMIT_##name,
    TNI_LIMIT_LIST(TNI_LIMIT_INDEX_) TNI_LIMIT_COUNT
#undef TNI_LIMIT_INDEX_
};
const char *tni_limit_name(int32_t limit); /* NULL out of range */

/* How many threads may run at once without taking turns: the least of the known limits. Of affinity
 * and cpuset only online processors count. A quota is that of the process's control group or of one
 * above it, whichever is least; its row holds whole processors, rounded down but at least 1. */
typedef struct tni_machine_budget {
    int32_t threads; /* at least 1                                              */
    int32_t least;   /* TNI_LIMIT_...; -1 when none is known and `threads` is 1 */
    tni_fact limits[TNI_LIMIT_COUNT];
    int64_t quota_us; /* the quota exactly: so much of every `period_us`; 0 unless known */
    int64_t period_us;
    tni_cpus online; /* empty unless its row is known by numbers, not by a count alone */
    tni_cpus affinity;
    tni_cpus cpuset;
} tni_machine_budget;

/* In bytes. Swap is not counted. */
typedef struct tni_machine_memory {
    tni_fact total;        /* the least of system_total, limit, the nodes it may use and ulimits */
    tni_fact available;    /* the least of total, system_available and limit_available     */
    tni_fact system_total; /* of the whole machine                                         */
    tni_fact system_available; /* of it, without pushing anything out but file cache           */
    tni_fact limit;            /* the least of the control groups' from the process's own up   */
    tni_fact limit_available;  /* the least of what each leaves: limit - (usage - file cache)  */
    tni_fact resident;         /* what this process holds of it now                            */
} tni_machine_memory;

/* A hardware thread. Indices are into the topology, -1 when unknown, as everything is of those
 * that are offline. Packages, dies and cores are numbered by their first processor. */
typedef struct tni_machine_cpu {
    int32_t id; /* the system's number */
    bool online;
    int32_t package;
    int32_t die;
    int32_t core;
    int32_t node;       /* into `nodes`   */
    int32_t core_class; /* into `classes` */
} tni_machine_cpu;

enum { TNI_CACHE_UNKNOWN, TNI_CACHE_DATA, TNI_CACHE_INSTRUCTION, TNI_CACHE_UNIFIED };
typedef struct tni_machine_cache {
    int32_t level;
    uint32_t type;   /* TNI_CACHE_...   */
    int64_t size;    /* 0 when unknown  */
    int32_t line;    /* 0 when unknown  */
    tni_cpus shared; /* the processors behind it */
} tni_machine_cache;

typedef struct tni_machine_node {
    int32_t id;               /* the system's number; there may be holes                       */
    tni_cpus cpus;            /* may be empty                                                  */
    tni_fact total;           /* bytes; reports only, as a limit may be less and balloons lie  */
    tni_fact free;            /* unused altogether: file cache is not free                     */
    const int32_t *distances; /* to each of `nodes`, 10 to itself; NULL when unknown           */
} tni_machine_node;

/* Cores of one kind; the fastest comes first, where the evidence is of speed. */
typedef struct tni_machine_class {
    const char *name; /* "performance", "Cortex-A76", "capacity 446" */
    int64_t capacity; /* relative speed, 1024 for the fastest; 0 when unknown */
    int64_t max_khz;  /* 0 when unknown */
    tni_cpus cpus;
} tni_machine_class;

/* Counts are of what is online. Lists that are empty are unknown. */
typedef struct tni_machine_topology {
    tni_fact_text architecture; /* "x86_64", "aarch64": the system's word         */
    tni_fact_text model;        /* "AMD EPYC 9654 96-Core Processor"              */
    tni_fact_text hypervisor;   /* "kvm"; NULL when there is no sign of one       */
    tni_cpus online;
    tni_cpus present;
    tni_cpus possible;
    tni_fact packages;
    tni_fact dies;
    tni_fact cores;
    tni_fact threads;
    tni_fact threads_per_core; /* the most of any core */
    tni_fact caches_known;     /* their number         */
    tni_fact nodes_known;      /* their number         */
    tni_fact classes_known;    /* their number; the origin is the evidence */
    bool classes_by_speed; /* the fastest is the first: the evidence is of speed, or there is one */
    const tni_machine_cpu *cpus;
    const tni_machine_cache *caches; /* by level, then type, then first processor */
    const tni_machine_node *nodes;
    const tni_machine_class *classes;
    size_t cpu_count; /* of `cpus`: present or online ones */
    size_t cache_count;
    size_t node_count;
    size_t class_count;
} tni_machine_topology;

/* "x86", "arm", "powerpc", "s390", "riscv", "loongarch", "mips" or "other" for an architecture's
 * word; "unknown" for NULL. Static text. */
const char *tni_machine_family(const char *architecture);

/* The same across boots, for as long as the source says the same. */
enum { TNI_UUID_SIZE = 37 };
typedef struct tni_machine_identity {
    char uuid[TNI_UUID_SIZE]; /* 8-4-4-4-12, lower case, RFC 9562 version 8 */
    const char *source;       /* "/etc/machine-id"; may say that equal machines have the same */
} tni_machine_identity;

/* A budget alone costs a few files. Identity brings topology along where the system has no id. */
enum {
    TNI_MACHINE_BUDGET = 1,
    TNI_MACHINE_MEMORY = 2,
    TNI_MACHINE_TOPOLOGY = 4,
    TNI_MACHINE_IDENTITY = 8,
    TNI_MACHINE_ALL = 15
};

typedef struct tni_machine_query {
    const char *root;     /* NULL or "/": the running system, which is also asked by system calls;
                             another folder: the files below it and nothing else */
    const char *affinity; /* a list in place of the calling thread's own; NULL below another root
                             is unknown */
    int32_t wish;         /* threads; 0: none */
    uint32_t parts;       /* TNI_MACHINE_... */
} tni_machine_query;

/* `parts` says which were read; the others are zeroed. `notes` are what was there but could not be
 * read or made no sense, a line each, the first 32. */
typedef struct tni_machine {
    uint32_t parts;
    tni_machine_budget budget;
    tni_machine_memory memory;
    tni_machine_topology topology;
    tni_machine_identity identity;
    const char *const *notes;
    size_t note_count;
    void *blocks; /* where all of this lies */
} tni_machine;

/* What cannot be read is unknown and no failure. TN_OUT_OF_MEMORY; TN_INVALID_ARGUMENT for a
 * malformed affinity and a negative wish. */
tn_status tni_machine_read(const tni_machine_query *query, tni_machine **out, tn_error *err);
void tni_machine_release(tni_machine *machine); /* accepts NULL */

/* A number as both sides of the door share it: what is not known is unknown, whatever the state. */
tn_fact tni_fact_shown(const tni_fact *fact);

/* What both sides share of a machine whose parts were all read. Fills as much of *out
 * as out->struct_size holds, and makes that what was filled. */
void tni_machine_facts_fill(const tni_machine *machine, tn_machine_facts *out);

/* Reads the running system and fills *out, whose struct_size the caller has set. How it is built and
 * which it is are read once in a process, how it stands now at every call. Fails only for want
 * of memory, and with TN_INVALID_ARGUMENT for a struct_size that holds nothing. */
tn_status tni_machine_facts_read(tn_machine_facts *out, tn_error *err);

#endif
