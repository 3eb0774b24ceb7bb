/* The machine as programs and modules see it: facts held against trees of which the truth is known,
 * against hand-made machines, and against the system's own tools. */
#include "fault/fault.h"
#include "machine_trees.h"

#include "base/alloc.h"
#include "device/host/host.h"
#include "os/cpu.h"

static char scratch[SCRATCH_PATH];
static char root[SCRATCH_PATH + 16];

static void begin(void)
{
    static int number;
    snprintf(root, sizeof root, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(root, 0755), 0);
}

static tn_machine *snapshot(const char *below, const char *affinity)
{
    tni_machine_query query = {.root = below, .affinity = affinity};
    tn_machine *machine = NULL;
    tn_error err = {0};
    if (tni_machine_snapshot(&query, &machine, &err))
        fail_msg("%s", err.message);
    return machine;
}

static int wrong; /* in the tree at hand */

static void expect(const char *what, const tn_fact *found, struct tree_fact truth)
{
    int known = truth.state == TNI_FACT_KNOWN;
    bool ended = memchr(found->origin, '\0', sizeof found->origin) != NULL;
    if (found->known == known && found->value == (known ? truth.value : 0) && ended &&
        found->origin[0] && found->reserved == 0)
        return;
    print_message("  %s: known %d, %lld (%s), expected %d, %lld\n", what, (int)found->known,
                  (long long)found->value, found->origin, known, truth.value);
    wrong++;
}

static void check_lists(const struct tree *tree, const tn_machine *machine)
{
    for (size_t i = 0; i < tn_machine_node_count(machine); i++) {
        const tn_machine_node *node = tn_machine_node_get(machine, i);
        int count = 0;
        for (int j = 0; j < tree->cpu_count; j++)
            count += tree->cpus[j].online && tree->cpus[j].node == (int)i;
        assert_int_equal(node->number, tree->node_ids[i]);
        assert_int_equal(node->cpu_count, count);
        assert_int_equal(node->cpus[0] != '\0', count > 0);
        assert_int_equal(node->total.value, tree->node_kb[i] * 1024);
        assert_int_equal(node->free.value, tree->node_kb[i] / 3 * 1024);
        assert_int_equal(node->struct_size, sizeof *node);
    }
    for (size_t i = 0; i < tn_machine_class_count(machine); i++) {
        assert_true(tn_machine_class_get(machine, i)->cpu_count > 0);
        assert_true(tn_machine_class_get(machine, i)->cpus[0]);
        assert_true(tn_machine_class_get(machine, i)->name[0]);
    }
}

static void check_limits(const tn_machine *machine, const struct tree_truth *truth)
{
    int least = 0;
    assert_int_equal(tn_machine_limit_count(machine), TNI_LIMIT_COUNT);
    for (size_t i = 0; i < TNI_LIMIT_COUNT; i++) {
        const tn_machine_limit *limit = tn_machine_limit_get(machine, i);
        assert_string_equal(limit->name, tni_limit_name((int32_t)i));
        if (i == TNI_LIMIT_REQUEST)
            assert_string_equal(limit->state, "unlimited");
        else
            assert_string_equal(limit->state, tni_fact_word(truth->limits[i].state));
        assert_int_equal(limit->value, truth->limits[i].value);
        assert_true(limit->origin[0]);
        least += limit->least;
        if (limit->least)
            assert_int_equal(limit->value, tn_machine_facts_get(machine)->threads);
    }
    assert_int_equal(least, 1);
}

static void check_tree(unsigned seed)
{
    static struct tree tree;
    struct tree_truth truth;
    begin();
    tree_draw(&tree, seed);
    tree.request = 0;
    tree_know(&tree, &truth);
    tree_write(&tree, root);
    tn_machine *machine = snapshot(root, tree.affinity);
    const tn_machine_facts *facts = tn_machine_facts_get(machine);
    expect("packages", &facts->packages, truth.packages);
    expect("cores", &facts->cores, truth.cores);
    expect("hardware_threads", &facts->hardware_threads, truth.limits[TNI_LIMIT_ONLINE]);
    expect("nodes", &facts->nodes, truth.nodes);
    expect("memory_total", &facts->memory_total, truth.total);
    expect("memory_available", &facts->memory_available, truth.available);
    expect("memory_in_use", &facts->memory_in_use, (struct tree_fact){TNI_FACT_UNKNOWN, 0});
    if (wrong)
        fail_msg("tree %u is shown wrongly", seed);
    assert_int_equal(facts->threads, truth.threads);
    assert_int_equal(tn_machine_node_count(machine), truth.nodes.value);
    assert_int_equal(tn_machine_class_count(machine), truth.classes.value);
    check_limits(machine, &truth);
    check_lists(&tree, machine);
    tn_machine_release(machine);
    scratch_remove(root);
}

static void generated_trees_are_shown(void **state)
{
    unsigned count = test_reduced() ? 17 : 68;
    (void)state;
    for (unsigned seed = 0; seed < count; seed++) {
        if (tree_sampled(seed, count))
            check_tree(seed);
    }
}

/* Four cores, two of them twice as fast, on two nodes of which one has no processor. */
static void write_hybrid(void)
{
    static const struct {
        const char *path, *text;
    } entries[] = {
        {"/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"},
        {"/proc/self/statm", "4000 1234 800 5 0 123 0\n"},
        {"/proc/sys/kernel/arch", "fake64\n"},
        {"/proc/cpuinfo", "processor : 0\nmodel name : A Fake\n\n"},
        {"/etc/machine-id", "0123456789abcdef0123456789abcdef\n"},
        {"/sys/devices/system/cpu/online", "0-3\n"},
        {"/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "2000000\n"},
        {"/sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4000000\n"},
        {"/sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq", "2000000\n"},
        {"/sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq", "4100000\n"},
        {"/sys/devices/system/cpu/cpu0/cache/index0/level", "2\n"},
        {"/sys/devices/system/cpu/cpu0/cache/index0/type", "Unified\n"},
        {"/sys/devices/system/cpu/cpu0/cache/index0/size", "512K\n"},
        {"/sys/devices/system/cpu/cpu1/cache/index0/level", "2\n"},
        {"/sys/devices/system/cpu/cpu1/cache/index0/type", "Unified\n"},
        {"/sys/devices/system/cpu/cpu1/cache/index0/size", "2048K\n"},
        {"/sys/devices/system/cpu/cpu2/cache/index0/level", "2\n"},
        {"/sys/devices/system/cpu/cpu2/cache/index0/type", "Instruction\n"},
        {"/sys/devices/system/cpu/cpu2/cache/index0/size", "4096K\n"},
        {"/sys/devices/system/cpu/cpu3/cache/index0/level", "2\n"},
        {"/sys/devices/system/cpu/cpu3/cache/index0/type", "Unified\n"},
        {"/sys/devices/system/cpu/cpu3/cache/index0/size", "1024K\n"},
        {"/sys/devices/system/node/online", "0,4\n"},
        {"/sys/devices/system/node/node0/cpulist", "0-3\n"},
        {"/sys/devices/system/node/node0/meminfo",
         "Node 0 MemTotal: 524288 kB\nNode 0 MemFree: 1024 kB\n"},
        {"/sys/devices/system/node/node4/cpulist", "\n"},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        tree_put(root, entries[i].path, "%s", entries[i].text);
}

static void assert_fact(const tn_fact *fact, int64_t value, const char *origin)
{
    assert_contains(fact->origin, origin);
    assert_int_equal(fact->known, value >= 0);
    assert_int_equal(fact->value, value >= 0 ? value : 0);
}

static void facts_of_a_hybrid(void **state)
{
    char features[512];
    (void)state;
    begin();
    write_hybrid();
    tn_machine *machine = snapshot(root, "1,3");
    const tn_machine_facts *facts = tn_machine_facts_get(machine);
    assert_int_equal(facts->struct_size, sizeof *facts);
    assert_string_equal(facts->model, "A Fake");
    assert_string_equal(facts->architecture, "fake64");
    assert_string_equal(facts->uuid_source, "/etc/machine-id");
    assert_int_equal(strlen(facts->uuid), 36);
    assert_string_equal(facts->hypervisor, "");
    assert_int_equal(facts->threads, 2);
    assert_fact(&facts->max_khz, 4100000, "cpuinfo_max_freq");
    assert_fact(&facts->l2_cache, 2048 << 10, "/sys/devices/system/cpu/cpu*/cache");
    assert_fact(&facts->l3_cache, -1, "no size for the level 3 cache");
    assert_fact(&facts->cores, -1, "missing for 4 online processors");
    assert_fact(&facts->memory_in_use, 1234 * sysconf(_SC_PAGESIZE), "/proc/self/statm");
    (void)tni_cpu_features_write(tni_cpu_features(), features, sizeof features);
    assert_string_equal(facts->features, features);
    tn_machine_release(machine);
    scratch_remove(root);
}

static void lists_of_a_hybrid(void **state)
{
    (void)state;
    begin();
    write_hybrid();
    tn_machine *machine = snapshot(root, "1,3");
    assert_int_equal(tn_machine_class_count(machine), 2);
    const tn_machine_class *fast = tn_machine_class_get(machine, 0);
    assert_string_equal(fast->cpus, "1,3");
    assert_int_equal(fast->cpu_count, 2);
    assert_int_equal(fast->max_khz, 4100000);
    assert_contains(fast->name, "up to 4100 MHz");
    assert_string_equal(tn_machine_class_get(machine, 1)->cpus, "0,2");
    assert_int_equal(tn_machine_node_count(machine), 2);
    const tn_machine_node *near = tn_machine_node_get(machine, 0);
    assert_string_equal(near->cpus, "0-3");
    assert_fact(&near->total, 512 << 20, "node0/meminfo MemTotal");
    assert_fact(&near->free, 1 << 20, "MemFree");
    const tn_machine_node *far = tn_machine_node_get(machine, 1);
    assert_string_equal(far->cpus, "");
    assert_int_equal(far->number, 4);
    assert_fact(&far->total, -1, "node4/meminfo");
    const tn_machine_limit *affinity = tn_machine_limit_get(machine, TNI_LIMIT_AFFINITY);
    assert_string_equal(affinity->name, "affinity");
    assert_int_equal(affinity->value, 2);
    assert_int_equal(affinity->least, 1);
    assert_int_equal(tn_machine_limit_get(machine, TNI_LIMIT_ONLINE)->least, 0);
    assert_int_equal(tn_machine_note_count(machine), 0);
    tn_machine_release(machine);
    scratch_remove(root);
}

static void what_is_not_there_is_nothing(void **state)
{
    (void)state;
    tn_machine *machine = snapshot(NULL, NULL);
    assert_null(tn_machine_limit_get(machine, tn_machine_limit_count(machine)));
    assert_null(tn_machine_node_get(machine, tn_machine_node_count(machine)));
    assert_null(tn_machine_class_get(machine, tn_machine_class_count(machine)));
    assert_null(tn_machine_note_get(machine, tn_machine_note_count(machine)));
    tn_machine_release(machine);
    tn_machine_release(NULL);
    assert_null(tn_machine_facts_get(NULL));
    assert_int_equal(tn_machine_limit_count(NULL) + tn_machine_node_count(NULL) +
                         tn_machine_class_count(NULL) + tn_machine_note_count(NULL),
                     0);
    assert_null(tn_machine_limit_get(NULL, 0));
    assert_null(tn_machine_node_get(NULL, 0));
    assert_null(tn_machine_class_get(NULL, 0));
    assert_null(tn_machine_note_get(NULL, 0));
}

static void notes_are_shown(void **state)
{
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "zero\n");
    tn_machine *machine = snapshot(root, "0");
    assert_int_equal(tn_machine_note_count(machine), 1);
    assert_contains(tn_machine_note_get(machine, 0),
                    "cpu/online: expected a list such as 0-3,8, got \"zero\"");
    assert_string_equal(tn_machine_limit_get(machine, TNI_LIMIT_ONLINE)->state, "unknown");
    tn_machine_release(machine);
    scratch_remove(root);
}

static void resident_memory_of_all_sorts(void **state)
{
    static const struct {
        const char *text, *origin;
        int64_t pages;
    } rows[] = {
        {"10 3 1 1 0 1 0\n", "/proc/self/statm, resident pages", 3},
        {"10 3", "/proc/self/statm, resident pages", 3},
        {"10\n",
         "/proc/self/statm: expected the number of resident pages as the second one, got \"10\"",
         -1},
        {"", "/proc/self/statm: expected the number of resident pages as the second one, got \"\"",
         -1},
        {"10 many\n", "got \"10 many\"", -1},
        {"10 -3\n", "got \"10 -3\"", -1},
        {"10 9223372036854775807\n", "got \"10 9223372036854775807\"", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        tree_put(root, "/proc/self/statm", "%s", rows[i].text);
        tn_machine *machine = snapshot(root, "0");
        assert_fact(&tn_machine_facts_get(machine)->memory_in_use,
                    rows[i].pages < 0 ? -1 : rows[i].pages * sysconf(_SC_PAGESIZE), rows[i].origin);
        assert_int_equal(tn_machine_note_count(machine), rows[i].pages < 0);
        tn_machine_release(machine);
        scratch_remove(root);
    }
}

/* What a caller of another time knows is filled, and nothing beyond. */
static void sizes_of_other_times_are_kept_to(void **state)
{
    union {
        tn_machine_facts facts;
        unsigned char bytes[sizeof(tn_machine_facts) + 64];
    } to;
    tni_machine_query query = {.parts = TNI_MACHINE_ALL};
    tni_machine *machine;
    tn_error err;
    (void)state;
    assert_int_equal(tni_machine_read(&query, &machine, &err), TN_OK);
    memset(&to, 0xEE, sizeof to);
    to.facts.struct_size = TN_UP_TO(tn_machine_facts, threads);
    tni_machine_facts_fill(machine, &to.facts);
    assert_int_equal(to.facts.struct_size, TN_UP_TO(tn_machine_facts, threads));
    assert_int_equal(to.facts.threads, machine->budget.threads);
    for (size_t i = TN_UP_TO(tn_machine_facts, threads); i < sizeof to; i++)
        assert_int_equal(to.bytes[i], 0xEE);
    to.facts.struct_size = sizeof to;
    tni_machine_facts_fill(machine, &to.facts);
    assert_int_equal(to.facts.struct_size, sizeof to.facts);
    assert_int_equal(to.facts.memory_in_use.known,
                     machine->memory.resident.state == TNI_FACT_KNOWN);
    assert_int_equal(to.facts.reserved, 0);
    for (size_t i = sizeof to.facts; i < sizeof to; i++)
        assert_int_equal(to.bytes[i], 0xEE);
    tni_machine_release(machine);
}

static void facts_need_a_size(void **state)
{
    tn_machine_facts facts = {.struct_size = sizeof(size_t), .threads = 77};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tni_machine_facts_read(&facts, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size: expected at least");
    assert_int_equal(facts.threads, 77);
    facts.struct_size = sizeof facts;
    assert_int_equal(tni_machine_facts_read(&facts, &err), TN_OK);
    assert_true(facts.threads >= 1);
}

/* A limit on instructions is one on what modules are told. */
static void hidden_features_are_not_lent(void **state)
{
    tn_machine_facts facts = {.struct_size = sizeof facts};
    tn_error err;
    (void)state;
    tni_cpu_mask_set(0);
    assert_int_equal(tni_machine_facts_read(&facts, &err), TN_OK);
    assert_string_equal(facts.features, "");
    tni_cpu_mask_set(UINT64_MAX);
}

static void every_allocation_may_fail(void **state)
{
    bool fired = true;
    (void)state;
    begin();
    write_hybrid();
    tni_machine_query query = {.root = root, .affinity = "0"};
    for (long n = 1; fired; n++) {
        tn_machine *machine = NULL;
        tn_error err = {0};
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tni_machine_snapshot(&query, &machine, &err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        assert_true(fired == !machine);
        if (fired)
            assert_contains(err.message, "no memory for");
        tn_machine_release(machine);
        assert_int_equal(fault_left(before, "snapshot", n), 0);
    }
    scratch_remove(root);
}

/* The machine itself. */

/* What a command prints on its first line as a number; the test is skipped when it cannot run. */
static long long number_from(const char *command)
{
    char line[256] = "", *end;
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    bool read = fgets(line, sizeof line, pipe) != NULL;
    int status = pclose(pipe);
    long long number = strtoll(line, &end, 10);
    if (status != 0 || !read || end == line)
        skip_because("\"%s\" gives no number here", command);
    return number;
}

static void threads_are_those_of_nproc(void **state)
{
    long long count = number_from("env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null");
    (void)state;
    tn_machine *machine = snapshot(NULL, NULL);
    if (count != tn_machine_limit_get(machine, TNI_LIMIT_AFFINITY)->value)
        assert_int_equal(count, tn_machine_facts_get(machine)->threads);
    tn_machine_release(machine);
}

static void counts_are_those_of_lscpu(void **state)
{
#define COUNT(column) \
    number_from("lscpu -p=" column " 2>/dev/null | grep -v '^#' | sort -u | grep -c .")
    long long threads = COUNT("CPU"), cores = COUNT("CORE"), sockets = COUNT("SOCKET");
    (void)state;
    tn_machine *machine = snapshot(NULL, NULL);
    const tn_machine_facts *facts = tn_machine_facts_get(machine);
    assert_int_equal(facts->hardware_threads.value, threads);
    if (facts->cores.known)
        assert_int_equal(facts->cores.value, cores);
    if (facts->packages.known)
        assert_int_equal(facts->packages.value, sockets);
    tn_machine_release(machine);
#undef COUNT
}

static void assert_near(long long value, long long other, long long tolerance)
{
    if (value > other + tolerance || value < other - tolerance)
        fail_msg("%lld and %lld are not near each other", value, other);
}

/* A limit may lie below what free knows; and memory moves while it is looked at. */
static void memory_is_that_of_free(void **state)
{
    long long total = number_from("LC_ALL=C free -b 2>/dev/null | awk '/^Mem:/ {print $2}'");
    long long available = number_from("LC_ALL=C free -b 2>/dev/null | awk '/^Mem:/ {print $7}'");
    (void)state;
    tn_machine *machine = snapshot(NULL, NULL);
    const tn_machine_facts *facts = tn_machine_facts_get(machine);
    bool limited = strstr(facts->memory_total.origin, "cgroup") != NULL;
    assert_true(facts->memory_total.known && facts->memory_available.known);
    assert_true(facts->memory_available.value <= facts->memory_total.value);
    if (limited)
        assert_true(facts->memory_total.value <= total);
    else
        assert_near(facts->memory_total.value, total, total / 8);
    if (!strstr(facts->memory_available.origin, "cgroup"))
        assert_near(facts->memory_available.value, available, total / 4);
    tn_machine_release(machine);
}

/* What the process holds grows by what it fills. */
static void resident_memory_follows(void **state)
{
    enum { SIZE = 64 << 20 };
    tn_machine_facts before = {.struct_size = sizeof before}, after = before;
    tn_error err;
    (void)state;
    assert_int_equal(tni_machine_facts_read(&before, &err), TN_OK);
    if (!before.memory_in_use.known)
        skip_because("%s", before.memory_in_use.origin);
    char *memory = tni_alloc(SIZE);
    assert_non_null(memory);
    memset(memory, 0x5A, SIZE);
    assert_int_equal(tni_machine_facts_read(&after, &err), TN_OK);
    assert_int_equal(memory[SIZE - 1], 0x5A);
    tni_release(memory);
    assert_true(before.memory_in_use.value > 0);
    assert_true(after.memory_in_use.value >= before.memory_in_use.value + SIZE / 4 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_trees_are_shown),
        cmocka_unit_test(facts_of_a_hybrid),
        cmocka_unit_test(lists_of_a_hybrid),
        cmocka_unit_test(what_is_not_there_is_nothing),
        cmocka_unit_test(notes_are_shown),
        cmocka_unit_test(resident_memory_of_all_sorts),
        cmocka_unit_test(sizes_of_other_times_are_kept_to),
        cmocka_unit_test(facts_need_a_size),
        cmocka_unit_test(hidden_features_are_not_lent),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(threads_are_those_of_nproc),
        cmocka_unit_test(counts_are_those_of_lscpu),
        cmocka_unit_test(memory_is_that_of_free),
        cmocka_unit_test(resident_memory_follows),
    };
    tree_scratch_make(scratch);
    fault_memory_install();
    int failed = run_suite("unit.host_machine", tests);
    scratch_remove(scratch);
    return failed;
}
