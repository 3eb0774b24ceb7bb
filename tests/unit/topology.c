/* How a machine is built, by a basic reading of the system: held against trees of which the truth
 * is known. What platforms tell is in topology_told.c, what hwloc tells in topology_hwloc.c. */
#include "fault/fault.h"
#include "machine_trees.h"
#include "topology_shape.h"

#include "base/alloc.h"

static char scratch[SCRATCH_PATH];
static char root[SCRATCH_PATH + 16];

static void begin(void)
{
    static int number;
    snprintf(root, sizeof root, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(root, 0755), 0);
}

static tni_machine *read_machine(const char *affinity)
{
    tni_machine_query query = {
        .root = root, .affinity = affinity, .parts = TNI_MACHINE_BUDGET | TNI_MACHINE_TOPOLOGY};
    tni_machine *machine = NULL;
    tn_error err = {0};
    if (tni_machine_read(&query, &machine, &err))
        fail_msg("%s", err.message);
    return machine;
}

static tn_topology *basic(const tni_machine *machine)
{
    tn_topology *topology = NULL;
    tn_error err = {0};
    if (tni_topology_basic(machine, "a test", &topology, &err))
        fail_msg("%s", err.message);
    assert_string_equal(tn_topology_source(topology), "a basic reading of the system: a test");
    shape_check(topology);
    return topology;
}

/* Trees: every online processor is a thread in its place. */

static int wrong; /* in the tree at hand */

#define EXPECT(condition)                        \
    do {                                         \
        if (!(condition)) {                      \
            print_message("  %s\n", #condition); \
            wrong++;                             \
        }                                        \
    } while (0)

struct view {
    const struct tree *tree;
    const struct tree_truth *truth;
    const tni_machine *machine;
    const tn_topology *topology;
    bool numbered; /* the system tells nodes and caches: there is /sys */
    bool nested;   /* no node has a part of a die or package and something else */
    int thread[TREE_CPUS];
};

static int members(const struct tree *tree, size_t offset, int value, const bool *of)
{
    int count = 0;
    for (int i = 0; i < tree->cpu_count; i++) {
        const char *cpu = (const char *)&tree->cpus[i];
        count += tree->cpus[i].online && (!of || of[i]) &&
                 *(const int *)(const void *)(cpu + offset) == value;
    }
    return count;
}

/* Whether sets of processors with one value of two fields are apart or within each other. */
static bool fields_nest(const struct tree *tree, size_t a, size_t b)
{
    for (int i = 0; i < tree->cpu_count; i++) {
        bool in_a[TREE_CPUS];
        int va = *(const int *)(const void *)((const char *)&tree->cpus[i] + a);
        int vb = *(const int *)(const void *)((const char *)&tree->cpus[i] + b);
        for (int j = 0; j < tree->cpu_count; j++)
            in_a[j] = *(const int *)(const void *)((const char *)&tree->cpus[j] + a) == va;
        int both = members(tree, b, vb, in_a);
        if (tree->cpus[i].online && both < members(tree, a, va, NULL) &&
            both < members(tree, b, vb, NULL))
            return false;
    }
    return true;
}

static void find_threads(struct view *view)
{
    const struct tree *tree = view->tree;
    int found = 0;
    for (int i = 0; i < tree->cpu_count; i++) {
        view->thread[i] = shape_thread(view->topology, tree->cpus[i].id);
        EXPECT((view->thread[i] >= 0) == (tree->cpus[i].online && view->truth->has_numbers));
        found += view->thread[i] >= 0;
    }
    EXPECT(shape_count(view->topology, TN_TOPOLOGY_THREAD, 0) == found);
}

/* Two threads are below the same object of a kind if and only if the tree has them together. */
static void check_together(const struct view *view, int type, int level, size_t offset)
{
    for (int i = 0; i < view->tree->cpu_count; i++) {
        for (int j = 0; j <= i; j++) {
            if (view->thread[i] < 0 || view->thread[j] < 0)
                continue;
            int a = shape_above(view->topology, view->thread[i], type, level);
            int b = shape_above(view->topology, view->thread[j], type, level);
            int x = *(const int *)(const void *)((const char *)&view->tree->cpus[i] + offset);
            int y = *(const int *)(const void *)((const char *)&view->tree->cpus[j] + offset);
            EXPECT(a >= 0 && (a == b) == (x == y));
        }
    }
}

/* A die is told apart where it is not all of its package. */
static void check_dies(const struct view *view)
{
    const struct tree *tree = view->tree;
    bool told = view->truth->dies.value > view->truth->packages.value;
    for (int i = 0; i < tree->cpu_count; i++) {
        if (view->thread[i] < 0)
            continue;
        int die = members(tree, offsetof(struct tree_cpu, die), tree->cpus[i].die, NULL);
        int package =
            members(tree, offsetof(struct tree_cpu, package), tree->cpus[i].package, NULL);
        int above = shape_above(view->topology, view->thread[i], TN_TOPOLOGY_DIE, 0);
        EXPECT((above >= 0) == (told && die < package));
    }
}

static void check_nodes(const struct view *view)
{
    const struct tree *tree = view->tree;
    EXPECT(shape_count(view->topology, TN_TOPOLOGY_NODE, 0) == view->truth->nodes.value);
    for (int i = 0; i < tree->cpu_count && view->truth->nodes.value; i++) {
        if (view->thread[i] < 0)
            continue;
        int node = shape_above(view->topology, view->thread[i], TN_TOPOLOGY_NODE, 0);
        const tn_topology_object *object = node < 0 ? NULL : shape_get(view->topology, node);
        EXPECT(object && object->number == tree->node_ids[tree->cpus[i].node]);
        EXPECT(object && object->bytes == tree->node_kb[tree->cpus[i].node] * 1024);
    }
}

/* Of parts with the same processors, the first cache is around the core and within the second. */
static void check_order(const struct view *view)
{
    const tn_topology *topology = view->topology;
    for (int i = 0; i < view->tree->cpu_count; i++) {
        if (view->thread[i] < 0)
            continue;
        int core = shape_above(topology, view->thread[i], TN_TOPOLOGY_CORE, 0);
        int first = shape_above(topology, core, TN_TOPOLOGY_CACHE, 1);
        EXPECT(core >= 0 && first == shape_get(topology, core)->parent);
        EXPECT(first >= 0 && shape_above(topology, first, TN_TOPOLOGY_CACHE, 2) >= 0);
    }
}

static void check_caches(const struct view *view)
{
    static const int64_t kb[] = {0, 48, 2048, 16384};
    size_t core = offsetof(struct tree_cpu, core), die = offsetof(struct tree_cpu, die);
    for (int level = 1; level <= 2 + view->nested; level++) {
        check_together(view, TN_TOPOLOGY_CACHE, level, level == 3 ? die : core);
        for (int i = 0; i < view->tree->cpu_count && view->tree->damage == TREE_SOUND; i++) {
            if (view->thread[i] < 0)
                continue;
            int at = shape_above(view->topology, view->thread[i], TN_TOPOLOGY_CACHE, level);
            bool half = level == 2 && view->tree->cpus[i].kind;
            EXPECT(at >= 0 &&
                   shape_get(view->topology, at)->bytes == kb[level] * 1024 / (1 + half));
        }
    }
    check_order(view);
    EXPECT(shape_count(view->topology, TN_TOPOLOGY_CACHE, 4) == 0);
    EXPECT(shape_count(view->topology, TN_TOPOLOGY_CACHE, 1) == view->truth->cores.value);
}

/* Parts of Arm's tell kinds apart, but not which is faster. */
static void check_speed(const struct view *view)
{
    const struct tree *tree = view->tree;
    const tni_machine_topology *found = &view->machine->topology;
    bool parts = tree->kinds == TREE_PARTS || (tree->kinds == TREE_CAPACITY && !view->numbered);
    EXPECT(found->classes_by_speed ==
           (found->class_count > 0 && !(parts && found->class_count > 1)));
    for (int i = 0; i < tree->cpu_count; i++) {
        if (view->thread[i] < 0 || view->truth->cores.state != TNI_FACT_KNOWN)
            continue;
        int core = shape_above(view->topology, view->thread[i], TN_TOPOLOGY_CORE, 0);
        int wanted = !found->classes_by_speed  ? -1
                     : found->class_count == 1 ? 0
                                               : tree->cpus[i].kind;
        EXPECT(core >= 0 && shape_get(view->topology, core)->speed_class == wanted);
    }
}

static void check_usable(const struct view *view)
{
    const struct tree *tree = view->tree;
    bool set = tree_shows_groups(tree) && tree->cpuset_level >= 0;
    for (int i = 0; i < tree->cpu_count; i++) {
        if (view->thread[i] >= 0)
            EXPECT(shape_get(view->topology, view->thread[i])->usable ==
                   (tree->in_affinity[i] && (!set || tree->in_cpuset[i])));
    }
}

static void check_view(struct view *view)
{
    const struct tree_truth *truth = view->truth;
    find_threads(view);
    check_usable(view);
    check_speed(view);
    if (truth->cores.state == TNI_FACT_KNOWN) {
        check_together(view, TN_TOPOLOGY_CORE, 0, offsetof(struct tree_cpu, core));
        EXPECT(shape_count(view->topology, TN_TOPOLOGY_CORE, 0) == truth->cores.value);
    }
    if (truth->packages.state == TNI_FACT_KNOWN)
        EXPECT(shape_count(view->topology, TN_TOPOLOGY_PACKAGE, 0) == truth->packages.value);
    if (!view->numbered)
        EXPECT(shape_count(view->topology, TN_TOPOLOGY_CACHE, -1) == 0);
    else if (tree_has_caches(view->tree) && truth->cores.state == TNI_FACT_KNOWN)
        check_caches(view);
    if (!view->nested)
        return;
    check_nodes(view);
    if (truth->packages.state == TNI_FACT_KNOWN) {
        check_together(view, TN_TOPOLOGY_PACKAGE, 0, offsetof(struct tree_cpu, package));
        check_dies(view);
    }
}

/* Writes the tree, reads it and checks what was read. */
static void check_tree(struct view *view)
{
    const struct tree *tree = view->tree;
    begin();
    tree_write(tree, root);
    tni_machine *machine = read_machine(tree->affinity);
    tn_topology *topology = basic(machine);
    view->machine = machine;
    view->topology = topology;
    check_view(view);
    if (wrong)
        fail_msg("tree %u (damage %d, kinds %d) is built wrongly", tree->seed, tree->damage,
                 tree->kinds);
    tn_topology_release(topology);
    tni_machine_release(machine);
    scratch_remove(root);
}

/* All trees together have every kind of part, be they of this run or not. */
static void trees_are_built(void **state)
{
    static struct tree tree;
    static struct tree_truth truth;
    size_t node = offsetof(struct tree_cpu, node);
    unsigned count = test_reduced() ? 68 : 102;
    int nodes = 0, hybrids = 0, offline = 0, without_sys = 0, dies = 0;
    (void)state;
    for (unsigned seed = 0; seed < count; seed++) {
        tree_draw(&tree, seed);
        tree_know(&tree, &truth);
        struct view view = {.tree = &tree,
                            .truth = &truth,
                            .numbered = tree.damage != TREE_NO_SYS && tree.damage != TREE_NOTHING,
                            .nested =
                                fields_nest(&tree, node, offsetof(struct tree_cpu, package)) &&
                                fields_nest(&tree, node, offsetof(struct tree_cpu, die))};
        if (tree_sampled(seed, count))
            check_tree(&view);
        nodes += view.nested && truth.nodes.value >= 10;
        hybrids += truth.classes.value > 1 && truth.cores.state == TNI_FACT_KNOWN;
        offline += truth.limits[TNI_LIMIT_ONLINE].value < tree.cpu_count;
        without_sys += !view.numbered;
        dies += view.nested && truth.dies.value > truth.packages.value;
    }
    assert_true(nodes >= 2 && hybrids >= 8 && offline >= 16 && without_sys >= 4 && dies >= 8);
}

/* Machines made by hand. */

static void put_lists(int cpu, const char *core, const char *package)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu);
    tree_put(root, path, "%s\n", core);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/package_cpus_list", cpu);
    tree_put(root, path, "%s\n", package);
}

/* A node of memory alone hangs on the machine; one of two packages holds them. */
static void nodes_of_all_sorts(void **state)
{
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "0-3\n");
    put_lists(0, "0", "0");
    put_lists(1, "1", "1");
    put_lists(2, "2", "2-3");
    put_lists(3, "3", "2-3");
    tree_put(root, "/sys/devices/system/node/online", "0,2,5\n");
    tree_put(root, "/sys/devices/system/node/node0/cpulist", "0-1\n");
    tree_put(root, "/sys/devices/system/node/node2/cpulist", "\n");
    tree_put(root, "/sys/devices/system/node/node5/cpulist", "2-3\n");
    tree_put(root, "/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal: 4 kB\n");
    tni_machine *machine = read_machine("0-3");
    tn_topology *topology = basic(machine);
    assert_string_equal(shape_write(topology), "machine(node 0(package(core(thread 0))"
                                               "package(core(thread 1)))"
                                               "package(node 5(core(thread 2)core(thread 3)))"
                                               "node 2)");
    assert_int_equal(shape_get(topology, (int)tn_topology_count(topology) - 1)->bytes, 4096);
    tn_topology_release(topology);
    tni_machine_release(machine);
}

static void put_cache(int cpu, int index, int level, const char *shared)
{
    char path[128];
    int length =
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu, index);
    snprintf(path + length, sizeof path - (size_t)length, "level");
    tree_put(root, path, "%d\n", level);
    snprintf(path + length, sizeof path - (size_t)length, "type");
    tree_put(root, path, "Unified\n");
    snprintf(path + length, sizeof path - (size_t)length, "shared_cpu_list");
    tree_put(root, path, "%s\n", shared);
}

/* Interleaved numbers, a cache of parts of two packages, which cannot be, one that offline
 * processors share, and one of a level that no cache has. */
static void caches_of_all_sorts(void **state)
{
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "0-3\n");
    tree_put(root, "/sys/devices/system/cpu/present", "0-5\n");
    put_lists(0, "0,2", "0,2");
    put_lists(1, "1,3", "1,3");
    put_cache(0, 0, 2, "0,2,4");
    put_cache(1, 0, 2, "1-2");
    put_cache(3, 0, 99, "3");
    put_cache(0, 1, 4, "0-5");
    tni_machine *machine = read_machine("2");
    tn_topology *topology = basic(machine);
    assert_string_equal(shape_write(topology), "machine(L4(package(L2(core(thread 0thread 2)))"
                                               "package(core(thread 1thread 3))))");
    tn_topology_release(topology);
    tni_machine_release(machine);
}

static void nothing_is_known(void **state)
{
    (void)state;
    begin();
    tni_machine *machine = read_machine("0-3");
    tn_topology *topology = basic(machine);
    assert_string_equal(shape_write(topology), "machine");
    assert_int_equal(tn_topology_get(topology, 0)->parent, -1);
    assert_null(tn_topology_get(topology, 1));
    tn_topology_release(topology);
    tni_machine_release(machine);
    tree_put(root, "/sys/devices/system/node/online", "1\n");
    machine = read_machine("0-3");
    topology = basic(machine);
    assert_string_equal(shape_write(topology), "machine(node 1)");
    tn_topology_release(topology);
    tni_machine_release(machine);
}

/* Of one tree, whichever allocation of the basic reading fails. */
static void fail_each_allocation(unsigned seed)
{
    static struct tree tree;
    bool fired = true;
    begin();
    tree_draw(&tree, seed);
    tree_write(&tree, root);
    tni_machine *machine = read_machine(tree.affinity);
    for (long n = 1; fired; n++) {
        tn_topology *topology = NULL;
        tn_error err = {0};
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tni_topology_basic(machine, "a test", &topology, &err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        assert_true(fired == !topology);
        if (fired)
            assert_contains(err.message, "no memory for");
        tn_topology_release(topology);
        assert_int_equal(fault_left(before, "basic", n), 0);
    }
    tni_machine_release(machine);
    scratch_remove(root);
}

/* Trees of many sizes, so that lists grow among parts of every type. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 64; seed += 2) {
        if (test_sampled(seed, 4))
            fail_each_allocation(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_built),           cmocka_unit_test(nodes_of_all_sorts),
        cmocka_unit_test(caches_of_all_sorts),       cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(every_allocation_may_fail),
    };
    tree_scratch_make(scratch);
    fault_memory_install();
    int failed = run_suite("unit.topology", tests);
    scratch_remove(scratch);
    return failed;
}
