/* The parts of a machine reading on Linux. Each function fills its part of the result as far as
 * possible. */
#ifndef TNI_OS_MACHINE_LINUX_H
#define TNI_OS_MACHINE_LINUX_H

#include "machine_read.h"

/* The process's control groups: the contents of /proc/self/cgroup and /proc/self/mountinfo. Either
 * is NULL if it cannot be read; `why` has the reason. Release with tni_cgroups_release. */
typedef struct tni_cgroups {
    char *groups;
    char *mounts;
    tni_span groups_text;
    tni_span mounts_text;
    const char *why;
} tni_cgroups;

void tni_cgroups_read(tni_reading *reading, tni_cgroups *out);
void tni_cgroups_release(tni_cgroups *cgroups);

/* The process's group for a controller ("cpu", "cpuset", "memory"). */
typedef struct tni_cgroup {
    int version;                  /* 1 or 2; 0: not found */
    const char *mount;            /* where its hierarchy is mounted */
    char group[TNI_READING_PATH]; /* path below the mount: "" or "/a/b" */
    const char *why;              /* version 0: the reason; else "", or a remark that it is not
                                   * visible */
} tni_cgroup;

void tni_cgroup_find(tni_reading *reading, const tni_cgroups *cgroups, const char *controller,
                     tni_cgroup *out);

/* Moves to the parent group; false at the mount. */
bool tni_cgroup_rise(tni_cgroup *cgroup);

/* Returns "cgroup v2 /sys/fs/cgroup/a", followed by the remark if there is one. */
const char *tni_cgroup_name(tni_reading *reading, const tni_cgroup *cgroup);

/* Completes *fact, the minimum of one limit over the groups. If no group has `file` and the
 * hierarchy is visible, the limit is unlimited. If the process's own group is not visible, hidden
 * groups may have a limit, so unlimited becomes unknown. */
void tni_cgroup_limit_resolve(tni_reading *reading, const tni_cgroup *own, const char *file,
                              tni_fact *fact);

/* One processor's entry of /proc/cpuinfo; -1 for missing fields. */
typedef struct tni_cpuinfo_row {
    int32_t id, package, core;
    int32_t implementer, part; /* Arm's */
} tni_cpuinfo_row;

typedef struct tni_cpuinfo {
    const tni_cpuinfo_row *rows;
    size_t count;
    const char *model; /* NULL if missing */
    bool hypervisor;
} tni_cpuinfo;

/* Return false if the file is missing or lists no processor. */
bool tni_cpuinfo_read(tni_reading *reading, tni_cpuinfo *out);
bool tni_cpuinfo_parse(tni_reading *reading, tni_span text, tni_cpuinfo *out);

/* Reads the online processors from the first available source: /sys, /proc/cpuinfo, the system
 * call. */
tni_fact tni_machine_online_read(tni_reading *reading, tni_cpus *out);

/* out->online and its limit must be set already. */
tn_status tni_machine_budget_read(tni_reading *reading, const tni_cgroups *cgroups,
                                  const char *affinity, tni_machine_budget *out, tn_error *err);
void tni_machine_memory_read(tni_reading *reading, const tni_cgroups *cgroups,
                             tni_machine_memory *out);
void tni_machine_topology_read(tni_reading *reading, const tni_cpus *online, tni_fact online_fact,
                               tni_machine_topology *out);
void tni_machine_caches_read(tni_reading *reading, tni_machine_topology *out);
void tni_machine_nodes_read(tni_reading *reading, tni_machine_cpu *cpus, tni_machine_topology *out);
void tni_machine_classes_read(tni_reading *reading, const tni_cpuinfo *info, tni_machine_cpu *cpus,
                              tni_machine_topology *out);

/* Names that the processor itself reports by cpuid; no file is read. Empty if it reports none. */
typedef struct tni_cpuid_names {
    char model[49];
    char hypervisor[13];
    bool virtual_machine;
} tni_cpuid_names;
bool tni_cpuid_read(tni_cpuid_names *out); /* false except on x86 */

void tni_machine_model_read(tni_reading *reading, const tni_cpuinfo *info,
                            const tni_cpuid_names *cpuid, tni_machine_topology *out);

/* The total memory of one node, as the system reports it. */
tni_fact tni_machine_node_total(tni_reading *reading, int32_t id);

#endif
