/* How hwloc tells of a machine: the one at hand, held against the basic reading and hwloc's own
 * tools; machines that hwloc is shown instead; and what is said where hwloc is not to be had. */
#include "cpu_host.h"
#include "machine_trees.h"
#include "topology_shape.h"

#include <sched.h>

static tn_topology *collect(const tn_platform_row *row)
{
    tn_topology *topology = NULL;
    tn_error err = {0};
    if (tni_topology_collect(row, cpu_self, &topology, &err))
        fail_msg("%s", err.message);
    shape_check(topology);
    return topology;
}

static bool by_hwloc(const tn_topology *topology)
{
    return strncmp(tn_topology_source(topology), "hwloc 2.", 8) == 0;
}

/* Skips the test where hwloc does not tell. */
static tn_topology *collect_by_hwloc(void)
{
    tn_topology *topology = collect(cpu_row);
    if (!by_hwloc(topology)) {
        char source[512];
        snprintf(source, sizeof source, "%s", tn_topology_source(topology));
        tn_topology_release(topology);
        skip_because("%s", source);
    }
    return topology;
}

/* What may be above a thread, as type and level. */
static const int kinds[][2] = {
    {TN_TOPOLOGY_PACKAGE, 0}, {TN_TOPOLOGY_NODE, 0},  {TN_TOPOLOGY_CORE, 0},
    {TN_TOPOLOGY_CACHE, 1},   {TN_TOPOLOGY_CACHE, 2}, {TN_TOPOLOGY_CACHE, 3},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Two threads have an object above them in common in both readings or in neither. */
static void assert_together_alike(const tn_topology *a, const int x[2], const tn_topology *b,
                                  const int y[2])
{
    for (int i = 0; i < KINDS; i++) {
        int type = kinds[i][0], level = kinds[i][1];
        assert_int_equal(shape_above(a, x[0], type, level) == shape_above(a, x[1], type, level),
                         shape_above(b, y[0], type, level) == shape_above(b, y[1], type, level));
    }
}

/* What is above a thread has the same size in both readings, and a node the same number. */
static void assert_above_alike(const tn_topology *a, int x, const tn_topology *b, int y)
{
    for (int i = 0; i < KINDS; i++) {
        int above_x = shape_above(a, x, kinds[i][0], kinds[i][1]);
        int above_y = shape_above(b, y, kinds[i][0], kinds[i][1]);
        assert_int_equal(above_x >= 0, above_y >= 0);
        if (above_x < 0)
            continue;
        assert_int_equal(shape_get(a, above_x)->bytes, shape_get(b, above_y)->bytes);
        if (kinds[i][0] == TN_TOPOLOGY_NODE)
            assert_int_equal(shape_get(a, above_x)->number, shape_get(b, above_y)->number);
    }
}

static void assert_alike(const tn_topology *a, const tn_topology *b)
{
    int x[2], y[2] = {-1, -1}, count = (int)tn_topology_count(a);
    for (int i = 0; i < KINDS; i++)
        assert_int_equal(shape_count(a, kinds[i][0], kinds[i][1]),
                         shape_count(b, kinds[i][0], kinds[i][1]));
    assert_int_equal(shape_count(a, TN_TOPOLOGY_THREAD, 0), shape_count(b, TN_TOPOLOGY_THREAD, 0));
    for (x[0] = 0; x[0] < count; x[0]++) {
        if (shape_get(a, x[0])->type != TN_TOPOLOGY_THREAD)
            continue;
        y[0] = shape_thread(b, shape_get(a, x[0])->number);
        assert_true(y[0] >= 0);
        assert_above_alike(a, x[0], b, y[0]);
        for (x[1] = 0; x[1] < x[0]; x[1]++) {
            if (shape_get(a, x[1])->type != TN_TOPOLOGY_THREAD)
                continue;
            y[1] = shape_thread(b, shape_get(a, x[1])->number);
            assert_together_alike(a, x, b, y);
        }
    }
}

static void assert_same_usable(const tn_topology *a, const tn_topology *b)
{
    for (int i = 0; i < (int)tn_topology_count(a); i++) {
        const tn_topology_object *thread = shape_get(a, i);
        if (thread->type == TN_TOPOLOGY_THREAD)
            assert_int_equal(shape_get(b, shape_thread(b, thread->number))->usable, thread->usable);
    }
}

static void agrees_with_the_basic_reading(void **state)
{
    (void)state;
    tn_topology *hwloc = collect_by_hwloc(), *basic = collect(NULL);
    print_message("%s: %s\n", tn_topology_source(hwloc), shape_write(hwloc));
    assert_alike(hwloc, basic);
    assert_same_usable(hwloc, basic);
    assert_int_equal(shape_count(hwloc, TN_TOPOLOGY_DIE, 0),
                     shape_count(basic, TN_TOPOLOGY_DIE, 0));
    tn_topology_release(basic);
    tn_topology_release(hwloc);
}

/* What hwloc-calc counts; the test is skipped when it cannot. */
static int counted(const char *kind)
{
    char command[128], line[64] = "", *end;
    snprintf(command, sizeof command, "hwloc-calc --disallowed -N %s all 2>/dev/null", kind);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    bool read = fgets(line, sizeof line, pipe) != NULL;
    int status = pclose(pipe);
    long count = strtol(line, &end, 10);
    if (status != 0 || !read || end == line)
        skip_because("\"%s\" gives no number here", command);
    return (int)count;
}

static void counts_are_those_of_hwloc_calc(void **state)
{
    (void)state;
    int threads = counted("pu"), cores = counted("core"), packages = counted("package");
    int nodes = counted("numanode"), second = counted("l2cache"), third = counted("l3cache");
    tn_topology *topology = collect_by_hwloc();
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_THREAD, 0), threads);
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_CORE, 0), cores);
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_PACKAGE, 0), packages);
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_NODE, 0), nodes);
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_CACHE, 2), second);
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_CACHE, 3), third);
    tn_topology_release(topology);
}

/* Only what the calling thread is bound to is usable; and it stays bound so. */
static void affinity_decides_and_stays(void **state)
{
    cpu_set_t all, one, after;
    size_t cpu = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    tn_topology *told = collect(cpu_row), *basic = collect(NULL);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_true(CPU_EQUAL(&one, &after));
    for (int i = 0; i < (int)tn_topology_count(told); i++) {
        const tn_topology_object *object = shape_get(told, i);
        assert_int_equal(object->usable,
                         object->type == TN_TOPOLOGY_THREAD && object->number == (int)cpu);
    }
    assert_same_usable(told, basic);
    tn_topology_release(basic);
    tn_topology_release(told);
}

static void prints_nothing(void **state)
{
    char text[256] = "";
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    (void)state;
    assert_true(file && before >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    tn_topology *topology = collect(cpu_row);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t length = pread(fileno(file), text, sizeof text - 1, 0);
    assert_int_equal(fclose(file) | close(before), 0);
    tn_topology_release(topology);
    if (length != 0)
        fail_msg("it printed \"%s\"", text);
}

/* The library is sought when a topology is asked for, and not before. */
static void opens_on_need(void **state)
{
    tn_device_properties properties = {.struct_size = sizeof properties};
    tn_device_memory memory = {.struct_size = sizeof memory};
    tn_error err;
    (void)state;
    cpu_host_binds = 0;
    (void)cpu_host_begin();
    assert_int_equal(cpu_row->device_properties(cpu_self, 0, &properties, &err), TN_OK);
    assert_int_equal(cpu_row->device_memory(cpu_self, 0, &memory, &err), TN_OK);
    assert_int_equal(cpu_host_binds, 0);
    tn_topology *topology = collect_by_hwloc();
    assert_int_equal(cpu_host_binds, 1);
    tn_topology_release(topology);
}

static void assert_basic_because(const char *why)
{
    tn_topology *topology = collect(cpu_row), *basic = collect(NULL);
    assert_contains(tn_topology_source(topology), "a basic reading of the system: ");
    assert_contains(tn_topology_source(topology), why);
    assert_string_equal(shape_write(topology), shape_write(basic));
    tn_topology_release(basic);
    tn_topology_release(topology);
}

#if defined(TENON_HAVE_HWLOC)

static void absent_libraries_are_said(void **state)
{
    static const tn_status statuses[] = {TN_UNAVAILABLE, TN_INCOMPATIBLE};
    tn_topology *topology = NULL;
    tn_error err = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        cpu_host_bind_fails = statuses[i];
        assert_basic_because("libhwloc.so.15 is made to fail");
    }
    cpu_host_bind_fails = TN_OUT_OF_MEMORY;
    assert_int_equal(tni_topology_collect(cpu_row, cpu_self, &topology, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "libhwloc.so.15 is made to fail");
    cpu_host_bind_fails = TN_OK;
    assert_null(topology);
}

/* hwloc would print where /sys tells no topology. */
static void is_not_asked_without_sys(void **state)
{
    tn_machine_facts facts = {.struct_size = sizeof facts,
                              .cores = tn_fact_of(4, "/proc/cpuinfo physical id, core id")};
    tn_topology *topology = NULL;
    tn_error err = {0};
    (void)state;
    cpu_host_binds = 0;
    cpu_host_machine_is = &facts;
    assert_basic_because("hwloc needs files below /sys that this system does not have");
    facts.cores = tn_fact_unknown("/sys/devices/system/cpu: missing for 2 online processors");
    assert_basic_because("hwloc needs files below /sys that this system does not have");
    assert_int_equal(cpu_host_binds, 0);
    cpu_host_machine_is = NULL;
    cpu_host_machine_fails = TN_OUT_OF_MEMORY;
    assert_int_equal(tni_topology_collect(cpu_row, cpu_self, &topology, &err), TN_OUT_OF_MEMORY);
    cpu_host_machine_fails = TN_OK;
}

/* A sink that fails ends the walk, whatever the sink's failure is. */
struct sink {
    int left;
    int after; /* calls after the failure */
    bool at_source;
};

static tn_status failing_add(void *self, const tn_topology_object *object, tn_error *err)
{
    struct sink *sink = self;
    (void)object;
    if (sink->left-- > 0 || sink->at_source)
        return TN_OK;
    sink->after += sink->left < -1;
    return tn_fail(err, TN_CANCELLED, 0, "sink", "no more of this");
}

static tn_status failing_source(void *self, const char *text, tn_error *err)
{
    struct sink *sink = self;
    (void)text;
    sink->after += !sink->at_source;
    return tn_fail(err, TN_CANCELLED, 0, "sink", "no more of this");
}

static void failing_sinks_are_heeded(void **state)
{
    tn_topology_sink to = {sizeof to, NULL, failing_add, failing_source};
    (void)state;
    tn_topology_release(collect_by_hwloc());
    for (int left = 0; left <= 2; left++) {
        struct sink sink = {.left = left, .at_source = left == 2};
        tn_error err = {0};
        to.self = &sink;
        assert_int_equal(cpu_row->topology(cpu_self, &to, &err), TN_CANCELLED);
        assert_string_equal(err.message, "no more of this");
        assert_int_equal(sink.after, 0);
    }
}

/* Machines that hwloc is shown. */

static void show(const char *variable, const char *value)
{
    assert_int_equal(setenv(variable, value, 1), 0);
}

static void show_nothing(void)
{
    static const char *const variables[] = {"HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_THISSYSTEM",
                                            "HWLOC_HIDE_ERRORS"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(unsetenv(variables[i]), 0);
}

static void other_machines_need_a_voucher(void **state)
{
    (void)state;
    tn_topology_release(collect_by_hwloc());
    show("HWLOC_SYNTHETIC", "core:3 pu:1");
    assert_basic_because("a variable HWLOC_... gives hwloc another machine than this");
    show("HWLOC_THISSYSTEM", "1");
    tn_topology *topology = collect_by_hwloc();
    show_nothing();
    assert_int_equal(shape_count(topology, TN_TOPOLOGY_CORE, 0), 3);
    tn_topology_release(topology);
}

static void synthetic_machines_are_told(void **state)
{
    static const struct {
        const char *synthetic, *shape;
    } rows[] = {
        {"core:2 pu:2", "machine(node 0(core 0(thread 0thread 1)core 1(thread 2thread 3)))"},
        {"pack:2 [numa] l3:1 l2:1 l1d:1 l1i:1 core:1 pu:1",
         "machine(package 0(node 0(L3(L2(L1(core 0(thread 0))))))"
         "package 1(node 1(L3(L2(L1(core 1(thread 1)))))))"},
        {"group:2 [numa] pack:2 core:1 pu:1",
         "machine(node 0(package 0(core 0(thread 0))package 1(core 1(thread 1)))"
         "node 1(package 2(core 2(thread 2))package 3(core 3(thread 3))))"},
        {"pack:1 [numa] [numa] core:2 pu:1",
         "machine(package 0(node 0(core 0(thread 0)core 1(thread 1))node 1))"},
        {"pack:2 die:2 core:1 pu:1",
         "machine(node 0(package 0(die 0(core 0(thread 0))die 1(core 1(thread 1)))"
         "package 1(die 2(core 2(thread 2))die 3(core 3(thread 3)))))"},
        {"pack:2 die:1 core:1 pu:1",
         "machine(node 0(package 0(core 0(thread 0))package 1(core 1(thread 1))))"},
        {"pu:3", "machine(node 0(thread 0thread 1thread 2))"},
    };
    (void)state;
    tn_topology_release(collect_by_hwloc());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        show("HWLOC_SYNTHETIC", rows[i].synthetic);
        show("HWLOC_THISSYSTEM", "1");
        tn_topology *topology = collect_by_hwloc();
        show_nothing();
        assert_string_equal(shape_write(topology), rows[i].shape);
        tn_topology_release(topology);
    }
}

/* The generated trees have lists; hwloc reads masks. */

static void put_mask(const struct tree *tree, const char *root, const char *path, size_t offset,
                     int value)
{
    char text[160] = "";
    uint32_t words[16] = {0};
    for (int i = 0; i < tree->cpu_count; i++) {
        const char *cpu = (const char *)&tree->cpus[i];
        int id = tree->cpus[i].id;
        assert_true(id < 512);
        if (tree->cpus[i].online && *(const int *)(const void *)(cpu + offset) == value)
            words[id / 32] |= UINT32_C(1) << id % 32;
    }
    for (int i = 15; i >= 0; i--) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%08x%s", (unsigned)words[i], i ? "," : "");
    }
    tree_put(root, path, "%s\n", text);
}

static void put_masks_of(const struct tree *tree, const char *root, const struct tree_cpu *cpu)
{
    const struct {
        const char *name;
        size_t offset;
        int value;
    } masks[] = {
        {"topology/core_cpus", offsetof(struct tree_cpu, core), cpu->core},
        {"topology/die_cpus", offsetof(struct tree_cpu, die), cpu->die},
        {"topology/package_cpus", offsetof(struct tree_cpu, package), cpu->package},
        {"cache/index0/shared_cpu_map", offsetof(struct tree_cpu, core), cpu->core},
        {"cache/index1/shared_cpu_map", offsetof(struct tree_cpu, core), cpu->core},
        {"cache/index2/shared_cpu_map", offsetof(struct tree_cpu, core), cpu->core},
        {"cache/index3/shared_cpu_map", offsetof(struct tree_cpu, die), cpu->die},
    };
    char path[128];
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        bool told = i < 3 ? i != 1 || !tree->old_kernel : tree_has_caches(tree);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu->id, masks[i].name);
        if (told)
            put_mask(tree, root, path, masks[i].offset, masks[i].value);
    }
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu->id);
    tree_put(root, path, "%d\n", cpu->core);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
             cpu->id);
    tree_put(root, path, "%d\n", cpu->package);
}

static void put_masks(const struct tree *tree, const char *root)
{
    char path[128];
    for (int i = 0; i < tree->cpu_count; i++) {
        if (tree->cpus[i].online)
            put_masks_of(tree, root, &tree->cpus[i]);
    }
    for (int i = 0; i < tree->node_count; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpumap", tree->node_ids[i]);
        put_mask(tree, root, path, offsetof(struct tree_cpu, node), i);
    }
}

static tn_topology *basic_of(const char *root, const char *affinity)
{
    tni_machine_query query = {
        .root = root, .affinity = affinity, .parts = TNI_MACHINE_BUDGET | TNI_MACHINE_TOPOLOGY};
    tni_machine *machine = NULL;
    tn_topology *topology = NULL;
    tn_error err;
    assert_int_equal(tni_machine_read(&query, &machine, &err), TN_OK);
    assert_int_equal(tni_topology_basic(machine, "a test", &topology, &err), TN_OK);
    tni_machine_release(machine);
    return topology;
}

/* How many cores both readings know to be of a slower kind; they agree on all that both know. */
static int slower_cores(const tn_topology *a, const tn_topology *b)
{
    int count = 0;
    for (int i = 0; i < (int)tn_topology_count(a); i++) {
        if (shape_get(a, i)->type != TN_TOPOLOGY_THREAD)
            continue;
        int x = shape_above(a, i, TN_TOPOLOGY_CORE, 0);
        int y = shape_above(b, shape_thread(b, shape_get(a, i)->number), TN_TOPOLOGY_CORE, 0);
        int of_x = shape_get(a, x)->speed_class, of_y = shape_get(b, y)->speed_class;
        if (of_x >= 0 && of_y >= 0)
            assert_int_equal(of_x, of_y);
        count += of_x > 0 && of_y > 0;
    }
    return count;
}

/* Where the numbers of processors have gaps, hwloc's word on kinds of cores is not taken. */
static bool kinds_are_withheld(const tn_topology *topology)
{
    int last = -1, threads = 0, classes = 0;
    for (int i = 0; i < (int)tn_topology_count(topology); i++) {
        const tn_topology_object *object = shape_get(topology, i);
        if (object->type == TN_TOPOLOGY_THREAD && object->number > last)
            last = object->number;
        threads += object->type == TN_TOPOLOGY_THREAD;
        classes += object->type == TN_TOPOLOGY_CORE && object->speed_class >= 0;
    }
    if (last + 1 == threads)
        return false;
    assert_int_equal(classes, 0);
    return true;
}

/* In all but dies of one core, which hwloc does not tell, and the place of nodes without
 * processors. */
static void trees_are_read_alike(void **state)
{
    static struct tree tree;
    char scratch[SCRATCH_PATH], root[SCRATCH_PATH + 16];
    int nodes = 0, slower = 0, withheld = 0, count = test_reduced() ? 32 : 136;
    (void)state;
    tn_topology_release(collect_by_hwloc());
    tree_scratch_make(scratch);
    for (unsigned seed = 0; seed < (unsigned)count; seed++) {
        tree_draw(&tree, seed);
        if (tree.damage != TREE_SOUND || !tree_sampled(seed, (unsigned)count))
            continue;
        snprintf(root, sizeof root, "%s/%u", scratch, seed);
        assert_int_equal(mkdir(root, 0755), 0);
        tree_write(&tree, root);
        put_masks(&tree, root);
        tn_topology *basic = basic_of(root, NULL);
        show("HWLOC_FSROOT", root);
        show("HWLOC_HIDE_ERRORS", "2"); /* that the nodes of a tree are parts of two packages */
        show("HWLOC_THISSYSTEM", "1");
        tn_topology *hwloc = collect_by_hwloc();
        show_nothing();
        if (tree.node_count)
            assert_alike(hwloc, basic);
        if (tree.kinds != TREE_FREQUENCY) /* hwloc takes every frequency for a kind */
            slower += slower_cores(hwloc, basic);
        withheld += kinds_are_withheld(hwloc);
        nodes += tree.node_count >= 10;
        tn_topology_release(hwloc);
        tn_topology_release(basic);
        scratch_remove(root);
    }
    scratch_remove(scratch);
    if (test_full()) { /* in other runs it is a matter of the sample */
        assert_true(slower > 0 && withheld > 0);
        assert_true(nodes > 0 || test_reduced());
    }
}

#else

static void builds_without_the_header_say_so(void **state)
{
    (void)state;
    assert_basic_because("this build has no header of hwloc 2.5 or later: install libhwloc-dev");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_basic_reading),
        cmocka_unit_test(counts_are_those_of_hwloc_calc),
        cmocka_unit_test(affinity_decides_and_stays),
        cmocka_unit_test(prints_nothing),
        cmocka_unit_test(opens_on_need),
#if defined(TENON_HAVE_HWLOC)
        cmocka_unit_test(absent_libraries_are_said),
        cmocka_unit_test(is_not_asked_without_sys),
        cmocka_unit_test(failing_sinks_are_heeded),
        cmocka_unit_test(other_machines_need_a_voucher),
        cmocka_unit_test(synthetic_machines_are_told),
        cmocka_unit_test(trees_are_read_alike),
#else
        cmocka_unit_test(builds_without_the_header_say_so),
#endif
    };
    (void)cpu_host_begin();
    return run_suite("unit.topology_hwloc", tests);
}
