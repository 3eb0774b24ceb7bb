/* The topology of the machine, as reported by hwloc. Only hwloc's header is needed to compile; the
 * library is opened when a topology is requested, never before.
 *
 * Observed behavior of hwloc 2.9 and 2.10, and how it is handled:
 *   - it moves the calling thread to every processor to query it: a flag forbids this;
 *   - it reads HWLOC_* variables, with which a user can substitute another machine (HWLOC_XMLFILE,
 *     HWLOC_SYNTHETIC, HWLOC_FSROOT): that is refused unless HWLOC_THISSYSTEM=1 is set;
 *   - it opens its plugins for devices, and the libraries they are linked to, and closes them with
 *     the topology: devices are filtered out, which is also the default, so that no plugin looks
 *     for any;
 *   - it prints to stderr, whatever the variables say, if Linux reports no topology below /sys: it
 *     is not used there;
 *   - 2.10 uses the capacity of processor n for the n-th one: if the numbers have gaps, for example
 *     because some are offline, its kinds of cores are not reported. This holds for every version,
 *     since the affected ones have the same API version;
 *   - it prints to stderr if the system's data contradict each other: only the user's
 *     HWLOC_HIDE_ERRORS=2 prevents that. */
#include "cpu_module.h"

#if defined(TENON_HAVE_HWLOC) /* needs a header of 2.5 or later */

#include <hwloc.h>
#include <stdbool.h>

/* Name without its prefix, result, arguments. */
#define HWLOC_LIST(X)                                                                         \
    X(get_api_version, unsigned, (void))                                                      \
    X(topology_init, int, (hwloc_topology_t *))                                               \
    X(topology_destroy, void, (hwloc_topology_t))                                             \
    X(topology_set_flags, int, (hwloc_topology_t, unsigned long))                             \
    X(topology_set_type_filter, int,                                                          \
      (hwloc_topology_t, hwloc_obj_type_t, enum hwloc_type_filter_e))                         \
    X(topology_load, int, (hwloc_topology_t))                                                 \
    X(topology_is_thissystem, int, (hwloc_topology_t))                                        \
    X(topology_get_allowed_cpuset, hwloc_const_cpuset_t, (hwloc_topology_t))                  \
    X(get_obj_by_depth, hwloc_obj_t, (hwloc_topology_t, int, unsigned))                       \
    X(get_cpubind, int, (hwloc_topology_t, hwloc_cpuset_t, int))                              \
    X(bitmap_alloc, hwloc_bitmap_t, (void))                                                   \
    X(bitmap_free, void, (hwloc_bitmap_t))                                                    \
    X(bitmap_isset, int, (hwloc_const_bitmap_t, unsigned))                                    \
    X(bitmap_isequal, int, (hwloc_const_bitmap_t, hwloc_const_bitmap_t))                      \
    X(bitmap_last, int, (hwloc_const_bitmap_t))                                               \
    X(bitmap_weight, int, (hwloc_const_bitmap_t))                                             \
    X(cpukinds_get_nr, int, (hwloc_topology_t, unsigned long))                                \
    X(cpukinds_get_by_cpuset, int, (hwloc_topology_t, hwloc_const_bitmap_t, unsigned long))   \
    X(cpukinds_get_info, int,                                                                 \
      (hwloc_topology_t, unsigned, hwloc_bitmap_t, int *, unsigned *, struct hwloc_info_s **, \
       unsigned long))

struct library {
#define MEMBER(name, result, arguments) result(*name) arguments;
    HWLOC_LIST(MEMBER)
#undef MEMBER
};

static const tn_symbol symbols[] = {
#define SYMBOL(name, result, arguments) {"hwloc_" #name, offsetof(struct library, name)},
    HWLOC_LIST(SYMBOL)
#undef SYMBOL
};

#define CHECK(name, result, arguments)                                              \
    TN_STATIC_ASSERT(_Generic(&hwloc_##name, result(*) arguments : 1, default : 0), \
                     "hwloc_" #name " is declared otherwise");
HWLOC_LIST(CHECK)
#undef CHECK

/* A walk over hwloc's tree. After a failure it continues without reporting. */
struct walk {
    const struct library *hwloc;
    const tn_topology_sink *sink;
    hwloc_topology_t topology;
    hwloc_const_cpuset_t allowed; /* by control groups */
    hwloc_bitmap_t bound;         /* the thread's; NULL: unknown */
    int kinds;                    /* of cores, in order of speed; 0: unknown */
    int32_t count;
    tn_status status;
    tn_error *err;
};

static int32_t number_of(hwloc_obj_t object)
{
    return object->os_index > INT32_MAX ? -1 : (int32_t)object->os_index;
}

static int64_t bounded(hwloc_uint64_t bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static int32_t report_object(struct walk *walk, tn_topology_object *object, int32_t parent)
{
    object->struct_size = sizeof *object;
    object->parent = parent;
    if (!walk->status)
        walk->status = walk->sink->add(walk->sink->self, object, walk->err);
    return walk->count++;
}

static int32_t usable(const struct walk *walk, hwloc_obj_t thread)
{
    const struct library *hwloc = walk->hwloc;
    return hwloc->bitmap_isset(walk->allowed, thread->os_index) &&
           (!walk->bound || hwloc->bitmap_isset(walk->bound, thread->os_index));
}

/* hwloc's first kind is the slowest. */
static int32_t speed_class(const struct walk *walk, hwloc_obj_t core)
{
    if (walk->kinds == 0)
        return -1;
    int kind = walk->hwloc->cpukinds_get_by_cpuset(walk->topology, core->cpuset, 0);
    return kind < 0 || kind >= walk->kinds ? -1 : walk->kinds - 1 - kind;
}

/* Returns false for objects that Tenon does not have, such as groups: they are skipped,
 * their contents are not. */
static bool describe(const struct walk *walk, hwloc_obj_t from, tn_topology_object *out)
{
    *out = (tn_topology_object){.number = number_of(from), .speed_class = -1};
    switch (from->type) {
    case HWLOC_OBJ_MACHINE:
        out->type = TN_TOPOLOGY_MACHINE;
        out->number = -1;
        return true;
    case HWLOC_OBJ_PACKAGE: out->type = TN_TOPOLOGY_PACKAGE; return true;
    case HWLOC_OBJ_DIE:
        out->type = TN_TOPOLOGY_DIE;
        return !walk->hwloc->bitmap_isequal(from->cpuset, from->parent->cpuset);
    case HWLOC_OBJ_L1CACHE:
    case HWLOC_OBJ_L2CACHE:
    case HWLOC_OBJ_L3CACHE:
    case HWLOC_OBJ_L4CACHE:
    case HWLOC_OBJ_L5CACHE:
        out->type = TN_TOPOLOGY_CACHE;
        out->level = (int32_t)from->attr->cache.depth;
        out->bytes = bounded(from->attr->cache.size);
        return true;
    case HWLOC_OBJ_CORE:
        out->type = TN_TOPOLOGY_CORE;
        out->speed_class = speed_class(walk, from);
        return true;
    case HWLOC_OBJ_PU:
        out->type = TN_TOPOLOGY_THREAD;
        out->usable = usable(walk, from);
        return true;
    default: return false;
    }
}

/* Memory is attached beside the tree, possibly below a memory-side cache. */
static int32_t report_node(struct walk *walk, hwloc_obj_t memory, int32_t parent)
{
    while (memory && memory->type != HWLOC_OBJ_NUMANODE)
        memory = memory->memory_first_child;
    if (!memory)
        return parent;
    tn_topology_object node = {.type = TN_TOPOLOGY_NODE,
                               .number = number_of(memory),
                               .bytes = bounded(memory->attr->numanode.local_memory),
                               .speed_class = -1};
    return report_object(walk, &node, parent);
}

/* The first node of an object becomes the parent of the object's children, so that a thread's node
 * is above it; further nodes, of other kinds of memory, are siblings of the first. */
static void visit(struct walk *walk, hwloc_obj_t from, int32_t parent)
{
    tn_topology_object object;
    int32_t own = describe(walk, from, &object) ? report_object(walk, &object, parent) : parent;
    hwloc_obj_t memory = from->memory_first_child;
    int32_t inside = memory ? report_node(walk, memory, own) : own;
    for (hwloc_obj_t child = from->first_child; child; child = child->next_sibling)
        visit(walk, child, inside);
    for (memory = memory ? memory->next_sibling : NULL; memory; memory = memory->next_sibling)
        (void)report_node(walk, memory, own);
}

static const char *version_of(hwloc_obj_t root)
{
    for (unsigned i = 0; i < root->infos_count; i++) {
        if (strcmp(root->infos[i].name, "hwlocVersion") == 0)
            return root->infos[i].value;
    }
    return "2";
}

static bool has_gaps(const struct library *hwloc, hwloc_const_cpuset_t processors)
{
    return hwloc->bitmap_last(processors) + 1 != hwloc->bitmap_weight(processors);
}

/* 0 unless hwloc knows which kinds are faster, and its data are reliable. */
static int ranked_kinds(const struct library *hwloc, hwloc_topology_t topology, hwloc_obj_t root)
{
    int efficiency = -1;
    int count = hwloc->cpukinds_get_nr(topology, 0);
    return count > 0 && !has_gaps(hwloc, root->cpuset) &&
                   hwloc->cpukinds_get_info(topology, 0, NULL, &efficiency, NULL, NULL, 0) == 0 &&
                   efficiency >= 0
               ? count
               : 0;
}

static tn_status report_topology(const struct library *hwloc, hwloc_topology_t topology,
                                 const tn_topology_sink *sink, tn_error *err)
{
    char source[64];
    hwloc_obj_t root = hwloc->get_obj_by_depth(topology, 0, 0);
    struct walk walk = {
        .hwloc = hwloc,
        .sink = sink,
        .topology = topology,
        .allowed = hwloc->topology_get_allowed_cpuset(topology),
        .bound = hwloc->bitmap_alloc(),
        .kinds = ranked_kinds(hwloc, topology, root),
        .err = err,
    };
    if (walk.bound && hwloc->get_cpubind(topology, walk.bound, HWLOC_CPUBIND_THREAD) != 0) {
        hwloc->bitmap_free(walk.bound);
        walk.bound = NULL;
    }
    visit(&walk, root, -1);
    if (walk.bound)
        hwloc->bitmap_free(walk.bound);
    snprintf(source, sizeof source, "hwloc %.40s", version_of(root));
    return walk.status ? walk.status : sink->source(sink->self, source, err);
}

static tn_status unusable(const char *what, tn_error *err)
{
    return tn_fail(err, TN_UNAVAILABLE, 0, "cpu: topology", "%s", what);
}

/* Checks that hwloc can read this system without printing. */
static tn_status check_system(const tn_host *host, tn_error *err)
{
#if defined(__linux__)
    tn_machine_facts facts = {.struct_size = sizeof facts};
    tn_status status = host->machine(host->self, &facts, err);
    if (!status && (!facts.cores.known || strncmp(facts.cores.origin, "/sys/", 5) != 0))
        return unusable("hwloc needs files below /sys that this system does not have", err);
    return status;
#else
    (void)host, (void)err;
    return TN_OK;
#endif
}

/* Threads that this process may not use are included. */
static tn_status load(const struct library *hwloc, hwloc_topology_t topology, tn_error *err)
{
    unsigned long flags =
        HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
    if (hwloc->topology_set_flags(topology, flags) != 0)
        return unusable("this hwloc is older than 2.5 and would move the calling thread about",
                        err);
    if (hwloc->topology_set_type_filter(topology, HWLOC_OBJ_DIE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc->topology_load(topology) != 0)
        return unusable("hwloc cannot read this system", err);
    if (!hwloc->topology_is_thissystem(topology))
        return unusable("a variable HWLOC_... gives hwloc another machine than this; "
                        "HWLOC_THISSYSTEM=1 vouches for it",
                        err);
    return TN_OK;
}

static tn_status open_library(const tn_host *host, struct library *out, tn_error *err)
{
    memset(out, 0, sizeof *out);
    tn_status status = host->library_bind(host->self, TNI_CPU_HWLOC_FILES, symbols,
                                          sizeof symbols / sizeof symbols[0], out, err);
    if (status == TN_INCOMPATIBLE && err)
        err->status = TN_UNAVAILABLE;
    if (status)
        return status == TN_INCOMPATIBLE ? TN_UNAVAILABLE : status;
    if (out->get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
        return unusable("hwloc is of another major version than this build's header", err);
    return TN_OK;
}

tn_status tni_cpu_module_topology(const tn_host *host, const tn_topology_sink *sink, tn_error *err)
{
    struct library hwloc;
    hwloc_topology_t topology;
    tn_status status = check_system(host, err);
    if (!status)
        status = open_library(host, &hwloc, err);
    if (status)
        return status;
    if (hwloc.topology_init(&topology) != 0)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cpu: topology", "hwloc has no memory");
    status = load(&hwloc, topology, err);
    if (!status)
        status = report_topology(&hwloc, topology, sink, err);
    hwloc.topology_destroy(topology);
    return status;
}

#else

tn_status tni_cpu_module_topology(const tn_host *host, const tn_topology_sink *sink, tn_error *err)
{
    (void)host, (void)sink;
    return tn_fail(err, TN_UNAVAILABLE, 0, "cpu: topology",
                   "this build has no header of hwloc 2.5 or later: install libhwloc-dev (Debian), "
                   "hwloc-devel (Fedora) or hwloc (Arch, Homebrew) and build again");
}

#endif
