/* What the driver answers when something goes wrong, call by call: faults of a kernel, and what a capture forbids. The
 * codes are those of NVIDIA's documents; the stub is held to them here, the real driver where there is one, and
 * transcript.py records either.
 *
 *     test_cuda_calls             every case, each in a process of its own: a fault takes its context along
 *     test_cuda_calls --list      their names
 *     test_cuda_calls NAME        that one, in this process */
#include "test.h"

#include "../../backends/cuda/platform/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GLOBAL = 0, BYTES = 4096, ENDED_WELL = 0, ENDED_WRONG = 1, NO_DRIVER = 77 };
/* What the module does not name. */
enum { CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907 };

static cuda_driver cu;
static cu_stream stream; /* does not wait for the default one */
static cu_deviceptr memory;

static bool expect(cu_result expected, cu_result found, const char *call)
{
    if (found == expected)
        return true;
    print_message("%s gave %d, expected %d\n", call, (int)found, (int)expected);
    return false;
}

#define GIVES(code, call) expect(code, cu.call, #call)
#define WELL(call)        GIVES(CUDA_SUCCESS, call)

static bool bind_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
#define BIND(field, name, parameters)               \
    {                                               \
        void *found = dlsym(library, #name);        \
        memcpy(&cu.field, &found, sizeof cu.field); \
        if (!found)                                 \
            return false;                           \
    }
    CUDA_CALL_LIST(BIND)
    CUDA_LATER_CALL_LIST(BIND)
#undef BIND
    return true;
}

/* The first device's primary context, as the module has it; 77 where there is none. */
static int open_device(void)
{
    cu_context context = NULL;
    cu_device device = 0;
    int count = 0;
    if (!bind_driver() || cu.init(0) || cu.device_count(&count) || count == 0)
        return NO_DRIVER;
    return WELL(device_get(&device, 0)) && WELL(primary_retain(&context, device)) &&
                   WELL(context_push(context)) &&
                   WELL(stream_create(&stream, CU_STREAM_NON_BLOCKING, 0)) &&
                   WELL(memory_alloc(&memory, BYTES))
               ? ENDED_WELL
               : ENDED_WRONG;
}

static bool launch(const char *text)
{
    cu_module module = NULL;
    cu_function function = NULL;
    return WELL(module_load(&module, text)) && WELL(module_function(&function, module, "boom")) &&
           WELL(launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* It is found by whoever waits, and stays: every call that needs the context says it again. */
static bool finds(cu_result fault)
{
    size_t available = 0, total = 0;
    cu_deviceptr more = 0;
    cu_stream another = NULL;
    const char bytes[16] = "";
    return GIVES(fault, stream_synchronize(stream)) && GIVES(fault, stream_query(stream)) &&
           GIVES(fault, context_synchronize()) && GIVES(fault, memory_info(&available, &total)) &&
           GIVES(fault, memory_alloc(&more, BYTES)) &&
           GIVES(fault, copy_in(memory, bytes, sizeof bytes, stream)) &&
           GIVES(fault, stream_create(&another, CU_STREAM_NON_BLOCKING, 0));
}

static bool trap(void)
{
    return launch(".version 7.0\n.target sm_75\n.address_size 64\n"
                  ".visible .entry boom()\n{\n    trap;\n}\n") &&
           finds(CUDA_ERROR_LAUNCH_FAILED);
}

static bool illegal_address(void)
{
    return launch(".version 7.0\n.target sm_75\n.address_size 64\n"
                  ".visible .entry boom()\n{\n"
                  "    .reg .b64 %at;\n    .reg .b32 %what;\n"
                  "    mov.u64 %at, 16;\n    mov.u32 %what, 1;\n"
                  "    st.global.u32 [%at], %what;\n    ret;\n}\n") &&
           finds(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static bool capture(void)
{
    return WELL(graph_begin(stream, GLOBAL));
}

/* Nothing more is taken, and there is no graph. */
static bool is_spoilt(cu_stream captured)
{
    cu_graph graph = NULL;
    return GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, fill_32(memory, 0, 4, captured)) &&
           GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, graph_end(captured, &graph)) && !graph &&
           WELL(fill_32(memory, 0, 4, captured)) && WELL(stream_synchronize(captured));
}

static bool ends_well(cu_stream captured)
{
    cu_graph graph = NULL;
    return WELL(graph_end(captured, &graph)) && graph && WELL(graph_destroy(graph));
}

static bool capture_synchronize(void)
{
    return capture() && GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, stream_synchronize(stream)) &&
           is_spoilt(stream);
}

static bool capture_query(void)
{
    return capture() && GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, stream_query(stream)) &&
           is_spoilt(stream);
}

static bool capture_context(void)
{
    return capture() && GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, context_synchronize()) &&
           is_spoilt(stream);
}

static bool capture_memory(void)
{
    cu_deviceptr more = 0;
    return capture() && GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, memory_alloc(&more, BYTES)) &&
           is_spoilt(stream);
}

/* What the mode forbids may be for a thread that says so. */
static bool capture_relaxed(void)
{
    cu_capture_mode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cu_deviceptr more = 0;
    return capture() && WELL(capture_mode(&mode)) && WELL(memory_alloc(&more, BYTES)) &&
           WELL(memory_free(more)) && WELL(capture_mode(&mode)) &&
           WELL(fill_32(memory, 0, 4, stream)) && ends_well(stream);
}

/* The default stream would wait for one that is captured. */
static bool capture_implicit(void)
{
    cu_stream waited = NULL;
    return WELL(stream_create(&waited, 0, 0)) && WELL(graph_begin(waited, GLOBAL)) &&
           GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, fill_32(memory, 0, 4, NULL)) &&
           is_spoilt(waited);
}

/* To ask is no harm. */
static bool capture_ask(void)
{
    cu_stream waited = NULL;
    cu_capture_status status = CU_STREAM_CAPTURE_STATUS_NONE;
    return WELL(stream_create(&waited, 0, 0)) && WELL(graph_begin(waited, GLOBAL)) &&
           GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, stream_capturing(NULL, &status)) &&
           WELL(stream_capturing(waited, &status)) && status != CU_STREAM_CAPTURE_STATUS_NONE &&
           ends_well(waited);
}

static bool capture_default(void)
{
    return GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, graph_begin(NULL, GLOBAL)) &&
           WELL(fill_32(memory, 0, 4, NULL));
}

/* An event of before the capture is none of it. */
static bool capture_isolation(void)
{
    cu_event event = NULL;
    return WELL(event_create(&event, CU_EVENT_DISABLE_TIMING)) &&
           WELL(event_record(event, stream)) && capture() &&
           GIVES(CAPTURE_ISOLATION, stream_wait(stream, event, 0)) && is_spoilt(stream);
}

/* An event of the capture is a point of no work. */
static bool capture_event(void)
{
    cu_event event = NULL;
    return WELL(event_create(&event, CU_EVENT_DISABLE_TIMING)) && capture() &&
           WELL(event_record(event, stream)) && GIVES(CAPTURED_EVENT, event_query(event)) &&
           is_spoilt(stream);
}

#define CASES(X)                                  \
    X(trap, "trap")                               \
    X(illegal_address, "illegal-address")         \
    X(capture_synchronize, "capture.synchronize") \
    X(capture_query, "capture.query")             \
    X(capture_context, "capture.context")         \
    X(capture_memory, "capture.memory")           \
    X(capture_relaxed, "capture.relaxed")         \
    X(capture_implicit, "capture.implicit")       \
    X(capture_ask, "capture.ask")                 \
    X(capture_default, "capture.default")         \
    X(capture_isolation, "capture.isolation")     \
    X(capture_event, "capture.event")

static int run_here(bool (*run)(void))
{
    int how = open_device();
    return how ? how : run() ? ENDED_WELL : ENDED_WRONG;
}

/* This process never opens the driver, so that each child may. */
static void run_apart(bool (*run)(void))
{
    int how = -1;
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int code = run_here(run);
        (void)fflush(NULL);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how) && WEXITSTATUS(how) == NO_DRIVER)
        skip_because("no driver of NVIDIA's with graphs and a device is here");
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), ENDED_WELL);
}

#define APART(name, word)                  \
    static void name##_apart(void **state) \
    {                                      \
        (void)state;                       \
        run_apart(name);                   \
    }
CASES(APART)
#undef APART

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(void);
    } named[] = {
#define NAMED(name, word) {word, name},
        CASES(NAMED)
#undef NAMED
    };
    const struct CMUnitTest tests[] = {
#define TEST(name, word) cmocka_unit_test(name##_apart),
        CASES(TEST)
#undef TEST
    };
    const bool lists = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (size_t i = 0; argc == 2 && i < sizeof named / sizeof named[0]; i++) {
        if (lists)
            puts(named[i].name);
        else if (strcmp(argv[1], named[i].name) == 0)
            return run_here(named[i].run);
    }
    return argc == 2 ? !lists : run_suite("cuda.calls", tests);
}
