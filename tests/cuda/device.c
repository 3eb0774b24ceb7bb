/* The device interface against the stub driver: what is initialised and when, whose context is current, the
 * pool, faults. The stub refuses what is done in the wrong context, so every call here is a check of that. */
#include "program.h"

#include "device/device.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* The most that the stub steps from row to row. */
#define STUB_PITCH_HERE 4096
#define TEXT(number)    TEXT_(number)
#define TEXT_(number)   #number

static char lose[SCRATCH_PATH + 16], full[SCRATCH_PATH + 16];

static void put_file(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

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

static void numbers_that_take_long_are_asked_for_late(void **state)
{
    const uint64_t late = TN_DEVICE_KNOWS(clock_khz) | TN_DEVICE_KNOWS(memory_bandwidth);
    tn_device *found = NULL;
    (void)state;
    come_in();
    assert_int_equal(tni_device_known(second)->known & late, 0);
    DO(tn_device_get("platform=cuda,memory>=1m", &found, &err));
    assert_int_equal(tni_device_known(second)->known & late, 0);
    DO(tn_device_get("platform=cuda,clock>=1000000", &found, &err));
    assert_int_equal(tni_device_known(second)->known & late, late);
    const tn_device_properties *whole = tn_device_properties_get(second);
    assert_ptr_equal(whole, tn_device_properties_get(second));
    assert_int_equal(whole->known & late, late);
    assert_int_equal(whole->clock_khz, 1000000);
    assert_int_equal(whole->memory_bandwidth, INT64_C(16000000000));
    assert_int_equal(tn_device_is_initialized(second), 0);
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

/* What use_everything uses. */
typedef struct things {
    cu_context expected; /* is current before and after each call */
    tn_stream *stream;
    tn_event *start, *stop;
    void *there, *pinned;
    char here[256];
} things;

static void assert_current(const things *t)
{
    cu_context now = NULL;
    assert_int_equal(cu.context_get(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, t->expected);
}

#define HELD(call)         \
    do {                   \
        DO(call);          \
        assert_current(t); \
    } while (0)

static void make_things(things *t)
{
    HELD(tn_memory_alloc(first, 4096, "test", &t->there, &err));
    HELD(tn_memory_host_alloc(first, 4096, "test", &t->pinned, &err));
    HELD(tn_stream_create(first, TN_ARGS(stream, .priority = TN_PRIORITY_HIGH), &t->stream, &err));
    HELD(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &t->start, &err));
    HELD(tn_event_create(first, TN_ARGS(event, .enable_timing = 1), &t->stop, &err));
}

static void queue_work(things *t)
{
    HELD(tn_event_record(t->start, t->stream, &err));
    HELD(tn_memory_copy(TN_ARGS(memory_copy, .to_device = first, .to = t->there, .from = t->here,
                                .bytes = 16, .rows = 4, .to_pitch = 64, .from_pitch = 16,
                                .stream = t->stream),
                        &err));
    HELD(tn_memory_fill(TN_ARGS(memory_fill, .device = first, .to = t->there, .bytes = 4096,
                                .pattern = 0x1122334455667788, .pattern_bytes = 8,
                                .stream = t->stream),
                        &err));
    HELD(tn_memory_copy(TN_ARGS(memory_copy, .to = t->here, .from_device = first, .from = t->there,
                                .bytes = sizeof t->here, .stream = t->stream),
                        &err));
    HELD(tn_event_record(t->stop, t->stream, &err));
}

static void wait_and_ask(things *t)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    int32_t done = 0;
    double ms;
    HELD(tn_stream_query(t->stream, &done, &err));
    HELD(tn_stream_synchronize(t->stream, &err));
    HELD(tn_event_query(t->stop, &done, &err));
    HELD(tn_event_elapsed_time(t->start, t->stop, &ms, &err));
    HELD(tn_stream_wait_event(tn_stream_default(first), t->stop, &err));
    HELD(tn_device_synchronize(first, &err));
    HELD(tn_device_memory_get(first, &memory, &err));
}
#undef HELD

/* Every kind of call, with `expected` current before and after each. */
static void use_everything(cu_context expected)
{
    things t = {.expected = expected, .here = "what is here"};
    make_things(&t);
    queue_work(&t);
    wait_and_ask(&t);
    for (size_t i = 0; i < sizeof t.here; i += 8)
        assert_memory_equal(t.here + i, &(uint64_t){0x1122334455667788}, 8);
    tn_event_release(t.start);
    tn_event_release(t.stop);
    tn_stream_release(t.stream);
    tn_memory_host_free(first, t.pinned);
    tn_memory_free(first, t.there);
    tn_memory_trim(first);
    assert_current(&t);
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

static void assert_is_current(cu_context expected)
{
    cu_context now = &now;
    assert_int_equal(cu.context_get(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, expected);
}

/* Guards of both devices, nested, with one that the program makes current inside: the caller's is back. */
static void guard_over(cu_context expected, cu_context of_first, cu_context of_second)
{
    tn_device_guard outer = {0}, inner = {0};
    DO(tn_device_guard_enter(&outer, first, &err));
    assert_is_current(of_first);
    DO(tn_device_guard_enter(&inner, second, &err));
    assert_is_current(of_second);
    assert_int_equal(cu.context_set(of_first), CUDA_SUCCESS);
    tn_device_guard_leave(&inner);
    assert_is_current(of_first);
    assert_int_equal(cu.context_set(NULL), CUDA_SUCCESS);
    tn_device_guard_leave(&outer);
    assert_is_current(expected);
    assert_int_equal(tn_device_current(tn_device_platform(first)), 0);
}

static void guards_find_the_callers_context_again(void **state)
{
    cu_context one = NULL, two = NULL, popped;
    tn_stream_guard guard = {0};
    tn_stream *stream = NULL;
    (void)state;
    come_in();
    assert_int_equal(cu.primary_retain(&one, 0) || cu.primary_retain(&two, 1), CUDA_SUCCESS);
    DO(tn_device_synchronize(first, &err));
    DO(tn_device_synchronize(second, &err));
    assert_int_equal(cu.context_set(NULL), CUDA_SUCCESS);
    guard_over(NULL, one, two);
    assert_int_equal(cu.context_push(two), CUDA_SUCCESS);
    guard_over(two, one, two);
    DO(tn_stream_create(first, NULL, &stream, &err));
    DO(tn_stream_guard_enter(&guard, stream, &err));
    assert_is_current(one);
    tn_stream_guard_leave(&guard);
    assert_is_current(two);
    tn_stream_release(stream);
    assert_int_equal(cu.context_pop(&popped), CUDA_SUCCESS);
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

/* Memory that the driver has for anyone, this process's pool aside. */
static size_t left(void)
{
    size_t available = 0, total = 0;
    IN(0, assert_int_equal(cu.memory_info(&available, &total), CUDA_SUCCESS));
    return available;
}

static void trimming_gives_memory_back_to_the_system(void **state)
{
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    void *large = NULL, *small = NULL;
    (void)state;
    come_in();
    tn_memory_trim(first);
    const size_t all = left();
    DO(tn_memory_stats_get(first, &before, &err));
    DO(tn_memory_alloc(first, UINT64_C(100) * MIB, "test", &large, &err));
    DO(tn_memory_alloc(first, 5000, "test", &small, &err));
    tn_memory_free(first, large);
    tn_memory_free(first, small);
    assert_true(left() <= all - 100 * MIB);
    tn_memory_trim(first);
    assert_int_equal(left(), all);
    DO(tn_memory_stats_get(first, &after, &err));
    assert_int_equal(after.current, before.current);
    assert_int_equal(after.kept, 0);
}

static void rows_far_apart_are_copied_between_devices(void **state)
{
    enum { FAR = STUB_PITCH_HERE + 512, ROWS = 3 };
    char here[ROWS][8] = {"one", "two", "three"}, back[ROWS][8] = {""};
    void *a = NULL, *b = NULL;
    (void)state;
    come_in();
    DO(tn_memory_alloc(first, ROWS * FAR, "test", &a, &err));
    DO(tn_memory_alloc(second, ROWS * FAR, "test", &b, &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to_device = first, .to = a, .from = here, .bytes = 8,
                              .rows = ROWS, .to_pitch = FAR, .from_pitch = 8),
                      &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to_device = second, .to = b, .from_device = first,
                              .from = a, .bytes = 8, .rows = ROWS, .to_pitch = FAR / 2,
                              .from_pitch = FAR),
                      &err));
    DO(tn_memory_copy(TN_ARGS(memory_copy, .to = back, .from_device = second, .from = b, .bytes = 8,
                              .rows = ROWS, .to_pitch = 8, .from_pitch = FAR / 2),
                      &err));
    DO(tn_device_synchronize(second, &err));
    assert_memory_equal(back, here, sizeof here);
    tn_memory_free(first, a);
    tn_memory_free(second, b);
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

/* What another process does with a handle: its status is how it ends. */
static int open_handle(const char *text, const char *device)
{
    tn_event_handle handle;
    tn_event *event = NULL, *timed = NULL;
    tn_device *on = NULL;
    double ms = 0;
    int32_t done = 0;
    come_in();
    for (size_t i = 0; i < sizeof handle.bytes; i++) {
        const char two[3] = {text[2 * i], text[2 * i + 1], '\0'};
        handle.bytes[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    DO(tn_device_get(device, &on, &err));
    tn_status status = tn_event_import(on, &handle, &event, &err);
    if (status)
        return strstr(err.message, "in another process than its own") ? (int)status : -1;
    DO(tn_event_create(on, TN_ARGS(event, .enable_timing = 1), &timed, &err));
    DO(tn_stream_wait_event(tn_stream_default(on), event, &err));
    DO(tn_event_query(event, &done, &err));
    DO(tn_event_synchronize(event, &err));
    status = tn_event_elapsed_time(timed, event, &ms, &err);
    tn_event_release(timed);
    tn_event_release(event);
    return status == TN_UNSUPPORTED ? TN_OK : -1;
}

static int opened_by_another(const tn_event_handle *handle, const char *device)
{
    char text[2 * sizeof handle->bytes + 1];
    int how = -1;
    for (size_t i = 0; i < sizeof handle->bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)handle->bytes[i]);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "cuda.device", "open", text, device, (char *)NULL);
        _exit(125);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static void an_event_is_opened_in_another_process(void **state)
{
    tn_event_handle handle = {{0}};
    tn_event *event = NULL, *same = NULL;
    (void)state;
    come_in();
    DO(tn_event_create(first, TN_ARGS(event, .interprocess = 1), &event, &err));
    DO(tn_event_record(event, NULL, &err));
    DO(tn_event_export(event, &handle, &err));
    assert_int_equal(opened_by_another(&handle, "cuda:0"), TN_OK);
    assert_int_not_equal(opened_by_another(&handle, "cuda:1"), TN_OK);
    assert_int_equal(tn_event_import(first, &handle, &same, &err), TN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "in another process than its own"));
    assert_null(same);
    memset(&handle, 7, sizeof handle);
    assert_int_equal(tn_event_import(first, &handle, &same, &err), TN_INVALID_ARGUMENT);
    tn_event_release(event);
    DO(tn_event_create(first, NULL, &event, &err));
    assert_int_equal(tn_event_export(event, &handle, &err), TN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "without interprocess"));
    tn_event_release(event);
}

/* The driver finds it in a call of the program's, and Tenon hears of it later. */
static void lose_first(void)
{
    put_file(lose);
    IN(0, assert_int_equal(cu.context_synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS));
}

static void assert_only_first_is_lost(void)
{
    assert_int_equal(err.native_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    DO(tn_device_health(second, &err));
    DO(tn_device_synchronize(second, &err));
    assert_int_equal(tn_device_health(first, &err), TN_DEVICE_LOST);
    DO(tn_device_reset(first, &err));
}

static void a_fault_is_kept_with_the_device_that_has_it(void **state)
{
    void *a = NULL, *b = NULL;
    tn_event *event = NULL;
    (void)state;
    come_in();
    DO(tn_memory_alloc(first, 64, "test", &a, &err));
    DO(tn_memory_alloc(second, 64, "test", &b, &err));
    lose_first();
    assert_int_equal(tn_memory_copy(TN_ARGS(memory_copy, .to_device = second, .to = b,
                                            .from_device = first, .from = a, .bytes = 64),
                                    &err),
                     TN_DEVICE_LOST);
    assert_only_first_is_lost();
    DO(tn_event_create(first, NULL, &event, &err));
    DO(tn_event_record(event, NULL, &err));
    lose_first();
    assert_int_equal(tn_stream_wait_event(tn_stream_default(second), event, &err), TN_DEVICE_LOST);
    assert_only_first_is_lost();
    tn_event_release(event);
    tn_memory_free(second, b);
}

/* Of a device that has no fault: what is said is why it does not open. */
static void a_reset_that_fails_says_what_failed(void **state)
{
    (void)state;
    come_in();
    DO(tn_device_synchronize(second, &err));
    put_file(full);
    assert_int_equal(tn_device_reset(second, &err), TN_DEVICE_LOST);
    assert_non_null(strstr(err.message, "it failed earlier and is not opened again"));
    assert_non_null(strstr(err.message, "CUDA_ERROR_OUT_OF_MEMORY"));
    assert_null(strstr(err.message, "fault"));
    DO(tn_device_reset(second, &err));
    DO(tn_device_synchronize(second, &err));
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
    put_file(lose);
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

int main(int argc, char **argv)
{
    char folder[SCRATCH_PATH];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_take_long_are_asked_for_late),
        cmocka_unit_test(looking_starts_nothing),
        cmocka_unit_test(a_child_of_one_who_only_looked_can_start_the_driver),
        cmocka_unit_test(a_device_is_started_by_its_first_use_alone),
        cmocka_unit_test(the_callers_context_is_found_again),
        cmocka_unit_test(guards_find_the_callers_context_again),
        cmocka_unit_test(a_failed_call_restores_the_context),
        cmocka_unit_test(setting_a_device_makes_its_context_current),
        cmocka_unit_test(want_of_memory_trims_the_pool),
        cmocka_unit_test(trimming_gives_memory_back_to_the_system),
        cmocka_unit_test(rows_far_apart_are_copied_between_devices),
        cmocka_unit_test(streams_of_the_program_can_be_used),
        cmocka_unit_test(an_event_cannot_have_times_and_other_processes),
        cmocka_unit_test(an_event_is_opened_in_another_process),
        cmocka_unit_test(a_fault_is_kept_with_the_device_that_has_it),
        cmocka_unit_test(a_reset_that_fails_says_what_failed),
        cmocka_unit_test(a_fault_is_told_to_all_and_leaves_other_devices_well),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    if (argc == 4)
        return open_handle(argv[2], argv[3]);
    scratch_make(folder);
    snprintf(full, sizeof full, "%s/full", folder);
    setenv("STUB_FULL", full, 1);
    setenv("STUB_PITCH", TEXT(STUB_PITCH_HERE), 1);
    snprintf(lose, sizeof lose, "%s/lose", folder);
    setenv("STUB_LOSE", lose, 1);
    int failed = run_suite("cuda.device", tests);
    scratch_remove(folder);
    return failed;
}
