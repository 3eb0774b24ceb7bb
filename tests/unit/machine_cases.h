/* One machine at a time in a folder of its own, for suites that write its files by hand. */
#ifndef TENON_TEST_MACHINE_CASES_H
#define TENON_TEST_MACHINE_CASES_H

#include "machine_trees.h"

static char scratch[SCRATCH_PATH];
static char root[SCRATCH_PATH + 16];
static tni_machine *machine;

struct entry {
    const char *path, *text;
};

static inline void write_entries(const struct entry *entries)
{
    for (; entries->path; entries++)
        tree_put(root, entries->path, "%s", entries->text);
}

static inline void begin(void)
{
    snprintf(root, sizeof root, "%s/root", scratch);
    assert_int_equal(mkdir(root, 0755), 0);
}

static inline void read_all(const char *affinity)
{
    tn_error err = {0};
    tni_machine_query query = {.root = root, .affinity = affinity, .parts = TNI_MACHINE_ALL};
    if (tni_machine_read(&query, &machine, &err))
        fail_msg("%s", err.message);
}

static inline void end(void)
{
    tni_machine_release(machine);
    machine = NULL;
    scratch_remove(root);
}

/* A machine of 8 processors and 16 GiB in which the case's own files are put. */
static inline void begin_with(const struct entry *entries, const char *affinity)
{
    static const struct entry common[] = {{"/sys/devices/system/cpu/online", "0-7\n"},
                                          {"/proc/meminfo",
                                           "MemTotal:       16777216 kB\nMemFree:  1048576 kB\n"
                                           "MemAvailable:   8388608 kB\n"},
                                          {NULL, NULL}};
    begin();
    write_entries(common);
    write_entries(entries);
    read_all(affinity);
}

#define assert_known(fact, number, words)                  \
    do {                                                   \
        assert_contains((fact).origin, words);             \
        assert_int_equal((fact).state, TNI_FACT_KNOWN);    \
        assert_int_equal((fact).value, (int64_t)(number)); \
    } while (0)

#define assert_state(fact, wanted, words)       \
    do {                                        \
        assert_contains((fact).origin, words);  \
        assert_int_equal((fact).state, wanted); \
        assert_int_equal((fact).value, 0);      \
    } while (0)

static const int64_t MiB = 1 << 20;

static inline const tni_fact *limit(int which)
{
    return &machine->budget.limits[which];
}

static inline void assert_budget(int threads, int least)
{
    assert_int_equal(machine->budget.threads, threads);
    assert_int_equal(machine->budget.least, least);
}

#endif
