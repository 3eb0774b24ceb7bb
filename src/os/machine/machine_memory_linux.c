#include "machine_linux.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <sys/resource.h>
#include <unistd.h>

/* Limits at or above this mean no limit: version 1 writes the greatest multiple of the page
 * size. */
static const int64_t no_limit = INT64_C(1) << 62;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t difference(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}

/* Value of a line of /proc/meminfo in bytes; -1 if missing or malformed. A malformed one is
 * noted. */
static int64_t meminfo_value(tni_reading *reading, tni_span text, const char *key)
{
    tni_span value;
    int64_t bytes;
    if (!tni_span_value(text, key, ':', &value))
        return -1;
    if (tni_span_bytes(value, &bytes))
        return bytes;
    tni_reading_malformed(reading, value, "a size in kB");
    return -1;
}

/* For kernels before 3.14, by the formula of later kernels: free memory minus the kernel's reserve,
 * plus the file cache and the reclaimable slab, each reduced by the reserve but by at most half. */
static tni_fact estimate_available(tni_reading *reading, tni_span text)
{
    int64_t free = meminfo_value(reading, text, "MemFree"), reserve = 0, sum;
    int64_t active = meminfo_value(reading, text, "Active(file)");
    int64_t inactive = meminfo_value(reading, text, "Inactive(file)");
    int64_t kernel = difference(meminfo_value(reading, text, "SReclaimable"), 0);
    if (free < 0 || active < 0 || inactive < 0 || !tni_add_i64(active, inactive, &sum))
        return tni_fact_none(TNI_FACT_UNKNOWN, "not in /proc/meminfo");
    if (tni_reading_number(reading, &reserve, "/proc/sys/vm/min_free_kbytes"))
        reserve = least(reserve, INT64_C(1) << 30) * 1280;
    int64_t cache = sum - least(sum / 2, reserve), held = kernel - least(kernel / 2, reserve);
    if (!tni_add_i64(difference(free, reserve), cache, &sum) || !tni_add_i64(sum, held, &sum))
        return tni_fact_none(TNI_FACT_MALFORMED, "/proc/meminfo has impossible sizes");
    return tni_fact_known(sum, "/proc/meminfo, estimated from MemFree, file cache and slab");
}

static void parse_meminfo(tni_reading *reading, tni_span text, tni_machine_memory *out)
{
    int64_t total = meminfo_value(reading, text, "MemTotal");
    out->system_total = total > 0 ? tni_fact_known(total, "/proc/meminfo MemTotal")
                        : reading->state == TNI_FACT_MALFORMED
                            ? tni_reading_nothing(reading)
                            : tni_fact_none(TNI_FACT_UNKNOWN, "no MemTotal in /proc/meminfo");
    int64_t available = meminfo_value(reading, text, "MemAvailable");
    if (available >= 0)
        out->system_available = tni_fact_known(available, "/proc/meminfo MemAvailable");
    else
        out->system_available = estimate_available(reading, text);
}

static void read_system(tni_reading *reading, tni_machine_memory *out)
{
    char *text;
    tni_span span;
    if (tni_reading_file(reading, &text, &span, "/proc/meminfo")) {
        parse_meminfo(reading, span, out);
        tni_release(text);
        return;
    }
    out->system_total = out->system_available = tni_reading_nothing(reading);
    long pages = reading->running ? sysconf(_SC_PHYS_PAGES) : -1;
    long page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        out->system_total = tni_fact_known((int64_t)pages * page, "sysconf(_SC_PHYS_PAGES)");
}

/* Uses the page size of the running system for any root: no file contains it. */
static tni_fact read_resident(tni_reading *reading)
{
    char *text;
    tni_span span, rest, word;
    int64_t pages, bytes;
    if (!tni_reading_file(reading, &text, &span, "/proc/self/statm"))
        return tni_reading_nothing(reading);
    rest = span;
    (void)tni_span_next_word(&rest, &word); /* size of the address space */
    bool sound = tni_span_next_word(&rest, &word) && tni_span_number(word, &pages) &&
                 tni_mul_i64(pages, sysconf(_SC_PAGESIZE), &bytes);
    if (!sound)
        tni_reading_malformed(reading, span, "the number of resident pages as the second one");
    tni_release(text);
    return sound ? tni_fact_known(bytes, "/proc/self/statm, resident pages")
                 : tni_reading_nothing(reading);
}

/* File and field names of one version of control groups. Exceeding the `soft` limit only throttles
 * the group. */
struct words {
    const char *hard, *soft;
    const char *usage;
    const char *cache;
};

static const struct words words_of[] = {
    [1] = {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_inactive_file"},
    [2] = {"memory.max", "memory.high", "memory.current", "inactive_file"},
};

static tni_fact judge_limit(tni_reading *reading, const char *name, const char *file, tni_span text)
{
    int64_t bytes;
    tni_span trimmed = tni_span_trim(text);
    bool none = tni_span_is(trimmed, "max") || tni_span_is(trimmed, "-1");
    if (!none && !tni_span_number(trimmed, &bytes)) {
        tni_reading_malformed(reading, text, "a number of bytes");
        return tni_reading_nothing(reading);
    }
    if (none || bytes >= no_limit)
        return tni_fact_none(TNI_FACT_UNLIMITED,
                             tni_reading_format(reading, "%s %s: no limit", name, file));
    return tni_fact_known(bytes,
                          tni_reading_format(reading, "%s %s %lld", name, file, (long long)bytes));
}

/* Reads one limit file of a group; a zeroed fact if the file is missing. */
static tni_fact read_limit(tni_reading *reading, const tni_cgroup *at, const char *file)
{
    char *text;
    tni_span span;
    if (!tni_reading_file(reading, &text, &span, "%s%s/%s", at->mount, at->group, file))
        return reading->absent ? (tni_fact){0} : tni_reading_nothing(reading);
    tni_fact fact = judge_limit(reading, tni_cgroup_name(reading, at), file, span);
    tni_release(text);
    return fact;
}

/* Reads a line of a group's memory.stat; false if it is missing or malformed. */
static bool read_stat(tni_reading *reading, const tni_cgroup *at, const char *key, int64_t *out)
{
    char *text;
    tni_span span, value;
    if (!tni_reading_file(reading, &text, &span, "%s%s/memory.stat", at->mount, at->group))
        return false;
    bool found = tni_span_value(span, key, ' ', &value);
    bool sound = found && tni_span_number(value, out);
    if (found && !sound)
        tni_reading_malformed(reading, value, "a number of bytes");
    tni_release(text);
    return sound;
}

/* What is left of a known limit: unused file cache can be reclaimed, so it does not count as usage.
 * If the usage is unknown, returns the limit itself. */
static tni_fact what_it_leaves(tni_reading *reading, const tni_cgroup *at, const tni_fact *limit)
{
    const struct words *words = &words_of[at->version];
    int64_t usage, cache = 0;
    if (!tni_reading_number(reading, &usage, "%s%s/%s", at->mount, at->group, words->usage))
        return tni_fact_known(limit->value,
                              tni_reading_format(reading, "%s, usage unknown", limit->origin));
    bool told = read_stat(reading, at, words->cache, &cache);
    const char *origin = tni_reading_format(
        reading, "%s less %s %lld, of which %s %lld is file cache", limit->origin, words->usage,
        (long long)usage, told ? words->cache : "an unknown part, counted as", (long long)cache);
    return tni_fact_known(difference(limit->value, difference(usage, cache)), origin);
}

/* A container does not see the groups above its own, but version 1 reports their smallest limit. */
static tni_fact limit_from_above(tni_reading *reading, const tni_cgroup *own)
{
    int64_t bytes;
    if (own->version != 1 || !read_stat(reading, own, "hierarchical_memory_limit", &bytes) ||
        bytes >= no_limit)
        return (tni_fact){0};
    return tni_fact_known(
        bytes, tni_reading_format(reading, "%s memory.stat hierarchical_memory_limit %lld",
                                  tni_cgroup_name(reading, own), (long long)bytes));
}

static void read_group(tni_reading *reading, const tni_cgroup *at, bool own,
                       tni_machine_memory *out)
{
    const struct words *words = &words_of[at->version];
    tni_fact limit = read_limit(reading, at, words->hard);
    if (words->soft)
        tni_fact_lessen(&limit, read_limit(reading, at, words->soft));
    if (own)
        tni_fact_lessen(&limit, limit_from_above(reading, at));
    tni_fact_lessen(&out->limit, limit);
    if (limit.state == TNI_FACT_KNOWN)
        limit = what_it_leaves(reading, at, &limit);
    tni_fact_lessen(&out->limit_available, limit);
}

static void read_groups(tni_reading *reading, const tni_cgroups *cgroups, tni_machine_memory *out)
{
    tni_cgroup at, own;
    tni_cgroup_find(reading, cgroups, "memory", &own);
    bool more = own.version != 0, first = true;
    for (at = own; more; more = tni_cgroup_rise(&at), first = false)
        read_group(reading, &at, first, out);
    const char *file = own.version ? words_of[own.version].hard : "";
    tni_cgroup_limit_resolve(reading, &own, file, &out->limit);
    tni_cgroup_limit_resolve(reading, &own, file, &out->limit_available);
}

/* Reads the nodes that the process may allocate from. Returns false if they are all nodes, or
 * unknown. */
static bool read_allowed_nodes(tni_reading *reading, tni_cpus *out)
{
    char *text;
    tni_span span, value;
    tni_cpus online;
    if (!tni_reading_cpus(reading, &online, "/sys/devices/system/node/online") ||
        online.count < 2 || !tni_reading_file(reading, &text, &span, "/proc/self/status"))
        return false;
    bool told = tni_span_value(span, "Mems_allowed_list", ':', &value) &&
                tni_cpus_parse(reading, value, out);
    tni_release(text);
    return told && out->count > 0 && tni_cpus_shared(out, &online) < online.count;
}

/* The total memory of those nodes; a zeroed fact if the process may use every node. */
static tni_fact limit_by_nodes(tni_reading *reading)
{
    tni_cpus allowed;
    int64_t sum = 0;
    if (!read_allowed_nodes(reading, &allowed))
        return (tni_fact){0};
    for (int32_t id = tni_cpus_next(&allowed, 0); id >= 0; id = tni_cpus_next(&allowed, id + 1)) {
        tni_fact total = tni_machine_node_total(reading, id);
        if (total.state == TNI_FACT_KNOWN && !tni_add_i64(sum, total.value, &sum))
            return (tni_fact){0};
    }
    return sum > 0 ? tni_fact_known(
                         sum, tni_reading_format(reading, "/proc/self/status Mems_allowed_list %s",
                                                 tni_cpus_brief(reading, &allowed)))
                   : (tni_fact){0};
}

/* The limit on mapped memory, set by the shell's ulimit or a service's settings. */
static tni_fact read_ulimit(const tni_reading *reading, bool data, const char *name)
{
    struct rlimit limit;
    if (!reading->running || getrlimit(data ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)no_limit)
        return (tni_fact){0};
    return tni_fact_known((int64_t)limit.rlim_cur, name);
}

void tni_machine_memory_read(tni_reading *reading, const tni_cgroups *cgroups,
                             tni_machine_memory *out)
{
    read_system(reading, out);
    read_groups(reading, cgroups, out);
    out->resident = read_resident(reading);
    tni_fact_lessen(&out->total, out->system_total);
    tni_fact_lessen(&out->total, out->limit);
    tni_fact_lessen(&out->total, limit_by_nodes(reading));
    tni_fact_lessen(&out->total, read_ulimit(reading, false, "RLIMIT_AS (ulimit -v)"));
    tni_fact_lessen(&out->total, read_ulimit(reading, true, "RLIMIT_DATA (ulimit -d)"));
    if (out->total.state == TNI_FACT_KNOWN && out->limit.state == TNI_FACT_UNKNOWN)
        out->total.origin = tni_reading_format(reading, "%s; a control group may allow less: %s",
                                               out->total.origin, out->limit.origin);
    tni_fact_lessen(&out->available, out->system_available);
    tni_fact_lessen(&out->available, out->limit_available);
    if (out->available.state == TNI_FACT_KNOWN)
        tni_fact_lessen(&out->available, out->total);
}
