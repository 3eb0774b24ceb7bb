/* The device interface against the stub driver: what is initialised and when, whose context is current, the
 * pool, faults. The stub refuses what is done in the wrong context, so every call here is a check of that. */
#include "scratch.h"
#include "tenon/tenon.h"

#include "../../backends/cuda/platform/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char lose[SCRATCH_PATH + 16];
static tn_device *first, *second;
static tn_error err;

/* The stub's functions that the tests call beside the module, as a program would. */
static struct {
    cu_result (*context_get)(cu_context *out);
    cu_result (*context_set)(cu_context context);
    cu_result (*context_push)(cu_context context);
    cu_result (*context_pop)(cu_context *out);
    cu_result (*primary_retain)(cu_context *out, cu_device device);
    cu_result (*primary_release)(cu_device device);
    cu_result (*stream_create)(cu_stream *out, unsigned flags, int priority);
    cu_result (*stream_destroy)(cu_stream stream);
} cu;

static void bind(const char *name, void *to)
{
    void *library = dlopen(CUDA_STUB, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(to, &found, sizeof found);
}

static void come_in(void)
{
    if (first)
        return;
    if (tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err) ||
        tn_device_get("cuda:0", &first, &err) || tn_device_get("cuda:1", &second, &err))
        fail_msg("%s: %s", err.where, err.message);
    bind("cuCtxGetCurrent", &cu.context_get);
    bind("cuCtxSetCurrent", &cu.context_set);
    bind("cuCtxPushCurrent_v2", &cu.context_push);
    bind("cuCtxPopCurrent_v2", &cu.context_pop);
    bind("cuDevicePrimaryCtxRetain", &cu.primary_retain);
    bind("cuDevicePrimaryCtxRelease_v2", &cu.primary_release);
    bind("cuStreamCreateWithPriority", &cu.stream_create);
    bind("cuStreamDestroy_v2", &cu.stream_destroy);
}

#define DO(call)                                                   \
    do {                                                           \
        if (call)                                                  \
            fail_msg("%s: %s: %s", #call, err.where, err.message); \
    } while (0)

/* The first of all: the driver has not started, and counting, naming and asking start it not. */
static void looking_starts_nothing(void **state)
{
    cu_context context = NULL;
    tn_device_memory memory = {.struct_size = sizeof memory};
    (void)state;
    come_in();
    assert_string_equal(tn_device_name(first), "Stub GPU");
    assert_string_equal(tn_device_uuid(second), "GPU-11a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_int_equal(tn_device_properties_get(first)->multi_processor_count, 4);
    DO(tn_device_memory_get(first, &memory, &err));
    assert_int_equal(memory.total.value, 256 * MIB);
    assert_int_equal(tn_device_is_initialized(first), 0);
    assert_int_equal(cu.context_get(&context), CUDA_ERROR_NOT_INITIALIZED);
}

static void a_child_of_one_who_only_looked_can_start_the_driver(void **state)
{
    (void)state;
    come_in();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cu_result (*init)(unsigned flags);
        cu_context context = NULL;
        bind("cuInit", &init);
        bool well = init(0) == CUDA_SUCCESS && cu.primary_retain(&context, 0) == CUDA_SUCCESS &&
                    strcmp(tn_device_name(first), "Stub GPU") == 0;
        _exit(well ? 0 : 1);
    }
    int how = 1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

static void a_device_is_started_by_its_first_use_alone(void **state)
{
    void *memory = NULL;
    (void)state;
    come_in();
    DO(tn_memory_alloc(first, 1000, "test", &memory, &err));
    assert_int_equal(tn_device_is_initialized(first), 1);
    assert_int_equal(tn_device_is_initialized(second), 0);
    tn_memory_free(first, memory);
}

/* Every kind of call, with `expected` current before and after each. */
static void use_everything(cu_context expected)
{
    cu_context now = expected;
    tn_stream *stream = NULL;
    tn_event *start = NULL, *stop = NULL;
    void *there = NULL, *pinned = NULL;
    char here[256] = "what is here";
    int32_t done = 0;
    double ms;
    tn_device_memory memory = {.struct_size = sizeof memory};
#define HELD(call)                                            \
    do {                                                      \
        DO(call);                                             \
        assert_int_equal(cu.context_get(&now), CUDA_SUCCESS); \
        assert_ptr_equal(now, expected);                      \
    } while (0)
    HELD(tn_memory_alloc(first, 4096, "test", &there, &err));
    HELD(tn_memory_host_alloc(first, 4096, "test", &pinned, &err));
    HELD(tn_stream_create(first, TN_ARGS(stream, .priority = TN_PRIORITY_HIGH), &stream, &err));
    HELD(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &start, &err));
    HELD(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &stop, &err));
    HELD(tn_event_record(start, stream, &err));
    HELD(tn_memory_copy(TN_ARGS(memory_copy, .to_device = first, .to = there, .from = here,
                                .bytes = 16, .rows = 4, .to_pitch = 64, .from_pitch = 16,
                                .stream = stream),
                        &err));
    HELD(
        tn_memory_fill(TN_ARGS(memory_fill, .device = first, .to = there, .bytes = 4096,
                               .pattern = 0x1122334455667788, .pattern_bytes = 8, .stream = stream),
                       &err));
    HELD(tn_memory_copy(TN_ARGS(memory_copy, .to = here, .from_device = first, .from = there,
                                .bytes = sizeof here, .stream = stream),
                        &err));
    HELD(tn_event_record(stop, stream, &err));
    HELD(tn_stream_query(stream, &done, &err));
    HELD(tn_stream_synchronize(stream, &err));
    HELD(tn_event_query(stop, &done, &err));
    HELD(tn_event_elapsed_time(start, stop, &ms, &err));
    HELD(tn_stream_wait_event(tn_stream_default(first), stop, &err));
    HELD(tn_device_synchronize(first, &err));
    HELD(tn_device_memory_get(first, &memory, &err));
    for (size_t i = 0; i < sizeof here; i += 8)
        assert_memory_equal(here + i, &(uint64_t){0x1122334455667788}, 8);
    tn_event_release(start);
    tn_event_release(stop);
    tn_stream_release(stream);
    tn_memory_host_free(first, pinned);
    tn_memory_free(first, there);
    tn_memory_trim(first);
    assert_int_equal(cu.context_get(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, expected);
#undef HELD
}

static void the_callers_context_is_found_again(void **state)
{
    cu_context other = NULL, own = NULL, popped = NULL;
    (void)state;
    come_in();
    DO(tn_device_synchronize(first, &err));
    DO(tn_device_synchronize(second, &err));
    assert_int_equal(cu.context_set(NULL), CUDA_SUCCESS);
    use_everything(NULL);
    assert_int_equal(cu.primary_retain(&other, 1), CUDA_SUCCESS);
    assert_int_equal(cu.context_push(other), CUDA_SUCCESS);
    use_everything(other);
    assert_int_equal(cu.primary_retain(&own, 0), CUDA_SUCCESS);
    assert_int_equal(cu.context_push(own), CUDA_SUCCESS);
    use_everything(own);
    assert_int_equal(cu.context_pop(&popped), CUDA_SUCCESS);
    assert_ptr_equal(popped, own);
    assert_int_equal(cu.context_pop(&popped), CUDA_SUCCESS);
    assert_ptr_equal(popped, other);
    assert_int_equal(cu.context_pop(&popped), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.primary_release(0) || cu.primary_release(1), CUDA_SUCCESS);
}

/* A refusal restores, too. */
static void a_failed_call_restores_the_context(void **state)
{
    cu_context now = &now;
    void *memory = NULL;
    (void)state;
    come_in();
    assert_int_equal(cu.context_set(NULL), CUDA_SUCCESS);
    assert_int_equal(tn_memory_alloc(first, UINT64_C(1) << 40, "test", &memory, &err),
                     TN_OUT_OF_MEMORY);
    assert_int_equal(cu.context_get(&now), CUDA_SUCCESS);
    assert_null(now);
    assert_non_null(strstr(err.message, "CUDA_ERROR_OUT_OF_MEMORY"));
}

static void setting_a_device_makes_its_context_current(void **state)
{
    cu_context context = NULL, expected = NULL;
    const tn_platform *platform = tn_device_platform(first);
    (void)state;
    come_in();
    assert_int_equal(cu.primary_retain(&expected, 1), CUDA_SUCCESS);
    DO(tn_device_set(platform, 1, &err));
    assert_int_equal(cu.context_get(&context), CUDA_SUCCESS);
    assert_ptr_equal(context, expected);
    DO(tn_device_set(platform, 0, &err));
    assert_int_equal(cu.context_get(&context), CUDA_SUCCESS);
    assert_ptr_not_equal(context, expected);
    assert_int_equal(cu.context_set(NULL) || cu.primary_release(1), CUDA_SUCCESS);
}

/* The stub's pool keeps what is freed for requests of the same size: without trimming it there is no room
 * for another one. */
static void want_of_memory_trims_the_pool(void **state)
{
    void *memory = NULL;
    tn_device_memory now = {.struct_size = sizeof now};
    (void)state;
    come_in();
    tn_memory_trim(first);
    DO(tn_memory_alloc(first, UINT64_C(200) * MIB, "test", &memory, &err));
    tn_memory_free(first, memory);
    DO(tn_device_memory_get(first, &now, &err));
    assert_true(now.available.value > 200 * MIB);
    assert_true(now.in_use.value < 8 * MIB);
    DO(tn_memory_alloc(first, UINT64_C(201) * MIB, "test", &memory, &err));
    DO(tn_device_memory_get(first, &now, &err));
    assert_true(now.in_use.value >= 201 * MIB);
    tn_memory_free(first, memory);
}

static void streams_of_the_program_can_be_used(void **state)
{
    cu_context own = NULL, popped;
    cu_stream foreign = NULL;
    tn_stream *stream = NULL;
    void *there = NULL;
    (void)state;
    come_in();
    DO(tn_memory_alloc(first, 64, "test", &there, &err));
    assert_int_equal(cu.primary_retain(&own, 0) || cu.context_push(own) ||
                         cu.stream_create(&foreign, 0, 0) || cu.context_pop(&popped),
                     CUDA_SUCCESS);
    void *const raws[] = {foreign, (void *)(uintptr_t)1, (void *)(uintptr_t)2};
    for (size_t i = 0; i < 3; i++) { /* the last two: the driver's names of its default streams */
        DO(tn_stream_wrap(first, raws[i], &stream, &err));
        assert_int_equal(tn_stream_raw(stream), (uintptr_t)raws[i]);
        DO(tn_memory_fill(
            TN_ARGS(memory_fill, .device = first, .to = there, .bytes = 64, .stream = stream),
            &err));
        DO(tn_stream_synchronize(stream, &err));
        tn_stream_release(stream);
    }
    assert_int_equal(cu.context_push(own) || cu.stream_destroy(foreign) || cu.context_pop(&popped),
                     CUDA_SUCCESS);
    assert_int_equal(cu.primary_release(0), CUDA_SUCCESS);
    tn_memory_free(first, there);
}

static void an_event_cannot_have_times_and_other_processes(void **state)
{
    tn_event *event = NULL;
    (void)state;
    come_in();
    assert_int_equal(
        tn_event_create(first, TN_ARGS(event, .enable_timing = 1, .interprocess = 1), &event, &err),
        TN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "without timing"));
    DO(tn_event_create(first, TN_ARGS(event, .blocking = 1, .interprocess = 1), &event, &err));
    tn_event_release(event);
}

/* Work until the device is lost; what it says then. */
typedef struct worker {
    pthread_t thread;
    tn_status status;
    tn_error err;
} worker;

static void *work(void *any)
{
    worker *w = any;
    for (int i = 0; i < 100000 && !w->status; i++) {
        void *memory = NULL;
        w->status = tn_memory_alloc(first, 5000, "test", &memory, &w->err);
        if (!w->status)
            w->status = tn_memory_fill(
                TN_ARGS(memory_fill, .device = first, .to = memory, .bytes = 5000), &w->err);
        if (!w->status)
            w->status = tn_device_synchronize(first, &w->err);
        tn_memory_free(first, memory);
    }
    return NULL;
}

static void a_fault_is_told_to_all_and_leaves_other_devices_well(void **state)
{
    worker workers[3];
    void *memory = NULL;
    (void)state;
    come_in();
    memset(workers, 0, sizeof workers);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    FILE *file = fopen(lose, "w");
    assert_non_null(file);
    fclose(file);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].status, TN_DEVICE_LOST);
        assert_int_equal(workers[i].err.native_code, CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_non_null(strstr(workers[i].err.message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    }
    assert_int_equal(tn_device_health(first, &err), TN_DEVICE_LOST);
    DO(tn_memory_alloc(second, 5000, "test", &memory, &err));
    DO(tn_device_synchronize(second, &err));
    tn_memory_free(second, memory);
    DO(tn_device_reset(first, &err));
    use_everything(NULL);
}

int main(void)
{
    char folder[SCRATCH_PATH];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_starts_nothing),
        cmocka_unit_test(a_child_of_one_who_only_looked_can_start_the_driver),
        cmocka_unit_test(a_device_is_started_by_its_first_use_alone),
        cmocka_unit_test(the_callers_context_is_found_again),
        cmocka_unit_test(a_failed_call_restores_the_context),
        cmocka_unit_test(setting_a_device_makes_its_context_current),
        cmocka_unit_test(want_of_memory_trims_the_pool),
        cmocka_unit_test(streams_of_the_program_can_be_used),
        cmocka_unit_test(an_event_cannot_have_times_and_other_processes),
        cmocka_unit_test(a_fault_is_told_to_all_and_leaves_other_devices_well),
    };
    scratch_make(folder);
    snprintf(lose, sizeof lose, "%s/lose", folder);
    setenv("STUB_LOSE", lose, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    int failed = run_suite("cuda.device", tests);
    scratch_remove(folder);
    return failed;
}
