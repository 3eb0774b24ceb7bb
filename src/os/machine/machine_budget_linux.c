#include "machine_linux.h"

#include "base/alloc.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

/* Collects the processor numbers if every entry has a distinct one; otherwise leaves *out empty. */
static void number_entries(tni_reading *reading, const tni_cpuinfo *info, tni_cpus *out)
{
    tni_cpus set;
    if (!tni_cpus_make(reading, TNI_CPUS_LIMIT, &set))
        return;
    for (size_t i = 0; i < info->count; i++) {
        if (info->rows[i].id >= 0)
            tni_cpus_add(&set, info->rows[i].id, info->rows[i].id);
    }
    tni_cpus_count(&set);
    if ((size_t)set.count == info->count)
        *out = set;
}

static tni_fact online_without_sys(tni_reading *reading, tni_cpus *out)
{
    tni_cpuinfo info;
    if (tni_cpuinfo_read(reading, &info)) {
        number_entries(reading, &info, out);
        return tni_fact_known((int64_t)info.count, "/proc/cpuinfo, by its entries");
    }
    long count = reading->running ? sysconf(_SC_NPROCESSORS_ONLN) : -1;
    if (count > 0)
        return tni_fact_known(count, "sysconf(_SC_NPROCESSORS_ONLN)");
    return tni_fact_none(TNI_FACT_UNKNOWN,
                         "not in /sys/devices/system/cpu/online or /proc/cpuinfo");
}

tni_fact tni_machine_online_read(tni_reading *reading, tni_cpus *out)
{
    static const char path[] = "/sys/devices/system/cpu/online";
    tni_cpus set;
    if (!tni_reading_cpus(reading, &set, path) || set.count == 0)
        return online_without_sys(reading, out);
    *out = set;
    return tni_fact_known(
        set.count, tni_reading_format(reading, "%s %s", path, tni_cpus_brief(reading, &set)));
}

/* Counts the members that are online; all members if it is unknown which are. */
static tni_fact count_of(tni_reading *reading, const tni_cpus *set, const tni_cpus *online,
                         const char *origin)
{
    int32_t count = online->count ? tni_cpus_shared(set, online) : set->count;
    const char *text = tni_reading_format(reading, "%s %s%s", origin, tni_cpus_brief(reading, set),
                                          count == set->count ? "" : ", minus the offline ones");
    return count > 0 ? tni_fact_known(count, text) : tni_fact_none(TNI_FACT_MALFORMED, text);
}

/* Affinity of the calling thread; threads that it creates inherit it. */
static tni_fact own_affinity(tni_reading *reading, const tni_cpus *online, tni_cpus *out)
{
    static const char call[] = "sched_getaffinity";
    cpu_set_t sets[TNI_CPUS_LIMIT / CPU_SETSIZE];
    tni_cpus set;
    if (sched_getaffinity(0, sizeof sets, sets) != 0)
        return tni_fact_none(TNI_FACT_UNKNOWN,
                             tni_reading_format(reading, "%s: error %d", call, errno));
    if (!tni_cpus_make(reading, TNI_CPUS_LIMIT, &set))
        return tni_fact_none(TNI_FACT_UNKNOWN, "");
    set.count = CPU_COUNT_S(sizeof sets, sets);
    for (int32_t cpu = 0, left = set.count; left > 0; cpu++) {
        if (CPU_ISSET_S((size_t)cpu, sizeof sets, sets)) {
            tni_cpus_add(&set, cpu, cpu);
            left--;
        }
    }
    *out = set;
    return count_of(reading, out, online, call);
}

static tn_status read_affinity(tni_reading *reading, const char *given, tni_machine_budget *out,
                               tn_error *err)
{
    tni_fact *fact = &out->limits[TNI_LIMIT_AFFINITY];
    if (given) {
        if (!tni_cpus_parse(reading, tni_span_of(given), &out->affinity) && !reading->failed)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tni_machine_read",
                           "affinity: expected a list such as 0-3,8, got \"%.64s\"", given);
        *fact = count_of(reading, &out->affinity, &out->online, "affinity as given:");
    } else if (reading->running) {
        *fact = own_affinity(reading, &out->online, &out->affinity);
    } else {
        *fact = tni_fact_none(TNI_FACT_UNKNOWN, "only the running system has an affinity");
    }
    return TN_OK;
}

/* File names in a group; those after the first two belong to cpusets mounted without the prefix. */
static const char *const cpuset_files[][5] = {
    [1] = {"cpuset.effective_cpus", "cpuset.cpus", "effective_cpus", "cpus", NULL},
    [2] = {"cpuset.cpus.effective", NULL},
};

/* Reads one group's cpuset. Returns a zeroed fact if it has no list or an empty one; then the
 * parent group's list applies. */
static tni_fact read_cpuset_at(tni_reading *reading, const tni_cgroup *at, const tni_cpus *online,
                               tni_cpus *out)
{
    tni_fact doubt = {0};
    for (const char *const *file = cpuset_files[at->version]; *file; file++) {
        tni_cpus set;
        bool found = tni_reading_cpus(reading, &set, "%s%s/%s", at->mount, at->group, *file);
        if (!found && !reading->absent)
            tni_fact_lessen(&doubt, tni_reading_nothing(reading));
        if (!found || set.count == 0)
            continue;
        const char *name = tni_cgroup_name(reading, at);
        *out = set;
        return count_of(reading, out, online, tni_reading_format(reading, "%s %s", name, *file));
    }
    return doubt;
}

/* A group's set is a subset of its parent's, so the nearest group with a list counts. */
static void read_cpuset(tni_reading *reading, const tni_cgroups *cgroups, tni_machine_budget *out)
{
    tni_fact *fact = &out->limits[TNI_LIMIT_CPUSET];
    tni_cgroup at, own;
    tni_cgroup_find(reading, cgroups, "cpuset", &own);
    bool more = own.version != 0;
    for (at = own; more && !out->cpuset.count; more = tni_cgroup_rise(&at))
        tni_fact_lessen(fact, read_cpuset_at(reading, &at, &out->online, &out->cpuset));
    tni_cgroup_limit_resolve(reading, &own, "list of cpus", fact);
}

struct quota {
    int64_t quota_us;
    int64_t period_us;
};

static const char *quota_file(const tni_cgroup *cgroup)
{
    return cgroup->version == 2 ? "cpu.max" : "cpu.cfs_quota_us";
}

/* A period is at most one second; the bound prevents overflow in products of two of them. */
static bool quota_is_sound(const struct quota *quota)
{
    return quota->quota_us > 0 && quota->period_us > 0 && quota->period_us <= INT32_MAX;
}

static bool quota_is_less(const struct quota *a, const struct quota *b)
{
    int64_t whole_a = a->quota_us / a->period_us, whole_b = b->quota_us / b->period_us;
    int64_t rest_a = a->quota_us % a->period_us, rest_b = b->quota_us % b->period_us;
    return whole_a != whole_b ? whole_a < whole_b : rest_a * b->period_us < rest_b * a->period_us;
}

/* Parses "150000 100000", or "150000" if the period is in a separate file. */
static bool parse_quota(tni_span text, struct quota *out)
{
    tni_span word;
    return tni_span_next_word(&text, &word) && tni_span_number(word, &out->quota_us) &&
           (!tni_span_next_word(&text, &word) || tni_span_number(word, &out->period_us)) &&
           quota_is_sound(out);
}

static tni_fact judge_quota(tni_reading *reading, const tni_cgroup *at, tni_span text,
                            struct quota *quota)
{
    const char *name = tni_cgroup_name(reading, at), *file = quota_file(at);
    tni_span trimmed = tni_span_trim(text);
    if (tni_span_begins(trimmed, "max") || tni_span_begins(trimmed, "-"))
        return tni_fact_none(
            TNI_FACT_UNLIMITED,
            tni_reading_format(reading, "%s %s %s", name, file, at->version == 2 ? "max" : "-1"));
    if (!parse_quota(text, quota)) {
        tni_reading_malformed(reading, text, "a quota and a period in microseconds");
        return tni_reading_nothing(reading);
    }
    int64_t whole = quota->quota_us / quota->period_us;
    return tni_fact_known(whole > 0 ? whole : 1,
                          tni_reading_format(reading, "%s %s %lld %lld", name, file,
                                             (long long)quota->quota_us,
                                             (long long)quota->period_us));
}

/* Reads one group's quota; a zeroed fact if it has no such file. */
static tni_fact read_quota_at(tni_reading *reading, const tni_cgroup *at, struct quota *out)
{
    char *text;
    tni_span span;
    if (at->version == 1 && !tni_reading_number(reading, &out->period_us, "%s%s/cpu.cfs_period_us",
                                                at->mount, at->group))
        return reading->absent ? (tni_fact){0} : tni_reading_nothing(reading);
    if (!tni_reading_file(reading, &text, &span, "%s%s/%s", at->mount, at->group, quota_file(at)))
        return reading->absent ? (tni_fact){0} : tni_reading_nothing(reading);
    tni_fact fact = judge_quota(reading, at, span, out);
    tni_release(text);
    return fact;
}

static void read_quota(tni_reading *reading, const tni_cgroups *cgroups, tni_machine_budget *out)
{
    tni_fact *least = &out->limits[TNI_LIMIT_QUOTA];
    struct quota best = {.period_us = 1};
    tni_cgroup at, own;
    tni_cgroup_find(reading, cgroups, "cpu", &own);
    bool more = own.version != 0;
    for (at = own; more; more = tni_cgroup_rise(&at)) {
        struct quota quota = {.period_us = 100000};
        tni_fact fact = read_quota_at(reading, &at, &quota);
        if (fact.state != TNI_FACT_KNOWN) {
            tni_fact_lessen(least, fact);
        } else if (least->state != TNI_FACT_KNOWN || quota_is_less(&quota, &best)) {
            *least = fact;
            best = quota;
        }
    }
    if (least->state == TNI_FACT_KNOWN) {
        out->quota_us = best.quota_us;
        out->period_us = best.period_us;
    }
    tni_cgroup_limit_resolve(reading, &own, quota_file(&own), least);
}

tn_status tni_machine_budget_read(tni_reading *reading, const tni_cgroups *cgroups,
                                  const char *affinity, tni_machine_budget *out, tn_error *err)
{
    tn_status status = read_affinity(reading, affinity, out, err);
    if (status)
        return status;
    read_cpuset(reading, cgroups, out);
    read_quota(reading, cgroups, out);
    return TN_OK;
}
