/* page_big KIND FILE: the page of a machine that is made up, for machines that are not at hand, and
 * on stdout its summary. The findings are plain data, so nothing here asks the system. */
#include "page.h"
#include "summary.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192 };

/* As long as a library may have it. */
#define LONG_VERSION \
    "2024.2.1-Product-Build-20240722-for-Intel-64-architecture applications, GNU threads, 32-bit"

static findings made;
static tn_machine_facts facts;
static tn_topology_object objects[ROOM];
static tn_machine_node nodes[64];
static tn_machine_class classes[4];
static tn_machine_limit limits[3];
static int32_t next_core, next_thread;
enum { CROWD = 64 };
static found_kernel kernels[CROWD * 4];
static found_decision decisions[CROWD];
static found_platform platforms[CROWD];
static found_device devices[CROWD];
static tn_module_report modules[CROWD];
static const tn_refusal bad_shape = {.struct_size = sizeof bad_shape,
                                     .code = TN_REFUSE_SHAPE,
                                     .needed = 32,
                                     .found = 30,
                                     .what = "k",
                                     .text = "k: expected 32, got 30; pad <k> to 32"};

static int32_t add(int32_t type, int32_t parent, int32_t number, int32_t level, int64_t bytes)
{
    int32_t index = (int32_t)made.object_count;
    if (index >= ROOM)
        exit(2);
    objects[made.object_count++] = (tn_topology_object){.struct_size = sizeof objects[0],
                                                        .type = type,
                                                        .parent = parent,
                                                        .number = number,
                                                        .level = level,
                                                        .bytes = bytes,
                                                        .usable = 1,
                                                        .speed_class = -1};
    return index;
}

static int32_t add_cache(int32_t parent, int32_t level, int64_t kib)
{
    return add(TN_TOPOLOGY_CACHE, parent, -1, level, kib * 1024);
}

/* A core with caches of its own; its second thread has a number `apart` above its first. */
static void add_core(int32_t parent, int64_t l2_kib, int64_t l1_kib, int32_t apart, int32_t class)
{
    if (l2_kib)
        parent = add_cache(parent, 2, l2_kib);
    parent = add_cache(parent, 1, l1_kib);
    int32_t core = add(TN_TOPOLOGY_CORE, parent, next_core++, 0, 0);
    objects[core].speed_class = class;
    add(TN_TOPOLOGY_THREAD, core, next_thread, 0, 0);
    if (apart)
        add(TN_TOPOLOGY_THREAD, core, next_thread + apart, 0, 0);
    next_thread += apart == 1 ? 2 : 1;
}

static void add_node_row(int32_t number, int64_t gib, const char *cpus, int32_t cpu_count)
{
    nodes[made.node_count++] = (tn_machine_node){
        .struct_size = sizeof nodes[0],
        .cpus = cpus,
        .total = tn_fact_of(gib << 30, "/sys/devices/system/node/node0/meminfo"),
        .free = tn_fact_of((gib << 30) * (number + 3) / (number + 9), "the same"),
        .number = number,
        .cpu_count = cpu_count,
    };
}

static void describe(const char *model, int64_t packages, int64_t cores, int64_t threads)
{
    tn_text_fit(facts.model, sizeof facts.model, model);
    facts.packages = tn_fact_of(packages, "made up");
    facts.cores = tn_fact_of(cores, "made up");
    facts.hardware_threads = tn_fact_of(threads, "made up");
    facts.nodes = tn_fact_of((int64_t)made.node_count, "made up");
    facts.threads = (int32_t)threads;
}

/* One of each standing; what strangers wrote looks like markup. */
static void add_libraries(void)
{
    static tn_library_state rows[] = {
        {.name = "acme",
         .platform = "",
         .what = "",
         .module = "<acme>",
         .built = 1,
         .available = TN_AVAILABLE_UNTRIED,
         .reason = "part of module <acme>, & not tried yet"},
        {.name = "cudnn",
         .platform = "cuda",
         .what = "operators",
         .module = "",
         .path = "/opt/cuda/libcudnn.so.9",
         .reason = "libcudnn.so.9 is at /opt/cuda/libcudnn.so.9, but no loaded module uses it",
         .remedy = "bring a module"},
        {.name = "mkl",
         .platform = "cpu",
         .what = "mathematics",
         .module = "cpu",
         .built = 1,
         .available = TN_AVAILABLE_YES,
         .kernels = 12,
         .version_text = LONG_VERSION,
         .path = "/opt/<i>/libmkl_rt.so.2",
         .reason = "opened for module cpu"},
        {.name = "mkldnn",
         .platform = "cpu",
         .what = "oneDNN",
         .module = "cpu",
         .built = 1,
         .reason = "libdnnl.so.3: no such file",
         .remedy = "install libdnnl3"},
        {.name = "openblas",
         .platform = "cpu",
         .what = "matrix products",
         .module = "cpu",
         .built = 1,
         .path = "/opt/libopenblas.so.0",
         .reason = "it lacks openblas_get_config",
         .remedy = "install another version of it"},
        {.name = "xnnpack",
         .platform = "cpu",
         .what = "operators of phones",
         .module = "",
         .reason = "not found: libXNNPACK.so"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        rows[i].enabled = strcmp(rows[i].name, "acme") != 0;
    made.libraries = rows;
    made.library_count = sizeof rows / sizeof rows[0];
}

/* Two packages of twelve dies with eight cores each; a cpuset takes every other core's threads. */
static void make_server(void)
{
    for (int p = 0; p < 2; p++) {
        int32_t package = add(TN_TOPOLOGY_PACKAGE, 0, p, 0, 0);
        for (int n = 0; n < 4; n++) {
            int32_t node = add(TN_TOPOLOGY_NODE, package, p * 4 + n, 0, INT64_C(96) << 30);
            add_node_row(p * 4 + n, 96, "0-23,192-215", 48);
            for (int d = 0; d < 3; d++) {
                int32_t cache = add_cache(node, 3, 32768);
                for (int c = 0; c < 8; c++)
                    add_core(cache, 1024, 32, 192, -1);
            }
        }
    }
    for (size_t i = 0; i < made.object_count; i++)
        objects[i].usable = objects[i].type != TN_TOPOLOGY_THREAD || objects[i].number % 192 < 140;
    describe("AMD EPYC 9654 96-Core Processor", 2, 192, 384);
    facts.threads = 280;
    add_libraries();
}

static found_kernel make_kernel(const char *name, int32_t verdict, double gflops)
{
    bool runs = verdict < TN_VERDICT_REFUSED;
    return (found_kernel){.candidate = {.struct_size = sizeof(tn_candidate),
                                        .kernel = name,
                                        .library = "",
                                        .backend = "",
                                        .platform = "cpu",
                                        .module = "cpu",
                                        .rule = "",
                                        .overruled = "",
                                        .verdict = verdict,
                                        .predicted_us = 12.34,
                                        .numerics = TN_NUM_RUN_TO_RUN,
                                        .why = runs ? NULL : &bad_shape,
                                        .predicted_by = "figures",
                                        .note = ""},
                          .checked = runs ? TRIAL_DONE : TRIAL_NONE,
                          .timed = runs ? TRIAL_DONE : TRIAL_NONE,
                          .check = {.ok = 1, .error = 0.25, .bound = 1e-6},
                          .bench = {.us = 20, .spread = 0.031, .gflops = gflops, .gbps = 3}};
}

/* A fast one, one at a quarter of its rate that is wrong, one that is refused; and nothing at all. */
static void make_kernels(void)
{
    kernels[0] = make_kernel("cpu.matmul.fast", TN_VERDICT_CHOSEN, 400);
    kernels[1] = make_kernel("cpu.matmul.wrong", TN_VERDICT_ADMITTED, 100);
    kernels[1].check.ok = 0;
    kernels[1].check.error = 1234;
    tn_text_fit(kernels[1].check.text, sizeof kernels[1].check.text, "out[3] is 7, not <8>");
    kernels[2] = make_kernel("cpu.matmul.picky", TN_VERDICT_REFUSED, 0);
    kernels[3] = make_kernel("cpu.norm.picky", TN_VERDICT_REFUSED, 0);
    decisions[0] = (found_decision){
        "matmul:f32:m=8,n=8,k=30@cpu:0", "cpu.matmul.fast", "", kernels, 3, NULL, {0}, true};
    decisions[1] = (found_decision){"norm:f32:shape=4x30@cpu:0",
                                    "",
                                    "no kernel <may> take it",
                                    kernels + 3,
                                    1,
                                    NULL,
                                    {0},
                                    false};
    made.kernels = (found_kernels){decisions, 2};
}

/* Eight fast cores with two threads, sixteen slow ones in clusters of four. */
static void make_hybrid(void)
{
    int32_t package = add(TN_TOPOLOGY_PACKAGE, 0, 0, 0, 0);
    int32_t cache = add_cache(package, 3, 36864);
    for (int c = 0; c < 8; c++)
        add_core(cache, 2048, 48, 1, 0);
    for (int k = 0; k < 4; k++) {
        int32_t cluster = add_cache(cache, 2, 4096);
        for (int c = 0; c < 4; c++)
            add_core(cluster, 0, 32, 0, 1);
    }
    classes[0] = (tn_machine_class){sizeof classes[0], "performance", "0-15", 1024, 5800000, 16, 0};
    classes[1] = (tn_machine_class){sizeof classes[0], "efficiency", "16-31", 620, 4300000, 16, 0};
    made.class_count = 2;
    add_node_row(0, 64, "0-31", 32);
    describe("13th Gen Intel(R) Core(TM) i9-13900K", 1, 24, 32);
    make_kernels();
}

/* Too busy for timing kernels. */
static void make_busy(void)
{
    make_hybrid();
    kernels[0].timed = TRIAL_NONE;
}

/* A telephone's: three classes, no package known. */
static void make_small(void)
{
    static const char *const names[] = {"Cortex-X1", "Cortex-A76", "Cortex-A55"};
    static const char *const cpus[] = {"0-1", "2-3", "4-7"};
    int32_t cache = add_cache(0, 3, 4096);
    for (int c = 0; c < 8; c++)
        add_core(cache,
                 c < 2   ? 1024
                 : c < 4 ? 256
                         : 128,
                 c < 4 ? 64 : 32, 0,
                 c < 2   ? 0
                 : c < 4 ? 1
                         : 2);
    for (int k = 0; k < 3; k++)
        classes[made.class_count++] =
            (tn_machine_class){sizeof classes[0],    names[k],      cpus[k], 1024 >> k,
                               2800000 - k * 500000, k < 2 ? 2 : 4, 0};
    describe("Tensor", 1, 8, 8);
}

/* One cache for all cores, memory nodes without processors beside it, one thread a core. */
static void make_wide(void)
{
    int32_t package = add(TN_TOPOLOGY_PACKAGE, 0, 0, 0, 0);
    add(TN_TOPOLOGY_NODE, package, 0, 0, INT64_C(480) << 30);
    int32_t cache = add_cache(package, 3, 116736);
    for (int c = 0; c < 72; c++)
        add_core(cache, 1024, 64, 0, -1);
    for (int n = 1; n < 9; n++)
        add(TN_TOPOLOGY_NODE, 0, n, 0, n == 1 ? INT64_C(96) << 30 : 0);
    add_node_row(0, 480, "0-71", 72);
    add_node_row(1, 96, "", 0);
    describe("Neoverse-V2", 1, 72, 72);
}

/* As little as there can be: threads that nothing is known of. */
static void make_bare(void)
{
    for (int c = 0; c < 40; c++)
        add(TN_TOPOLOGY_THREAD, 0, c, 0, 0);
    describe("", 0, 0, 40);
    facts.packages = facts.cores = facts.nodes = tn_fact_unknown("there is no /sys");
}

TN_PRINTF(1, 2)
static const char *make_name(const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : "";
}

static void crowd_platform(int i)
{
    static const tn_platform_verdict verdicts[] = {TN_PLATFORM_READY, TN_PLATFORM_NO_DRIVER,
                                                   TN_PLATFORM_BROKEN, TN_PLATFORM_ABSENT};
    platforms[i] = (found_platform){
        .report = {.struct_size = sizeof platforms[0].report,
                   .name = make_name("platform%d", i),
                   .module = "",
                   .reason = make_name("a reason of platform %d that is long enough for two lines, "
                                       "because it names two files: /dev/platform%d and another",
                                       i, i),
                   .remedy = make_name("install the driver of platform %d", i),
                   .verdict = verdicts[i % 4],
                   .current = i == 0},
        .device_name = "",
        .device_type = "",
        .dispatch_key = "",
        .visible_variable = ""};
}

static void crowd_device(int i)
{
    static const tn_device_properties properties;
    static const tn_dtype no_dtypes[] = {0};
    devices[i] = (found_device){.id = make_name("platform0:%d", i),
                                .platform = "platform0",
                                .name = i < 8 ? "Accelerator" : make_name("Accelerator %d", i),
                                .uuid = "",
                                .bus = "",
                                .architecture = "",
                                .dtypes = no_dtypes,
                                .properties = &properties,
                                .current = i == 3};
    devices[i].memory.total = tn_fact_of(INT64_C(80) << 30, "made up");
    devices[i].memory.available = tn_fact_of(INT64_C(79) << 30, "made up");
}

static void crowd_module(int i)
{
    static const tn_status statuses[] = {TN_OK, TN_UNAVAILABLE, TN_CORRUPT};
    modules[i] = (tn_module_report){
        .struct_size = sizeof modules[0],
        .name = make_name("module-%d", i),
        .version = "1.0",
        .origin = "module folder",
        .message = make_name("a message of module %d that fills more than one line of a narrow "
                             "terminal, and names a file: /lib/tenon-%d.so",
                             i, i),
        .remedy = "install the module again, or remove the file",
        .stage = i % 3 == 0 ? TN_STAGE_READY : TN_STAGE_FOUND,
        .status = statuses[i % 3]};
}

/* On each of three devices, problems of which every seventh has no kernel, and one whose kernel is
 * wrong. */
static void crowd_decision(int i)
{
    found_kernel *row = kernels + i * 4;
    for (int k = 0; k < 4; k++)
        row[k] = make_kernel(make_name("platform0.matmul.kernel-with-a-long-name-%d", k),
                             k == 0 && i % 7   ? TN_VERDICT_CHOSEN
                             : k == 1 && i % 7 ? TN_VERDICT_ADMITTED
                                               : TN_VERDICT_REFUSED,
                             100 + i);
    row[1].check.ok = i != 8;
    const char *problem = i % 3 == 0   ? make_name("matmul:f32:m=%d,n=64,k=64@a:0", i + 1)
                          : i % 3 == 1 ? make_name("norm:bf16:kind=rms,shape=%dx64@b:0", i + 1)
                                       : make_name("attention:f32:l=%d@c:0", i + 1);
    decisions[i] = (found_decision){.problem = problem,
                                    .taken = i % 7 ? row[0].candidate.kernel : "",
                                    .message = i % 7 ? "" : "no kernel",
                                    .kernels = row,
                                    .count = 4,
                                    .is_headline = i % 2};
}

/* More of everything than fits on a screen. */
static void make_crowd(void)
{
    make_server();
    for (int i = 0; i < CROWD; i++) {
        crowd_platform(i);
        crowd_device(i);
        crowd_module(i);
        crowd_decision(i);
    }
    made.platforms = platforms;
    made.devices = devices;
    made.modules = modules;
    made.kernels = (found_kernels){decisions, CROWD};
    made.platform_count = made.device_count = made.module_count = CROWD;
    made.choice_status = TN_NOT_FOUND;
}

static void begin(void)
{
    facts = (tn_machine_facts){.struct_size = sizeof facts, .architecture = "x86_64"};
    facts.memory_total = facts.memory_available = tn_fact_unknown("there is no /proc");
    facts.memory_in_use = tn_fact_of(INT64_C(9) << 20, "/proc/self/statm");
    add(TN_TOPOLOGY_MACHINE, -1, 0, 0, 0);
}

static void end(void)
{
    limits[0] = (tn_machine_limit){sizeof limits[0],
                                   "online processors",
                                   "known",
                                   "made up",
                                   facts.hardware_threads.value,
                                   0,
                                   0};
    limits[1] = (tn_machine_limit){sizeof limits[0], "affinity", "unknown", "nobody said", 0, 0, 0};
    limits[2] = (tn_machine_limit){
        sizeof limits[0], "cgroup cpuset", "known", "cpuset.cpus 0-139", facts.threads, 1, 0};
    int64_t total = 0;
    for (size_t i = 0; i < made.node_count; i++)
        total += nodes[i].total.value;
    if (total > 0) {
        facts.memory_total = tn_fact_of(total * 3 / 4, "cgroup v2 /sys/fs/cgroup memory.max");
        facts.memory_available = tn_fact_of(total / 2, "/proc/meminfo MemAvailable");
    }
    made.version = "0.0.0";
    made.level = "avx512-bf16";
    made.capability = "AVX512";
    made.choice = "cpu: the first platform that is ready";
    made.facts = &facts;
    made.objects = objects;
    made.topology_source = "a test";
    made.nodes = nodes;
    made.classes = classes;
    made.limits = limits;
    made.limit_count = 3;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*make)(void);
    } kinds[] = {{"server", make_server}, {"hybrid", make_hybrid}, {"small", make_small},
                 {"wide", make_wide},     {"bare", make_bare},     {"crowd", make_crowd},
                 {"busy", make_busy}};
    tn_error err;
    for (size_t i = 0; count == 3 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, arguments[1]) != 0)
            continue;
        begin();
        kinds[i].make();
        end();
        if (page_save(&made, arguments[2], &err) == TN_OK) {
            print_summary(&made);
            return 0;
        }
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    fprintf(stderr, "usage: page_big server|hybrid|small|wide|bare|crowd FILE\n");
    return 2;
}
