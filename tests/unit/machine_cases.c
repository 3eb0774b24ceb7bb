/* Old kernels, odd processors, files that lie: what is to be said of memory, topology and identity. */
#include "machine_cases.h"

static void offline_processors_do_not_count(void **state)
{
    static const struct entry entries[] = {{"/sys/devices/system/cpu/online", "0-2,5\n"},
                                           {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_known(*limit(TNI_LIMIT_AFFINITY), 4, "0-7, minus the offline ones");
    end();
    begin_with(entries, "6-7");
    assert_state(*limit(TNI_LIMIT_AFFINITY), TNI_FACT_MALFORMED, "6-7, minus the offline ones");
    assert_budget(4, TNI_LIMIT_ONLINE);
    end();
}

/* A kernel of long ago, and sizes that no machine has. */
static void memory_of_all_sorts(void **state)
{
    static const struct entry old[] = {
        {"/proc/meminfo",
         "MemTotal: 1048576 kB\nMemFree: 102400 kB\nBuffers: 4 kB\nCached: 5 kB\n"
         "Active(file): 204800 kB\nInactive(file): 204800 kB\nSReclaimable: 1024 kB\n"},
        {"/proc/sys/vm/min_free_kbytes", "4096\n"},
        {NULL, NULL}};
    static const struct entry older[] = {
        {"/proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 102400 kB\n"}, {NULL, NULL}};
    static const struct entry more[] = {
        {"/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 2097152 kB\n"}, {NULL, NULL}};
    static const struct entry absurd[] = {
        {"/proc/meminfo", "MemTotal: 99999999999999999 kB\nMemAvailable: lots kB\n"
                          "MemFree: 9007199254740991 kB\nActive(file): 9007199254740991 kB\n"
                          "Inactive(file): 0 kB\n"},
        {NULL, NULL}};
    static const struct entry stat[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo", "1 0 0:9 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/memory.max", "1073741824\n"},
        {"/sys/fs/cgroup/memory.current", "268435456\n"},
        {"/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file -5\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(stat, NULL);
    assert_known(machine->memory.available, 768 * MiB, "an unknown part, counted as 0");
    assert_contains(machine->notes[0], "memory.stat: expected a number of bytes, got \"-5\"");
    end();
    begin_with(old, NULL);
    assert_known(machine->memory.available, (102400 - 5120 + 409600 - 5120 + 1024 - 512) * 1024,
                 "estimated");
    end();
    begin_with(older, NULL);
    assert_known(machine->memory.total, 1024 * MiB, "MemTotal");
    assert_state(machine->memory.available, TNI_FACT_UNKNOWN, "not in /proc");
    end();
    begin_with(more, NULL);
    assert_known(machine->memory.available, 1024 * MiB, "MemTotal");
    end();
    begin_with(absurd, NULL);
    assert_state(machine->memory.total, TNI_FACT_MALFORMED, "got \"99999999999999999 kB\"");
    assert_state(machine->memory.available, TNI_FACT_MALFORMED, "impossible sizes");
    assert_int_equal(machine->note_count, 2);
    end();
}

/* Lists that fit nothing are noted and used as far as they make sense. */
static void nodes_of_all_sorts(void **state)
{
    static const struct entry entries[] = {
        {"/sys/devices/system/cpu/online", "0-2\n"},
        {"/sys/devices/system/cpu/present", "0-3\n"},
        {"/sys/devices/system/node/online", "0,3\n"},
        {"/sys/devices/system/node/node0/cpulist", "0-1,3\n"},
        {"/sys/devices/system/node/node0/distance", "10 21 31\n"},
        {"/sys/devices/system/node/node3/cpulist", "2\n"},
        {"/sys/devices/system/node/node3/distance", "21 10\n"},
        {"/sys/devices/system/node/node3/meminfo", "Node 3 MemTotal: much kB\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, NULL);
    const tni_machine_topology *found = &machine->topology;
    assert_known(found->nodes_known, 2, "/sys/devices/system/node/online 0,3");
    assert_null(found->nodes[0].distances);
    assert_int_equal(found->nodes[1].distances[0], 21);
    assert_int_equal(found->cpu_count, 4);
    assert_int_equal(found->cpus[1].node, 0);
    assert_int_equal(found->cpus[2].node, 1);
    assert_int_equal(found->cpus[3].node, -1);
    assert_false(found->cpus[3].online);
    assert_state(found->nodes[0].total, TNI_FACT_UNKNOWN,
                 "/sys/devices/system/node/node0/meminfo: ");
    assert_state(found->nodes[1].total, TNI_FACT_MALFORMED, "got \"much kB\"");
    assert_state(found->nodes[1].free, TNI_FACT_UNKNOWN, "no line \"Node 3 MemFree\"");
    assert_int_equal(machine->note_count, 2);
    end();
}

/* What cannot be read is noted once, however often it is needed, and others are asked instead. */
static void unreadable_files_are_noted(void **state)
{
    (void)state;
    begin();
    tree_put_unreadable(root, "/sys/devices/system/cpu/online");
    tree_put(root, "/proc/cpuinfo", "nothing of use\n");
    read_all("0-2");
    assert_int_equal(machine->note_count, 2);
    assert_contains(machine->notes[0], "/sys/devices/system/cpu/online: ");
    assert_contains(machine->notes[1], "/proc/cpuinfo: expected a line that begins with processor, "
                                       "got \"nothing of use\"");
    assert_state(*limit(TNI_LIMIT_ONLINE), TNI_FACT_UNKNOWN, "not in /sys/devices");
    assert_budget(3, TNI_LIMIT_AFFINITY);
    end();
}

/* Lists of those that belong together must hold the one they are of. */
static void siblings_that_lie(void **state)
{
    static const struct entry entries[] = {
        {"/sys/devices/system/cpu/online", "0-1\n"},
        {"/sys/devices/system/cpu/present", "0-3\n"},
        {"/sys/devices/system/cpu/cpu0/topology/core_cpus_list", "1\n"},
        {"/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1\n"},
        {"/sys/devices/system/cpu/cpu0/topology/package_cpus_list", "0-1\n"},
        {"/proc/cpuinfo", "processor : 0\nphysical id : 4\ncore id : 0\n\n"
                          "processor : 1\nphysical id : 4\ncore id : 7\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, NULL);
    assert_known(machine->topology.cores, 2, "/proc/cpuinfo physical id, core id");
    assert_known(machine->topology.packages, 1, "/proc/cpuinfo");
    assert_int_equal(machine->note_count, 1);
    assert_contains(machine->notes[0], "cpu0/topology/core_cpus_list: expected a list with the "
                                       "processor itself, got \"1\"");
    end();
}

static void put_core(int cpu, const char *siblings)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu);
    tree_put(root, path, "%s\n", siblings);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/package_cpus_list", cpu);
    tree_put(root, path, "0-7\n");
}

/* Two cores of two threads, four of one, and a unit of counters for each kind. */
static void intel_hybrid(void **state)
{
    static const char *const siblings[] = {"0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"};
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "0-7\n");
    for (int i = 0; i < 8; i++)
        put_core(i, siblings[i]);
    tree_put(root, "/sys/devices/cpu_core/cpus", "0-3\n");
    tree_put(root, "/sys/devices/cpu_atom/cpus", "4-5\n");
    tree_put(root, "/sys/devices/cpu_lowpower/cpus", "6-7\n");
    read_all(NULL);
    const tni_machine_topology *found = &machine->topology;
    assert_known(found->cores, 6, "core_cpus_list");
    assert_known(found->threads_per_core, 2, "core_cpus_list");
    assert_known(found->classes_known, 3, "/sys/devices/cpu_core/cpus");
    assert_string_equal(found->classes[0].name, "performance");
    assert_string_equal(found->classes[1].name, "efficient");
    assert_string_equal(found->classes[2].name, "low-power");
    assert_int_equal(found->classes[0].cpus.count, 4);
    assert_int_equal(found->cpus[5].core_class, 1);
    assert_int_equal(found->cpus[7].core_class, 2);
    end();
}

/* Three kinds, of which the fastest is one core; capacity tells, and parts give the names. */
static void arm_with_three_kinds(void **state)
{
    static const int capacity[] = {250, 250, 250, 250, 620, 620, 620, 1024};
    static const int part[] = {0xd05, 0xd05, 0xd05, 0xd05, 0xd41, 0xd41, 0xd41, 0xfff};
    tni_buffer info = {0};
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "0-7\n");
    for (int i = 0; i < 8; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        tree_put(root, path, "%d\n", capacity[i]);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", i);
        tree_put(root, path, "%d\n", 2 * capacity[i] * 1000);
        tni_buffer_format(&info, "processor\t: %d\nCPU implementer\t: 0x41\nCPU part\t: 0x%x\n\n",
                          i, part[i]);
    }
    tree_put(root, "/proc/cpuinfo", "%s", tni_buffer_text(&info));
    tni_buffer_release(&info);
    read_all(NULL);
    const tni_machine_topology *found = &machine->topology;
    assert_known(found->classes_known, 3, "cpu_capacity");
    assert_string_equal(found->classes[0].name, "Arm implementer 0x41 part 0xfff");
    assert_string_equal(found->classes[1].name, "Cortex-A78");
    assert_string_equal(found->classes[2].name, "Cortex-A55");
    assert_int_equal(found->classes[1].capacity, 620);
    assert_int_equal(found->classes[1].max_khz, 1240000);
    assert_int_equal(found->cpus[7].core_class, 0);
    assert_string_equal(found->model.text,
                        "Cortex-A55 + Cortex-A78 + Arm implementer 0x41 part 0xfff");
    assert_state(found->cores, TNI_FACT_UNKNOWN, "missing for 8 online processors");
    end();
}

/* Before Linux 3.8 the core was named once, after all processors. */
static void arm_of_long_ago(void **state)
{
    static const struct entry entries[] = {
        {"/proc/cpuinfo",
         "Processor\t: ARMv7 Processor rev 4 (v7l)\nprocessor\t: 0\nBogoMIPS\t: 1\n\n"
         "processor\t: 1\nBogoMIPS\t: 1\n\nCPU implementer\t: 0x41\n"
         "CPU architecture: 7\nCPU part\t: 0xc0f\n"},
        {NULL, NULL}};
    (void)state;
    begin();
    write_entries(entries);
    read_all(NULL);
    assert_known(machine->topology.threads, 2, "/proc/cpuinfo, by its entries");
    assert_known(machine->topology.classes_known, 1, "CPU part");
    assert_string_equal(machine->topology.model.text, "Cortex-A15");
    assert_string_equal(machine->topology.classes[0].name, "Cortex-A15");
    assert_int_equal(machine->topology.classes[0].cpus.count, 2);
    end();
}

static void hypervisors_are_named(void **state)
{
    static const struct {
        const char *path, *text, *name;
    } rows[] = {
        {"/sys/hypervisor/type", "xen\n", "xen"},
        {"/sys/class/dmi/id/product_name", "VMware Virtual Platform\n", "vmware"},
        {"/sys/class/dmi/id/product_name", "Virtual Machine\n", "hyper-v"},
        {"/sys/class/dmi/id/sys_vendor", "QEMU\n", "qemu"},
        {"/sys/class/dmi/id/sys_vendor", "Dell Inc.\n", NULL},
        {"/proc/cpuinfo", "processor : 0\nflags : fpu hypervisor\n", "unnamed"},
        {"/proc/cpuinfo", "processor : 0\nflags : fpu\n", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        tree_put(root, rows[i].path, "%s", rows[i].text);
        read_all(NULL);
        const tni_fact_text *found = &machine->topology.hypervisor;
        if (rows[i].name)
            assert_string_equal(found->text, rows[i].name);
        else
            assert_null(found->text);
        assert_contains(found->origin, rows[i].name ? rows[i].path : "none detected");
        end();
    }
}

static void copy_uuid(const struct entry *entries, const char *source, char out[TNI_UUID_SIZE])
{
    begin();
    write_entries(entries);
    read_all(NULL);
    assert_contains(machine->identity.source, source);
    snprintf(out, TNI_UUID_SIZE, "%s", machine->identity.uuid);
    end();
}

/* The identity is a hash that anyone can make again, and stays when it should. */
static void identity_is_stable(void **state)
{
    static const struct entry id[] = {{"/etc/machine-id", "0123456789abcdef0123456789abcdef\n"},
                                      {NULL, NULL}};
    static const struct entry dbus[] = {
        {"/etc/machine-id", "uninitialized\n"},
        {"/var/lib/dbus/machine-id", "0123456789abcdef0123456789abcdef\n"},
        {NULL, NULL}};
    static const struct entry product[] = {
        {"/etc/machine-id", "\n"},
        {"/sys/class/dmi/id/product_uuid", "4C4C4544-0037-5210-804A-C3C04F333432\n"},
        {NULL, NULL}};
    static const struct entry lower[] = {
        {"/sys/class/dmi/id/product_uuid", "4c4c4544-0037-5210-804a-c3c04f333432\n"}, {NULL, NULL}};
    static const struct entry blank[] = {
        {"/sys/class/dmi/id/product_uuid", "00000000-0000-0000-0000-000000000000\n"}, {NULL, NULL}};
    static const struct entry looks[] = {
        {"/sys/class/dmi/id/product_uuid", "03000200-0400-0500-0006-000700080009\n"},
        {"/proc/cpuinfo", "processor : 0\nmodel name : Some CPU\n"},
        {NULL, NULL}};
    char a[TNI_UUID_SIZE], b[TNI_UUID_SIZE];
    (void)state;
    copy_uuid(id, "/etc/machine-id", a);
    assert_string_equal(a, "007ab745-09a1-8d4b-a7b6-88074076b3e5");
    copy_uuid(dbus, "/var/lib/dbus/machine-id", b);
    assert_string_equal(a, b);
    copy_uuid(product, "product_uuid", a);
    assert_string_equal(a, "2b0e996d-f6c6-80f0-b7dd-bd552a33f380");
    copy_uuid(lower, "product_uuid", b);
    assert_string_equal(a, b);
    copy_uuid(blank, "which are not unique", a);
    copy_uuid(looks, "model and number of processors", b);
    assert_string_not_equal(a, b);
    copy_uuid(looks, "model and number of processors", a);
    assert_string_equal(a, b);
}

/* Without topology asked for, identity brings it along only when it must. */
static void identity_brings_topology(void **state)
{
    tni_machine_query query = {.root = root, .parts = TNI_MACHINE_IDENTITY};
    (void)state;
    begin();
    assert_int_equal(tni_machine_read(&query, &machine, NULL), TN_OK);
    assert_int_equal(machine->parts, TNI_MACHINE_IDENTITY | TNI_MACHINE_TOPOLOGY);
    tni_machine_release(machine);
    tree_put(root, "/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    assert_int_equal(tni_machine_read(&query, &machine, NULL), TN_OK);
    assert_int_equal(machine->parts, TNI_MACHINE_IDENTITY);
    end();
}

/* Any number of malformed files leaves a bounded number of notes, of one line of text each. */
static void notes_are_bounded(void **state)
{
    (void)state;
    begin();
    tree_put(root, "/sys/devices/system/cpu/online", "0-39\n");
    for (int i = 0; i < 40; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index0/level", i);
        tree_put(root, path, "one\n\177\n\377%060d\n", i);
    }
    read_all(NULL);
    assert_int_equal(machine->note_count, 32);
    assert_string_equal(machine->notes[0],
                        "/sys/devices/system/cpu/cpu0/cache/index0/level: expected a number, got "
                        "\"one\\x0a\\x7f\\x0a\\xff"
                        "00000000000000000000000000000000000000000...\"");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offline_processors_do_not_count),
        cmocka_unit_test(memory_of_all_sorts),
        cmocka_unit_test(nodes_of_all_sorts),
        cmocka_unit_test(unreadable_files_are_noted),
        cmocka_unit_test(siblings_that_lie),
        cmocka_unit_test(intel_hybrid),
        cmocka_unit_test(arm_with_three_kinds),
        cmocka_unit_test(arm_of_long_ago),
        cmocka_unit_test(hypervisors_are_named),
        cmocka_unit_test(identity_is_stable),
        cmocka_unit_test(identity_brings_topology),
        cmocka_unit_test(notes_are_bounded),
    };
    tree_scratch_make(scratch);
    int failed = run_suite("unit.machine_cases", tests);
    scratch_remove(scratch);
    return failed;
}
