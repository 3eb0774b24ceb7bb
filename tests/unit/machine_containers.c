/* What containers, services and hosts show of their control groups, and what is to be said of each. */
#include "machine_cases.h"

/* Docker before private name spaces: the host's path, and only that part of each hierarchy. */
static void docker_with_version_1(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "11:cpuset:/docker/4c1f\n9:cpu,cpuacct:/docker/4c1f\n"
                              "6:memory:/docker/4c1f\n1:name=systemd:/docker/4c1f\n"},
        {"/proc/self/mountinfo",
         "618 617 0:29 /docker/4c1f /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:15 - cgroup "
         "cgroup rw,cpu,cpuacct\n"
         "619 617 0:31 /docker/4c1f /sys/fs/cgroup/memory ro,nosuid master:17 - cgroup cgroup "
         "rw,memory\n"
         "620 617 0:33 /docker/4c1f /sys/fs/cgroup/cpuset ro,nosuid master:19 - cgroup cgroup "
         "rw,cpuset\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
        {"/sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n"},
        {"/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-7\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "314572800\n"},
        {"/sys/fs/cgroup/memory/memory.stat",
         "inactive_file 1\nhierarchical_memory_limit 536870912\ntotal_inactive_file 104857600\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(1, TNI_LIMIT_QUOTA);
    assert_string_equal(limit(TNI_LIMIT_QUOTA)->origin,
                        "cgroup v1 /sys/fs/cgroup/cpu,cpuacct cpu.cfs_quota_us 50000 100000");
    assert_int_equal(machine->budget.quota_us, 50000);
    assert_int_equal(machine->budget.period_us, 100000);
    assert_known(*limit(TNI_LIMIT_CPUSET), 8,
                 "cgroup v1 /sys/fs/cgroup/cpuset cpuset.effective_cpus 0-7");
    assert_known(machine->memory.total, 512 * MiB, "memory.limit_in_bytes 536870912");
    assert_known(machine->memory.available, 312 * MiB, "less memory.usage_in_bytes 314572800");
    assert_contains(machine->memory.available.origin, "total_inactive_file 104857600");
    end();
}

/* Docker now: the container is the root of a name space of its own. */
static void docker_with_version_2(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo",
         "724 723 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup "
         "rw,nsdelegate,memory_recursiveprot\n"},
        {"/sys/fs/cgroup/cpu.max", "150000 100000\n"},
        {"/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"},
        {"/sys/fs/cgroup/memory.max", "2147483648\n"},
        {"/sys/fs/cgroup/memory.high", "max\n"},
        {"/sys/fs/cgroup/memory.current", "1610612736\n"},
        {"/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1073741824\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(1, TNI_LIMIT_QUOTA);
    assert_string_equal(limit(TNI_LIMIT_QUOTA)->origin,
                        "cgroup v2 /sys/fs/cgroup cpu.max 150000 100000");
    assert_known(machine->memory.total, 2048 * MiB,
                 "cgroup v2 /sys/fs/cgroup memory.max 2147483648");
    assert_known(machine->memory.available, 1536 * MiB, "inactive_file 1073741824 is file cache");
    assert_int_equal(machine->note_count, 0);
    end();
}

/* Podman without root: limits are at the user's slice, far above the container. */
static void podman_rootless(void **state)
{
#define USER "/sys/fs/cgroup/user.slice/user-1000.slice"
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/"
                              "libpod-9f.scope/container\n"},
        {"/proc/self/mountinfo",
         "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"},
        {USER "/user@1000.service/user.slice/libpod-9f.scope/container/cpu.max", "max 100000\n"},
        {USER "/user@1000.service/user.slice/libpod-9f.scope/container/memory.max", "max\n"},
        {USER "/user@1000.service/cpu.max", "600000 100000\n"},
        {USER "/cpu.max", "250000 100000\n"},
        {USER "/memory.max", "4294967296\n"},
        {USER "/memory.current", "1073741824\n"},
        {USER "/memory.stat", "inactive_file 0\n"},
        {"/sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-3,6\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(2, TNI_LIMIT_QUOTA);
    assert_string_equal(limit(TNI_LIMIT_QUOTA)->origin, "cgroup v2 " USER " cpu.max 250000 100000");
    assert_known(*limit(TNI_LIMIT_CPUSET), 5,
                 "cgroup v2 /sys/fs/cgroup/user.slice cpuset.cpus.effective 0-3,6");
    assert_known(machine->memory.total, 4096 * MiB, USER " memory.max");
    assert_known(machine->memory.available, 3072 * MiB, USER " memory.max");
    end();
#undef USER
}

/* A service with CPUQuota=150% in a slice with 120%, and a MemoryHigh below its MemoryMax. */
static void systemd_service_in_a_slice(void **state)
{
#define SLICE "/sys/fs/cgroup/web.slice"
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "0::/web.slice/app.service\n"},
        {"/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"},
        {SLICE "/app.service/cpu.max", "150000 100000\n"},
        {SLICE "/cpu.max", "12000 10000\n"},
        {SLICE "/app.service/memory.max", "1073741824\n"},
        {SLICE "/app.service/memory.high", "805306368\n"},
        {SLICE "/app.service/memory.current", "900000000\n"},
        {SLICE "/app.service/memory.stat", "inactive_file 0\n"},
        {SLICE "/memory.max", "max\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(1, TNI_LIMIT_QUOTA);
    assert_known(*limit(TNI_LIMIT_QUOTA), 1, "web.slice cpu.max 12000 10000");
    assert_int_equal(machine->budget.quota_us, 12000);
    assert_known(machine->memory.total, 768 * MiB, "memory.high 805306368");
    assert_known(machine->memory.available, 0, "less memory.current 900000000");
    end();
#undef SLICE
}

/* A pod's limit is above what its container sees, but version 1 tells it. */
static void kubernetes_with_version_1(void **state)
{
#define POD "/kubepods/burstable/pod1-2/5eaf"
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "4:memory:" POD "\n3:cpuacct,cpu:" POD "\n2:cpuset:" POD "\n"},
        {"/proc/self/mountinfo",
         "1 2 0:3 " POD " /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpuacct,cpu\n"
         "1 2 0:4 " POD " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
         "1 2 0:5 " POD " /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "10000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {"/sys/fs/cgroup/cpuset/cpuset.cpus", "2-3,6\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "16777216\n"},
        {"/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 134217728\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "2-3,6");
    assert_budget(1, TNI_LIMIT_QUOTA);
    assert_int_equal(machine->budget.quota_us, 10000);
    assert_known(*limit(TNI_LIMIT_CPUSET), 3, "cpuset.cpus 2-3,6");
    assert_known(machine->memory.total, 128 * MiB,
                 "memory.stat hierarchical_memory_limit 134217728");
    assert_known(machine->memory.available, 112 * MiB, "an unknown part, counted as 0");
    end();
#undef POD
}

/* Pinned processors and no quota: the set is what counts. */
static void kubernetes_with_pinned_processors(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo", "9 8 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
        {"/sys/fs/cgroup/cpu.max", "max 100000\n"},
        {"/sys/fs/cgroup/cpuset.cpus.effective", "2-3,7\n"},
        {"/sys/fs/cgroup/memory.max", "max\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "2-3,7");
    assert_budget(3, TNI_LIMIT_AFFINITY);
    assert_state(*limit(TNI_LIMIT_QUOTA), TNI_FACT_UNLIMITED, "cpu.max max");
    assert_known(machine->memory.total, 16384 * MiB, "/proc/meminfo MemTotal");
    assert_known(machine->memory.available, 8192 * MiB, "/proc/meminfo MemAvailable");
    assert_state(machine->memory.limit, TNI_FACT_UNLIMITED, "memory.max: no limit");
    end();
}

/* Both versions at once, none of which limits anything. */
static void wsl(void **state)
{
    static const struct entry entries[] = {
        {"/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n"},
        {"/proc/sys/kernel/arch", "x86_64\n"},
        {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: 12th Gen Intel(R) Core(TM) i7-1260P\n"
                          "flags\t\t: fpu hypervisor\n\n"},
        {"/proc/self/cgroup", "3:memory:/\n2:cpu:/\n1:cpuset:/\n0::/\n"},
        {"/proc/self/mountinfo", "5 4 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                                 "6 4 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                 "7 4 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                 "8 4 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {"/sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(8, TNI_LIMIT_ONLINE);
    assert_state(*limit(TNI_LIMIT_QUOTA), TNI_FACT_UNLIMITED, "cpu.cfs_quota_us -1");
    assert_state(machine->memory.limit, TNI_FACT_UNLIMITED, "memory.limit_in_bytes: no limit");
    assert_string_equal(machine->topology.hypervisor.text, "wsl");
    assert_string_equal(machine->topology.model.text, "12th Gen Intel(R) Core(TM) i7-1260P");
    assert_string_equal(machine->topology.architecture.text, "x86_64");
    end();
}

/* The root group of version 2 has no limits to read, which is to say none. */
static void bare_host(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "0::/init.scope\n"},
        {"/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_budget(8, TNI_LIMIT_ONLINE);
    assert_state(*limit(TNI_LIMIT_QUOTA), TNI_FACT_UNLIMITED,
                 "cgroup v2 /sys/fs/cgroup/init.scope: no cpu.max here or above");
    assert_state(*limit(TNI_LIMIT_CPUSET), TNI_FACT_UNLIMITED, "here or above");
    assert_state(machine->memory.limit, TNI_FACT_UNLIMITED, "no memory.max here or above");
    end();
}

/* Of several mounts the one that shows the whole way up is taken, wherever it stands; a group that
 * is gone leaves those above it. */
static void mounts_and_names_of_all_sorts(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "not a line\n\n0::/a b/c:d/gone (deleted)\n"},
        {"/proc/self/mountinfo",
         "1 0 0:9 /a\\040b/c:d /mnt/part rw - cgroup2 cgroup2 rw\n"
         "2 0 0:9 / /mnt/all\\040of\\134it rw,noatime shared:1 master:2 propagate_from:3 - "
         "cgroup2 none rw\n"
         "3 0 0:9 /a\\040b /mnt/some rw - cgroup2 cgroup2 rw\n"
         "4 0 0:9 /x /mnt/other rw - cgroup2 cgroup2 rw\n"
         "5 0 0:9 / /mnt/cut rw -\n"},
        {"/mnt/part/cpu.max", "800000 100000\n"},
        {"/mnt/all of\\it/a b/c:d/cpu.max", "800000 100000\n"},
        {"/mnt/all of\\it/a b/cpu.max", "300000 100000\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "0-7");
    assert_known(*limit(TNI_LIMIT_QUOTA), 3, "cgroup v2 /mnt/all of\\it/a b cpu.max 300000 100000");
    end();
}

/* A container that is handed only the group above its own, and a process moved out of what it sees. */
static void groups_out_of_sight(void **state)
{
    static const struct entry above[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo", "1 0 0:9 /../.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/cpu.max", "350000 100000\n"},
        {NULL, NULL}};
    static const struct entry outside[] = {
        {"/proc/self/cgroup", "0::/../elsewhere\n"},
        {"/proc/self/mountinfo", "1 0 0:9 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/cpu.max", "100000 100000\n"},
        {"/sys/fs/cgroup/memory.max", "4096\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(above, "0-7");
    assert_known(*limit(TNI_LIMIT_QUOTA), 3,
                 "cgroup v2 /sys/fs/cgroup (/ is not visible below it) cpu.max");
    assert_state(machine->memory.limit, TNI_FACT_UNKNOWN, "/ is not visible below it");
    end();
    begin_with(outside, "0-7");
    assert_budget(8, TNI_LIMIT_ONLINE);
    assert_state(*limit(TNI_LIMIT_QUOTA), TNI_FACT_UNKNOWN,
                 "cgroup v2 /../elsewhere is not mounted");
    assert_state(machine->memory.limit, TNI_FACT_UNKNOWN, "is not mounted");
    assert_known(machine->memory.total, 16384 * MiB, "MemTotal");
    end();
}

/* A name that only begins like the mount's is not below it; one with blanks in it is. */
static void groups_below_a_mount(void **state)
{
    static const struct entry beside[] = {
        {"/proc/self/cgroup", "0::/docker\n"},
        {"/proc/self/mountinfo", "1 0 0:9 /doc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/cpu.max", "300000 100000\n"},
        {NULL, NULL}};
    static const struct entry below[] = {
        {"/proc/self/cgroup", "0::/my docker/1\n"},
        {"/proc/self/mountinfo", "1 0 0:9 /my\\040docker /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
        {"/sys/fs/cgroup/1/cpuset.cpus.effective", "\n"},
        {"/sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"},
        {"/sys/fs/cgroup/1/cpu.max", "400000 100000\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(beside, "0-7");
    assert_known(*limit(TNI_LIMIT_QUOTA), 3,
                 "/sys/fs/cgroup (/docker is not visible below it) cpu.max");
    end();
    begin_with(below, "0-7");
    assert_known(*limit(TNI_LIMIT_QUOTA), 4, "cgroup v2 /sys/fs/cgroup/1 cpu.max");
    assert_known(*limit(TNI_LIMIT_CPUSET), 2, "cgroup v2 /sys/fs/cgroup cpuset.cpus.effective 0-1");
    end();
}

/* Android mounts its cpusets without the prefix. */
static void cpusets_without_prefix(void **state)
{
    static const struct entry entries[] = {
        {"/proc/self/cgroup", "2:cpuset:/top-app\n"},
        {"/proc/self/mountinfo", "1 0 0:9 / /dev/cpuset rw - cgroup none rw,cpuset,noprefix\n"},
        {"/dev/cpuset/top-app/cpus", "4-7\n"},
        {NULL, NULL}};
    (void)state;
    begin_with(entries, "4-7");
    assert_known(*limit(TNI_LIMIT_CPUSET), 4, "/dev/cpuset/top-app cpus 4-7");
    assert_state(*limit(TNI_LIMIT_QUOTA), TNI_FACT_UNKNOWN, "no usable line for cpu");
    end();
}

/* Every line is a quota file of the process's group, and what is to be made of it. */
static void quotas_of_all_sorts(void **state)
{
    static const struct {
        const char *text;
        unsigned state;
        int value;
    } rows[] = {
        {"50000 100000\n", TNI_FACT_KNOWN, 1},
        {"199999 100000\n", TNI_FACT_KNOWN, 1},
        {"200000 100000", TNI_FACT_KNOWN, 2},
        {"250000\n", TNI_FACT_KNOWN, 2},
        {"99999999999999999999 100000\n", TNI_FACT_KNOWN, 0},
        {"max 100000\n", TNI_FACT_UNLIMITED, 0},
        {"-1\n", TNI_FACT_UNLIMITED, 0},
        {"0 100000\n", TNI_FACT_MALFORMED, 0},
        {"100000 0\n", TNI_FACT_MALFORMED, 0},
        {"100000 99999999999\n", TNI_FACT_MALFORMED, 0},
        {"100000 x\n", TNI_FACT_MALFORMED, 0},
        {"1.5\n", TNI_FACT_MALFORMED, 0},
        {"\n", TNI_FACT_MALFORMED, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct entry entries[] = {
            {"/proc/self/cgroup", "0::/\n"},
            {"/proc/self/mountinfo", "1 0 0:9 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
            {"/sys/fs/cgroup/cpu.max", rows[i].text},
            {NULL, NULL}};
        begin_with(entries, NULL);
        if (limit(TNI_LIMIT_QUOTA)->state != rows[i].state)
            fail_msg("\"%s\" is %s", rows[i].text, tni_fact_word(limit(TNI_LIMIT_QUOTA)->state));
        if (rows[i].value)
            assert_int_equal(limit(TNI_LIMIT_QUOTA)->value, rows[i].value);
        assert_int_equal(machine->note_count, rows[i].state == TNI_FACT_MALFORMED);
        assert_state(*limit(TNI_LIMIT_AFFINITY), TNI_FACT_UNKNOWN, "only the running system");
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(docker_with_version_1),
        cmocka_unit_test(docker_with_version_2),
        cmocka_unit_test(podman_rootless),
        cmocka_unit_test(systemd_service_in_a_slice),
        cmocka_unit_test(kubernetes_with_version_1),
        cmocka_unit_test(kubernetes_with_pinned_processors),
        cmocka_unit_test(wsl),
        cmocka_unit_test(bare_host),
        cmocka_unit_test(mounts_and_names_of_all_sorts),
        cmocka_unit_test(groups_out_of_sight),
        cmocka_unit_test(groups_below_a_mount),
        cmocka_unit_test(cpusets_without_prefix),
        cmocka_unit_test(quotas_of_all_sorts),
    };
    tree_scratch_make(scratch);
    int failed = run_suite("unit.machine_containers", tests);
    scratch_remove(scratch);
    return failed;
}
