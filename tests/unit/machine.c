/* The machine as it is read from machines that do not exist: lists of processors, generated trees
 * held against what they were generated from, and readings in which everything fails once. */
#include "fault/fault.h"
#include "machine_trees.h"

#include "base/alloc.h"
#include "os/machine/machine_read.h"

enum { TREES = 272 };

static char scratch[SCRATCH_PATH];

static tni_machine *read_machine(const tni_machine_query *query)
{
    tni_machine *machine = NULL;
    tn_error err = {0};
    if (tni_machine_read(query, &machine, &err))
        fail_msg("%s: %s", err.where, err.message);
    return machine;
}

static const char *written(const tni_cpus *set)
{
    static char text[TREE_LIST];
    tni_buffer list = {0};
    tni_cpus_write(set, &list);
    snprintf(text, sizeof text, "%s", tni_buffer_text(&list));
    tni_buffer_release(&list);
    return text;
}

static void lists_are_read(void **state)
{
    static const struct {
        const char *text, *written;
        int count;
    } rows[] = {
        {"", "", 0},
        {"\n", "", 0},
        {"0", "0", 1},
        {"0-3,8", "0-3,8", 5},
        {" 8,0-3\n", "0-3,8", 5},
        {"0-3,8,10-11:2/4\n", "0-3,8,10-11", 7},
        {"0-15:2/8", "0-1,8-9", 4},
        {"4-9:3/4", "4-6,8-9", 5},
        {"0-9:1/1", "0-9", 10},
        {"5-5,5,4-6", "4-6", 3},
        {"63-64,127-192", "63-64,127-192", 68},
        {"0-65535", "0-65535", 65536},
        {"007", "7", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tni_reading reading;
        tni_cpus set;
        tni_reading_init(&reading, scratch);
        if (!tni_cpus_parse(&reading, tni_span_of(rows[i].text), &set))
            fail_msg("\"%s\" is not read", rows[i].text);
        assert_int_equal(set.count, rows[i].count);
        assert_string_equal(written(&set), rows[i].written);
        tni_reading_discard(&reading);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const texts[] = {
        "x",     "-",       "0-",        "-1",          "0--1",   "3-2",     "0,",
        ",0",    "0,,1",    "0 1",       "0- 3",        "65536",  "0-65536", "99999999999999999999",
        "0-3:2", "0-3:0/4", "0-3:5/4",   "0-3:2/0",     "0-3:/4", "0-3:2/",  "0x3",
        "0-3/4", "1-2-3",   "0-3:1/2/3", "0-3:1/70000", "all",    "1.5",     "+1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tni_reading reading;
        tni_cpus set = {.count = 77};
        tni_reading_init(&reading, scratch);
        if (tni_cpus_parse(&reading, tni_span_of(texts[i]), &set))
            fail_msg("\"%s\" is read as %s", texts[i], written(&set));
        assert_int_equal(set.count, 77);
        assert_false(reading.failed);
        tni_reading_discard(&reading);
    }
}

static void sets_are_compared(void **state)
{
    tni_reading reading;
    tni_cpus a, b, none;
    (void)state;
    tni_reading_init(&reading, scratch);
    assert_true(tni_cpus_parse(&reading, tni_span_of("1,3,200"), &a));
    assert_true(tni_cpus_parse(&reading, tni_span_of("1-3"), &b));
    assert_true(tni_cpus_parse(&reading, tni_span_of(""), &none));
    assert_int_equal(tni_cpus_shared(&a, &b), 2);
    assert_int_equal(tni_cpus_shared(&b, &a), 2);
    assert_int_equal(tni_cpus_shared(&a, &none), 0);
    assert_true(tni_cpus_has(&a, 200) && !tni_cpus_has(&a, 201) && !tni_cpus_has(&a, -1));
    assert_int_equal(tni_cpus_next(&a, 0), 1);
    assert_int_equal(tni_cpus_next(&a, 4), 200);
    assert_int_equal(tni_cpus_next(&a, 201), -1);
    assert_int_equal(tni_cpus_next(&none, 0), -1);
    tni_reading_discard(&reading);
}

static int wrong; /* in the tree at hand */

static void expect(const char *what, tni_fact found, struct tree_fact truth)
{
    bool right = found.state == truth.state && found.value == truth.value && found.origin &&
                 found.origin[0] && !strchr(found.origin, '\n');
    if (right)
        return;
    print_message("  %s: %s %lld (%s), expected %s %lld\n", what, tni_fact_word(found.state),
                  (long long)found.value, found.origin ? found.origin : "NULL",
                  tni_fact_word(truth.state), truth.value);
    wrong++;
}

#define EXPECT(condition)                        \
    do {                                         \
        if (!(condition)) {                      \
            print_message("  %s\n", #condition); \
            wrong++;                             \
        }                                        \
    } while (0)

static void check_budget(const tni_machine_budget *budget, const struct tree_truth *truth)
{
    for (int i = 0; i < TNI_LIMIT_COUNT; i++)
        expect(tni_limit_name(i), budget->limits[i], truth->limits[i]);
    EXPECT(budget->threads == truth->threads && budget->threads >= 1);
    EXPECT(budget->least >= 0 && budget->limits[budget->least].value == truth->threads);
    for (int i = 0; i < budget->least; i++)
        EXPECT(budget->limits[i].state != TNI_FACT_KNOWN ||
               budget->limits[i].value > truth->threads);
    EXPECT(budget->quota_us * truth->period == truth->quota * budget->period_us);
    EXPECT((budget->quota_us > 0) == (truth->quota > 0));
}

static void check_memory(const tni_machine_memory *memory, const struct tree_truth *truth)
{
    expect("system_total", memory->system_total, truth->system_total);
    expect("system_available", memory->system_available, truth->system_available);
    expect("limit", memory->limit, truth->limit);
    expect("limit_available", memory->limit_available, truth->limit_available);
    expect("total", memory->total, truth->total);
    expect("available", memory->available, truth->available);
}

/* Two processors are together in the reading if and only if they are in the tree. */
static void check_together(const struct tree *tree, const tni_machine_topology *found)
{
    for (size_t i = 0; i < found->cpu_count; i++) {
        const tni_machine_cpu *a = &found->cpus[i];
        const struct tree_cpu *x = &tree->cpus[i];
        EXPECT(a->id == x->id && a->online == x->online);
        for (size_t j = 0; j < i && a->online; j++) {
            const tni_machine_cpu *b = &found->cpus[j];
            const struct tree_cpu *y = &tree->cpus[j];
            if (!b->online)
                continue;
            if (found->packages.state == TNI_FACT_KNOWN)
                EXPECT((a->package == b->package) == (x->package == y->package));
            if (found->cores.state == TNI_FACT_KNOWN)
                EXPECT((a->core == b->core) == (x->core == y->core));
            if (found->classes_known.state == TNI_FACT_KNOWN)
                EXPECT((a->core_class == b->core_class) == (x->kind == y->kind));
            if (found->dies.value > found->packages.value)
                EXPECT((a->die == b->die) == (x->die == y->die));
        }
    }
}

static void check_nodes(const struct tree *tree, const tni_machine_topology *found)
{
    for (size_t i = 0; i < found->node_count; i++) {
        const tni_machine_node *node = &found->nodes[i];
        bool cut = tree->damage == TREE_DISTANCE_SHORT && i == 0;
        EXPECT(node->id == tree->node_ids[i]);
        expect("node total", node->total,
               (struct tree_fact){TNI_FACT_KNOWN, tree->node_kb[i] * 1024});
        expect("node free", node->free,
               (struct tree_fact){TNI_FACT_KNOWN, tree->node_kb[i] / 3 * 1024});
        EXPECT((node->distances == NULL) == cut);
        for (size_t j = 0; j < found->node_count && !cut; j++)
            EXPECT(node->distances[j] == (i == j ? 10 : 20 + (int)(i + j) % 7));
        for (size_t j = 0; j < found->cpu_count; j++) {
            bool inside = tree->cpus[j].online && tree->cpus[j].node == (int)i;
            EXPECT(tni_cpus_has(&node->cpus, tree->cpus[j].id) == inside);
            EXPECT((found->cpus[j].node == (int)i) == inside);
        }
    }
}

static bool behind(const struct tree *tree, int level, int a, int b)
{
    const struct tree_cpu *x = &tree->cpus[a], *y = &tree->cpus[b];
    return x->online && y->online && (level == 3 ? x->die == y->die : x->core == y->core);
}

/* Every online processor has its four, and shares them with whom the tree says. */
static void check_caches(const struct tree *tree, const tni_machine_topology *found)
{
    static const int kb[] = {48, 32, 2048, 16384};
    for (int i = 0; i < tree->cpu_count; i++) {
        int seen = 0;
        for (size_t c = 0; c < found->cache_count; c++) {
            const tni_machine_cache *cache = &found->caches[c];
            if (!tni_cpus_has(&cache->shared, tree->cpus[i].id))
                continue;
            bool damaged = tree->damage == TREE_CACHE_GARBAGE && cache->type == TNI_CACHE_DATA &&
                           tni_cpus_has(&cache->shared, tree->cpus[0].id);
            int size = seen < 4 ? kb[seen] / (seen == 2 && tree->cpus[i].kind ? 2 : 1) : 0;
            EXPECT(cache->size == (damaged ? 0 : size * 1024LL) && cache->line == 64);
            EXPECT(cache->level == (seen == 0 ? 1 : seen));
            for (int j = 0; j < tree->cpu_count; j++)
                EXPECT(tni_cpus_has(&cache->shared, tree->cpus[j].id) ==
                       behind(tree, cache->level, i, j));
            seen++;
        }
        EXPECT(seen == (tree->cpus[i].online ? 4 : 0));
    }
    for (size_t c = 1; c < found->cache_count; c++) {
        const tni_machine_cache *a = &found->caches[c - 1], *b = &found->caches[c];
        EXPECT(a->level <= b->level);
        EXPECT(a->level < b->level || a->type <= b->type);
        EXPECT(a->level < b->level || a->type < b->type ||
               tni_cpus_next(&a->shared, 0) < tni_cpus_next(&b->shared, 0));
    }
}

static const char *expected_model(const struct tree *tree)
{
    int kinds[2] = {0, 0};
    for (int i = 0; i < tree->cpu_count; i++)
        kinds[tree->cpus[i].kind] += tree->cpus[i].online;
    return !tree->arm                  ? "Fake(R) CPU @ 2.00GHz"
           : tree->kinds == TREE_ALIKE ? "Neoverse-N1"
           : kinds[0] && kinds[1]      ? "Cortex-A76 + Cortex-A55"
           : kinds[0]                  ? "Cortex-A76"
                                       : "Cortex-A55";
}

static void check_topology(const struct tree *tree, const tni_machine_topology *found,
                           const struct tree_truth *truth)
{
    bool sys = tree->damage != TREE_NO_SYS && tree->damage != TREE_NOTHING;
    bool proc = tree->damage != TREE_NO_PROC && tree->damage != TREE_NOTHING;
    char online[TREE_LIST];
    expect("packages", found->packages, truth->packages);
    expect("dies", found->dies, truth->dies);
    expect("cores", found->cores, truth->cores);
    expect("threads_per_core", found->threads_per_core, truth->threads_per_core);
    expect("threads", found->threads, truth->limits[TNI_LIMIT_ONLINE]);
    expect("nodes", found->nodes_known, truth->nodes);
    expect("classes", found->classes_known, truth->classes);
    EXPECT(found->node_count == (size_t)truth->nodes.value);
    EXPECT(found->class_count == (size_t)truth->classes.value);
    tree_list(tree, tree_is_online, 0, online);
    EXPECT(strcmp(written(&found->online), truth->has_numbers ? online : "") == 0);
    EXPECT(sys ? found->cpu_count == (size_t)tree->cpu_count
               : found->cpu_count == (size_t)truth->limits[TNI_LIMIT_ONLINE].value);
    EXPECT((found->cache_count > 0) == (sys && tree_has_caches(tree)));
    EXPECT((found->model.text != NULL) == proc);
    EXPECT(!proc || strcmp(found->model.text, expected_model(tree)) == 0);
    EXPECT((found->hypervisor.text != NULL) == (proc && !tree->arm && tree->spread));
    if (sys) {
        check_together(tree, found);
        check_nodes(tree, found);
        if (tree_has_caches(tree))
            check_caches(tree, found);
    }
}

static bool is_noted(const tni_machine *machine, const char *part)
{
    for (size_t i = 0; i < machine->note_count; i++) {
        if (strstr(machine->notes[i], part))
            return true;
    }
    return false;
}

/* What is wrong is said, and nothing but that. */
static void check_notes(const struct tree *tree, const tni_machine *machine)
{
    bool groups = tree_shows_groups(tree);
    bool quota = tree_version(tree, "cpu") == 2;
    const char *quota_file = quota ? "/cpu.max: " : "/cpu.cfs_quota_us: ";
    switch (tree->damage) {
    case TREE_QUOTA_GARBAGE:
    case TREE_QUOTA_EMPTY:
    case TREE_QUOTA_UNREADABLE:
    case TREE_QUOTA_HUGE: EXPECT(is_noted(machine, quota_file) == groups); break;
    case TREE_LIMIT_GARBAGE: EXPECT(is_noted(machine, "got \"lots\"") == groups); break;
    case TREE_ONLINE_GARBAGE: EXPECT(is_noted(machine, "got \"0-x\"")); break;
    case TREE_CACHE_GARBAGE:
        EXPECT(is_noted(machine, "got \"big\"") == tree_has_caches(tree));
        break;
    case TREE_DISTANCE_SHORT:
        EXPECT(is_noted(machine, "/distance: ") == (tree->node_count > 0));
        break;
    default: EXPECT(machine->note_count == 0); break;
    }
    EXPECT(machine->note_count <= 1);
    for (size_t i = 0; i < machine->note_count; i++)
        EXPECT(!strstr(machine->notes[i], scratch));
}

static void check_tree(unsigned seed)
{
    static struct tree tree;
    struct tree_truth truth;
    char root[SCRATCH_PATH + 16];
    snprintf(root, sizeof root, "%s/%u", scratch, seed);
    assert_int_equal(mkdir(root, 0755), 0);
    tree_draw(&tree, seed);
    tree_know(&tree, &truth);
    tree_write(&tree, root);
    tni_machine *machine = read_machine(&(tni_machine_query){.root = root,
                                                             .affinity = tree.affinity,
                                                             .request = tree.request,
                                                             .parts = TNI_MACHINE_ALL});
    check_budget(&machine->budget, &truth);
    check_memory(&machine->memory, &truth);
    check_topology(&tree, &machine->topology, &truth);
    check_notes(&tree, machine);
    if (wrong)
        fail_msg("tree %u (layout %d, place %d, damage %d, kinds %d) is read wrongly", seed,
                 tree.layout, tree.place, tree.damage, tree.kinds);
    tni_machine_release(machine);
    scratch_remove(root);
}

/* The seeds lead to all that is to be read, not only to some of it. */
static void trees_have_variety(void **state)
{
    static struct tree tree;
    struct tree_truth truth;
    int damages[TREE_DAMAGES] = {0}, layouts[TREE_LAYOUTS] = {0}, places[TREE_PLACES] = {0};
    int kinds[TREE_KINDS] = {0}, half = 0, one_and_half = 0, many_nodes = 0, holes = 0;
    int offline = 0, least[TNI_LIMIT_COUNT] = {0}, nested = 0;
    (void)state;
    for (unsigned seed = 0; seed < TREES / 2; seed++) {
        char online[TREE_LIST];
        tree_draw(&tree, seed);
        tree_know(&tree, &truth);
        tree_list(&tree, tree_is_online, 0, online);
        damages[tree.damage]++;
        layouts[tree.layout]++;
        places[tree.place]++;
        kinds[tree.kinds]++;
        half += truth.quota * 2 == truth.period && truth.quota;
        one_and_half += truth.quota * 2 == truth.period * 3 && truth.quota;
        many_nodes += tree.node_count >= 10;
        holes += strchr(tree.affinity, ',') != NULL;
        offline += truth.limits[TNI_LIMIT_ONLINE].value < tree.cpu_count;
        nested += tree.levels > 2 && truth.limits[TNI_LIMIT_QUOTA].state == TNI_FACT_KNOWN;
        for (int i = 0; i < TNI_LIMIT_COUNT; i++)
            least[i] +=
                truth.limits[i].state == TNI_FACT_KNOWN && truth.limits[i].value == truth.threads;
    }
    for (int i = 0; i < TREE_DAMAGES; i++)
        assert_true(damages[i] >= 4);
    for (int i = 0; i < TREE_LAYOUTS; i++)
        assert_true(layouts[i] >= 16);
    for (int i = 0; i < TREE_PLACES; i++)
        assert_true(places[i] >= 16);
    for (int i = 0; i < TREE_KINDS; i++)
        assert_true(kinds[i] >= 16);
    for (int i = 0; i < TNI_LIMIT_COUNT; i++)
        assert_true(least[i] >= 4);
    assert_true(half >= 2 && one_and_half >= 2 && many_nodes >= 2 && holes >= 16);
    assert_true(offline >= 16 && nested >= 8);
}

/* Half of all have every damage in every layout. */
static void generated_trees_are_read(void **state)
{
    unsigned count = test_reduced() ? TREES / 2 : TREES;
    (void)state;
    for (unsigned seed = 0; seed < count; seed++) {
        if (tree_sampled(seed, count))
            check_tree(seed);
    }
}

/* A tree with everything in it, for readings that fail. */
static void write_rich_tree(char root[SCRATCH_PATH + 16], struct tree *tree)
{
    unsigned seed = 0;
    do
        tree_draw(tree, seed++);
    while (tree->layout != TREE_BOTH || tree->place != TREE_HOST || tree->damage != TREE_SOUND ||
           tree->levels < 3 || tree->cpu_count < 4 || tree->cpu_count > 12 || !tree->node_count);
    snprintf(root, SCRATCH_PATH + 16, "%s/rich", scratch);
    assert_int_equal(mkdir(root, 0755), 0);
    tree_write(tree, root);
}

static void every_allocation_may_fail(void **state)
{
    char root[SCRATCH_PATH + 16];
    static struct tree tree;
    bool fired = true;
    long n = 0;
    (void)state;
    write_rich_tree(root, &tree);
    tni_machine_query query = {.root = root, .affinity = "0", .parts = TNI_MACHINE_ALL};
    while (fired) {
        if (!test_sampled((uint64_t)++n, 8))
            continue;
        tni_machine *machine = NULL;
        tn_error err = {0};
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tni_machine_read(&query, &machine, &err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        assert_true(fired == !machine);
        if (fired)
            assert_contains(err.message, "no memory for");
        tni_machine_release(machine);
        assert_int_equal(fault_left(before, "tni_machine_read", n), 0);
    }
    assert_true(n > 100);
    scratch_remove(root);
}

/* Every fact has a state and says why; what is known can be so only because it could be read. */
static void check_sanity(const tni_machine *machine)
{
    const tni_fact *facts[] = {&machine->memory.total,          &machine->memory.available,
                               &machine->memory.limit,          &machine->topology.cores,
                               &machine->topology.packages,     &machine->topology.nodes_known,
                               &machine->topology.classes_known};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        assert_true(facts[i]->state <= TNI_FACT_MALFORMED && facts[i]->origin &&
                    facts[i]->origin[0]);
    for (int i = 0; i < TNI_LIMIT_COUNT; i++)
        assert_true(machine->budget.limits[i].origin && machine->budget.limits[i].origin[0]);
    assert_true(machine->budget.threads >= 1);
    assert_int_equal(strlen(machine->identity.uuid), 36);
}

static void every_system_call_may_fail(void **state)
{
    static const int codes[] = {EIO, EACCES, ENOENT, ENOMEM, EMFILE};
    char root[SCRATCH_PATH + 16];
    static struct tree tree;
    (void)state;
    write_rich_tree(root, &tree);
    tni_machine_query query = {.root = root, .affinity = "0", .parts = TNI_MACHINE_ALL};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        bool fired = true;
        for (long n = 1; fired; n++) {
            if (!test_sampled((uint64_t)n * 8 + i, 32))
                continue;
            tni_machine *machine = NULL;
            struct fault_state before = fault_look();
            fault_arm(&fault_call, n, n % 7 == 0, codes[i]);
            tn_status status = tni_machine_read(&query, &machine, NULL);
            fired = fault_end(&fault_call);
            assert_true(status == TN_OK || (status == TN_OUT_OF_MEMORY && codes[i] == ENOMEM));
            assert_true((status == TN_OK) == (machine != NULL));
            if (machine)
                check_sanity(machine);
            tni_machine_release(machine);
            assert_int_equal(fault_left(before, "tni_machine_read", n), 0);
        }
    }
    scratch_remove(root);
}

/* Where nothing can be read, the running system still answers calls. */
static void the_system_answers_without_files(void **state)
{
    tni_machine *machine = NULL;
    tni_machine_query query = {.parts = TNI_MACHINE_ALL};
    (void)state;
    fault_arm(&fault_call, 1, true, ENOENT);
    tn_status status = tni_machine_read(&query, &machine, NULL);
    assert_true(fault_end(&fault_call));
    assert_int_equal(status, TN_OK);
    check_sanity(machine);
    assert_contains(machine->budget.limits[TNI_LIMIT_ONLINE].origin, "sysconf");
    assert_true(machine->budget.limits[TNI_LIMIT_ONLINE].value > 0);
    assert_int_equal(machine->budget.limits[TNI_LIMIT_AFFINITY].state, TNI_FACT_KNOWN);
    assert_contains(machine->memory.total.origin, "sysconf");
    assert_true(machine->memory.total.value > 0);
    assert_int_equal(machine->memory.available.state, TNI_FACT_UNKNOWN);
    assert_int_equal(machine->topology.cores.state, TNI_FACT_UNKNOWN);
    assert_non_null(machine->topology.architecture.text);
    assert_int_equal(machine->note_count, 0);
    tni_machine_release(machine);
}

static void paths_that_are_too_long(void **state)
{
    static char root[6000];
    (void)state;
    memset(root, 'x', sizeof root - 1);
    for (size_t cut = 4000; cut < sizeof root; cut += 1999) {
        root[cut] = '\0';
        tni_machine *machine =
            read_machine(&(tni_machine_query){.root = root, .parts = TNI_MACHINE_ALL});
        check_sanity(machine);
        assert_int_equal(machine->budget.least, -1);
        assert_true(cut < 4096 || machine->note_count == 1);
        tni_machine_release(machine);
        root[cut] = 'x';
    }
}

static void wrong_questions_are_refused(void **state)
{
    tni_machine *machine = NULL;
    tn_error err = {0};
    (void)state;
    tni_machine_query query = {.root = scratch, .affinity = "0-,2", .parts = TNI_MACHINE_BUDGET};
    assert_int_equal(tni_machine_read(&query, &machine, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "\"0-,2\"");
    query = (tni_machine_query){.root = scratch, .request = -2, .parts = TNI_MACHINE_BUDGET};
    assert_int_equal(tni_machine_read(&query, &machine, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "got -2");
    assert_null(machine);
    tni_machine_release(NULL);
    assert_null(tni_limit_name(-1));
    assert_null(tni_limit_name(TNI_LIMIT_COUNT));
}

/* Only the parts that were asked for are read, and parts that nothing is known of say so. */
static void parts_are_read_alone(void **state)
{
    (void)state;
    tni_machine *machine =
        read_machine(&(tni_machine_query){.root = scratch, .parts = TNI_MACHINE_BUDGET});
    assert_int_equal(machine->parts, TNI_MACHINE_BUDGET);
    assert_int_equal(machine->budget.threads, 1);
    assert_int_equal(machine->budget.least, -1);
    assert_null(machine->memory.total.origin);
    assert_null(machine->topology.cores.origin);
    assert_int_equal(machine->identity.uuid[0], '\0');
    tni_machine_release(machine);
    machine = read_machine(&(tni_machine_query){.root = scratch, .parts = TNI_MACHINE_MEMORY});
    assert_int_equal(machine->memory.total.state, TNI_FACT_UNKNOWN);
    assert_int_equal(machine->memory.available.state, TNI_FACT_UNKNOWN);
    assert_contains(machine->memory.total.origin, "/proc/meminfo: ");
    assert_null(machine->budget.limits[0].origin);
    tni_machine_release(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(sets_are_compared),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(parts_are_read_alone),
        cmocka_unit_test(trees_have_variety),
        cmocka_unit_test(generated_trees_are_read),
        cmocka_unit_test(the_system_answers_without_files),
        cmocka_unit_test(paths_that_are_too_long),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_system_call_may_fail),
    };
    fault_memory_install();
    fault_calls_install();
    tree_scratch_make(scratch);
    int failed = run_suite("unit.machine", tests);
    scratch_remove(scratch);
    return failed;
}
