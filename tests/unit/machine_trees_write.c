#include "machine_trees.h"

/* Which processors belong to a thing of number `value`, of those online. */
static bool in_core(const struct tree *tree, int index, int value)
{
    return tree->cpus[index].online && tree->cpus[index].core == value;
}

static bool in_die(const struct tree *tree, int index, int value)
{
    return tree->cpus[index].online && tree->cpus[index].die == value;
}

static bool in_package(const struct tree *tree, int index, int value)
{
    return tree->cpus[index].online && tree->cpus[index].package == value;
}

static bool in_node(const struct tree *tree, int index, int value)
{
    return tree->cpus[index].online && tree->cpus[index].node == value;
}

static bool in_kind(const struct tree *tree, int index, int value)
{
    return tree->cpus[index].online && tree->cpus[index].kind == value;
}

static bool in_cpuset(const struct tree *tree, int index, int unused)
{
    (void)unused;
    return tree->in_cpuset[index];
}

static bool is_present(const struct tree *tree, int index, int unused)
{
    (void)tree, (void)index, (void)unused;
    return true;
}

static const char *list(const struct tree *tree, bool (*in)(const struct tree *, int, int),
                        int value)
{
    static char text[TREE_LIST];
    tree_list(tree, in, value, text);
    return text;
}

static void put_topology(const struct tree *tree, const char *root, const struct tree_cpu *cpu)
{
    char path[128];
    int length = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/", cpu->id);
    char *name = path + length;
    size_t room = sizeof path - (size_t)length;
    snprintf(name, room, "%s", tree->old_kernel ? "thread_siblings_list" : "core_cpus_list");
    if (tree->damage != TREE_SIBLINGS_GONE || cpu != tree->cpus)
        tree_put(root, path, "%s\n", list(tree, in_core, cpu->core));
    snprintf(name, room, "%s", tree->old_kernel ? "core_siblings_list" : "package_cpus_list");
    tree_put(root, path, "%s\n", list(tree, in_package, cpu->package));
    if (!tree->old_kernel) {
        snprintf(name, room, "die_cpus_list");
        tree_put(root, path, "%s\n", list(tree, in_die, cpu->die));
    }
}

bool tree_has_caches(const struct tree *tree)
{
    return !tree->arm || tree->seed % 3;
}

/* First-level caches for each core, a second of half the size for lesser ones, one third a die. */
static void put_caches(const struct tree *tree, const char *root, const struct tree_cpu *cpu)
{
    const struct {
        int level;
        const char *type;
        int kb;
        const char *shared;
    } caches[] = {{1, "Data", 48, NULL},
                  {1, "Instruction", 32, NULL},
                  {2, "Unified", cpu->kind ? 1024 : 2048, NULL},
                  {3, "Unified", 16384, ""}};
    for (int i = 0; i < 4; i++) {
        char path[128];
        int length =
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu->id, i);
        char *name = path + length;
        size_t room = sizeof path - (size_t)length;
        bool damaged = tree->damage == TREE_CACHE_GARBAGE && cpu == tree->cpus && i == 0;
        snprintf(name, room, "level");
        tree_put(root, path, "%d\n", caches[i].level);
        snprintf(name, room, "type");
        tree_put(root, path, "%s\n", caches[i].type);
        snprintf(name, room, "size");
        tree_put(root, path, damaged ? "big\n" : "%dK\n", caches[i].kb);
        snprintf(name, room, "coherency_line_size");
        tree_put(root, path, "64\n");
        snprintf(name, room, "shared_cpu_list");
        tree_put(root, path, "%s\n",
                 caches[i].shared ? list(tree, in_die, cpu->die) : list(tree, in_core, cpu->core));
    }
}

static void put_speed(const struct tree *tree, const char *root, const struct tree_cpu *cpu)
{
    char path[128];
    if (tree->kinds == TREE_CAPACITY) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu->id);
        tree_put(root, path, "%d\n", cpu->kind ? 446 : 1024);
    }
    if (tree->kinds == TREE_FREQUENCY) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq",
                 cpu->id);
        tree_put(root, path, "%d\n", cpu->kind ? 3300000 : 5000000 - cpu->core % 3 * 50000);
    }
}

static void put_cpus(const struct tree *tree, const char *root)
{
    static const char folder[] = "/sys/devices/system/cpu";
    char path[128];
    snprintf(path, sizeof path, "%s/online", folder);
    tree_put(root, path, tree->damage == TREE_ONLINE_GARBAGE ? "0-x\n" : "%s\n",
             list(tree, tree_is_online, 0));
    snprintf(path, sizeof path, "%s/present", folder);
    tree_put(root, path, "%s\n", list(tree, is_present, 0));
    snprintf(path, sizeof path, "%s/possible", folder);
    tree_put(root, path, "0-%d\n", tree->cpus[tree->cpu_count - 1].id + 8);
    for (int i = 0; i < tree->cpu_count; i++) {
        if (!tree->cpus[i].online)
            continue;
        put_topology(tree, root, &tree->cpus[i]);
        put_speed(tree, root, &tree->cpus[i]);
        if (tree_has_caches(tree))
            put_caches(tree, root, &tree->cpus[i]);
    }
    if (tree->kinds == TREE_INTEL) {
        tree_put(root, "/sys/devices/cpu_core/cpus", "%s\n", list(tree, in_kind, 0));
        tree_put(root, "/sys/devices/cpu_atom/cpus", "%s\n", list(tree, in_kind, 1));
    }
    if (tree->kinds == TREE_ALIKE && !tree->arm && tree->spread)
        tree_put(root, "/sys/devices/cpu/type", "4\n");
}

static void put_nodes(const struct tree *tree, const char *root)
{
    static const char folder[] = "/sys/devices/system/node";
    char path[128], ids[TREE_LIST] = "", distances[TREE_LIST];
    for (int i = 0; i < tree->node_count; i++) {
        bool cut = tree->damage == TREE_DISTANCE_SHORT && i == 0;
        size_t at = strlen(ids);
        snprintf(ids + at, sizeof ids - at, "%s%d", i ? "," : "", tree->node_ids[i]);
        distances[0] = '\0';
        for (int j = 0; j < tree->node_count - cut; j++) {
            at = strlen(distances);
            snprintf(distances + at, sizeof distances - at, "%d ", i == j ? 10 : 20 + (i + j) % 7);
        }
        snprintf(path, sizeof path, "%s/node%d/distance", folder, tree->node_ids[i]);
        tree_put(root, path, "%s\n", distances);
        snprintf(path, sizeof path, "%s/node%d/cpulist", folder, tree->node_ids[i]);
        tree_put(root, path, "%s\n", list(tree, in_node, i));
        snprintf(path, sizeof path, "%s/node%d/meminfo", folder, tree->node_ids[i]);
        tree_put(root, path, "Node %d MemTotal:       %lld kB\nNode %d MemFree:        %lld kB\n",
                 tree->node_ids[i], tree->node_kb[i], tree->node_ids[i], tree->node_kb[i] / 3);
    }
    if (tree->node_count) {
        snprintf(path, sizeof path, "%s/online", folder);
        tree_put(root, path, "%s\n", ids);
    }
}

static void put_cpuinfo(const struct tree *tree, const char *root)
{
    tni_buffer text = {0};
    int per_package = tree->dies * tree->cores;
    for (int i = 0; i < tree->cpu_count; i++) {
        const struct tree_cpu *cpu = &tree->cpus[i];
        if (!cpu->online)
            continue;
        tni_buffer_format(&text, "processor\t: %d\n", cpu->id);
        if (tree->arm)
            tni_buffer_format(&text,
                              "BogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
                              "CPU variant\t: 0x3\nCPU part\t: 0x%x\nCPU revision\t: 1\n\n",
                              tree->kinds == TREE_ALIKE ? 0xd0c
                              : cpu->kind               ? 0xd05
                                                        : 0xd0b);
        else
            tni_buffer_format(&text,
                              "vendor_id\t: GenuineFake\nmodel name\t: Fake(R) CPU @ 2.00GHz\n"
                              "physical id\t: %d\nsiblings\t: 99\ncore id\t\t: %d\n"
                              "flags\t\t: fpu %s\nbogomips\t: 4200.00\n\n",
                              cpu->package * 2, cpu->core % per_package * 3,
                              tree->spread ? "hypervisor avx2" : "hypervisors avx2");
    }
    tree_put(root, "/proc/cpuinfo", "%s", tni_buffer_text(&text));
    tni_buffer_release(&text);
}

static void put_meminfo(const struct tree *tree, const char *root)
{
    char available[64] = "";
    if (tree->damage == TREE_MEMINFO_GONE)
        return;
    if (!tree->old_kernel)
        snprintf(available, sizeof available, "MemAvailable:   %lld kB\n", tree->available_kb);
    tree_put(root, "/proc/sys/vm/min_free_kbytes", "67584\n");
    if (tree->damage == TREE_MEMINFO_EMPTY) {
        tree_put(root, "/proc/meminfo", "%s", "");
        return;
    }
    tree_put(root, "/proc/meminfo",
             "MemTotal:       %lld kB\nMemFree:         %lld kB\n%sBuffers:  1 kB\n"
             "Cached:  %lld kB\nSwapTotal: 999999999 kB\nSwapFree: 999999999 kB\n"
             "Active(file): %lld kB\nInactive(file): %lld kB\nSReclaimable: %lld kB\n",
             tree->total_kb, tree->free_kb, available, tree->file_kb + 77, tree->file_kb / 4,
             tree->file_kb - tree->file_kb / 4, tree->slab_kb);
}

/* The path of a group below the mount's root, as /proc/self/cgroup and the file system have it. */
static const char *group_path(const struct tree *tree, int level)
{
    static const char *const names[] = {"/a.slice", "/b: one two", "/caf\303\251", "/d.scope"};
    static char path[256];
    path[0] = '\0';
    for (int i = 0; i < tree->levels - 1 - level; i++) {
        size_t at = strlen(path);
        snprintf(path + at, sizeof path - at, "%s", names[i]);
    }
    return path;
}

int tree_version(const struct tree *tree, const char *controller)
{
    return tree->layout == TREE_V1                                          ? 1
           : tree->layout == TREE_BOTH && strcmp(controller, "memory") != 0 ? 1
                                                                            : 2;
}

/* Where the files of a controller's group are. */
static const char *group_folder(const struct tree *tree, const char *controller, int level)
{
    static char path[512];
    if (tree_version(tree, controller) == 2)
        snprintf(path, sizeof path, "%s%s", tree->mount_v2, group_path(tree, level));
    else
        snprintf(path, sizeof path, "%s/%s%s", tree->mount_v1,
                 strcmp(controller, "cpu") == 0 ? "cpu,cpuacct" : controller,
                 group_path(tree, level));
    return path;
}

static void put_in_group(const struct tree *tree, const char *root, const char *controller,
                         int level, const char *file, const char *format, ...) TN_PRINTF(6, 7);
static void put_in_group(const struct tree *tree, const char *root, const char *controller,
                         int level, const char *file, const char *format, ...)
{
    char path[768], text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%s/%s", group_folder(tree, controller, level), file);
    tree_put(root, path, "%s", text);
}

static bool damage_quota(const struct tree *tree, const char *root, const char *file)
{
    char path[768];
    snprintf(path, sizeof path, "%s/%s", group_folder(tree, "cpu", 0), file);
    switch (tree->damage) {
    case TREE_QUOTA_GARBAGE: tree_put(root, path, "15e4 100000\n"); return true;
    case TREE_QUOTA_EMPTY: tree_put(root, path, "%s", ""); return true;
    case TREE_QUOTA_UNREADABLE: tree_put_unreadable(root, path); return true;
    case TREE_QUOTA_HUGE: tree_put_huge(root, path, 17 << 20); return true;
    default: return false;
    }
}

static void put_quota(const struct tree *tree, const char *root, int level)
{
    const struct tree_group *group = &tree->groups[level];
    bool first = tree_version(tree, "cpu") == 1;
    if (first && group->quota != TREE_ABSENT)
        put_in_group(tree, root, "cpu", level, "cpu.cfs_period_us", "%lld\n", group->period);
    else if (first && level == 0)
        put_in_group(tree, root, "cpu", level, "cpu.cfs_period_us", "100000\n");
    if (level == 0 && damage_quota(tree, root, first ? "cpu.cfs_quota_us" : "cpu.max"))
        return;
    if (group->quota == TREE_ABSENT)
        return;
    if (first && group->quota == TREE_NONE)
        put_in_group(tree, root, "cpu", level, "cpu.cfs_quota_us", "-1\n");
    else if (first)
        put_in_group(tree, root, "cpu", level, "cpu.cfs_quota_us", "%lld\n", group->quota);
    else if (group->quota == TREE_NONE)
        put_in_group(tree, root, "cpu", level, "cpu.max", "max %lld\n", group->period);
    else
        put_in_group(tree, root, "cpu", level, "cpu.max", "%lld %lld\n", group->quota,
                     group->period);
}

static void put_limit(const struct tree *tree, const char *root, int level, const char *file,
                      long long limit, bool damaged)
{
    const char *none = tree_version(tree, "memory") == 2 ? "max" : "9223372036854771712";
    if (damaged)
        put_in_group(tree, root, "memory", level, file, "lots\n");
    else if (limit == TREE_NONE)
        put_in_group(tree, root, "memory", level, file, "%s\n", none);
    else if (limit != TREE_ABSENT)
        put_in_group(tree, root, "memory", level, file, "%lld\n", limit);
}

long long tree_hierarchical_limit(const struct tree *tree)
{
    long long least = tree->hidden_limit;
    for (int i = 0; i < tree->levels; i++) {
        if (tree->groups[i].max > 0 && (!least || tree->groups[i].max < least))
            least = tree->groups[i].max;
    }
    return least;
}

static void put_memory(const struct tree *tree, const char *root, int level)
{
    const struct tree_group *group = &tree->groups[level];
    bool damaged = tree->damage == TREE_LIMIT_GARBAGE && level == 0;
    if (tree_version(tree, "memory") == 2) {
        put_limit(tree, root, level, "memory.max", group->max, damaged);
        put_limit(tree, root, level, "memory.high", group->high, false);
        put_in_group(tree, root, "memory", level, "memory.stat",
                     "anon 1\nfile 2\nactive_file 3\ninactive_file %lld\nslab 4\n", group->cache);
    } else {
        long long least = tree_hierarchical_limit(tree);
        put_limit(tree, root, level, "memory.limit_in_bytes", group->max, damaged);
        put_in_group(tree, root, "memory", level, "memory.stat",
                     "cache 1\ninactive_file 2\nhierarchical_memory_limit %lld\n"
                     "total_cache 3\ntotal_inactive_file %lld\ntotal_active_file 5\n",
                     least ? least : 9223372036854771712LL, group->cache);
    }
    if (tree->damage != TREE_USAGE_GONE)
        put_in_group(tree, root, "memory", level,
                     tree_version(tree, "memory") == 2 ? "memory.current" : "memory.usage_in_bytes",
                     "%lld\n", group->usage);
}

static void put_cpuset(const struct tree *tree, const char *root, int level)
{
    if (tree_version(tree, "cpuset") == 2) {
        put_in_group(tree, root, "cpuset", level, "cpuset.cpus.effective", "%s\n",
                     list(tree, in_cpuset, 0));
        return;
    }
    put_in_group(tree, root, "cpuset", level, "cpuset.cpus", "%s\n",
                 list(tree, tree->old_kernel ? in_cpuset : is_present, 0));
    if (!tree->old_kernel)
        put_in_group(tree, root, "cpuset", level, "cpuset.effective_cpus", "%s\n",
                     list(tree, in_cpuset, 0));
}

static void put_groups(const struct tree *tree, const char *root)
{
    static const char *const controllers[] = {"cpu", "cpuset", "memory"};
    for (int level = 0; level < tree->levels; level++) {
        for (int i = 0; i < 3; i++)
            put_in_group(tree, root, controllers[i], level, "cgroup.procs", "1\n");
        put_quota(tree, root, level);
        put_memory(tree, root, level);
        if (level == tree->cpuset_level)
            put_cpuset(tree, root, level);
    }
}

/* What the place makes of the path and of the root of the mounts. */
static void place(const struct tree *tree, char path[512], const char **out_mounted)
{
    static const char *const before[] = {"", "", "/docker/01ab", "", "/../other"};
    static const char *const mounted[] = {"/", "/", "/docker/01ab", "/../..", "/"};
    snprintf(path, 512, "%s%s", before[tree->place], group_path(tree, 0));
    if (path[0] == '\0')
        snprintf(path, 512, "/");
    *out_mounted = mounted[tree->place];
}

static void put_cgroup(const struct tree *tree, const char *root)
{
    char path[512];
    const char *mounted;
    place(tree, path, &mounted);
    if (tree->layout == TREE_V1)
        tree_put(root, "/proc/self/cgroup",
                 "12:pids:/x\n5:cpuset:%s\n4:memory:%s\n3:cpu,cpuacct:%s\n1:name=systemd:/\n", path,
                 path, path);
    else if (tree->layout == TREE_BOTH)
        tree_put(root, "/proc/self/cgroup",
                 "7:cpuset:%s\n3:cpu,cpuacct:%s\n1:name=systemd:/\n0::%s\n", path, path, path);
    else
        tree_put(root, "/proc/self/cgroup", "0::%s\n", path);
}

static const char *escaped(const char *path)
{
    static char text[2][256];
    static int turn;
    char *out = text[turn ^= 1], *at = out;
    for (; *path; path++) {
        if (strchr(" \t\\", *path))
            at += snprintf(at, 8, "\\%03o", (unsigned)*path);
        else
            *at++ = *path;
    }
    *at = '\0';
    return out;
}

static void put_mounts(const struct tree *tree, const char *root)
{
    tni_buffer text = {0};
    char path[512];
    const char *mounted;
    place(tree, path, &mounted);
    tni_buffer_add(&text, "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                          "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,cpu\nbroken\n\n");
    if (tree->layout != TREE_V2) {
        tni_buffer_format(
            &text,
            "32 31 0:29 %s %s/cpu,cpuacct rw shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct\n",
            mounted, escaped(tree->mount_v1));
        tni_buffer_format(&text, "34 31 0:31 %s %s/cpuset rw - cgroup none rw,cpuset\n", mounted,
                          escaped(tree->mount_v1));
        tni_buffer_format(&text, "35 31 0:32 %s %s/memory ro,nosuid - cgroup cgroup rw,memory\n",
                          mounted, escaped(tree->mount_v1));
        tni_buffer_format(&text, "40 31 0:37 / %s/systemd rw - cgroup cgroup rw,name=systemd\n",
                          escaped(tree->mount_v1));
    }
    if (tree->layout != TREE_V1)
        tni_buffer_format(&text, "41 31 0:38 %s %s rw - cgroup2 cgroup2 rw,nsdelegate\n", mounted,
                          escaped(tree->mount_v2));
    if (tree->layout == TREE_V2 && tree->place == TREE_HOST && tree->levels > 1)
        tni_buffer_format(&text, "50 1 0:38 %s /nothing/here rw - cgroup2 cgroup2 rw\n",
                          escaped(path));
    tree_put(root, "/proc/self/mountinfo", "%s", tni_buffer_text(&text));
    tni_buffer_release(&text);
}

void tree_write(const struct tree *tree, const char *root)
{
    bool proc = tree->damage != TREE_NO_PROC && tree->damage != TREE_NOTHING;
    bool sys = tree->damage != TREE_NO_SYS && tree->damage != TREE_NOTHING;
    if (proc) {
        put_cpuinfo(tree, root);
        put_meminfo(tree, root);
        if (tree->layout != TREE_NO_GROUPS)
            put_cgroup(tree, root);
        if (tree->damage != TREE_MOUNTS_GONE)
            put_mounts(tree, root);
    }
    if (sys) {
        put_cpus(tree, root);
        put_nodes(tree, root);
        put_groups(tree, root);
    }
}
