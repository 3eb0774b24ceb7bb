#include "base/alloc.h"
#include "host.h"

#include <stdlib.h>

/* The parts of a machine are sets of its online processors, given as row numbers in the reading. Of
 * two that share a processor, the larger contains the other; of equal ones, the one whose type, or
 * cache level, comes first. */
struct part {
    tn_topology_object object;
    size_t begin; /* of its members */
    int32_t size;
    int32_t first;          /* the lowest member; INT32_MAX if none exists */
    int32_t parent;         /* -1 if none */
    int32_t child, sibling; /* first child; next sibling; -1 for none */
    int32_t place;          /* index in the result; -1 until it has one */
};

struct tree {
    const tni_machine *machine;
    struct part *parts;
    size_t part_count, part_room;
    int32_t *members;
    size_t member_count, member_room;
    int32_t *innermost; /* for each row: the last part placed so far that contains it */
    bool failed;        /* out of memory; the tree is invalid */
};

static void begin_part(struct tree *tree, int32_t type)
{
    if (tree->failed ||
        !tni_array_reserve((void **)&tree->parts, &tree->part_room, tree->part_count,
                           tree->part_count + 1, sizeof *tree->parts)) {
        tree->failed = true;
        return;
    }
    tree->parts[tree->part_count++] = (struct part){
        .object = {.struct_size = sizeof(tn_topology_object),
                   .type = type,
                   .number = -1,
                   .speed_class = -1},
        .begin = tree->member_count,
        .first = INT32_MAX,
        .parent = -1,
        .child = -1,
        .sibling = -1,
        .place = -1,
    };
}

/* The part that was begun last. */
static struct part *last_part(struct tree *tree)
{
    return &tree->parts[tree->part_count - 1];
}

static void add_member(struct tree *tree, size_t row)
{
    if (tree->failed ||
        !tni_array_reserve((void **)&tree->members, &tree->member_room, tree->member_count,
                           tree->member_count + 1, sizeof *tree->members)) {
        tree->failed = true;
        return;
    }
    struct part *part = last_part(tree);
    tree->members[tree->member_count++] = (int32_t)row;
    part->size++;
    if ((int32_t)row < part->first)
        part->first = (int32_t)row;
}

static void add_machine(struct tree *tree)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    begin_part(tree, TN_TOPOLOGY_MACHINE);
    for (size_t i = 0; i < topology->cpu_count; i++) {
        if (topology->cpus[i].online)
            add_member(tree, i);
    }
}

static int32_t index_of(const tni_machine_cpu *cpu, int32_t type)
{
    switch (type) {
    case TN_TOPOLOGY_PACKAGE: return cpu->package;
    case TN_TOPOLOGY_DIE: return cpu->die;
    case TN_TOPOLOGY_NODE: return cpu->node;
    default: return cpu->core;
    }
}

/* Adds the processors with this index of the type. */
static void add_indexed(struct tree *tree, int32_t type, int32_t index)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    begin_part(tree, type);
    for (size_t i = 0; i < topology->cpu_count; i++) {
        if (topology->cpus[i].online && index_of(&topology->cpus[i], type) == index)
            add_member(tree, i);
    }
}

/* Parts whose numbers are assigned by first processor are added in that order. */
static void add_groups(struct tree *tree, int32_t type)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    int32_t next = 0;
    for (size_t i = 0; i < topology->cpu_count && !tree->failed; i++) {
        if (topology->cpus[i].online && index_of(&topology->cpus[i], type) == next)
            add_indexed(tree, type, next++);
    }
}

static void add_cores(struct tree *tree)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    size_t before = tree->part_count;
    add_groups(tree, TN_TOPOLOGY_CORE);
    if (tree->failed || !topology->classes_by_speed)
        return;
    for (size_t i = before; i < tree->part_count; i++)
        tree->parts[i].object.speed_class = topology->cpus[tree->parts[i].first].core_class;
}

static void add_nodes(struct tree *tree)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    for (size_t i = 0; i < topology->node_count && !tree->failed; i++) {
        add_indexed(tree, TN_TOPOLOGY_NODE, (int32_t)i);
        if (tree->failed)
            return;
        last_part(tree)->object.number = topology->nodes[i].id;
        last_part(tree)->object.bytes = topology->nodes[i].total.value;
    }
}

static int by_id(const void *key, const void *row)
{
    int32_t id = *(const int32_t *)key, other = ((const tni_machine_cpu *)row)->id;
    return (id > other) - (id < other);
}

/* Instruction caches are omitted, as hwloc does by default. */
static void add_cache(struct tree *tree, const tni_machine_cache *cache)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    if (cache->type == TNI_CACHE_INSTRUCTION || cache->level < 1 ||
        cache->level > TNI_TOPOLOGY_LEVELS)
        return;
    begin_part(tree, TN_TOPOLOGY_CACHE);
    for (int32_t id = tni_cpus_next(&cache->shared, 0); id >= 0 && !tree->failed;
         id = tni_cpus_next(&cache->shared, id + 1)) {
        const tni_machine_cpu *cpu =
            bsearch(&id, topology->cpus, topology->cpu_count, sizeof *cpu, by_id);
        if (cpu && cpu->online)
            add_member(tree, (size_t)(cpu - topology->cpus));
    }
    if (tree->failed)
        return;
    last_part(tree)->object.level = cache->level;
    last_part(tree)->object.bytes = cache->size;
}

/* Caches are listed by level; the greatest level contains the others. */
static void add_caches(struct tree *tree)
{
    const tni_machine_topology *topology = &tree->machine->topology;
    for (size_t i = topology->cache_count; i > 0; i--)
        add_cache(tree, &topology->caches[i - 1]);
}

/* A limit without known processor numbers allows all. */
static bool allows(const tni_cpus *set, int32_t id)
{
    return set->count == 0 || tni_cpus_has(set, id);
}

static void add_threads(struct tree *tree)
{
    const tni_machine_budget *budget = &tree->machine->budget;
    const tni_machine_topology *topology = &tree->machine->topology;
    for (size_t i = 0; i < topology->cpu_count && !tree->failed; i++) {
        const tni_machine_cpu *cpu = &topology->cpus[i];
        if (!cpu->online)
            continue;
        begin_part(tree, TN_TOPOLOGY_THREAD);
        add_member(tree, i);
        if (tree->failed)
            return;
        last_part(tree)->object.number = cpu->id;
        last_part(tree)->object.usable =
            allows(&budget->affinity, cpu->id) && allows(&budget->cpuset, cpu->id);
    }
}

/* Larger parts are already placed, so all processors of this one must be in the same innermost
 * part. If they are not, the part contradicts the others and is omitted, as in hwloc. A die that is
 * all of its package is omitted too. */
static void place_part(struct tree *tree, int32_t index)
{
    struct part *part = &tree->parts[index];
    const int32_t *members = part->size ? tree->members + part->begin : NULL;
    int32_t parent = part->size ? tree->innermost[members[0]] : 0;
    for (int32_t i = 1; i < part->size; i++) {
        if (tree->innermost[members[i]] != parent)
            return;
    }
    if (part->object.type == TN_TOPOLOGY_DIE && part->size == tree->parts[parent].size)
        return;
    part->parent = parent;
    for (int32_t i = 0; i < part->size; i++)
        tree->innermost[members[i]] = index;
}

static int by_size(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->object.type != y->object.type)
        return x->object.type < y->object.type ? -1 : 1;
    if (x->object.level != y->object.level)
        return x->object.level > y->object.level ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Inserts into the list of its parent, ordered by first processor. Parts are added from last to
 * first, so most of them are inserted at the head. */
static void list_part(struct tree *tree, int32_t index)
{
    struct part *part = &tree->parts[index];
    int32_t *at = &tree->parts[part->parent].child;
    while (*at >= 0 && tree->parts[*at].first < part->first)
        at = &tree->parts[*at].sibling;
    part->sibling = *at;
    *at = index;
}

static bool join_parts(struct tree *tree)
{
    tree->innermost = tni_alloc_zeroed(tree->machine->topology.cpu_count, sizeof(int32_t));
    if (tree->failed || !tree->innermost)
        return false;
    int32_t count = (int32_t)tree->part_count;
    qsort(tree->parts, tree->part_count, sizeof *tree->parts, by_size);
    for (int32_t i = 1; i < count; i++)
        place_part(tree, i);
    for (int32_t i = count - 1; i > 0; i--) {
        if (tree->parts[i].parent >= 0)
            list_part(tree, i);
    }
    return true;
}

/* The next part in pre-order; -1 at the end. */
static int32_t next_part(const struct tree *tree, int32_t index)
{
    if (tree->parts[index].child >= 0)
        return tree->parts[index].child;
    while (index >= 0 && tree->parts[index].sibling < 0)
        index = tree->parts[index].parent;
    return index < 0 ? -1 : tree->parts[index].sibling;
}

static tn_status write_parts(struct tree *tree, tn_topology *to, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i >= 0 && !status; i = next_part(tree, i)) {
        struct part *part = &tree->parts[i];
        part->place = (int32_t)tn_topology_count(to);
        part->object.parent = part->parent < 0 ? -1 : tree->parts[part->parent].place;
        status = tni_topology_add(to, &part->object, err);
    }
    return status;
}

static tn_status write_source(tn_topology *to, const char *why, tn_error *err)
{
    tni_buffer text = {0};
    tni_buffer_format(&text, "a basic reading of the system: %s", why);
    tn_status status = text.failed ? tni_no_memory(err, "topology", "its origin")
                                   : tni_topology_set_source(to, text.text, err);
    tni_buffer_release(&text);
    return status;
}

static tn_status write_tree(struct tree *tree, const char *why, tn_topology **out, tn_error *err)
{
    tn_topology *topology;
    tn_status status = tni_topology_create_empty(&topology, err);
    if (status)
        return status;
    (void)((status = write_parts(tree, topology, err)) ||
           (status = write_source(topology, why, err)));
    if (status)
        tn_topology_release(topology);
    else
        *out = topology;
    return status;
}

tn_status tni_topology_basic(const tni_machine *machine, const char *why, tn_topology **out,
                             tn_error *err)
{
    struct tree tree = {.machine = machine};
    add_machine(&tree);
    add_groups(&tree, TN_TOPOLOGY_PACKAGE);
    add_groups(&tree, TN_TOPOLOGY_DIE);
    add_nodes(&tree);
    add_caches(&tree);
    add_cores(&tree);
    add_threads(&tree);
    tn_status status = join_parts(&tree)
                           ? write_tree(&tree, why, out, err)
                           : tni_no_memory(err, "topology", "the parts of the machine");
    tni_release(tree.innermost);
    tni_release(tree.members);
    tni_release(tree.parts);
    return status;
}
