/* Overhead of Tenon over direct calls of NVIDIA's driver: a launch with a cached plan, recording an
 * event, memory, a guard, a graph, and finding devices in a fresh process.
 *
 *     bench_cuda [launch] [event] [memory] [guard] [graph] [discovery]      default: all
 *
 * Queued work is measured as the time until the call returns, about a hundred calls at a time, so
 * that the device's queue is never full. */
#include "cuda_open.h"
#include "harness.h"
#include "host.h"

#include "../backends/cuda/kernels/elementwise.h"
#include "os/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 128, ELEMENTS = 4096, BLOCK = 1 << 20, GRAPH_CALLS = 100, CHILD_ROUNDS = 15 };

static void settle(void *user)
{
    (void)user;
    bench_cuda_must_cu(gpu.driver.stream_synchronize(gpu.raw), "cuStreamSynchronize");
}

static bench_side side(const char *name, bench_fn *run)
{
    return (bench_side){.name = name, .run = run, .most = AT_ONCE, .settle = settle};
}

/* A sum of two small tensors, by tn_binary and by a direct launch of the same function. */
static struct {
    tn_tensor in, other, out;
    cu_function function;
    cuda_each_args args;
} sum;

static void launch_by_tenon(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++)
        bench_cuda_must(
            tn_binary(NULL,
                      TN_ARGS(binary, .in = &sum.in, .other = &sum.other, .out = &sum.out,
                              .kind = TN_BINARY_ADD, .stream = gpu.stream),
                      &err),
            &err);
}

static void launch_directly(void *user, int64_t times)
{
    void *values[] = {&sum.args};
    (void)user;
    for (int64_t i = 0; i < times; i++)
        bench_cuda_must_cu(gpu.driver.launch(sum.function, ELEMENTS / 4 / 256, 1, 1, 256, 1, 1, 0,
                                             gpu.raw, values, NULL),
                           "cuLaunchKernel");
}

/* For the row that measures a caller without a current context. */
static cu_context context;

static void leave_context(void *user)
{
    (void)user;
    bench_cuda_must_cu(gpu.driver.context_get(&context), "cuCtxGetCurrent");
    bench_cuda_must_cu(gpu.driver.context_set(NULL), "cuCtxSetCurrent");
}

static void come_back(void *user)
{
    (void)user;
    bench_cuda_must_cu(gpu.driver.context_set(context), "cuCtxSetCurrent");
}

static void settle_outside(void *user)
{
    tn_error err;
    (void)user;
    bench_cuda_must(tn_stream_synchronize(gpu.stream, &err), &err);
}

/* Compiles the function from the same text and options as the row uses for this case. Returns false
 * without a compiler. */
static bool load_function(void)
{
    static const char options[] = "-DIN=f32\n-DOUT=f32\n-DCOMPUTE(a,b)=of_add(a,b)\n-DINPUTS=2\n"
                                  "-DWRAPS=0\n-DVECTOR=4\n-DINDEX=unsigned\n-DCOMPUTED=1\n";
    const cuda_case wanted = {&cuda_elementwise_unit, "dense", options};
    void *compiler = NULL, *code = NULL;
    cu_module module = NULL;
    size_t size = 0;
    tn_error err;
    if (cuda_nvrtc_open(&bench_host, &compiler, &err)) {
        printf("lacking: %s\n", err.message);
        return false;
    }
    bench_cuda_must(cuda_code_make(compiler, tn_device_properties_get(gpu.device)->architecture,
                                   &wanted, &code, &size, &err),
                    &err);
    bench_cuda_must_cu(gpu.driver.module_load(&module, code), "cuModuleLoadData");
    bench_cuda_must_cu(gpu.driver.module_function(&sum.function, module, "dense"),
                       "cuModuleGetFunction");
    return true;
}

static void make_sum(void)
{
    const int64_t shape[] = {ELEMENTS};
    tn_tensor *tensors[] = {&sum.in, &sum.other, &sum.out};
    tn_error err;
    for (int i = 0; i < 3; i++) {
        bench_cuda_must(tn_tensor_create(gpu.device, TN_F32, shape, 1, tensors[i], &err), &err);
        bench_cuda_must(
            tn_fill(NULL, TN_ARGS(fill, .out = tensors[i], .value = 1, .stream = gpu.stream), &err),
            &err);
    }
    sum.args = (cuda_each_args){.elements = ELEMENTS, .rank = 1, .size = {ELEMENTS}};
    sum.args.data[TN_ELEMENTWISE_IN] = sum.in.data;
    sum.args.data[TN_ELEMENTWISE_OUT] = sum.out.data;
    sum.args.data[TN_ELEMENTWISE_OTHER] = sum.other.data;
    for (int i = 0; i < 3; i++)
        sum.args.stride[i][0] = 1;
}

/* Prepares both sums, once. Returns false without a compiler. */
static bool ready_sum(void)
{
    if (!sum.function && load_function())
        make_sum();
    return sum.function != NULL;
}

static void measure_launch(void)
{
    bench_side outside = side("the same, no context being current", launch_by_tenon);
    outside.begin = leave_context;
    outside.end = come_back;
    outside.settle = settle_outside;
    const bench_side beside[] = {outside, {.name = NULL}};
    if (!ready_sum())
        return;
    bench_run(&(bench_figure){.name = "launch with its plan at hand, f32 + f32 of 4096",
                              .kind = BENCH_ADDED,
                              .aim = 0.5,
                              .unit = "us",
                              .ours = side("tenon", launch_by_tenon),
                              .rival = side("cuLaunchKernel", launch_directly),
                              .beside = beside});
}

static struct {
    tn_event *ours;
    cu_event raw;
} event;

static void record_by_tenon(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++)
        bench_cuda_must(tn_event_record(event.ours, gpu.stream, &err), &err);
}

static void record_directly(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        bench_cuda_must_cu(gpu.driver.event_record(event.raw, gpu.raw), "cuEventRecord");
}

static void measure_event(void)
{
    tn_error err;
    bench_cuda_must(
        tn_event_create(gpu.device, TN_ARGS(event, .enable_timing = 1), &event.ours, &err), &err);
    bench_cuda_must_cu(gpu.driver.event_create(&event.raw, 0), "cuEventCreate");
    bench_run(&(bench_figure){.name = "record of an event, timed",
                              .kind = BENCH_ADDED,
                              .aim = 0.2,
                              .unit = "us",
                              .ours = side("tenon", record_by_tenon),
                              .rival = side("cuEventRecord", record_directly)});
}

static cu_pool pool;

static void take_by_tenon(void *user, int64_t times)
{
    void *memory = NULL;
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        bench_cuda_must(tn_memory_alloc(gpu.device, BLOCK, NULL, &memory, &err), &err);
        tn_memory_free(gpu.device, memory);
        if (user)
            tn_memory_trim(gpu.device);
    }
}

static void take_directly(void *user, int64_t times)
{
    cu_deviceptr memory = 0;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        bench_cuda_must_cu(gpu.driver.pool_alloc(&memory, BLOCK, pool, gpu.raw),
                           "cuMemAllocFromPoolAsync");
        bench_cuda_must_cu(gpu.driver.pool_free(memory, gpu.raw), "cuMemFreeAsync");
    }
}

static void measure_memory(void)
{
    static char trims[] = "";
    const cu_pool_properties properties = {
        .allocation_type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    uint64_t keep = UINT64_MAX;
    bench_side emptied = side("nothing being kept, so from the driver", take_by_tenon);
    emptied.user = trims;
    const bench_side beside[] = {emptied, {.name = NULL}};
    if (!gpu.driver.pool_create) {
        printf("lacking: a driver with pools\n");
        return;
    }
    bench_cuda_must_cu(gpu.driver.pool_create(&pool, &properties), "cuMemPoolCreate");
    bench_cuda_must_cu(gpu.driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                       "cuMemPoolSetAttribute");
    bench_run(&(bench_figure){.name = "1 MiB taken from the pool and given back",
                              .kind = BENCH_ADDED,
                              .aim = 0.5,
                              .unit = "us",
                              .ours = side("tenon", take_by_tenon),
                              .rival = side("cuMemAllocFromPoolAsync", take_directly),
                              .beside = beside});
}

static void guard_by_tenon(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_device_guard guard = {0};
        bench_cuda_must(tn_device_guard_enter(&guard, gpu.device, &err), &err);
        tn_device_guard_leave(&guard);
    }
}

static void guard_directly(void *user, int64_t times)
{
    cu_context popped;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        (void)gpu.driver.context_push(context);
        (void)gpu.driver.context_pop(&popped);
    }
}

static void read_context(void *user, int64_t times)
{
    cu_context now;
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)gpu.driver.context_get(&now);
}

static void measure_guard(void)
{
    const bench_side beside[] = {{.name = "cuCtxGetCurrent", .run = read_context}, {.name = NULL}};
    bench_cuda_must_cu(gpu.driver.context_get(&context), "cuCtxGetCurrent");
    bench_run(&(bench_figure){
        .name = "device guard, in and out",
        .kind = BENCH_ADDED,
        .aim = 50,
        .unit = "ns",
        .ours = {.name = "tenon", .run = guard_by_tenon},
        .rival = {.name = "cuCtxPushCurrent and cuCtxPopCurrent", .run = guard_directly},
        .beside = beside});
}

/* A graph of a hundred small launches, timed until they have run. */
static struct {
    tn_graph *ours;
    cu_graph_exec raw;
} graph;

static void run_graph(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        bench_cuda_must(tn_graph_run(graph.ours, gpu.stream, &err), &err);
        bench_cuda_must_cu(gpu.driver.stream_synchronize(gpu.raw), "cuStreamSynchronize");
    }
}

static void run_graph_directly(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        bench_cuda_must_cu(gpu.driver.graph_launch(graph.raw, gpu.raw), "cuGraphLaunch");
        bench_cuda_must_cu(gpu.driver.stream_synchronize(gpu.raw), "cuStreamSynchronize");
    }
}

static void launch_all(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        launch_by_tenon(user, GRAPH_CALLS);
        bench_cuda_must_cu(gpu.driver.stream_synchronize(gpu.raw), "cuStreamSynchronize");
    }
}

static void make_graphs(void)
{
    tn_error err;
    cu_graph recorded = NULL;
    launch_by_tenon(NULL, 1);
    bench_cuda_must(tn_graph_begin(gpu.stream, &err), &err);
    launch_by_tenon(NULL, GRAPH_CALLS);
    bench_cuda_must(tn_graph_end(gpu.stream, &graph.ours, &err), &err);
    bench_cuda_must_cu(gpu.driver.graph_begin(gpu.raw, CU_STREAM_CAPTURE_MODE_RELAXED),
                       "cuStreamBeginCapture");
    launch_directly(NULL, GRAPH_CALLS);
    bench_cuda_must_cu(gpu.driver.graph_end(gpu.raw, &recorded), "cuStreamEndCapture");
    bench_cuda_must_cu(gpu.driver.graph_instantiate(&graph.raw, recorded, 0),
                       "cuGraphInstantiateWithFlags");
}

static void measure_graph(void)
{
    const bench_side beside[] = {{.name = "the same launches one by one", .run = launch_all},
                                 {.name = NULL}};
    if (!gpu.driver.graph_instantiate || !ready_sum()) {
        printf("lacking: a driver with graphs, or a compiler\n");
        return;
    }
    make_graphs();
    bench_run(&(bench_figure){.name = "a graph of 100 small launches, to its end",
                              .kind = BENCH_RATIO,
                              .aim = 1 / 1.1,
                              .unit = "us",
                              .ours = {.name = "tenon", .run = run_graph},
                              .rival = {.name = "cuGraphLaunch", .run = run_graph_directly},
                              .beside = beside});
    tn_graph_release(graph.ours);
}

/* Each runs in a fresh process, before this one has used the driver. */
static void find_by_tenon(void)
{
    tn_device *device;
    _exit(bench_cuda_add_module(NULL) || tn_device_get("cuda:0", &device, NULL));
}

static void open_by_tenon(void)
{
    tn_device *device;
    _exit(bench_cuda_add_module(NULL) || tn_device_get("cuda:0", &device, NULL) ||
          tn_device_set(tn_device_platform(device), 0, NULL));
}

/* Counts and names the devices, as Tenon does. */
static void find_by_nvml(void)
{
    struct {
        unsigned (*init)(void);
        unsigned (*count)(unsigned *out);
        unsigned (*device)(unsigned index, void **out);
        unsigned (*name)(void *device, char *out, unsigned size);
    } nvml;
    static const tn_symbol symbols[] = {{"nvmlInit_v2", 0},
                                        {"nvmlDeviceGetCount_v2", sizeof(void *)},
                                        {"nvmlDeviceGetHandleByIndex_v2", 2 * sizeof(void *)},
                                        {"nvmlDeviceGetName", 3 * sizeof(void *)}};
    unsigned count = 0;
    void *device = NULL;
    char name[96];
    _exit(tni_bind("libnvidia-ml.so.1", symbols, 4, NULL, &nvml, NULL, NULL) || nvml.init() ||
          nvml.count(&count) || count == 0 || nvml.device(0, &device) ||
          nvml.name(device, name, sizeof name));
}

static void find_by_driver(void)
{
    int32_t version;
    int count = 0;
    _exit(cuda_driver_bind(&bench_host, &gpu.driver, &version, NULL) || gpu.driver.init(0) ||
          gpu.driver.device_count(&count) || count == 0);
}

static void open_by_driver(void)
{
    int32_t version;
    cu_device device;
    cu_context made;
    _exit(cuda_driver_bind(&bench_host, &gpu.driver, &version, NULL) || gpu.driver.init(0) ||
          gpu.driver.device_get(&device, 0) || gpu.driver.primary_retain(&made, device) ||
          gpu.driver.context_set(made));
}

typedef struct job {
    void (*run)(void);
} job;

/* Returns how the child ended: 0 if it succeeded. */
static int run_child(const job *what)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        what->run();
    return child < 0 || waitpid(child, &status, 0) != child ? 1 : status;
}

static void run_children(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        if (run_child(user)) {
            fprintf(stderr, "bench: a child failed\n");
            exit(1);
        }
    }
}

static void measure_fresh(const char *name, job *ours, const char *rival, job *theirs,
                          const bench_side *beside)
{
    bool has_rival = run_child(theirs) == 0;
    bench_run(&(bench_figure){
        .name = name,
        .kind = BENCH_ADDED,
        .aim = 10,
        .unit = "ms",
        .ours = {.name = "tenon", .run = run_children, .user = ours},
        .rival = {.name = rival, .run = has_rival ? run_children : NULL, .user = theirs},
        .beside = beside,
        .rounds = CHILD_ROUNDS});
}

static void measure_discovery(void)
{
    static job ours = {find_by_tenon}, opened = {open_by_tenon}, nvml = {find_by_nvml};
    static job driver = {find_by_driver}, context_of_driver = {open_by_driver};
    const bench_side beside[] = {
        {.name = "cuInit and the count", .run = run_children, .user = &driver}, {.name = NULL}};
    if (run_child(&ours)) {
        printf("lacking: an NVIDIA GPU, for finding it\n");
        return;
    }
    measure_fresh("cuda:0 found, in a fresh process", &ours, "nvmlInit, the count, a name", &nvml,
                  beside);
    measure_fresh("cuda:0 found and opened, the same", &opened, "cuInit and the primary context",
                  &context_of_driver, NULL);
}

static const struct {
    const char *word;
    void (*measure)(void);
} figures[] = {
    {"launch", measure_launch}, {"event", measure_event}, {"memory", measure_memory},
    {"guard", measure_guard},   {"graph", measure_graph},
};

int main(int argc, char **argv)
{
    if (bench_wants("discovery", argc, argv))
        measure_discovery();
    if (!bench_cuda_open())
        return bench_end();
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (bench_wants(figures[i].word, argc, argv))
            figures[i].measure();
    }
    return bench_end();
}
