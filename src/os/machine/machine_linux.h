/* The parts of a reading on Linux. Each fills in its part of the result, as far as it goes. */
#ifndef TNI_OS_MACHINE_LINUX_H
#define TNI_OS_MACHINE_LINUX_H

#include "machine_read.h"

/* The process's place among control groups: /proc/self/cgroup and /proc/self/mountinfo, each NULL
 * when it cannot be read, with the reason. Released by tni_cgroups_release. */
typedef struct tni_cgroups {
    char *groups;
    char *mounts;
    tni_span groups_text;
    tni_span mounts_text;
    const char *why;
} tni_cgroups;

void tni_cgroups_read(tni_reading *reading, tni_cgroups *out);
void tni_cgroups_release(tni_cgroups *cgroups);

/* The group that a controller ("cpu", "cpuset", "memory") holds the process to. */
typedef struct tni_cgroup {
    int version;                  /* 1 or 2; 0: it cannot be found */
    const char *mount;            /* where its hierarchy is mounted */
    char group[TNI_READING_PATH]; /* its path below the mount: "" or "/a/b" */
    const char *why;              /* version 0: why; else "", or that it is out of sight itself */
} tni_cgroup;

void tni_cgroup_find(tni_reading *reading, const tni_cgroups *cgroups, const char *controller,
                     tni_cgroup *out);

/* Goes on to the group above; false at the mount. */
bool tni_cgroup_rise(tni_cgroup *cgroup);

/* "cgroup v2 /sys/fs/cgroup/a", with the remark if there is one. */
const char *tni_cgroup_name(tni_reading *reading, const tni_cgroup *cgroup);

/* Completes what the groups said of one limit, the least of which is *fact: without any that has
 * `file` there is no limit, if the hierarchy can be seen; and where it cannot be seen from the
 * process's own group on, those out of sight may have one, so that none is not known. */
void tni_cgroup_settle(tni_reading *reading, const tni_cgroup *own, const char *file,
                       tni_fact *fact);

/* One processor's entry of /proc/cpuinfo; -1 where it does not say. */
typedef struct tni_cpuinfo_row {
    int32_t id, package, core;
    int32_t implementer, part; /* Arm's */
} tni_cpuinfo_row;

typedef struct tni_cpuinfo {
    const tni_cpuinfo_row *rows;
    size_t count;
    const char *model; /* NULL when it does not say */
    bool hypervisor;
} tni_cpuinfo;

/* False when there is no such file or no processor in it. */
bool tni_cpuinfo_read(tni_reading *reading, tni_cpuinfo *out);
bool tni_cpuinfo_parse(tni_reading *reading, tni_span text, tni_cpuinfo *out);

/* The processors that are online, by the first of: /sys, /proc/cpuinfo, the system call. */
tni_fact tni_machine_online_read(tni_reading *reading, tni_cpus *out);

/* `online` is the limit of that name, already read. */
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

/* What the processor says of itself, for which no file need be read; zeroed when it says nothing. */
typedef struct tni_cpuid_names {
    char model[49];
    char hypervisor[13];
    bool virtual_machine;
} tni_cpuid_names;
bool tni_cpuid_read(tni_cpuid_names *out); /* false but on x86 */

void tni_machine_model_read(tni_reading *reading, const tni_cpuinfo *info,
                            const tni_cpuid_names *cpuid, tni_machine_topology *out);

/* The memory of one node, as it tells. */
tni_fact tni_machine_node_total(tni_reading *reading, int32_t id);

#endif
