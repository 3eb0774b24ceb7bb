#include "machine_linux.h"

#include <stdlib.h>

/* Traits that distinguish kinds of cores, strongest evidence first. Each trait has a value for
 * every row of the topology, 0 if unknown; a greater value means a faster core, except for PART. */
enum { UNIT, CAPACITY, PART, PACE, ALIKE, TRAIT_COUNT };

static const char *const evidence[] = {
    "/sys/devices/cpu_core/cpus and its like",
    "/sys/devices/system/cpu/cpu*/cpu_capacity",
    "/proc/cpuinfo CPU part",
    "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq, weaker evidence",
    "/sys/devices/cpu: one counter unit for all",
};

struct sorter {
    tni_reading *reading;
    tni_machine_topology *topology;
    tni_machine_cpu *cpus;
    int64_t *traits[TRAIT_COUNT];
    int64_t *khz; /* as read; PACE is its smoothed form */
};

/* Intel's hybrid processors have a performance counter unit for each kind of core. */
static const struct unit {
    const char *folder;
    const char *name;
} units[] = {{"cpu_lowpower", "low-power"}, {"cpu_atom", "efficient"}, {"cpu_core", "performance"}};
enum { UNIT_COUNT = sizeof units / sizeof units[0] };

static void read_units(const struct sorter *sorter)
{
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        tni_cpus set;
        if (!tni_reading_cpus(sorter->reading, &set, "/sys/devices/%s/cpus", units[unit].folder))
            continue;
        for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
            if (tni_cpus_has(&set, sorter->cpus[i].id))
                sorter->traits[UNIT][i] = unit + 1;
        }
    }
}

/* Reads one file per core; stops at the first core that has none. */
static void read_cores(const struct sorter *sorter, const char *file, int64_t *values)
{
    const tni_machine_cpu *cpus = sorter->cpus;
    for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
        if (!cpus[i].online || values[i] > 0)
            continue;
        if (!tni_reading_number(sorter->reading, &values[i], "/sys/devices/system/cpu/cpu%d/%s",
                                (int)cpus[i].id, file))
            return;
        for (size_t j = i + 1; j < sorter->topology->cpu_count && cpus[i].core >= 0; j++) {
            if (cpus[j].core == cpus[i].core)
                values[j] = values[i];
        }
    }
}

static void read_parts(const struct sorter *sorter, const tni_cpuinfo *info)
{
    for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
        for (size_t j = 0; j < info->count; j++) {
            const tni_cpuinfo_row *row = &info->rows[j];
            if (row->id == sorter->cpus[i].id && row->implementer >= 0 && row->part >= 0)
                sorter->traits[PART][i] = (int64_t)row->implementer * 65536 + row->part + 1;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Preferred cores of one kind run slightly faster, so only a gap of about 20 % separates kinds:
 * each core's pace is the greatest frequency reachable from its own without such a gap. */
static void smooth(const struct sorter *sorter)
{
    size_t count = sorter->topology->cpu_count;
    int64_t *sorted = tni_reading_keep(sorter->reading, count, sizeof *sorted);
    if (!sorted || count == 0)
        return;
    memcpy(sorted, sorter->khz, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    for (size_t i = 0; i < count; i++) {
        int64_t top = sorter->khz[i];
        for (size_t j = 0; j < count && top > 0; j++) {
            if (sorted[j] > top && sorted[j] / 6 * 5 < top)
                top = sorted[j];
        }
        sorter->traits[PACE][i] = top;
    }
}

static void read_unit_of_all(const struct sorter *sorter)
{
    int64_t type;
    if (!tni_reading_number(sorter->reading, &type, "/sys/devices/cpu/type"))
        return;
    for (size_t i = 0; i < sorter->topology->cpu_count; i++)
        sorter->traits[ALIKE][i] = 1;
}

static bool read_traits(struct sorter *sorter, const tni_cpuinfo *info)
{
    size_t count = sorter->topology->cpu_count;
    for (int i = 0; i < TRAIT_COUNT; i++)
        sorter->traits[i] = tni_reading_keep(sorter->reading, count, sizeof(int64_t));
    sorter->khz = tni_reading_keep(sorter->reading, count, sizeof(int64_t));
    if (sorter->reading->failed)
        return false;
    read_units(sorter);
    read_cores(sorter, "cpu_capacity", sorter->traits[CAPACITY]);
    read_cores(sorter, "cpufreq/cpuinfo_max_freq", sorter->khz);
    read_parts(sorter, info);
    smooth(sorter);
    read_unit_of_all(sorter);
    return !sorter->reading->failed;
}

/* Number of distinct values of the online rows; 0 if any of them has none. */
static size_t kinds_by(const struct sorter *sorter, int trait)
{
    const int64_t *values = sorter->traits[trait];
    size_t kinds = 0;
    for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
        bool seen = false;
        if (!sorter->cpus[i].online)
            continue;
        if (values[i] <= 0)
            return 0;
        for (size_t j = 0; j < i && !seen; j++)
            seen = sorter->cpus[j].online && values[j] == values[i];
        kinds += !seen;
    }
    return kinds;
}

/* Returns the strongest trait with several kinds; else the strongest with one kind; -1 if none
 * exists. */
static int choose(const struct sorter *sorter)
{
    int alone = -1;
    for (int trait = 0; trait < TRAIT_COUNT; trait++) {
        size_t kinds = kinds_by(sorter, trait);
        if (kinds > 1 || (kinds == 1 && trait == UNIT))
            return trait;
        if (kinds == 1 && alone < 0)
            alone = trait;
    }
    return alone;
}

/* The greatest value below `bound` of any online row; 0 if none exists. */
static int64_t greatest_below(const struct sorter *sorter, int trait, int64_t bound)
{
    int64_t greatest = 0;
    for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
        int64_t value = sorter->traits[trait][i];
        if (sorter->cpus[i].online && value > greatest && value < bound)
            greatest = value;
    }
    return greatest;
}

/* Arm's core name if all members share it, else a name from the trait that distinguishes the
 * class. */
static const char *name_of(const struct sorter *sorter, int trait, int64_t value, int64_t part)
{
    if (trait == UNIT)
        return units[value - 1].name;
    if (part > 0)
        return tni_arm_core_words(sorter->reading, (int32_t)((part - 1) / 65536),
                                  (int32_t)((part - 1) % 65536));
    if (sorter->topology->class_count == 1)
        return "all identical";
    return trait == CAPACITY
               ? tni_reading_format(sorter->reading, "capacity %lld", (long long)value)
               : tni_reading_format(sorter->reading, "up to %lld MHz", (long long)value / 1000);
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Assigns the online rows with this value of the trait to class `index`. */
static void make_class(const struct sorter *sorter, int trait, int64_t value, int32_t index,
                       tni_machine_class *out)
{
    int64_t part = -1;
    if (!tni_cpus_make(sorter->reading, sorter->topology->online.room, &out->cpus))
        return;
    for (size_t i = 0; i < sorter->topology->cpu_count; i++) {
        tni_machine_cpu *cpu = &sorter->cpus[i];
        int64_t own = sorter->traits[PART][i];
        if (!cpu->online || sorter->traits[trait][i] != value)
            continue;
        part = part == -1 || part == own ? own : 0;
        cpu->core_class = index;
        out->capacity = greater(out->capacity, sorter->traits[CAPACITY][i]);
        out->max_khz = greater(out->max_khz, sorter->khz[i]);
        tni_cpus_add(&out->cpus, cpu->id, cpu->id);
    }
    tni_cpus_count(&out->cpus);
    out->name = name_of(sorter, trait, value, part);
}

void tni_machine_classes_read(tni_reading *reading, const tni_cpuinfo *info, tni_machine_cpu *cpus,
                              tni_machine_topology *out)
{
    struct sorter sorter = {.reading = reading, .topology = out, .cpus = cpus};
    int trait = read_traits(&sorter, info) ? choose(&sorter) : -1;
    if (trait < 0) {
        out->classes_known = tni_fact_none(TNI_FACT_UNKNOWN, "no information about kinds of cores");
        return;
    }
    size_t count = kinds_by(&sorter, trait);
    tni_machine_class *classes = tni_reading_keep(reading, count, sizeof *classes);
    if (!classes)
        return;
    out->classes = classes;
    out->class_count = count;
    out->classes_known = tni_fact_known((int64_t)count, evidence[trait]);
    out->classes_by_speed = count == 1 || trait != PART;
    int64_t value = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        value = greatest_below(&sorter, trait, value);
        make_class(&sorter, trait, value, (int32_t)i, &classes[i]);
    }
}
