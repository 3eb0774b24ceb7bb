#include "machine_linux.h"

static const char folder[] = "/sys/devices/system/cpu";

/* Creates rows for all processors that are present or online; everything else is unknown. */
static tni_machine_cpu *make_rows(tni_reading *reading, tni_machine_topology *out)
{
    const tni_cpus *sets[] = {&out->present, &out->online};
    int32_t room = out->present.room > out->online.room ? out->present.room : out->online.room;
    size_t count = (size_t)(out->present.count + out->online.count -
                            tni_cpus_shared(&out->present, &out->online));
    tni_machine_cpu *rows = tni_reading_keep(reading, count, sizeof *rows);
    if (!rows)
        return NULL;
    for (int32_t id = 0, next = 0; id < room; id++) {
        if (tni_cpus_has(sets[0], id) || tni_cpus_has(sets[1], id))
            rows[next++] = (tni_machine_cpu){id, tni_cpus_has(sets[1], id), -1, -1, -1, -1, -1};
    }
    out->cpus = rows;
    out->cpu_count = count;
    return rows;
}

/* A way of grouping processors: the file with its list, that file's older name, and the offset of
 * the group's index in a row. */
struct kind {
    const char *file, *older;
    size_t offset;
};

static const struct kind kinds[] = {
    {"core_cpus_list", "thread_siblings_list", offsetof(tni_machine_cpu, core)},
    {"die_cpus_list", NULL, offsetof(tni_machine_cpu, die)},
    {"package_cpus_list", "core_siblings_list", offsetof(tni_machine_cpu, package)},
};
enum { CORE, DIE, PACKAGE, KIND_COUNT };

static int32_t *index_of(tni_machine_cpu *row, const struct kind *kind)
{
    return (int32_t *)(void *)((char *)row + kind->offset);
}

/* A list that does not contain its own processor is malformed. */
static bool read_siblings(tni_reading *reading, const struct kind *kind, int32_t id, tni_cpus *out)
{
    bool found =
        tni_reading_cpus(reading, out, "%s/cpu%d/topology/%s", folder, (int)id, kind->file);
    if (!found && reading->absent && kind->older)
        found =
            tni_reading_cpus(reading, out, "%s/cpu%d/topology/%s", folder, (int)id, kind->older);
    if (found && !tni_cpus_has(out, id)) {
        tni_reading_malformed(reading, tni_span_of(tni_cpus_brief(reading, out)),
                              "a list with the processor itself");
        return false;
    }
    return found;
}

/* Assigns `index` to all members of the list that have no index yet. Returns how many there are. */
static int32_t assign_index(const struct kind *kind, const tni_cpus *siblings, int32_t index,
                            tni_machine_cpu *rows, size_t count)
{
    int32_t size = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t *own = index_of(&rows[i], kind);
        if (rows[i].online && *own < 0 && tni_cpus_has(siblings, rows[i].id)) {
            *own = index;
            size++;
        }
    }
    return size;
}

/* Numbers the groups, reading one list for each. The count is known only if every online processor
 * is in a group. *out_most is the size of the largest group. */
static tni_fact join(tni_reading *reading, const struct kind *kind, tni_machine_cpu *rows,
                     size_t count, int32_t *out_most)
{
    int32_t next = 0, most = 0, missing = 0;
    for (size_t i = 0; i < count; i++) {
        tni_cpus siblings;
        if (!rows[i].online || *index_of(&rows[i], kind) >= 0 ||
            !read_siblings(reading, kind, rows[i].id, &siblings))
            continue;
        int32_t size = assign_index(kind, &siblings, next++, rows, count);
        most = size > most ? size : most;
    }
    for (size_t i = 0; i < count; i++)
        missing += rows[i].online && *index_of(&rows[i], kind) < 0;
    const char *origin = tni_reading_format(reading, "%s/cpu*/topology/%s", folder, kind->file);
    if (next == 0 || missing > 0)
        return tni_fact_none(TNI_FACT_UNKNOWN,
                             tni_reading_format(reading, "%s: missing for %d online processors",
                                                origin, (int)missing));
    *out_most = most;
    return tni_fact_known(next, origin);
}

static void join_by_lists(tni_reading *reading, tni_machine_cpu *rows, tni_machine_topology *out)
{
    int32_t most = 0, unused;
    out->cores = join(reading, &kinds[CORE], rows, out->cpu_count, &most);
    out->threads_per_core = out->cores;
    out->threads_per_core.value = most;
    out->packages = join(reading, &kinds[PACKAGE], rows, out->cpu_count, &unused);
    out->dies = join(reading, &kinds[DIE], rows, out->cpu_count, &unused);
}

/* Finds an earlier row in the same package, or in the same core of it; -1 if none exists. */
static int32_t earlier(const tni_cpuinfo_row *const *entries, size_t row, bool core)
{
    for (size_t i = 0; i < row; i++) {
        if (entries[i] && entries[i]->package == entries[row]->package &&
            (!core || entries[i]->core == entries[row]->core))
            return (int32_t)i;
    }
    return -1;
}

/* Returns the entries of the online rows (NULL for other rows), or NULL if any of them lacks its
 * package or core. */
static const tni_cpuinfo_row *const *match(tni_reading *reading, const tni_cpuinfo *info,
                                           const tni_machine_topology *topology)
{
    const tni_cpuinfo_row **entries =
        tni_reading_keep(reading, topology->cpu_count, sizeof *entries);
    if (!entries || topology->cpu_count == 0)
        return NULL;
    for (size_t i = 0; i < topology->cpu_count; i++) {
        for (size_t j = 0; j < info->count && topology->cpus[i].online && !entries[i]; j++) {
            if (info->rows[j].id == topology->cpus[i].id)
                entries[i] = &info->rows[j];
        }
        if (topology->cpus[i].online &&
            (!entries[i] || entries[i]->package < 0 || entries[i]->core < 0))
            return NULL;
    }
    return entries;
}

/* For systems without /sys: on x86, /proc/cpuinfo also has package and core. */
static void join_by_cpuinfo(tni_reading *reading, const tni_cpuinfo *info, tni_machine_cpu *rows,
                            tni_machine_topology *out)
{
    static const char origin[] = "/proc/cpuinfo physical id, core id";
    const tni_cpuinfo_row *const *entries = match(reading, info, out);
    int32_t packages = 0, cores = 0, most = 0;
    int32_t *sizes = tni_reading_keep(reading, out->cpu_count, sizeof *sizes);
    if (!entries || !sizes)
        return;
    for (size_t i = 0; i < out->cpu_count; i++) {
        if (!entries[i])
            continue;
        int32_t package = earlier(entries, i, false), core = earlier(entries, i, true);
        rows[i].package = package < 0 ? packages++ : rows[package].package;
        rows[i].core = core < 0 ? cores++ : rows[core].core;
        int32_t size = ++sizes[rows[i].core];
        most = size > most ? size : most;
    }
    out->packages = tni_fact_known(packages, origin);
    out->cores = tni_fact_known(cores, origin);
    out->threads_per_core = tni_fact_known(most, origin);
}

/* If the system does not report dies, assumes one per package. */
static void assume_dies(tni_machine_cpu *rows, tni_machine_topology *out)
{
    if (out->dies.state == TNI_FACT_KNOWN || out->packages.state != TNI_FACT_KNOWN)
        return;
    for (size_t i = 0; i < out->cpu_count; i++)
        rows[i].die = rows[i].package;
    out->dies =
        tni_fact_known(out->packages.value, "one per package, because the system reports no dies");
}

void tni_machine_topology_read(tni_reading *reading, const tni_cpus *online, tni_fact online_fact,
                               tni_machine_topology *out)
{
    tni_cpuinfo info = {0};
    tni_cpuid_names cpuid = {.model = ""};
    out->online = *online;
    out->threads = online_fact;
    (void)tni_reading_cpus(reading, &out->present, "%s/present", folder);
    (void)tni_reading_cpus(reading, &out->possible, "%s/possible", folder);
    tni_machine_cpu *rows = make_rows(reading, out);
    if (!rows)
        return;
    join_by_lists(reading, rows, out);
    /* The file is slow to read on large machines, so it is read only if needed. */
    bool named = reading->running && tni_cpuid_read(&cpuid) && cpuid.model[0];
    if ((!named || out->cores.state != TNI_FACT_KNOWN) && !tni_cpuinfo_read(reading, &info))
        info = (tni_cpuinfo){0};
    if (out->cores.state != TNI_FACT_KNOWN)
        join_by_cpuinfo(reading, &info, rows, out);
    assume_dies(rows, out);
    tni_machine_model_read(reading, &info, &cpuid, out);
    tni_machine_caches_read(reading, out);
    tni_machine_nodes_read(reading, rows, out);
    tni_machine_classes_read(reading, &info, rows, out);
}
