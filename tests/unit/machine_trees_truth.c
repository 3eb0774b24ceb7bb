#include "machine_trees.h"

static struct tree_fact known(long long value)
{
    return (struct tree_fact){TNI_FACT_KNOWN, value};
}

static struct tree_fact without(unsigned state)
{
    return (struct tree_fact){state, 0};
}

static bool has_proc(const struct tree *tree)
{
    return tree->damage != TREE_NO_PROC && tree->damage != TREE_NOTHING;
}

static bool has_sys(const struct tree *tree)
{
    return tree->damage != TREE_NO_SYS && tree->damage != TREE_NOTHING;
}

bool tree_shows_groups(const struct tree *tree)
{
    return has_proc(tree) && has_sys(tree) && tree->damage != TREE_MOUNTS_GONE &&
           tree->layout != TREE_NO_GROUPS && tree->place != TREE_OUTSIDE;
}

/* No group in sight has a limit; but the process's own may be out of sight. */
static struct tree_fact no_limit(const struct tree *tree)
{
    return without(tree->place == TREE_ABOVE ? TNI_FACT_UNKNOWN : TNI_FACT_UNLIMITED);
}

/* Of several groups: a limit that is known, else the doubt, else none. */
static struct tree_fact settle(const struct tree *tree, bool any, long long value, unsigned doubt)
{
    return any ? known(value) : doubt ? without(doubt - 1) : no_limit(tree);
}

static void know_quota(const struct tree *tree, struct tree_truth *out)
{
    bool any = false;
    unsigned doubt = 0; /* a state and one */
    if (!tree_shows_groups(tree)) {
        out->limits[TNI_LIMIT_QUOTA] = without(TNI_FACT_UNKNOWN);
        return;
    }
    for (int i = 0; i < tree->levels; i++) {
        const struct tree_group *group = &tree->groups[i];
        bool damaged =
            i == 0 && tree->damage >= TREE_QUOTA_GARBAGE && tree->damage <= TREE_QUOTA_HUGE;
        if (damaged)
            doubt =
                1 + (tree->damage == TREE_QUOTA_UNREADABLE ? TNI_FACT_UNKNOWN : TNI_FACT_MALFORMED);
        else if (group->quota > 0 &&
                 (!any || group->quota * out->period < out->quota * group->period)) {
            any = true;
            out->quota = group->quota;
            out->period = group->period;
        }
    }
    long long whole = any ? out->quota / out->period : 0;
    out->limits[TNI_LIMIT_QUOTA] = settle(tree, any, whole > 1 ? whole : 1, doubt);
}

static int count(const struct tree *tree, const bool *members)
{
    int number = 0;
    for (int i = 0; i < tree->cpu_count; i++)
        number += members ? members[i] : tree->cpus[i].online;
    return number;
}

static void know_budget(const struct tree *tree, struct tree_truth *out)
{
    struct tree_fact *limits = out->limits;
    out->has_numbers = has_sys(tree) || has_proc(tree);
    limits[TNI_LIMIT_ONLINE] =
        out->has_numbers ? known(count(tree, NULL)) : without(TNI_FACT_UNKNOWN);
    limits[TNI_LIMIT_AFFINITY] = known(count(tree, tree->in_affinity));
    limits[TNI_LIMIT_CPUSET] = !tree_shows_groups(tree)  ? without(TNI_FACT_UNKNOWN)
                               : tree->cpuset_level >= 0 ? known(count(tree, tree->in_cpuset))
                                                         : no_limit(tree);
    limits[TNI_LIMIT_REQUEST] = tree->request ? known(tree->request) : without(TNI_FACT_UNLIMITED);
    know_quota(tree, out);
    out->threads = TREE_CPUS;
    for (int i = 0; i < TNI_LIMIT_COUNT; i++) {
        if (limits[i].state == TNI_FACT_KNOWN && limits[i].value < out->threads)
            out->threads = (int)limits[i].value;
    }
}

static long long least(long long a, long long b)
{
    return a < b ? a : b;
}

/* The limit that one group sets by itself, as its version tells it; 0: none. */
static long long limit_of(const struct tree *tree, int level)
{
    const struct tree_group *group = &tree->groups[level];
    bool damaged = level == 0 && tree->damage == TREE_LIMIT_GARBAGE;
    long long limit = damaged || group->max < 0 ? 0 : group->max, more = 0;
    if (tree_version(tree, "memory") == 2)
        more = group->high > 0 ? group->high : 0;
    else if (level == 0)
        more = tree_hierarchical_limit(tree);
    return limit && more ? least(limit, more) : limit + more;
}

static void know_limits(const struct tree *tree, struct tree_truth *out)
{
    bool any = false;
    long long limit = INT64_MAX, leaves = INT64_MAX;
    unsigned doubt = tree->damage == TREE_LIMIT_GARBAGE ? 1 + TNI_FACT_MALFORMED : 0;
    if (!tree_shows_groups(tree)) {
        out->limit = out->limit_available = without(TNI_FACT_UNKNOWN);
        return;
    }
    for (int i = 0; i < tree->levels; i++) {
        const struct tree_group *group = &tree->groups[i];
        long long own = limit_of(tree, i), used = group->usage - group->cache;
        if (tree->damage == TREE_USAGE_GONE)
            used = 0;
        if (!own)
            continue;
        any = true;
        limit = least(limit, own);
        leaves = least(leaves, own > used ? own - used : 0);
    }
    out->limit = settle(tree, any, limit, doubt);
    out->limit_available = settle(tree, any, leaves, doubt);
}

/* What a kernel that does not estimate leaves to its readers; in bytes. */
static long long estimate(const struct tree *tree)
{
    long long low = 67584 * 1280LL, file = tree->file_kb * 1024, slab = tree->slab_kb * 1024;
    long long free = tree->free_kb * 1024 - low;
    return (free > 0 ? free : 0) + file - least(file / 2, low) + slab - least(slab / 2, low);
}

static struct tree_fact least_fact(struct tree_fact a, struct tree_fact b)
{
    if (a.state != TNI_FACT_KNOWN)
        return b.state == TNI_FACT_UNLIMITED ? a : b;
    return b.state == TNI_FACT_KNOWN && b.value < a.value ? b : a;
}

static void know_memory(const struct tree *tree, struct tree_truth *out)
{
    bool told =
        has_proc(tree) && tree->damage != TREE_MEMINFO_GONE && tree->damage != TREE_MEMINFO_EMPTY;
    know_limits(tree, out);
    out->system_total = out->system_available = without(TNI_FACT_UNKNOWN);
    if (told) {
        out->system_total = known(tree->total_kb * 1024);
        out->system_available =
            known(tree->old_kernel ? estimate(tree) : tree->available_kb * 1024);
    }
    out->total = least_fact(out->system_total, out->limit);
    out->available = least_fact(out->system_available, out->limit_available);
    if (out->available.state == TNI_FACT_KNOWN)
        out->available = least_fact(out->available, out->total);
}

/* How many different values of a field the online processors have, and of how many at most. */
static int different(const struct tree *tree, size_t offset, int *out_most)
{
    int counts[TREE_CPUS] = {0}, number = 0;
    for (int i = 0; i < tree->cpu_count; i++) {
        if (tree->cpus[i].online)
            counts[*(const int *)(const void *)((const char *)&tree->cpus[i] + offset)]++;
    }
    *out_most = 0;
    for (int i = 0; i < TREE_CPUS; i++) {
        number += counts[i] > 0;
        *out_most = counts[i] > *out_most ? counts[i] : *out_most;
    }
    return number;
}

/* The first processor's siblings may tell what it does not. */
static bool cores_are_told(const struct tree *tree)
{
    if (has_sys(tree) && tree->damage != TREE_SIBLINGS_GONE)
        return true;
    if (has_proc(tree) && !tree->arm)
        return true;
    for (int i = 1; i < tree->cpu_count && has_sys(tree); i++) {
        if (tree->cpus[i].online && tree->cpus[i].core == tree->cpus[0].core)
            return true;
    }
    return false;
}

static bool kinds_are_told(const struct tree *tree)
{
    bool parts = tree->arm && has_proc(tree);
    switch (tree->kinds) {
    case TREE_INTEL:
    case TREE_FREQUENCY: return has_sys(tree);
    case TREE_CAPACITY: return has_sys(tree) || parts;
    case TREE_PARTS: return parts;
    default: return parts || (has_sys(tree) && !tree->arm && tree->spread);
    }
}

static void know_topology(const struct tree *tree, struct tree_truth *out)
{
    struct tree_fact unknown = without(TNI_FACT_UNKNOWN);
    int most, unused;
    bool by_proc = !tree->arm && has_proc(tree);
    int cores = different(tree, offsetof(struct tree_cpu, core), &most);
    int packages = different(tree, offsetof(struct tree_cpu, package), &unused);
    int dies = different(tree, offsetof(struct tree_cpu, die), &unused);
    int kinds = different(tree, offsetof(struct tree_cpu, kind), &unused);
    out->cores = cores_are_told(tree) ? known(cores) : unknown;
    out->threads_per_core = cores_are_told(tree) ? known(most) : unknown;
    out->packages = has_sys(tree) || by_proc ? known(packages) : unknown;
    out->dies = has_sys(tree) && !tree->old_kernel ? known(dies) : out->packages;
    out->nodes = has_sys(tree) && tree->node_count ? known(tree->node_count) : unknown;
    out->classes = kinds_are_told(tree) ? known(kinds) : unknown;
}

void tree_know(const struct tree *tree, struct tree_truth *out)
{
    *out = (struct tree_truth){0};
    know_budget(tree, out);
    know_memory(tree, out);
    know_topology(tree, out);
}
