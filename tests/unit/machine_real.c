/* The machine that the tests run on, held against what the system's own tools say of it. */
#include "test.h"

#include "base/alloc.h"
#include "os/machine/machine.h"

#include <unistd.h>

static tni_machine *machine;

/* What a command prints, or a skipped test when it cannot be run. Released by tni_release. */
static char *output_of(const char *command)
{
    tni_buffer text = {0};
    char piece[4096];
    size_t count;
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while ((count = fread(piece, 1, sizeof piece, pipe)) > 0)
        tni_buffer_add_part(&text, piece, count);
    int status = pclose(pipe);
    if (status != 0 || text.length == 0) {
        tni_buffer_release(&text);
        skip_because("\"%s\" gives nothing here", command);
    }
    return tni_buffer_detach(&text);
}

static void everything_is_said(void **state)
{
    (void)state;
    for (int i = 0; i < TNI_LIMIT_COUNT; i++) {
        const tni_fact *limit = &machine->budget.limits[i];
        print_message("%s: %s %lld (%s)\n", tni_limit_name(i), tni_fact_word(limit->state),
                      (long long)limit->value, limit->origin);
        assert_true(limit->origin[0]);
    }
    print_message("memory: %lld of %lld (%s; %s)\n", (long long)machine->memory.available.value,
                  (long long)machine->memory.total.value, machine->memory.available.origin,
                  machine->memory.total.origin);
    assert_int_equal(machine->memory.total.state, TNI_FACT_KNOWN);
    assert_int_equal(machine->memory.available.state, TNI_FACT_KNOWN);
    assert_true(machine->memory.available.value <= machine->memory.total.value);
    assert_int_equal(machine->budget.limits[TNI_LIMIT_ONLINE].value, sysconf(_SC_NPROCESSORS_ONLN));
    assert_non_null(machine->topology.architecture.text);
    assert_int_equal(machine->identity.uuid[14], '8');
    assert_true(strchr("89ab", machine->identity.uuid[19]) != NULL);
    for (size_t i = 0; i < machine->note_count; i++)
        print_message("note: %s\n", machine->notes[i]);
}

/* It counts affinity, and from coreutils 9.8 on the quota too. */
static void threads_are_those_of_nproc(void **state)
{
    (void)state;
    char *text = output_of("env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>&1");
    long count = strtol(text, NULL, 10);
    tni_release(text);
    if (count != machine->budget.limits[TNI_LIMIT_AFFINITY].value)
        assert_int_equal(count, machine->budget.threads);
}

static const tni_machine_cpu *cpu_of(int id)
{
    for (size_t i = 0; i < machine->topology.cpu_count; i++) {
        if (machine->topology.cpus[i].id == id)
            return &machine->topology.cpus[i];
    }
    fail_msg("processor %d is not known", id);
    return NULL;
}

struct row {
    int cpu, core, socket, node;
};

static size_t parse_rows(char *text, struct row *rows, size_t room)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct row row = {.node = -1};
        if (line[0] == '#' ||
            sscanf(line, "%d,%d,%d,%d", &row.cpu, &row.core, &row.socket, &row.node) < 3)
            continue;
        assert_true(count < room);
        rows[count++] = row;
    }
    return count;
}

/* Any two processors share a core, a package or a node in both readings or in neither. */
static void topology_is_that_of_lscpu(void **state)
{
    enum { ROOM = 4096 };
    static struct row rows[ROOM];
    (void)state;
    char *text = output_of("lscpu -p=CPU,CORE,SOCKET,NODE 2>&1");
    size_t count = parse_rows(text, rows, ROOM);
    tni_release(text);
    assert_int_equal(count, machine->topology.threads.value);
    if (machine->topology.cores.state != TNI_FACT_KNOWN)
        skip_because("%s", machine->topology.cores.origin);
    for (size_t i = 0; i < count; i++) {
        const tni_machine_cpu *a = cpu_of(rows[i].cpu);
        assert_true(a->online);
        for (size_t j = 0; j < i; j++) {
            const tni_machine_cpu *b = cpu_of(rows[j].cpu);
            assert_int_equal(a->core == b->core, rows[i].core == rows[j].core);
            assert_int_equal(a->package == b->package, rows[i].socket == rows[j].socket);
            if (machine->topology.node_count)
                assert_int_equal(a->node == b->node, rows[i].node == rows[j].node);
        }
    }
}

/* One of the lines with a level, a type and a size in bytes. */
static void find_cache(int level, const char *type, long long size)
{
    for (size_t i = 0; i < machine->topology.cache_count; i++) {
        const tni_machine_cache *cache = &machine->topology.caches[i];
        const char *word = cache->type == TNI_CACHE_DATA          ? "Data"
                           : cache->type == TNI_CACHE_INSTRUCTION ? "Instruction"
                                                                  : "Unified";
        if (cache->level == level && strcmp(word, type) == 0 && cache->size == size)
            return;
    }
    fail_msg("no cache of level %d, type %s and %lld bytes is known", level, type, size);
}

static void caches_are_those_of_lscpu(void **state)
{
    char *rest = NULL, type[32];
    int level, lines = 0;
    long long size;
    (void)state;
    char *text = output_of("LC_ALL=C lscpu -B -C=LEVEL,TYPE,ONE-SIZE 2>&1");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%d %31s %lld", &level, type, &size) != 3)
            continue;
        find_cache(level, type, size);
        lines++;
    }
    tni_release(text);
    assert_int_equal(lines > 0, machine->topology.cache_count > 0);
}

/* The value of a field of `lscpu --json`, without its quotes. */
static bool json_value(const char *text, const char *field, char out[256])
{
    char key[64];
    snprintf(key, sizeof key, "\"%s:\"", field);
    const char *at = strstr(text, key);
    at = at ? strstr(at, "\"data\"") : NULL;
    at = at ? strchr(at + 6, '"') : NULL;
    return at && sscanf(at, "\"%255[^\"]\"", out) == 1;
}

static const char *own_architecture(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return machine->topology.architecture.text;
#endif
}

static void model_is_that_of_lscpu(void **state)
{
    char value[256];
    (void)state;
    assert_string_equal(machine->topology.architecture.text, own_architecture());
    char *text = output_of("LC_ALL=C lscpu --json 2>&1");
    bool native = json_value(text, "Architecture", value) && strcmp(value, own_architecture()) == 0;
    if (native && strcmp(value, "x86_64") == 0 && json_value(text, "Model name", value))
        assert_string_equal(machine->topology.model.text, value);
    if (json_value(text, "NUMA node(s)", value) && machine->topology.node_count)
        assert_int_equal(machine->topology.node_count, strtol(value, NULL, 10));
    if (json_value(text, "Hypervisor vendor", value))
        assert_non_null(machine->topology.hypervisor.text);
    tni_release(text);
}

static void assert_near(long long value, long long other, long long tolerance)
{
    long long difference = value > other ? value - other : other - value;
    if (difference > tolerance)
        fail_msg("%lld and %lld are not near each other", value, other);
}

/* Memory moves while it is looked at, and a balloon moves even what there is in all. */
static void memory_is_that_of_free(void **state)
{
    long long total = 0, available = 0, unused[4];
    (void)state;
    char *text = output_of("LC_ALL=C free -b 2>&1");
    const char *line = strstr(text, "Mem:");
    int count = line ? sscanf(line, "Mem: %lld %lld %lld %lld %lld %lld", &total, &unused[0],
                              &unused[1], &unused[2], &unused[3], &available)
                     : 0;
    tni_release(text);
    if (count != 6)
        skip_because("free -b prints no line of six numbers");
    assert_near(machine->memory.system_total.value, total, total / 8);
    assert_near(machine->memory.system_available.value, available, total / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_said),        cmocka_unit_test(threads_are_those_of_nproc),
        cmocka_unit_test(topology_is_that_of_lscpu), cmocka_unit_test(caches_are_those_of_lscpu),
        cmocka_unit_test(model_is_that_of_lscpu),    cmocka_unit_test(memory_is_that_of_free),
    };
    tni_machine_query query = {.parts = TNI_MACHINE_ALL};
    tn_error err;
    if (tni_machine_read(&query, &machine, &err)) {
        printf("%s\n", err.message);
        return 1;
    }
    int failed = run_suite("unit.machine_real", tests);
    tni_machine_release(machine);
    return failed;
}
