/* Machines that do not exist: /proc, /sys and control groups as a kernel would show them, drawn from
 * a seed, and what is true of them by the same draw, so that a reading can be held against it. */
#ifndef TENON_TEST_MACHINE_TREES_H
#define TENON_TEST_MACHINE_TREES_H

#include "scratch.h"

#include "os/machine/machine.h"

enum { TREE_CPUS = 160, TREE_NODES = 20, TREE_LEVELS = 5, TREE_LIST = 1024 };

/* As scratch_make, but in memory where the system has such a folder, even if TMPDIR names another: trees
 * are many small files, and a disk needs 20 times as long for them. */
void tree_scratch_make(char out[SCRATCH_PATH]);

/* Writes a file below `root` and the folders above it. */
void tree_put(const char *root, const char *path, const char *format, ...) TN_PRINTF(3, 4);

/* As tree_put, then makes the file `size` bytes long. */
void tree_put_huge(const char *root, const char *path, long size);

/* Something is there that can be opened but not read, whoever asks. */
void tree_put_unreadable(const char *root, const char *path);

/* Which hierarchies there are: both is version 1 for processors and version 2 for the rest. */
enum tree_layout { TREE_NO_GROUPS, TREE_V1, TREE_V2, TREE_BOTH, TREE_LAYOUTS };

/* How the process sees its group: by its path from the mount's root; as the root of its own name
 * space; by the host's path with only its own part mounted; with something above it mounted; not at
 * all. */
enum tree_place { TREE_HOST, TREE_NAMESPACE, TREE_BOUND, TREE_ABOVE, TREE_OUTSIDE, TREE_PLACES };

/* How cores differ, and what shows it. */
enum tree_kinds { TREE_ALIKE, TREE_INTEL, TREE_CAPACITY, TREE_PARTS, TREE_FREQUENCY, TREE_KINDS };

/* What is wrong with the tree. */
enum tree_damage {
    TREE_SOUND,
    TREE_QUOTA_GARBAGE, /* the own group's file, as the next three */
    TREE_QUOTA_EMPTY,
    TREE_QUOTA_UNREADABLE,
    TREE_QUOTA_HUGE,
    TREE_LIMIT_GARBAGE,
    TREE_USAGE_GONE,
    TREE_ONLINE_GARBAGE,
    TREE_MEMINFO_GONE,
    TREE_MEMINFO_EMPTY,
    TREE_MOUNTS_GONE,
    TREE_SIBLINGS_GONE,
    TREE_DISTANCE_SHORT,
    TREE_CACHE_GARBAGE,
    TREE_NO_SYS,
    TREE_NO_PROC,
    TREE_NOTHING,
    TREE_DAMAGES
};

struct tree_cpu {
    int id, package, die, core, node, kind; /* node is an index, -1 for none */
    bool online;
};

enum { TREE_ABSENT = -1, TREE_NONE = 0 }; /* of a limit: no file; a file that says there is none */

/* A control group; limits as above or in bytes and microseconds. */
struct tree_group {
    long long quota, period;
    long long max, high, usage, cache;
};

struct tree {
    unsigned seed;
    bool arm, old_kernel, spread;
    enum tree_kinds kinds;
    enum tree_layout layout;
    enum tree_place place;
    enum tree_damage damage;
    int packages, dies, cores, threads,
        cpu_count; /* dies and cores of one above, threads at most */
    struct tree_cpu cpus[TREE_CPUS];
    int node_count, node_ids[TREE_NODES];
    long long node_kb[TREE_NODES];
    long long total_kb, free_kb, file_kb, slab_kb, available_kb;
    int levels; /* groups[0] is the own one, the last the mount's */
    struct tree_group groups[TREE_LEVELS];
    int cpuset_level; /* of the group that has a list; -1: none has */
    bool in_cpuset[TREE_CPUS], in_affinity[TREE_CPUS];
    int request;
    long long hidden_limit;          /* of memory, above what is mounted; 0: none */
    const char *mount_v1, *mount_v2; /* where hierarchies are mounted */
    char affinity[TREE_LIST];
};

void tree_draw(struct tree *tree, unsigned seed);

/* Returns whether the tree of `seed`, one of `all`, belongs to this run: always in a full run,
 * otherwise TREE_ROUND consecutive ones, wrapping around, that start where test_seed() says. Of so
 * many consecutive seeds every damage, layout, place and kind is drawn. */
enum { TREE_ROUND = 40 };
bool tree_sampled(unsigned seed, unsigned all);

void tree_write(const struct tree *tree, const char *root);

/* "0-2,8" of the processors for which `in` holds. */
void tree_list(const struct tree *tree, bool (*in)(const struct tree *tree, int index, int value),
               int value, char out[TREE_LIST]);
bool tree_is_online(const struct tree *tree, int index, int unused);

struct tree_fact {
    unsigned state; /* TNI_FACT_... */
    long long value;
};

/* What a reading of the tree must say. */
struct tree_truth {
    int threads;
    struct tree_fact limits[TNI_LIMIT_COUNT];
    long long quota, period;
    struct tree_fact system_total, system_available, limit, limit_available, total, available;
    struct tree_fact packages, dies, cores, threads_per_core, nodes, classes;
    bool has_numbers; /* processors are known by number */
};

/* Whether the process's groups can be read at all, and which version a controller has. */
bool tree_shows_groups(const struct tree *tree);
int tree_version(const struct tree *tree, const char *controller);

/* The least memory limit that a group of version 1 tells of those above, too; 0: none. */
long long tree_hierarchical_limit(const struct tree *tree);

/* Whether the system says what kind of cache there is, and in kB per kind of core. */
bool tree_has_caches(const struct tree *tree);

void tree_know(const struct tree *tree, struct tree_truth *out);

#endif
