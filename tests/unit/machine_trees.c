#include "machine_trees.h"

#include <errno.h>
#include <fcntl.h>

void tree_scratch_make(char out[SCRATCH_PATH])
{
    if (access("/dev/shm", W_OK | X_OK) == 0)
        assert_int_equal(setenv("TMPDIR", "/dev/shm", 1), 0);
    scratch_make(out);
}

/* Makes the folders above `path` that are missing. */
static void make_folders(char *path)
{
    char *end = strrchr(path, '/');
    if (!end || end == path)
        return;
    *end = '\0';
    if (mkdir(path, 0755) != 0 && errno == ENOENT) {
        make_folders(path);
        if (mkdir(path, 0755) != 0)
            fail_msg("no folder %s", path);
    }
    *end = '/';
}

static FILE *create(const char *root, const char *path)
{
    char whole[SCRATCH_PATH * 2];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "w");
    if (!file) {
        make_folders(whole);
        file = fopen(whole, "w");
    }
    if (!file)
        fail_msg("no file %s", whole);
    return file;
}

void tree_put(const char *root, const char *path, const char *format, ...)
{
    va_list arguments;
    FILE *file = create(root, path);
    va_start(arguments, format);
    assert_true(vfprintf(file, format, arguments) >= 0);
    va_end(arguments);
    assert_int_equal(fclose(file), 0);
}

void tree_put_huge(const char *root, const char *path, long size)
{
    FILE *file = create(root, path);
    assert_int_equal(ftruncate(fileno(file), size), 0);
    assert_int_equal(fclose(file), 0);
}

void tree_put_unreadable(const char *root, const char *path)
{
    char whole[SCRATCH_PATH * 2];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    make_folders(whole);
    assert_int_equal(mkdir(whole, 0755), 0);
}

/* SplitMix64: the same trees everywhere. */
static unsigned draw(uint64_t *state, unsigned below)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (unsigned)((z ^ (z >> 31)) % below);
}

static int threads_of(const struct tree *tree, int core_kind)
{
    return tree->kinds == TREE_INTEL && core_kind == 1 ? 1 : tree->threads;
}

/* The last third of a package's cores are of the lesser kind. */
static int kind_of(const struct tree *tree, int core_in_package)
{
    int of_package = tree->dies * tree->cores;
    return tree->kinds != TREE_ALIKE && of_package > 1 &&
           core_in_package >= of_package - (of_package + 2) / 3;
}

/* Threads of a core are numbered one after the other or, spread, after all first threads. */
static void draw_cpus(struct tree *tree, uint64_t *state)
{
    int per_package = tree->dies * tree->cores, total = tree->packages * per_package, next = 0;
    int gap = draw(state, 4) == 0 ? 1 + (int)draw(state, 70) : 0;
    for (int pass = 0; pass < (tree->spread ? tree->threads : 1); pass++) {
        for (int core = 0; core < total; core++) {
            int kind = kind_of(tree, core % per_package);
            int first = tree->spread ? pass : 0;
            int last = tree->spread ? pass : tree->threads - 1;
            for (int thread = first; thread <= last && thread < threads_of(tree, kind); thread++) {
                tree->cpus[next] = (struct tree_cpu){.id = next + (next > 2 ? gap : 0),
                                                     .package = core / per_package,
                                                     .die = core / tree->cores,
                                                     .core = core,
                                                     .node = -1,
                                                     .kind = kind,
                                                     .online = true};
                next++;
            }
        }
    }
    tree->cpu_count = next;
    for (int i = 1; i < next && tree->seed % 3 == 1; i++)
        tree->cpus[i].online = draw(state, 4) != 0;
}

/* Numbers with holes; the last node may have no processors, the one before it no memory. */
static void draw_nodes(struct tree *tree, uint64_t *state)
{
    int total = tree->packages * tree->dies * tree->cores;
    int with_cpus = tree->seed % 8 == 5 ? (total < 14 ? total : 14) : tree->packages;
    int stride = 1 + (int)draw(state, 3);
    tree->node_count = tree->seed % 16 == 9 ? 0 : with_cpus + (int)draw(state, 3);
    for (int i = 0; i < tree->node_count; i++) {
        tree->node_ids[i] = i * stride + (i > 1);
        tree->node_kb[i] = i == 1 ? 0 : 1024 * (1 + (long long)draw(state, 1 << 20));
    }
    for (int i = 0; i < tree->cpu_count && tree->node_count; i++)
        tree->cpus[i].node = tree->cpus[i].core * with_cpus / total;
}

static void draw_memory(struct tree *tree, uint64_t *state)
{
    tree->total_kb = (1 << 20) + (long long)draw(state, 1u << 28);
    tree->free_kb = tree->total_kb / (2 + (int)draw(state, 8));
    tree->file_kb = tree->total_kb / (4 + (int)draw(state, 8));
    tree->slab_kb = tree->total_kb / (20 + (int)draw(state, 80));
    tree->available_kb = tree->free_kb + tree->file_kb / 2;
}

static long long draw_limit(uint64_t *state)
{
    unsigned kind = draw(state, 4);
    return kind == 0   ? TREE_ABSENT
           : kind == 1 ? TREE_NONE
                       : (64LL << 20) + (long long)draw(state, 1u << 31) * 3;
}

static void draw_groups(struct tree *tree, uint64_t *state)
{
    static const long long quotas[][2] = {
        {TREE_ABSENT, 100000}, {TREE_NONE, 100000}, {50000, 100000},  {150000, 100000},
        {225000, 100000},      {33333, 100000},     {800000, 100000}, {25000, 10000},
        {1500, 1000},          {1000000, 1000000}};
    tree->levels = tree->place == TREE_NAMESPACE || tree->place == TREE_ABOVE
                       ? 1
                       : 1 + (int)draw(state, TREE_LEVELS);
    for (int i = 0; i < tree->levels; i++) {
        struct tree_group *group = &tree->groups[i];
        unsigned kind = draw(state, sizeof quotas / sizeof quotas[0]);
        group->quota = quotas[kind][0];
        group->period = quotas[kind][1];
        group->max = draw_limit(state);
        group->high = draw_limit(state);
        group->usage = (long long)draw(state, 1u << 31);
        group->cache = group->usage / (1 + (int)draw(state, 5));
    }
    /* The root of all groups has no limits. */
    if (tree->place == TREE_HOST)
        tree->groups[tree->levels - 1] =
            (struct tree_group){TREE_ABSENT, 0, TREE_ABSENT, TREE_ABSENT, 0, 0};
    if (tree->place == TREE_NAMESPACE && draw(state, 2))
        tree->hidden_limit = 32LL << 20;
    tree->cpuset_level = (int)draw(state, (unsigned)tree->levels + 1) - 1;
}

/* Some of the online ones, and at least one. */
static void draw_members(const struct tree *tree, uint64_t *state, bool all, bool out[TREE_CPUS])
{
    unsigned keep = 1 + draw(state, 3);
    for (int i = 0; i < tree->cpu_count; i++)
        out[i] = tree->cpus[i].online && (i == 0 || all || draw(state, 4) < keep);
}

static bool has_affinity(const struct tree *tree, int index, int unused)
{
    (void)unused;
    return tree->in_affinity[index];
}

void tree_draw(struct tree *tree, unsigned seed)
{
    static const char *const mounts_v1[] = {"/sys/fs/cgroup", "/run/my groups\tv1"};
    static const char *const mounts_v2[] = {"/sys/fs/cgroup/unified", "/run/v\\2 groups"};
    uint64_t state = seed * UINT64_C(0x2545F4914F6CDD1D) + 1;
    *tree = (struct tree){.seed = seed};
    tree->kinds = (enum tree_kinds)(seed % TREE_KINDS);
    tree->arm = tree->kinds == TREE_PARTS || tree->kinds == TREE_CAPACITY || draw(&state, 4) == 0;
    if (tree->kinds == TREE_INTEL || tree->kinds == TREE_FREQUENCY)
        tree->arm = false;
    tree->layout = (enum tree_layout)(seed / 2 % TREE_LAYOUTS);
    tree->place = (enum tree_place)(seed / 8 % TREE_PLACES);
    tree->damage = seed % 2 ? (enum tree_damage)(seed / 2 % TREE_DAMAGES) : TREE_SOUND;
    tree->old_kernel = draw(&state, 4) == 0;
    tree->spread = draw(&state, 2);
    tree->packages = 1 + (int)draw(&state, 3);
    tree->dies = 1 + (int)draw(&state, 2);
    tree->cores = 1 + (int)draw(&state, 6);
    tree->threads = tree->arm ? 1 : 1 + (int)draw(&state, 2);
    draw_cpus(tree, &state);
    draw_nodes(tree, &state);
    draw_memory(tree, &state);
    draw_groups(tree, &state);
    draw_members(tree, &state, false, tree->in_cpuset);
    draw_members(tree, &state, draw(&state, 2), tree->in_affinity);
    tree->request = draw(&state, 3) ? 0 : 1 + (int)draw(&state, 16);
    unsigned odd = draw(&state, 4) == 0;
    tree->mount_v1 = mounts_v1[odd];
    tree->mount_v2 = tree->layout == TREE_V2 && !odd ? mounts_v1[0] : mounts_v2[odd];
    tree_list(tree, has_affinity, 0, tree->affinity);
}

bool tree_sampled(unsigned seed, unsigned all)
{
    unsigned start = (unsigned)(test_seed() % all);
    return test_full() || (seed + all - start) % all < TREE_ROUND;
}

bool tree_is_online(const struct tree *tree, int index, int unused)
{
    (void)unused;
    return tree->cpus[index].online;
}

static bool has_number(const struct tree *tree, int id,
                       bool (*in)(const struct tree *tree, int index, int value), int value)
{
    for (int i = 0; i < tree->cpu_count; i++) {
        if (tree->cpus[i].id == id)
            return in(tree, i, value);
    }
    return false;
}

void tree_list(const struct tree *tree, bool (*in)(const struct tree *tree, int index, int value),
               int value, char out[TREE_LIST])
{
    size_t length = 0;
    out[0] = '\0';
    for (int id = 0; id < TREE_CPUS * 2; id++) {
        int last = id;
        if (!has_number(tree, id, in, value))
            continue;
        while (has_number(tree, last + 1, in, value))
            last++;
        length += (size_t)snprintf(out + length, TREE_LIST - length, last > id ? "%s%d-%d" : "%s%d",
                                   length ? "," : "", id, last);
        id = last;
    }
}
